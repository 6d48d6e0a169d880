//! Sound that has to be heard twice: on disk while its level is measured.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
};

use super::{StemPlan, TrackLevel, lane::groups};
use crate::{
    audio::{self, AudioSource, Resampler},
    engine::{
        RunContext, Unit,
        error::{Error, Result},
    },
};

/// Frames that are read at a time.
const BLOCK: usize = 16 * 1024;

/// A whole sound in an anonymous temporary file, read from its first frame.
pub(super) struct Spool {
    file: BufReader<File>,
    rate: u32,
    channels: u16,
    frames_left: u64,
    duration: f64,
    warnings: Vec<String>,
}

impl Spool {
    /// Copies `source` to disk, and measures each group of channels as the network of `plan` is
    /// going to hear it.
    pub fn measure(
        source: &mut dyn AudioSource,
        plan: StemPlan,
        context: &RunContext,
    ) -> Result<(Spool, Vec<TrackLevel>)> {
        let (rate, channels) = (source.rate(), source.channels());
        let total = source.duration_hint();
        let mut groups = groups(channels, plan.channels)
            .map(|group| Ok((group, Resampler::new(rate, plan.rate, 1)?, Sums::default())))
            .collect::<audio::Result<Vec<_>>>()?;
        let mut file = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        let (mut frames, mut mono, mut heard) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0u64;
        loop {
            context.check()?;
            let done = count as f64 / f64::from(rate);
            context.progress("measure", done, total, Unit::Seconds);
            frames.clear();
            let read = source.read(&mut frames, BLOCK)?;
            for (group, resampler, sums) in &mut groups {
                mono.clear();
                let scale = 1.0 / group.len() as f32;
                let means = frames.chunks_exact(channels.into());
                mono.extend(means.map(|f| f[group.clone()].iter().sum::<f32>() * scale));
                heard.clear();
                match read {
                    0 => resampler.finish(&mut heard)?,
                    _ => resampler.push(&mono, &mut heard)?,
                }
                sums.add(&heard);
            }
            if read == 0 {
                break;
            }
            file.write_all(bytemuck::cast_slice(&frames))
                .map_err(failed)?;
            count += read as u64;
        }
        let mut file = file.into_inner().map_err(|e| failed(e.into_error()))?;
        file.rewind().map_err(failed)?;
        let levels = groups.iter().map(|(_, _, sums)| sums.level()).collect();
        let spool = Spool {
            file: BufReader::new(file),
            rate,
            channels,
            frames_left: count,
            duration: count as f64 / f64::from(rate),
            warnings: source.warnings(),
        };
        Ok((spool, levels))
    }
}

fn failed(error: io::Error) -> Error {
    Error::internal(format!("temporary file of the sound: {error}"))
}

impl AudioSource for Spool {
    fn rate(&self) -> u32 {
        self.rate
    }
    fn channels(&self) -> u16 {
        self.channels
    }
    fn duration_hint(&self) -> Option<f64> {
        Some(self.duration)
    }
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> audio::Result<usize> {
        let frames = self.frames_left.min(max_frames as u64) as usize;
        let start = out.len();
        out.resize(start + frames * usize::from(self.channels), 0.0);
        let bytes = bytemuck::cast_slice_mut(&mut out[start..]);
        self.file
            .read_exact(bytes)
            .map_err(|source| audio::Error::Read {
                name: "temporary file of the sound".into(),
                source,
            })?;
        self.frames_left -= frames as u64;
        Ok(frames)
    }
    fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// Sums of a stream of samples.
#[derive(Default)]
struct Sums {
    count: f64,
    values: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, samples: &[f32]) {
        self.count += samples.len() as f64;
        for &sample in samples {
            self.values += f64::from(sample);
            self.squares += f64::from(sample) * f64::from(sample);
        }
    }

    fn level(&self) -> TrackLevel {
        let mean = self.values / self.count.max(1.0);
        let variance = (self.squares - self.count * mean * mean) / (self.count - 1.0).max(1.0);
        TrackLevel {
            mean: mean as f32,
            deviation: variance.max(0.0).sqrt() as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::Audio;

    #[test]
    fn a_spooled_sound_is_the_same_and_measured() {
        let samples: Vec<f32> = (0..60_000)
            .map(|i| ((i * 7) % 100) as f32 / 100.0)
            .collect();
        let clip = Audio::new(samples.clone(), 44_100, 2).unwrap();
        let plan = StemPlan {
            rate: 44_100,
            channels: 2,
            measures: true,
        };
        let mut source = clip.clone().into_source();
        let (mut spool, levels) = Spool::measure(&mut source, plan, &RunContext::new()).unwrap();
        assert_eq!(Audio::from_source(&mut spool, None).unwrap(), clip);
        let mono = clip.to_mono().samples;
        let mean = mono.iter().sum::<f32>() / mono.len() as f32;
        let squares: f32 = mono.iter().map(|x| (x - mean).powi(2)).sum();
        let deviation = (squares / (mono.len() - 1) as f32).sqrt();
        assert_eq!(levels.len(), 1);
        assert!((levels[0].mean - mean).abs() < 1e-5, "{levels:?} {mean}");
        assert!((levels[0].deviation - deviation).abs() < 1e-5, "{levels:?}");
    }
}
