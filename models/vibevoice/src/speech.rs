//! From a script to speech: the loop.

use std::sync::Arc;

use audiocpp::{
    audio::Audio,
    backend::FastPath,
    engine::{
        Error, Event, OptionKind, OptionSpec, Result, RunContext, Scope, Speech, SpeechPart,
        SpeechSegment, Synthesize, SynthesizeRequest, Unit,
    },
    graph::Device,
    sampling::{TorchRandom, argmax},
    text::tokenizer::Tokenizer,
};

use crate::{
    config::RATE,
    machine::{Frame, Guidance, Machine, Scores},
    script::{self, Prompt},
};

/// The option of how many steps lead to a frame.
pub(crate) const fn steps(default: &'static str) -> OptionSpec {
    OptionSpec {
        name: "steps",
        scope: Scope::Request,
        kind: OptionKind::Int { min: 1, max: 100 },
        default: Some(default),
        doc: "Steps from noise to each frame of speech.",
    }
}

/// The option of classifier-free guidance.
pub(crate) const fn guidance(default: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec {
        name: "guidance",
        scope: Scope::Request,
        kind: OptionKind::Float {
            min: 1.0,
            max: 10.0,
        },
        default: Some(default),
        doc,
    }
}

/// What the family takes.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    steps("10"),
    guidance(
        "1.3",
        "How closely each frame follows the script and the voices; 1 is not at all more.",
    ),
    OptionSpec {
        name: "max_seconds",
        scope: Scope::Request,
        kind: OptionKind::Float {
            min: 0.1,
            max: 36_000.0,
        },
        default: None,
        doc: "Length at which speech is cut; as the script's length suggests without it.",
    },
    OptionSpec {
        name: "voice_noise",
        scope: Scope::Request,
        kind: OptionKind::Bool,
        default: Some("true"),
        doc: "Noise in the latents of the voices to copy, as in training.",
    },
];

/// Frames that a script may become, for each token of its prompt.
const FRAMES_PER_TOKEN: usize = 2;
/// Level that voices are brought to, in decibels of full scale (root mean square).
const VOICE_LEVEL_DB: f32 = -25.0;
/// Seconds of a voice that are heard, with and without [`FastPath::LongVoicePrompt`].
const VOICE_S: [usize; 2] = [30, 10];
/// Standard deviation of the amount of noise in a voice's latents.
const VOICE_NOISE: f32 = 0.625;

/// What the loop is told beside the prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// How frames are made.
    pub guidance: Guidance,
    /// Most steps of the language model after the prompt.
    pub most: usize,
}

/// Reads `prompt`, whose frames have the embeddings `voices` `[frames, width]`, and speaks. `noise`
/// gives the noise `[latent]` of each frame, `choose` the token by the scores (see
/// [`Tokens::all`](crate::config::Tokens::all)), `heard` takes each frame; `stop` is asked before each step and may end it all with an error. True if the model said
/// that it has read everything.
///
/// # Errors
/// Those of the device and of `heard`.
pub fn speak(
    machine: &mut Machine,
    prompt: (&Prompt, &[f32]),
    plan: Plan,
    mut noise: impl FnMut() -> Vec<f32>,
    mut choose: impl FnMut(&Scores) -> u32,
    mut heard: impl FnMut(Frame) -> Result<()>,
    mut stop: impl FnMut() -> Result<()>,
) -> Result<bool> {
    let (prompt, voices) = prompt;
    let tokens = machine.net().config.tokens;
    let Some((&last, before)) = prompt.tokens.split_last() else {
        return Err(Error::internal("the prompt is empty"));
    };
    machine.begin(prompt.tokens.len() + plan.most, plan.most)?;
    let width = machine.net().config.lm.width;
    let mut spoken = vec![
        None;
        if prompt.frames.is_empty() {
            0
        } else {
            before.len()
        }
    ];
    for (&at, voice) in prompt.frames.iter().zip(voices.chunks_exact(width)) {
        spoken[at] = Some(voice);
    }
    machine.read(before, &spoken, &mut stop)?;
    let mut scores = machine.say(last)?;
    for _ in 0..plan.most {
        stop()?;
        let token = choose(&scores);
        scores = if token == tokens.frame {
            heard(machine.frame(&noise(), plan.guidance)?)?;
            machine.hear()?
        } else {
            // Without the text there are only frames.
            machine.step_back();
            if token == tokens.eos {
                return Ok(true);
            }
            if token == tokens.start {
                machine.forget_speech();
            } else {
                machine.forget_sound()?;
            }
            machine.say(token)?
        };
    }
    Ok(false)
}

/// A session.
pub struct Talker {
    machine: Machine,
    tokenizer: Arc<Tokenizer>,
    voice_frames: usize,
}

impl Talker {
    /// Speaks with `machine` on `device`.
    pub fn new(machine: Machine, tokenizer: Arc<Tokenizer>, device: &Device) -> Talker {
        let [long, short] = VOICE_S;
        let seconds = match device.fast_path(FastPath::LongVoicePrompt) {
            true => long,
            false => short,
        };
        let voice_frames = seconds * RATE as usize / machine.net().config.acoustic.hop();
        Talker {
            machine,
            tokenizer,
            voice_frames: voice_frames.max(1),
        }
    }

    /// Latents of all voices, each `[frames, latent]`; with `random`, noisy as in training.
    fn voices(
        &mut self,
        references: &[Audio],
        random: Option<&mut TorchRandom>,
        warn: &mut dyn FnMut(String),
    ) -> Result<Vec<Vec<f32>>> {
        let hop = self.machine.net().config.acoustic.hop();
        let most = self.voice_frames * hop;
        let mut voices = Vec::with_capacity(references.len());
        for (i, reference) in references.iter().enumerate() {
            let mut samples = reference.to_mono().resampled(RATE)?.samples;
            if samples.len() > most {
                let seconds = most / RATE as usize;
                let voice = i + 1;
                warn(format!("of voice {voice} the first {seconds} s are heard"));
                samples.truncate(most);
            }
            if samples.is_empty() {
                return Err(Error::bad_input(format!(
                    "the recording of voice {} is empty",
                    i + 1
                )));
            }
            bring_to_level(&mut samples);
            voices.push(self.machine.encode(&samples)?);
        }
        if let Some(random) = random {
            let latent = self.machine.net().config.acoustic.latent;
            add_noise(&mut voices, latent, random);
        }
        Ok(voices)
    }

    fn refuse(&self, request: &SynthesizeRequest, speakers: usize) -> Result<()> {
        request
            .options
            .check("vibevoice", OPTIONS, Scope::Request)?;
        let refused = [
            (
                request.voice.is_some(),
                "named voices: give recordings with --reference",
            ),
            (request.instructions.is_some(), "instructions"),
            (
                request.speed.is_some_and(|speed| speed != 1.0),
                "another speed",
            ),
        ];
        if let Some((_, what)) = refused.iter().find(|(asked, _)| *asked) {
            return Err(Error::unsupported(format!(
                "vibevoice does not take {what}"
            )));
        }
        let voices = request.references.len();
        if voices > 0 && voices < speakers {
            return Err(Error::bad_input(format!(
                "{speakers} speakers and {voices} recordings of voices: give one for each, or none"
            )));
        }
        Ok(())
    }
}

impl Synthesize for Talker {
    fn synthesize(&mut self, request: &SynthesizeRequest, context: &RunContext) -> Result<Speech> {
        let lines = script::lines(&request.text)?;
        let speakers = lines.iter().map(|line| line.speaker + 1).max().unwrap_or(1);
        self.refuse(request, speakers)?;
        let _busy = self.machine.request();
        let mut out = Output::new(request, context);
        let mut random = TorchRandom::new(request.seed.unwrap_or(0));
        let references = &request.references[..request.references.len().min(speakers)];
        let noisy = request.options.bool("voice_noise").unwrap_or(true);
        let voices = context.timed("voices", || {
            let random = noisy.then_some(&mut random);
            self.voices(references, random, &mut |message| out.warn(message))
        })?;
        let config = &self.machine.net().config;
        let (latent, tokens) = (config.acoustic.latent, config.tokens);
        let frames: Vec<usize> = voices.iter().map(|v| v.len() / latent).collect();
        let prompt = script::prompt(&lines, &frames, &self.tokenizer, &tokens)?;
        let embeddings = match voices.is_empty() {
            true => Vec::new(),
            false => self.machine.connect(&voices.concat())?,
        };
        let plan = self.plan(request, &prompt)?;
        let finished = speak(
            &mut self.machine,
            (&prompt, &embeddings),
            plan,
            // The original draws for both branches and uses the first.
            || random.randn(2 * latent)[..latent].to_vec(),
            |scores| tokens.all()[argmax(scores).unwrap_or(3) as usize],
            |frame| out.add(frame.samples, plan.most),
            || context.check(),
        )?;
        if !finished {
            out.warn("the model did not come to an end: the speech was cut".into());
        }
        out.finish()
    }
}

impl Talker {
    fn plan(&self, request: &SynthesizeRequest, prompt: &Prompt) -> Result<Plan> {
        let n = prompt.tokens.len();
        let most = self.machine.net().config.max_positions;
        let left = most.checked_sub(n).filter(|left| *left > 0);
        let left = left.ok_or_else(|| {
            Error::bad_input(format!(
                "the script and its voices are {n} tokens; the model reads up to {most}"
            ))
        })?;
        let steps = request.options.int("steps").unwrap_or(10);
        let usual = left.min(FRAMES_PER_TOKEN * n);
        let hop = self.machine.net().config.acoustic.hop() as f64;
        let frames = |seconds: f64| (seconds * f64::from(RATE) / hop).ceil() as usize;
        let asked = request.options.float("max_seconds").map(frames);
        Ok(Plan {
            guidance: Guidance {
                steps: usize::try_from(steps).unwrap_or(10),
                scale: request.options.float("guidance").unwrap_or(1.3) as f32,
            },
            most: asked.map_or(usual, |asked| asked.min(left)),
        })
    }
}

/// The speech so far.
pub(crate) struct Output<'a> {
    request: &'a SynthesizeRequest,
    context: &'a RunContext,
    samples: u64,
    audio: Vec<f32>,
    warnings: Vec<String>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(request: &'a SynthesizeRequest, context: &'a RunContext) -> Output<'a> {
        Output {
            request,
            context,
            samples: 0,
            audio: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn warn(&mut self, message: String) {
        self.context.warn(message.clone());
        self.warnings.push(message);
    }

    fn seconds(&self) -> f64 {
        self.samples as f64 / f64::from(RATE)
    }

    fn segment(&self, start: f64) -> SpeechSegment {
        SpeechSegment {
            id: 0,
            start,
            end: self.seconds(),
            text: self.request.text.clone(),
            spoken: self.request.text.clone(),
            words: Vec::new(),
        }
    }

    /// Takes the next samples.
    pub(crate) fn add(&mut self, mut samples: Vec<f32>, most: usize) -> Result<()> {
        if samples.iter().any(|sample| !sample.is_finite()) {
            return Err(Error::internal(
                "the model gave samples that are no numbers; another weight type may help",
            ));
        }
        let start = self.seconds();
        self.samples += samples.len() as u64;
        let total = most as f64 * samples.len() as f64 / f64::from(RATE);
        self.context
            .progress("speak", self.seconds(), Some(total), Unit::Seconds);
        if !self.request.stream {
            self.audio.append(&mut samples);
            return Ok(());
        }
        let segment = SpeechSegment {
            text: String::new(),
            spoken: String::new(),
            ..self.segment(start)
        };
        let audio = Audio::new(samples, RATE, 1)?;
        self.context
            .send(Event::Speech(SpeechPart { audio, segment }));
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Speech> {
        if self.samples == 0 {
            return Err(Error::internal("the model said nothing"));
        }
        if self.request.words {
            self.warn("this model does not know when words are spoken".into());
        }
        Ok(Speech {
            duration: self.seconds(),
            segments: vec![self.segment(0.0)],
            audio: Audio {
                samples: self.audio,
                rate: RATE,
                channels: 1,
            },
            warnings: self.warnings,
        })
    }
}

/// Brings a voice to the level that the model was trained with; what would be beyond full scale after
/// that is brought to it.
pub(crate) fn bring_to_level(samples: &mut [f32]) {
    let power = samples.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / samples.len() as f64;
    let factor = 10f32.powf(VOICE_LEVEL_DB / 20.0) / (power.sqrt() as f32 + 1e-6);
    let peak = samples.iter().fold(0.0f32, |peak, s| peak.max(s.abs())) * factor;
    let factor = if peak > 1.0 {
        factor / (peak + 1e-6)
    } else {
        factor
    };
    samples.iter_mut().for_each(|sample| *sample *= factor);
}

/// Adds noise to latents `[frames, latent]` of voices: an amount for each, then the noise of all as
/// torch draws it for voices of equal length whose time is the last axis in memory.
pub fn add_noise(voices: &mut [Vec<f32>], latent: usize, random: &mut TorchRandom) {
    let amounts: Vec<f32> = random
        .randn(voices.len())
        .iter()
        .map(|x| x * VOICE_NOISE)
        .collect();
    let frames = voices.iter().map(|v| v.len() / latent).max().unwrap_or(0);
    for (voice, amount) in voices.iter_mut().zip(amounts) {
        let noise = random.randn_each(latent * frames);
        for (at, value) in voice.iter_mut().enumerate() {
            *value += amount * noise[at % latent * frames + at / latent];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_come_to_one_level_and_stay_in_range() {
        let rms = |x: &[f32]| (x.iter().map(|s| s * s).sum::<f32>() / x.len() as f32).sqrt();
        let mut quiet: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.3).sin() * 1e-3).collect();
        bring_to_level(&mut quiet);
        assert!(
            (rms(&quiet) - 10f32.powf(-1.25)).abs() < 2e-3,
            "{}",
            rms(&quiet)
        );
        let mut click = vec![0.0; 10_000];
        click[5] = 0.5;
        bring_to_level(&mut click);
        assert!((click[5] - 1.0).abs() < 1e-5, "{}", click[5]);
        let mut silent = vec![0.0; 10];
        bring_to_level(&mut silent);
        assert_eq!(silent, [0.0; 10]);
    }
}
