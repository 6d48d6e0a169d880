//! MP3 with a variable bit rate, gapless.

use rusty_mp3::{Mp3Encoder, Mp3EncoderConfig};

use super::Encode;
use crate::audio::{Error, Result};

/// Mean bit rate for each channel, in kbit/s.
const RATE: f32 = 96.0;

/// An encoder of one stream.
pub struct Mp3 {
    encoder: Mp3Encoder,
    rate: u32,
    channels: u16,
    /// The first frame, which says how long a file is, is still to be left out.
    skip_tag: bool,
}

impl Mp3 {
    /// An encoder for 1 or 2 channels at a rate of MPEG; a stream cannot say how long it is.
    pub fn new(rate: u32, channels: u16, streams: bool) -> Self {
        // Lower rates need fewer bits for the same quality.
        let share = if rate >= 32_000 { 1.0 } else { 0.7 };
        let config = Mp3EncoderConfig {
            bitrate_kbps: 0,
            vbr_quality: Some(RATE * share * f32::from(channels)),
        };
        Mp3 {
            encoder: Mp3Encoder::new(config),
            rate,
            channels,
            skip_tag: streams,
        }
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        while let Ok(packet) = self.encoder.next_packet() {
            if !std::mem::take(&mut self.skip_tag) {
                out.extend(packet);
            }
        }
    }
}

impl Encode for Mp3 {
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<()> {
        let clipped: Vec<f32> = samples
            .iter()
            .map(|s| {
                if s.is_finite() {
                    s.clamp(-1.0, 1.0)
                } else {
                    0.0
                }
            })
            .collect();
        self.encoder
            .push_pcm_f32(&clipped, self.channels, self.rate)
            .map_err(|error| Error::Invalid(format!("cannot encode mp3: {error:?}")))?;
        self.drain(out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.encoder.finish();
        self.drain(out);
        Ok(())
    }

    fn corrections(&self) -> Vec<(u64, Vec<u8>)> {
        // The first frame says how long the stream is.
        let tag = self.encoder.lame_tag_frame();
        tag.map(|tag| vec![(0, tag.to_vec())]).unwrap_or_default()
    }
}
