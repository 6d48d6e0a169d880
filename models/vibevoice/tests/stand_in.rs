//! The stand-in for a GPU gives the CPU's numbers at every stage.
#![cfg(unix)]

mod package;

use std::path::Path;

use audiocpp::{
    backend::{DeviceSpec, Inventory},
    engine::{Model, check::compare},
    graph::{Device, DeviceOptions},
    weights::Policy,
};
use audiocpp_vibevoice::open;

#[test]
fn stages_are_those_of_the_cpu() {
    let cpu = Device::cpu(2).unwrap();
    let plugin = Path::new(ggml_sys::BUILD_LIB_DIR).join("stand_in/libggml-hip.so");
    ggml_sys::plugins::load(&plugin).unwrap();
    let inventory = Inventory::discover(&[]);
    let kind = "hip".parse::<DeviceSpec>().unwrap().kind();
    let mut found = inventory.devices.iter();
    let gpu = found.find(|d| d.backend == kind).expect("the stand-in");
    let gpu = Device::open_unchecked(gpu, &DeviceOptions::default()).unwrap();
    assert!(!gpu.is_cpu());
    for (policy, limit) in [
        (Policy::F32, 1e-4),
        (Policy::F16, 2e-2),
        (Policy::Q8_0, 5e-2),
    ] {
        let folder = package::write("hf", |_, _| ());
        let [reference, stages] = [&cpu, &gpu].map(|device| {
            let model = open(folder.path(), device, policy).unwrap();
            model.stages().unwrap()
        });
        for stage in compare(&stages, &reference, limit).unwrap() {
            println!("{policy} {}: {:.1e}", stage.stage, stage.relative);
            assert!(stage.passed, "{policy}: {stage:?}");
        }
    }
}
