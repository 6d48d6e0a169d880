//! FLAC, block by block.

use flacenc::{
    bitsink::ByteSink,
    component::{BitRepr, Stream, StreamInfo},
    config,
    error::{Verified, Verify},
    source::{Context, Fill, FrameBuf},
};

use super::Encode;
use crate::audio::{Error, Result, wav::integer};

/// Frames of a block.
const BLOCK: usize = 4096;

/// An encoder of one stream.
pub struct Flac {
    config: Verified<config::Encoder>,
    info: StreamInfo,
    context: Context,
    /// Samples that do not fill a block yet, interleaved.
    waiting: Vec<i32>,
    channels: usize,
    bits: u32,
    /// Smallest and largest block in bytes.
    sizes: Option<(usize, usize)>,
}

impl Flac {
    /// Appends the stream's header, without length and checksum, to `out`.
    pub fn new(bits: u16, rate: u32, channels: u16, out: &mut Vec<u8>) -> Result<Self> {
        let mut config = config::Encoder::default();
        config.block_size = BLOCK;
        config.multithread = false;
        let config = config.into_verified().map_err(|(_, error)| failed(error))?;
        let mut info =
            StreamInfo::new(rate as usize, channels.into(), bits.into()).map_err(failed)?;
        info.set_block_sizes(BLOCK, BLOCK).map_err(failed)?;
        out.extend(header(&info)?);
        Ok(Flac {
            config,
            info,
            context: Context::new(bits.into(), channels.into()),
            waiting: Vec::new(),
            channels: channels.into(),
            bits: bits.into(),
            sizes: None,
        })
    }

    /// Appends a block of at most [`BLOCK`] frames.
    fn block(&mut self, samples: &[i32], out: &mut Vec<u8>) -> Result<()> {
        let mut buffer = FrameBuf::with_size(self.channels, BLOCK).map_err(failed)?;
        buffer.fill_interleaved(samples).map_err(failed)?;
        self.context.fill_interleaved(samples).map_err(failed)?;
        let number = self.context.current_frame_number().unwrap_or(0);
        let frame = flacenc::encode_fixed_size_frame(&self.config, &buffer, number, &self.info)
            .map_err(failed)?;
        let mut sink = ByteSink::new();
        frame.write(&mut sink).map_err(failed)?;
        let bytes = sink.as_slice();
        let (least, most) = self.sizes.unwrap_or((bytes.len(), bytes.len()));
        self.sizes = Some((least.min(bytes.len()), most.max(bytes.len())));
        out.extend_from_slice(bytes);
        Ok(())
    }
}

impl Encode for Flac {
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<()> {
        self.waiting
            .extend(samples.iter().map(|sample| integer(*sample, self.bits)));
        let block = BLOCK * self.channels;
        while self.waiting.len() >= block {
            let rest = self.waiting.split_off(block);
            let full = std::mem::replace(&mut self.waiting, rest);
            self.block(&full, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let last = std::mem::take(&mut self.waiting);
        if !last.is_empty() {
            self.block(&last, out)?;
        }
        self.info.set_md5_digest(&self.context.md5_digest());
        self.info.set_total_samples(self.context.total_samples());
        if let Some((least, most)) = self.sizes {
            self.info.set_frame_sizes(least, most).map_err(failed)?;
        }
        Ok(())
    }

    fn corrections(&self) -> Vec<(u64, Vec<u8>)> {
        header(&self.info)
            .map(|bytes| vec![(0, bytes)])
            .unwrap_or_default()
    }
}

/// The magic bytes and the description of the stream.
fn header(info: &StreamInfo) -> Result<Vec<u8>> {
    let mut sink = ByteSink::new();
    Stream::with_stream_info(info.clone())
        .write(&mut sink)
        .map_err(failed)?;
    Ok(sink.as_slice().to_vec())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("cannot encode flac: {error}"))
}
