//! Backends and devices: what there is, what may be used, what was asked for.
//!
//! Device strings are parsed in [`spec`], plugins are found and loaded in [`load`], [`select`]
//! ranks and chooses. A device's kind follows from the name of its ggml registry, at run time.
pub mod banner;
pub mod device;
pub mod doctor;
pub mod fast_path;
pub mod gfx;
pub mod kind;
mod known_bad;
pub mod launch;
pub mod load;
pub mod memory;
pub mod pack;
pub mod probe;
pub mod registry;
pub mod select;
pub mod spec;

pub use banner::Banner;
pub use device::{DeviceClass, DeviceInfo};
pub use fast_path::{Choices, Decision, FastPath};
pub use gfx::Gfx;
pub use kind::BackendType;
pub use load::{LoadReport, Search};
pub use memory::Memory;
pub use probe::{Host, HostGpu};
pub use registry::{Backend, GraphPolicy, Verdict, backend};
pub use select::{Opened, Plan, Request, SelectError, Skipped};
pub use spec::{DeviceSpec, PciAddress, Which};

/// The devices of this process and how they came to be.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// Every device that the loaded backends offer.
    pub devices: Vec<DeviceInfo>,
    /// What was loaded from where, and what was not.
    pub report: LoadReport,
    /// The GPUs that the operating system lists, usable or not.
    pub gpus: Vec<HostGpu>,
}

impl Inventory {
    /// Loads the backends that a request can end on, and lists their devices. Backends stay
    /// loaded; asking again is cheap and refreshes the memory figures.
    pub fn for_request(request: &Request) -> Inventory {
        match request.spec.kind() {
            BackendType::Best => Inventory::discover(&BackendType::all().collect::<Vec<_>>()),
            BackendType::Cpu => Inventory::discover(&[BackendType::Cpu]),
            kind => Inventory::discover(&[BackendType::Cpu, kind]),
        }
    }

    /// Loads the backends of these kinds, where plugins are normally found, and lists devices.
    pub fn discover(kinds: &[BackendType]) -> Inventory {
        Inventory::discover_on(kinds, &Search::standard(), &Host::here())
    }

    /// The same with a search path and a host of one's own.
    pub fn discover_on(kinds: &[BackendType], search: &Search, host: &Host) -> Inventory {
        let gpus = host.gpus();
        let targets: Vec<Gfx> = gpus.iter().filter_map(|gpu| gpu.gfx).collect();
        let report = load::load(kinds, search, &targets);
        let entries = ggml_sys::plugins::devices();
        let available = probe::system::memory_available(host);
        let devices = device::from_entries(&entries, |entry, info| {
            device::join_host(entry, info, &gpus, available);
        });
        Inventory {
            devices,
            report,
            gpus,
        }
    }

    /// GPUs that the operating system lists and no loaded backend offers.
    pub fn unused_gpus(&self) -> Vec<&HostGpu> {
        let offered = |gpu: &HostGpu| {
            self.devices
                .iter()
                .any(|device| device.pci == Some(gpu.pci))
        };
        self.gpus.iter().filter(|gpu| !offered(gpu)).collect()
    }

    /// Compares a device with the plugin that offers it.
    pub fn judge(&self, device: &DeviceInfo) -> Verdict {
        backend(device.backend).map_or(Verdict::Usable, |backend| {
            backend.judge(device, &self.report)
        })
    }

    /// Why there is no device of a kind.
    pub fn why_missing(&self, kind: BackendType) -> String {
        if self.report.loaded(kind) {
            return format!("the {kind} backend is loaded and finds no device");
        }
        self.report.reason(kind)
    }

    /// The devices to try for a request, in order.
    pub fn plan(&self, request: &Request) -> Result<Plan, SelectError> {
        select::plan(
            request,
            &self.devices,
            &|device| self.judge(device),
            &|kind| self.why_missing(kind),
        )
    }
}
