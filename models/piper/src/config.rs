//! What the files beside the weights say: sounds and their numbers, rate, speakers, scales.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use serde::Deserialize;

use crate::LoadError;

/// What a voice reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Phonemes in IPA.
    Phonemes,
    /// The letters of the text.
    Letters,
}

/// A voice's own settings.
#[derive(Debug, Clone, PartialEq)]
pub struct VoiceConfig {
    /// Samples a second.
    pub rate: u32,
    /// Language as espeak-ng writes it.
    pub language: String,
    /// What it reads.
    pub reads: Reads,
    /// Numbers of each symbol.
    pub symbols: HashMap<String, Vec<i32>>,
    /// Numbers before the symbols of a sentence, after each of them, and at the end.
    pub frame: Frame,
    /// Whether letters are read in lower case.
    pub lower_case: bool,
    /// Speakers in the order of their numbers; empty for a single one.
    pub speakers: Vec<String>,
    /// Standard deviation of the noise in the latents.
    pub noise_scale: f32,
    /// Factor of all durations.
    pub length_scale: f32,
    /// Standard deviation of the noise in the durations.
    pub noise_w: f32,
}

/// The numbers around the symbols of a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// Before the first symbol.
    pub start: Vec<i32>,
    /// After each symbol.
    pub between: Vec<i32>,
    /// After the last.
    pub end: Vec<i32>,
}

#[derive(Deserialize)]
struct PiperFile {
    audio: PiperAudio,
    #[serde(default)]
    espeak: PiperEspeak,
    #[serde(default)]
    inference: PiperInference,
    #[serde(default)]
    phoneme_type: Option<String>,
    phoneme_id_map: HashMap<String, Vec<i32>>,
    #[serde(default)]
    num_speakers: Option<usize>,
    #[serde(default)]
    speaker_id_map: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct PiperAudio {
    sample_rate: u32,
}

#[derive(Deserialize, Default)]
struct PiperEspeak {
    #[serde(default)]
    voice: Option<String>,
}

#[derive(Deserialize)]
#[serde(default)]
struct PiperInference {
    noise_scale: f32,
    length_scale: f32,
    noise_w: f32,
}

impl Default for PiperInference {
    fn default() -> Self {
        PiperInference {
            noise_scale: 0.667,
            length_scale: 1.0,
            noise_w: 0.8,
        }
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, LoadError> {
    let problem = |problem: String| LoadError::package(path, problem);
    let bytes = std::fs::read(path).map_err(|e| problem(e.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|e| problem(e.to_string()))
}

impl VoiceConfig {
    /// Reads a Piper voice's `.onnx.json`.
    ///
    /// # Errors
    /// [`LoadError::Package`].
    pub fn piper(path: &Path) -> Result<VoiceConfig, LoadError> {
        let file: PiperFile = read_json(path)?;
        let problem = |problem: String| LoadError::package(path, problem);
        let reads = match file.phoneme_type.as_deref() {
            None | Some("espeak") => Reads::Phonemes,
            Some("text") => Reads::Letters,
            Some(other) => {
                return Err(problem(format!(
                    "phoneme_type `{other}`; known are `espeak` and `text`"
                )));
            }
        };
        let symbol = |name: &str| {
            let ids = file.phoneme_id_map.get(name).cloned();
            ids.ok_or_else(|| problem(format!("phoneme_id_map lacks `{name}`")))
        };
        let (pad, end) = (symbol("_")?, symbol("$")?);
        let start = [symbol("^")?, pad.clone()].concat();
        let mut speakers: Vec<(usize, String)> = file
            .speaker_id_map
            .into_iter()
            .map(|(name, number)| (number, name))
            .collect();
        speakers.sort();
        let count = file.num_speakers.unwrap_or(1);
        let mut names: Vec<String> = speakers.iter().map(|(_, name)| name.clone()).collect();
        if !speakers
            .iter()
            .map(|speaker| speaker.0)
            .eq(0..speakers.len())
        {
            return Err(problem("speaker_id_map does not number from 0 on".into()));
        }
        if names.is_empty() && count > 1 {
            names = (0..count.min(100_000)).map(|i| i.to_string()).collect();
        }
        Ok(VoiceConfig {
            rate: rate(file.audio.sample_rate, path)?,
            language: file.espeak.voice.unwrap_or_else(|| "en-us".into()),
            reads,
            symbols: file.phoneme_id_map,
            frame: Frame {
                start,
                between: pad,
                end,
            },
            lower_case: false,
            speakers: names,
            noise_scale: file.inference.noise_scale,
            length_scale: file.inference.length_scale,
            noise_w: file.inference.noise_w,
        })
    }

    /// Reads the `vocab.json` and `tokenizer_config.json` of a Hugging Face folder, beside its
    /// configuration.
    ///
    /// # Errors
    /// [`LoadError::Package`].
    pub fn mms(folder: &Path, config: &MmsConfig) -> Result<VoiceConfig, LoadError> {
        let vocabulary: HashMap<String, i32> = read_json(&folder.join("vocab.json"))?;
        let path = folder.join("tokenizer_config.json");
        let tokenizer: MmsTokenizer = match path.is_file() {
            true => read_json(&path)?,
            false => MmsTokenizer::default(),
        };
        if tokenizer.is_uroman {
            return Err(LoadError::package(
                &path,
                "this voice reads text that the uroman program has written in Latin letters, \
                 which is not supported",
            ));
        }
        let blank = match tokenizer.add_blank {
            true => vec![0],
            false => Vec::new(),
        };
        let single = |(text, number): (String, i32)| (text, vec![number]);
        Ok(VoiceConfig {
            rate: rate(config.sampling_rate, folder)?,
            language: tokenizer.language.unwrap_or_else(|| "en".into()),
            reads: match tokenizer.phonemize {
                true => Reads::Phonemes,
                false => Reads::Letters,
            },
            symbols: vocabulary.into_iter().map(single).collect(),
            frame: Frame {
                start: blank.clone(),
                between: blank,
                end: Vec::new(),
            },
            lower_case: tokenizer.normalize,
            speakers: match config.num_speakers {
                0 | 1 => Vec::new(),
                n => (0..n.min(100_000)).map(|i| i.to_string()).collect(),
            },
            noise_scale: config.noise_scale,
            length_scale: 1.0 / config.speaking_rate,
            noise_w: config.noise_scale_duration,
        })
    }
}

fn rate(rate: u32, path: &Path) -> Result<u32, LoadError> {
    match rate {
        4000..=192_000 => Ok(rate),
        _ => Err(LoadError::package(
            path,
            format!("a rate of {rate} samples a second"),
        )),
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MmsTokenizer {
    add_blank: bool,
    normalize: bool,
    phonemize: bool,
    is_uroman: bool,
    language: Option<String>,
}

/// The `config.json` of a Hugging Face VITS, as far as it shapes the network or its use.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)] // the names are the file's
pub struct MmsConfig {
    pub model_type: String,
    #[serde(default = "defaults::bins")]
    pub duration_predictor_flow_bins: usize,
    #[serde(default = "defaults::bound")]
    pub duration_predictor_tail_bound: f32,
    #[serde(default = "defaults::rates")]
    pub upsample_rates: Vec<usize>,
    #[serde(default = "defaults::dilations")]
    pub resblock_dilation_sizes: Vec<Vec<usize>>,
    #[serde(default = "defaults::one")]
    pub wavenet_dilation_rate: usize,
    #[serde(default = "defaults::one")]
    pub num_speakers: usize,
    #[serde(default = "defaults::sampling_rate")]
    pub sampling_rate: u32,
    #[serde(default = "defaults::speaking_rate")]
    pub speaking_rate: f32,
    #[serde(default = "defaults::noise_scale")]
    pub noise_scale: f32,
    #[serde(default = "defaults::noise_scale_duration")]
    pub noise_scale_duration: f32,
}

impl MmsConfig {
    /// Reads `config.json`.
    ///
    /// # Errors
    /// [`LoadError::Package`]; also if it describes another kind of network.
    pub fn read(path: &Path) -> Result<MmsConfig, LoadError> {
        let config: MmsConfig = read_json(path)?;
        let sane = config.model_type == "vits"
            && config.speaking_rate.is_finite()
            && config.speaking_rate > 0.0
            && config.duration_predictor_tail_bound > 0.0;
        match sane {
            true => Ok(config),
            false => Err(LoadError::package(
                path,
                format!("it describes a `{}`, no usable `vits`", config.model_type),
            )),
        }
    }
}

mod defaults {
    pub fn bins() -> usize {
        10
    }
    pub fn bound() -> f32 {
        5.0
    }
    pub fn rates() -> Vec<usize> {
        vec![8, 8, 2, 2]
    }
    pub fn dilations() -> Vec<Vec<usize>> {
        vec![vec![1, 3, 5]; 3]
    }
    pub fn one() -> usize {
        1
    }
    pub fn sampling_rate() -> u32 {
        16_000
    }
    pub fn speaking_rate() -> f32 {
        1.0
    }
    pub fn noise_scale() -> f32 {
        0.667
    }
    pub fn noise_scale_duration() -> f32 {
        0.8
    }
}
