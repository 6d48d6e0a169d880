//! Sound in and out: decoding, resampling, WAV writing and spectral front ends.
//!
//! ```no_run
//! use audiocpp::audio::{AudioSource, Reader, mono_at};
//! let mut speech = mono_at(Reader::open("talk.m4a")?, 16_000)?;
//! let mut window = Vec::new();
//! while speech.read(&mut window, 480_000)? > 0 {
//!     // `window` holds up to 30 s of mono 16 kHz samples
//!     window.clear();
//! }
//! for warning in speech.warnings() {
//!     eprintln!("{warning}");
//! }
//! # Ok::<(), audiocpp::audio::Error>(())
//! ```
mod container;
mod decoder;
pub mod edges;
pub mod encode;
mod error;
pub mod level;
mod mel;
mod outline;
mod reader;
mod resample;
mod sinc;
mod source;
mod stft;
mod wav;

pub use encode::{AudioFormat, AudioWriter, Codec};
pub use error::{Error, Result, WANTED};
pub use mel::{Log, LogMel, LogMelConfig, MelBank, MelNorm, MelScale};
pub use reader::Reader;
pub use realfft::num_complex::Complex32;
pub use resample::{RATES, Resampler, resample, resampled_len};
pub use sinc::SincResampler;
pub use source::{Audio, AudioSource, Clip, MonoAt, downmix, mono_at};
pub use stft::{Padding, Spectrogram, Stft, StftConfig, Window};
pub use wav::{WavFormat, WavWriter, stream_header, wav_bytes, write_wav};
