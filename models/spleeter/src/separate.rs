//! A track: frames, masks, and back.

use audiocpp::{
    audio::{Complex32, Stft},
    engine::{
        Error, OptionKind, OptionSpec, Result, RunContext, Scope, SeparateRequest, StemNetwork,
        StemPlan, TrackLevel,
    },
};

use crate::{
    frames::{Analysis, Synthesis},
    machine::Machine,
    size::{BINS, FRAMES, MULTIPLE, RATE},
};

pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "bins",
        scope: Scope::Request,
        kind: OptionKind::Int {
            min: MULTIPLE as i64,
            max: 2048,
        },
        default: Some("1024"),
        doc: "Bins that the network sees, a multiple of 64: 1024 reach to 11 kHz, 1536 to 16 kHz.",
    },
    OptionSpec {
        name: "mask_extension",
        scope: Scope::Request,
        kind: OptionKind::Choice {
            values: &["zeros", "average"],
        },
        default: Some("zeros"),
        doc: "Mask above those bins: nothing of the mix, or the average of the mask below.",
    },
    OptionSpec {
        name: "power",
        scope: Scope::Request,
        kind: OptionKind::Float { min: 0.1, max: 8.0 },
        default: Some("2"),
        doc: "Exponent of the estimates in the masks.",
    },
];

/// Added to the sums of the estimates.
const EPS: f32 = 1e-10;

/// Spleeter as a network of the engine.
pub struct SpleeterStems {
    machine: Machine,
    stft: Stft,
    settings: Settings,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    bins: usize,
    average: bool,
    power: f32,
    wanted: Vec<bool>,
}

impl SpleeterStems {
    /// With networks of its own.
    ///
    /// # Errors
    /// None for the sizes that it works with.
    pub fn new(machine: Machine) -> Result<SpleeterStems> {
        let wanted = vec![true; machine.variant().stems.len()];
        Ok(SpleeterStems {
            machine,
            stft: crate::frames::transform()?,
            settings: Settings {
                bins: 1024,
                average: false,
                power: 2.0,
                wanted,
            },
        })
    }

    /// Separates the next frames of both channels.
    fn block(
        &mut self,
        track: &mut Track,
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()> {
        let [left, right] = &mut track.analysis;
        let left = left.take(&self.stft, FRAMES)?;
        let right = right.take(&self.stft, FRAMES)?;
        let frames = left.len() / BINS;
        let magnitudes = magnitudes([&left, &right], self.settings.bins);
        let size = [FRAMES, self.settings.bins];
        let mut masks = self.machine.shares(&magnitudes, size, context)?;
        to_masks(&mut masks, &magnitudes, self.settings.power);
        for (s, mask) in masks.iter().enumerate() {
            if !self.settings.wanted[s] {
                continue;
            }
            let mut channels = Vec::new();
            for (c, bins) in [&left, &right].into_iter().enumerate() {
                let masked = self.settings.apply(mask, bins, c, frames);
                channels.push(track.synthesis[s][c].push(&self.stft, &masked)?);
            }
            let pairs = channels[0].iter().zip(&channels[1]);
            stems[s].extend(pairs.flat_map(|(l, r)| [*l, *r]));
        }
        Ok(())
    }
}

/// Magnitudes of the lowest bins `[FRAMES, bins, 2]`; frames that are missing are silent.
fn magnitudes(channels: [&[Complex32]; 2], bins: usize) -> Vec<f32> {
    let mut out = vec![0.0; FRAMES * bins * 2];
    for (c, values) in channels.into_iter().enumerate() {
        for (row, to) in values
            .chunks_exact(BINS)
            .zip(out.chunks_exact_mut(bins * 2))
        {
            for (bin, to) in row.iter().zip(to.chunks_exact_mut(2)) {
                to[c] = bin.norm();
            }
        }
    }
    out
}

/// Shares of the magnitudes to shares of the sum of the powers.
fn to_masks(shares: &mut [Vec<f32>], magnitudes: &[f32], power: f32) {
    let raised = |share: f32, magnitude: f32| match power {
        2.0 => (share * magnitude).powi(2),
        power => (share * magnitude).powf(power),
    };
    let each = EPS / shares.len() as f32;
    for (at, &magnitude) in magnitudes.iter().enumerate() {
        let mut sum = EPS;
        for share in shares.iter_mut() {
            share[at] = raised(share[at], magnitude);
            sum += share[at];
        }
        for share in shares.iter_mut() {
            share[at] = (share[at] + each) / sum;
        }
    }
}

impl Settings {
    /// The bins of channel `c` times the mask `[FRAMES, bins, 2]`.
    fn apply(&self, mask: &[f32], values: &[Complex32], c: usize, frames: usize) -> Vec<Complex32> {
        let mut out = vec![Complex32::default(); frames * BINS];
        let rows = values.chunks_exact(BINS).zip(out.chunks_exact_mut(BINS));
        for ((row, to), mask) in rows.zip(mask.chunks_exact(self.bins * 2)) {
            let mask = mask.iter().skip(c).step_by(2);
            let above = match self.average {
                true => mask.clone().sum::<f32>() / self.bins as f32,
                false => 0.0,
            };
            let factors = mask.copied().chain(std::iter::repeat(above));
            for ((value, to), factor) in row.iter().zip(to).zip(factors) {
                *to = value * factor;
            }
        }
        out
    }
}

/// One track on its way.
pub struct Track {
    analysis: [Analysis; 2],
    /// By stem and channel.
    synthesis: Vec<[Synthesis; 2]>,
    /// Frames that came in, and that went out.
    heard: usize,
    given: usize,
}

impl StemNetwork for SpleeterStems {
    type Track = Track;

    fn stems(&self) -> &[String] {
        &self.machine.variant().stems
    }

    fn begin(&mut self, request: &SeparateRequest, wanted: &[bool]) -> Result<StemPlan> {
        request.options.check("spleeter", OPTIONS, Scope::Request)?;
        let o = &request.options;
        let bins = o.int("bins").unwrap_or(1024) as usize;
        if !bins.is_multiple_of(MULTIPLE) {
            return Err(Error::bad_input(format!(
                "bins is {bins}, wanted a multiple of {MULTIPLE}"
            )));
        }
        self.settings = Settings {
            bins,
            average: o.text("mask_extension") == Some("average"),
            power: o.float("power").unwrap_or(2.0) as f32,
            wanted: wanted.to_vec(),
        };
        Ok(StemPlan {
            rate: RATE,
            channels: 2,
            measures: false,
        })
    }

    fn track(&mut self, _: Option<TrackLevel>) -> Result<Track> {
        let stems = self.settings.wanted.iter();
        Ok(Track {
            analysis: Default::default(),
            synthesis: stems.map(|_| Default::default()).collect(),
            heard: 0,
            given: 0,
        })
    }

    fn push(
        &mut self,
        track: &mut Track,
        frames: &[f32],
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()> {
        track.heard += frames.len() / 2;
        for (c, analysis) in track.analysis.iter_mut().enumerate() {
            analysis.push(frames.iter().skip(c).step_by(2).copied());
        }
        while track.analysis[0].frames() >= FRAMES {
            let before = given(stems);
            self.block(track, stems, context)?;
            track.given += given(stems) - before;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        mut track: Track,
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()> {
        let before = given(stems);
        track.analysis.iter_mut().for_each(Analysis::finish);
        while track.analysis[0].frames() > 0 {
            self.block(&mut track, stems, context)?;
        }
        let left = track.heard - track.given;
        for (stem, wanted) in stems.iter_mut().zip(&self.settings.wanted) {
            if *wanted {
                stem.truncate(2 * (before + left));
            }
        }
        Ok(())
    }
}

/// Frames in the longest stem.
fn given(stems: &[Vec<f32>]) -> usize {
    stems.iter().map(|stem| stem.len() / 2).max().unwrap_or(0)
}
