//! Playing sound through a program that is installed.

use std::{
    io::Write,
    process::{Child, ChildStdin, Command, Stdio},
};

use audiocpp::{audio::WavFormat, engine::Error};

/// Names a program that plays a WAV stream from its standard input.
const VARIABLE: &str = "AUDIOCPP_PLAYER";

/// A program that plays a WAV stream from its standard input, and its arguments.
const PLAYERS: [(&str, &[&str]); 4] = [
    ("aplay", &["-q", "-t", "wav", "-"]),
    (
        "ffplay",
        &["-nodisp", "-autoexit", "-loglevel", "error", "-i", "pipe:0"],
    ),
    ("mpv", &["--no-video", "--really-quiet", "-"]),
    ("play", &["-q", "-t", "wav", "-"]),
];

/// A player that is running.
pub struct Player {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
}

impl Player {
    /// Starts the first player that is installed.
    pub fn start(rate: u32, channels: u16) -> Result<Player, Error> {
        let own = std::env::var(VARIABLE)
            .ok()
            .filter(|named| !named.trim().is_empty());
        let own: Option<(String, Vec<String>)> = own.map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            (words.next().unwrap_or_default(), words.collect())
        });
        let known = PLAYERS.map(|(name, args)| {
            (
                name.to_owned(),
                args.iter().map(|arg| (*arg).to_owned()).collect(),
            )
        });
        let candidates: Vec<(String, Vec<String>)> = match own {
            Some(own) => vec![own],
            None => known.into(),
        };
        for (name, args) in &candidates {
            let started = Command::new(name)
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn();
            let Ok(mut child) = started else { continue };
            let input = child.stdin.take();
            let mut player = Player {
                name: name.clone(),
                child,
                input,
            };
            player.send(&audiocpp::audio::stream_header(
                rate,
                channels,
                WavFormat::Pcm16,
            ))?;
            return Ok(player);
        }
        let names: Vec<&str> = candidates.iter().map(|(name, _)| name.as_str()).collect();
        Err(Error::not_found(format!(
            "nothing to play with: wanted one of {}, or a program named in {VARIABLE}",
            names.join(", ")
        )))
    }

    /// Sends samples; a player that is behind is waited for.
    pub fn write(&mut self, samples: &[f32]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        WavFormat::Pcm16.encode(samples, &mut bytes);
        self.send(&bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        let sent = input.write_all(bytes).and_then(|()| input.flush());
        sent.map_err(|error| Error::internal(format!("{} stopped listening: {error}", self.name)))
    }

    /// Waits until everything was played.
    pub fn close(mut self) -> Result<(), Error> {
        self.input = None;
        let status = self
            .child
            .wait()
            .map_err(|error| Error::internal(format!("{}: {error}", self.name)))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::internal(format!(
            "{} ended with {status}: is there a sound device?",
            self.name
        )))
    }
}

impl Drop for Player {
    /// A player of a run that failed is not left playing.
    fn drop(&mut self) {
        if self.input.take().is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
