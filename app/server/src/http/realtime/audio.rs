//! Live sound as it arrives: decoding its samples, and a buffer that knows its place in time.

use audiocpp::audio::Audio;
use serde::{Deserialize, Serialize};

/// How live samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum Format {
    /// 16-bit integers, little-endian, mono.
    #[serde(rename = "audio/pcm")]
    Pcm {
        /// Samples a second.
        #[serde(default = "usual_rate")]
        rate: u32,
    },
    /// G.711 µ-law at 8 kHz.
    #[serde(rename = "audio/pcmu")]
    Ulaw,
    /// G.711 A-law at 8 kHz.
    #[serde(rename = "audio/pcma")]
    Alaw,
}

fn usual_rate() -> u32 {
    24_000
}

impl Format {
    /// The format of sessions that name none.
    pub fn usual() -> Self {
        Format::Pcm { rate: usual_rate() }
    }

    /// Samples a second.
    pub fn rate(self) -> u32 {
        match self {
            Format::Pcm { rate } => rate,
            Format::Ulaw | Format::Alaw => 8000,
        }
    }

    /// Appends the samples in `bytes` to `out`; `odd` keeps half a sample for the next time.
    pub fn decode(self, bytes: &[u8], odd: &mut Option<u8>, out: &mut Vec<i16>) {
        match self {
            Format::Ulaw => out.extend(bytes.iter().map(|byte| ulaw(*byte))),
            Format::Alaw => out.extend(bytes.iter().map(|byte| alaw(*byte))),
            Format::Pcm { .. } => {
                let mut bytes = bytes;
                if let (Some(low), [high, rest @ ..]) = (*odd, bytes) {
                    out.push(i16::from_le_bytes([low, *high]));
                    (*odd, bytes) = (None, rest);
                }
                let (pairs, rest) = bytes.as_chunks::<2>();
                out.extend(pairs.iter().map(|pair| i16::from_le_bytes(*pair)));
                if let [low] = rest {
                    *odd = Some(*low);
                }
            }
        }
    }
}

/// G.711, table 2a: sign, exponent and mantissa of the inverted byte, with a bias of 33 (x4).
fn ulaw(byte: u8) -> i16 {
    let byte = !byte;
    let (exponent, mantissa) = ((byte >> 4) & 7, i16::from(byte & 15));
    let size = (((mantissa << 3) + 0x84) << exponent) - 0x84;
    if byte & 0x80 != 0 { -size } else { size }
}

/// G.711, table 1a: every other bit is inverted, the first segment is linear.
fn alaw(byte: u8) -> i16 {
    let byte = byte ^ 0x55;
    let (exponent, mantissa) = ((byte >> 4) & 7, i16::from(byte & 15));
    let size = match exponent {
        0 => (mantissa << 4) + 8,
        _ => ((mantissa << 4) + 0x108) << (exponent - 1),
    };
    if byte & 0x80 != 0 { size } else { -size }
}

/// Sound that was not committed yet.
#[derive(Debug, Default)]
pub struct Buffer {
    /// The samples.
    samples: Vec<i16>,
    /// Samples of the session before the first of them.
    before: u64,
    odd: Option<u8>,
}

impl Buffer {
    /// Appends what `bytes` hold.
    pub fn push(&mut self, format: Format, bytes: &[u8]) {
        format.decode(bytes, &mut self.odd, &mut self.samples);
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.take(self.len());
    }

    /// Takes the first `count` samples away.
    pub fn take(&mut self, count: usize) -> Vec<i16> {
        let count = count.min(self.samples.len());
        self.before += count as u64;
        self.samples.drain(..count).collect()
    }

    /// The samples from `from` to the end.
    pub fn tail(&self, from: usize) -> &[i16] {
        self.samples.get(from..).unwrap_or_default()
    }

    /// The time of a sample in milliseconds since the session began.
    pub fn milliseconds(&self, sample: usize, rate: u32) -> u64 {
        (self.before + sample as u64) * 1000 / u64::from(rate.max(1))
    }
}

/// Samples as a clip.
pub fn clip(samples: &[i16], rate: u32) -> Audio {
    Audio {
        samples: samples.iter().map(|s| f32::from(*s) / 32_768.0).collect(),
        rate,
        channels: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_may_be_cut_anywhere() {
        let bytes: Vec<u8> = (0..2000_i16).flat_map(i16::to_le_bytes).collect();
        for size in [1, 2, 3, 7, 999] {
            let mut buffer = Buffer::default();
            for part in bytes.chunks(size) {
                buffer.push(Format::usual(), part);
            }
            assert!(buffer.tail(0).iter().copied().eq(0..2000_i16), "{size}");
        }
    }

    #[test]
    fn companded_samples_are_those_of_the_standard() {
        // Silence, the ends of the scale and one value of a middle segment of each law.
        assert_eq!(
            [0xff, 0x7f, 0x00, 0x80, 0x9a].map(ulaw),
            [0, 0, -32_124, 32_124, 10_876]
        );
        assert_eq!([0xd5, 0x55, 0x2a, 0xaa].map(alaw), [8, -8, -32_256, 32_256]);
    }

    #[test]
    fn the_buffer_keeps_its_place_in_time() {
        let mut buffer = Buffer::default();
        buffer.push(Format::Pcm { rate: 16_000 }, &[0; 64_000]);
        assert_eq!(buffer.take(16_000).len(), 16_000);
        assert_eq!(
            (buffer.len(), buffer.milliseconds(8000, 16_000)),
            (16_000, 1500)
        );
        buffer.clear();
        assert_eq!(buffer.milliseconds(0, 16_000), 2000);
    }
}
