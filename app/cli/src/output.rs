//! Writing results: whole or not at all.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use audiocpp::engine::Error;
use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome};

/// Prints `text` on standard output; a reader that went away ends the program quietly.
pub fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::reported()),
        Err(error) => Err(Failure::run(Error::internal(format!(
            "standard output: {error}"
        )))),
    }
}

/// A temporary file beside `path`, and the name that it will get.
pub fn temporary(path: &Path) -> Result<(NamedTempFile, PathBuf), Error> {
    // A link is followed, so that its target is replaced and not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let file = builder()
        .tempfile_in(folder)
        .map_err(|error| refuse(path, &error))?;
    Ok((file, target))
}

/// Gives a finished temporary file its name.
pub fn keep(file: NamedTempFile, target: &Path) -> Result<(), Error> {
    let kept = file.persist(target);
    kept.map(drop).map_err(|error| refuse(target, &error.error))
}

/// Writes all of `files`, or none: each is prepared beside its place first, so that a name never
/// stands for half a result. Pipes and devices are written to directly.
pub fn write_all(files: &[(&Path, String)]) -> Result<(), Error> {
    let staged = files
        .iter()
        .map(|(path, text)| stage(path, text))
        .collect::<Result<Vec<_>, Error>>()?;
    for (file, target) in staged.into_iter().flatten() {
        keep(file, &target)?;
    }
    Ok(())
}

fn refuse(path: &Path, error: &std::io::Error) -> Error {
    Error::file(path, error).context("cannot write")
}

/// A finished temporary file and the name that it will get; nothing for pipes and devices.
fn stage(path: &Path, text: &str) -> Result<Option<(NamedTempFile, PathBuf)>, Error> {
    let refuse = |error: std::io::Error| refuse(path, &error);
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        let mut file = File::options().write(true).open(path).map_err(refuse)?;
        file.write_all(text.as_bytes()).map_err(refuse)?;
        return Ok(None);
    }
    let (mut file, target) = temporary(path)?;
    file.write_all(text.as_bytes()).map_err(refuse)?;
    Ok(Some((file, target)))
}

/// Temporary files with the rights of ordinary new files, not the private ones of secrets.
fn builder() -> tempfile::Builder<'static, 'static> {
    #[allow(unused_mut)]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "a long old text").unwrap();
        write_all(&[(&path, "new".into())]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let plain = folder.path().join("plain");
            fs::write(&plain, "x").unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), mode(&plain));
        }
        let missing = folder.path().join("no/such/a.txt");
        let other = folder.path().join("other");
        let error = write_all(&[(&other, "x".into()), (&missing, "x".into())]).unwrap_err();
        assert!(error.message.starts_with("cannot write"), "{error}");
        assert!(!other.exists(), "one failed, so none is written");
    }
}
