//! The family: recognising packages, loading them, sessions.

use std::{path::Path, sync::Arc};

use audiocpp::{
    audio::{AudioSource, mono_at},
    backend::FastPath,
    engine::{
        Error, Event, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, OptionKind,
        OptionSpec, Options, Result, RunContext, Scope, Segment, Session, Stage, Task, Transcribe,
        TranscribeRequest, Transcript, Unit,
    },
    graph::Device,
    sampling::TorchRandom,
    text::tokenizer::Tokenizer,
    weights::{self, Policy},
};

use super::{
    machine::AsrMachine,
    net::AsrNet,
    prompt::{AsrPrompt, prompt},
    transcript::{self, Turn},
};
use crate::{
    LoadError,
    config::{AsrConfig, AsrTokens, RATE},
    model::{check_tokens, fitting, precise, settings, tokenizer},
    names::{Named, Naming},
    speech::{add_noise, bring_to_level},
};

/// What the family takes.
const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "max_tokens",
        scope: Scope::Request,
        kind: OptionKind::Int {
            min: 1,
            max: 65_536,
        },
        default: Some("32768"),
        doc: "Tokens after which the answer about an hour of sound is cut.",
    },
    OptionSpec {
        name: "noise",
        scope: Scope::Request,
        kind: OptionKind::Bool,
        default: Some("true"),
        doc: "Noise in what is heard of the sound, as in training.",
    },
];

/// Seconds of sound that are read together.
const WINDOW_S: usize = 3600;
/// Samples that are read at a time.
const BLOCK: usize = 1 << 16;

/// The VibeVoice-ASR family.
pub struct VibeVoiceAsr;

impl Family for VibeVoiceAsr {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "vibevoice_asr",
            title: "VibeVoice-ASR: up to an hour of speech to text, speakers and times",
            tasks: &[Task::Asr],
            formats: "a folder with the published checkpoint (config.json, *.safetensors; the \
                      original names or those of the -hf release) and Qwen2.5's tokenizer.json",
            options: OPTIONS,
        }
    }

    fn fast_paths(&self) -> &'static [FastPath] {
        &[
            FastPath::DepthwiseConv1d,
            FastPath::FlashAttention,
            FastPath::PackedProjection,
        ]
    }

    fn precise(&self, name: &str) -> bool {
        precise(name)
    }

    fn can_load(&self, path: &Path) -> bool {
        settings(path).is_some_and(|(_, json)| AsrConfig::fits(&json))
    }

    fn load(
        &self,
        path: &Path,
        options: &LoadOptions,
        context: &RunContext,
    ) -> Result<Box<dyn Model>> {
        let policy = options.policy()?;
        options.load(context, |device| Ok(open(path, device, policy)?))
    }
}

/// A loaded model; sessions share its weights.
pub struct AsrModel {
    net: Arc<AsrNet>,
    tokenizer: Arc<Tokenizer>,
    tokens: AsrTokens,
    loaded: Loaded,
}

/// Loads the model at `path` (a folder, or the weights in it) on `device`.
///
/// # Errors
/// [`LoadError`]: not a VibeVoice-ASR, no tokenizer, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<AsrModel, LoadError> {
    let (file, json) = fitting(path, "VibeVoice-ASR", AsrConfig::fits)?;
    let mut config = AsrConfig::read(&json, &file)?;
    let tokenizer = tokenizer(&file)?;
    config.tokens = config.tokens.named(|name| tokenizer.id(name));
    check_tokens(&config.tokens.all(), config.lm.vocab, &file)?;
    let naming = if config.renamed {
        Naming::HfAsr
    } else {
        Naming::Original
    };
    let source = Named::new(weights::open(path)?, naming);
    let tokens = config.tokens;
    let mut loaded = Loaded::new(path, device);
    let net = AsrNet::load(&source, config, &mut loaded, policy)?;
    Ok(AsrModel {
        net: Arc::new(net),
        tokenizer: Arc::new(tokenizer),
        tokens,
        loaded,
    })
}

impl AsrModel {
    /// The network with state of its own.
    ///
    /// # Errors
    /// A device without room.
    pub fn machine(&self) -> Result<AsrMachine> {
        Ok(AsrMachine::new(self.loaded.device(), self.net.clone())?)
    }
}

impl Model for AsrModel {
    fn info(&self) -> ModelInfo {
        self.loaded.info("vibevoice_asr", &[], RATE)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("vibevoice_asr", OPTIONS, Scope::Session)?;
        match task {
            Task::Asr => Ok(Session::Transcribe(Box::new(Listener {
                machine: self.machine()?,
                tokenizer: self.tokenizer.clone(),
                tokens: self.tokens,
            }))),
            other => Err(Error::other_task("vibevoice_asr", Task::Asr, other)),
        }
    }

    /// A fixed sound and what follows a few tokens, for comparing devices.
    fn stages(&self) -> Result<Vec<Stage>> {
        let mut machine = self.machine()?;
        let config = &self.net.config;
        let samples: Vec<f32> = (0..3 * config.acoustic.hop())
            .map(|i| (i as f32 * 0.05).sin() * 0.1)
            .collect();
        let context = RunContext::new();
        let heard = machine.listen(&samples, &[], &context)?;
        let most = config.lm.vocab.min(256) as u32;
        let tokens: Vec<u32> = (0..9).map(|i| i * 37 % most).collect();
        let mut spoken = vec![None; tokens.len()];
        for (i, embedding) in heard.chunks_exact(config.lm.width).enumerate() {
            spoken[2 + i] = Some(embedding);
        }
        machine.read(&tokens, &spoken, 4, &context)?;
        machine.say(tokens[8])?;
        let scores = machine.scores()?;
        let stage = |name: &str, values| Stage {
            name: name.into(),
            values,
        };
        Ok(vec![stage("heard", heard), stage("scores", scores)])
    }
}

/// A session.
struct Listener {
    machine: AsrMachine,
    tokenizer: Arc<Tokenizer>,
    tokens: AsrTokens,
}

/// What has been heard so far.
struct Heard<'a> {
    request: &'a TranscribeRequest,
    context: &'a RunContext,
    random: TorchRandom,
    transcript: Transcript,
}

impl Heard<'_> {
    fn warn(&mut self, message: &str) {
        if !self
            .transcript
            .warnings
            .iter()
            .any(|known| known == message)
        {
            self.context.warn(message);
            self.transcript.warnings.push(message.to_owned());
        }
    }

    /// Takes turns of a window that begins at `start` and lasts `seconds`.
    fn add(&mut self, turns: &[Turn], start: f64, seconds: f64) {
        for turn in turns {
            let inside = |time: f64| start + time.min(seconds);
            let segment = Segment {
                id: self.transcript.segments.len() as u32,
                start: inside(turn.start),
                end: inside(turn.end),
                text: turn.text.clone(),
                speaker: turn.speaker.clone(),
                ..Segment::default()
            };
            self.context.send(Event::Segment(segment.clone()));
            self.transcript.segments.push(segment);
        }
    }
}

impl Transcribe for Listener {
    fn transcribe(
        &mut self,
        request: &TranscribeRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Transcript> {
        request
            .options
            .check("vibevoice_asr", OPTIONS, Scope::Request)?;
        let refused = [
            (request.translate, "translate"),
            (request.temperature.is_some_and(|t| t != 0.0), "sample"),
            (
                request.beam_size.is_some_and(|n| n > 1),
                "search with beams",
            ),
        ];
        if let Some((_, what)) = refused.iter().find(|(asked, _)| *asked) {
            return Err(Error::unsupported(format!("vibevoice_asr does not {what}")));
        }
        let _busy = self.machine.request();
        let mut heard = Heard {
            request,
            context,
            random: TorchRandom::new(request.seed.unwrap_or(0)),
            transcript: Transcript::default(),
        };
        if request.words {
            heard.warn("this model gives times of whole turns, not of words");
        }
        let mut source = mono_at(audio, RATE)?;
        let mut samples = Vec::new();
        loop {
            context.check()?;
            let read = context.timed("read", || source.read(&mut samples, BLOCK))?;
            let full = samples.len() >= WINDOW_S * RATE as usize;
            if !samples.is_empty() && (full || read == 0) {
                if heard.transcript.duration > 0.0 {
                    heard.warn("the sound is heard an hour at a time: speakers are numbered anew");
                }
                let left = samples.split_off(samples.len().min(WINDOW_S * RATE as usize));
                self.window(&mut samples, &mut heard)?;
                samples = left;
            }
            if read == 0 {
                break;
            }
        }
        let mut transcript = heard.transcript;
        let texts: Vec<&str> = transcript
            .segments
            .iter()
            .map(|s| s.text.as_str())
            .collect();
        transcript.text = texts.join(" ");
        Ok(transcript)
    }
}

impl Listener {
    /// Transcribes the samples of one window.
    fn window(&mut self, samples: &mut [f32], heard: &mut Heard) -> Result<()> {
        let config = &self.machine.net().config;
        let (hop, latent, width) = (
            config.acoustic.hop(),
            config.acoustic.latent,
            config.lm.width,
        );
        let positions = config.max_positions;
        let frames = samples.len().div_ceil(hop);
        let seconds = samples.len() as f64 / f64::from(RATE);
        bring_to_level(samples);
        let mut noise = vec![Vec::new()];
        if heard.request.options.bool("noise").unwrap_or(true) {
            noise[0] = vec![0.0; frames * latent];
            add_noise(&mut noise, latent, &mut heard.random);
        }
        let context = heard.context;
        let embeddings = self.machine.listen(samples, &noise[0], context)?;
        let hints = heard.request.prompt.as_deref();
        let asked = prompt(&self.tokenizer, &self.tokens, frames, seconds, hints)?;
        let mut spoken = vec![None; asked.tokens.len()];
        for (i, embedding) in embeddings.chunks_exact(width).enumerate() {
            spoken[asked.first + i] = Some(embedding);
        }
        let most = heard.request.options.int("max_tokens").unwrap_or(32_768);
        let most = usize::try_from(most).unwrap_or(32_768);
        let room = positions.saturating_sub(asked.tokens.len()).min(most);
        if room == 0 {
            return Err(Error::bad_input(format!(
                "the prompt is {} tokens; the model reads up to {positions}",
                asked.tokens.len()
            )));
        }
        context.timed("read prompt", || {
            self.machine.read(&asked.tokens, &spoken, room, context)
        })?;
        let start = heard.transcript.duration;
        heard.transcript.duration += seconds;
        self.answer(&asked, room, (start, seconds), heard)
    }

    /// Writes the answer token by token, and gives out turns as they are whole.
    fn answer(
        &mut self,
        asked: &AsrPrompt,
        room: usize,
        (start, seconds): (f64, f64),
        heard: &mut Heard,
    ) -> Result<()> {
        let (mut ids, mut given) = (Vec::new(), 0);
        let mut token = asked.tokens.last().copied().unwrap_or(self.tokens.eos);
        let mut ended = false;
        for _ in 0..room {
            heard.context.check()?;
            token = self.machine.say(token)?;
            if token == self.tokens.eos || (token == self.tokens.turn_end && !ids.is_empty()) {
                ended = true;
                break;
            }
            ids.push(token);
            let closes = self
                .tokenizer
                .piece(token)
                .is_some_and(|p| p.contains(&b'}'));
            if closes {
                let answer = transcript::read(&self.tokenizer.decode(&ids));
                heard.add(
                    &answer.turns[given.min(answer.turns.len())..],
                    start,
                    seconds,
                );
                given = answer.turns.len();
                let done = answer.turns.last().map_or(0.0, |turn| turn.end);
                let context = heard.context;
                context.progress("transcribe", start + done, None, Unit::Seconds);
            }
        }
        if !ended {
            heard.warn("the answer was cut: the end of the sound may be missing");
        } else if !transcript::read(&self.tokenizer.decode(&ids)).whole {
            heard.warn("the model did not answer in the form it was asked for");
        }
        Ok(())
    }
}
