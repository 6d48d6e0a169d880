//! The tasks: their names, and one small trait for each way of running them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    codes::Codes,
    error::{Error, Result},
    request::*,
    run::{RunContext, Unit},
    separation::Separation,
    speech::Speech,
    suggest::hint,
    transcript::Transcript,
    vad::{Heard, VoiceActivity},
};
use crate::audio::{Audio, AudioSource, downmix};

/// What a model can be asked to do, under the names that commands and configs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Speech recognition: sound to text.
    Asr,
    /// Speech synthesis: text to sound.
    Tts,
    /// Speech synthesis in the voice of a reference recording.
    Clon,
    /// Speech synthesis in a voice that a description asks for.
    Vdes,
    /// Voice activity: where there is speech.
    Vad,
    /// Source separation: one mix to several stems.
    Sep,
    /// Voice conversion: the same words in another voice.
    Vc,
    /// Singing voice conversion.
    Svc,
    /// Speech to speech.
    S2s,
    /// Diarization: who speaks when.
    Diar,
    /// Forced alignment: times for a known text.
    Align,
    /// Generation of music or sound from a description.
    Gen,
    /// Speaker embedding.
    Spk,
    /// Coding: sound to tokens and back.
    Codec,
}

impl Task {
    /// All tasks, with the name and a phrase for help and errors.
    pub const ALL: [(Task, &'static str, &'static str); 14] = [
        (Task::Asr, "asr", "speech recognition"),
        (Task::Tts, "tts", "speech synthesis"),
        (Task::Clon, "clon", "voice cloning"),
        (Task::Vdes, "vdes", "voice design"),
        (Task::Vad, "vad", "voice activity detection"),
        (Task::Sep, "sep", "source separation"),
        (Task::Vc, "vc", "voice conversion"),
        (Task::Svc, "svc", "singing voice conversion"),
        (Task::S2s, "s2s", "speech to speech"),
        (Task::Diar, "diar", "diarization"),
        (Task::Align, "align", "forced alignment"),
        (Task::Gen, "gen", "sound generation"),
        (Task::Spk, "spk", "speaker embedding"),
        (Task::Codec, "codec", "coding of sound as tokens"),
    ];

    fn row(self) -> (Task, &'static str, &'static str) {
        Task::ALL
            .into_iter()
            .find(|row| row.0 == self)
            .unwrap_or(Task::ALL[0])
    }

    /// The short name (`asr`).
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What it is called in a sentence (`speech recognition`).
    pub fn phrase(self) -> &'static str {
        self.row().2
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Task {
    type Err = Error;

    fn from_str(text: &str) -> Result<Task> {
        Task::ALL
            .into_iter()
            .find(|row| row.1 == text)
            .map(|row| row.0)
            .ok_or_else(|| {
                let names = Task::ALL.iter().map(|row| row.1);
                Error::unsupported(format!("there is no task `{text}`{}", hint(text, names)))
            })
    }
}

/// Turns speech into text.
pub trait Transcribe: Send {
    /// Reads `audio` to its end, at any rate and channel count, and gives back its words.
    /// Finished segments are also sent as events.
    fn transcribe(
        &mut self,
        request: &TranscribeRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Transcript>;
}

/// Runs `session` on `audio`, and adds what the reader had to say to the transcript's warnings.
pub fn transcribe(
    session: &mut dyn Transcribe,
    request: &TranscribeRequest,
    audio: &mut dyn AudioSource,
    context: &RunContext,
) -> Result<Transcript> {
    let mut transcript = session.transcribe(request, audio, context)?;
    for warning in audio.warnings() {
        if !transcript.warnings.contains(&warning) {
            transcript.warnings.push(warning);
        }
    }
    Ok(transcript)
}

/// Turns text into speech.
pub trait Synthesize: Send {
    /// Speaks the text of `request`; the model decides rate and channels of the result. Finished
    /// parts are also sent as events.
    fn synthesize(&mut self, request: &SynthesizeRequest, context: &RunContext) -> Result<Speech>;
}

/// Finds speech in a stream of sound.
pub trait DetectSpeech: Send {
    /// Begins to listen to a stream of one channel at `rate`, from its first sample; a stream
    /// before it is forgotten. Returns the seconds that a probability stands for.
    fn begin(&mut self, request: &DetectSpeechRequest, rate: u32) -> Result<f64>;

    /// Takes the next samples, as many as there are.
    fn push(&mut self, samples: &[f32]) -> Result<Heard>;

    /// Ends the stream.
    fn finish(&mut self) -> Result<Heard>;
}

/// Seconds of sound that are looked at together: whole frames of most networks.
const DETECT_BLOCK_S: f64 = 8.192;

/// Reads `audio` to its end, at any rate and channel count, and gives back where `session` finds
/// speech in it.
pub fn detect_speech(
    session: &mut dyn DetectSpeech,
    request: &DetectSpeechRequest,
    audio: &mut dyn AudioSource,
    context: &RunContext,
) -> Result<VoiceActivity> {
    let (rate, total) = (f64::from(audio.rate()), audio.duration_hint());
    let mut activity = VoiceActivity {
        frame: session.begin(request, audio.rate())?,
        ..VoiceActivity::default()
    };
    let block = (rate * DETECT_BLOCK_S) as usize;
    let (mut samples, mut mono, mut frames) = (Vec::new(), Vec::new(), 0);
    loop {
        context.check()?;
        samples.clear();
        let read = context.timed("read", || audio.read(&mut samples, block))?;
        mono.clear();
        downmix(&samples, audio.channels(), &mut mono);
        frames += read;
        let detect = || match read {
            0 => session.finish(),
            _ => session.push(&mono),
        };
        let heard = context.timed("detect speech", detect)?;
        activity.segments.extend(heard.segments);
        if request.probabilities {
            activity.probabilities.extend(heard.probabilities);
        }
        activity.duration = frames as f64 / rate;
        let total = if read == 0 {
            Some(activity.duration)
        } else {
            total
        };
        context.progress("detect speech", activity.duration, total, Unit::Seconds);
        if read == 0 {
            break;
        }
    }
    activity.warnings = audio.warnings();
    Ok(activity)
}

/// Splits a mix into stems.
pub trait Separate: Send {
    /// Names of the stems that it can give, in its order.
    fn stems(&self) -> &[String];

    /// Gives back named stems, each as long as `audio`, with its rate and channels. Finished
    /// stretches are sent as events if the request asks to stream.
    fn separate(
        &mut self,
        request: &SeparateRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Separation>;
}

/// Changes the voice of a recording.
pub trait Convert: Send {
    /// Gives back the words (or the song) of `audio` in the voice of `target`.
    fn convert(
        &mut self,
        request: &ConvertRequest,
        audio: &mut dyn AudioSource,
        target: &Audio,
        context: &RunContext,
    ) -> Result<Sound>;
}

/// Turns sound into tokens, and tokens into sound.
pub trait Codec: Send {
    /// Reads `audio` to its end, at any rate and channel count, and gives back its tokens.
    fn encode(
        &mut self,
        request: &CodecRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Codes>;

    /// Gives back the sound that `codes` stand for.
    fn decode(
        &mut self,
        request: &CodecRequest,
        codes: &Codes,
        context: &RunContext,
    ) -> Result<Sound>;

    /// What [`Codes::global`] has to be for the voice of `reference`. An error of class
    /// `Unsupported` if the codec keeps voices elsewhere.
    fn voice(&mut self, reference: &Audio, context: &RunContext) -> Result<Vec<f32>>;
}

/// Says who speaks when.
pub trait Diarize: Send {
    /// Reads `audio` to its end and gives back the speakers' turns, in order of their start.
    fn diarize(
        &mut self,
        request: &DiarizeRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Vec<Turn>>;
}

/// Finds the times of known words.
pub trait Align: Send {
    /// Gives back the words of the request's text with their places in `audio`.
    fn align(
        &mut self,
        request: &AlignRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Transcript>;
}

/// Makes music or sound from a description.
pub trait Generate: Send {
    /// Gives back the sound that `request` describes.
    fn generate(&mut self, request: &GenerateRequest, context: &RunContext) -> Result<Sound>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_their_serialised_form_and_parse_back() {
        for (task, name, _) in Task::ALL {
            assert_eq!(serde_json::to_string(&task).unwrap(), format!("\"{name}\""));
            assert_eq!(name.parse::<Task>().unwrap(), task);
            assert_eq!(task.to_string(), name);
        }
        let error = "asrr".parse::<Task>().unwrap_err();
        assert!(error.message.contains("did you mean `asr`"), "{error}");
    }
}
