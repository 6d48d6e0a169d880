//! Coding: recordings to token files and back.

pub mod args;

use std::{
    fs::File,
    io::{IsTerminal, Read, Write},
    path::Path,
    time::Instant,
};

use audiocpp::engine::{CancelToken, CodecRequest, Codes, Error, Registry, Session, Task};

use self::args::{Decode, Encode, Tokens};
use crate::{
    convert_voice::{self, Job, one_input, request_options},
    failure::{Failure, Outcome},
    model::Choice,
    output,
    transcribe::open,
};

/// Bytes of the largest token file that is read.
const LARGEST: u64 = 1 << 30;

/// Runs the command.
pub fn run(command: &Tokens, registry: &Registry, cancel: &CancelToken) -> Outcome {
    match command {
        Tokens::Encode(args) => encode(args, registry, cancel),
        Tokens::Decode(args) => decode(args, registry, cancel),
    }
}

fn encode(args: &Encode, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let choice = Choice::new(&args.model, Task::Codec, registry)?;
    let options = request_options(&args.request_option, &choice)?;
    let stdout = args.out == Path::new("-");
    let ending = args.out.extension().and_then(|ending| ending.to_str());
    let json = match args.format.as_deref() {
        Some(format) => format == "json",
        None => ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json")),
    };
    match stdout {
        true if !json && std::io::stdout().is_terminal() => {
            return Err(Failure::usage(
                "name a file with --out, or ask for --format json",
            ));
        }
        true => {}
        false => convert_voice::check_folder(&args.out)?,
    }
    let input = one_input(&args.input)?;
    let job = Job::begin(&choice, Task::Codec, cancel)?;
    job.progress.about(&input.name);
    let mut session = job.session(Session::into_codec)?;
    let started = Instant::now();
    let context = job.context();
    let mut source = open(&input).map_err(|error| job.failed(&input, &error))?;
    let codes = session
        .encode(&CodecRequest { options }, &mut source, &context)
        .map_err(|error| job.failed(&input, &error))?;
    job.progress.clear();
    for warning in audiocpp::audio::AudioSource::warnings(&mut source) {
        job.progress.warn(&warning);
    }
    let took = started.elapsed().as_secs_f64();
    let bytes = match json {
        true => codes.to_json().map(|text| (text + "\n").into_bytes()),
        false => codes.to_bytes(),
    };
    write(&args.out, &bytes.map_err(Failure::run)?)?;
    let length = codes.samples as f64 / f64::from(codes.sample_rate.max(1));
    job.tell(&format!(
        "{} tokens of {length:.2} s of sound in {took:.2} s ({:.1} times real time)",
        codes.tokens.len(),
        length / took.max(1e-9)
    ));
    Ok(())
}

/// Writes a whole file or nothing.
fn write(out: &Path, bytes: &[u8]) -> Outcome {
    if out == Path::new("-") {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        return written.map_err(|e| Failure::run(Error::file(Path::new("standard output"), &e)));
    }
    let staged = output::temporary(out).and_then(|(mut file, target)| {
        let written = file.write_all(bytes);
        written.map_err(|error| Error::file(out, &error))?;
        output::keep(file, &target)
    });
    staged.map_err(Failure::run)
}

fn decode(args: &Decode, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let choice = Choice::new(&args.model, Task::Codec, registry)?;
    let options = request_options(&args.request_option, &choice)?;
    let finish = convert_voice::finish(&args.out)?;
    let mut codes = read(&args.input)?;
    let voice = args.voice_from.as_deref().map(convert_voice::reference);
    let voice = voice.transpose()?;
    let job = Job::begin(&choice, Task::Codec, cancel)?;
    job.progress.about(&args.input.display().to_string());
    let mut session = job.session(Session::into_codec)?;
    let started = Instant::now();
    let context = job.context();
    let failed = |error: Error| {
        job.progress.clear();
        Failure::run(error)
    };
    if let Some(voice) = voice {
        codes.global = session.voice(&voice, &context).map_err(failed)?;
    }
    let request = CodecRequest { options };
    let sound = session.decode(&request, &codes, &context).map_err(failed)?;
    job.write(sound, &args.out.out, finish, started)
}

/// Reads a token file.
fn read(path: &Path) -> Outcome<Codes> {
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin()
            .lock()
            .take(LARGEST + 1)
            .read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Failure::setup(Error::file(Path::new(&name), &error)))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::usage(format!("{name}: no token file is so large")));
    }
    Codes::parse(&bytes).map_err(|error| Failure::setup(error.context(name)))
}
