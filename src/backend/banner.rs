//! The one line that says what a program really runs on.
use super::{
    device::DeviceInfo,
    kind::BackendType,
    registry::{GraphPolicy, backend},
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a device is and how it computes; printed as one line, and given in JSON by programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Banner {
    /// Name of the ggml registry, such as `ROCm`.
    pub backend: String,
    /// The string that names the device, such as `hip:0`.
    pub device: String,
    /// Position among the devices of its kind.
    pub ordinal: u32,
    /// PCI address, or `-`.
    pub pci: String,
    /// AMD instruction set, or `-`.
    pub gfx: String,
    /// The vendor's name.
    pub name: String,
    /// What large matrix products run through.
    pub gemm: String,
    /// Whether kernels are captured and replayed as GPU graphs, and why.
    pub graphs: String,
}

impl Banner {
    /// Describes a device with the policy of its backend.
    pub fn of(device: &DeviceInfo) -> Banner {
        Banner::new(device, &device.graph_policy())
    }

    /// Describes a device with the policy that it runs under.
    pub fn new(device: &DeviceInfo, graphs: &GraphPolicy) -> Banner {
        let dash = || "-".to_owned();
        let on = if graphs.gpu_graphs { "on" } else { "off" };
        Banner {
            backend: device.registry.clone(),
            device: device.spec(),
            ordinal: device.ordinal,
            pci: device.pci.map_or_else(dash, |pci| pci.to_string()),
            gfx: device.gfx.map_or_else(dash, |gfx| gfx.to_string()),
            name: device.description.clone(),
            gemm: backend(device.backend).map_or_else(dash, |backend| backend.gemm_route(device)),
            graphs: match device.backend {
                BackendType::Cpu => dash(),
                _ => format!("{on} ({})", graphs.reason),
            },
        }
    }
}

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "backend={} device={} pci={} gfx={} name=\"{}\" gemm=\"{}\" graphs=\"{}\"",
            self.backend, self.ordinal, self.pci, self.gfx, self.name, self.gemm, self.graphs
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::{DeviceClass, tests::device};
    use super::*;

    #[test]
    fn the_line_names_everything() {
        let mut gpu = device(BackendType::Hip, 1, DeviceClass::Integrated);
        gpu.pci = "0000:c1:00.0".parse().ok();
        gpu.gfx = "gfx1151".parse().ok();
        gpu.description = "AMD Radeon 8060S Graphics".into();
        let graphs = GraphPolicy {
            gpu_graphs: false,
            max_live: 2,
            release_after_request: true,
            reason: "integrated GPU",
        };
        assert_eq!(
            Banner::new(&gpu, &graphs).to_string(),
            "backend=ROCm device=1 pci=0000:c1:00.0 gfx=gfx1151 name=\"AMD Radeon 8060S Graphics\" gemm=\"hipBLAS\" graphs=\"off (integrated GPU)\""
        );
        let cpu = device(BackendType::Cpu, 0, DeviceClass::Cpu);
        let line = Banner::new(&cpu, &graphs).to_string();
        assert!(
            line.contains("pci=- gfx=-") && line.ends_with("graphs=\"-\""),
            "{line}"
        );
    }
}
