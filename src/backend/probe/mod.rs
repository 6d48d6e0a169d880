//! What the operating system knows about its GPUs, without any vendor library.
//!
//! Everything is read below one root folder, so that a test can lay out a machine as files.
pub mod child;
pub mod dev;
pub mod env;
#[cfg(test)]
pub(crate) mod fixture;
pub mod kfd;
pub mod libraries;
pub mod pci;
pub mod system;
pub mod windows;

use super::{gfx::Gfx, memory::DrmMemory, spec::PciAddress};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The environment variable that moves the root folder, for tests of the programs.
pub const ROOT_VARIABLE: &str = "AUDIOCPP_SYSFS_ROOT";

/// The kernel's attribute files are a few lines; what lies behind this many bytes is not read.
const LONGEST_ATTRIBUTE: u64 = 1 << 18;

/// AMD's PCI vendor number.
pub const AMD: u32 = 0x1002;

/// A machine: its files below a root folder, and the environment of this process.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
    variables: BTreeMap<String, String>,
}

/// One GPU as the kernel sees it, whether or not a backend can use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostGpu {
    /// PCI address.
    pub pci: PciAddress,
    /// PCI vendor, 0x1002 for AMD.
    pub vendor: u32,
    /// PCI device.
    pub device: u32,
    /// The kernel's name for the product; most consumer cards have none.
    pub product: Option<String>,
    /// The bound kernel driver, such as `amdgpu`.
    pub driver: Option<String>,
    /// AMD instruction set, from the KFD topology.
    pub gfx: Option<Gfx>,
    /// AMD's identifier, `GPU-` and sixteen hexadecimal digits.
    pub uuid: Option<String>,
    /// Minor number of the render node (`/dev/dri/renderD128` has 128).
    pub render_minor: Option<u32>,
    /// Memory counters.
    pub memory: DrmMemory,
}

impl Host {
    /// This machine; `AUDIOCPP_SYSFS_ROOT` moves the root.
    pub fn here() -> Host {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let root = variables
            .get(ROOT_VARIABLE)
            .filter(|root| !root.is_empty())
            .map_or_else(|| PathBuf::from("/"), PathBuf::from);
        Host { root, variables }
    }

    /// A machine laid out below `root`, with this environment.
    pub fn at(root: impl Into<PathBuf>, variables: &[(&str, &str)]) -> Host {
        Host {
            root: root.into(),
            variables: variables
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    /// The place of an absolute path below the root.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// A path of this machine without the root, for messages.
    pub fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(rest) => format!("/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// A variable of the environment; empty counts as unset.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The text of a small file.
    pub fn read(&self, absolute: &str) -> io::Result<String> {
        read_small(&self.path(absolute))
    }

    /// The names in a folder, numbers compared as numbers; empty if it cannot be read.
    pub fn names(&self, absolute: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(absolute)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_by_key(|name| super::pack::natural_key(name));
        names
    }

    /// Every GPU that the kernel lists, in order of PCI address; KFD nodes are joined by address.
    pub fn gpus(&self) -> Vec<HostGpu> {
        let nodes = kfd::nodes(self).nodes;
        let mut gpus = pci::gpus(self);
        for gpu in &mut gpus {
            if let Some(node) = nodes.iter().find(|node| node.pci == Some(gpu.pci)) {
                gpu.gfx = node.gfx;
                gpu.uuid = node.uuid.clone();
                gpu.render_minor = node.render_minor.or(gpu.render_minor);
            }
        }
        gpus
    }
}

/// Reads a small text file, such as a kernel attribute.
pub(crate) fn read_small(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(LONGEST_ATTRIBUTE)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A decimal or `0x` number, surrounding blanks allowed.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{Fixture, Gpu};
    use super::*;

    #[test]
    fn machines_without_gpus_are_empty() {
        let cpu = Fixture::new().kfd_cpu(0);
        assert!(cpu.host(&[]).gpus().is_empty());
        assert!(Host::at("/nowhere-at-all", &[]).gpus().is_empty());
    }

    #[test]
    fn strix_halo() {
        let machine = Fixture::new().kfd_cpu(0).gpu(1, &Gpu::strix_halo());
        let gpus = machine.host(&[]).gpus();
        assert_eq!(gpus.len(), 1);
        let gpu = &gpus[0];
        assert_eq!(gpu.gfx.unwrap().to_string(), "gfx1151");
        assert_eq!(gpu.pci.to_string(), "0000:c1:00.0");
        assert_eq!(gpu.driver.as_deref(), Some("amdgpu"));
        assert_eq!(gpu.render_minor, Some(128));
        assert_eq!(gpu.uuid.as_deref(), Some("GPU-00000000deadbeef"));
        assert_eq!(gpu.memory.gtt_total, Some(60 << 30));
    }

    #[test]
    fn discrete_and_integrated_are_told_apart_by_address() {
        let machine = Fixture::new()
            .kfd_cpu(0)
            .gpu(1, &Gpu::rx7900())
            .gpu(2, &Gpu::raphael());
        let found: Vec<String> = machine
            .host(&[])
            .gpus()
            .iter()
            .map(|gpu| format!("{} {}", gpu.pci, gpu.gfx.unwrap()))
            .collect();
        assert_eq!(found, ["0000:03:00.0 gfx1100", "0000:0d:00.0 gfx1036"]);
    }

    #[test]
    fn two_equal_cards_keep_their_own_identity() {
        let mut second = Gpu::rx7900();
        second.pci = "0000:83:00.0";
        second.unique_id = 2;
        second.render_minor = 129;
        let machine = Fixture::new().gpu(1, &Gpu::rx7900()).gpu(2, &second);
        let gpus = machine.host(&[]).gpus();
        assert_eq!(gpus.len(), 2);
        assert_ne!(gpus[0].uuid, gpus[1].uuid);
        assert_eq!(gpus[1].render_minor, Some(129));
    }

    #[test]
    fn missing_and_strange_files_leave_gaps_not_errors() {
        let machine = Fixture::new().gpu(1, &Gpu::rx7900());
        let node = "sys/class/kfd/kfd/topology/nodes/1/properties";
        let strange = "location_id 768\r\nsimd_count 8\r\nnot_gfx_target_version 90010\r\ngfx_target_version junk\r\n";
        machine.write(node, strange);
        assert_eq!(machine.host(&[]).gpus()[0].gfx, None);
        machine.remove("sys/bus/pci/devices/0000:03:00.0/mem_info_vram_total");
        machine.write("sys/bus/pci/devices/0000:03:00.0/mem_info_gtt_used", "-5");
        let memory = machine.host(&[]).gpus()[0].memory;
        assert_eq!((memory.vram_total, memory.gtt_used), (None, None));
    }

    #[test]
    fn paths_are_shown_as_on_the_machine() {
        let machine = Fixture::new();
        let host = machine.host(&[("A", ""), ("B", "1")]);
        assert_eq!(host.shown(&host.path("/dev/kfd")), "/dev/kfd");
        assert_eq!((host.variable("A"), host.variable("B")), (None, Some("1")));
        assert_eq!(
            (number("0x10"), number(" 12\n"), number("x")),
            (Some(16), Some(12), None)
        );
    }
}
