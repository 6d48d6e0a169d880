//! The vendor's runtime libraries: which copies there are, which one the loader takes, and for
//! which instruction sets the BLAS libraries have kernels.
use super::Host;
use crate::backend::{gfx::Gfx, pack::natural_key};
use serde::Serialize;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The libraries that a HIP plugin needs, without suffix.
pub const FAMILIES: [&str; 5] = [
    "libamdhip64",
    "libhsa-runtime64",
    "libhipblas",
    "librocblas",
    "libhipblaslt",
];

/// One copy of a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copy {
    /// The path as on the machine.
    pub path: String,
    /// Version from the real file's name, such as `7.2.70204`.
    pub version: Option<String>,
    /// Whether the folder is one that the loader searches.
    pub searched: bool,
}

/// Every copy of one library, in the loader's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its name without suffix.
    pub name: &'static str,
    /// The copies; the first one that is searched wins.
    pub copies: Vec<Copy>,
    /// The copy that this process has mapped; none if it has none.
    pub mapped: Option<String>,
}

impl Library {
    /// The copy that the loader takes.
    pub fn winner(&self) -> Option<&Copy> {
        self.copies.iter().find(|copy| copy.searched)
    }
}

/// Folders in the loader's order: `LD_LIBRARY_PATH`, the plugins' own, the configured ones; then,
/// marked `false`, ROCm installations that the loader does not know.
fn folders(host: &Host, plugin_dirs: &[PathBuf]) -> Vec<(PathBuf, bool)> {
    let mut list: Vec<(PathBuf, bool)> = Vec::new();
    let mut add = |path: PathBuf, searched: bool| {
        if path.is_dir() && !list.iter().any(|(known, _)| *known == path) {
            list.push((path, searched));
        }
    };
    let variable = host.variable("LD_LIBRARY_PATH").unwrap_or_default();
    for part in variable.split(':').filter(|part| !part.is_empty()) {
        add(host.path(part), true);
    }
    for dir in plugin_dirs {
        add(dir.clone(), true);
    }
    for dir in configured(host) {
        add(host.path(&dir), true);
    }
    for dir in roots(host) {
        add(host.path(&format!("{dir}/lib")), false);
    }
    list
}

/// The loader's configuration and its built-in folders.
fn configured(host: &Host) -> Vec<String> {
    let mut files = vec!["/etc/ld.so.conf".to_owned()];
    for name in host.names("/etc/ld.so.conf.d") {
        files.push(format!("/etc/ld.so.conf.d/{name}"));
    }
    let mut dirs = Vec::new();
    for file in files {
        let text = host.read(&file).unwrap_or_default();
        dirs.extend(
            text.lines()
                .map(|line| line.trim().to_owned())
                .filter(|line| line.starts_with('/')),
        );
    }
    let arch = std::env::consts::ARCH;
    for dir in [
        format!("/lib/{arch}-linux-gnu"),
        format!("/usr/lib/{arch}-linux-gnu"),
        "/lib64".into(),
        "/usr/lib64".into(),
        "/lib".into(),
        "/usr/lib".into(),
    ] {
        dirs.push(dir);
    }
    dirs
}

/// ROCm installations, newest first; versions compare as numbers, so 10.1 is newer than 7.2.
pub fn roots(host: &Host) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for variable in ["ROCM_PATH", "HIP_PATH"] {
        list.extend(host.variable(variable).map(str::to_owned));
    }
    let mut installed: Vec<String> = host
        .names("/opt")
        .into_iter()
        .filter(|name| name == "rocm" || name.starts_with("rocm-"))
        .map(|name| format!("/opt/{name}"))
        .collect();
    installed.extend(
        host.names("/opt/rocm")
            .into_iter()
            .filter(|name| name.starts_with("core-"))
            .map(|name| format!("/opt/rocm/{name}")),
    );
    let version = |path: &str| natural_key(path.rsplit(['-', '/']).next().unwrap_or(path));
    installed.sort_by_key(|path| std::cmp::Reverse(version(path)));
    list.extend(installed);
    list
}

/// The version that an installation states.
pub fn rocm_version(host: &Host, root: &str) -> Option<String> {
    let text = host.read(&format!("{root}/.info/version")).ok()?;
    let version = text.trim().split('-').next()?.to_owned();
    (!version.is_empty()).then_some(version)
}

/// Every copy of every library of [`FAMILIES`]. `plugin_dirs` are the folders of the plugins,
/// which search beside themselves.
pub fn libraries(host: &Host, plugin_dirs: &[PathBuf]) -> Vec<Library> {
    let folders = folders(host, plugin_dirs);
    let maps = host.read("/proc/self/maps").unwrap_or_default();
    FAMILIES
        .into_iter()
        .map(|name| Library {
            name,
            copies: folders
                .iter()
                .filter_map(|(dir, searched)| copy(host, dir, name, *searched))
                .collect(),
            mapped: mapped(&maps, name),
        })
        .collect()
}

/// Whether `file` is `NAME.so` with or without a version.
fn is_library(file: &str, name: &str) -> bool {
    file.strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(".so"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn copy(host: &Host, dir: &Path, name: &str, searched: bool) -> Option<Copy> {
    let mut files: Vec<String> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|file| is_library(file, name))
        .collect();
    // The longest name carries the whole version.
    files.sort_by_key(|file| (file.len(), file.clone()));
    let file = files.last()?;
    let path = dir.join(file);
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    let version = real
        .file_name()
        .and_then(|file| file.to_str())
        .and_then(|file| file.split_once(".so."))
        .map(|(_, version)| version.to_owned());
    Some(Copy {
        path: host.shown(&path),
        version,
        searched,
    })
}

/// The path under which a library is mapped into this process.
fn mapped(maps: &str, name: &str) -> Option<String> {
    maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        let file = path.rsplit('/').next()?;
        is_library(file, name).then(|| path.to_owned())
    })
}

/// The instruction sets that a BLAS library has kernels for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlasData {
    /// `rocblas` or `hipblaslt`.
    pub library: &'static str,
    /// The folder of kernels, as on the machine; none if there is none.
    pub folder: Option<String>,
    /// Instruction sets found in the names of its files.
    pub targets: BTreeSet<Gfx>,
}

/// Looks at the kernels of rocBLAS and hipBLASLt that lie with the winning copies.
pub fn blas_data(host: &Host, libraries: &[Library]) -> Vec<BlasData> {
    [
        ("rocblas", "librocblas", "ROCBLAS_TENSILE_LIBPATH"),
        ("hipblaslt", "libhipblaslt", "HIPBLASLT_TENSILE_LIBPATH"),
    ]
    .into_iter()
    .filter_map(|(library, file, variable)| {
        let found = libraries.iter().find(|known| known.name == file)?;
        let copy = found.winner().or(found.copies.first())?;
        let dir = Path::new(&copy.path).parent()?;
        let folder = match host.variable(variable) {
            Some(path) => Some(host.path(path)),
            None => data_folder(&host.path(&dir.to_string_lossy()).join(library)),
        };
        let mut targets = BTreeSet::new();
        if let Some(folder) = &folder {
            collect_targets(folder, 2, &mut targets);
        }
        Some(BlasData {
            library,
            folder: folder.map(|folder| host.shown(&folder)),
            targets,
        })
    })
    .collect()
}

/// `library/`, or Debian's `VERSION/library/`.
fn data_folder(dir: &Path) -> Option<PathBuf> {
    let plain = dir.join("library");
    if plain.is_dir() {
        return Some(plain);
    }
    fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("library"))
        .find(|path| path.is_dir())
}

fn collect_targets(dir: &Path, depth: usize, targets: &mut BTreeSet<Gfx>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let words = name.split(|c: char| !c.is_ascii_alphanumeric());
        targets.extend(words.filter_map(|word| word.parse::<Gfx>().ok()));
        if depth > 0 && entry.path().is_dir() {
            collect_targets(&entry.path(), depth - 1, targets);
        }
    }
}

/// The library and its major version that a loader's message misses, such as
/// `("libamdhip64.so", "7")`.
pub fn missing_library(message: &str) -> Option<(String, Option<String>)> {
    let end = message.find(": cannot open shared object file")?;
    let start = message[..end]
        .rfind(|c: char| c.is_whitespace() || c == ':')
        .map_or(0, |i| i + 1);
    let name = &message[start..end];
    let name = name.rsplit('/').next().unwrap_or(name);
    match name.split_once(".so.") {
        Some((stem, major)) => Some((format!("{stem}.so"), Some(major.to_owned()))),
        None => Some((name.to_owned(), None)),
    }
}

/// The ROCm release that a library's own number means, where it is known: only the runtime counts
/// as ROCm does.
pub fn rocm_release(library: &str, number: &str) -> Option<u32> {
    const NUMBERS: [(&str, &[(&str, u32)]); 3] = [
        ("libhipblas.so", &[("2", 6), ("3", 7)]),
        ("libhipblaslt.so", &[("0", 6), ("1", 7)]),
        ("librocblas.so", &[("4", 6), ("5", 7)]),
    ];
    let major = number.split('.').next()?;
    if library == "libamdhip64.so" {
        return major.parse().ok();
    }
    let (_, releases) = NUMBERS.iter().find(|(name, _)| *name == library)?;
    releases.iter().find(|(own, _)| *own == major).map(|r| r.1)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn numbers_decide_which_rocm_is_newest() {
        let machine = Fixture::new();
        for dir in [
            "opt/rocm-7.2",
            "opt/rocm-6.4.1",
            "opt/rocm/core-10.1",
            "opt/rocm/core-7.14",
            "opt/other",
        ] {
            machine.dir(dir);
        }
        machine.write("opt/rocm-7.2/.info/version", "7.2.0-43\n");
        let host = machine.host(&[("ROCM_PATH", "/custom")]);
        assert_eq!(
            roots(&host),
            [
                "/custom",
                "/opt/rocm/core-10.1",
                "/opt/rocm/core-7.14",
                "/opt/rocm-7.2",
                "/opt/rocm-6.4.1",
                "/opt/rocm"
            ]
        );
        assert_eq!(
            rocm_version(&host, "/opt/rocm-7.2").as_deref(),
            Some("7.2.0")
        );
        assert_eq!(rocm_version(&host, "/custom"), None);
    }

    #[test]
    fn the_variable_wins_and_unsearched_copies_are_marked() {
        let machine = Fixture::new();
        machine.write("old/libamdhip64.so.6.4.60401", "");
        machine.write("usr/lib64/libamdhip64.so.7.2.70204", "");
        machine.write("opt/rocm-7.14/lib/libamdhip64.so.7.14.1", "");
        machine.write("etc/ld.so.conf.d/x.conf", "# comment\n/extra\n");
        machine.write("extra/libhipblas.so.3", "");
        machine.write("usr/lib64/libhipblaslt.so.1", "");
        machine.write("proc/self/maps", "7f00-7f01 r-xp 00000000 00:00 1   /old/libamdhip64.so.6.4.60401\n7f01-7f02 rw-p 0 00:00 0 [heap]\n");
        let host = machine.host(&[("LD_LIBRARY_PATH", "/old:")]);
        let found = libraries(&host, &[]);
        let hip = &found[0];
        let versions: Vec<&str> = hip
            .copies
            .iter()
            .filter_map(|c| c.version.as_deref())
            .collect();
        assert_eq!(versions, ["6.4.60401", "7.2.70204", "7.14.1"]);
        assert_eq!(hip.winner().unwrap().path, "/old/libamdhip64.so.6.4.60401");
        assert!(!hip.copies[2].searched);
        assert_eq!(hip.mapped.as_deref(), Some("/old/libamdhip64.so.6.4.60401"));
        // hipBLASLt is not hipBLAS.
        assert_eq!(found[2].copies.len(), 1);
        assert_eq!(found[2].winner().unwrap().path, "/extra/libhipblas.so.3");
        assert_eq!(found[1].winner(), None);
    }

    #[test]
    fn kernels_are_read_from_file_names() {
        let machine = Fixture::new();
        let lib = "usr/lib64";
        machine.write(&format!("{lib}/librocblas.so.5"), "");
        machine.write(&format!("{lib}/libhipblaslt.so.1"), "");
        machine.write(
            &format!("{lib}/rocblas/4.4/library/TensileLibrary_lazy_gfx1100.dat"),
            "",
        );
        machine.write(
            &format!("{lib}/rocblas/4.4/library/Kernels.so-000-gfx90a-xnack+.hsaco"),
            "",
        );
        machine.write(&format!("{lib}/hipblaslt/library/gfx1151/x.dat"), "");
        let host = machine.host(&[]);
        let data = blas_data(&host, &libraries(&host, &[]));
        let names =
            |i: usize| -> Vec<String> { data[i].targets.iter().map(Gfx::to_string).collect() };
        assert_eq!(names(0), ["gfx90a", "gfx1100"]);
        assert_eq!(names(1), ["gfx1151"]);
        assert_eq!(
            data[0].folder.as_deref(),
            Some("/usr/lib64/rocblas/4.4/library")
        );
        let moved = machine.host(&[("ROCBLAS_TENSILE_LIBPATH", "/empty")]);
        assert!(
            blas_data(&moved, &libraries(&moved, &[]))[0]
                .targets
                .is_empty()
        );
    }

    #[test]
    fn loader_messages_name_the_library_and_its_major() {
        let text =
            "the loader says: libamdhip64.so.7: cannot open shared object file: No such file";
        assert_eq!(
            missing_library(text),
            Some(("libamdhip64.so".into(), Some("7".into())))
        );
        let path = "/p/libx.so: cannot open shared object file: No such file or directory";
        assert_eq!(missing_library(path), Some(("libx.so".into(), None)));
        assert_eq!(missing_library("undefined symbol: foo"), None);
    }

    #[test]
    fn a_librarys_number_is_not_rocms() {
        for (library, number, release) in [
            ("libamdhip64.so", "7", Some(7)),
            ("libhipblas.so", "3", Some(7)),
            ("libhipblas.so", "2.4", Some(6)),
            ("libhipblaslt.so", "1", Some(7)),
            ("librocblas.so", "4", Some(6)),
            ("librocblas.so", "9", None),
            ("librocsolver.so", "0", None),
        ] {
            assert_eq!(rocm_release(library, number), release, "{library}.{number}");
        }
    }
}
