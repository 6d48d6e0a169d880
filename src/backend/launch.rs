//! Variables that must be in the environment before a program starts.
//!
//! ggml and the vendor's libraries read some settings from the environment, once, and changing
//! the environment of a running process is not safe. A program that needs such a setting starts
//! itself again with it; a worker process gets it from its parent.
use super::{
    kind::BackendType,
    probe::{AMD, Host},
};

/// What turns GPU graphs off, read by ggml when it runs its first graph.
pub const NO_GRAPHS_VARIABLE: &str = "GGML_CUDA_DISABLE_GRAPHS";

/// Ends this program with `code`. If a GPU's backend was loaded, exit handlers are left out:
/// vendors' runtimes have been seen to hang in theirs.
pub fn exit(code: u8) -> ! {
    let gpu = |name: &String| BackendType::of_registry(name).is_some_and(BackendType::is_gpu);
    if ggml_sys::plugins::registries().iter().any(gpu) {
        ggml_sys::exit_now(code);
    }
    std::process::exit(code.into())
}

/// Whether the environment of this process turns GPU graphs off.
pub fn graphs_are_off() -> bool {
    // ggml asks whether the variable is there, not what it says.
    std::env::var_os(NO_GRAPHS_VARIABLE).is_some()
}

/// Variables to set for a program that uses a GPU: those that are needed and not set.
///
/// `no_gpu_graphs` is the user's wish. On a machine whose only GPUs are integrated ones of AMD,
/// graphs are off anyway: each one takes memory that the system needs.
pub fn variables(no_gpu_graphs: bool, host: &Host) -> Vec<(&'static str, &'static str)> {
    let gpus = host.gpus();
    let integrated =
        |gpu: &super::HostGpu| gpu.vendor == AMD && gpu.gfx.is_some_and(|gfx| gfx.is_integrated());
    let only_integrated = !gpus.is_empty() && gpus.iter().all(integrated);
    let wanted = no_gpu_graphs || only_integrated;
    let mut list = Vec::new();
    if wanted && host.variable(NO_GRAPHS_VARIABLE).is_none() {
        list.push((NO_GRAPHS_VARIABLE, "1"));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::super::probe::fixture::{Fixture, Gpu};
    use super::*;

    #[test]
    fn graphs_go_off_on_request_and_on_integrated_machines() {
        let off = [(NO_GRAPHS_VARIABLE, "1")];
        let none = Fixture::new();
        assert!(variables(false, &none.host(&[])).is_empty());
        assert_eq!(variables(true, &none.host(&[])), off);
        assert!(variables(true, &none.host(&off)).is_empty());
        let apu = Fixture::new().gpu(1, &Gpu::strix_halo());
        assert_eq!(variables(false, &apu.host(&[])), off);
        let both = Fixture::new()
            .gpu(1, &Gpu::rx7900())
            .gpu(2, &Gpu::raphael());
        assert!(variables(false, &both.host(&[])).is_empty());
    }
}
