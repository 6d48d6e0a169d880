//! What separation gives back.

use serde::{Deserialize, Serialize};

use crate::audio::Audio;

/// One part of a separated mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stem {
    /// `vocals`, `drums`, ...
    pub name: String,
    /// The samples, at the rate and with the channels of the mix.
    pub audio: Audio,
}

/// A separated mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Separation {
    /// The stems, each as long as the mix. They have no samples if the request asked to stream:
    /// those went out as events.
    pub stems: Vec<Stem>,
    /// Length of the mix in seconds.
    pub duration: f64,
    /// Level of what is left of the mix without all stems, in decibels of the mix; absent if the
    /// request did not need all of the network's stems, or the mix is silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remainder_db: Option<f64>,
    /// What was ignored, repaired or left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
