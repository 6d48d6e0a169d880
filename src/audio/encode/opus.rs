//! Opus in Ogg (RFC 6716 and RFC 7845).

use ogg::writing::{PacketWriteEndInfo, PacketWriter};
use opusic_c::{Application, Bitrate, Channels, Encoder, SampleRate};

use super::Encode;
use crate::audio::{Error, Result};

/// Frames a second of the clock of Ogg Opus.
const CLOCK: u64 = 48_000;

/// Packets a second.
const PACKETS: u64 = 50;

/// Bits a second for each channel.
const BITS: u32 = 48_000;

/// Most bytes of a packet.
const PACKET_BYTES: usize = 1500;

/// Tells streams apart that are chained; ours stand alone.
const SERIAL: u32 = 0x6175_6469;

/// An encoder of one stream.
pub struct Opus {
    encoder: Encoder,
    pages: PacketWriter<'static, Vec<u8>>,
    channels: usize,
    rate: u64,
    /// Samples that do not fill a packet yet, interleaved.
    waiting: Vec<f32>,
    /// The packet before the one that is being made; the last one ends the stream.
    held: Option<Vec<u8>>,
    /// Frames that came in, and packets that were made.
    frames: u64,
    packets: u64,
    /// Frames of the encoder's delay, on the clock.
    skip: u64,
    /// Every call ends a page, so that listeners do not wait.
    streams: bool,
}

impl Opus {
    /// Appends the headers for 1 or 2 channels at a rate of Opus to `out`.
    pub fn new(rate: u32, channels: u16, streams: bool, out: &mut Vec<u8>) -> Result<Self> {
        let layout = if channels == 1 {
            Channels::Mono
        } else {
            Channels::Stereo
        };
        let speed = match rate {
            8000 => SampleRate::Hz8000,
            12_000 => SampleRate::Hz12000,
            16_000 => SampleRate::Hz16000,
            24_000 => SampleRate::Hz24000,
            _ => SampleRate::Hz48000,
        };
        let mut encoder = Encoder::new(layout, speed, Application::Audio).map_err(failed)?;
        encoder
            .set_bitrate(Bitrate::Value(BITS * u32::from(channels)))
            .map_err(failed)?;
        let delay = u64::from(encoder.get_look_ahead().map_err(failed)?);
        let mut opus = Opus {
            encoder,
            pages: PacketWriter::new(Vec::new()),
            channels: channels.into(),
            rate: rate.into(),
            waiting: Vec::new(),
            held: None,
            frames: 0,
            packets: 0,
            skip: delay * CLOCK / u64::from(rate),
            streams,
        };
        opus.headers(rate, channels)?;
        out.append(opus.pages.inner_mut());
        Ok(opus)
    }

    fn headers(&mut self, rate: u32, channels: u16) -> Result<()> {
        let mut head = b"OpusHead\x01".to_vec();
        head.push(channels as u8);
        head.extend((self.skip as u16).to_le_bytes());
        head.extend(rate.to_le_bytes());
        head.extend([0, 0, 0]); // gain, channel mapping
        let vendor = b"audiocpp";
        let mut tags = b"OpusTags".to_vec();
        tags.extend((vendor.len() as u32).to_le_bytes());
        tags.extend(vendor);
        tags.extend(0u32.to_le_bytes());
        for header in [head, tags] {
            self.page(header, PacketWriteEndInfo::EndPage, 0)?;
        }
        Ok(())
    }

    fn page(&mut self, packet: Vec<u8>, end: PacketWriteEndInfo, place: u64) -> Result<()> {
        self.pages
            .write_packet(packet, SERIAL, end, place)
            .map_err(|error| Error::Invalid(format!("cannot write ogg: {error}")))
    }

    /// Frames of a packet at the rate of the encoder.
    fn packet_frames(&self) -> usize {
        (self.rate / PACKETS) as usize
    }

    /// Makes a packet and writes the one before it; `last` says that no other follows soon.
    fn packet(&mut self, samples: &[f32], last: bool) -> Result<()> {
        let mut packet = vec![0; PACKET_BYTES];
        let length = self
            .encoder
            .encode_float_to_slice(samples, &mut packet)
            .map_err(failed)?;
        packet.truncate(length);
        if let Some(before) = self.held.replace(packet) {
            // A page a second: little overhead, little delay.
            let end = if self.packets.is_multiple_of(PACKETS) || self.streams && last {
                PacketWriteEndInfo::EndPage
            } else {
                PacketWriteEndInfo::NormalPacket
            };
            self.page(before, end, self.packets * CLOCK / PACKETS)?;
        }
        self.packets += 1;
        Ok(())
    }
}

impl Encode for Opus {
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<()> {
        let finite = samples.iter().map(|s| if s.is_finite() { *s } else { 0.0 });
        self.waiting.extend(finite);
        self.frames += (samples.len() / self.channels) as u64;
        let size = self.packet_frames() * self.channels;
        while self.waiting.len() >= size {
            let rest = self.waiting.split_off(size);
            let full = std::mem::replace(&mut self.waiting, rest);
            let last = self.waiting.len() < size;
            self.packet(&full, last)?;
        }
        out.append(self.pages.inner_mut());
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        // Silence behind the end, until everything has left the encoder.
        let end = self.skip + self.frames * CLOCK / self.rate;
        let size = self.packet_frames() * self.channels;
        while self.packets * CLOCK / PACKETS < end || self.held.is_none() {
            let mut last = std::mem::take(&mut self.waiting);
            last.resize(size, 0.0);
            self.packet(&last, false)?;
        }
        if let Some(last) = self.held.take() {
            self.page(last, PacketWriteEndInfo::EndStream, end)?;
        }
        out.append(self.pages.inner_mut());
        Ok(())
    }
}

fn failed(error: opusic_c::ErrorCode) -> Error {
    Error::Invalid(format!("cannot encode opus: {}", error.message()))
}
