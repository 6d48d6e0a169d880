//! Stems on their way into files.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use audiocpp::{
    audio::{AudioFormat, AudioWriter},
    engine::{CancelToken, Error, Event, EventSink, Stem},
};
use tempfile::NamedTempFile;

use super::{
    args::ClipMode,
    names::{Names, refuse_input},
};
use crate::{output, progress::Progress};

/// Level at which clamped samples are cut off.
const CLAMPED: f32 = 0.99;
/// A rescaled stem stays this much below full scale.
const ROOM: f32 = 1.01;
/// Samples that are read back at a time.
const BLOCK: usize = 1 << 16;

/// How stems are written, and what has to be left alone.
pub struct Manner {
    /// Names of the files.
    pub names: Names,
    /// Form of the sound.
    pub format: AudioFormat,
    /// What becomes of samples beyond full scale.
    pub clip: ClipMode,
    /// Files that are read, with their whole names.
    pub read: Vec<PathBuf>,
}

/// The stems of one track. They get their names when all of them are whole.
#[derive(Default)]
pub struct Writers {
    stems: Vec<StemWriter>,
}

impl Writers {
    /// Opens a file for each of `stems`, in folders that are made for them.
    fn open(manner: &Manner, track: &str, stems: &[Stem]) -> Result<Writers, Error> {
        let open = |stem: &Stem| {
            let path = manner.names.path(track, &stem.name);
            refuse_input(&path, &manner.read)?;
            if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
                std::fs::create_dir_all(folder)
                    .map_err(|e| Error::file(folder, &e).context("cannot make the folder"))?;
            }
            StemWriter::new(path, manner, stem)
        };
        Ok(Writers {
            stems: stems.iter().map(open).collect::<Result<_, _>>()?,
        })
    }

    fn write(&mut self, stems: &[Stem]) -> Result<(), Error> {
        for (writer, stem) in self.stems.iter_mut().zip(stems) {
            writer.write(&stem.audio.samples)?;
        }
        Ok(())
    }

    /// Finishes all files and gives them their names. Returns the names, and a note on each stem
    /// that was made quieter.
    pub fn close(self) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
        let mut notes = Vec::new();
        let mut whole = Vec::new();
        for stem in self.stems {
            let (name, path) = (stem.name.clone(), stem.path.clone());
            let (file, target, factor) = stem.finish()?;
            if factor < 1.0 {
                notes.push(format!(
                    "{name} was louder than full scale, and is made quieter by {:.1} dB",
                    -20.0 * factor.log10()
                ));
            }
            whole.push((file, target, path));
        }
        let mut paths = Vec::new();
        for (file, target, path) in whole {
            output::keep(file, &target)?;
            paths.push(path);
        }
        Ok((paths, notes))
    }
}

/// One stem on its way into its file.
struct StemWriter {
    name: String,
    path: PathBuf,
    staged: NamedTempFile,
    target: PathBuf,
    writer: AudioWriter,
    clip: ClipMode,
    /// Samples that wait for their peak to be known, where that decides about their level.
    waiting: Option<BufWriter<File>>,
    peak: f32,
    buffer: Vec<f32>,
}

impl StemWriter {
    fn new(path: PathBuf, manner: &Manner, stem: &Stem) -> Result<StemWriter, Error> {
        let (staged, target) = output::temporary(&path)?;
        let handle = staged.reopen().map_err(|e| Error::file(&path, &e))?;
        let shown = path.display().to_string();
        let (rate, channels) = (stem.audio.rate, stem.audio.channels);
        let waiting = match manner.clip {
            ClipMode::Rescale => {
                let folder = target.parent().unwrap_or(Path::new("."));
                let file = tempfile::tempfile_in(folder).map_err(|e| Error::file(&path, &e))?;
                Some(BufWriter::new(file))
            }
            ClipMode::Clamp | ClipMode::None => None,
        };
        Ok(StemWriter {
            name: stem.name.clone(),
            writer: AudioWriter::file(handle, &shown, manner.format, rate, channels)?,
            path,
            staged,
            target,
            clip: manner.clip,
            waiting,
            peak: 0.0,
            buffer: Vec::new(),
        })
    }

    fn write(&mut self, samples: &[f32]) -> Result<(), Error> {
        if let Some(waiting) = &mut self.waiting {
            self.peak = samples.iter().fold(self.peak, |peak, s| peak.max(s.abs()));
            self.buffer.clear();
            self.buffer.extend_from_slice(samples);
            let bytes = self.buffer.iter().flat_map(|s| s.to_le_bytes());
            let bytes: Vec<u8> = bytes.collect();
            let written = waiting.write_all(&bytes);
            return written.map_err(|e| Error::file(&self.path, &e));
        }
        if self.clip == ClipMode::None {
            return Ok(self.writer.write(samples)?);
        }
        self.buffer.clear();
        let clamped = samples.iter().map(|s| s.clamp(-CLAMPED, CLAMPED));
        self.buffer.extend(clamped);
        Ok(self.writer.write(&self.buffer)?)
    }

    /// The file, the name that it will get, and the factor of its level.
    fn finish(mut self) -> Result<(NamedTempFile, PathBuf, f32), Error> {
        let factor = 1.0 / (ROOM * self.peak).max(1.0);
        if let Some(waiting) = self.waiting.take() {
            let failed = |e: std::io::Error| Error::file(&self.path, &e);
            let mut file = waiting.into_inner().map_err(|e| failed(e.into_error()))?;
            file.rewind().map_err(failed)?;
            let mut file = BufReader::new(file);
            let mut bytes = vec![0; 4 * BLOCK];
            loop {
                let read = fill(&mut file, &mut bytes).map_err(failed)?;
                if read == 0 {
                    break;
                }
                let (words, _) = bytes[..read].as_chunks::<4>();
                self.buffer.clear();
                let scaled = words.iter().map(|word| factor * f32::from_le_bytes(*word));
                self.buffer.extend(scaled);
                self.writer.write(&self.buffer)?;
            }
        }
        self.writer.finish()?;
        Ok((self.staged, self.target, factor))
    }
}

/// Reads until `to` is full or there is no more.
fn fill(from: &mut impl Read, to: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < to.len() {
        match from.read(&mut to[read..]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Passes events to the display, and stems to their files; a failure there stops the run.
pub struct Separating {
    progress: Arc<Progress>,
    cancel: CancelToken,
    manner: Arc<Manner>,
    track: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failed: Option<Error>,
    writers: Option<Writers>,
}

impl Separating {
    /// For the stems of `track`; `cancel` is that of the run alone.
    pub fn new(
        progress: Arc<Progress>,
        cancel: CancelToken,
        manner: Arc<Manner>,
        track: &str,
    ) -> Arc<Separating> {
        Arc::new(Separating {
            progress,
            cancel,
            manner,
            track: track.to_owned(),
            state: Mutex::default(),
        })
    }

    /// Writes the next stretch, opening the files for the first one.
    pub fn take(&self, stems: &[Stem]) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        let State { failed, writers } = &mut *state;
        if failed.is_some() {
            return;
        }
        let opened = match writers {
            Some(writers) => Ok(writers),
            none => Writers::open(&self.manner, &self.track, stems).map(|new| none.insert(new)),
        };
        if let Err(error) = opened.and_then(|writers| writers.write(stems)) {
            *failed = Some(error);
            self.cancel.cancel();
        }
    }

    /// What went wrong with the files, if anything did.
    pub fn failure(&self) -> Option<Error> {
        self.state.lock().ok()?.failed.take()
    }

    /// The files, or what went wrong with them.
    pub fn end(&self) -> Result<Writers, Error> {
        let lost = || Error::internal("the stems' files are gone");
        let mut state = self.state.lock().map_err(|_| lost())?;
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(state.writers.take().unwrap_or_default()),
        }
    }
}

impl EventSink for Separating {
    fn event(&self, event: Event) {
        match event {
            Event::Stems { stems } => self.take(&stems),
            other => self.progress.event(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use audiocpp::audio::{Audio, Codec, WavFormat};

    use super::*;

    fn written(clip: ClipMode, samples: &[f32]) -> (Vec<f32>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let names = Names::new(folder.path(), "{track}/{stem}.{ext}", "m", "wav").unwrap();
        let manner = Manner {
            names,
            format: AudioFormat {
                codec: Codec::Wav(WavFormat::F32),
                rate: None,
            },
            clip,
            read: Vec::new(),
        };
        let progress = Progress::new();
        let separating =
            Separating::new(progress, CancelToken::default(), Arc::new(manner), "song");
        for part in samples.chunks(3) {
            separating.take(&[Stem {
                name: "bass".into(),
                audio: Audio::new(part.to_vec(), 8000, 1).unwrap(),
            }]);
        }
        let (paths, notes) = separating.end().unwrap().close().unwrap();
        assert_eq!(paths, [folder.path().join("song/bass.wav")]);
        assert_eq!(
            std::fs::read_dir(folder.path().join("song"))
                .unwrap()
                .count(),
            1
        );
        (Audio::open(&paths[0]).unwrap().samples, notes)
    }

    #[test]
    fn loud_stems_are_scaled_cut_or_left() {
        let loud = [0.5, -2.0, 1.5, 0.1];
        let (scaled, notes) = written(ClipMode::Rescale, &loud);
        let wanted = loud.map(|x| x / 2.02);
        assert!(scaled.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6));
        assert!(notes[0].contains("quieter by 6.1 dB"), "{notes:?}");
        assert_eq!(written(ClipMode::Clamp, &loud).0, [0.5, -0.99, 0.99, 0.1]);
        assert_eq!(written(ClipMode::None, &loud).0, loud);
        let quiet = [0.5, -0.98];
        assert_eq!(written(ClipMode::Rescale, &quiet), (quiet.to_vec(), vec![]));
    }
}
