//! Environment variables that change which GPUs a runtime sees or what it thinks they are.
use super::{Host, HostGpu};
use crate::backend::gfx::Gfx;
use serde::Serialize;

/// The variables, with what each does.
pub const VARIABLES: [(&str, &str); 17] = [
    ("ROCR_VISIBLE_DEVICES", "hides GPUs from every ROCm program"),
    (
        "HIP_VISIBLE_DEVICES",
        "hides GPUs from HIP, counted after ROCR's choice",
    ),
    (
        "CUDA_VISIBLE_DEVICES",
        "hides GPUs from CUDA, and from older HIP too",
    ),
    (
        "GPU_DEVICE_ORDINAL",
        "hides GPUs from AMD's OpenCL, and from HIP too",
    ),
    (
        "HSA_OVERRIDE_GFX_VERSION",
        "makes ROCm believe in another instruction set",
    ),
    ("HSA_ENABLE_SDMA", "0 turns the copy engines off"),
    (
        "ROCBLAS_TENSILE_LIBPATH",
        "where rocBLAS looks for its kernels",
    ),
    (
        "ROCBLAS_USE_HIPBLASLT",
        "sends rocBLAS products to hipBLASLt",
    ),
    (
        "HIPBLASLT_TENSILE_LIBPATH",
        "where hipBLASLt looks for its kernels",
    ),
    ("LD_LIBRARY_PATH", "where the loader looks first"),
    ("GGML_CUDA_DISABLE_GRAPHS", "turns GPU graphs off"),
    (
        "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
        "lets CUDA and HIP spill into host memory",
    ),
    ("GGML_VK_VISIBLE_DEVICES", "chooses Vulkan devices"),
    ("AUDIOCPP_BLASLT", "0 turns the BLASLt route off"),
    (
        "AUDIOCPP_BACKEND_PATH",
        "where plugins are looked for first",
    ),
    ("AUDIOCPP_DEVICE", "the device when no flag names one"),
    ("AUDIOCPP_FAST_PATH", "fast paths to force"),
];

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It may do harm.
    Warn,
    /// It will not work.
    Fail,
}

/// Something wrong with the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How much it matters.
    pub weight: Weight,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub fix: String,
}

/// The variables of the table that are set.
pub fn set(host: &Host) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&'static str, String)> = VARIABLES
        .iter()
        .filter_map(|(name, _)| Some((*name, host.variable(name)?.to_owned())))
        .collect();
    // ROCm also reads one override for each node.
    for node in 0..16 {
        let name = format!("HSA_OVERRIDE_GFX_VERSION_{node}");
        if let Some(value) = host.variable(&name) {
            found.push(("HSA_OVERRIDE_GFX_VERSION", format!("{value} (node {node})")));
        }
    }
    found
}

/// Compares the variables with each other and with the GPUs present.
pub fn problems(host: &Host, gpus: &[HostGpu]) -> Vec<Problem> {
    let mut list = Vec::new();
    let both = ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"].map(|name| host.variable(name));
    if let [Some(rocr), Some(hip)] = both {
        list.push(Problem {
            weight: Weight::Warn,
            text: format!(
                "ROCR_VISIBLE_DEVICES={rocr} and HIP_VISIBLE_DEVICES={hip} are both set; HIP counts among what ROCR leaves, which may be nothing"
            ),
            fix: "unset HIP_VISIBLE_DEVICES on Linux, and choose with --device hip:pci=ADDRESS".into(),
        });
    }
    if let Some(value) = host.variable("HSA_OVERRIDE_GFX_VERSION") {
        list.extend(override_problem(value, gpus));
    }
    for name in ["ROCBLAS_TENSILE_LIBPATH", "HIPBLASLT_TENSILE_LIBPATH"] {
        if let Some(value) = host.variable(name)
            && !host.path(value).is_dir()
        {
            list.push(Problem {
                weight: Weight::Fail,
                text: format!("{name}={value} names no folder; the library ends the process"),
                fix: format!("unset {name}"),
            });
        }
    }
    list
}

/// An override of another family runs code that the GPU does not have.
fn override_problem(value: &str, gpus: &[HostGpu]) -> Option<Problem> {
    let fix = "unset HSA_OVERRIDE_GFX_VERSION and use a pack with kernels for the GPU".to_owned();
    let Ok(pretended) = Gfx::from_override(value) else {
        return Some(Problem {
            weight: Weight::Fail,
            text: format!("HSA_OVERRIDE_GFX_VERSION={value} is no version such as 11.0.0"),
            fix,
        });
    };
    let real: Vec<Gfx> = gpus.iter().filter_map(|gpu| gpu.gfx).collect();
    let foreign: Vec<String> = real
        .iter()
        .filter(|gfx| !gfx.same_family(pretended))
        .map(Gfx::to_string)
        .collect();
    if !foreign.is_empty() {
        return Some(Problem {
            weight: Weight::Fail,
            text: format!(
                "HSA_OVERRIDE_GFX_VERSION={value} calls {} {pretended}, another family: expect memory faults",
                foreign.join(" and ")
            ),
            fix,
        });
    }
    if real.iter().all(|gfx| *gfx == pretended) {
        return None;
    }
    Some(Problem {
        weight: Weight::Warn,
        text: format!(
            "HSA_OVERRIDE_GFX_VERSION={value} makes libraries look for {pretended} kernels although the GPU is another one; AMD means it for debugging"
        ),
        fix,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, Gpu};
    use super::*;

    fn found(gpu: &Gpu, variables: &[(&str, &str)]) -> Vec<Problem> {
        let machine = Fixture::new().gpu(1, gpu);
        let host = machine.host(variables);
        problems(&host, &host.gpus())
    }

    #[test]
    fn overrides_are_compared_with_the_hardware() {
        let weight = |gpu: &Gpu, value: &str| {
            let problems = found(gpu, &[("HSA_OVERRIDE_GFX_VERSION", value)]);
            problems.first().map(|problem| problem.weight)
        };
        assert_eq!(weight(&Gpu::rx7900(), "11.0.0"), None);
        assert_eq!(weight(&Gpu::rx7900(), "11.0.1"), Some(Weight::Warn));
        assert_eq!(weight(&Gpu::strix_halo(), "11.0.0"), Some(Weight::Fail));
        assert_eq!(weight(&Gpu::rx7900(), "gfx1100"), Some(Weight::Fail));
    }

    #[test]
    fn double_visibility_and_missing_folders() {
        let both = [("ROCR_VISIBLE_DEVICES", "1"), ("HIP_VISIBLE_DEVICES", "1")];
        let problems = found(&Gpu::rx7900(), &both);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].text.contains("both set"));
        assert!(found(&Gpu::rx7900(), &both[..1]).is_empty());
        let gone = found(&Gpu::rx7900(), &[("ROCBLAS_TENSILE_LIBPATH", "/no/such")]);
        assert_eq!(gone[0].weight, Weight::Fail);
    }

    #[test]
    fn only_what_is_set_is_listed() {
        let machine = Fixture::new();
        let host = machine.host(&[
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("HSA_OVERRIDE_GFX_VERSION_1", "11.0.0"),
            ("HOME", "/home/somebody"),
        ]);
        assert_eq!(
            set(&host),
            [
                ("CUDA_VISIBLE_DEVICES", "0".to_owned()),
                ("HSA_OVERRIDE_GFX_VERSION", "11.0.0 (node 1)".to_owned()),
            ]
        );
    }
}
