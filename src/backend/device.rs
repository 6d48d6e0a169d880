//! What is known about one device before it is opened.
use super::{
    gfx::Gfx,
    kind::BackendType,
    memory::{self, Memory},
    probe::HostGpu,
    registry::{GraphPolicy, backend},
    spec::PciAddress,
};
use ggml_sys::{blaslt, plugins};
use serde::Serialize;

/// The kind of hardware behind a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceClass {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// The host processor.
    Cpu,
}

/// One device that a loaded backend offers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceInfo {
    /// Its kind, decided by the registry's name.
    pub backend: BackendType,
    /// Position among the devices of its kind, from 0: the N of `hip:N`.
    pub ordinal: u32,
    /// Name of the ggml registry, such as `ROCm`.
    pub registry: String,
    /// Position within that registry.
    pub index: u32,
    /// ggml's name, such as `ROCm0`.
    pub name: String,
    /// The vendor's name.
    pub description: String,
    /// Kind of hardware.
    pub class: DeviceClass,
    /// PCI address, if known: the only identity that all software agrees on.
    pub pci: Option<PciAddress>,
    /// AMD's identifier, `GPU-` and sixteen hexadecimal digits, if known.
    pub uuid: Option<String>,
    /// AMD instruction set, if known.
    pub gfx: Option<Gfx>,
    /// Free and total memory.
    pub memory: Memory,
}

impl DeviceInfo {
    /// The string that names this device on the command line, such as `hip:0`.
    pub fn spec(&self) -> String {
        match self.backend {
            BackendType::Cpu => "cpu".to_owned(),
            kind => format!("{kind}:{}", self.ordinal),
        }
    }

    /// The handle that opens it; none if its backend is not loaded in this process.
    pub fn handle(&self) -> Option<plugins::DeviceHandle> {
        plugins::handle(&self.registry, self.index)
    }

    /// How GPU graphs are used on it.
    pub fn graph_policy(&self) -> GraphPolicy {
        backend(self.backend).map_or_else(GraphPolicy::none, |backend| backend.graphs(self))
    }

    /// Whether it is a GPU of any class.
    pub fn is_gpu(&self) -> bool {
        self.class != DeviceClass::Cpu
    }
}

/// Turns ggml's entries into devices. Helpers of the CPU backend and registries that the table of
/// kinds does not know are left out. `describe` adds what the host knows about a device.
pub fn from_entries(
    entries: &[plugins::DeviceEntry],
    mut describe: impl FnMut(&plugins::DeviceEntry, &mut DeviceInfo),
) -> Vec<DeviceInfo> {
    let mut list: Vec<DeviceInfo> = Vec::new();
    for entry in entries {
        let Some(backend) = BackendType::of_registry(&entry.registry) else {
            continue;
        };
        let class = match entry.class {
            plugins::DeviceClass::Cpu => DeviceClass::Cpu,
            plugins::DeviceClass::Gpu => DeviceClass::Discrete,
            plugins::DeviceClass::IntegratedGpu => DeviceClass::Integrated,
            plugins::DeviceClass::Accelerator | plugins::DeviceClass::Meta => continue,
        };
        let ordinal = list.iter().filter(|known| known.backend == backend).count();
        let mut info = DeviceInfo {
            backend,
            ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
            registry: entry.registry.clone(),
            index: entry.index,
            name: entry.name.clone(),
            description: entry.description.clone(),
            class,
            pci: entry.pci.as_deref().and_then(|text| text.parse().ok()),
            uuid: None,
            gfx: runtime_gfx(entry).or_else(|| gfx_in(&entry.description)),
            memory: memory::join(
                entry.memory_free,
                entry.memory_total,
                None,
                None,
                class == DeviceClass::Integrated,
            ),
        };
        describe(entry, &mut info);
        list.push(info);
    }
    list
}

/// Adds what the kernel says about the device in the same slot: instruction set, identifier and
/// memory counters. `available` is the host's available memory in bytes.
///
/// Some versions of ggml call every HIP device discrete; the instruction set knows better.
pub fn join_host(
    entry: &plugins::DeviceEntry,
    info: &mut DeviceInfo,
    gpus: &[HostGpu],
    available: Option<u64>,
) {
    let gpu = gpus.iter().find(|gpu| Some(gpu.pci) == info.pci);
    if let Some(gpu) = gpu {
        info.gfx = gpu.gfx.or(info.gfx);
        info.uuid = gpu.uuid.clone();
    }
    if info.gfx.is_some_and(Gfx::is_integrated) {
        info.class = DeviceClass::Integrated;
    }
    info.memory = memory::join(
        entry.memory_free,
        entry.memory_total,
        gpu.map(|gpu| &gpu.memory),
        available.filter(|_| info.class == DeviceClass::Integrated),
        info.class == DeviceClass::Integrated,
    );
}

/// What the vendor's runtime says about a HIP device: the one source on Windows. An override in
/// the environment changes it, which is why the kernel's word comes first.
fn runtime_gfx(entry: &plugins::DeviceEntry) -> Option<Gfx> {
    blaslt::gpu_arch(&entry.registry, entry.index)?.parse().ok()
}

/// The first `gfx…` word of a description.
fn gfx_in(text: &str) -> Option<Gfx> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .find_map(|word| word.parse().ok())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::backend::Search;

    /// A device for tests of ranking and selection.
    pub(crate) fn device(backend: BackendType, ordinal: u32, class: DeviceClass) -> DeviceInfo {
        let names = backend.names().expect("a kind that devices have");
        DeviceInfo {
            backend,
            ordinal,
            registry: names.registries[0].to_owned(),
            index: ordinal,
            name: format!("{}{ordinal}", names.registries[0]),
            description: String::new(),
            class,
            pci: None,
            uuid: None,
            gfx: None,
            memory: Memory::UNKNOWN,
        }
    }

    #[test]
    fn gfx_is_found_in_words_only() {
        assert_eq!(
            gfx_in("AMD Radeon (gfx1100)").unwrap().to_string(),
            "gfx1100"
        );
        assert_eq!(gfx_in("AMD Radeon 8060S Graphics"), None);
        assert_eq!(gfx_in("agfx1100"), None);
    }

    fn entry(pci: &str, class: plugins::DeviceClass) -> plugins::DeviceEntry {
        crate::backend::load::load(&[BackendType::Cpu], &Search::standard(), &[]);
        plugins::DeviceEntry {
            handle: plugins::handle("CPU", 0).expect("the CPU is loaded"),
            registry: "ROCm".into(),
            index: 0,
            name: "ROCm0".into(),
            description: "AMD Radeon Graphics".into(),
            pci: Some(pci.into()),
            class,
            memory_free: 1 << 30,
            memory_total: 2 << 30,
            host_pointer: false,
        }
    }

    fn listed(entries: &[plugins::DeviceEntry], gpus: &[HostGpu]) -> Vec<DeviceInfo> {
        from_entries(entries, |entry, info| {
            join_host(entry, info, gpus, Some(64 << 30))
        })
    }

    #[test]
    fn the_kernel_completes_what_ggml_says() {
        use super::super::probe::fixture::{Fixture, Gpu};
        let machine = Fixture::new().gpu(1, &Gpu::strix_halo());
        let gpus = machine.host(&[]).gpus();
        for class in [
            plugins::DeviceClass::Gpu,
            plugins::DeviceClass::IntegratedGpu,
        ] {
            let found = listed(&[entry("0000:c1:00.0", class)], &gpus);
            assert_eq!(found[0].backend, BackendType::Hip);
            assert_eq!(found[0].class, DeviceClass::Integrated);
            assert_eq!(found[0].gfx.unwrap().to_string(), "gfx1151");
            assert_eq!(found[0].uuid.as_deref(), Some("GPU-00000000deadbeef"));
            assert!(found[0].memory.unified);
        }
        let elsewhere = listed(&[entry("0000:03:00.0", plugins::DeviceClass::Gpu)], &gpus);
        assert_eq!(
            (elsewhere[0].gfx, elsewhere[0].class),
            (None, DeviceClass::Discrete)
        );
    }

    #[test]
    fn helpers_and_unknown_registries_are_left_out() {
        let mut blas = entry("", plugins::DeviceClass::Accelerator);
        blas.registry = "CPU".into();
        let mut other = entry("", plugins::DeviceClass::Gpu);
        other.registry = "OpenCL".into();
        assert!(listed(&[blas, other], &[]).is_empty());
    }

    #[test]
    fn handles_of_unknown_devices_are_none() {
        assert!(
            device(BackendType::Hip, 7, DeviceClass::Discrete)
                .handle()
                .is_none()
        );
    }
}
