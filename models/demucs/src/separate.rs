//! A track through all networks of a bag.

use audiocpp::engine::{
    Error, OptionKind, OptionSpec, Result, RunContext, Scope, SeparateRequest, StemNetwork,
    StemPlan, TrackLevel,
};

use crate::{
    apply::{Cut, Heard, Pass},
    machine::Machine,
    shifts::Shifts,
};

pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "shifts",
        scope: Scope::Request,
        kind: OptionKind::Int { min: 0, max: 100 },
        default: Some("0"),
        doc: "Average over this many random shifts of up to half a second; better, and as much slower.",
    },
    OptionSpec {
        name: "overlap",
        scope: Scope::Request,
        kind: OptionKind::Float {
            min: 0.0,
            max: 0.99,
        },
        default: Some("0.25"),
        doc: "Part of a segment that overlaps the next.",
    },
    OptionSpec {
        name: "segment",
        scope: Scope::Request,
        kind: OptionKind::Float {
            min: 0.5,
            max: 600.0,
        },
        default: None,
        doc: "Seconds of a segment; not more than a network with a transformer was made for.",
    },
    OptionSpec {
        name: "transition_power",
        scope: Scope::Request,
        kind: OptionKind::Float {
            min: 1.0,
            max: 100.0,
        },
        default: Some("1"),
        doc: "How sharply one segment follows another; 1 fades from one to the next.",
    },
];

/// Added to a track's deviation.
const EPS: f32 = 1e-8;

/// The networks of a bag.
pub struct DemucsStems {
    stems: Vec<String>,
    machines: Vec<Machine>,
    /// For each network, the weights of its stems.
    weights: Vec<Vec<f32>>,
    plan: Plan,
}

/// What a request asks for.
#[derive(Default)]
struct Plan {
    /// For each network how it cuts tracks, and how far before them it starts, shift by shift;
    /// none if it gives nothing that is wanted.
    passes: Vec<(Option<Cut>, Vec<usize>)>,
    wanted: Vec<bool>,
}

impl DemucsStems {
    /// A bag with `weights` for each of its networks.
    pub fn new(machines: Vec<Machine>, weights: Vec<Vec<f32>>) -> DemucsStems {
        let first = machines.first();
        DemucsStems {
            stems: first.map_or(Vec::new(), |m| m.net().config.sources.clone()),
            machines,
            weights,
            plan: Plan::default(),
        }
    }

    /// Runs every pass as far as it goes.
    fn advance(&mut self, track: &mut Track, ended: bool, context: &RunContext) -> Result<()> {
        for (m, passes) in track.passes.iter_mut().enumerate() {
            let machine = &mut self.machines[m];
            let config = &machine.net().config;
            let (fixed, own) = (config.fixed_segment, config.segment);
            for pass in passes {
                let cut = self.plan.passes[m]
                    .0
                    .as_ref()
                    .map_or(own, |cut| cut.segment);
                let valid = |keep: usize| if fixed { cut } else { keep };
                while let Some(mut window) = pass.window(&track.heard, ended, valid) {
                    context.check()?;
                    if fixed {
                        // Such a network always sees a whole segment.
                        window.frames.resize(own * track.channels, 0.0);
                    }
                    let stems = machine.separate(&window.frames)?;
                    pass.add(&window, &stems);
                }
                if ended {
                    pass.finish();
                }
            }
        }
        let passes = track.passes.iter().flatten();
        let needed = passes.map(Pass::needs_from).min().unwrap_or(0);
        track.heard.forget(needed);
        Ok(())
    }

    /// Puts together what is ready in all passes.
    fn give(&self, track: &mut Track, stems: &mut [Vec<f32>]) {
        let passes = track.passes.iter().flatten();
        let ready = passes.map(|pass| pass.ready[0].len()).min().unwrap_or(0);
        for (s, stem) in stems.iter_mut().enumerate() {
            if !self.plan.wanted[s] {
                continue;
            }
            let total: f32 = self.weights.iter().map(|weights| weights[s]).sum();
            let mut sum = vec![0.0; ready];
            for (weights, passes) in self.weights.iter().zip(&track.passes) {
                let factor = weights[s] / total / passes.len().max(1) as f32;
                for pass in passes.iter().filter(|_| factor != 0.0) {
                    let values = sum.iter_mut().zip(&pass.ready[s]);
                    values.for_each(|(to, x)| *to += factor * x);
                }
            }
            let TrackLevel { mean, deviation } = track.level;
            stem.extend(sum.into_iter().map(|x| x * (deviation + EPS) + mean));
        }
        for pass in track.passes.iter_mut().flatten() {
            for stem in &mut pass.ready {
                stem.drain(..ready);
            }
        }
    }
}

/// One track on its way.
pub struct Track {
    level: TrackLevel,
    channels: usize,
    heard: Heard,
    /// For each network, a pass for each shift.
    passes: Vec<Vec<Pass>>,
}

impl StemNetwork for DemucsStems {
    type Track = Track;

    fn stems(&self) -> &[String] {
        &self.stems
    }

    fn begin(&mut self, request: &SeparateRequest, wanted: &[bool]) -> Result<StemPlan> {
        request.options.check("demucs", OPTIONS, Scope::Request)?;
        let o = &request.options;
        let shifts = o.int("shifts").unwrap_or(0) as usize;
        let overlap = o.float("overlap").unwrap_or(0.25);
        let power = o.float("transition_power").unwrap_or(1.0) as f32;
        let mut random = Shifts::new(request.seed.unwrap_or(0));
        let mut passes = Vec::new();
        for (machine, weights) in self.machines.iter().zip(&self.weights) {
            let config = &machine.net().config;
            let own = config.segment_seconds();
            let seconds = o.float("segment");
            if let Some(seconds) = seconds.filter(|&s| config.fixed_segment && s > own) {
                return Err(Error::bad_input(format!(
                    "a segment of {seconds} s: this network takes {own:.1} s at most"
                )));
            }
            let rate = f64::from(config.samplerate);
            let segment = seconds.map_or(config.segment, |s| (s * rate) as usize);
            // Half a second at most, each network with numbers of its own.
            let most = config.samplerate / 2;
            let before = match shifts {
                0 => vec![0],
                n => (0..n)
                    .map(|_| (most - random.up_to(most)) as usize)
                    .collect(),
            };
            let needed = weights
                .iter()
                .zip(wanted)
                .any(|(w, wanted)| *wanted && *w != 0.0);
            passes.push((needed.then(|| Cut::new(segment, overlap, power)), before));
        }
        self.plan = Plan {
            passes,
            wanted: wanted.to_vec(),
        };
        let config = self.machines.first().map(|machine| &machine.net().config);
        let (rate, channels) = config.map_or((44_100, 2), |c| (c.samplerate, c.audio_channels));
        Ok(StemPlan {
            rate,
            channels: channels as u16,
            measures: true,
        })
    }

    fn track(&mut self, level: Option<TrackLevel>) -> Result<Track> {
        let config = self.machines.first().map(|machine| &machine.net().config);
        let channels = config.map_or(2, |config| config.audio_channels);
        let pass =
            |cut: &Cut, before: &usize| Pass::new(cut.clone(), channels, self.stems.len(), *before);
        let passes = self.plan.passes.iter().map(|(cut, starts)| {
            let cut = cut.iter();
            cut.flat_map(|cut| starts.iter().map(|before| pass(cut, before)))
                .collect()
        });
        Ok(Track {
            level: level.unwrap_or(TrackLevel {
                mean: 0.0,
                deviation: 1.0,
            }),
            channels,
            heard: Heard::new(channels),
            passes: passes.collect(),
        })
    }

    fn push(
        &mut self,
        track: &mut Track,
        frames: &[f32],
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()> {
        let TrackLevel { mean, deviation } = track.level;
        let factor = deviation + EPS;
        track.heard.push(frames, |x| (x - mean) / factor);
        self.advance(track, false, context)?;
        self.give(track, stems);
        Ok(())
    }

    fn finish(
        &mut self,
        mut track: Track,
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()> {
        self.advance(&mut track, true, context)?;
        self.give(&mut track, stems);
        Ok(())
    }
}
