//! What tasks are asked, and what they give back; all of it crosses process borders.
//!
//! Sound travels beside a request, not in it, so that requests stay small.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{options::Options, vad::SpeechRules};
use crate::audio::Audio;

/// A request for [`Transcribe`](super::Transcribe).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TranscribeRequest {
    /// ISO 639 code of the speech; `None` lets the model find out.
    pub language: Option<String>,
    /// Write English whatever is spoken.
    pub translate: bool,
    /// Text that comes before the speech: names, spelling and style to follow.
    pub prompt: Option<String>,
    /// Give every word its times.
    pub words: bool,
    /// Sampling temperature, 0..1; `None` leaves the family's own schedule in force.
    pub temperature: Option<f32>,
    /// Hypotheses of beam search; 1 is greedy, `None` is the family's own choice.
    pub beam_size: Option<usize>,
    /// Seed of the sampler.
    pub seed: Option<u64>,
    /// The family's declared request options.
    pub options: Options,
}

/// A request for [`Synthesize`](super::Synthesize): plain, cloned or designed voices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthesizeRequest {
    /// What to say; `[[həlˈoʊ]]` in it is pronounced as it is written.
    pub text: String,
    /// ISO 639 code of the text; `None` is the voice's own.
    pub language: Option<String>,
    /// One of the model's voices; `None` is its first.
    pub voice: Option<String>,
    /// Recordings whose voices are to be copied, one for each speaker of the text.
    pub references: Vec<Audio>,
    /// The words of the first of `references`.
    pub reference_text: Option<String>,
    /// How to say it, or what voice to design.
    pub instructions: Option<String>,
    /// 1 is the model's own speed, 2 twice as fast.
    pub speed: Option<f32>,
    /// Seed of the sampler.
    pub seed: Option<u64>,
    /// Write out numbers, dates, abbreviations and the like before speaking; true by default.
    pub normalize: bool,
    /// Who finds the sounds of words: `english` or `espeak`; `None` is the best that is there.
    pub phonemizer: Option<String>,
    /// Words and how they are pronounced, in IPA; capitals do not matter.
    pub pronunciations: BTreeMap<String, String>,
    /// Give every word and sound its times.
    pub words: bool,
    /// Send sound as events as soon as it is there, and keep none of it.
    pub stream: bool,
    /// The family's declared request options.
    pub options: Options,
}

impl Default for SynthesizeRequest {
    fn default() -> Self {
        SynthesizeRequest {
            text: String::new(),
            language: None,
            voice: None,
            references: Vec::new(),
            reference_text: None,
            instructions: None,
            speed: None,
            seed: None,
            normalize: true,
            phonemizer: None,
            pronunciations: BTreeMap::new(),
            words: false,
            stream: false,
            options: Options::default(),
        }
    }
}

/// A request for [`DetectSpeech`](super::DetectSpeech).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DetectSpeechRequest {
    /// When a probability becomes speech.
    pub rules: SpeechRules,
    /// Give back the probability of every frame.
    pub probabilities: bool,
    /// The family's declared request options.
    pub options: Options,
}

/// A request for [`Separate`](super::Separate).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeparateRequest {
    /// Stems to give back; empty is all of them.
    pub stems: Vec<String>,
    /// Give back this stem, and everything else as `no_NAME`.
    pub two_stems: Option<String>,
    /// What everything else is made of.
    pub rest: Rest,
    /// Seed of random shifts, for models that make them.
    pub seed: Option<u64>,
    /// Send sound as events as soon as it is there, and keep none of it.
    pub stream: bool,
    /// The family's declared request options.
    pub options: Options,
}

/// How everything but one stem is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// The other stems added up.
    #[default]
    Sum,
    /// The mix without the stem, so that both add up to the mix.
    Difference,
}

/// A request for [`Convert`](super::Convert).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvertRequest {
    /// Seed of the sampler.
    pub seed: Option<u64>,
    /// The family's declared request options.
    pub options: Options,
}

/// A request for [`Codec`](super::Codec), both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodecRequest {
    /// The family's declared request options.
    pub options: Options,
}

/// A request for [`Diarize`](super::Diarize).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiarizeRequest {
    /// Fewest speakers to find.
    pub min_speakers: Option<usize>,
    /// Most speakers to find.
    pub max_speakers: Option<usize>,
    /// The family's declared request options.
    pub options: Options,
}

/// A request for [`Align`](super::Align).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlignRequest {
    /// The words that are spoken.
    pub text: String,
    /// ISO 639 code of the text.
    pub language: Option<String>,
    /// The family's declared request options.
    pub options: Options,
}

/// A request for [`Generate`](super::Generate).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GenerateRequest {
    /// What it should sound like.
    pub prompt: String,
    /// Words to sing.
    pub lyrics: Option<String>,
    /// Length of the result in seconds.
    pub duration: Option<f64>,
    /// Seed of the sampler.
    pub seed: Option<u64>,
    /// The family's declared request options.
    pub options: Options,
}

/// Sound that a model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sound {
    /// The samples with their own rate and channels.
    pub audio: Audio,
    /// What was ignored, repaired or left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A stretch of time in seconds from the start of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Where it starts.
    pub start: f64,
    /// Where it ends, at least `start`.
    pub end: f64,
}

/// A stretch of speech by one speaker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Label that is the same in all turns of one speaker.
    pub speaker: String,
    /// When.
    #[serde(flatten)]
    pub span: Span,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::OptionValue;

    #[test]
    fn a_request_survives_json_and_refuses_unknown_fields() {
        let mut request = TranscribeRequest {
            words: true,
            ..Default::default()
        };
        request.options.set("patience", OptionValue::Float(2.0));
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(
            serde_json::from_str::<TranscribeRequest>(&json).unwrap(),
            request
        );
        let sparse: TranscribeRequest = serde_json::from_str(r#"{"language":"de"}"#).unwrap();
        assert_eq!(sparse.language.as_deref(), Some("de"));
        assert!(serde_json::from_str::<TranscribeRequest>(r#"{"langauge":"de"}"#).is_err());
    }
}
