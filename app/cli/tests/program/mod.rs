//! The program as a newcomer's: with no home but the one it is given, and no network.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// The program with `home` for its models; nothing is typed.
pub fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_audiocpp_cli"));
    command
        .env("AUDIOCPP_HOME", home)
        .env("AUDIOCPP_OFFLINE", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}
