//! Channels and rates: a group of a mix's channels on its way through the network and back.

use std::ops::Range;

use super::{StemNetwork, StemPlan, TrackLevel};
use crate::{
    audio::Resampler,
    engine::{RunContext, error::Result},
};

/// The runs of channels that go through the network one by one: pairs, for a network of two.
pub(super) fn groups(channels: u16, width: u16) -> impl Iterator<Item = Range<usize>> {
    let (channels, width) = (usize::from(channels), usize::from(width.max(1)));
    (0..channels)
        .step_by(width)
        .map(move |first| first..(first + width).min(channels))
}

/// One group of channels. Where it has fewer than the network wants, they are repeated, and
/// averaged on the way back.
pub(super) struct Lane<T> {
    group: Range<usize>,
    width: usize,
    into: Resampler,
    track: Option<T>,
    back: Vec<Resampler>,
    /// For each stem of the network, interleaved frames at the mix's rate that wait for those of
    /// the other groups; unwanted ones stay empty.
    pub ready: Vec<Vec<f32>>,
    wanted: Vec<bool>,
    /// The network's stems at its own rate, and its input.
    stems: Vec<Vec<f32>>,
    heard: Vec<f32>,
    picked: Vec<f32>,
}

impl<T> Lane<T> {
    /// For channels `group` of a mix at `rate`.
    pub fn new<N: StemNetwork<Track = T>>(
        network: &mut N,
        group: Range<usize>,
        plan: StemPlan,
        rate: u32,
        level: Option<TrackLevel>,
        wanted: &[bool],
    ) -> Result<Lane<T>> {
        let back = wanted
            .iter()
            .map(|_| Resampler::new(plan.rate, rate, plan.channels));
        Ok(Lane {
            group,
            width: plan.channels.into(),
            into: Resampler::new(rate, plan.rate, plan.channels)?,
            track: Some(network.track(level)?),
            back: back.collect::<crate::audio::Result<_>>()?,
            ready: vec![Vec::new(); wanted.len()],
            wanted: wanted.to_vec(),
            stems: vec![Vec::new(); wanted.len()],
            heard: Vec::new(),
            picked: Vec::new(),
        })
    }

    /// Takes frames of the mix, `channels` samples each.
    pub fn push<N: StemNetwork<Track = T>>(
        &mut self,
        network: &mut N,
        frames: &[f32],
        channels: usize,
        context: &RunContext,
    ) -> Result<()> {
        let Some(track) = &mut self.track else {
            return Ok(());
        };
        self.picked.clear();
        for frame in frames.chunks_exact(channels) {
            let own = &frame[self.group.clone()];
            self.picked.extend(own.iter().cycle().take(self.width));
        }
        self.heard.clear();
        self.into.push(&self.picked, &mut self.heard)?;
        network.push(track, &self.heard, &mut self.stems, context)?;
        self.give_back(false)
    }

    /// Takes the end of the mix.
    pub fn finish<N: StemNetwork<Track = T>>(
        &mut self,
        network: &mut N,
        context: &RunContext,
    ) -> Result<()> {
        let Some(mut track) = self.track.take() else {
            return Ok(());
        };
        self.heard.clear();
        self.into.finish(&mut self.heard)?;
        network.push(&mut track, &self.heard, &mut self.stems, context)?;
        network.finish(track, &mut self.stems, context)?;
        self.give_back(true)
    }

    fn give_back(&mut self, ended: bool) -> Result<()> {
        for (i, stem) in self.stems.iter_mut().enumerate() {
            if self.wanted[i] {
                self.back[i].push(stem, &mut self.ready[i])?;
                if ended {
                    self.back[i].finish(&mut self.ready[i])?;
                }
            }
            stem.clear();
        }
        Ok(())
    }

    /// Frames that are ready in every wanted stem.
    pub fn frames(&self) -> usize {
        let wanted = self.ready.iter().zip(&self.wanted).filter(|(_, w)| **w);
        wanted
            .map(|(ready, _)| ready.len() / self.width)
            .min()
            .unwrap_or(0)
    }

    /// Puts the first `frames` frames of stem `stem` into the places of this group in `to`, frames
    /// of `channels`; what is missing stays as it is.
    pub fn place(&self, stem: usize, frames: usize, to: &mut [f32], channels: usize) {
        let from = self.ready[stem].chunks_exact(self.width).take(frames);
        for (from, to) in from.zip(to.chunks_exact_mut(channels)) {
            let own = &mut to[self.group.clone()];
            match own.len() == self.width {
                true => own.copy_from_slice(from),
                // Repeated channels come in whole rounds: a narrow group is the first of them.
                false => {
                    let n = own.len();
                    for (c, sample) in own.iter_mut().enumerate() {
                        let same = from.iter().skip(c).step_by(n);
                        *sample = same.clone().sum::<f32>() / same.count() as f32;
                    }
                }
            }
        }
    }

    /// Drops the first `frames` frames of every stem.
    pub fn drop_first(&mut self, frames: usize) {
        for ready in &mut self.ready {
            ready.drain(..(frames * self.width).min(ready.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_go_in_pairs() {
        assert_eq!(groups(6, 2).collect::<Vec<_>>(), [0..2, 2..4, 4..6]);
        assert_eq!(groups(3, 2).collect::<Vec<_>>(), [0..2, 2..3]);
        assert!(groups(1, 2).eq(std::iter::once(0..1)));
    }
}
