//! Backend packs: a folder `lib/audiocpp/<name>/` with a plugin, its libraries and `pack.json`.
use super::{gfx::Gfx, kind::BackendType};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Name of the file that makes a folder a pack.
pub const MANIFEST: &str = "pack.json";

/// Name of the file with the checksums of a pack's other files, as `sha256sum -c` reads it.
pub const CHECKSUMS: &str = "FILES.sha256";

/// No honest manifest is longer.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// What `pack.json` says. Keys that are not known here are passed over: a pack may be newer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the pack, such as `rocm_v7`.
    pub name: String,
    /// The backend that its plugin brings.
    pub backend: BackendType,
    /// Version of ggml it was built from.
    pub ggml: String,
    /// Plugin interface version.
    pub api_version: i32,
    /// ROCm version it was built and bundled with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocm: Option<String>,
    /// AMD targets that have kernels in the plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gfx_targets: Vec<String>,
    /// What the plugin was built with, such as `GGML_HIP_NO_VMM`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// A pack found on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pack {
    /// Its folder.
    pub dir: PathBuf,
    /// Its manifest.
    #[serde(flatten)]
    pub manifest: Manifest,
}

/// A folder whose manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The manifest cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The manifest.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The manifest is no JSON of the expected shape.
    #[error("{}: {reason}", path.display())]
    Parse {
        /// The manifest.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
}

/// How a pack's targets and a device's instruction set compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The pack has kernels for the device, or lists no targets.
    Yes,
    /// The device's instruction set is unknown, so nothing can be said.
    Unknown {
        /// Targets of the pack.
        targets: Vec<Gfx>,
    },
    /// The pack has no kernels for the device: loading a model would end the process.
    No {
        /// The device's instruction set.
        gfx: Gfx,
        /// Targets of the pack.
        targets: Vec<Gfx>,
    },
}

impl Pack {
    /// Reads the pack in `dir`.
    pub fn read(dir: &Path) -> Result<Pack, PackError> {
        let path = dir.join(MANIFEST);
        let fail = |source| PackError::Read {
            path: path.clone(),
            source,
        };
        let size = fs::metadata(&path).map_err(fail)?.len();
        let parse = |reason: String| PackError::Parse {
            path: path.clone(),
            reason,
        };
        if size > LARGEST_MANIFEST {
            return Err(parse(format!("{size} bytes are too many for a manifest")));
        }
        let text = fs::read_to_string(&path).map_err(fail)?;
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| parse(error.to_string()))?;
        for target in &manifest.gfx_targets {
            target
                .parse::<Gfx>()
                .map_err(|error| parse(format!("gfx_targets: {error}")))?;
        }
        Ok(Pack {
            dir: dir.to_owned(),
            manifest,
        })
    }

    /// Compares every file with the pack's `FILES.sha256`; returns what is missing or changed,
    /// nothing if all is well or the pack has no such list. Reads the whole pack.
    pub fn verify(&self) -> Vec<String> {
        let Ok(list) = fs::read_to_string(self.dir.join(CHECKSUMS)) else {
            return Vec::new();
        };
        let lines = list.lines().filter_map(|line| line.split_once("  "));
        lines
            .filter_map(|(wanted, name)| {
                // The list comes with the pack; it must not lead out of its folder.
                let plain = Path::new(name).file_name() == Some(name.as_ref());
                let path = self.dir.join(name);
                match sha256(&path) {
                    _ if !plain => Some(format!("{CHECKSUMS} names {name}, outside the pack")),
                    Err(error) => Some(format!("{}: {error}", path.display())),
                    Ok(found) if found != wanted => Some(format!("{} was changed", path.display())),
                    Ok(_) => None,
                }
            })
            .collect()
    }

    /// The AMD targets, without feature suffixes.
    pub fn targets(&self) -> Vec<Gfx> {
        self.manifest
            .gfx_targets
            .iter()
            .filter_map(|target| target.parse().ok())
            .collect()
    }

    /// Compares the pack's targets with a device's instruction set.
    pub fn fit(&self, gfx: Option<Gfx>) -> Fit {
        let targets = self.targets();
        match gfx {
            _ if targets.is_empty() => Fit::Yes,
            None => Fit::Unknown { targets },
            Some(gfx) if targets.contains(&gfx) => Fit::Yes,
            Some(gfx) => Fit::No { gfx, targets },
        }
    }
}

fn sha256(path: &Path) -> io::Result<String> {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut hash)?;
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Target names joined for a message.
pub fn list(targets: &[Gfx]) -> String {
    let names: Vec<String> = targets.iter().map(Gfx::to_string).collect();
    names.join(", ")
}

/// The packs in the subfolders of `dir`, and the folders whose manifest is unusable; in order of
/// their names, numbers compared as numbers, newest first, so that `rocm_v10` precedes `rocm_v7`.
pub fn find(dir: &Path) -> (Vec<Pack>, Vec<PackError>) {
    let mut packs = Vec::new();
    let mut errors = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return (packs, errors);
    };
    for folder in entries.flatten().map(|entry| entry.path()) {
        if !folder.join(MANIFEST).is_file() {
            continue;
        }
        match Pack::read(&folder) {
            Ok(pack) => packs.push(pack),
            Err(error) => errors.push(error),
        }
    }
    packs.sort_by_key(|pack| std::cmp::Reverse(natural_key(&pack.manifest.name)));
    (packs, errors)
}

/// A name cut into text and numbers, so that 10 sorts after 7.
pub(crate) fn natural_key(name: &str) -> Vec<(u64, String)> {
    let mut parts: Vec<(u64, String)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            let number = rest[..digits].parse().unwrap_or(u64::MAX);
            parts.push((number, String::new()));
            rest = &rest[digits..];
        } else {
            let end = rest
                .find(|c: char| c.is_ascii_digit())
                .unwrap_or(rest.len());
            parts.push((0, rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, name: &str, json: &str) {
        let folder = dir.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(MANIFEST), json).unwrap();
    }

    fn manifest(name: &str, targets: &str) -> String {
        format!(
            r#"{{"name":"{name}","backend":"hip","ggml":"0.26.0","api_version":3,"rocm":"7.2.4","gfx_targets":{targets},"options":{{"GGML_HIP_NO_VMM":"ON"}}}}"#
        )
    }

    #[test]
    fn newest_pack_comes_first_and_bad_ones_are_named() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "rocm_v7",
            &manifest("rocm_v7", r#"["gfx1100"]"#),
        );
        write(
            dir.path(),
            "rocm_v10",
            &manifest("rocm_v10", r#"["gfx90a:xnack-"]"#),
        );
        write(dir.path(), "broken", "{");
        write(dir.path(), "strange", &manifest("strange", r#"["sm_90"]"#));
        fs::create_dir(dir.path().join("empty")).unwrap();
        let (packs, errors) = find(dir.path());
        let names: Vec<&str> = packs
            .iter()
            .map(|pack| pack.manifest.name.as_str())
            .collect();
        assert_eq!(names, ["rocm_v10", "rocm_v7"]);
        let mut texts: Vec<String> = errors.iter().map(PackError::to_string).collect();
        texts.sort();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].contains("broken"), "{texts:?}");
        assert!(texts[1].contains("sm_90"), "{texts:?}");
    }

    #[test]
    fn targets_are_compared_exactly() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "p", &manifest("p", r#"["gfx1100","gfx1151"]"#));
        let pack = Pack::read(&dir.path().join("p")).unwrap();
        let gfx = |name: &str| Some(name.parse().unwrap());
        assert_eq!(pack.fit(gfx("gfx1151")), Fit::Yes);
        assert!(matches!(pack.fit(gfx("gfx1150")), Fit::No { targets, .. } if targets.len() == 2));
        assert!(matches!(pack.fit(None), Fit::Unknown { .. }));
        write(dir.path(), "q", &manifest("q", "[]"));
        assert_eq!(
            Pack::read(&dir.path().join("q")).unwrap().fit(None),
            Fit::Yes
        );
    }

    /// The file is what `cargo xtask pack` writes; its tests compare with the same one.
    #[test]
    fn a_manifest_as_the_build_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let text = include_str!("../../tests/data/backend/pack.json");
        write(dir.path(), "rocm_v7", text);
        let pack = Pack::read(&dir.path().join("rocm_v7")).unwrap();
        assert_eq!(pack.manifest.backend, BackendType::Hip);
        assert_eq!(pack.targets().len(), 2);
        assert_eq!(pack.manifest.options["GGML_HIP_HIPBLASLT"], "ON");
    }

    #[test]
    fn damaged_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "p", &manifest("p", "[]"));
        let folder = dir.path().join("p");
        let pack = Pack::read(&folder).unwrap();
        assert!(pack.verify().is_empty());
        fs::write(folder.join("a.so"), "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let list = format!("{abc}  a.so\n{abc}  gone.so\n{abc}  ../p/a.so\n");
        fs::write(folder.join(CHECKSUMS), list).unwrap();
        let problems = pack.verify();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("gone.so") && problems[1].contains("outside"));
        fs::write(folder.join("a.so"), "abd").unwrap();
        assert!(pack.verify()[0].contains("a.so was changed"));
    }

    #[test]
    fn wrong_types_and_huge_files_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "p",
            r#"{"name":"p","backend":"hip","ggml":"0","api_version":"three","newer":[]}"#,
        );
        let error = Pack::read(&dir.path().join("p")).unwrap_err().to_string();
        assert!(error.contains("three"), "{error}");
        write(dir.path(), "h", &" ".repeat(LARGEST_MANIFEST as usize + 1));
        assert!(Pack::read(&dir.path().join("h")).is_err());
        assert!(Pack::read(&dir.path().join("none")).is_err());
    }
}
