//! `pack.json` and `FILES.sha256` of a pack.

use super::plan::Plan;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::{fs, io, path::Path};

/// ggml's version and plugin interface version, from its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgmlVersion {
    /// Such as 0.26.0.
    pub version: String,
    /// `GGML_BACKEND_API_VERSION`.
    pub api: u64,
}

impl GgmlVersion {
    /// Reads both from ggml's source folder.
    pub fn of(source: &Path) -> Result<GgmlVersion> {
        let read = |name: &str| {
            let path = source.join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let lists = read("CMakeLists.txt")?;
        let part = |name: &str| {
            let begin = format!("set(GGML_VERSION_{name} ");
            lists
                .lines()
                .find_map(|line| {
                    line.trim()
                        .strip_prefix(&begin)?
                        .strip_suffix(')')?
                        .parse::<u64>()
                        .ok()
                })
                .with_context(|| format!("ggml's CMakeLists.txt sets no GGML_VERSION_{name}"))
        };
        let header = read("src/ggml-backend-impl.h")?;
        let api = header
            .lines()
            .find_map(|line| {
                line.trim()
                    .strip_prefix("#define GGML_BACKEND_API_VERSION ")?
                    .trim()
                    .parse()
                    .ok()
            })
            .context("ggml-backend-impl.h defines no GGML_BACKEND_API_VERSION")?;
        Ok(GgmlVersion {
            version: format!("{}.{}.{}", part("MAJOR")?, part("MINOR")?, part("PATCH")?),
            api,
        })
    }
}

/// The manifest's text.
pub fn pack_json(plan: &Plan, ggml: &GgmlVersion) -> String {
    let mut all = Map::new();
    all.insert("name".into(), json!(plan.pack));
    all.insert("backend".into(), json!(plan.backend));
    all.insert("ggml".into(), json!(ggml.version));
    all.insert("api_version".into(), json!(ggml.api));
    if let Some(rocm) = &plan.rocm {
        all.insert("rocm".into(), json!(rocm.version));
        all.insert("gfx_targets".into(), json!(plan.gpu_targets));
    }
    // What the backend was built with; not the paths of the machine that did.
    let options: Map<String, Value> = plan
        .definitions
        .iter()
        .filter(|(key, _)| {
            let own = key.starts_with("GGML_") || *key == "CMAKE_CUDA_ARCHITECTURES";
            own && *key != "GGML_BACKEND_DL"
        })
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    all.insert("options".into(), Value::Object(options));
    format!("{:#}\n", Value::Object(all))
}

/// Writes `FILES.sha256` over every other file in the folder, as `sha256sum -c` reads it.
pub fn write_checksums(folder: &Path) -> Result<()> {
    let name = "FILES.sha256";
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_file() && file != name {
            lines.push(format!("{}  {file}\n", sha256(&path)?));
        }
    }
    lines.sort_by(|a, b| a[64..].cmp(&b[64..]));
    fs::write(folder.join(name), lines.concat())?;
    Ok(())
}

/// The file's sha256 in hexadecimal.
pub fn sha256(path: &Path) -> Result<String> {
    let mut file =
        fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash)?;
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_the_source() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("src")).unwrap();
        fs::write(
            dir.path().join("CMakeLists.txt"),
            "set(GGML_VERSION_MAJOR 0)\nset(GGML_VERSION_MINOR 26)\nset(GGML_VERSION_PATCH 1)\n",
        )
        .unwrap();
        fs::write(
            dir.path().join("src/ggml-backend-impl.h"),
            "    #define GGML_BACKEND_API_VERSION 3\n",
        )
        .unwrap();
        assert_eq!(
            GgmlVersion::of(dir.path()).unwrap(),
            GgmlVersion {
                version: "0.26.1".into(),
                api: 3
            }
        );
        assert!(GgmlVersion::of(&dir.path().join("src")).is_err());
    }

    #[test]
    fn checksums_are_those_of_the_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("b"), "").unwrap();
        fs::write(dir.path().join("a"), "abc").unwrap();
        write_checksums(dir.path()).unwrap();
        write_checksums(dir.path()).unwrap(); // not over itself
        let text = fs::read_to_string(dir.path().join("FILES.sha256")).unwrap();
        assert_eq!(
            text,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
    }
}
