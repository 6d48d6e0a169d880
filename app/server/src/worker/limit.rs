//! A recording that may not be longer than so many seconds, counted as it is decoded: a small file
//! can hold days of silence.

use audiocpp::audio::{AudioSource, Error, Result};

/// A source that ends with an error beyond its limit.
pub struct Limited<S> {
    inner: S,
    seconds: f64,
    frames: u64,
}

impl<S: AudioSource> Limited<S> {
    /// `inner`, of which at most `seconds` may be read.
    pub fn new(inner: S, seconds: f64) -> Self {
        Limited {
            inner,
            seconds,
            frames: 0,
        }
    }
}

impl<S: AudioSource> AudioSource for Limited<S> {
    fn rate(&self) -> u32 {
        self.inner.rate()
    }

    fn channels(&self) -> u16 {
        self.inner.channels()
    }

    fn duration_hint(&self) -> Option<f64> {
        self.inner.duration_hint()
    }

    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize> {
        let count = self.inner.read(out, max_frames)?;
        self.frames += count as u64;
        if self.frames as f64 > self.seconds * f64::from(self.rate()) {
            return Err(Error::TooLong {
                name: "the recording".into(),
                limit_s: self.seconds,
            });
        }
        Ok(count)
    }

    fn warnings(&mut self) -> Vec<String> {
        self.inner.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use audiocpp::audio::Audio;

    #[test]
    fn the_last_second_is_read_and_no_more() {
        let clip = Audio::new(vec![0.5; 2 * 1000], 1000, 2).unwrap();
        let read = |seconds| {
            let mut source = Limited::new(clip.clone().into_source(), seconds);
            let mut out = Vec::new();
            while source.read(&mut out, 300)? > 0 {}
            Ok::<usize, Error>(out.len())
        };
        assert_eq!(read(1.0).unwrap(), 2000);
        let error = read(0.999).unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error}");
    }
}
