//! Carries out a plan: configure, build, stage, check and describe the pack.

use super::{
    Options,
    machine::{Machine, Os},
    manifest::{self, GgmlVersion},
    plan::{self, Plan},
    purity, windows,
};
use crate::sh;
use anyhow::{Context, Result, bail};
use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

/// Builds the pack, or what the options leave of it.
pub fn run(options: &Options, plan: &Plan, machine: &Machine) -> Result<()> {
    let source = plan::ggml_source()?;
    let environment = environment(plan)?;
    let build = Path::new(&plan.build);
    if !options.prebuilt {
        if options.clean {
            clean(build)?;
        }
        if plan.trial_compile {
            trial_compile(plan, &environment)?;
        }
        configure(plan, &source, &environment)?;
        if options.configure_only {
            return Ok(());
        }
        let mut command = Command::new(&plan.cmake);
        let jobs = plan.jobs.to_string();
        command.args([
            "--build",
            &plan.build,
            "--target",
            &plan.cmake_target,
            "--parallel",
            &jobs,
        ]);
        sh::run(command.envs(&environment))?;
    }
    let folder = Path::new(&plan.folder);
    stage(plan, build, folder, machine.os)?;
    let ggml = GgmlVersion::of(&source)?;
    fs::write(folder.join("pack.json"), manifest::pack_json(plan, &ggml))?;
    manifest::write_checksums(folder)?;
    for program in &plan.programs {
        build_program(plan, program, folder)?;
    }
    println!("made {}", folder.display());
    if let Some(release) = &options.release {
        add_to_release(plan, folder, release)?;
    }
    Ok(())
}

/// The variables to run tools with: those of the plan, after those of the MSVC toolset.
fn environment(plan: &Plan) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    if let Some(command) = &plan.environment_command {
        let mut shell = Command::new("cmd");
        #[cfg(windows)]
        {
            // Cargo's quoting is not the command interpreter's: the line goes as it is.
            use std::os::windows::process::CommandExt;
            shell.raw_arg(format!("/d /s /c \"{command}\""));
        }
        #[cfg(not(windows))]
        shell.args(["/d", "/s", "/c", command]);
        all = windows::parse_environment(&sh::capture(&mut shell)?);
    }
    all.extend(plan.environment.clone());
    Ok(all)
}

/// Deletes a build folder, if a configuration of ours is in it.
fn clean(build: &Path) -> Result<()> {
    if !build.exists() {
        return Ok(());
    }
    let cache = fs::read_to_string(build.join("CMakeCache.txt")).unwrap_or_default();
    if !cache
        .lines()
        .any(|line| line.starts_with("CMAKE_PROJECT_NAME:") && line.ends_with("=audiocpp_ggml"))
    {
        bail!(
            "--clean: {} holds no build of ours; delete it yourself",
            build.display()
        );
    }
    fs::remove_dir_all(build).with_context(|| format!("cannot delete {}", build.display()))
}

/// Compiles a few lines first: a clash of headers would otherwise come out of every file.
fn trial_compile(plan: &Plan, environment: &BTreeMap<String, String>) -> Result<()> {
    let Some([_, cxx]) = &plan.compilers else {
        return Ok(());
    };
    let dir = Path::new(&plan.build);
    fs::create_dir_all(dir)?;
    let source = dir.join("trial.hip");
    fs::write(&source, windows::TRIAL_SOURCE)?;
    let mut command = Command::new(cxx);
    command.args(["-x", "hip", "-fsyntax-only"]);
    for target in &plan.gpu_targets {
        command.arg(format!("--offload-arch={target}"));
    }
    let output = command.arg(&source).envs(environment).output();
    let output = output.with_context(|| format!("cannot start {cxx}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let toolsets = plan
        .visual_studio
        .as_ref()
        .map_or(&[][..], |found| &found.toolsets);
    bail!("{}", windows::trial_advice(&said, toolsets))
}

fn configure(plan: &Plan, source: &Path, environment: &BTreeMap<String, String>) -> Result<()> {
    let mut command = Command::new(&plan.cmake);
    command
        .args(&plan.configure)
        .arg(format!("-DGGML_SOURCE_DIR={}", source.display()))
        .envs(environment);
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", plan.cmake))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    std::io::stderr().write_all(said.as_bytes())?;
    if !output.status.success() {
        bail!("CMake could not configure the {} pack", plan.pack);
    }
    let unused = unused_definitions(&said);
    if !unused.is_empty() {
        bail!(
            "ggml has no option {}: a misspelt or retired name would build something else",
            unused.join(", ")
        );
    }
    Ok(())
}

/// Definitions that CMake says the project did not use; its own (`CMAKE_...`) do not count.
fn unused_definitions(said: &str) -> Vec<String> {
    let Some((_, rest)) =
        said.split_once("Manually-specified variables were not used by the project:")
    else {
        return Vec::new();
    };
    rest.lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .filter(|name| !name.starts_with("CMAKE_"))
        .map(str::to_owned)
        .collect()
}

/// Copies the plugin into its folder, and for the CPU pack ggml's libraries one folder up.
fn stage(plan: &Plan, build: &Path, folder: &Path, os: Os) -> Result<()> {
    let (prefix, suffix) = match os {
        Os::Windows => ("", ".dll"),
        Os::Mac => ("lib", ".so"),
        Os::Linux => ("lib", ".so"),
    };
    // A pack is made anew: a file of an older build must not stay in it.
    if folder.join("pack.json").is_file() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let wanted = format!("{prefix}ggml-{:?}", plan.backend).to_lowercase();
    let mut plugins = 0;
    for dir in ["lib", "bin"] {
        let Ok(entries) = fs::read_dir(build.join(dir)) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let to = if name.starts_with(&wanted) && name.ends_with(suffix) {
                plugins += 1;
                folder.join(&name)
            } else if plan.cmake_target == "all" && is_ggml_itself(&name) {
                folder.parent().unwrap_or(folder).join(&name)
            } else {
                continue;
            };
            copy(&path, &to)?;
            purity::check(plan.backend, &name, &purity::needed(&path)?)?;
        }
    }
    if plugins == 0 {
        bail!(
            "{} has no {wanted}{suffix}: the build made no plugin",
            build.display()
        );
    }
    Ok(())
}

/// libggml and libggml-base under the names that loaders ask for: `libggml.so.0`, `ggml.dll`,
/// `libggml.0.dylib`.
fn is_ggml_itself(name: &str) -> bool {
    let plain = name.strip_prefix("lib").unwrap_or(name);
    let mut parts: Vec<&str> = plain.split('.').collect();
    let stem = parts.remove(0);
    let versions = parts
        .iter()
        .filter(|part| part.parse::<u64>().is_ok())
        .count();
    let loadable = match parts.iter().find(|part| part.parse::<u64>().is_err()) {
        Some(&"dll") => versions == 0,
        Some(&"so" | &"dylib") => versions == 1,
        _ => false,
    };
    loadable && matches!(stem, "ggml" | "ggml-base")
}

/// Copies a file, not a link to it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(|_| ())
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// Builds a program for release and puts it into `bin/` beside `lib/`.
fn build_program(plan: &Plan, program: &str, folder: &Path) -> Result<()> {
    sh::run(
        sh::cargo(["build", "--release", "--locked", "--bin", program])
            .env("AUDIOCPP_CPU", &plan.cpu),
    )?;
    let Some(out) = folder.ancestors().nth(3) else {
        bail!("{} lies too near the root folder", folder.display());
    };
    let bin = out.join("bin");
    fs::create_dir_all(&bin)?;
    let from: PathBuf = sh::program(program, "release");
    let name = from.file_name().unwrap_or_default();
    copy(&from, &bin.join(name))
}

/// Adds `audiocpp-<os>-<arch>-<pack>.tar.gz` to a release folder, with its line in `SHA256SUMS` and
/// in `PACKS`, which the installers read: name, backend, archive, targets.
fn add_to_release(plan: &Plan, folder: &Path, release: &Path) -> Result<()> {
    fs::create_dir_all(release)?;
    let archive = format!(
        "audiocpp-{}-{}-{}.tar.gz",
        std::env::consts::OS,
        std::env::consts::ARCH,
        plan.pack
    );
    let Some(out) = folder.ancestors().nth(3) else {
        bail!("{} lies too near the root folder", folder.display());
    };
    let mut tar = Command::new("tar");
    tar.arg("-czf")
        .arg(release.join(&archive))
        .arg("-C")
        .arg(out);
    if plan.cmake_target == "all" {
        // The CPU pack is the base: programs and ggml's libraries go with it.
        for part in ["bin", "lib"] {
            if out.join(part).is_dir() {
                tar.arg(part);
            }
        }
        for name in gpu_packs(out)? {
            tar.arg(format!("--exclude=lib/audiocpp/{name}"));
        }
    } else {
        tar.arg(format!("lib/audiocpp/{}", plan.pack));
    }
    sh::run(&mut tar)?;
    let backend = format!("{:?}", plan.backend).to_lowercase();
    let targets = if plan.gpu_targets.is_empty() {
        "-".into()
    } else {
        plan.gpu_targets.join(",")
    };
    let sum = manifest::sha256(&release.join(&archive))?;
    put_line(
        &release.join("SHA256SUMS"),
        &archive,
        &format!("{sum}  {archive}"),
    )?;
    put_line(
        &release.join("PACKS"),
        &archive,
        &format!("{} {backend} {archive} {targets}", plan.pack),
    )
}

/// Packs under `out` other than the CPU's.
fn gpu_packs(out: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out.join("lib/audiocpp"))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && name != "cpu" {
            names.push(name);
        }
    }
    Ok(names)
}

/// Writes `line` into a list in place of the one about `subject`.
fn put_line(list: &Path, subject: &str, line: &str) -> Result<()> {
    let old = fs::read_to_string(list).unwrap_or_default();
    let mut lines: Vec<&str> = old
        .lines()
        .filter(|other| !other.split_whitespace().any(|word| word == subject))
        .collect();
    lines.push(line);
    lines.sort_unstable();
    fs::write(list, lines.join("\n") + "\n")
        .with_context(|| format!("cannot write {}", list.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_build_of_ours_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let build = dir.path().join("b");
        clean(&build).unwrap();
        fs::create_dir(&build).unwrap();
        assert!(
            clean(&build)
                .unwrap_err()
                .to_string()
                .contains("no build of ours")
        );
        fs::write(
            build.join("CMakeCache.txt"),
            "CMAKE_PROJECT_NAME:STATIC=audiocpp_ggml\n",
        )
        .unwrap();
        clean(&build).unwrap();
        assert!(!build.exists());
    }

    #[test]
    fn unused_definitions_are_read_from_cmakes_warning() {
        let said = "-- Generating done\nCMake Warning:\n  Manually-specified variables were not used by the project:\n\n    CMAKE_HIP_COMPILER\n    GGML_HIPS\n\n\n-- Build files";
        assert_eq!(unused_definitions(said), ["GGML_HIPS"]);
        assert!(unused_definitions("-- Generating done").is_empty());
    }

    #[test]
    fn ggmls_own_libraries_by_the_names_loaders_use() {
        for name in [
            "libggml.so.0",
            "libggml-base.so.0",
            "ggml-base.dll",
            "libggml.0.dylib",
        ] {
            assert!(is_ggml_itself(name), "{name}");
        }
        for name in [
            "libggml.so",
            "libggml.so.0.26.0",
            "libggml-hip.so",
            "libggml-cpu-haswell.so",
            "ggml.lib",
        ] {
            assert!(!is_ggml_itself(name), "{name}");
        }
    }

    #[test]
    fn a_list_has_one_line_for_each_archive() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("SHA256SUMS");
        put_line(&list, "b.tar.gz", "11  b.tar.gz").unwrap();
        put_line(&list, "a.tar.gz", "22  a.tar.gz").unwrap();
        put_line(&list, "b.tar.gz", "33  b.tar.gz").unwrap();
        assert_eq!(
            fs::read_to_string(&list).unwrap(),
            "22  a.tar.gz\n33  b.tar.gz\n"
        );
    }
}
