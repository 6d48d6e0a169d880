//! Machines laid out as files, for tests.
use super::Host;
use std::{fs, path::PathBuf};

/// A temporary root folder.
pub(crate) struct Fixture {
    root: tempfile::TempDir,
}

/// What the kernel would say about one AMD GPU.
pub(crate) struct Gpu {
    pub version: u32,
    pub pci: &'static str,
    pub device: u32,
    pub unique_id: u64,
    pub render_minor: u32,
    pub simd_count: u32,
    pub vram: u64,
    pub gtt: u64,
}

impl Gpu {
    pub fn strix_halo() -> Gpu {
        Gpu {
            version: 110_501,
            pci: "0000:c1:00.0",
            device: 0x1586,
            unique_id: 0xdead_beef,
            render_minor: 128,
            simd_count: 80,
            vram: 512 << 20,
            gtt: 60 << 30,
        }
    }

    pub fn rx7900() -> Gpu {
        Gpu {
            version: 110_000,
            pci: "0000:03:00.0",
            device: 0x744c,
            unique_id: 1,
            render_minor: 128,
            simd_count: 192,
            vram: 24 << 30,
            gtt: 32 << 30,
        }
    }

    pub fn raphael() -> Gpu {
        Gpu {
            version: 100_306,
            pci: "0000:0d:00.0",
            device: 0x164e,
            unique_id: 0,
            render_minor: 129,
            simd_count: 4,
            vram: 512 << 20,
            gtt: 32 << 30,
        }
    }
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture {
            root: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn host(&self, variables: &[(&str, &str)]) -> Host {
        Host::at(self.root.path(), variables)
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a file has a folder")).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn dir(&self, relative: &str) {
        fs::create_dir_all(self.path(relative)).unwrap();
    }

    pub fn remove(&self, relative: &str) {
        fs::remove_file(self.path(relative)).unwrap();
    }

    pub fn kfd_cpu(self, node: u32) -> Fixture {
        self.write(
            &format!("sys/class/kfd/kfd/topology/nodes/{node}/properties"),
            "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\nlocation_id 0\n",
        );
        self
    }

    /// A GPU on the bus and in the topology, with its render node and a `/dev/kfd`.
    pub fn gpu(self, node: u32, gpu: &Gpu) -> Fixture {
        let bus = u32::from_str_radix(&gpu.pci[5..7], 16).unwrap();
        self.write(
            &format!("sys/class/kfd/kfd/topology/nodes/{node}/properties"),
            &format!(
                "cpu_cores_count 0\nsimd_count {}\nvendor_id 4098\ndevice_id {}\nlocation_id {}\ndomain 0\ndrm_render_minor {}\nunique_id {}\ngfx_target_version {}\n",
                gpu.simd_count,
                gpu.device,
                bus << 8,
                gpu.render_minor,
                gpu.unique_id,
                gpu.version
            ),
        );
        let pci = format!("sys/bus/pci/devices/{}", gpu.pci);
        for (file, text) in [
            ("class", "0x030000\n".to_owned()),
            ("vendor", "0x1002\n".to_owned()),
            ("device", format!("{:#06x}\n", gpu.device)),
            ("mem_info_vram_total", gpu.vram.to_string()),
            ("mem_info_vram_used", "1048576".to_owned()),
            ("mem_info_gtt_total", gpu.gtt.to_string()),
            ("mem_info_gtt_used", "0".to_owned()),
        ] {
            self.write(&format!("{pci}/{file}"), &text);
        }
        self.dir(&format!("{pci}/drm/renderD{}", gpu.render_minor));
        // The driver's own folder need not exist: the link's last part is its name.
        #[cfg(unix)]
        std::os::unix::fs::symlink(
            "../../../bus/pci/drivers/amdgpu",
            self.path(&format!("{pci}/driver")),
        )
        .unwrap();
        self.dir("sys/module/amdgpu");
        self.write("dev/kfd", "");
        self.write(&format!("dev/dri/renderD{}", gpu.render_minor), "");
        self
    }
}
