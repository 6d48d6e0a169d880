//! What a worker is told about its model.

use std::path::{Path, PathBuf};

use audiocpp::engine::{
    Error, LoadOptions, Options, Result, RunContext, Task,
    package::{Catalogue, Located, PullOptions, Store, locate, pull},
};
use serde::{Deserialize, Serialize};

use crate::config::resolve;

/// A model and how to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name in requests and logs.
    pub id: String,
    /// The family that runs it.
    pub family: String,
    /// Where it is.
    pub package: Package,
    /// Fetch it if it is not installed.
    pub pull: bool,
    /// What it is used for.
    pub task: Task,
    /// How it is loaded.
    pub load: LoadOptions,
    /// The family's session options.
    pub session: Options,
    /// What finds speech for a recogniser.
    pub detector: Option<Package>,
    /// Seconds of sound that a recording may have.
    pub max_seconds: f64,
}

/// A model of the catalogue, or one on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Package {
    /// Its id in the catalogue.
    Known(String),
    /// A file or folder.
    Path(PathBuf),
}

impl Package {
    /// What a configuration's `path` means: an id of the catalogue, else a path that starts at the
    /// folder of `file`.
    ///
    /// # Errors
    /// Neither is there (`NotFound`).
    pub fn find(path: &Path, file: &Path) -> Result<Package> {
        let text = path.to_string_lossy();
        if let Some(known) = Package::known(&text) {
            return Ok(known);
        }
        let resolved = resolve(file, path);
        match locate(&resolved.to_string_lossy(), Catalogue::built_in()?) {
            Ok(Located::Path(path)) => Ok(Package::Path(path)),
            Ok(Located::Known(entry)) => Ok(Package::Known(entry.id.clone())),
            Err(error) => Err(error),
        }
    }

    /// The model of the catalogue called `id`.
    pub fn known(id: &str) -> Option<Package> {
        let catalogue = Catalogue::built_in().ok()?;
        let entry = catalogue.find(id)?;
        Some(Package::Known(entry.id.clone()))
    }

    /// Where it is, if it is on this machine.
    pub fn place(&self) -> Option<PathBuf> {
        match self {
            Package::Path(path) => path.exists().then(|| path.clone()),
            Package::Known(id) => {
                let store = Store::of_user().ok()?;
                store.installed(id)?;
                Some(store.folder(id))
            }
        }
    }

    /// Whether it is on this machine.
    pub fn is_installed(&self) -> bool {
        self.place().is_some()
    }

    /// Where it is, after fetching it if need be and allowed.
    ///
    /// # Errors
    /// It is not there (`NotFound`), or cannot be fetched.
    pub fn fetch(&self, allowed: bool, context: &RunContext) -> Result<PathBuf> {
        let id = match self {
            Package::Path(path) => return Ok(path.clone()),
            Package::Known(id) => id,
        };
        let options = PullOptions {
            offline: !allowed,
            ..PullOptions::default()
        };
        let entry = Catalogue::built_in()?.get(id)?;
        let pulled = pull(entry, &Store::of_user()?, &options, context);
        pulled.map(|pulled| pulled.path).map_err(|error| {
            if allowed {
                return error;
            }
            Error::not_found(format!(
                "model `{id}` is not installed: audiocpp_cli models pull {id}, or set \"pull\": true"
            ))
        })
    }

    /// Its id, or its path.
    pub fn shown(&self) -> String {
        match self {
            Package::Known(id) => id.clone(),
            Package::Path(path) => path.display().to_string(),
        }
    }

    /// Bytes of its files: about what the model needs at least. 0 if it is not there.
    pub fn bytes(&self) -> u64 {
        self.place().map_or(0, |place| bytes_below(&place, 4))
    }
}

/// Bytes of a file, or of all files in a folder and `depth` levels of folders in it.
fn bytes_below(path: &Path, depth: usize) -> u64 {
    let Ok(meta) = path.metadata() else {
        return 0;
    };
    if meta.is_file() {
        return meta.len();
    }
    if depth == 0 {
        return 0;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| bytes_below(&entry.path(), depth - 1))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use audiocpp::engine::ErrorClass;

    #[test]
    fn a_path_is_an_id_first_and_then_one_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("m")).unwrap();
        std::fs::write(folder.path().join("m/a.bin"), [0; 700]).unwrap();
        std::fs::create_dir(folder.path().join("m/more")).unwrap();
        std::fs::write(folder.path().join("m/more/b.bin"), [0; 300]).unwrap();
        let file = folder.path().join("server.json");
        let find = |path: &str| Package::find(Path::new(path), &file);
        assert_eq!(
            find("whisper-base"),
            Ok(Package::Known("whisper-base".into()))
        );
        let found = find("m").unwrap();
        assert_eq!(found, Package::Path(folder.path().join("m")));
        assert_eq!(found.bytes(), 1000);
        assert_eq!(find("none").unwrap_err().class, ErrorClass::NotFound);
    }

    #[test]
    fn a_spec_survives_json() {
        let spec = Spec {
            id: "a".into(),
            family: "f".into(),
            package: Package::Path("m".into()),
            pull: true,
            task: Task::Asr,
            load: LoadOptions::default(),
            session: Options::default(),
            detector: Some(Package::Known("silero-vad".into())),
            max_seconds: 60.0,
        };
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<Spec>(&json).unwrap(), spec);
    }
}
