//! The topology that AMD's compute driver (KFD) publishes: which GPUs can run HIP, and their
//! instruction sets.
use super::{Host, number};
use crate::backend::{gfx::Gfx, spec::PciAddress};
use serde::Serialize;
use std::{collections::HashMap, io};

const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// One GPU node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Number of the node; not the number that HIP gives the device.
    pub id: u32,
    /// Instruction set; none if the kernel's number does not decode.
    pub gfx: Option<Gfx>,
    /// PCI address.
    pub pci: Option<PciAddress>,
    /// AMD's identifier, `GPU-` and sixteen hexadecimal digits.
    pub uuid: Option<String>,
    /// Minor number of its render node.
    pub render_minor: Option<u32>,
    /// Number of SIMD units.
    pub simd_count: u64,
}

/// The GPU nodes, and what stood in the way of reading others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// GPU nodes in order of their number.
    pub nodes: Vec<Node>,
    /// Number of CPU nodes.
    pub cpu_nodes: usize,
    /// Files that could not be read, with the system's reason.
    pub problems: Vec<String>,
}

/// Reads the topology; empty where there is no KFD.
pub fn nodes(host: &Host) -> Topology {
    let mut topology = Topology::default();
    for name in host.names(NODES) {
        let Ok(id) = name.parse::<u32>() else {
            continue;
        };
        let path = format!("{NODES}/{name}/properties");
        match host.read(&path) {
            Ok(text) => match node(id, &properties(&text)) {
                Some(node) => topology.nodes.push(node),
                None => topology.cpu_nodes += 1,
            },
            // A container may hide nodes of GPUs that it was not given.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                topology.problems.push(format!("{path}: not there"));
            }
            Err(error) => topology.problems.push(format!("{path}: {error}")),
        }
    }
    topology
}

/// `key value` lines; the whole key counts, so that `not_gfx_target_version` is another one.
fn properties(text: &str) -> HashMap<&str, u64> {
    text.lines()
        .filter_map(|line| {
            let (key, value) = line.trim().split_once(char::is_whitespace)?;
            Some((key, number(value)?))
        })
        .collect()
}

/// None for a CPU node.
fn node(id: u32, properties: &HashMap<&str, u64>) -> Option<Node> {
    let get = |key: &str| properties.get(key).copied();
    let simd_count = get("simd_count").unwrap_or(0);
    let version = get("gfx_target_version").unwrap_or(0);
    // An APU of the oldest kind is CPU and GPU in one node; it has SIMD units all the same.
    if simd_count == 0 && version == 0 {
        return None;
    }
    Some(Node {
        id,
        gfx: u32::try_from(version)
            .ok()
            .and_then(Gfx::from_target_version),
        pci: get("location_id").and_then(|location| address(location, get("domain").unwrap_or(0))),
        uuid: get("unique_id")
            .filter(|id| *id != 0)
            .map(|id| format!("GPU-{id:016x}")),
        render_minor: get("drm_render_minor")
            .filter(|minor| *minor != 0)
            .and_then(|minor| u32::try_from(minor).ok()),
        simd_count,
    })
}

/// Bus, device and function packed as PCI does: 8, 5 and 3 bits.
fn address(location: u64, domain: u64) -> Option<PciAddress> {
    if location > 0xffff {
        return None;
    }
    Some(PciAddress {
        domain: u32::try_from(domain).ok()?,
        bus: (location >> 8) as u8,
        device: (location >> 3 & 31) as u8,
        function: (location & 7) as u8,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, Gpu};
    use super::*;

    #[test]
    fn cpu_nodes_are_counted_and_gpus_decoded() {
        let machine = Fixture::new().kfd_cpu(0).gpu(1, &Gpu::strix_halo());
        let topology = nodes(&machine.host(&[]));
        assert_eq!((topology.cpu_nodes, topology.nodes.len()), (1, 1));
        assert_eq!(topology.nodes[0].simd_count, 80);
    }

    #[test]
    fn whole_keys_and_crlf() {
        let text = "not_gfx_target_version 90010\r\ngfx_target_version 110501\r\nsimd_count 8\r\n";
        let node = node(1, &properties(text)).unwrap();
        assert_eq!(node.gfx.unwrap().to_string(), "gfx1151");
        assert_eq!((node.pci, node.uuid), (None, None));
    }

    #[test]
    fn gfx90a_and_undecodable_versions() {
        let of = |version: u32| {
            let text = format!("simd_count 4\ngfx_target_version {version}\n");
            node(1, &properties(&text)).unwrap().gfx
        };
        assert_eq!(of(90010).unwrap().to_string(), "gfx90a");
        assert_eq!(of(77), None);
    }

    #[test]
    fn addresses_unpack() {
        assert_eq!(address(0xc100, 0).unwrap().to_string(), "0000:c1:00.0");
        assert_eq!(address(0x03fd, 2).unwrap().to_string(), "0002:03:1f.5");
        assert_eq!(address(0x1_0000, 0), None);
    }

    #[test]
    fn unreadable_nodes_are_problems() {
        let machine = Fixture::new().gpu(1, &Gpu::rx7900());
        machine.remove("sys/class/kfd/kfd/topology/nodes/1/properties");
        machine.dir("sys/class/kfd/kfd/topology/nodes/2/properties");
        machine.dir("sys/class/kfd/kfd/topology/nodes/readme");
        let topology = nodes(&machine.host(&[]));
        assert!(topology.nodes.is_empty());
        assert_eq!(topology.problems.len(), 2, "{topology:?}");
        assert!(topology.problems[0].contains("nodes/1"));
    }
}
