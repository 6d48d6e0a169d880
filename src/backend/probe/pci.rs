//! GPUs on the PCI bus, with their drivers and memory counters.
use super::{Host, HostGpu, number};
use crate::backend::{memory::DrmMemory, spec::PciAddress};
use std::fs;

const DEVICES: &str = "/sys/bus/pci/devices";

/// Display controllers, and processing accelerators (Instinct cards without outputs).
fn is_gpu(class: u64) -> bool {
    matches!(class >> 16, 0x03 | 0x12)
}

/// Every GPU on the bus, in order of address.
pub fn gpus(host: &Host) -> Vec<HostGpu> {
    let mut list: Vec<HostGpu> = host
        .names(DEVICES)
        .iter()
        .filter_map(|name| gpu(host, name))
        .collect();
    list.sort_by_key(|gpu| gpu.pci);
    list
}

fn gpu(host: &Host, name: &str) -> Option<HostGpu> {
    let pci: PciAddress = name.parse().ok()?;
    let folder = format!("{DEVICES}/{name}");
    let attribute = |file: &str| host.read(&format!("{folder}/{file}")).ok();
    let value = |file: &str| attribute(file).as_deref().and_then(number);
    if !is_gpu(value("class")?) {
        return None;
    }
    let driver = fs::read_link(host.path(&format!("{folder}/driver")))
        .ok()
        .and_then(|link| Some(link.file_name()?.to_str()?.to_owned()));
    let render_minor = host
        .names(&format!("{folder}/drm"))
        .iter()
        .find_map(|name| name.strip_prefix("renderD")?.parse().ok());
    Some(HostGpu {
        pci,
        vendor: u32::try_from(value("vendor")?).ok()?,
        device: u32::try_from(value("device").unwrap_or(0)).unwrap_or(0),
        product: attribute("product_name")
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty()),
        driver,
        gfx: None,
        uuid: None,
        render_minor,
        memory: DrmMemory {
            vram_total: value("mem_info_vram_total"),
            vram_used: value("mem_info_vram_used"),
            gtt_total: value("mem_info_gtt_total"),
            gtt_used: value("mem_info_gtt_used"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, Gpu};
    use super::*;

    #[test]
    fn only_gpus_are_listed_and_a_driver_may_be_missing() {
        let machine = Fixture::new().gpu(1, &Gpu::rx7900());
        machine.write("sys/bus/pci/devices/0000:00:1f.6/class", "0x020000\n");
        machine.write("sys/bus/pci/devices/0000:00:1f.6/vendor", "0x8086\n");
        machine.write("sys/bus/pci/devices/0000:41:00.0/class", "0x120000\n");
        machine.write("sys/bus/pci/devices/0000:41:00.0/vendor", "0x1002\n");
        machine.write("sys/bus/pci/devices/junk/class", "0x030000\n");
        let found = gpus(&machine.host(&[]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].driver.as_deref(), Some("amdgpu"));
        assert_eq!((found[1].driver.as_deref(), found[1].device), (None, 0));
        assert_eq!(found[0].render_minor, Some(128));
    }
}
