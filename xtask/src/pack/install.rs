//! Tests of scripts/install.sh: a small release folder, and folders that stand for machines.

use crate::sh;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// A release, a machine and a place to install to.
struct Scene {
    folder: TempDir,
}

impl Scene {
    /// A release with the base, HIP packs for ROCm 7 and 10, and Vulkan.
    fn new() -> Scene {
        let scene = Scene {
            folder: tempfile::tempdir().unwrap(),
        };
        scene.release("cpu", "cpu", "-", "0.26.0");
        scene.release("rocm_v7", "hip", "gfx1100,gfx90a:xnack-", "0.26.0");
        scene.release("rocm_v10", "hip", "gfx1100,gfx1201", "0.26.0");
        scene.release("vulkan", "vulkan", "-", "0.26.0");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds one archive to the release, as `--release` does.
    fn release(&self, pack: &str, backend: &str, targets: &str, version: &str) {
        let tree = self.path(&format!("tree-{pack}"));
        let plugin = format!("tree-{pack}/lib/audiocpp/{pack}/libggml-{backend}.so");
        self.write(&plugin, version);
        let pack_folder = tree.join("lib/audiocpp").join(pack);
        super::manifest::write_checksums(&pack_folder).unwrap();
        if backend == "cpu" {
            self.write(&format!("tree-{pack}/bin/audiocpp_cli"), version);
        }
        let archive = format!("{pack}.tar.gz");
        fs::create_dir_all(self.path("release")).unwrap();
        let file = self.path("release").join(&archive);
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&file).arg("-C").arg(&tree).arg(".");
        assert!(tar.status().unwrap().success());
        let sum = super::manifest::sha256(&file).unwrap();
        let append = |name: &str, line: String| {
            let path = self.path("release").join(name);
            let old = fs::read_to_string(&path).unwrap_or_default();
            let kept: String = old
                .lines()
                .filter(|l| !l.contains(&archive))
                .map(|l| format!("{l}\n"))
                .collect();
            fs::write(path, kept + &line).unwrap();
        };
        append("SHA256SUMS", format!("{sum}  {archive}\n"));
        append("PACKS", format!("{pack} {backend} {archive} {targets}\n"));
    }

    /// A GPU of the machine, as the kernel's compute driver shows it.
    fn gpu(&self, node: u32, version: u32) {
        self.write(
            &format!("machine/sys/class/kfd/kfd/topology/nodes/{node}/properties"),
            &format!("simd_count 64\nnot_gfx_target_version 1\ngfx_target_version {version}\n"),
        );
    }

    fn pci(&self, vendor: &str) {
        self.write("machine/sys/bus/pci/devices/0000:03:00.0/vendor", vendor);
        self.write(
            "machine/sys/bus/pci/devices/0000:03:00.0/class",
            "0x030000\n",
        );
    }

    fn install(&self, args: &[&str]) -> Output {
        fs::create_dir_all(self.path("machine")).unwrap();
        Command::new("sh")
            .arg(sh::root().join("scripts/install.sh"))
            .arg("--prefix")
            .arg(self.path("prefix"))
            .args(args)
            .env("AUDIOCPP_DOWNLOAD_BASE", self.path("release"))
            .env("AUDIOCPP_SYSTEM_ROOT", self.path("machine"))
            .output()
            .unwrap()
    }

    /// What a successful run says.
    fn says(&self, args: &[&str]) -> String {
        let output = self.install(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn installed(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path("prefix/lib/audiocpp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_machine_without_a_gpu_gets_the_base() {
    let scene = Scene::new();
    let said = scene.says(&[]);
    assert!(said.contains("install: cpu ->"), "{said}");
    assert_eq!(scene.installed(), ["cpu"]);
    assert_eq!(read(&scene.path("prefix/bin/audiocpp_cli")), "0.26.0");
}

#[test]
fn an_amd_gpu_gets_the_newest_pack_whose_runtime_is_there() {
    let scene = Scene::new();
    scene.gpu(0, 0);
    scene.gpu(1, 110_000);
    let said = scene.says(&["--dry-run"]);
    assert!(
        said.contains("gfx1100: pack rocm_v") && said.contains("runtime is not installed"),
        "{said}"
    );
    assert!(!scene.path("prefix").exists(), "a dry run writes nothing");
    scene.write("machine/opt/rocm-7.2.4/lib/libamdhip64.so.7", "");
    scene.says(&[]);
    assert_eq!(scene.installed(), ["cpu", "rocm_v7"]);
    // 10 is newer than 7. The pack of the older release goes with it.
    scene.write("machine/opt/rocm/core-10.1/lib/libamdhip64.so.10", "");
    scene.says(&[]);
    assert_eq!(scene.installed(), ["cpu", "rocm_v10"]);
}

#[test]
fn targets_are_decoded_and_compared_whole() {
    let scene = Scene::new();
    scene.write("machine/opt/rocm/lib/libamdhip64.so.7", "");
    scene.gpu(1, 90_010);
    assert!(scene.says(&["--dry-run"]).contains("gfx90a: pack rocm_v7"));
    scene.gpu(1, 110_501);
    let said = scene.says(&["--dry-run"]);
    assert!(said.contains("gfx1151: no pack of this release"), "{said}");
}

#[test]
fn a_gpu_without_its_driver_is_told_so_and_vulkan_is_offered() {
    let scene = Scene::new();
    scene.pci("0x1002\n");
    scene.write("machine/dev/dri/renderD128", "");
    scene.write("machine/usr/lib/x86_64-linux-gnu/libvulkan.so.1", "");
    let said = scene.says(&["--dry-run"]);
    assert!(
        said.contains("compute driver") && said.contains("install: cpu vulkan"),
        "{said}"
    );
    scene.pci("0x10de\n");
    assert!(scene.says(&["--dry-run"]).contains("no CUDA pack"));
}

#[test]
fn packs_by_name() {
    let scene = Scene::new();
    scene.says(&["--packs", "vulkan,rocm_v10"]);
    assert_eq!(scene.installed(), ["cpu", "rocm_v10", "vulkan"]);
    let output = scene.install(&["--packs", "rocm_v9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("rocm_v10"));
    assert_eq!(scene.install(&["--no-such-option"]).status.code(), Some(2));
}

#[test]
fn a_damaged_archive_changes_nothing() {
    let scene = Scene::new();
    scene.says(&[]);
    scene.release("cpu", "cpu", "-", "0.27.0");
    scene.write("release/cpu.tar.gz", "damaged");
    let output = scene.install(&[]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(read(&scene.path("prefix/bin/audiocpp_cli")), "0.26.0");
    let left = fs::read_dir(scene.path("prefix/lib")).unwrap().count();
    assert_eq!(left, 1, "the staging folder is gone");
    scene.release("cpu", "cpu", "-", "0.27.0");
    scene.says(&[]);
    assert_eq!(read(&scene.path("prefix/bin/audiocpp_cli")), "0.27.0");
}
