//! The one way from a mix to its stems, whatever the network.

use super::{
    StemNetwork, StemPlan, TrackLevel,
    choice::{Choice, Made},
    lane::{Lane, groups},
    result::{Separation, Stem},
    spool::Spool,
};
use crate::{
    audio::{Audio, AudioSource},
    engine::{Event, RunContext, Separate, SeparateRequest, Unit, error::Result},
};

/// Frames that are read at a time.
const BLOCK: usize = 16 * 1024;

/// A network that separates whole mixes, of any rate and number of channels. Memory does not depend
/// on the length of the mix if the request streams.
pub struct Separator<N> {
    network: N,
}

impl<N: StemNetwork> Separator<N> {
    /// A separator with this network.
    pub fn new(network: N) -> Self {
        Separator { network }
    }
}

impl<N: StemNetwork> Separate for Separator<N> {
    fn stems(&self) -> &[String] {
        self.network.stems()
    }

    fn separate(
        &mut self,
        request: &SeparateRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Separation> {
        let choice = Choice::new(request, self.network.stems())?;
        let plan = self.network.begin(request, &choice.wanted)?;
        if !plan.measures {
            return self.run(request, choice, plan, audio, &[], context);
        }
        let (mut spool, levels) = Spool::measure(audio, plan, context)?;
        self.run(request, choice, plan, &mut spool, &levels, context)
    }
}

impl<N: StemNetwork> Separator<N> {
    fn run(
        &mut self,
        request: &SeparateRequest,
        choice: Choice,
        plan: StemPlan,
        audio: &mut dyn AudioSource,
        levels: &[TrackLevel],
        context: &RunContext,
    ) -> Result<Separation> {
        let (rate, channels) = (audio.rate(), audio.channels());
        let total = audio.duration_hint();
        let network = &mut self.network;
        let lanes = groups(channels, plan.channels).enumerate();
        let lanes = lanes.map(|(i, group)| {
            let level = levels.get(i).copied();
            Lane::new(network, group, plan, rate, level, &choice.wanted)
        });
        let lanes = lanes.collect::<Result<Vec<_>>>()?;
        let mut out = Output::new(request, choice, lanes, rate, channels, context);
        let mut frames = Vec::new();
        loop {
            context.check()?;
            context.progress("separate", out.seconds(), total, Unit::Seconds);
            frames.clear();
            let read = audio.read(&mut frames, BLOCK)?;
            if read == 0 {
                break;
            }
            out.mix.extend_from_slice(&frames);
            for lane in &mut out.lanes {
                lane.push(&mut self.network, &frames, channels.into(), context)?;
            }
            out.pass_on(false);
        }
        for lane in &mut out.lanes {
            lane.finish(&mut self.network, context)?;
        }
        out.pass_on(true);
        let seconds = out.seconds();
        context.progress("separate", seconds, Some(seconds), Unit::Seconds);
        Ok(out.end(audio.warnings()))
    }
}

/// The stems that are made so far.
struct Output<'a, T> {
    request: &'a SeparateRequest,
    context: &'a RunContext,
    choice: Choice,
    lanes: Vec<Lane<T>>,
    channels: usize,
    rate: u32,
    /// Frames of the mix whose stems are not there yet.
    mix: Vec<f32>,
    /// Frames that are finished.
    frames: u64,
    stems: Vec<Stem>,
    /// Sums of squares: of the mix, and of what all stems leave of it.
    power: f64,
    left: f64,
    broken: bool,
}

impl<'a, T> Output<'a, T> {
    fn new(
        request: &'a SeparateRequest,
        choice: Choice,
        lanes: Vec<Lane<T>>,
        rate: u32,
        channels: u16,
        context: &'a RunContext,
    ) -> Self {
        let stem = |(name, _): &(String, Made)| Stem {
            name: name.clone(),
            audio: Audio {
                samples: Vec::new(),
                rate,
                channels,
            },
        };
        Output {
            request,
            context,
            stems: choice.outputs.iter().map(stem).collect(),
            choice,
            lanes,
            channels: channels.into(),
            rate,
            mix: Vec::new(),
            frames: 0,
            power: 0.0,
            left: 0.0,
            broken: false,
        }
    }

    fn seconds(&self) -> f64 {
        self.frames as f64 / f64::from(self.rate)
    }

    /// Sends off the frames whose stems are ready; at the end all of them, since a resampled stem
    /// may lack a frame or have one too many.
    fn pass_on(&mut self, ended: bool) {
        let waiting = self.mix.len() / self.channels;
        let ready = self.lanes.iter().map(Lane::frames).min().unwrap_or(0);
        let frames = if ended { waiting } else { ready.min(waiting) };
        if frames == 0 {
            return;
        }
        let values = frames * self.channels;
        let parts = self.parts(frames);
        self.compare(&parts, values);
        for (stem, (_, made)) in self.stems.iter_mut().zip(&self.choice.outputs) {
            let samples = &mut stem.audio.samples;
            let start = samples.len();
            samples.resize(start + values, 0.0);
            let to = &mut samples[start..];
            match made {
                Made::Of(of) => of.iter().for_each(|&i| add(to, &parts[i], 1.0)),
                Made::Without(i) => {
                    to.copy_from_slice(&self.mix[..values]);
                    add(to, &parts[*i], -1.0);
                }
            }
        }
        self.mix.drain(..values);
        self.lanes
            .iter_mut()
            .for_each(|lane| lane.drop_first(frames));
        self.frames += frames as u64;
        if self.request.stream {
            let stems = self.stems.clone();
            self.stems
                .iter_mut()
                .for_each(|stem| stem.audio.samples.clear());
            self.context.send(Event::Stems { stems });
        }
    }

    /// The next frames of the network's stems with all channels; numbers only.
    fn parts(&mut self, frames: usize) -> Vec<Vec<f32>> {
        let mut parts = Vec::new();
        for (i, wanted) in self.choice.wanted.iter().enumerate() {
            let mut part = vec![0.0; if *wanted { frames * self.channels } else { 0 }];
            for lane in self.lanes.iter().filter(|_| *wanted) {
                lane.place(i, frames, &mut part, self.channels);
            }
            for sample in part.iter_mut().filter(|sample| !sample.is_finite()) {
                *sample = 0.0;
                self.broken = true;
            }
            parts.push(part);
        }
        parts
    }

    /// How much of the mix the stems leave, if all of them are there.
    fn compare(&mut self, parts: &[Vec<f32>], values: usize) {
        if !self.choice.wanted.iter().all(|wanted| *wanted) {
            return;
        }
        for (i, &mix) in self.mix[..values].iter().enumerate() {
            let sum: f32 = parts.iter().map(|part| part[i]).sum();
            self.power += f64::from(mix).powi(2);
            self.left += f64::from(mix - sum).powi(2);
        }
    }

    fn end(self, mut warnings: Vec<String>) -> Separation {
        if self.broken {
            let message = "the model gave samples that are no numbers: they are silent".to_owned();
            self.context.warn(message.clone());
            warnings.push(message);
        }
        let remainder = (self.power > 0.0).then(|| 10.0 * (self.left / self.power).log10());
        Separation {
            duration: self.frames as f64 / f64::from(self.rate),
            stems: self.stems,
            // Stems that add up exactly leave nothing: no level that JSON could hold.
            remainder_db: remainder.map(|level| level.max(-300.0)),
            warnings,
        }
    }
}

fn add(to: &mut [f32], from: &[f32], factor: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

#[cfg(test)]
#[path = "separator_tests.rs"]
mod tests;
