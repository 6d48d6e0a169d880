//! `cargo xtask pack <backend>`: builds one GPU backend as a folder `lib/audiocpp/<pack>/` that the
//! programs find at run time. What will be done is decided first, as a plan without side effects
//! (`plan`), so that it can be shown (`--dry-run`) and tested for machines that are not at hand.

mod build;
mod gfx;
#[cfg(all(test, unix))]
mod install;
mod machine;
mod manifest;
mod plan;
#[cfg(test)]
mod powershell;
mod purity;
mod rocm;
mod windows;

use crate::sh;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use machine::Machine;
use serde::Serialize;
use std::{path::PathBuf, process::Command};

/// A backend that can be a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The CPU plugins, one for each instruction set level, with ggml's own libraries.
    Cpu,
    /// AMD GPUs through ROCm.
    Hip,
    /// NVIDIA GPUs.
    Cuda,
    /// Any GPU with a Vulkan driver.
    Vulkan,
    /// Apple GPUs.
    Metal,
}

/// What the build makes besides the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Target {
    /// The plugin alone.
    #[value(name = "plugin")]
    #[serde(rename = "plugin")]
    Plugin,
    /// Also the command line program, into `bin/`.
    #[value(name = "audiocpp_cli")]
    #[serde(rename = "audiocpp_cli")]
    Cli,
    /// Also the server, into `bin/`.
    #[value(name = "audiocpp_server")]
    #[serde(rename = "audiocpp_server")]
    Server,
    /// Both programs.
    #[value(name = "all")]
    #[serde(rename = "all")]
    All,
}

/// Kind of build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BuildType {
    /// Optimised.
    Release,
    /// Optimised, with debug information.
    RelWithDebInfo,
    /// For a debugger.
    Debug,
}

/// Options of `cargo xtask pack`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The backend to build.
    #[arg(value_enum)]
    pub backend: Backend,
    /// AMD GPUs to compile for, such as "gfx1100;gfx1151"; `all` for the release list, `auto` for
    /// the GPUs of this machine.
    #[arg(long, value_name = "LIST", default_value = "auto")]
    pub gpu_targets: String,
    /// Folder of the ROCm installation.
    #[arg(long, value_name = "DIR")]
    pub rocm_path: Option<String>,
    /// Leave matrix products to hipBLAS (rocBLAS) instead of hipBLASLt.
    #[arg(long)]
    pub no_hipblaslt: bool,
    /// Quantised products through ggml's own kernels always.
    #[arg(long)]
    pub force_mmq: bool,
    /// Use HIP's virtual memory management: better reuse of memory, not for integrated GPUs.
    #[arg(long)]
    pub with_vmm: bool,
    /// Compile GPU graphs in; they hold memory of their own, so integrated GPUs may run out.
    #[arg(long)]
    pub graphs: bool,
    /// Programs for any x86-64 processor instead of this machine's; for distribution.
    #[arg(long)]
    pub no_native_cpu: bool,
    /// GPU architectures for CUDA, as CMake names them.
    #[arg(long, value_name = "LIST")]
    pub cuda_architectures: Option<String>,
    /// Kind of build.
    #[arg(long, value_enum, default_value_t = BuildType::Release, ignore_case = true)]
    pub build_type: BuildType,
    /// What to make.
    #[arg(long, value_enum, default_value_t = Target::Plugin)]
    pub target: Target,
    /// Configure and stop.
    #[arg(long)]
    pub configure_only: bool,
    /// Delete the build folder first, if it is one of ours.
    #[arg(long)]
    pub clean: bool,
    /// Take what the build folder already has: for a build made in a container without Rust.
    #[arg(long, conflicts_with_all = ["clean", "configure_only"])]
    pub prebuilt: bool,
    /// Compilers at once.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Build folder [default: `pack/BACKEND` in the target folder].
    #[arg(long, value_name = "DIR")]
    pub build_dir: Option<PathBuf>,
    /// Folder that gets `lib/audiocpp/<pack>/` [default: dist].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also pack the result into a release folder for the installers.
    #[arg(long, value_name = "DIR")]
    pub release: Option<PathBuf>,
    /// MSVC toolset to build with, such as 14.44 (Windows).
    #[arg(long, value_name = "VERSION")]
    pub vcvars_ver: Option<String>,
    /// A CMake definition of one's own, KEY=VALUE.
    #[arg(long, value_name = "KEY=VALUE")]
    pub define: Vec<String>,
    /// Show the plan and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Show the plan as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Plans, shows and, unless it is a dry run, builds.
pub fn run(options: &Options) -> Result<()> {
    let machine = Machine::this();
    let places = plan::Places::of(options, &sh::root(), &sh::target_dir());
    let plan = plan::make(options, &machine, &places)?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&plan)?);
    } else {
        print!("{plan}");
    }
    if options.dry_run {
        return Ok(());
    }
    build::run(options, &plan, &machine)
}

/// Compiles the hipBLASLt route and a sample of ggml's HIP sources in the private ROCm root, if it
/// is there; `make` makes it first. Without it nothing is checked, and that is said.
pub fn check_compile(make: bool) -> Result<()> {
    let folder = match std::env::var_os("AUDIOCPP_ROCM_ROOT") {
        Some(folder) => folder.into(),
        None => sh::target_dir().join("rocm-root"),
    };
    let script = |name: &str| {
        let mut command = Command::new("sh");
        command
            .arg(sh::root().join("scripts").join(name))
            .arg(&folder);
        command
    };
    if make && !cfg!(target_os = "linux") {
        bail!("--hip unpacks Debian packages; it works on Linux only");
    }
    if make {
        sh::run(&mut script("make_rocm_root.sh"))?;
    }
    if !folder.join(".complete").is_file() {
        println!(
            "skipped: no ROCm root at {}; `cargo xtask test --hip` makes it (750 MB of downloads), \
             AUDIOCPP_ROCM_ROOT names another",
            folder.display()
        );
        return Ok(());
    }
    sh::run(&mut script("check_hip_compile.sh"))
}
