//! WAV files and raw samples.

use super::Encode;
use crate::audio::{Result, WavFormat, stream_header};

/// A WAV file: the header of a stream first, true sizes in the end.
pub struct Wav {
    form: WavFormat,
    /// Bytes of samples so far.
    data: u64,
    padded: bool,
}

impl Wav {
    /// Appends the header to `out`.
    pub fn new(form: WavFormat, rate: u32, channels: u16, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(&stream_header(rate, channels, form));
        Wav {
            form,
            data: 0,
            padded: false,
        }
    }
}

impl Encode for Wav {
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        self.form.encode(samples, out);
        self.data += (out.len() - before) as u64;
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        // Chunks are padded to an even length.
        self.padded = !self.data.is_multiple_of(2);
        if self.padded {
            out.push(0);
        }
        Ok(())
    }

    fn corrections(&self) -> Vec<(u64, Vec<u8>)> {
        // More than 4 GiB cannot be said: such files stay "until the end".
        let size = |bytes: u64| {
            u32::try_from(bytes)
                .unwrap_or(u32::MAX)
                .to_le_bytes()
                .to_vec()
        };
        let riff = self.data + 36 + u64::from(self.padded);
        vec![(4, size(riff)), (40, size(self.data))]
    }
}

/// Samples alone.
pub struct Raw(pub WavFormat);

impl Encode for Raw {
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<()> {
        self.0.encode(samples, out);
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}
