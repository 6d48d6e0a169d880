//! Open speech and audio models on CPU, NVIDIA, AMD, Vulkan and Metal through ggml.
//!
//! The house has six floors; a module imports only from the floors below it.
//! See `docs/architecture.md` for the picture and the nouns.
#![deny(unsafe_code)]

pub mod audio;
pub mod backend;
pub mod engine;
pub mod graph;
pub mod nn;
pub mod sampling;
pub mod simd;
pub mod text;
pub mod weights;

/// The version of this library, with the commit that it was built from.
pub fn version() -> &'static str {
    concat!(
        env!("CARGO_PKG_VERSION"),
        " (",
        env!("AUDIOCPP_COMMIT"),
        ")"
    )
}

/// What `--version` prints for `program`: version, commit, and the backends that load here with
/// their devices; one line each.
pub fn about(program: &str) -> String {
    let kinds: Vec<_> = backend::BackendType::all().collect();
    let inventory = backend::Inventory::discover(&kinds);
    let mut text = format!("{program} {}\n", version());
    for kind in kinds.iter().filter(|kind| inventory.report.loaded(**kind)) {
        let of_kind = inventory
            .devices
            .iter()
            .filter(|device| device.backend == *kind);
        let devices: Vec<String> = of_kind
            .map(|device| format!("{} ({})", device.spec(), device.description))
            .collect();
        let devices = if devices.is_empty() {
            "no device".to_owned()
        } else {
            devices.join(", ")
        };
        text.push_str(&format!("backend {kind}: {devices}\n"));
    }
    text
}
