//! Finding a ROCm installation, its version and its compiler.

use super::machine::{Machine, Os, version_key};
use anyhow::{Result, bail};
use serde::Serialize;

/// The oldest release that ggml's HIP backend compiles with.
const OLDEST: [u64; 2] = [6, 1];

/// A ROCm (or HIP SDK) installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rocm {
    /// Its folder.
    pub path: String,
    /// Its version, such as 7.2.4.
    pub version: String,
    /// How it was found.
    pub found_by: String,
}

/// The installation that `--rocm-path` names, else the environment, else the newest in the usual
/// places. Newest by number: 10.1 is newer than 7.2.
pub fn find(asked: Option<&str>, machine: &Machine) -> Result<Rocm> {
    let tidy = |path: &str| path.replace('\\', "/").trim_end_matches('/').to_owned();
    if let Some(path) = asked {
        return at(&tidy(path), "--rocm-path", machine);
    }
    for name in ["ROCM_PATH", "HIP_PATH"] {
        if let Some(path) = machine.var(name) {
            return at(&tidy(&path), name, machine);
        }
    }
    let newest = usual_places(machine)
        .into_iter()
        .filter_map(|(path, by)| at(&path, &by, machine).ok())
        .max_by_key(|rocm| version_key(&rocm.version));
    match newest {
        Some(rocm) => Ok(rocm),
        None => bail!(
            "no ROCm was found (looked at --rocm-path, ROCM_PATH, HIP_PATH and {}); install ROCm {}.{} \
             or newer with the HIP and hipBLAS development packages",
            match machine.os {
                Os::Windows => "C:/Program Files/AMD/ROCm",
                _ => "/opt/rocm*, /usr",
            },
            OLDEST[0],
            OLDEST[1]
        ),
    }
}

fn usual_places(machine: &Machine) -> Vec<(String, String)> {
    let mut places = Vec::new();
    if machine.os == Os::Windows {
        // The HIP SDK sets one variable for each release: HIP_PATH_64, HIP_PATH_71.
        for name in machine.vars_beginning("HIP_PATH_") {
            if let Some(path) = machine.var(&name) {
                places.push((path.trim_end_matches('/').to_owned(), name));
            }
        }
        let dir = "C:/Program Files/AMD/ROCm";
        for name in machine.list(dir) {
            places.push((format!("{dir}/{name}"), dir.to_owned()));
        }
        return places;
    }
    for name in machine.list("/opt") {
        if name == "rocm" || name.starts_with("rocm-") {
            places.push((format!("/opt/{name}"), "/opt".to_owned()));
        }
    }
    for name in machine.list("/opt/rocm") {
        if name.starts_with("core-") {
            places.push((format!("/opt/rocm/{name}"), "/opt/rocm".to_owned()));
        }
    }
    places.push(("/usr".to_owned(), "the system's packages".to_owned()));
    places
}

/// The installation in a folder that was named.
fn at(path: &str, found_by: &str, machine: &Machine) -> Result<Rocm> {
    let header = format!("{path}/include/hip/hip_version.h");
    let Some(text) = machine.read(&header) else {
        bail!(
            "{found_by} names {path}, which has no include/hip/hip_version.h: it is no ROCm with the \
             HIP development files"
        );
    };
    let part = |name: &str| {
        text.lines().find_map(|line| {
            let rest = line.trim().strip_prefix("#define")?.trim_start();
            rest.strip_prefix(name)?.trim().parse::<u64>().ok()
        })
    };
    let (Some(major), Some(minor)) = (part("HIP_VERSION_MAJOR"), part("HIP_VERSION_MINOR")) else {
        bail!("{header} states no HIP_VERSION_MAJOR and HIP_VERSION_MINOR");
    };
    if [major, minor] < OLDEST {
        bail!(
            "{path} is ROCm {major}.{minor}; ggml's HIP backend needs {}.{} or newer",
            OLDEST[0],
            OLDEST[1]
        );
    }
    // The header's patch number is a build number: the release's is in .info/version.
    let release = [".info/version", ".info/version-dev"]
        .iter()
        .find_map(|file| machine.read(&format!("{path}/{file}")))
        .map(|text| text.trim().split('-').next().unwrap_or_default().to_owned())
        .filter(|text| version_key(text).starts_with(&[major, minor]));
    Ok(Rocm {
        path: path.to_owned(),
        version: release.unwrap_or_else(|| format!("{major}.{minor}")),
        found_by: found_by.to_owned(),
    })
}

impl Rocm {
    /// The first number of the version.
    pub fn major(&self) -> u64 {
        version_key(&self.version)[0]
    }

    /// Its C and C++ compilers.
    pub fn compilers(&self, machine: &Machine) -> Result<[String; 2]> {
        let mut dirs: Vec<(String, String)> = Vec::new();
        for dir in ["llvm/bin", "lib/llvm/bin", "bin"] {
            dirs.push((format!("{}/{dir}", self.path), String::new()));
        }
        // Distributions have several clangs side by side: clang++-21, clang++-22.
        let bin = format!("{}/bin", self.path);
        let numbered = |name: &String| name.strip_prefix("clang++-")?.parse::<u64>().ok();
        let mut numbers: Vec<u64> = machine.list(&bin).iter().filter_map(numbered).collect();
        numbers.sort_unstable();
        // A plain clang in /usr/bin is the distribution's default, which may know no AMD GPU.
        let first = if self.path == "/usr" { 0 } else { dirs.len() };
        for number in numbers {
            dirs.insert(first, (bin.clone(), format!("-{number}")));
        }
        for (dir, suffix) in &dirs {
            for (c, cxx) in [("clang", "clang++"), ("amdclang", "amdclang++")] {
                let pair = [c, cxx]
                    .map(|name| format!("{dir}/{}", machine.exe(&format!("{name}{suffix}"))));
                if pair.iter().all(|path| machine.is_file(path)) {
                    return Ok(pair);
                }
            }
        }
        bail!(
            "{} has no clang++ (looked in llvm/bin, lib/llvm/bin and bin); install ROCm's compiler",
            self.path
        )
    }

    /// Whether a library's CMake package is installed.
    pub fn has_package(&self, name: &str, machine: &Machine) -> bool {
        ["lib/cmake", "lib64/cmake", "lib/x86_64-linux-gnu/cmake"]
            .iter()
            .any(|dir| machine.is_file(&format!("{}/{dir}/{name}/{name}-config.cmake", self.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::machine::fake::FakeMachine, *};

    /// A machine with ROCm of this version in a folder.
    fn with(fake: FakeMachine, path: &str, major: u64, minor: u64) -> FakeMachine {
        fake.file(
            &format!("{path}/include/hip/hip_version.h"),
            &format!("#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n"),
        )
    }

    #[test]
    fn the_newest_release_is_the_greatest_number() {
        let mut fake = FakeMachine::new(Os::Linux);
        for (path, major, minor) in [
            ("/opt/rocm-7.2.4", 7, 2),
            ("/opt/rocm/core-10.1", 10, 1),
            ("/opt/rocm-5.7", 5, 7),
            ("/usr", 6, 4),
        ] {
            fake = with(fake, path, major, minor);
        }
        let found = find(None, &fake.machine).unwrap();
        assert_eq!(
            (found.path.as_str(), found.major()),
            ("/opt/rocm/core-10.1", 10)
        );
        let fake = with(
            FakeMachine::new(Os::Windows),
            "C:/Program Files/AMD/ROCm/7.2",
            7,
            2,
        );
        let fake = with(fake, "C:/Program Files/AMD/ROCm/10.1", 10, 1);
        assert_eq!(
            find(None, &fake.machine).unwrap().path,
            "C:/Program Files/AMD/ROCm/10.1"
        );
    }

    #[test]
    fn what_was_named_is_taken_or_refused() {
        let fake = with(FakeMachine::new(Os::Linux), "/opt/rocm-7.2.4", 7, 2)
            .file("/opt/rocm-7.2.4/.info/version", "7.2.4-81\n")
            .var("ROCM_PATH", "/gone");
        let error = find(None, &fake.machine).unwrap_err().to_string();
        assert!(error.starts_with("ROCM_PATH names /gone"), "{error}");
        let found = find(Some("/opt/rocm-7.2.4/"), &fake.machine).unwrap();
        assert_eq!(
            (found.version.as_str(), found.found_by.as_str()),
            ("7.2.4", "--rocm-path")
        );
        let old = with(FakeMachine::new(Os::Linux), "/opt/rocm", 6, 0);
        let error = find(Some("/opt/rocm"), &old.machine)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("ROCm 6.0") && error.contains("6.1"),
            "{error}"
        );
        assert!(find(None, &FakeMachine::new(Os::Linux).machine).is_err());
    }

    #[test]
    fn compilers_of_each_layout() {
        let fake = |files: &[&str], os| {
            files
                .iter()
                .fold(FakeMachine::new(os), |fake, file| fake.file(file, ""))
        };
        let rocm = |path: &str| Rocm {
            path: path.into(),
            version: "7.2".into(),
            found_by: String::new(),
        };
        let debian = fake(
            &[
                "/usr/bin/clang-9",
                "/usr/bin/clang++-9",
                "/usr/bin/clang-22",
                "/usr/bin/clang++-22",
            ],
            Os::Linux,
        );
        assert_eq!(
            rocm("/usr").compilers(&debian.machine).unwrap()[1],
            "/usr/bin/clang++-22"
        );
        let sdk = fake(&["C:/R/bin/clang.exe", "C:/R/bin/clang++.exe"], Os::Windows);
        assert_eq!(
            rocm("C:/R").compilers(&sdk.machine).unwrap()[0],
            "C:/R/bin/clang.exe"
        );
        let newer = fake(
            &["/r/lib/llvm/bin/amdclang", "/r/lib/llvm/bin/amdclang++"],
            Os::Linux,
        );
        assert_eq!(
            rocm("/r").compilers(&newer.machine).unwrap()[1],
            "/r/lib/llvm/bin/amdclang++"
        );
        assert!(rocm("/none").compilers(&newer.machine).is_err());
    }
}
