//! The form of sound that is written, from flags.

use std::path::Path;

use audiocpp::audio::{Codec, WavFormat};

use crate::failure::{Failure, Outcome};

/// Kinds of samples that `--samples` takes.
pub const SAMPLES: [&str; 4] = ["s16", "s24", "s32", "f32"];

/// The codec with a name, for a kind of samples if one was asked for.
pub fn codec(name: &str, samples: Option<&str>) -> Outcome<Codec> {
    let samples = samples.map(|kind| match kind {
        "s24" => WavFormat::Pcm24,
        "s32" => WavFormat::Pcm32,
        "f32" => WavFormat::F32,
        _ => WavFormat::Pcm16,
    });
    Codec::named(name, samples).map_err(|error| Failure::usage(error.to_string()))
}

/// The codec that a flag names, else the one of the result's ending; wav where there is neither.
pub fn codec_for(
    out: Option<&Path>,
    format: Option<&str>,
    samples: Option<&str>,
) -> Outcome<Codec> {
    let named = out.filter(|out| out.extension().is_some());
    let name = match (format, named) {
        (Some(name), _) => name,
        (None, Some(out)) => Codec::name_by_extension(out).ok_or_else(|| {
            Failure::usage(format!(
                "{}: no audio format has this name; wanted one of {}, or --format",
                out.display(),
                Codec::NAMES.join(", ")
            ))
        })?,
        (None, None) => "wav",
    };
    codec(name, samples)
}
