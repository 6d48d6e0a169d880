//! `POST /v1/audio/separations`: a mix to stems.

use audiocpp::{
    audio::{AudioFormat, Codec, WavFormat},
    engine::{Rest, SeparateRequest, Separation, Task, hint},
};
use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, header},
    response::Response,
};
use utoipa::ToSchema;

use super::{
    app::{App, Shared, shown, with_warnings},
    error::{ApiError, Result},
    form::{self, Form},
    layers::RequestId,
    spool::check_sound,
    stems::{Package, StemFiles, packed},
    work::{Step, Work, other_outcome},
};
use crate::job::{Job, Outcome};

const FIELDS: [&str; 10] = [
    "file",
    "model",
    "stems",
    "two_stems",
    "rest",
    "response_format",
    "samples",
    "package",
    "seed",
    "busy_timeout_ms",
];

/// The form of a separation, as it is described to clients.
#[derive(ToSchema)]
#[allow(
    dead_code,
    reason = "read field by field, in any order; this is its description"
)]
pub struct SeparationForm {
    /// The mix.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// Model; absent is the first that separates.
    model: Option<String>,
    /// Stems to give back, repeated or with commas; absent is all.
    stems: Option<Vec<String>>,
    /// Give back this stem, and everything else as `no_NAME`.
    two_stems: Option<String>,
    /// What everything else is: `sum` (default) of the other stems, or `difference` to the mix.
    rest: Option<String>,
    /// `wav` (default), `flac`, `mp3` or `opus`.
    response_format: Option<String>,
    /// Samples of wav and flac: `s16` (default), `s24`, or `f32` for wav.
    samples: Option<String>,
    /// `zip` (default), `mixed` (multipart/mixed) or `form` (multipart/form-data).
    package: Option<String>,
    /// Seed of random shifts.
    seed: Option<u64>,
    /// The longest wait for a busy model.
    busy_timeout_ms: Option<u64>,
}

/// Separates a mix into stems, each exactly as long as the mix.
#[utoipa::path(post, path = "/v1/audio/separations", tag = "Extension",
    request_body(content = SeparationForm, content_type = "multipart/form-data"),
    responses((status = 200, description = "The stems", content_type = "application/zip",
        body = Vec<u8>),
        (status = "4XX", description = "The request is wrong", body = super::describe::ErrorBody)))]
pub async fn separate(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response> {
    let accept = accepted(request.headers());
    let mut form = Form::read(&app, request, &["file"]).await?;
    let file = form.take_file("file")?;
    let chosen = app.choose_or_first(form.take("model").as_deref(), Task::Sep)?;
    let package = package(form.take("package").as_deref(), accept)?;
    let format = format(&mut form)?;
    let request = understood(&mut form)?;
    let wait = form::wait(form.take_json("busy_timeout_ms", "milliseconds")?);
    let mut warnings = chosen.warnings;
    warnings.extend(form.leftovers(&FIELDS));
    check_sound(file.path(), "file", app.settings.max_audio_seconds).await?;
    let job = Job::Separate {
        request,
        audio: file.path(),
    };
    let mut work = Work::start(&app, &chosen.model, job, &id.0, wait).await?;
    let files = written(&app, &mut work, format).await?;
    warnings.append(&mut work.warnings);
    drop(file);
    let (files, cut) = files.finish().await?;
    warnings.extend(cut);
    let answer = packed(files, package, format.codec.mime(), &app.settings.spool_dir).await?;
    Ok(with_warnings(answer, &warnings))
}

/// Writes the stems of a job as they come.
async fn written(app: &App, work: &mut Work, format: AudioFormat) -> Result<StemFiles> {
    let folder = &app.settings.spool_dir;
    let mut files = StemFiles::new(format);
    loop {
        match work.next().await? {
            Step::Stems(stems) => files = files.write(folder, stems).await?,
            Step::Done(Outcome::Separation(Separation { stems, .. })) => {
                let whole = stems.iter().any(|stem| !stem.audio.samples.is_empty());
                return match whole {
                    true => files.write(folder, stems).await,
                    false => Ok(files),
                };
            }
            Step::Done(other) => return Err(other_outcome(&other)),
            Step::Segment(_) | Step::Speech(_) => {}
        }
    }
}

fn understood(form: &mut Form) -> Result<SeparateRequest> {
    let listed = form.take_all("stems");
    let names = listed.iter().flat_map(|text| text.split(','));
    let stems: Vec<String> = names
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty() && name != "all")
        .collect();
    let two_stems = form.take("two_stems");
    if two_stems.is_some() && !stems.is_empty() {
        let message = "`stems` and `two_stems` exclude each other";
        return Err(ApiError::value("two_stems", message));
    }
    let rest = match form.take("rest").as_deref() {
        None | Some("sum") => Rest::Sum,
        Some("difference") => Rest::Difference,
        Some(other) => {
            let found = shown(other);
            let message = format!("`rest` is `{found}`{}", hint(&found, ["sum", "difference"]));
            return Err(ApiError::value("rest", message));
        }
    };
    Ok(SeparateRequest {
        stems,
        two_stems,
        rest,
        seed: form.take_json("seed", "a whole number")?,
        stream: true,
        ..SeparateRequest::default()
    })
}

fn format(form: &mut Form) -> Result<AudioFormat> {
    let name = form
        .take("response_format")
        .unwrap_or_else(|| "wav".to_owned());
    if !["wav", "flac", "mp3", "opus"].contains(&name.as_str()) {
        let message = format!(
            "`response_format` is `{}`, wanted one of wav, flac, mp3, opus",
            shown(&name)
        );
        return Err(ApiError::unsupported("response_format", message));
    }
    let samples = match form.take("samples").as_deref() {
        None => None,
        Some("s16") => Some(WavFormat::Pcm16),
        Some("s24") => Some(WavFormat::Pcm24),
        Some("f32") => Some(WavFormat::F32),
        Some(other) => {
            let message = format!("`samples` is `{}`, wanted s16, s24 or f32", shown(other));
            return Err(ApiError::value("samples", message));
        }
    };
    let codec = Codec::named(&name, samples);
    let codec = codec.map_err(|error| ApiError::value("samples", error.to_string()))?;
    Ok(AudioFormat { codec, rate: None })
}

fn accepted(headers: &HeaderMap) -> Option<Package> {
    let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
    if accept.contains("multipart/mixed") {
        Some(Package::Mixed)
    } else if accept.contains("multipart/form-data") {
        Some(Package::Form)
    } else {
        None
    }
}

fn package(name: Option<&str>, accepted: Option<Package>) -> Result<Package> {
    let Some(name) = name else {
        return Ok(accepted.unwrap_or(Package::Zip));
    };
    let known = Package::NAMES.into_iter().find(|(known, _)| *known == name);
    known.map(|(_, package)| package).ok_or_else(|| {
        let names = Package::NAMES.map(|(name, _)| name);
        let message = format!(
            "`package` is `{}`{}",
            shown(name),
            hint(&shown(name), names)
        );
        ApiError::value("package", message)
    })
}
