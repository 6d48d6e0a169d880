//! The folder on this machine where pulled models live.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    catalogue::{Catalogue, Entry, File},
    digest::sha256_of_file,
};
use crate::engine::{Error, Result, RunContext, hint};

/// Name of the file that lists a package's files; it is written last.
const MANIFEST: &str = "audiocpp-package.json";

/// What was installed, from where, and what its files must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Catalogue id.
    pub id: String,
    /// Family that runs it.
    pub family: String,
    /// Where the files came from.
    pub source: String,
    /// The files.
    pub files: Vec<File>,
}

/// A model that a command named: where it is, and what it is called.
#[derive(Clone, Debug, PartialEq)]
pub enum Located<'a> {
    /// A file or folder on disk.
    Path(PathBuf),
    /// A model of the catalogue, installed or not.
    Known(&'a Entry),
}

/// The folder of pulled models: `<root>/models/<id>/`.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The user's store: `$AUDIOCPP_HOME`, else the platform's cache folder.
    pub fn of_user() -> Result<Store> {
        if let Some(home) = env::var_os("AUDIOCPP_HOME").filter(|home| !home.is_empty()) {
            return Ok(Store::at(home));
        }
        let folders = directories::ProjectDirs::from("", "", "audiocpp").ok_or_else(|| {
            Error::not_found("no home folder to keep models in: set AUDIOCPP_HOME to a folder")
        })?;
        Ok(Store::at(folders.cache_dir()))
    }

    /// A store in the folder `root`, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Store {
        Store { root: root.into() }
    }

    /// Where the models are.
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// Where the model called `id` is when it is installed.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.models().join(id)
    }

    /// Where an unfinished download of `id` is kept.
    pub(super) fn staging(&self, id: &str) -> PathBuf {
        self.models().join(".partial").join(id)
    }

    /// The manifest of `id`, if it is installed with every file at its size.
    pub fn installed(&self, id: &str) -> Option<Manifest> {
        let folder = self.folder(id);
        let manifest: Manifest =
            serde_json::from_slice(&fs::read(folder.join(MANIFEST)).ok()?).ok()?;
        let whole = |file: &File| {
            fs::metadata(folder.join(&file.name)).is_ok_and(|meta| meta.len() == file.size)
        };
        manifest.files.iter().all(whole).then_some(manifest)
    }

    /// Hashes every file of `id`; the error names the first that is missing or changed.
    pub fn verify(&self, id: &str, context: &RunContext) -> Result<Manifest> {
        let folder = self.folder(id);
        let manifest = self.installed(id).ok_or_else(|| {
            Error::not_found(format!(
                "model `{id}` is not installed whole: audiocpp_cli models pull {id}"
            ))
        })?;
        for file in &manifest.files {
            let found = sha256_of_file(&folder.join(&file.name), context)?;
            if found != file.sha256 {
                return Err(Error::model(format!(
                    "{}: sha256 {found}, wanted {}: audiocpp_cli models rm {id}, then pull it again",
                    folder.join(&file.name).display(),
                    file.sha256
                )));
            }
        }
        Ok(manifest)
    }

    /// Removes `id` and what is left of its downloads; returns whether there was anything.
    pub fn remove(&self, id: &str) -> Result<bool> {
        let mut found = false;
        for folder in [self.folder(id), self.staging(id)] {
            match fs::remove_dir_all(&folder) {
                Ok(()) => found = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::file(&folder, &error)),
            }
        }
        Ok(found)
    }

    /// Writes the manifest into `staged` and gives that folder its name in one step.
    pub(super) fn adopt(&self, staged: &Path, manifest: &Manifest) -> Result<PathBuf> {
        let json = serde_json::to_vec_pretty(manifest)
            .map_err(|error| Error::internal(format!("manifest of {}: {error}", manifest.id)))?;
        let path = staged.join(MANIFEST);
        fs::write(&path, json).map_err(|error| Error::file(&path, &error))?;
        let target = self.folder(&manifest.id);
        if target.exists() {
            fs::remove_dir_all(&target).map_err(|error| Error::file(&target, &error))?;
        }
        fs::rename(staged, &target).map_err(|error| Error::file(&target, &error))?;
        Ok(target)
    }
}

/// What `name` means where a model is asked for: an id of the catalogue first, then a path.
///
/// A folder with the name of a catalogue model is reached as `./name`. The root folder of a
/// model in Hugging Face's own cache stands for its newest snapshot.
pub fn locate<'a>(name: &str, catalogue: &'a Catalogue) -> Result<Located<'a>> {
    if let Some(entry) = catalogue.find(name) {
        return Ok(Located::Known(entry));
    }
    let path = Path::new(name);
    if path.exists() {
        return Ok(Located::Path(
            hub_snapshot(path).unwrap_or_else(|| path.to_owned()),
        ));
    }
    if name.contains(['/', '\\']) || path.is_absolute() {
        return Err(Error::not_found(format!(
            "no model file or folder at {name}"
        )));
    }
    let ids = catalogue.models.iter().map(|entry| entry.id.as_str());
    Err(Error::not_found(format!(
        "`{name}` is neither a model of the catalogue nor a file or folder{}",
        hint(name, ids)
    )))
}

/// `models--owner--name/snapshots/<commit>` for a folder laid out like Hugging Face's cache.
fn hub_snapshot(path: &Path) -> Option<PathBuf> {
    let snapshots = path.join("snapshots");
    if let Ok(commit) = fs::read_to_string(path.join("refs").join("main")) {
        let named = snapshots.join(commit.trim());
        if named.is_dir() {
            return Some(named);
        }
    }
    let entries = fs::read_dir(snapshots).ok()?;
    let dated = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    entries
        .flatten()
        .filter_map(dated)
        .filter(|(_, path)| path.is_dir())
        .max()
        .map(|(_, p)| p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ErrorClass;

    #[test]
    fn ids_come_before_paths_and_slips_are_hinted() {
        let catalogue = Catalogue::built_in().unwrap();
        let Located::Known(entry) = locate("whisper-base", catalogue).unwrap() else {
            panic!("an id is not a path");
        };
        assert_eq!(entry.id, "whisper-base");
        let error = locate("whisper-bsae", catalogue).unwrap_err();
        assert_eq!(error.class, ErrorClass::NotFound);
        assert!(
            error.message.contains("did you mean `whisper-base`"),
            "{error}"
        );
        let error = locate("no/such/folder", catalogue).unwrap_err();
        assert_eq!(error.message, "no model file or folder at no/such/folder");
    }

    #[test]
    fn the_hubs_cache_folder_stands_for_its_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("models--a--b");
        fs::create_dir_all(root.join("snapshots/0123")).unwrap();
        fs::create_dir_all(root.join("refs")).unwrap();
        fs::write(root.join("refs/main"), "0123\n").unwrap();
        let located = locate(root.to_str().unwrap(), Catalogue::built_in().unwrap()).unwrap();
        assert_eq!(located, Located::Path(root.join("snapshots/0123")));
    }

    #[test]
    fn a_package_is_installed_only_while_its_files_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let staged = store.staging("m");
        fs::create_dir_all(&staged).unwrap();
        fs::write(staged.join("a.bin"), b"abc").unwrap();
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned();
        let file = File {
            name: "a.bin".into(),
            size: 3,
            sha256,
            members: Vec::new(),
        };
        let manifest = Manifest {
            id: "m".into(),
            family: "f".into(),
            source: "test".into(),
            files: vec![file],
        };
        let target = store.adopt(&staged, &manifest).unwrap();
        assert_eq!(store.installed("m"), Some(manifest));
        assert!(store.verify("m", &RunContext::new()).is_ok());
        fs::write(target.join("a.bin"), b"abd").unwrap();
        assert_eq!(
            store.verify("m", &RunContext::new()).unwrap_err().class,
            ErrorClass::Model
        );
        fs::write(target.join("a.bin"), b"ab").unwrap();
        assert_eq!(store.installed("m"), None);
        assert!(store.remove("m").unwrap() && !target.exists());
        assert!(!store.remove("m").unwrap());
    }
}
