//! Folders of the checkout and child processes.

use anyhow::{Context, Result, bail};
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The checkout's root folder.
pub fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    Path::new(&xtask)
        .parent()
        .expect("xtask lies in the root folder")
        .to_owned()
}

/// Cargo's target folder: `CARGO_TARGET_DIR`, else `target` in the root folder.
pub fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// A program of this workspace as the last build of `profile` (`debug` or `release`) left it.
pub fn program(name: &str, profile: &str) -> PathBuf {
    target_dir()
        .join(profile)
        .join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// Fetches the catalogue's model `id` with our own program where it is missing; returns its folder.
pub fn model_folder(program: &Path, id: &str) -> Result<PathBuf> {
    // It prints the folder, which does not belong among our caller's output.
    run(Command::new(program)
        .args(["models", "pull", id])
        .stdout(Stdio::null()))?;
    let path = capture(Command::new(program).args(["models", "path", id]))?;
    Ok(path.trim_end().into())
}

/// The `cargo` that runs this task, started in the root folder.
pub fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(args).current_dir(root());
    cargo
}

/// Prints the command line, runs it with this terminal's output; an exit status other than 0 is an
/// error that names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let line = display(command);
    eprintln!("$ {line}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs the command and returns what it wrote to standard output; its errors go to the terminal.
pub fn capture(command: &mut Command) -> Result<String> {
    let line = display(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{line}` wrote text that is not UTF-8"))
}

/// Whether the program starts and exits with status 0; its output is dropped.
pub fn works(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Builds our command-line program in release; where it lies.
pub fn release_cli() -> Result<PathBuf> {
    run(&mut cargo([
        "build",
        "--release",
        "--locked",
        "--package",
        "audiocpp-cli",
    ]))?;
    Ok(program("audiocpp_cli", "release"))
}

/// The command as one would type it in the root folder.
fn display(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = match program.file_stem() {
        Some(stem) if stem == "cargo" => "cargo".into(),
        _ => relative(program),
    };
    let args = command.get_args().map(|arg| relative(Path::new(arg)));
    shell_words::join(std::iter::once(name).chain(args))
}

/// The path from the root folder on, where it lies in there.
pub fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named() {
        let error = run(&mut cargo(["no-such-subcommand"])).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`cargo no-such-subcommand` ended with"),
            "{error}"
        );
    }

    #[test]
    fn commands_are_shown_as_typed_in_the_root_folder() {
        let mut command = Command::new(root().join("target/release/x"));
        command.arg(root().join("a b")).arg("plain");
        assert_eq!(display(&command), "target/release/x 'a b' plain");
        assert_eq!(display(&cargo(["test"])), "cargo test");
    }

    #[test]
    fn capture_returns_standard_output() {
        let version = capture(&mut cargo(["--version"])).unwrap();
        assert!(version.starts_with("cargo 1."), "{version}");
    }

    #[test]
    fn works_tells_missing_failing_and_good_programs_apart() {
        assert!(works("cargo", &["--version"]));
        assert!(!works("cargo", &["no-such-subcommand"]));
        assert!(!works("no-such-program-anywhere", &[]));
    }
}
