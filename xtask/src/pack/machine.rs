//! The machine a plan is made for: its files, environment and programs. Tests make one of a folder
//! that stands for `/`, or for Windows' drives.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Operating systems that packs are built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
    /// macOS.
    Mac,
}

/// Files, environment and programs of a machine. Paths are written with `/` on every system.
pub struct Machine {
    /// Its operating system.
    pub os: Os,
    /// Folder that stands for the whole file system; `C:/x` is then `root/C/x`. None: the real one.
    root: Option<PathBuf>,
    env: BTreeMap<String, String>,
    /// Answers of programs, by their command line, in a test's machine.
    answers: BTreeMap<String, String>,
}

impl Machine {
    /// The machine this runs on.
    pub fn this() -> Machine {
        let os = match env::consts::OS {
            "windows" => Os::Windows,
            "macos" => Os::Mac,
            _ => Os::Linux,
        };
        Machine {
            os,
            root: None,
            env: env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
            answers: BTreeMap::new(),
        }
    }

    /// A variable of the environment, none if unset or empty.
    pub fn var(&self, name: &str) -> Option<String> {
        // Windows does not tell cases apart.
        let found = match self.os {
            Os::Windows => self
                .env
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value),
            _ => self.env.get(name),
        };
        found
            .filter(|value| !value.is_empty())
            .map(|value| value.replace('\\', "/"))
    }

    /// Names of variables that begin so.
    pub fn vars_beginning(&self, prefix: &str) -> Vec<String> {
        let begins = |key: &&String| key.to_ascii_uppercase().starts_with(prefix);
        self.env.keys().filter(begins).cloned().collect()
    }

    fn real(&self, path: &str) -> PathBuf {
        match &self.root {
            None => path.into(),
            Some(root) => root.join(path.replace(':', "").trim_start_matches('/')),
        }
    }

    /// Whether a file is there.
    pub fn is_file(&self, path: &str) -> bool {
        self.real(path).is_file()
    }

    /// A text file's content.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.real(path)).ok()
    }

    /// Names in a folder, sorted; none if there is no such folder.
    pub fn list(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.real(path))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// `name`, with `.exe` on Windows.
    pub fn exe(&self, name: &str) -> String {
        match self.os {
            Os::Windows => format!("{name}.exe"),
            _ => name.to_owned(),
        }
    }

    /// The program on the `PATH`.
    pub fn which(&self, name: &str) -> Option<String> {
        let separator = if self.os == Os::Windows { ';' } else { ':' };
        let file = self.exe(name);
        self.var("PATH")?
            .split(separator)
            .filter(|dir| !dir.is_empty())
            .map(|dir| format!("{}/{file}", dir.trim_end_matches('/')))
            .find(|path| self.is_file(path))
    }

    /// What a program prints; none if it is missing or fails.
    pub fn ask(&self, program: &str, args: &[&str]) -> Option<String> {
        if self.root.is_some() {
            let line = [&[program], args].concat().join(" ");
            return self.answers.get(&line).cloned();
        }
        let output = Command::new(program).args(args).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }
}

/// Digits of a version, for comparing: "10.1" is newer than "7.2", "7.2.4" than "7.2".
pub fn version_key(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap_or(u64::MAX))
        .collect()
}

/// The path with `/` between its parts.
pub fn slashed(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
pub mod fake {
    use super::*;

    /// A machine made of a temporary folder.
    pub struct FakeMachine {
        pub machine: Machine,
        _folder: tempfile::TempDir,
    }

    impl FakeMachine {
        pub fn new(os: Os) -> FakeMachine {
            let folder = tempfile::tempdir().unwrap();
            let machine = Machine {
                os,
                root: Some(folder.path().to_owned()),
                env: BTreeMap::new(),
                answers: BTreeMap::new(),
            };
            FakeMachine {
                machine,
                _folder: folder,
            }
        }

        pub fn file(self, path: &str, content: &str) -> FakeMachine {
            let real = self.machine.real(path);
            fs::create_dir_all(real.parent().unwrap()).unwrap();
            fs::write(real, content).unwrap();
            self
        }

        pub fn var(mut self, name: &str, value: &str) -> FakeMachine {
            self.machine.env.insert(name.into(), value.into());
            self
        }

        pub fn answer(mut self, line: &str, text: &str) -> FakeMachine {
            self.machine.answers.insert(line.into(), text.into());
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{fake::FakeMachine, *};

    #[test]
    fn versions_compare_as_numbers() {
        let mut names = ["rocm-7.2.4", "core-10.1", "rocm-7.2", "rocm-6.4.4"];
        names.sort_by_key(|name| version_key(name));
        assert_eq!(names, ["rocm-6.4.4", "rocm-7.2", "rocm-7.2.4", "core-10.1"]);
    }

    #[test]
    fn windows_paths_and_variables() {
        let fake = FakeMachine::new(Os::Windows)
            .file("C:/Program Files/CMake/bin/cmake.exe", "")
            .var("Path", r"C:\Windows;C:\Program Files\CMake\bin");
        let machine = &fake.machine;
        assert_eq!(
            machine.which("cmake").as_deref(),
            Some("C:/Program Files/CMake/bin/cmake.exe")
        );
        assert_eq!(machine.which("ninja"), None);
        assert_eq!(machine.list("C:/Program Files"), ["CMake"]);
    }
}
