//! A voice that speaks chunk by chunk.

use std::sync::Arc;

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
    config::{Reads, VoiceConfig},
    machine::{Machine, Manner},
};

const fn scale(name: &'static str, max: f64, doc: &'static str) -> OptionSpec {
    OptionSpec {
        name,
        scope: Scope::Request,
        kind: OptionKind::Float { min: 0.0, max },
        default: None,
        doc,
    }
}

/// What the family takes.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    scale(
        "noise_scale",
        4.0,
        "Variation of the voice; 0 says the same thing the same way every time.",
    ),
    scale("noise_w", 4.0, "Variation of the durations."),
    OptionSpec {
        name: "length_scale",
        scope: Scope::Request,
        kind: OptionKind::Float {
            min: 0.05,
            max: 20.0,
        },
        default: None,
        doc: "Factor of all durations; `speed` divides it.",
    },
];

/// Symbols of one chunk: a long sentence stays whole, a longer one is cut.
const MOST_SYMBOLS: usize = 600;

/// A voice with state of its own.
pub struct Voice {
    machine: Machine,
    config: Arc<VoiceConfig>,
    random: TorchRandom,
    manner: Manner,
}

impl Voice {
    /// A voice of `config` that speaks with `machine`.
    pub fn new(machine: Machine, config: Arc<VoiceConfig>) -> Voice {
        let manner = Manner {
            speaker: 0,
            noise_scale: config.noise_scale,
            length_scale: config.length_scale,
            noise_w: config.noise_w,
        };
        Voice {
            machine,
            config,
            random: TorchRandom::new(0),
            manner,
        }
    }

    /// How `request` is to be spoken.
    fn manner_of(&self, request: &SynthesizeRequest) -> Result<Manner> {
        request.options.check("piper", OPTIONS, Scope::Request)?;
        let option = |name: &str, own: f32| request.options.float(name).map_or(own, |x| x as f32);
        let speed = request.speed.unwrap_or(1.0);
        if !(0.05..=20.0).contains(&speed) {
            return Err(Error::bad_input(format!(
                "a speed of {speed}; 0.05 to 20 are possible"
            )));
        }
        Ok(Manner {
            speaker: self.speaker(request.voice.as_deref())?,
            noise_scale: option("noise_scale", self.config.noise_scale),
            length_scale: option("length_scale", self.config.length_scale) / speed,
            noise_w: option("noise_w", self.config.noise_w),
        })
    }

    /// The number of the speaker called `name`, by name or number; the first if none is named.
    fn speaker(&self, name: Option<&str>) -> Result<i32> {
        let speakers = &self.config.speakers;
        let Some(name) = name else { return Ok(0) };
        let known = speakers.iter().position(|speaker| speaker == name);
        let numbered = || {
            name.parse()
                .ok()
                .filter(|&n: &usize| n < speakers.len().max(1))
        };
        match known.or_else(numbered) {
            Some(number) => Ok(number as i32),
            None if speakers.is_empty() => Err(Error::not_found(format!(
                "there is no voice `{name}`: this model has a single one"
            ))),
            None => {
                let names = speakers.iter().map(String::as_str);
                let hint = audiocpp::engine::hint(name, names);
                Err(Error::not_found(format!(
                    "there is no voice `{name}`{hint}"
                )))
            }
        }
    }
}

impl ChunkVoice for Voice {
    fn begin(&mut self, request: &SynthesizeRequest) -> Result<VoicePlan> {
        self.manner = self.manner_of(request)?;
        self.random = TorchRandom::new(request.seed.unwrap_or(0));
        Ok(VoicePlan {
            language: self.config.language.clone(),
            input: match self.config.reads {
                Reads::Phonemes => VoiceInput::Phonemes,
                Reads::Letters => VoiceInput::Text,
            },
            limits: ChunkLimits {
                join: 0,
                first: 0,
                max: MOST_SYMBOLS,
            },
            rate: self.config.rate,
            channels: 1,
        })
    }

    fn speak(&mut self, chunk: &Chunk, context: &RunContext) -> Result<ChunkSound> {
        let numbered = match self.config.reads {
            Reads::Phonemes => {
                let symbols = chunk.phonemes.symbols();
                self.config.number(symbols.iter().map(|symbol| symbol.char))
            }
            Reads::Letters => self.config.number(chunk.text.text().chars()),
        };
        let (machine, manner) = (&mut self.machine, self.manner);
        let encoded = machine.encode(&numbered.numbers, manner.speaker)?;
        context.check()?;
        let lengths = machine.durations(&encoded, &manner, &mut self.random)?;
        let frames = machine.frames(&lengths)?;
        context.check()?;
        let mut samples = Vec::with_capacity(frames * machine.net().size.hop());
        if frames > 0 {
            let latents = machine.latents(&encoded, &lengths, &manner, &mut self.random);
            let latents = machine.flow(&latents, manner.speaker)?;
            machine.vocode(&latents, manner.speaker, context, |window| {
                samples.extend_from_slice(window);
                Ok(())
            })?;
        }
        let seconds = machine.net().size.hop() as f64 / f64::from(self.config.rate);
        let end = |&numbers: &usize| {
            let frames: u32 = lengths[..numbers].iter().sum();
            f64::from(frames) * seconds
        };
        let phonemes = self.config.reads == Reads::Phonemes;
        Ok(ChunkSound {
            audio: Audio::new(samples, self.config.rate, 1)?,
            symbol_ends: phonemes.then(|| numbered.ends.iter().map(end).collect()),
            warnings: unknown(&numbered.unknown),
        })
    }
}

fn unknown(chars: &[char]) -> Vec<String> {
    match chars {
        [] => Vec::new(),
        chars => {
            let list: Vec<String> = chars.iter().map(|c| format!("`{c}`")).collect();
            vec![format!(
                "left out, as the voice does not know it: {}",
                list.join(", ")
            )]
        }
    }
}
