//! What a network has to do to separate.

use crate::engine::{RunContext, SeparateRequest, error::Result};

/// A network that splits sound as it streams by, at a rate and with channels of its own. Other
/// rates and channels, the choice of stems, lengths and events are the engine's part.
pub trait StemNetwork: Send {
    /// What is under way about one stream of sound.
    type Track: Send;

    /// Names of the stems, in the order in which they are given.
    fn stems(&self) -> &[String];

    /// Checks `request` and takes up its seed. `wanted` tells for each stem whether it is asked
    /// for; others need not be computed. Called once before the tracks of a request.
    fn begin(&mut self, request: &SeparateRequest, wanted: &[bool]) -> Result<StemPlan>;

    /// Starts a track. `level` is there if the plan asked for it.
    fn track(&mut self, level: Option<TrackLevel>) -> Result<Self::Track>;

    /// Takes interleaved frames, and appends to each wanted one of `stems` what is ready: as many
    /// frames to each. Checks `context` between its steps.
    fn push(
        &mut self,
        track: &mut Self::Track,
        frames: &[f32],
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()>;

    /// Appends what is left, so that each wanted stem is as long as the track.
    fn finish(
        &mut self,
        track: Self::Track,
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()>;
}

/// How a request is going to be separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StemPlan {
    /// Frames a second that the network takes and gives.
    pub rate: u32,
    /// Channels that it takes and gives.
    pub channels: u16,
    /// Whether it has to know the level of a track before it begins.
    pub measures: bool,
}

/// Mean and deviation of a track's samples, its channels averaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrackLevel {
    /// Mean.
    pub mean: f32,
    /// Deviation, of a sample (divided by n - 1).
    pub deviation: f32,
}
