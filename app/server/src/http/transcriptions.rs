//! `POST /v1/audio/transcriptions` and `/translations`: what is asked.

use std::path::PathBuf;

use audiocpp::{
    engine::{FormatOptions, SpeechOnly, Task, TranscribeRequest, TranscriptFormat, hint},
    text::languages,
};
use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    app::{App, Chosen, Shared, shown},
    body,
    error::{ApiError, Result},
    form::{self, Form},
    layers::RequestId,
    local,
    spool::{Spooled, check_sound},
    transcript_answer,
    work::Work,
};
use crate::job::{Job, ModelStatus};

/// Fields that mean something, for hints about others.
const FIELDS: [&str; 19] = [
    "file",
    "model",
    "language",
    "languages",
    "keywords",
    "prompt",
    "response_format",
    "temperature",
    "timestamp_granularities",
    "stream",
    "chunking_strategy",
    "include",
    "known_speaker_names",
    "known_speaker_references",
    "beam_size",
    "seed",
    "options",
    "busy_timeout_ms",
    "audio",
];

/// The form of a transcription, as it is described to clients.
#[derive(ToSchema)]
#[allow(
    dead_code,
    reason = "read field by field, in any order; this is its description"
)]
pub struct TranscriptionForm {
    /// The recording: wav, flac, mp3, ogg, m4a/mp4, webm/mkv, aiff or caf, told by its content.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// Model; OpenAI's names (`whisper-1`) reach the first model that recognises speech.
    model: String,
    /// ISO 639 code or English name of the language; absent lets the model find out.
    language: Option<String>,
    /// Text that comes before the speech: names, spelling and style to follow.
    prompt: Option<String>,
    /// Words to expect; they are added to `prompt`.
    keywords: Option<Vec<String>>,
    /// `json` (default), `text`, `srt`, `vtt` or `verbose_json`.
    response_format: Option<String>,
    /// 0 to 1; absent is the model's own schedule.
    temperature: Option<f32>,
    /// `segment` and `word`, for `verbose_json`.
    timestamp_granularities: Option<Vec<String>>,
    /// Send the text as events while it is recognised.
    stream: Option<bool>,
    /// `auto` or `{"type": "server_vad", ...}`: leave out what is not speech.
    chunking_strategy: Option<String>,
    /// Hypotheses of beam search.
    beam_size: Option<usize>,
    /// Seed of the sampler.
    seed: Option<u64>,
    /// The longest wait for a busy model.
    busy_timeout_ms: Option<u64>,
}

/// A request that was understood.
pub struct Plan {
    /// The model.
    pub model: ModelStatus,
    /// What is asked of it.
    pub request: TranscribeRequest,
    /// Leave out what is not speech.
    pub speech_only: Option<SpeechOnly>,
    /// The form of the answer.
    pub format: TranscriptFormat,
    /// What goes into it.
    pub options: FormatOptions,
    /// Answer with events.
    pub stream: bool,
    /// What the caller should know.
    pub warnings: Vec<String>,
}

/// Where the sound of a request is.
enum Source {
    Upload(Spooled),
    Local(PathBuf),
}

impl Source {
    fn path(&self) -> PathBuf {
        match self {
            Source::Upload(file) => file.path(),
            Source::Local(path) => path.clone(),
        }
    }
}

/// Writes down what is said.
#[utoipa::path(post, path = "/v1/audio/transcriptions", tag = "OpenAI",
    request_body(content = TranscriptionForm, content_type = "multipart/form-data"),
    responses((status = 200, description = "The transcript in the form that was asked for",
        content_type = "application/json", body = super::describe::Transcription),
        (status = "4XX", description = "The request is wrong", body = super::describe::ErrorBody)))]
pub async fn transcribe(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response> {
    run(&app, &id, request, false).await
}

/// Writes down in English what is said in any language.
#[utoipa::path(post, path = "/v1/audio/translations", tag = "OpenAI",
    request_body(content = TranscriptionForm, content_type = "multipart/form-data"),
    responses((status = 200, description = "The translation in the form that was asked for",
        content_type = "application/json", body = super::describe::Transcription),
        (status = "4XX", description = "The request is wrong", body = super::describe::ErrorBody)))]
pub async fn translate(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response> {
    run(&app, &id, request, true).await
}

async fn run(app: &Shared, id: &RequestId, request: Request, translate: bool) -> Result<Response> {
    let (mut form, source) = if body::media_type(request.headers()) == "application/json" {
        local_form(app, request).await?
    } else {
        let mut form = Form::read(app, request, &["file"]).await?;
        let file = form.take_file("file")?;
        (form, Source::Upload(file))
    };
    let wait = form::wait(form.take_json("busy_timeout_ms", "milliseconds")?);
    let mut plan = plan(app, &mut form, translate)?;
    plan.warnings.extend(form.leftovers(&FIELDS));
    check_sound(source.path(), "file", app.settings.max_audio_seconds).await?;
    let job = Job::Transcribe {
        request: plan.request.clone(),
        audio: source.path(),
        speech_only: plan.speech_only.clone(),
    };
    let work = Work::start(app, &plan.model, job, &id.0, wait).await?;
    let kept = match source {
        Source::Upload(file) => Some(file),
        Source::Local(_) => None,
    };
    transcript_answer::answer(work, kept, plan).await
}

/// The ancestor's clients send JSON that names a file of the server.
async fn local_form(app: &App, request: Request) -> Result<(Form, Source)> {
    let read = body::json::<serde_json::Map<String, Value>>(request, app.settings.max_json_bytes);
    let mut object = read.await?.value;
    let named = ["audio", "audio_path", "file"].into_iter().find_map(|key| {
        let value = object.remove(key)?;
        Some((key, value.as_str().unwrap_or_default().to_owned()))
    });
    let Some((key, name)) = named else {
        let wanted = "a form with the sound itself, or `audio` with a path";
        return Err(ApiError::missing("file", wanted));
    };
    let path = local::file(app, key, &name)?;
    Ok((Form::of_json(object), Source::Local(path)))
}

/// Understands the fields of a form.
pub fn plan(app: &App, form: &mut Form, translate: bool) -> Result<Plan> {
    let Chosen {
        model,
        mut warnings,
    } = app.choose(form.take("model").as_deref(), Task::Asr)?;
    refuse_speakers(form)?;
    let format = format(form.take("response_format").as_deref())?;
    let stream: bool = form.take_json("stream", "true or false")?.unwrap_or(false);
    let (segments, words) = granularities(form, format, stream, &mut warnings)?;
    if form
        .take_all("include")
        .iter()
        .any(|name| name == "logprobs")
    {
        let message = "`include` asks for logprobs of tokens, which no model here gives; \
                       verbose_json has `avg_logprob` for each segment";
        return Err(ApiError::unsupported("include", message));
    }
    let temperature: Option<f32> = form.take_json("temperature", "a number from 0 to 1")?;
    if let Some(value) = temperature.filter(|value| !(0.0..=1.0).contains(value)) {
        let message = format!("`temperature` is {value}, wanted 0 to 1");
        return Err(ApiError::value("temperature", message));
    }
    let options = form.take_json("options", "an object")?.unwrap_or_default();
    let request = TranscribeRequest {
        language: language(form, &mut warnings)?,
        translate,
        prompt: prompt(form),
        words,
        temperature,
        beam_size: form.take_json("beam_size", "a number of hypotheses")?,
        seed: form.take_json("seed", "a whole number")?,
        options: super::speech::options(options),
    };
    Ok(Plan {
        model,
        request,
        speech_only: chunking(form)?,
        format,
        options: FormatOptions {
            translated: translate,
            words,
            no_segments: !segments,
            ..FormatOptions::default()
        },
        stream,
        warnings,
    })
}

fn format(name: Option<&str>) -> Result<TranscriptFormat> {
    let name = name.unwrap_or("json");
    if name == "diarized_json" {
        let message = "`diarized_json` needs a diarization model, and none is configured; \
                       `verbose_json` has segments without speakers";
        return Err(ApiError::unsupported("response_format", message));
    }
    name.parse().map_err(|_| {
        let ours = TranscriptFormat::ALL.map(TranscriptFormat::name).join(", ");
        let message = format!(
            "`response_format` is `{}`, wanted one of {ours}",
            shown(name)
        );
        ApiError::unsupported("response_format", message)
    })
}

fn refuse_speakers(form: &mut Form) -> Result<()> {
    for field in ["known_speaker_names", "known_speaker_references"] {
        if !form.take_all(field).is_empty() {
            let message = format!("`{field}` needs a diarization model, and none is configured");
            return Err(ApiError::unsupported(field, message));
        }
    }
    Ok(())
}

/// Whether segments and words are wanted.
fn granularities(
    form: &mut Form,
    format: TranscriptFormat,
    stream: bool,
    warnings: &mut Vec<String>,
) -> Result<(bool, bool)> {
    let field = "timestamp_granularities";
    let mut names = Vec::new();
    for text in form.take_all(field) {
        // Some clients send one list as JSON, or with commas.
        match serde_json::from_str::<Vec<String>>(&text) {
            Ok(list) => names.extend(list),
            Err(_) => names.extend(text.split(',').map(|name| name.trim().to_owned())),
        }
    }
    names.retain(|name| !name.is_empty());
    if let Some(odd) = names
        .iter()
        .find(|name| *name != "word" && *name != "segment")
    {
        let message = format!("`{field}` has `{}`, wanted word or segment", shown(odd));
        return Err(ApiError::value(field, message));
    }
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has("word") && format != TranscriptFormat::VerboseJson && !stream {
        warnings.push(format!(
            "words have times in verbose_json alone, not in {}",
            format.name()
        ));
    }
    Ok((names.is_empty() || has("segment"), has("word")))
}

/// The language, as its code.
fn language(form: &mut Form, warnings: &mut Vec<String>) -> Result<Option<String>> {
    let single = form.take("language");
    let several = form.take_all("languages");
    let name = match (single, several.as_slice()) {
        (Some(name), _) => name,
        (None, [one]) => one.clone(),
        (None, []) => return Ok(None),
        (None, _) => {
            warnings.push("of several `languages` the model chooses by itself".to_owned());
            return Ok(None);
        }
    };
    if name == "auto" {
        return Ok(None);
    }
    match languages::code(&name) {
        Some(code) => Ok(Some(code.to_owned())),
        None => Err(ApiError::value(
            "language",
            format!(
                "`language` is `{}`, wanted an ISO 639 code such as en, de or ja, or an English name",
                shown(&name)
            ),
        )),
    }
}

fn prompt(form: &mut Form) -> Option<String> {
    let keywords = form.take_all("keywords");
    let given = form.take("prompt");
    let listed = (!keywords.is_empty()).then(|| keywords.join(", "));
    match (given, listed) {
        (Some(prompt), Some(words)) => Some(format!("{words}. {prompt}")),
        (prompt, words) => prompt.or(words),
    }
}

/// What `chunking_strategy` may hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strategy {
    r#type: String,
    threshold: Option<f64>,
    prefix_padding_ms: Option<f64>,
    silence_duration_ms: Option<f64>,
}

fn chunking(form: &mut Form) -> Result<Option<SpeechOnly>> {
    let field = "chunking_strategy";
    let entries = form.take_object(field);
    let text = form.take(field);
    let strategy: Strategy = match (text.as_deref(), entries.is_empty()) {
        (None, true) => return Ok(None),
        (Some("auto"), _) => return Ok(Some(SpeechOnly::default())),
        (Some(json), _) if json.trim_start().starts_with('{') => serde_json::from_str(json)
            .map_err(|error| ApiError::value(field, format!("`{field}`: {error}")))?,
        (Some(name), true) => Strategy {
            r#type: name.to_owned(),
            ..Strategy::default()
        },
        (_, false) => from_entries(&entries)?,
    };
    if strategy.r#type != "server_vad" {
        let found = shown(&strategy.r#type);
        let message = format!(
            "`{field}` is `{found}`{}",
            hint(&found, ["auto", "server_vad"])
        );
        return Err(ApiError::value(field, message));
    }
    let mut speech = SpeechOnly::default();
    let rules = &mut speech.detect.rules;
    rules.threshold = strategy.threshold.unwrap_or(rules.threshold);
    if let Some(ms) = strategy.silence_duration_ms {
        rules.min_silence = ms / 1000.0;
    }
    if let Some(ms) = strategy.prefix_padding_ms {
        speech.chunks.padding = ms / 1000.0;
    }
    rules.max_speech = Some(speech.chunks.max_speech());
    let checked = speech
        .detect
        .rules
        .check()
        .and_then(|()| speech.chunks.check());
    checked.map_err(|error| ApiError::value(field, format!("`{field}`: {}", error.message)))?;
    Ok(Some(speech))
}

fn from_entries(entries: &[(String, String)]) -> Result<Strategy> {
    let mut object = serde_json::Map::new();
    for (key, text) in entries {
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
        object.insert(key.clone(), value);
    }
    let field = "chunking_strategy";
    serde_json::from_value(Value::Object(object))
        .map_err(|error| ApiError::value(field, format!("`{field}`: {error}")))
}
