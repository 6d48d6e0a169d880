//! Stems on their way to disk, and from there into one answer: memory does not depend on their
//! length.

use std::{fs::File, io, path::Path};

use audiocpp::{
    audio::{AudioFormat, AudioWriter, Codec},
    engine::Stem,
};
use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tempfile::TempPath;
use tokio_util::io::ReaderStream;
use uuid::Uuid;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    error::{ApiError, Result},
    spool,
};

/// How stems are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// One file each in a zip archive that is not compressed.
    Zip,
    /// `multipart/mixed`.
    Mixed,
    /// `multipart/form-data`, which browsers take apart by themselves.
    Form,
}

impl Package {
    /// The names that requests use.
    pub const NAMES: [(&str, Package); 3] = [
        ("zip", Package::Zip),
        ("mixed", Package::Mixed),
        ("form", Package::Form),
    ];
}

/// One stem that is being written.
struct StemFile {
    name: String,
    writer: AudioWriter,
    path: TempPath,
    peak: f32,
}

/// Files for the stems of one mix; they are gone when this is dropped.
pub struct StemFiles {
    format: AudioFormat,
    files: Vec<StemFile>,
}

impl StemFiles {
    /// No files yet: they are made for the first stems that come.
    pub fn new(format: AudioFormat) -> Self {
        StemFiles {
            format,
            files: Vec::new(),
        }
    }

    /// Appends the next stretch of every stem.
    pub async fn write(mut self, folder: &Path, stems: Vec<Stem>) -> Result<Self> {
        let folder = folder.to_owned();
        blocking(move || {
            if self.files.is_empty() {
                self.files = stems
                    .iter()
                    .map(|stem| open(&folder, self.format, stem))
                    .collect::<Result<_>>()?;
            }
            for stem in &stems {
                let file = self.files.iter_mut().find(|file| file.name == stem.name);
                let file = file.ok_or_else(|| {
                    ApiError::internal(format!("the stem `{}` came late", stem.name))
                })?;
                file.peak = file.peak.max(stem.audio.peak());
                file.writer
                    .write(&stem.audio.samples)
                    .map_err(|error| unwritten(&error))?;
            }
            Ok(self)
        })
        .await
    }

    /// Finishes the files. Gives them back in order, with a warning for each that was cut at full
    /// scale.
    pub async fn finish(self) -> Result<(Vec<(String, TempPath)>, Vec<String>)> {
        blocking(move || {
            let keeps_peaks = matches!(
                self.format.codec,
                Codec::Wav(audiocpp::audio::WavFormat::F32)
            );
            let extension = self.format.codec.name();
            let (mut files, mut warnings) = (Vec::new(), Vec::new());
            for file in self.files {
                file.writer.finish().map_err(|error| unwritten(&error))?;
                if file.peak > 1.0 && !keeps_peaks {
                    warnings.push(format!(
                        "`{}` reaches {:.2} and was cut at full scale; wav with `samples` f32 is not",
                        file.name, file.peak
                    ));
                }
                files.push((format!("{}.{extension}", file.name), file.path));
            }
            Ok((files, warnings))
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ApiError::internal("the stems could not be written"))?
}

fn open(folder: &Path, format: AudioFormat, stem: &Stem) -> Result<StemFile> {
    let (file, path) = spool::temporary(folder)?.into_parts();
    let audio = &stem.audio;
    let writer = AudioWriter::file(file, &stem.name, format, audio.rate, audio.channels);
    Ok(StemFile {
        name: stem.name.clone(),
        writer: writer.map_err(|error| unwritten(&error))?,
        path,
        peak: 0.0,
    })
}

fn unwritten(error: &audiocpp::audio::Error) -> ApiError {
    match error {
        audiocpp::audio::Error::Write { source, .. } => spool::failed(source),
        other => ApiError::internal(other.to_string()),
    }
}

/// A stretch of an answer.
enum Piece {
    Bytes(Bytes),
    File(TempPath, u64),
}

/// Puts finished files into one answer.
pub async fn packed(
    files: Vec<(String, TempPath)>,
    package: Package,
    mime: &'static str,
    folder: &Path,
) -> Result<Response> {
    let (pieces, kind) = match package {
        Package::Zip => {
            let folder = folder.to_owned();
            let archive = blocking(move || zipped(&files, &folder)).await?;
            (vec![archive], "application/zip".to_owned())
        }
        Package::Mixed => parts(files, "mixed", "attachment", mime)?,
        Package::Form => parts(files, "form-data", "form-data", mime)?,
    };
    let length: u64 = pieces.iter().map(Piece::length).sum();
    let mut response = Body::from_stream(bytes(pieces)).into_response();
    let headers = response.headers_mut();
    let kind =
        HeaderValue::from_str(&kind).map_err(|error| ApiError::internal(error.to_string()))?;
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CONTENT_LENGTH, length.into());
    if package == Package::Zip {
        let name = HeaderValue::from_static("attachment; filename=\"stems.zip\"");
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::File(_, length) => *length,
        }
    }

    fn file(path: TempPath) -> Result<Piece> {
        let length = path
            .metadata()
            .map_err(|error| spool::failed(&error))?
            .len();
        Ok(Piece::File(path, length))
    }
}

fn zipped(files: &[(String, TempPath)], folder: &Path) -> Result<Piece> {
    let broken = |error: zip::result::ZipError| match error {
        zip::result::ZipError::Io(error) => spool::failed(&error),
        other => ApiError::internal(other.to_string()),
    };
    let (file, path) = spool::temporary(folder)?.into_parts();
    let mut archive = ZipWriter::new(file);
    // Sound does not get smaller; stems of a long mix are more than 4 GiB.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(true);
    for (name, stem) in files {
        archive.start_file(name, options).map_err(broken)?;
        let mut stem = File::open(stem).map_err(|error| spool::failed(&error))?;
        io::copy(&mut stem, &mut archive).map_err(|error| spool::failed(&error))?;
    }
    archive.finish().map_err(broken)?;
    Piece::file(path)
}

fn parts(
    files: Vec<(String, TempPath)>,
    subtype: &str,
    disposition: &str,
    mime: &str,
) -> Result<(Vec<Piece>, String)> {
    let boundary = format!("stems-{}", Uuid::new_v4().simple());
    let mut pieces = Vec::new();
    for (file, path) in files {
        let piece = Piece::file(path)?;
        let name = file
            .rsplit_once('.')
            .map_or(file.as_str(), |(name, _)| name);
        let head = format!(
            "--{boundary}\r\nContent-Type: {mime}\r\nContent-Disposition: {disposition}; \
             name=\"{name}\"; filename=\"{file}\"\r\nContent-Length: {}\r\n\r\n",
            piece.length()
        );
        pieces.push(Piece::Bytes(head.into()));
        pieces.push(piece);
        pieces.push(Piece::Bytes(Bytes::from_static(b"\r\n")));
    }
    pieces.push(Piece::Bytes(format!("--{boundary}--\r\n").into()));
    Ok((pieces, format!("multipart/{subtype}; boundary={boundary}")))
}

/// The pieces one after the other; a file is deleted once it was sent.
fn bytes(pieces: Vec<Piece>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let each = stream::iter(pieces).then(|piece| async move {
        let chunks = match piece {
            Piece::Bytes(bytes) => stream::once(async { Ok(bytes) }).boxed(),
            Piece::File(path, _) => {
                let file = tokio::fs::File::open(&path).await?;
                let chunks = ReaderStream::with_capacity(file, 1 << 16);
                // The name lives as long as its content is read.
                chunks
                    .map(move |chunk| {
                        let _ = &path;
                        chunk
                    })
                    .boxed()
            }
        };
        Ok::<_, io::Error>(chunks)
    });
    each.try_flatten()
}
