//! One track's decoder: symphonia's codecs plus libopus, with damage turned into silence.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use symphonia::core::{
    codecs::{
        CodecParameters,
        audio::{
            AudioCodecParameters, AudioDecoder, AudioDecoderOptions,
            well_known::{CODEC_ID_AAC, CODEC_ID_OPUS},
        },
        registry::CodecRegistry,
    },
    errors::{Error as SymphoniaError, Result as SymphoniaResult},
    formats::{FormatReader, Track, probe::Hint},
    io::MediaSourceStream,
    packet::Packet,
};

/// Opus counts everything at this rate, whatever the container says.
const OPUS_RATE: u32 = 48_000;

/// What to drop of a decoded track.
#[derive(Debug, Default)]
pub struct Trim {
    /// Frames still to drop at the start.
    pub start: u64,
    /// Frames to keep in all.
    pub keep: Option<u64>,
    /// Frames to drop at the end.
    pub end: u64,
}

/// A decoder of one track that never fails: what it cannot decode it counts.
pub struct Decoder {
    inner: Box<dyn AudioDecoder>,
    /// Frames a second; fixed by the first decoded packet.
    pub rate: u32,
    /// Channels; fixed by the first decoded packet.
    pub channels: u16,
    /// Frames of run-in that the codec's own header declares.
    pub pre_skip: u64,
    /// Packets that could not be decoded.
    pub damaged: u64,
    /// Frames that the demuxer had the codec drop at either end.
    pub dropped: u64,
    /// Undecodable packets since the last good one.
    pub failures: u32,
    good: u64,
    gain: f32,
    non_finite: u64,
    other_rate: u64,
    last_frames: usize,
    last_error: Option<String>,
    scratch: Vec<f32>,
}

/// Finds the demuxer for a stream by its content.
pub fn probe(stream: MediaSourceStream<'static>) -> SymphoniaResult<Box<dyn FormatReader>> {
    symphonia::default::get_probe().probe(
        &Hint::new(),
        stream,
        Default::default(),
        Default::default(),
    )
}

fn codecs() -> &'static CodecRegistry {
    static CODECS: OnceLock<CodecRegistry> = OnceLock::new();
    CODECS.get_or_init(|| {
        let mut codecs = CodecRegistry::new();
        symphonia::default::register_enabled_codecs(&mut codecs);
        codecs.register_audio_decoder::<symphonia_adapter_libopus::OpusDecoder>();
        codecs
    })
}

impl Decoder {
    /// A decoder for a track; the error names the codec that is not supported.
    pub fn new(track: &Track) -> Result<Self, String> {
        let Some(CodecParameters::Audio(params)) = &track.codec_params else {
            return Err("a track without codec parameters".into());
        };
        let mut params = params.clone();
        let (mut pre_skip, mut gain) = (0, 1.0);
        if params.codec == CODEC_ID_OPUS {
            (pre_skip, gain) = opus_head(params.extra_data.as_deref().unwrap_or_default());
            params.sample_rate = Some(OPUS_RATE);
            // The adapter would cut the run-in again, and only out of the first packet.
            params.extra_data = None;
        }
        let inner = codecs()
            .make_audio_decoder(&params, &AudioDecoderOptions::default())
            .map_err(|e| unsupported(&params, &e))?;
        Ok(Self {
            inner,
            rate: params.sample_rate.unwrap_or(0),
            channels: 0,
            pre_skip,
            damaged: 0,
            dropped: 0,
            failures: 0,
            good: 0,
            gain,
            non_finite: 0,
            other_rate: 0,
            last_frames: 0,
            last_error: None,
            scratch: Vec::new(),
        })
    }

    /// Takes over the form and the counts of the decoder before it in a chained stream.
    pub fn follow(&mut self, before: &Decoder) {
        (self.rate, self.channels) = (before.rate, before.channels);
        (self.good, self.damaged) = (before.good, before.damaged);
        (self.non_finite, self.other_rate) = (before.non_finite, before.other_rate);
    }

    /// Appends a packet's interleaved frames, or as much silence as the packet before had.
    pub fn decode(&mut self, packet: &Packet, out: &mut Vec<f32>) {
        self.scratch.clear();
        self.dropped += packet.trim_start.get() + packet.trim_end.get();
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            let buffer = self.inner.decode(packet)?;
            buffer.copy_to_vec_interleaved(&mut self.scratch);
            Ok((
                buffer.spec().rate(),
                buffer.spec().channels().count(),
                buffer.frames(),
            ))
        }))
        .unwrap_or(Err(SymphoniaError::DecodeError(
            "the decoder gave up on this packet",
        )));
        match decoded {
            Ok((_, _, 0)) | Ok((_, 0, _)) => self.failures += 1,
            Ok((rate, channels, frames)) => self.append(rate, channels, frames, out),
            Err(e) => {
                self.note(&e);
                if matches!(e, SymphoniaError::ResetRequired) {
                    self.inner.reset();
                }
                let silence = self.last_frames * usize::from(self.channels);
                out.resize(out.len() + silence, 0.0);
            }
        }
    }

    fn append(&mut self, rate: u32, channels: usize, frames: usize, out: &mut Vec<f32>) {
        if self.channels == 0 {
            (self.rate, self.channels) = (rate, channels as u16);
        }
        if rate != self.rate {
            self.other_rate += 1;
            return;
        }
        (self.failures, self.last_frames) = (0, frames);
        self.good += 1;
        for sample in &mut self.scratch {
            if sample.is_finite() {
                *sample *= self.gain;
            } else {
                *sample = 0.0;
                self.non_finite += 1;
            }
        }
        let want = usize::from(self.channels);
        if channels == want {
            out.extend_from_slice(&self.scratch);
            return;
        }
        // A stream that changes its channel count on the way keeps the one it began with.
        for frame in self.scratch.chunks_exact(channels) {
            if want == 1 || channels == 1 {
                let mean = frame.iter().sum::<f32>() / channels as f32;
                out.resize(out.len() + want, mean);
            } else {
                out.extend((0..want).map(|c| frame.get(c).copied().unwrap_or(0.0)));
            }
        }
    }

    /// Counts a failure that is not a packet of its own.
    pub fn note(&mut self, error: &SymphoniaError) {
        self.damaged += 1;
        self.failures += 1;
        self.last_error = Some(error.to_string());
    }

    /// What was tried, in words.
    pub fn verdict(&self) -> String {
        match &self.last_error {
            Some(error) => format!(
                "{} of {} packets are damaged ({error})",
                self.damaged,
                self.damaged + self.good
            ),
            None => "it holds no packets".into(),
        }
    }

    /// Takes what there is to say about the packets since the last call.
    pub fn warnings(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        if self.damaged > 0 {
            let error = self.last_error.take().unwrap_or_default();
            said.push(format!(
                "{} damaged packets replaced by silence ({error})",
                self.damaged
            ));
        }
        if self.non_finite > 0 {
            said.push(format!(
                "{} samples that are no numbers set to 0",
                self.non_finite
            ));
        }
        if self.other_rate > 0 {
            said.push(format!(
                "{} packets at another sample rate left out",
                self.other_rate
            ));
        }
        (self.damaged, self.non_finite, self.other_rate) = (0, 0, 0);
        said
    }
}

/// Run-in and linear gain of an `OpusHead`; none where there is no such header. MP4 stores the
/// same fields as version 0 and big-endian.
fn opus_head(head: &[u8]) -> (u64, f32) {
    let Some(([version, _, s0, s1, _, _, _, _, g0, g1], b"OpusHead")) = head
        .get(8..18)
        .zip(head.get(..8))
        .and_then(|(fields, magic)| {
            Some((
                <[u8; 10]>::try_from(fields).ok()?,
                <&[u8; 8]>::try_from(magic).ok()?,
            ))
        })
    else {
        return (0, 1.0);
    };
    let word = |low: u8, high: u8| match version {
        0 => u16::from_be_bytes([low, high]),
        _ => u16::from_le_bytes([low, high]),
    };
    let decibel = f32::from(word(g0, g1) as i16) / 256.0;
    (word(s0, s1).into(), 10f32.powf(decibel / 20.0))
}

/// Names a codec, or the form of it, that there is no decoder for.
fn unsupported(params: &AudioCodecParameters, error: &SymphoniaError) -> String {
    let channels = params.channels.as_ref().map_or(0, |c| c.count());
    if params.codec == CODEC_ID_AAC {
        // The first five bits of an AudioSpecificConfig are the object type.
        let object = params
            .extra_data
            .as_ref()
            .and_then(|d| d.first())
            .map_or(0, |b| b >> 3);
        return match object {
            5 => "HE-AAC (AAC with spectral band replication)".into(),
            29 => "HE-AAC v2 (AAC with parametric stereo)".into(),
            2 if channels > 2 => format!("AAC with {channels} channels"),
            2 => format!("this form of AAC-LC ({error})"),
            other => format!("AAC object type {other}"),
        };
    }
    if params.codec == CODEC_ID_OPUS && channels > 2 {
        return format!("Opus with {channels} channels");
    }
    format!("audio codec {} ({error})", params.codec)
}

/// A readable name for a movie's sample description code.
pub fn four_cc_name(code: [u8; 4]) -> String {
    match &code {
        b"ac-3" => "AC-3 (Dolby Digital)".into(),
        b"ec-3" => "E-AC-3 (Dolby Digital Plus)".into(),
        b"samr" | b"sawb" => "AMR".into(),
        b"enca" | b"drms" => "encrypted (DRM) audio".into(),
        other => format!("`{}`", other.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opus_heads_give_run_in_and_gain() {
        let mut head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0".to_vec();
        assert_eq!(opus_head(&head), (312, 1.0));
        head[16..18].copy_from_slice(&(-6 * 256i16).to_le_bytes());
        assert!((opus_head(&head).1 - 0.501_187).abs() < 1e-5);
        let mp4 = b"OpusHead\0\x02\x01\x38\0\0\xbb\x80\0\0\0";
        assert_eq!(opus_head(mp4), (312, 1.0));
        assert_eq!(opus_head(b"OpusHead"), (0, 1.0));
    }
}
