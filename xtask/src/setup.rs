//! `cargo xtask setup`: the tools that the build needs, from the platform's package manager.

use crate::sh;
use anyhow::{Result, bail};
use clap::Args;
use std::{env, process::Command};

/// Options of `cargo xtask setup`.
#[derive(Args, Default)]
pub struct Options {
    /// Also install what only speeds up or extends the work: ccache, espeak-ng.
    #[arg(long)]
    pub all: bool,
    /// Only say what is missing and which command installs it.
    #[arg(long)]
    pub check: bool,
}

/// One program that the build or a model calls.
struct Tool {
    name: &'static str,
    /// Command lines, any of which succeeds when the tool is there.
    probes: &'static [&'static [&'static str]],
    why: &'static str,
    required: bool,
    /// Package names in the order of [`MANAGERS`]; empty where none exists.
    packages: [&'static str; 7],
}

/// A package manager; the first one found on the machine is used.
struct Manager {
    program: &'static str,
    /// Run before the first install of a fresh machine.
    refresh: &'static [&'static str],
    install: &'static [&'static str],
    /// Whether it must run as root.
    root: bool,
}

const MANAGERS: [Manager; 7] = [
    Manager {
        program: "apt-get",
        refresh: &["update"],
        install: &["install", "--yes", "--no-install-recommends"],
        root: true,
    },
    Manager {
        program: "dnf",
        refresh: &[],
        install: &["install", "--assumeyes"],
        root: true,
    },
    Manager {
        program: "pacman",
        refresh: &[],
        install: &["-Sy", "--noconfirm", "--needed"],
        root: true,
    },
    Manager {
        program: "zypper",
        refresh: &[],
        install: &["--non-interactive", "install"],
        root: true,
    },
    Manager {
        program: "apk",
        refresh: &[],
        install: &["add"],
        root: true,
    },
    Manager {
        program: "brew",
        refresh: &[],
        install: &["install"],
        root: false,
    },
    Manager {
        program: "winget",
        refresh: &[],
        install: &["install", "--exact"],
        root: false,
    },
];

const TOOLS: &[Tool] = &[
    Tool {
        name: "cmake",
        probes: &[&["cmake", "--version"]],
        why: "configures ggml and libopus",
        required: true,
        packages: [
            "cmake",
            "cmake",
            "cmake",
            "cmake",
            "cmake",
            "cmake",
            "Kitware.CMake",
        ],
    },
    Tool {
        name: "ninja",
        probes: &[&["ninja", "--version"]],
        why: "builds ggml",
        required: true,
        packages: [
            "ninja-build",
            "ninja-build",
            "ninja",
            "ninja",
            "samurai",
            "ninja",
            "Ninja-build.Ninja",
        ],
    },
    Tool {
        name: "pip",
        probes: if cfg!(windows) {
            &[&["python", "-m", "pip", "--version"]]
        } else {
            &[&["python3", "-m", "pip", "--version"]]
        },
        why: "fetches models where no model hub is in reach",
        required: true,
        packages: [
            "python3-pip",
            "python3-pip",
            "python-pip",
            "python3-pip",
            "py3-pip",
            "python",
            "Python.Python.3.12",
        ],
    },
    Tool {
        name: "make",
        // With MSVC, CMake drives MSBuild instead.
        probes: if cfg!(windows) {
            &[&["cmake", "--version"]]
        } else {
            &[&["make", "--version"]]
        },
        why: "builds libopus",
        required: true,
        packages: ["make", "make", "make", "make", "make", "make", ""],
    },
    Tool {
        name: "a C++ compiler",
        // On Windows the linker that built this very program comes with the compiler.
        probes: if cfg!(windows) {
            &[&["cargo", "--version"]]
        } else {
            &[
                &["c++", "--version"],
                &["g++", "--version"],
                &["clang++", "--version"],
            ]
        },
        why: "compiles ggml",
        required: true,
        packages: ["g++", "gcc-c++", "gcc", "gcc-c++", "g++", "", ""],
    },
    Tool {
        name: "ccache",
        probes: &[&["ccache", "--version"]],
        why: "makes a second build of ggml quick",
        required: false,
        packages: [
            "ccache",
            "ccache",
            "ccache",
            "ccache",
            "ccache",
            "ccache",
            "Ccache.Ccache",
        ],
    },
    Tool {
        name: "espeak-ng",
        probes: &[&["espeak-ng", "--version"]],
        why: "turns text into phonemes for speech models that need it",
        required: false,
        packages: [
            "espeak-ng",
            "espeak-ng",
            "espeak-ng",
            "espeak-ng",
            "espeak-ng",
            "espeak-ng",
            "eSpeak-NG.eSpeak-NG",
        ],
    },
];

/// Reports the tools and installs the missing ones that `options` asks for. Fails, naming the exact
/// command, where this user may not install or no package manager is known.
pub fn run(options: &Options) -> Result<()> {
    let mut missing = Vec::new();
    for tool in TOOLS {
        let found = tool.is_there();
        let state = match (found, tool.required) {
            (true, _) => "found",
            (false, true) => "missing",
            (false, false) => "missing (optional)",
        };
        println!("{:<16} {:<19} {}", tool.name, state, tool.why);
        if !found && (tool.required || options.all) {
            missing.push(tool);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let manager = MANAGERS
        .iter()
        .position(|m| sh::works(m.program, &["--version"]));
    let commands = install_commands(manager, &missing)?;
    let as_user = manager.is_some_and(|at| !MANAGERS[at].root);
    if options.check || !(as_user || is_root()) {
        bail!("{}", advice(&missing, &commands, as_user));
    }
    for words in &commands {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("DEBIAN_FRONTEND", "noninteractive");
        sh::run(&mut command)?;
    }
    for tool in missing {
        if !tool.is_there() {
            bail!(
                "{} was installed but does not run; open a new terminal and try again",
                tool.name
            );
        }
    }
    Ok(())
}

/// Adds the parts of the Rust toolchain that the checks use and a minimal install lacks.
pub fn rust_components() -> Result<()> {
    for (component, probe) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !sh::works("cargo", &[probe, "--version"]) {
            sh::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

impl Tool {
    fn is_there(&self) -> bool {
        self.probes
            .iter()
            .any(|probe| sh::works(probe[0], &probe[1..]))
    }
}

/// The command lines that install `missing` through `MANAGERS[manager]`.
fn install_commands(manager: Option<usize>, missing: &[&Tool]) -> Result<Vec<Vec<String>>> {
    let names = || {
        missing
            .iter()
            .map(|t| t.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let Some(at) = manager else {
        bail!(
            "missing: {}; no package manager that this task knows: install them by hand",
            names()
        );
    };
    let manager = &MANAGERS[at];
    if let Some(tool) = missing.iter().find(|tool| tool.packages[at].is_empty()) {
        let hint = if manager.program == "brew" {
            "run `xcode-select --install`"
        } else {
            "install it by hand"
        };
        bail!(
            "missing: {}; {} has no package for it: {hint}",
            tool.name,
            manager.program
        );
    }
    let words = |args: &[&str]| {
        std::iter::once(manager.program)
            .chain(args.iter().copied())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut install = words(manager.install);
    install.extend(missing.iter().map(|tool| tool.packages[at].to_owned()));
    let mut commands = Vec::new();
    if !manager.refresh.is_empty() {
        commands.push(words(manager.refresh));
    }
    commands.push(install);
    Ok(commands)
}

fn advice(missing: &[&Tool], commands: &[Vec<String>], as_user: bool) -> String {
    let names = missing
        .iter()
        .map(|t| t.name)
        .collect::<Vec<_>>()
        .join(", ");
    let sudo = if as_user { "" } else { "sudo " };
    let lines = commands
        .iter()
        .map(|words| format!("{sudo}{}", shell_words::join(words)))
        .collect::<Vec<_>>()
        .join(" && ");
    format!("missing: {names}. Install with:\n    {lines}\nand run this again")
}

fn is_root() -> bool {
    if cfg!(windows) {
        return false;
    }
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|o| o.stdout.trim_ascii() == b"0")
        || env::var_os("USER").is_some_and(|u| u == "root")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<&'static Tool> {
        TOOLS.iter().filter(|t| names.contains(&t.name)).collect()
    }

    fn manager(name: &str) -> Option<usize> {
        MANAGERS.iter().position(|m| m.program == name)
    }

    #[test]
    fn apt_refreshes_then_installs_everything_at_once() {
        let missing = tools(&["cmake", "ninja", "a C++ compiler"]);
        let commands = install_commands(manager("apt-get"), &missing).unwrap();
        let text = advice(&missing, &commands, false);
        assert!(
            text.contains(
                "sudo apt-get update && sudo apt-get install --yes --no-install-recommends \
                 cmake ninja-build g++"
            ),
            "{text}"
        );
    }

    #[test]
    fn brew_needs_no_root_and_has_no_compiler() {
        let missing = tools(&["cmake"]);
        let commands = install_commands(manager("brew"), &missing).unwrap();
        assert!(advice(&missing, &commands, true).contains("\n    brew install cmake\n"));
        let error = install_commands(manager("brew"), &tools(&["a C++ compiler"])).unwrap_err();
        assert!(
            error.to_string().contains("xcode-select --install"),
            "{error}"
        );
    }

    #[test]
    fn an_unknown_platform_names_the_missing_tools() {
        let error = install_commands(None, &tools(&["cmake", "ninja"])).unwrap_err();
        assert!(
            error.to_string().starts_with("missing: cmake, ninja;"),
            "{error}"
        );
    }
}
