//! What differs between the backends, behind one trait; one implementation a kind.
use super::{
    device::{DeviceClass, DeviceInfo},
    kind::BackendType,
    launch,
    load::LoadReport,
    pack::{self, Fit},
};
use ggml_sys::{blaslt, plugins};
use serde::Serialize;

/// Live graphs that a GPU with memory of its own keeps: each one reserves some of it.
pub const MAX_LIVE_GRAPHS: usize = 8;
/// Live graphs that a device keeps whose backend captures none.
const MAX_PLAIN_GRAPHS: usize = 32;

/// How captured GPU graphs are used on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphPolicy {
    /// Whether the backend may capture and replay its kernels as a graph.
    pub gpu_graphs: bool,
    /// Most graphs (buckets of shapes) that stay allocated; the least recently used is freed first
    /// and planned again when it is used next.
    pub max_live: usize,
    /// Whether the allocations of a request are given back at its end.
    pub release_after_request: bool,
    /// Why, in a few words for the banner.
    pub reason: &'static str,
}

impl GraphPolicy {
    /// The policy of a backend that captures no graphs.
    pub fn none() -> GraphPolicy {
        GraphPolicy {
            gpu_graphs: false,
            max_live: MAX_PLAIN_GRAPHS,
            release_after_request: false,
            reason: "the backend has none",
        }
    }
}

/// Whether a device may be used with the plugin that offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing speaks against it.
    Usable,
    /// It may work; `auto` leaves it out, an explicit request tries it. The reason is inside.
    Doubtful(String),
    /// It cannot work; opening it would end the process. The reason is inside.
    Unusable(String),
}

/// The behaviour of one kind of backend.
pub trait Backend: Sync {
    /// The kind.
    fn kind(&self) -> BackendType;

    /// Place in `auto`'s order among discrete GPUs, smallest first.
    fn rank(&self) -> u8;

    /// Compares a device with the plugin that offers it, before anything is loaded onto it.
    fn judge(&self, device: &DeviceInfo, report: &LoadReport) -> Verdict {
        let _ = (device, report);
        Verdict::Usable
    }

    /// The library or code that large matrix products run through on a device.
    fn gemm_route(&self, device: &DeviceInfo) -> String;

    /// The default for GPU graphs on a device.
    fn graphs(&self, device: &DeviceInfo) -> GraphPolicy {
        let _ = device;
        GraphPolicy::none()
    }

    /// Bytes of which the place of a part of a tensor must be a multiple for every operator to
    /// read it there.
    fn view_alignment(&self) -> usize {
        1
    }

    /// Whether products are summed in half precision unless told otherwise.
    fn sums_in_half(&self) -> bool {
        false
    }

    /// What a user can do when no device of this kind is there.
    fn advice(&self) -> &'static str;
}

struct Cpu;
struct Cuda;
struct Hip;
struct Vulkan;
struct Metal;

static BACKENDS: [&dyn Backend; 5] = [&Cpu, &Cuda, &Hip, &Vulkan, &Metal];

/// The implementation for a kind; none for `Best`, which is not a kind of device.
pub fn backend(kind: BackendType) -> Option<&'static dyn Backend> {
    BACKENDS
        .iter()
        .copied()
        .find(|backend| backend.kind() == kind)
}

/// Every implementation.
pub fn all() -> impl Iterator<Item = &'static dyn Backend> {
    BACKENDS.iter().copied()
}

/// The policy of backends that capture graphs: CUDA's, which HIP shares. `built` says whether the
/// plugin can, `off` whether the environment forbids it.
fn captured(device: &DeviceInfo, built: bool, off: bool) -> GraphPolicy {
    let integrated = device.class == DeviceClass::Integrated;
    let (on, reason) = match (built, off, integrated) {
        (false, ..) => (false, "the plugin was built without"),
        (true, true, true) => (false, "integrated GPU: each graph takes shared memory"),
        (true, true, false) => (false, "off by GGML_CUDA_DISABLE_GRAPHS"),
        // ggml reads the variable once, so a library's user has to set it before the first graph.
        (true, false, true) => (
            true,
            "integrated GPU; GGML_CUDA_DISABLE_GRAPHS=1 saves memory",
        ),
        (true, false, false) => (true, "default"),
    };
    GraphPolicy {
        gpu_graphs: on,
        max_live: if integrated { 2 } else { MAX_LIVE_GRAPHS },
        release_after_request: integrated,
        reason,
    }
}

fn has_feature(registry: &str, feature: &str) -> bool {
    plugins::features(registry)
        .iter()
        .any(|(name, value)| name == feature && value != "0")
}

impl Backend for Cpu {
    fn kind(&self) -> BackendType {
        BackendType::Cpu
    }

    fn rank(&self) -> u8 {
        u8::MAX
    }

    fn gemm_route(&self, device: &DeviceInfo) -> String {
        if has_feature(&device.registry, "LLAMAFILE") {
            "ggml+llamafile".to_owned()
        } else {
            "ggml".to_owned()
        }
    }

    fn advice(&self) -> &'static str {
        "put libggml-cpu beside the program or name its folder in AUDIOCPP_BACKEND_PATH"
    }
}

impl Backend for Cuda {
    fn kind(&self) -> BackendType {
        BackendType::Cuda
    }

    fn rank(&self) -> u8 {
        0
    }

    fn gemm_route(&self, device: &DeviceInfo) -> String {
        gpu_gemm(device, "cuBLAS")
    }

    fn graphs(&self, device: &DeviceInfo) -> GraphPolicy {
        captured(
            device,
            has_feature(&device.registry, "USE_GRAPHS"),
            launch::graphs_are_off(),
        )
    }

    fn advice(&self) -> &'static str {
        "install NVIDIA's driver and the CUDA pack"
    }
}

/// The kill switch of the BLASLt route: `0` turns it off.
pub const BLASLT_VARIABLE: &str = "AUDIOCPP_BLASLT";

fn gpu_gemm(device: &DeviceInfo, plain: &str) -> String {
    let off = std::env::var(BLASLT_VARIABLE).is_ok_and(|value| value == "0");
    let mut route = match blaslt::library(&device.registry) {
        Some(lt) if off => format!("{plain} ({lt} off by {BLASLT_VARIABLE}=0)"),
        Some(lt) => format!("{lt}, then {plain}"),
        None => plain.to_owned(),
    };
    if has_feature(&device.registry, "FORCE_MMQ") {
        route.push_str("; MMQ for quantised weights");
    }
    route
}

impl Backend for Hip {
    fn kind(&self) -> BackendType {
        BackendType::Hip
    }

    fn rank(&self) -> u8 {
        1
    }

    fn judge(&self, device: &DeviceInfo, report: &LoadReport) -> Verdict {
        let Some(found) = report.pack_of(&device.registry) else {
            return Verdict::Usable;
        };
        let name = &found.manifest.name;
        match found.fit(device.gfx) {
            Fit::Yes => Verdict::Usable,
            Fit::Unknown { targets } => Verdict::Doubtful(format!(
                "its instruction set cannot be read, so it cannot be compared with the targets of pack {name} ({}); name the device explicitly to try it",
                pack::list(&targets)
            )),
            Fit::No { gfx, targets } => Verdict::Unusable(format!(
                "it is {gfx}, and pack {name} has kernels for {} only; use a pack with {gfx}, or --device vulkan or cpu",
                pack::list(&targets)
            )),
        }
    }

    fn gemm_route(&self, device: &DeviceInfo) -> String {
        gpu_gemm(device, "hipBLAS")
    }

    fn graphs(&self, device: &DeviceInfo) -> GraphPolicy {
        captured(
            device,
            has_feature(&device.registry, "USE_GRAPHS"),
            launch::graphs_are_off(),
        )
    }

    fn advice(&self) -> &'static str {
        "install the amdgpu driver and a ROCm pack; `audiocpp_cli doctor` says what is missing"
    }
}

impl Backend for Vulkan {
    fn kind(&self) -> BackendType {
        BackendType::Vulkan
    }

    fn rank(&self) -> u8 {
        3
    }

    fn gemm_route(&self, _: &DeviceInfo) -> String {
        "ggml shaders".to_owned()
    }

    /// Shaders are given whole buffers from such places; most of ggml's cannot begin further in,
    /// and end the process. Drivers may want up to this much (`minStorageBufferOffsetAlignment`).
    fn view_alignment(&self) -> usize {
        256
    }

    /// On an H200 that put Whisper's encoder 1.2e-2 from the CPU's, where CUDA is within 2.4e-3.
    fn sums_in_half(&self) -> bool {
        true
    }

    fn advice(&self) -> &'static str {
        "install the GPU's Vulkan driver and the Vulkan pack"
    }
}

impl Backend for Metal {
    fn kind(&self) -> BackendType {
        BackendType::Metal
    }

    fn rank(&self) -> u8 {
        2
    }

    fn gemm_route(&self, _: &DeviceInfo) -> String {
        "ggml kernels".to_owned()
    }

    fn advice(&self) -> &'static str {
        "Metal needs macOS on Apple hardware"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::device::tests::device;
    use super::*;
    use crate::backend::{
        load::Attempt,
        pack::{Manifest, Pack},
    };

    #[test]
    fn every_kind_has_one_implementation() {
        for kind in BackendType::all() {
            assert_eq!(backend(kind).unwrap().kind(), kind);
        }
        assert!(backend(BackendType::Best).is_none());
        let mut ranks: Vec<u8> = all().map(|backend| backend.rank()).collect();
        ranks.sort();
        ranks.dedup();
        assert_eq!(ranks.len(), BACKENDS.len());
    }

    #[test]
    fn integrated_gpus_keep_graphs_off_and_few() {
        let big = device(BackendType::Hip, 0, DeviceClass::Discrete);
        let small = device(BackendType::Hip, 0, DeviceClass::Integrated);
        let policy = captured(&big, true, false);
        assert!(policy.gpu_graphs && policy.max_live == MAX_LIVE_GRAPHS);
        assert!(!policy.release_after_request);
        let policy = captured(&small, true, true);
        assert!(!policy.gpu_graphs && policy.max_live == 2 && policy.release_after_request);
        // What was not switched off in time is not said to be off.
        assert!(captured(&small, true, false).gpu_graphs);
        assert!(!captured(&big, true, true).gpu_graphs);
        assert!(!captured(&big, false, false).gpu_graphs);
    }

    /// A HIP pack in `dir` with kernels for `targets`, loaded.
    pub(crate) fn loaded_pack(targets: &[&str], dir: std::path::PathBuf) -> LoadReport {
        LoadReport {
            attempts: vec![Attempt {
                backend: BackendType::Hip,
                path: dir.join("libggml-hip.so"),
                pack: Some("rocm_v7".into()),
                registry: Some("ROCm".into()),
                error: None,
            }],
            packs: vec![Pack {
                dir,
                manifest: Manifest {
                    name: "rocm_v7".into(),
                    backend: BackendType::Hip,
                    ggml: "0.26.0".into(),
                    api_version: 3,
                    rocm: Some("7.2.4".into()),
                    gfx_targets: targets.iter().map(|&t| t.to_owned()).collect(),
                    options: Default::default(),
                },
            }],
            ..LoadReport::default()
        }
    }

    fn report(targets: &[&str]) -> LoadReport {
        loaded_pack(targets, "/packs/rocm_v7".into())
    }

    #[test]
    fn hip_compares_the_packs_targets_with_the_device() {
        let mut gpu = device(BackendType::Hip, 0, DeviceClass::Discrete);
        assert!(matches!(
            Hip.judge(&gpu, &report(&["gfx1100"])),
            Verdict::Doubtful(_)
        ));
        gpu.gfx = "gfx1152".parse().ok();
        let Verdict::Unusable(reason) = Hip.judge(&gpu, &report(&["gfx1100", "gfx1151"])) else {
            panic!("a pack without gfx1152 fits no gfx1152");
        };
        assert!(
            reason.contains("gfx1152") && reason.contains("gfx1100, gfx1151"),
            "{reason}"
        );
        assert_eq!(Hip.judge(&gpu, &report(&["gfx1152"])), Verdict::Usable);
        assert_eq!(Hip.judge(&gpu, &report(&[])), Verdict::Usable);
        assert_eq!(Hip.judge(&gpu, &LoadReport::default()), Verdict::Usable);
    }
}
