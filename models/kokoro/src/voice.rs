//! A voice that speaks chunk by chunk.

use std::{collections::HashMap, sync::Arc};

use audiocpp::{
    audio::Audio,
    engine::{
        ChunkSound, ChunkVoice, Error, OptionKind, OptionSpec, Result, RunContext, Scope,
        SynthesizeRequest, VoiceInput, VoicePlan,
    },
    sampling::TorchRandom,
    text::chunks::{Chunk, ChunkLimits},
};

use crate::{
    machine::Machine,
    source::RATE,
    styles::{Style, Styles},
    symbols::number,
};

/// What the family takes.
pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "noise",
    scope: Scope::Request,
    kind: OptionKind::Bool,
    default: Some("true"),
    doc: "Noise in the vocoder's source; without it the same text always sounds the same.",
}];

/// Phonemes of one chunk. The network takes 510, and some phonemes become two.
const MOST_PHONEMES: usize = 440;
/// Sentences are joined up to here: the network speaks single short ones poorly, and every chunk
/// has silence at its ends, which takes as long as speech.
const JOINED_PHONEMES: usize = 300;
/// The same for the first chunk, whose sound somebody may be waiting for.
const FIRST_PHONEMES: usize = 150;

/// The languages of voices by the first letter of their names, as espeak-ng writes them.
const LANGUAGES: [(char, &str); 9] = [
    ('a', "en-us"),
    ('b', "en-gb"),
    ('e', "es"),
    ('f', "fr-fr"),
    ('h', "hi"),
    ('i', "it"),
    ('j', "ja"),
    ('p', "pt-br"),
    ('z', "cmn"),
];

/// Languages that the model was trained on with other phonemes than there are here.
const NOT_SPOKEN: [&str; 2] = ["ja", "cmn"];

/// The language of the voice called `name`.
pub(crate) fn language_of(name: &str) -> &'static str {
    let first = name.chars().next();
    let known = LANGUAGES.iter().find(|(letter, _)| Some(*letter) == first);
    known.map_or("en-us", |(_, language)| language)
}

/// The language in which `request` is to be spoken by the voice `name`, and what to say about it.
fn language(request: &SynthesizeRequest, name: &str) -> Result<(&'static str, Option<String>)> {
    let own = language_of(name);
    let Some(wanted) = request.language.as_deref() else {
        if !NOT_SPOKEN.contains(&own) {
            return Ok((own, None));
        }
        let warning = format!(
            "`{name}` is a voice of `{own}`, whose phonemes are not known here: the text is read \
             as English"
        );
        return Ok(("en-us", Some(warning)));
    };
    let lower = wanted.to_lowercase().replace('_', "-");
    let code = audiocpp::text::languages::code(&lower).unwrap_or(&lower);
    let same = |language: &str| language == lower || language.split('-').next() == Some(code);
    let mut all = LANGUAGES.iter().map(|(_, language)| *language);
    let exact = all.clone().find(|language| *language == lower);
    let found = exact
        .or(same(own).then_some(own))
        .or_else(|| all.find(|language| same(language)));
    match found {
        Some(language) if !NOT_SPOKEN.contains(&language) => Ok((language, None)),
        _ => Err(Error::unsupported(format!(
            "kokoro does not speak `{wanted}` here: its languages are en-us, en-gb, es, fr-fr, hi, \
             it and pt-br"
        ))),
    }
}

/// A voice with state of its own.
pub struct Voice {
    machine: Machine,
    styles: Arc<Styles>,
    vocab: Arc<HashMap<char, i32>>,
    style: Style,
    random: Option<TorchRandom>,
    speed: f32,
    english: bool,
    warning: Option<String>,
}

impl Voice {
    /// A voice of `styles` that speaks with `machine`.
    pub fn new(machine: Machine, styles: Arc<Styles>, vocab: Arc<HashMap<char, i32>>) -> Voice {
        Voice {
            machine,
            styles,
            vocab,
            style: Style::default(),
            random: None,
            speed: 1.0,
            english: true,
            warning: None,
        }
    }
}

impl ChunkVoice for Voice {
    fn begin(&mut self, request: &SynthesizeRequest) -> Result<VoicePlan> {
        request.options.check("kokoro", OPTIONS, Scope::Request)?;
        let name = match request.voice.as_deref() {
            Some(name) => name,
            None => self.styles.names().next().unwrap_or_default(),
        };
        self.style = self.styles.mix(name)?;
        self.speed = request.speed.unwrap_or(1.0);
        let (language, warning) = language(request, name)?;
        self.english = language.starts_with("en");
        self.warning = warning;
        let noise = request.options.bool("noise").unwrap_or(true);
        self.random = noise.then(|| TorchRandom::new(request.seed.unwrap_or(0)));
        Ok(VoicePlan {
            language: language.to_owned(),
            input: VoiceInput::Phonemes,
            limits: ChunkLimits {
                join: JOINED_PHONEMES,
                first: FIRST_PHONEMES,
                max: MOST_PHONEMES,
            },
            rate: RATE,
            channels: 1,
        })
    }

    fn speak(&mut self, chunk: &Chunk, context: &RunContext) -> Result<ChunkSound> {
        let chars: Vec<char> = chunk.phonemes.symbols().iter().map(|s| s.char).collect();
        let numbered = number(&chars, &self.vocab, self.english);
        let style = self.style.of(numbered.numbers.len() - 2);
        let random = self.random.as_mut();
        let (samples, lengths) =
            self.machine
                .speak(&numbered.numbers, style, self.speed, random, context)?;
        let seconds = self.machine.hop() as f64 / f64::from(RATE);
        let ends = numbered
            .ends
            .iter()
            .map(|end| frames_until(&lengths, *end) * seconds);
        let mut warnings: Vec<String> = self.warning.take().into_iter().collect();
        warnings.extend(unknown(&numbered.unknown));
        Ok(ChunkSound {
            audio: Audio::new(samples, RATE, 1)?,
            symbol_ends: Some(ends.collect()),
            warnings,
        })
    }
}

/// Frames of the first `count` phonemes, of the last of them a part.
fn frames_until(lengths: &[u32], count: f64) -> f64 {
    let whole = (count as usize).min(lengths.len());
    let frames: u32 = lengths[..whole].iter().sum();
    let part = lengths
        .get(whole)
        .map_or(0.0, |&n| f64::from(n) * count.fract());
    f64::from(frames) + part
}

fn unknown(chars: &[char]) -> Option<String> {
    let list: Vec<String> = chars.iter().map(|c| format!("`{c}`")).collect();
    let list = list.join(", ");
    (!chars.is_empty()).then(|| format!("left out, as the model does not know it: {list}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_decides_the_language_and_the_voice_its_kind() {
        let of = |wanted: Option<&str>, voice: &str| {
            let request = SynthesizeRequest {
                language: wanted.map(str::to_owned),
                ..SynthesizeRequest::default()
            };
            language(&request, voice).map(|(language, warning)| (language, warning.is_some()))
        };
        assert_eq!(of(None, "bf_emma").unwrap(), ("en-gb", false));
        assert_eq!(of(Some("en"), "bf_emma").unwrap(), ("en-gb", false));
        assert_eq!(of(Some("en"), "jf_alpha").unwrap(), ("en-us", false));
        assert_eq!(of(Some("en_GB"), "af_sky").unwrap(), ("en-gb", false));
        assert_eq!(of(None, "jf_alpha").unwrap(), ("en-us", true));
        assert_eq!(of(Some("pt"), "af_sky").unwrap(), ("pt-br", false));
        assert!(of(Some("ja"), "jf_alpha").is_err());
        assert!(of(Some("zh"), "zf_xiaobei").is_err());
        assert!(of(Some("de"), "af_sky").is_err());
    }

    #[test]
    fn times_follow_the_frames() {
        assert_eq!(frames_until(&[3, 10, 4], 1.5), 8.0);
        assert_eq!(frames_until(&[3, 10, 4], 3.0), 17.0);
        assert_eq!(frames_until(&[3, 10, 4], 9.0), 17.0);
    }
}
