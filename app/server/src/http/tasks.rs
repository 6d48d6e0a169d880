//! `POST /v1/tasks/run`: any task by JSON, as the clients of audio.cpp's server send it.

use std::{collections::BTreeMap, path::PathBuf};

use audiocpp::{
    audio::{Audio, WavFormat, wav_bytes},
    engine::{
        DetectSpeechRequest, SeparateRequest, SynthesizeRequest, Task, TranscribeRequest, hint,
    },
};
use axum::{
    Extension, Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    app::{App, Shared, with_warnings},
    body, data_url,
    error::{ApiError, Result},
    form,
    layers::RequestId,
    local, speech,
    spool::{Spool, Spooled, check_sound},
    work::Work,
};
use crate::job::{Job, ModelStatus, Outcome};

/// A task to run. Sound is a file below `allowed_audio_roots`, base64 or a data URL.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub struct TaskBody {
    /// The model, which decides what is done.
    pub model: Option<String>,
    /// The task, to be sure: `asr`, `tts`, `vad`, `sep`.
    pub task: Option<String>,
    /// The text to speak.
    #[serde(alias = "input")]
    pub text: Option<String>,
    /// The sound to work on.
    #[serde(alias = "audio_path", alias = "file")]
    pub audio: Option<String>,
    /// ISO 639 code.
    pub language: Option<String>,
    /// The voice.
    #[serde(alias = "voice_id")]
    pub voice: Option<String>,
    /// A recording whose voice is copied.
    pub voice_ref: Option<String>,
    /// The words of `voice_ref`.
    pub reference_text: Option<String>,
    /// How to say it.
    #[serde(alias = "instruct")]
    pub instructions: Option<String>,
    /// 1 is the model's own speed.
    #[serde(alias = "speaking_rate")]
    pub speed: Option<f32>,
    /// Seed of the sampler.
    pub seed: Option<u64>,
    /// Sampling temperature of recognition.
    pub temperature: Option<f32>,
    /// Give every word its times.
    #[serde(alias = "return_timestamps")]
    pub words: bool,
    /// Options of the model's family.
    #[schema(value_type = Object)]
    pub options: BTreeMap<String, speech::Scalar>,
    /// The longest wait for a busy model.
    pub busy_timeout_ms: Option<u64>,
}

/// Runs a task on a model; the answer has `text`, `segments`, `words`, `audio` or `outputs` (WAV in
/// base64), whatever the task gives, and `timing`.
#[utoipa::path(post, path = "/v1/tasks/run", tag = "Extension", request_body = TaskBody,
    responses((status = 200, description = "The result"),
        (status = "4XX", description = "The request is wrong", body = super::describe::ErrorBody)))]
pub async fn run(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response> {
    let read = body::json::<TaskBody>(request, app.settings.max_json_bytes).await?;
    let (body, mut warnings) = (read.value, read.warnings);
    let name = body.model.as_deref();
    let name = name.ok_or_else(|| ApiError::missing("model", "the id of a configured model"))?;
    let model = app.model(name)?;
    check_task(&model, body.task.as_deref())?;
    let wait = form::wait(body.busy_timeout_ms);
    let (model, job, _upload) = job(&app, model, body, &mut warnings).await?;
    let mut work = Work::start(&app, &model, job, &id.0, wait).await?;
    let outcome = work.outcome().await?;
    let took = work.elapsed();
    warnings.append(&mut work.warnings);
    let made = tokio::task::spawn_blocking(move || result(outcome)).await;
    let (mut result, seconds) = made.map_err(|_| ApiError::internal("the encoder ended"))??;
    result["timing"] = json!({
        "wall_ms": took.as_secs_f64() * 1000.0,
        "audio_duration_ms": seconds * 1000.0,
        "rtf": if seconds > 0.0 { took.as_secs_f64() / seconds } else { 0.0 },
    });
    Ok(with_warnings(Json(result).into_response(), &warnings))
}

fn check_task(model: &ModelStatus, task: Option<&str>) -> Result<()> {
    let Some(name) = task else {
        return Ok(());
    };
    let asked: Task = name
        .parse()
        .map_err(|error: audiocpp::engine::Error| ApiError::value("task", error.message))?;
    if asked == model.task {
        return Ok(());
    }
    let message = format!(
        "`{}` does {}, not {}",
        model.id,
        model.task.phrase(),
        asked.phrase()
    );
    Err(ApiError::unsupported("task", message))
}

/// A job, the model that does it, and the upload that it reads.
type Asked = (ModelStatus, Job, Option<Spooled>);

/// The job that a body asks of `model`.
async fn job(
    app: &Shared,
    model: ModelStatus,
    body: TaskBody,
    warnings: &mut Vec<String>,
) -> Result<Asked> {
    match model.task {
        Task::Tts | Task::Clon | Task::Vdes => speech_job(app, model, body, warnings).await,
        Task::Asr | Task::Vad | Task::Sep => sound_job(app, model, body).await,
        other => {
            let near = hint(other.name(), ["asr", "tts", "vad", "sep"]);
            let message = format!("{} is not served{near}", other.phrase());
            Err(ApiError::unsupported("model", message))
        }
    }
}

async fn speech_job(
    app: &Shared,
    model: ModelStatus,
    body: TaskBody,
    warnings: &mut Vec<String>,
) -> Result<Asked> {
    let text = speech::text(app, body.text)?;
    let model = speech::known(app, model).await?;
    let reference = match body.voice_ref {
        Some(sound) => Some(speech::reference(app, sound).await?),
        None => None,
    };
    let voice = match &reference {
        Some(_) => None,
        None => speech::voice(&model, body.voice.as_deref(), warnings)?,
    };
    let request = SynthesizeRequest {
        text,
        language: body.language,
        voice,
        references: reference.into_iter().collect(),
        reference_text: body.reference_text,
        instructions: body.instructions,
        speed: body.speed,
        seed: body.seed,
        words: body.words,
        options: speech::options(body.options),
        ..SynthesizeRequest::default()
    };
    Ok((model, Job::Synthesize { request }, None))
}

async fn sound_job(app: &Shared, model: ModelStatus, body: TaskBody) -> Result<Asked> {
    let (audio, upload) = sound(app, body.audio).await?;
    check_sound(audio.clone(), "audio", app.settings.max_audio_seconds).await?;
    let options = speech::options(body.options);
    let job = match model.task {
        Task::Vad => Job::DetectSpeech {
            request: DetectSpeechRequest {
                options,
                ..DetectSpeechRequest::default()
            },
            audio,
        },
        Task::Sep => Job::Separate {
            request: SeparateRequest {
                seed: body.seed,
                options,
                ..SeparateRequest::default()
            },
            audio,
        },
        _ => Job::Transcribe {
            request: TranscribeRequest {
                language: body.language,
                prompt: body.text,
                words: body.words,
                temperature: body.temperature,
                seed: body.seed,
                options,
                ..TranscribeRequest::default()
            },
            audio,
            speech_only: None,
        },
    };
    Ok((model, job, upload))
}

/// The file to read: one of this machine, or the upload that a data URL becomes.
async fn sound(app: &App, audio: Option<String>) -> Result<(PathBuf, Option<Spooled>)> {
    let wanted = "a file below `allowed_audio_roots`, base64 or a data URL";
    let audio = audio.ok_or_else(|| ApiError::missing("audio", wanted))?;
    // Base64 has no dots, and names of sound files do.
    if !audio.starts_with("data:") && (audio.contains('.') || audio.len() < 64) {
        return Ok((local::file(app, "audio", &audio)?, None));
    }
    let bytes = data_url::decode("audio", &audio)?;
    let mut spool = Spool::create(&app.settings.spool_dir)?;
    spool.write(&bytes).await?;
    let file = spool.finish().await?;
    Ok((file.path(), Some(file)))
}

/// A result as JSON, and the seconds of sound in it.
fn result(outcome: Outcome) -> Result<(Value, f64)> {
    Ok(match outcome {
        Outcome::Transcript(it) => {
            let words: Vec<_> = it.words().collect();
            let value = json!({
                "text": it.text,
                "language": it.language,
                "segments": it.segments,
                "words": words,
            });
            (value, it.duration)
        }
        Outcome::Speech(it) => {
            let value = json!({
                "audio": wav(&it.audio)?,
                "sample_rate": it.audio.rate,
                "channels": it.audio.channels,
                "segments": it.segments,
            });
            (value, it.duration)
        }
        Outcome::Activity(it) => (json!({"segments": it.segments}), it.duration),
        Outcome::Separation(it) => {
            let mut outputs = serde_json::Map::new();
            for stem in &it.stems {
                outputs.insert(stem.name.clone(), json!(wav(&stem.audio)?));
            }
            (json!({"outputs": outputs}), it.duration)
        }
    })
}

fn wav(audio: &Audio) -> Result<String> {
    let bytes = wav_bytes(audio, WavFormat::Pcm16);
    let bytes = bytes.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(BASE64_STANDARD.encode(bytes))
}
