//! The plan of a pack: tools, definitions, commands and places, decided without side effects.

use super::{
    Backend, Options, Target, gfx,
    machine::{Machine, Os, slashed, version_key},
    rocm::{self, Rocm},
    windows::{self, VisualStudio},
};
use crate::sh;
use anyhow::{Result, bail};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// The oldest CMake that knows the HIP language.
const OLDEST_CMAKE: [u64; 2] = [3, 21];

/// Folders that a plan is made for.
#[derive(Clone, Debug)]
pub struct Places {
    /// The CMake project that builds ggml.
    pub lists: PathBuf,
    /// Build folder.
    pub build: PathBuf,
    /// Folder that gets `lib/audiocpp/`.
    pub out: PathBuf,
}

impl Places {
    /// The folders that the options name, else those of a checkout.
    pub fn of(options: &Options, root: &Path, target: &Path) -> Places {
        let backend = format!("{:?}", options.backend).to_lowercase();
        Places {
            lists: root.join("external/ggml/cmake"),
            build: options
                .build_dir
                .clone()
                .unwrap_or_else(|| target.join("pack").join(backend)),
            out: options.out.clone().unwrap_or_else(|| root.join("dist")),
        }
    }
}

/// Everything that building a pack will do.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The backend.
    pub backend: Backend,
    /// Name of the pack's folder.
    pub pack: String,
    /// The ROCm it is built with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rocm: Option<Rocm>,
    /// C and C++ compilers, where they are not the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers: Option<[String; 2]>,
    /// Visual Studio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visual_studio: Option<VisualStudio>,
    /// Command that prints the environment to build in, for Windows' command interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_command: Option<String>,
    /// Variables to add to the environment.
    pub environment: BTreeMap<String, String>,
    /// CMake.
    pub cmake: String,
    /// ninja, none for CMake's own choice of generator.
    pub ninja: Option<String>,
    /// AMD targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_targets: Vec<String>,
    /// CMake definitions.
    pub definitions: BTreeMap<String, String>,
    /// CMake target of the plugin.
    pub cmake_target: String,
    /// Programs to build with Cargo.
    pub programs: Vec<String>,
    /// Value of `AUDIOCPP_CPU` for them.
    pub cpu: String,
    /// Whether to compile a small program first.
    pub trial_compile: bool,
    /// Compilers at once.
    pub jobs: usize,
    /// Build folder.
    pub build: String,
    /// The pack's folder.
    pub folder: String,
    /// Arguments of CMake's configure step but for `-DGGML_SOURCE_DIR`.
    pub configure: Vec<String>,
    /// What to know before it starts.
    pub warnings: Vec<String>,
}

/// Decides everything; an error names what is missing and what would help.
pub fn make(options: &Options, machine: &Machine, places: &Places) -> Result<Plan> {
    refuse_misplaced(options, machine)?;
    let mut warnings = Vec::new();
    let visual_studio = (machine.os == Os::Windows)
        .then(|| windows::find(machine))
        .flatten();
    let tool = |name: &str| {
        let bundled = || visual_studio.as_ref()?.tool(name, machine);
        machine.which(name).or_else(bundled)
    };
    let Some(cmake) = tool("cmake") else {
        bail!("no cmake on the PATH or inside Visual Studio; it needs 3.21 or newer");
    };
    if let Some(text) = machine.ask(&cmake, &["--version"]) {
        let line = text.lines().next().unwrap_or_default();
        let found = version_key(line);
        if found.len() >= 2 && found[..2] < OLDEST_CMAKE[..] {
            bail!("{cmake} is {line}; the packs need CMake 3.21 or newer");
        }
    }
    let ninja = tool("ninja");
    if ninja.is_none() && machine.os == Os::Windows {
        bail!(
            "no ninja on the PATH or inside Visual Studio; its other generators cannot use HIP's compiler"
        );
    }
    let mut environment_command = None;
    if machine.os == Os::Windows {
        match &visual_studio {
            Some(found) => {
                environment_command =
                    Some(found.environment_command(options.vcvars_ver.as_deref())?);
            }
            None if machine.var("INCLUDE").is_some() => warnings.push(
                "Visual Studio was not found; building in the environment of this prompt"
                    .to_owned(),
            ),
            None => bail!(
                "no Visual Studio or Build Tools with C++ was found; install the workload \
                 \"Desktop development with C++\""
            ),
        }
    }
    let mut definitions = common(options, machine);
    let mut environment = BTreeMap::new();
    let (mut rocm, mut compilers, mut gpu_targets) = (None, None, Vec::new());
    let mut pack = format!("{:?}", options.backend).to_lowercase();
    match options.backend {
        Backend::Hip => {
            let found = rocm::find(options.rocm_path.as_deref(), machine)?;
            gpu_targets = gfx::targets(&options.gpu_targets, machine, &found)?;
            let pair = found.compilers(machine)?;
            hip(
                options,
                machine,
                &found,
                &gpu_targets,
                &pair,
                &mut definitions,
                &mut warnings,
            );
            pack = format!("rocm_v{}", found.major());
            for name in ["ROCM_PATH", "HIP_PATH"] {
                environment.insert(name.into(), found.path.clone());
            }
            (rocm, compilers) = (Some(found), Some(pair));
        }
        Backend::Cuda => cuda(options, &mut definitions),
        Backend::Vulkan => {
            definitions.insert("GGML_VULKAN".into(), "ON".into());
        }
        Backend::Metal => {
            definitions.insert("GGML_METAL".into(), "ON".into());
            definitions.insert("GGML_METAL_EMBED_LIBRARY".into(), "ON".into());
        }
        Backend::Cpu => {
            // One plugin for processors with AVX2, or one for each instruction set level.
            let all = on(options.no_native_cpu);
            definitions.insert("GGML_CPU_ALL_VARIANTS".into(), all);
        }
    }
    for text in &options.define {
        let Some((key, value)) = text.split_once('=') else {
            bail!("--define {text}: expected KEY=VALUE");
        };
        definitions.insert(key.trim_start_matches("-D").to_owned(), value.to_owned());
    }
    let folder = places.out.join("lib").join("audiocpp").join(&pack);
    let jobs = options
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    if jobs == 0 {
        bail!("--jobs 0: at least one compiler must run");
    }
    Ok(Plan {
        backend: options.backend,
        pack,
        trial_compile: options.backend == Backend::Hip && machine.os == Os::Windows,
        rocm,
        compilers,
        visual_studio,
        environment_command,
        environment,
        cmake_target: match options.backend {
            Backend::Cpu => "all".into(),
            backend => format!("ggml-{backend:?}").to_lowercase(),
        },
        programs: match options.target {
            Target::Plugin => vec![],
            Target::Cli => vec!["audiocpp_cli".into()],
            Target::Server => vec!["audiocpp_server".into()],
            Target::All => vec!["audiocpp_cli".into(), "audiocpp_server".into()],
        },
        cpu: if options.no_native_cpu {
            "all"
        } else {
            "native"
        }
        .into(),
        gpu_targets,
        jobs,
        build: slashed(&places.build),
        folder: slashed(&folder),
        configure: configure(places, ninja.as_deref(), &definitions),
        cmake,
        ninja,
        definitions,
        warnings,
    })
}

/// Options that would have no effect are errors.
fn refuse_misplaced(options: &Options, machine: &Machine) -> Result<()> {
    let hip_only = [
        (options.gpu_targets != "auto", "--gpu-targets"),
        (options.rocm_path.is_some(), "--rocm-path"),
        (options.no_hipblaslt, "--no-hipblaslt"),
        (options.with_vmm, "--with-vmm"),
        (options.graphs, "--graphs"),
    ];
    let misplaced = hip_only.iter().find(|(given, _)| *given);
    if let (true, Some((_, flag))) = (options.backend != Backend::Hip, misplaced) {
        bail!(
            "{flag} is for the HIP pack; this is `pack {:?}`",
            options.backend
        );
    }
    let shared = matches!(options.backend, Backend::Hip | Backend::Cuda);
    if !shared && options.force_mmq {
        bail!("--force-mmq is for the HIP and CUDA packs");
    }
    if options.cuda_architectures.is_some() && options.backend != Backend::Cuda {
        bail!("--cuda-architectures is for the CUDA pack");
    }
    if options.vcvars_ver.is_some() && machine.os != Os::Windows {
        bail!("--vcvars-ver chooses an MSVC toolset; this is not Windows");
    }
    if options.backend == Backend::Metal && machine.os != Os::Mac {
        bail!("the Metal pack is built on macOS");
    }
    Ok(())
}

fn on(yes: bool) -> String {
    if yes { "ON" } else { "OFF" }.to_owned()
}

/// Definitions that every pack has.
fn common(options: &Options, machine: &Machine) -> BTreeMap<String, String> {
    let build_type = format!("{:?}", options.build_type);
    let mut all: BTreeMap<String, String> = [
        ("CMAKE_BUILD_TYPE", build_type.as_str()),
        ("BUILD_SHARED_LIBS", "ON"),
        ("GGML_BACKEND_DL", "ON"),
        ("GGML_NATIVE", "OFF"),
        ("GGML_LLAMAFILE", "ON"),
        ("GGML_OPENMP", "OFF"),
        ("AUDIOCPP_STAND_IN", "OFF"),
        ("CMAKE_BUILD_WITH_INSTALL_RPATH", "ON"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    // Beside the plugin lie libraries that the pack brings; one folder up, ggml's own.
    let rpath = match machine.os {
        Os::Linux => Some("$ORIGIN;$ORIGIN/.."),
        Os::Mac => Some("@loader_path;@loader_path/.."),
        Os::Windows => None,
    };
    if let Some(rpath) = rpath {
        all.insert("CMAKE_INSTALL_RPATH".into(), rpath.into());
    }
    all
}

fn hip(
    options: &Options,
    machine: &Machine,
    rocm: &Rocm,
    targets: &[String],
    compilers: &[String; 2],
    definitions: &mut BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) {
    let [c, cxx] = compilers;
    let mut set = |key: &str, value: String| definitions.insert(key.to_owned(), value);
    set("GGML_HIP", "ON".into());
    set("GPU_TARGETS", targets.join(";"));
    set("GGML_HIP_HIPBLASLT", on(!options.no_hipblaslt));
    set("GGML_CUDA_FORCE_MMQ", on(options.force_mmq));
    set("GGML_HIP_NO_VMM", on(!options.with_vmm));
    set("GGML_HIP_GRAPHS", on(options.graphs));
    set("CMAKE_PREFIX_PATH", rocm.path.clone());
    if machine.os == Os::Windows {
        // There CMake has no HIP language: ggml's sources are C++ for HIP's own compiler.
        set("CMAKE_C_COMPILER", c.clone());
        set("CMAKE_CXX_COMPILER", cxx.clone());
    } else {
        set("CMAKE_HIP_COMPILER", cxx.clone());
    }
    if !options.no_hipblaslt && !rocm.has_package("hipblaslt", machine) {
        warnings.push(format!(
            "{} has no hipBLASLt development package: matrix products will go through hipBLAS alone \
             (--no-hipblaslt says that this is meant)",
            rocm.path
        ));
    }
    let integrated = |name: &&String| name.starts_with("gfx115") || *name == "gfx1103";
    if options.graphs && targets.iter().any(|name| integrated(&name)) {
        warnings.push(
            "integrated GPUs among the targets: with graphs compiled in they can run out of shared \
             memory; GGML_CUDA_DISABLE_GRAPHS=1 turns them off at run time"
                .into(),
        );
    }
    if options.with_vmm && targets.iter().any(|name| integrated(&name)) {
        warnings.push(
            "integrated GPUs among the targets: virtual memory management fails on many of them"
                .into(),
        );
    }
}

fn cuda(options: &Options, definitions: &mut BTreeMap<String, String>) {
    let mut set = |key: &str, value: String| definitions.insert(key.to_owned(), value);
    set("GGML_CUDA", "ON".into());
    set("GGML_CUDA_GRAPHS", "ON".into());
    set("GGML_CUDA_FORCE_MMQ", on(options.force_mmq));
    set("GGML_CUDA_NCCL", "OFF".into());
    if let Some(list) = &options.cuda_architectures {
        set("CMAKE_CUDA_ARCHITECTURES", list.replace(',', ";"));
    }
}

fn configure(
    places: &Places,
    ninja: Option<&str>,
    definitions: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut args = vec![
        "-S".into(),
        slashed(&places.lists),
        "-B".into(),
        slashed(&places.build),
    ];
    if let Some(ninja) = ninja {
        args.push("-GNinja".into());
        args.push(format!("-DCMAKE_MAKE_PROGRAM={ninja}"));
    }
    args.extend(
        definitions
            .iter()
            .map(|(key, value)| format!("-D{key}={value}")),
    );
    args
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pack      {} -> {}", self.pack, self.folder)?;
        if let Some(rocm) = &self.rocm {
            writeln!(
                f,
                "rocm      {} in {} ({})",
                rocm.version, rocm.path, rocm.found_by
            )?;
            writeln!(f, "targets   {}", self.gpu_targets.join(" "))?;
        }
        if let Some([_, cxx]) = &self.compilers {
            writeln!(f, "compiler  {cxx}")?;
        }
        if let Some(found) = &self.visual_studio {
            writeln!(
                f,
                "studio    {}, MSVC {}",
                found.path,
                found.toolsets.join(", ")
            )?;
        }
        writeln!(
            f,
            "configure {} {}",
            self.cmake,
            shell_words::join(&self.configure)
        )?;
        writeln!(
            f,
            "build     {} with {} compilers",
            self.cmake_target, self.jobs
        )?;
        for program in &self.programs {
            writeln!(f, "program   {program} (AUDIOCPP_CPU={})", self.cpu)?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

/// ggml's source as external/ggml/build.rs finds it: `GGML_SOURCE_DIR`, else the pinned crate.
pub fn ggml_source() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("GGML_SOURCE_DIR") {
        return Ok(dir.into());
    }
    let text = sh::capture(&mut sh::cargo([
        "metadata",
        "--format-version=1",
        "--locked",
    ]))?;
    let graph: serde_json::Value = serde_json::from_str(&text)?;
    let manifest = graph["packages"]
        .as_array()
        .and_then(|all| all.iter().find(|p| p["name"] == "llama-cpp-sys-2"))
        .and_then(|p| p["manifest_path"].as_str());
    match manifest.and_then(|path| Path::new(path).parent()) {
        Some(dir) => Ok(dir.join("llama.cpp/ggml")),
        None => bail!("the crate that carries ggml is not in the dependency graph"),
    }
}
