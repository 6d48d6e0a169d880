//! Finding plugins and loading them, keeping the reason of every failure.
use super::{
    gfx::Gfx,
    kind::BackendType,
    pack::{self, Fit, Pack},
};
use ggml_sys::plugins;
use serde::Serialize;
use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

/// The environment variable that adds folders (or files) to search, separated as in `PATH`.
pub const PATH_VARIABLE: &str = "AUDIOCPP_BACKEND_PATH";

/// Where plugins are looked for, first match first.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Folders and plugin files, in order.
    pub places: Vec<PathBuf>,
}

/// One file that may be a plugin of the wanted kind.
#[derive(Clone, Debug)]
struct Candidate {
    path: PathBuf,
    /// Text after `ggml-NAME-`; none for the plain file.
    variant: Option<String>,
    pack: Option<Pack>,
}

/// What became of one plugin file.
#[derive(Clone, Debug, Serialize)]
pub struct Attempt {
    /// The kind it was tried for.
    pub backend: BackendType,
    /// The file.
    pub path: PathBuf,
    /// Name of the pack it lies in.
    pub pack: Option<String>,
    /// Name of the registry it brought; none if it was not loaded.
    pub registry: Option<String>,
    /// Why it was not loaded.
    pub error: Option<String>,
}

/// What was looked for, where, and what came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// Places that were searched.
    pub searched: Vec<PathBuf>,
    /// Every file that was tried.
    pub attempts: Vec<Attempt>,
    /// Packs that belong to the loaded plugins.
    pub packs: Vec<Pack>,
    /// Pack folders whose manifest is unusable.
    pub bad_packs: Vec<String>,
}

impl LoadReport {
    /// Why no plugin of this kind is loaded: each file's reason, or that there is no file.
    pub fn reason(&self, kind: BackendType) -> String {
        let failures: Vec<String> = self
            .attempts
            .iter()
            .filter(|attempt| attempt.backend == kind)
            .filter_map(|attempt| {
                let error = attempt.error.as_ref()?;
                Some(format!("{}: {error}", attempt.path.display()))
            })
            .collect();
        if !failures.is_empty() {
            return failures.join("; ");
        }
        let names = kind.names().map_or(&[][..], |row| row.plugins);
        let files: Vec<String> = names.iter().map(|name| file_name(name)).collect();
        let places: Vec<String> = self
            .searched
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        format!("no plugin {} in {}", files.join(" or "), places.join(", "))
    }

    /// Whether a plugin of this kind was loaded.
    pub fn loaded(&self, kind: BackendType) -> bool {
        self.attempts
            .iter()
            .any(|attempt| attempt.backend == kind && attempt.registry.is_some())
    }

    /// The pack that a registry's plugin came from.
    pub fn pack_of(&self, registry: &str) -> Option<&Pack> {
        let attempt = self.attempts.iter().find(|attempt| {
            attempt
                .registry
                .as_deref()
                .is_some_and(|name| name.eq_ignore_ascii_case(registry))
        })?;
        let dir = attempt.path.parent()?;
        self.packs.iter().find(|pack| pack.dir == dir)
    }
}

impl Search {
    /// `AUDIOCPP_BACKEND_PATH`, beside the executable, `../lib/audiocpp` from there, and on the
    /// machine that built the program, the build's own folder.
    pub fn standard() -> Search {
        let exe = env::current_exe().ok();
        let build = Path::new(ggml_sys::BUILD_LIB_DIR);
        Search::new(
            env::var_os(PATH_VARIABLE).as_deref(),
            exe.as_deref().and_then(Path::parent),
            build.is_dir().then_some(build),
        )
    }

    /// The same from given parts.
    pub fn new(variable: Option<&OsStr>, exe_dir: Option<&Path>, build: Option<&Path>) -> Search {
        let mut places: Vec<PathBuf> = variable
            .map(|text| env::split_paths(text).collect())
            .unwrap_or_default();
        if let Some(dir) = exe_dir {
            places.push(dir.to_owned());
            if let Some(prefix) = dir.parent() {
                places.push(prefix.join("lib").join("audiocpp"));
            }
        }
        places.extend(build.map(Path::to_owned));
        places.retain(|place| !place.as_os_str().is_empty());
        let mut seen = Vec::new();
        places.retain(|place| {
            let new = !seen.contains(place);
            seen.push(place.clone());
            new
        });
        Search { places }
    }

    /// Every file that may be a plugin called `name`, in search order; packs follow the plain
    /// files of their place.
    fn candidates(&self, kind: BackendType, name: &str) -> Vec<Candidate> {
        let mut list = Vec::new();
        for place in &self.places {
            if place.is_file() {
                if let Some(variant) = variant_of(place, name) {
                    list.push(Candidate {
                        path: place.clone(),
                        variant,
                        pack: None,
                    });
                }
                continue;
            }
            list.extend(plugins_in(place, name, None));
            // A place may itself be a pack.
            let own = Pack::read(place).ok();
            for candidate in &mut list {
                if candidate.path.parent() == Some(place) {
                    candidate.pack = own.clone();
                }
            }
            for pack in pack::find(place).0 {
                if pack.manifest.backend == kind {
                    list.extend(plugins_in(&pack.dir.clone(), name, Some(pack)));
                }
            }
        }
        list
    }

    /// Every file that may be a plugin of this kind, in search order.
    pub fn files(&self, kind: BackendType) -> Vec<PathBuf> {
        let names = kind.names().map_or(&[][..], |row| row.plugins);
        names
            .iter()
            .flat_map(|name| self.candidates(kind, name))
            .map(|candidate| candidate.path)
            .collect()
    }

    /// Pack folders whose manifest is unusable, described.
    fn bad_packs(&self) -> Vec<String> {
        self.places
            .iter()
            .flat_map(|place| pack::find(place).1)
            .map(|error| error.to_string())
            .collect()
    }
}

/// `libggml-NAME.so` on Linux, `ggml-NAME.dll` on Windows.
fn file_name(name: &str) -> String {
    format!(
        "{}ggml-{name}{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    )
}

/// None if `path` is no plugin called `name`; otherwise its variant, none for the plain file.
fn variant_of(path: &Path, name: &str) -> Option<Option<String>> {
    let file = path.file_name()?.to_str()?;
    // CMake gives modules the suffix .so on macOS too.
    let stem = file
        .strip_suffix(env::consts::DLL_SUFFIX)
        .or_else(|| file.strip_suffix(".so"))?;
    let rest = stem
        .strip_prefix(env::consts::DLL_PREFIX)
        .unwrap_or(stem)
        .strip_prefix("ggml-")?
        .strip_prefix(name)?;
    match rest.strip_prefix('-') {
        Some(variant) => Some(Some(variant.to_owned())),
        None => rest.is_empty().then_some(None),
    }
}

fn plugins_in(dir: &Path, name: &str, pack: Option<Pack>) -> Vec<Candidate> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut list: Vec<Candidate> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter_map(|path| {
            let variant = variant_of(&path, name)?;
            let pack = pack.clone();
            path.is_file().then_some(Candidate {
                path,
                variant,
                pack,
            })
        })
        .collect();
    list.sort_by(|a, b| a.path.cmp(&b.path));
    list
}

/// Loads one plugin of each kind that is not loaded yet: the first in search order that works.
///
/// `targets` are the instruction sets of the AMD GPUs present; packs with kernels for one of them
/// are tried before packs without. Of the CPU's variants the one with the best score is taken.
/// In a program with ggml linked in, nothing is loaded and nothing fails for the CPU.
pub fn load(kinds: &[BackendType], search: &Search, targets: &[Gfx]) -> LoadReport {
    plugins::set_logger(log);
    let mut report = LoadReport {
        searched: search.places.clone(),
        bad_packs: search.bad_packs(),
        ..LoadReport::default()
    };
    for &kind in kinds {
        let Some(names) = kind.names() else { continue };
        let known = plugins::registries();
        for name in names.plugins {
            let mut candidates = search.candidates(kind, name);
            candidates.sort_by_key(|candidate| !fits_any(candidate, targets));
            let already = known
                .iter()
                .find(|registry| BackendType::of_registry(registry) == Some(kind));
            if let Some(registry) = already {
                note_loaded(&mut report, kind, registry, &candidates);
                break;
            }
            if load_first(kind, order_by_score(candidates), &mut report) {
                break;
            }
        }
    }
    report
}

/// ggml's messages, as ours. Its information is our debugging aid: it is about ggml's inside.
fn log(level: plugins::LogLevel, text: &str) {
    match level {
        plugins::LogLevel::Error => tracing::error!(target: "ggml", "{text}"),
        plugins::LogLevel::Warn => tracing::warn!(target: "ggml", "{text}"),
        plugins::LogLevel::Info => tracing::debug!(target: "ggml", "{text}"),
        plugins::LogLevel::Debug => tracing::trace!(target: "ggml", "{text}"),
    }
}

fn fits_any(candidate: &Candidate, targets: &[Gfx]) -> bool {
    match &candidate.pack {
        Some(pack) if !targets.is_empty() => {
            targets.iter().any(|gfx| pack.fit(Some(*gfx)) == Fit::Yes)
        }
        _ => true,
    }
}

/// A registry that an earlier call loaded belongs into this call's report too.
fn note_loaded(
    report: &mut LoadReport,
    kind: BackendType,
    registry: &str,
    candidates: &[Candidate],
) {
    let Some(path) = plugins::path_of(registry) else {
        return;
    };
    let same = |candidate: &&Candidate| candidate.path.canonicalize().ok().as_ref() == Some(&path);
    let found = candidates.iter().find(same);
    record(
        report,
        kind,
        found.map_or(path.clone(), |candidate| candidate.path.clone()),
        found.and_then(|candidate| candidate.pack.clone()),
        Ok(registry.to_owned()),
    );
}

/// Puts scored variants of a folder before its plain file, best score first; variants that score
/// 0 or cannot be opened stay at the end so that their reason is reported if all else fails.
fn order_by_score(candidates: Vec<Candidate>) -> Vec<Candidate> {
    if candidates
        .iter()
        .all(|candidate| candidate.variant.is_none())
    {
        return candidates;
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut scored: Vec<(usize, i64, Candidate)> = candidates
        .into_iter()
        .map(|candidate| {
            let folder = candidate.path.parent().unwrap_or(Path::new("")).to_owned();
            let place = folders
                .iter()
                .position(|known| *known == folder)
                .unwrap_or_else(|| {
                    folders.push(folder);
                    folders.len() - 1
                });
            let score = match (&candidate.variant, plugins::score(&candidate.path)) {
                (None, _) => 0,
                (Some(_), Ok(Some(score))) if score > 0 => i64::from(score),
                (Some(_), _) => -1,
            };
            (place, score, candidate)
        })
        .collect();
    scored.sort_by_key(|(place, score, _)| (*place, -score));
    scored
        .into_iter()
        .map(|(_, _, candidate)| candidate)
        .collect()
}

fn load_first(kind: BackendType, candidates: Vec<Candidate>, report: &mut LoadReport) -> bool {
    for candidate in candidates {
        let outcome = plugins::load(&candidate.path).map_err(|error| error.to_string());
        let loaded = outcome.is_ok();
        record(report, kind, candidate.path, candidate.pack, outcome);
        if loaded {
            return true;
        }
    }
    false
}

fn record(
    report: &mut LoadReport,
    backend: BackendType,
    path: PathBuf,
    pack: Option<Pack>,
    outcome: Result<String, String>,
) {
    match &outcome {
        Ok(registry) => {
            tracing::debug!(%backend, registry, path = %path.display(), "backend loaded")
        }
        Err(reason) => {
            tracing::debug!(%backend, reason, path = %path.display(), "backend not loaded");
        }
    }
    let (registry, error) = match outcome {
        Ok(registry) => (Some(registry), None),
        Err(error) => (None, Some(error)),
    };
    report.attempts.push(Attempt {
        backend,
        path,
        pack: pack.as_ref().map(|pack| pack.manifest.name.clone()),
        registry,
        error,
    });
    report.packs.extend(pack);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_order_is_variable_executable_package_build() {
        let variable = env::join_paths(["/a", "/b/libggml-hip.so", "/a"]).unwrap();
        let search = Search::new(
            Some(&variable),
            Some(Path::new("/opt/bin")),
            Some(Path::new("/build/lib")),
        );
        let places: Vec<&str> = search.places.iter().filter_map(|p| p.to_str()).collect();
        assert_eq!(
            places,
            [
                "/a",
                "/b/libggml-hip.so",
                "/opt/bin",
                "/opt/lib/audiocpp",
                "/build/lib"
            ]
        );
        assert!(Search::new(None, None, None).places.is_empty());
    }

    #[test]
    fn file_names_tell_plugin_and_variant() {
        let of = |file: &str, name: &str| variant_of(Path::new(file), name);
        let plain = file_name("cpu");
        assert_eq!(of(&plain, "cpu"), Some(None));
        assert_eq!(of(&plain, "cuda"), None);
        assert_eq!(
            of(&file_name("cpu-haswell"), "cpu"),
            Some(Some("haswell".into()))
        );
        assert_eq!(of(&file_name("cpufoo"), "cpu"), None);
        assert_eq!(of("libggml-cpu.txt", "cpu"), None);
    }

    #[test]
    fn a_missing_plugin_says_what_was_looked_for_and_where() {
        let dir = tempfile::tempdir().unwrap();
        let search = Search {
            places: vec![dir.path().to_owned()],
        };
        let report = load(&[BackendType::Vulkan], &search, &[]);
        assert!(!report.loaded(BackendType::Vulkan));
        let reason = report.reason(BackendType::Vulkan);
        assert!(reason.contains(&file_name("vulkan")), "{reason}");
        assert!(reason.contains(dir.path().to_str().unwrap()), "{reason}");
    }

    #[test]
    fn a_broken_plugin_keeps_the_loaders_text_and_its_pack() {
        let dir = tempfile::tempdir().unwrap();
        let pack = dir.path().join("metal_v1");
        fs::create_dir(&pack).unwrap();
        fs::write(pack.join(file_name("metal")), "not a library").unwrap();
        fs::write(
            pack.join(pack::MANIFEST),
            r#"{"name":"metal_v1","backend":"metal","ggml":"0.26.0","api_version":3}"#,
        )
        .unwrap();
        let search = Search {
            places: vec![dir.path().to_owned()],
        };
        let report = load(&[BackendType::Metal], &search, &[]);
        assert_eq!(report.attempts.len(), 1);
        assert_eq!(report.attempts[0].pack.as_deref(), Some("metal_v1"));
        let reason = report.reason(BackendType::Metal);
        if cfg!(not(feature = "static")) {
            assert!(reason.contains("the loader says"), "{reason}");
        }
        assert!(reason.contains(&file_name("metal")), "{reason}");
    }

    #[test]
    fn the_cpu_is_there_after_loading() {
        let report = load(&[BackendType::Cpu], &Search::standard(), &[]);
        assert!(
            plugins::registries().contains(&"CPU".to_owned()),
            "{report:?}"
        );
        let again = load(&[BackendType::Cpu], &Search::standard(), &[]);
        assert_eq!(
            again.loaded(BackendType::Cpu),
            report.loaded(BackendType::Cpu)
        );
    }

    #[test]
    fn packs_with_kernels_for_the_machine_come_first() {
        let dir = tempfile::tempdir().unwrap();
        for (name, target) in [("rocm_v10", "gfx1201"), ("rocm_v7", "gfx1100")] {
            let pack = dir.path().join(name);
            fs::create_dir(&pack).unwrap();
            fs::write(pack.join(file_name("hip")), "").unwrap();
            fs::write(
                pack.join(pack::MANIFEST),
                format!(r#"{{"name":"{name}","backend":"hip","ggml":"0.26.0","api_version":3,"gfx_targets":["{target}"]}}"#),
            )
            .unwrap();
        }
        let search = Search {
            places: vec![dir.path().to_owned()],
        };
        let tried = |targets: &[Gfx]| -> Vec<String> {
            let report = load(&[BackendType::Hip], &search, targets);
            report.attempts.into_iter().filter_map(|a| a.pack).collect()
        };
        assert_eq!(tried(&[]), ["rocm_v10", "rocm_v7"]);
        assert_eq!(
            tried(&["gfx1100".parse().unwrap()]),
            ["rocm_v7", "rocm_v10"]
        );
    }
}
