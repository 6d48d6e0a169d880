//! Tests of the PowerShell scripts, which no machine here can run: they are parsed, their
//! parameters are compared with the options of `cargo xtask pack`, and what they pass on is
//! planned for a Windows machine made of files.

use super::{
    Backend, Options,
    machine::{Os, fake::FakeMachine},
    manifest::{self, GgmlVersion},
    plan::{self, Places, Plan},
};
use crate::sh;
use clap::{Args, Command, FromArgMatches};
use std::{collections::BTreeSet, fs, path::Path};
use tree_sitter::{Node, Parser};

/// Parameter of the script, and the option it becomes.
const PARAMETERS: [(&str, Option<&str>); 17] = [
    ("GpuTargets", Some("--gpu-targets")),
    ("RocmPath", Some("--rocm-path")),
    ("BuildType", Some("--build-type")),
    ("Target", Some("--target")),
    ("Jobs", Some("--jobs")),
    ("BuildDir", Some("--build-dir")),
    ("OutDir", Some("--out")),
    ("VcVarsVer", Some("--vcvars-ver")),
    ("ConfigureOnly", Some("--configure-only")),
    ("Clean", Some("--clean")),
    ("NoHipblasLt", Some("--no-hipblaslt")),
    ("ForceMmq", Some("--force-mmq")),
    ("NoVmm", None),
    ("WithVmm", Some("--with-vmm")),
    ("Graphs", Some("--graphs")),
    ("NoNativeCpu", Some("--no-native-cpu")),
    ("DryRun", Some("--dry-run")),
];

fn script(name: &str) -> String {
    fs::read_to_string(sh::root().join("scripts").join(name)).unwrap()
}

fn visit<'t>(node: Node<'t>, see: &mut dyn FnMut(Node<'t>)) {
    see(node);
    for i in 0..node.child_count() {
        visit(node.child(i as u32).unwrap(), see);
    }
}

/// The texts of all nodes of one kind; panics if the script does not parse.
fn nodes(text: &str, kind: &str) -> Vec<String> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_powershell::LANGUAGE.into())
        .unwrap();
    let tree = parser.parse(text, None).unwrap();
    let mut found = Vec::new();
    let mut errors = Vec::new();
    visit(tree.root_node(), &mut |node| {
        if node.is_error() || node.is_missing() {
            errors.push(node.start_position());
        }
        if node.kind() == kind {
            found.push(node.utf8_text(text.as_bytes()).unwrap().to_owned());
        }
    });
    assert!(errors.is_empty(), "syntax errors at {errors:?}");
    found
}

fn parameters(text: &str) -> BTreeSet<String> {
    nodes(text, "script_parameter")
        .iter()
        .map(|parameter| {
            // The attributes and the type precede the name; a default follows it.
            let declared = parameter.split('=').next().unwrap();
            declared.rsplit('$').next().unwrap().trim().to_owned()
        })
        .collect()
}

fn command() -> Command {
    Options::augment_args(Command::new("pack"))
}

/// The plan for these words after `cargo xtask pack`.
fn planned(words: &[&str], fake: &FakeMachine) -> anyhow::Result<Plan> {
    let line = [&["pack"], words].concat();
    let matches = command().try_get_matches_from(line)?;
    let options = Options::from_arg_matches(&matches)?;
    let places = Places::of(&options, Path::new("/src"), Path::new("/target"));
    plan::make(&options, &fake.machine, &places)
}

/// Windows with the HIP SDK 6.4 and 7.1, Visual Studio with its own CMake and ninja, and nothing on
/// the PATH.
fn windows() -> FakeMachine {
    const VS: &str = "C:/Program Files/Microsoft Visual Studio/18/Community";
    let tools = format!("{VS}/Common7/IDE/CommonExtensions/Microsoft/CMake");
    let mut fake = FakeMachine::new(Os::Windows)
        .file(&format!("{VS}/VC/Tools/MSVC/14.51.36000/x"), "")
        .file(&format!("{VS}/VC/Tools/MSVC/14.44.35207/x"), "")
        .file(&format!("{tools}/CMake/bin/cmake.exe"), "")
        .file(&format!("{tools}/Ninja/ninja.exe"), "")
        .answer(
            &format!("{tools}/CMake/bin/cmake.exe --version"),
            "cmake version 4.1.1-msvc1\n",
        );
    for (major, minor) in [(6, 4), (7, 1)] {
        let sdk = format!("C:/Program Files/AMD/ROCm/{major}.{minor}");
        let header =
            format!("#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n");
        fake = fake
            .file(&format!("{sdk}/include/hip/hip_version.h"), &header)
            .file(&format!("{sdk}/bin/clang.exe"), "")
            .file(&format!("{sdk}/bin/clang++.exe"), "")
            .file(
                &format!("{sdk}/lib/cmake/hipblaslt/hipblaslt-config.cmake"),
                "",
            )
            .file(&format!("{sdk}/bin/amdgpu-arch.exe"), "")
            .answer(&format!("{sdk}/bin/amdgpu-arch.exe"), "gfx1103\r\n");
    }
    fake
}

#[test]
fn every_script_parses_and_is_strict() {
    let folder = sh::root().join("scripts");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "ps1") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!parameters(&text).is_empty(), "{}", path.display());
            assert!(
                text.contains("Set-StrictMode -Version Latest"),
                "{}",
                path.display()
            );
            assert!(!text.contains("Invoke-Expression"), "{}", path.display());
            // Windows PowerShell 5.1 has none of these.
            for newer in ["??", "?.", " && ", " || ", "ForEach-Object -Parallel"] {
                let code = text
                    .lines()
                    .filter(|line| !line.trim_start().starts_with('#'));
                assert!(
                    code.clone().all(|line| !line.contains(newer)),
                    "{newer} in {}",
                    path.display()
                );
            }
            assert!(
                text.is_ascii(),
                "{}: 5.1 reads files without a mark as ANSI",
                path.display()
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 2);
    let broken = std::panic::catch_unwind(|| nodes("if ($x { 1 }", "script_parameter"));
    assert!(broken.is_err(), "the parser accepts anything");
}

#[test]
fn the_scripts_parameters_are_those_of_the_plan() {
    let text = script("build_windows_hip.ps1");
    let mut wanted: BTreeSet<String> = PARAMETERS.map(|(name, _)| name.to_owned()).into();
    wanted.insert("Json".into());
    assert_eq!(parameters(&text), wanted);
    // Each option that the script passes on exists, and each in the table is passed on.
    let options: BTreeSet<String> = command()
        .get_arguments()
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .collect();
    let passed: BTreeSet<String> = text
        .split(['\'', '"'])
        .filter(|word| word.starts_with("--"))
        .map(str::to_owned)
        .collect();
    for option in &passed {
        assert!(options.contains(option), "{option} is no option of `pack`");
    }
    for (name, option) in PARAMETERS {
        if let Some(option) = option {
            assert!(
                passed.contains(option),
                "{name} is not passed on as {option}"
            );
        }
    }
}

#[test]
fn windows_defaults() {
    let plan = planned(&["hip"], &windows()).unwrap();
    let set = |key: &str| plan.definitions[key].as_str();
    assert_eq!(plan.rocm.as_ref().unwrap().version, "7.1");
    assert_eq!(plan.pack, "rocm_v7");
    assert_eq!(plan.gpu_targets, ["gfx1103"]);
    assert_eq!(set("GGML_HIP_HIPBLASLT"), "ON");
    assert_eq!(set("GGML_HIP_GRAPHS"), "OFF");
    assert_eq!(set("GGML_HIP_NO_VMM"), "ON");
    assert_eq!(set("GGML_CUDA_FORCE_MMQ"), "OFF");
    assert_eq!(
        set("CMAKE_CXX_COMPILER"),
        "C:/Program Files/AMD/ROCm/7.1/bin/clang++.exe"
    );
    assert!(
        plan.cmake.contains("Visual Studio") && plan.ninja.as_ref().unwrap().ends_with("ninja.exe")
    );
    assert!(plan.trial_compile && plan.environment_command.is_some());
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    assert!(
        serde_json::to_string(&plan)
            .unwrap()
            .contains("\"backend\":\"hip\"")
    );
}

#[test]
fn windows_options() {
    let words = "hip --gpu-targets gfx1100;gfx1151 --no-hipblaslt --force-mmq --with-vmm --graphs \
         --no-native-cpu --target all --vcvars-ver 14.44 --jobs 8 --build-type debug";
    let words: Vec<&str> = words.split_whitespace().collect();
    let plan = planned(&words, &windows()).unwrap();
    let set = |key: &str| plan.definitions[key].as_str();
    assert_eq!(set("GPU_TARGETS"), "gfx1100;gfx1151");
    assert_eq!(set("GGML_HIP_HIPBLASLT"), "OFF");
    assert_eq!(set("GGML_HIP_GRAPHS"), "ON");
    assert_eq!(set("GGML_HIP_NO_VMM"), "OFF");
    assert_eq!(set("GGML_CUDA_FORCE_MMQ"), "ON");
    assert_eq!(set("CMAKE_BUILD_TYPE"), "Debug");
    assert_eq!((plan.jobs, plan.cpu.as_str()), (8, "all"));
    assert_eq!(plan.programs, ["audiocpp_cli", "audiocpp_server"]);
    assert!(
        plan.environment_command
            .as_ref()
            .unwrap()
            .contains("-vcvars_ver=14.44")
    );
    assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);
}

#[test]
fn what_is_missing_is_named() {
    let error = |words: &[&str], fake: &FakeMachine| planned(words, fake).unwrap_err().to_string();
    let bare = FakeMachine::new(Os::Windows);
    assert!(error(&["hip"], &bare).contains("cmake"));
    assert!(error(&["hip", "--vcvars-ver", "14.40"], &windows()).contains("14.44.35207"));
    assert!(error(&["hip", "--gpu-targets", "gfx42"], &windows()).contains("unknown GPU target"));
    assert!(
        error(&["cuda", "--gpu-targets", "gfx1100"], &windows())
            .contains("--gpu-targets is for the HIP pack")
    );
    assert!(error(&["metal"], &windows()).contains("macOS"));
    assert!(error(&["vulkan", "--force-mmq"], &windows()).contains("--force-mmq"));
    let old = windows().answer(
        "C:/Program Files/Microsoft Visual Studio/18/Community/Common7/IDE/CommonExtensions/Microsoft/CMake/CMake/bin/cmake.exe --version",
        "cmake version 3.18.0\n",
    );
    assert!(error(&["hip"], &old).contains("3.21"));
}

#[test]
fn linux_packs() {
    let fake = FakeMachine::new(Os::Linux)
        .var("PATH", "/bin:/usr/bin")
        .file("/usr/bin/cmake", "")
        .file("/usr/bin/ninja", "")
        .file(
            "/opt/rocm-7.2.4/include/hip/hip_version.h",
            "#define HIP_VERSION_MAJOR 7\n#define HIP_VERSION_MINOR 2\n",
        )
        .file("/opt/rocm-7.2.4/.info/version", "7.2.4-81")
        .file("/opt/rocm-7.2.4/llvm/bin/clang", "")
        .file("/opt/rocm-7.2.4/llvm/bin/clang++", "");
    let words = ["hip", "--gpu-targets", "gfx1100;gfx1151", "--out", "/o"];
    let plan = planned(&words, &fake).unwrap();
    // The programs' own reader is tested with the same file.
    let ggml = GgmlVersion {
        version: "0.26.0".into(),
        api: 3,
    };
    let sample = fs::read_to_string(sh::root().join("tests/data/backend/pack.json")).unwrap();
    assert_eq!(manifest::pack_json(&plan, &ggml), sample);
    assert_eq!(plan.folder, "/o/lib/audiocpp/rocm_v7");
    assert_eq!(
        plan.definitions["CMAKE_HIP_COMPILER"],
        "/opt/rocm-7.2.4/llvm/bin/clang++"
    );
    assert_eq!(
        plan.definitions["CMAKE_INSTALL_RPATH"],
        "$ORIGIN;$ORIGIN/.."
    );
    assert!(!plan.definitions.contains_key("CMAKE_CXX_COMPILER") && !plan.trial_compile);
    assert!(
        plan.warnings[0].contains("hipBLASLt"),
        "{:?}",
        plan.warnings
    );
    assert_eq!(plan.cmake_target, "ggml-hip");
    for (backend, key) in [("cuda", "GGML_CUDA"), ("vulkan", "GGML_VULKAN")] {
        let plan = planned(&[backend], &fake).unwrap();
        assert_eq!(plan.definitions[key], "ON");
        assert_eq!(plan.rocm, None);
        assert!(
            plan.definitions
                .keys()
                .all(|name| !name.starts_with("GGML_HIP"))
        );
    }
    let cpu = planned(&["cpu", "--no-native-cpu"], &fake).unwrap();
    assert_eq!(cpu.definitions["GGML_CPU_ALL_VARIANTS"], "ON");
    assert_eq!(cpu.backend, Backend::Cpu);
    let text = cpu.to_string();
    assert!(
        text.contains("configure /usr/bin/cmake -S /src/external/ggml/cmake"),
        "{text}"
    );
}
