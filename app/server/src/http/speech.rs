//! `POST /v1/audio/speech`: what is asked.

use std::collections::BTreeMap;

use audiocpp::{
    audio::{Audio, AudioFormat, Reader},
    engine::{OptionValue, Options, SynthesizeRequest, Task, hint, nearest},
};
use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::{
    app::{App, Chosen, Shared, shown},
    body, data_url, encode,
    error::{ApiError, Result},
    form,
    layers::RequestId,
    local, speech_answer,
    work::Work,
};
use crate::job::{Job, ModelStatus};

/// OpenAI's voices: where a model has none of these names, they mean its default voice.
const OPENAI_VOICES: [&str; 13] = [
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage",
    "shimmer", "verse",
];

/// A request to speak. Fields after `stream_format` are extensions.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub struct SpeechBody {
    /// Model; OpenAI's names (`tts-1`) reach the first model that speaks.
    pub model: Option<String>,
    /// What to say.
    pub input: Option<String>,
    /// A voice of the model, a preset, or one of OpenAI's names.
    pub voice: Option<VoiceName>,
    /// How to say it, for models that take instructions.
    pub instructions: Option<String>,
    /// `mp3` (default), `opus`, `flac`, `wav` or `pcm` (24 kHz mono, 16 bits).
    pub response_format: Option<String>,
    /// 0.25 to 4; 1 is the model's own speed.
    pub speed: Option<f32>,
    /// `audio` sends sound as it is made, `sse` as events.
    pub stream_format: Option<String>,
    /// `true` is `stream_format` `audio`, `false` sends the sound once it is whole.
    #[serde(deserialize_with = "truth")]
    #[schema(value_type = Option<bool>)]
    pub stream: Option<bool>,
    /// ISO 639 code of the text.
    pub language: Option<String>,
    /// Seed of the sampler.
    pub seed: Option<u64>,
    /// Write out numbers, dates and the like (default).
    #[serde(deserialize_with = "truth")]
    #[schema(value_type = Option<bool>)]
    pub normalize: Option<bool>,
    /// Words and how they are pronounced, in IPA.
    pub pronunciations: BTreeMap<String, String>,
    /// A recording whose voice is copied: base64 or a data URL, or a file below
    /// `allowed_audio_roots`.
    pub voice_ref: Option<String>,
    /// The words of `voice_ref`.
    pub reference_text: Option<String>,
    /// Options of the model's family.
    #[schema(value_type = Object)]
    pub options: BTreeMap<String, Scalar>,
    /// The longest wait for a busy model.
    pub busy_timeout_ms: Option<u64>,
}

/// A voice by name, or as `{"id": name}`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, ToSchema)]
#[serde(untagged, expecting = "wanted the name of a voice, or {\"id\": name}")]
pub enum VoiceName {
    /// The name.
    Name(String),
    /// An object with the name.
    Object {
        /// The name.
        id: String,
    },
}

impl VoiceName {
    fn name(&self) -> &str {
        match self {
            VoiceName::Name(name) | VoiceName::Object { id: name } => name,
        }
    }
}

/// The value of a family's option.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(untagged, expecting = "wanted a string, a number, true or false")]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(String),
}

/// The options of a request as the engine takes them.
pub fn options(given: BTreeMap<String, Scalar>) -> Options {
    let mut options = Options::default();
    for (name, value) in given {
        let value = match value {
            Scalar::Bool(value) => OptionValue::Bool(value),
            Scalar::Int(value) => OptionValue::Int(value),
            Scalar::Float(value) => OptionValue::Float(value),
            Scalar::Text(value) => OptionValue::Text(value),
        };
        options.set(name, value);
    }
    options
}

/// A truth value, also as the text that some clients send.
pub fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "wanted true or false")]
    enum Truth {
        Bool(bool),
        Text(String),
    }
    match Option::<Truth>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Truth::Bool(value)) => Ok(Some(value)),
        Some(Truth::Text(text)) => match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(serde::de::Error::custom("wanted true or false")),
        },
    }
}

/// How the sound goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Once it is whole, with true sizes.
    Whole,
    /// As it is made.
    Stream,
    /// As events.
    Events,
}

/// A request that was understood.
pub struct Plan {
    /// The model.
    pub model: ModelStatus,
    /// The job.
    pub request: SynthesizeRequest,
    /// The format of the sound.
    pub format: AudioFormat,
    /// How it goes out.
    pub delivery: Delivery,
    /// What the caller should know.
    pub warnings: Vec<String>,
}

/// Speaks a text.
#[utoipa::path(post, path = "/v1/audio/speech", tag = "OpenAI", request_body = SpeechBody,
    responses((status = 200, description = "The sound, or events with `stream_format` `sse`",
        content_type = "audio/mpeg", body = Vec<u8>),
        (status = "4XX", description = "The request is wrong", body = super::describe::ErrorBody)))]
pub async fn speak(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response> {
    let read = body::json::<SpeechBody>(request, app.settings.max_json_bytes).await?;
    let wait = form::wait(read.value.busy_timeout_ms);
    let mut plan = plan(&app, read.value).await?;
    plan.warnings.extend(read.warnings);
    let job = Job::Synthesize {
        request: plan.request.clone(),
    };
    let work = Work::start(&app, &plan.model, job, &id.0, wait).await;
    let answer = match work {
        Ok(work) => speech_answer::answer(work, &plan).await,
        Err(error) => Err(error),
    };
    answer.map_err(|error| blame(error, &plan.request.text))
}

/// A text without one letter or digit that could not be spoken has its own code.
fn blame(mut error: ApiError, text: &str) -> ApiError {
    if error.code == "invalid_input" && !text.chars().any(char::is_alphanumeric) {
        error.code = "nothing_to_speak";
    }
    if error.code == "nothing_to_speak" && error.param.is_none() {
        error.param = Some("input".to_owned());
    }
    error
}

/// Understands a request.
pub async fn plan(app: &Shared, body: SpeechBody) -> Result<Plan> {
    let Chosen {
        model,
        mut warnings,
    } = app.choose(body.model.as_deref(), Task::Tts)?;
    let text = text(app, body.input)?;
    let format = encode::format(body.response_format.as_deref())?;
    let delivery = delivery(body.stream_format.as_deref(), body.stream, format)?;
    let speed = body.speed.unwrap_or(1.0);
    if !(0.25..=4.0).contains(&speed) {
        return Err(ApiError::value(
            "speed",
            format!("`speed` is {speed}, wanted 0.25 to 4"),
        ));
    }
    let reference = match body.voice_ref {
        Some(sound) => Some(reference(app, sound).await?),
        None => None,
    };
    let model = known(app, model).await?;
    let name = body.voice.as_ref().map(VoiceName::name);
    let voice = match &reference {
        Some(_) => None,
        None => voice(&model, name, &mut warnings)?,
    };
    let request = SynthesizeRequest {
        text,
        language: body.language,
        voice,
        references: reference.into_iter().collect(),
        reference_text: body.reference_text,
        instructions: body.instructions.filter(|text| !text.trim().is_empty()),
        speed: (speed != 1.0).then_some(speed),
        seed: body.seed,
        normalize: body.normalize.unwrap_or(true),
        pronunciations: body.pronunciations,
        stream: delivery != Delivery::Whole,
        options: options(body.options),
        ..SynthesizeRequest::default()
    };
    Ok(Plan {
        model,
        request,
        format,
        delivery,
        warnings,
    })
}

/// The text to speak, within the limit.
pub fn text(app: &App, input: Option<String>) -> Result<String> {
    let text = input.ok_or_else(|| ApiError::missing("input", "the text to speak"))?;
    if text.trim().is_empty() {
        return Err(ApiError::bad("empty_input", "`input` is empty").param("input"));
    }
    let (length, most) = (text.chars().count(), app.settings.max_text_chars);
    if length > most {
        let message = format!("`input` has {length} characters, at most {most} are taken");
        return Err(ApiError::value("input", message));
    }
    Ok(text)
}

fn delivery(name: Option<&str>, stream: Option<bool>, format: AudioFormat) -> Result<Delivery> {
    match (name, stream) {
        (Some("sse"), _) => Ok(Delivery::Events),
        (Some("audio"), _) | (None, Some(true)) => Ok(Delivery::Stream),
        (None, Some(false)) => Ok(Delivery::Whole),
        // Whoever saves a wav or flac file wants to know its length.
        (None, None) if encode::tells_length(format) => Ok(Delivery::Whole),
        (None, None) => Ok(Delivery::Stream),
        (Some(other), _) => {
            let message = format!("`stream_format` is `{}`, wanted audio or sse", shown(other));
            Err(ApiError::value("stream_format", message))
        }
    }
}

/// The recording whose voice is copied.
pub async fn reference(app: &Shared, sound: String) -> Result<Audio> {
    let roots = &app.settings.allowed_audio_roots;
    if !sound.starts_with("data:")
        && !roots.is_empty()
        && let Ok(path) = local::file(app, "voice_ref", &sound)
    {
        return data_url::read("voice_ref", move || Reader::open(path)).await;
    }
    data_url::recording("voice_ref", sound).await
}

/// The model once its voices are known, which takes loading it.
pub async fn known(app: &Shared, model: ModelStatus) -> Result<ModelStatus> {
    if model.info.is_some() {
        return Ok(model);
    }
    app.runner.load(&model.id).await?;
    app.model(&model.id)
}

/// The voice that a name means: the model's own or a preset; `default` and OpenAI's names are the
/// default voice where the model has none of that name.
pub fn voice(
    model: &ModelStatus,
    name: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Option<String>> {
    let default = || model.default_voice.clone();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(default());
    };
    if model.voices.iter().any(|voice| voice.id == name) {
        return Ok(Some(name.to_owned()));
    }
    if name == "default" {
        return Ok(default());
    }
    if OPENAI_VOICES.contains(&name) {
        warnings.push(format!(
            "`{}` has no voice `{name}`; its default voice{} speaks",
            model.id,
            default().map_or(String::new(), |voice| format!(" `{voice}`")),
        ));
        return Ok(default());
    }
    Err(no_voice(model, name))
}

/// The answer to a voice that is not there, whatever its name looks like.
pub fn no_voice(model: &ModelStatus, name: &str) -> ApiError {
    let short = shown(name);
    let ids = model.voices.iter().map(|voice| voice.id.as_str());
    let near = match nearest(&short, ids.clone()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if model.voices.len() <= 20 => hint(&short, ids),
        None => "; /v1/audio/voices lists all".to_owned(),
    };
    let message = format!("`{}` has no voice `{short}`{near}", model.id);
    ApiError::not_found("voice_not_found", message).param("voice")
}

#[cfg(test)]
mod tests {
    use audiocpp::engine::{Error, ErrorClass};

    use super::*;

    fn refused(class: ErrorClass) -> ApiError {
        Error::new(class, "nothing to speak in \"...\"").into()
    }

    #[test]
    fn what_cannot_be_spoken_is_told_apart() {
        let dots = blame(refused(ErrorClass::BadInput), "... — 🙂");
        assert_eq!(
            (dots.code, dots.param.as_deref()),
            ("nothing_to_speak", Some("input"))
        );
        let digits = blame(refused(ErrorClass::BadInput), "42");
        assert_eq!(digits.code, "invalid_input");
        let lost = blame(refused(ErrorClass::Internal), "...");
        assert_eq!(lost.code, "internal_error");
    }

    #[test]
    fn a_truth_value_may_be_text() {
        let read = |json: &str| serde_json::from_str::<SpeechBody>(json).map(|body| body.stream);
        assert_eq!(read(r#"{"stream": "True"}"#).unwrap(), Some(true));
        assert_eq!(read(r#"{"stream": false}"#).unwrap(), Some(false));
        assert_eq!(read(r#"{"stream": null}"#).unwrap(), None);
        assert!(read(r#"{"stream": 3}"#).is_err());
    }
}
