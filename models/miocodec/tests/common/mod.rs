//! Packages of formula weights, and a stand-in for a GPU.
#![allow(dead_code)] // each test uses a part

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use audiocpp::{
    backend::{DeviceSpec, Host, Inventory, Search},
    graph::{Device, DeviceOptions},
};
use audiocpp_testing::formula;
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};

pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/miocodec")
        .join(name)
}

/// A folder like a published one.
pub struct Package(tempfile::TempDir);

impl Package {
    /// 24 kHz, with WavLM in the same file.
    pub fn wave() -> Package {
        Package::new("config.yaml", &["tensors.json"])
    }

    /// 44.1 kHz, without WavLM.
    pub fn wave_44k() -> Package {
        Package::new("config_wave_44k.yaml", &["tensors_wave_44k.json"])
    }

    /// Mel spectra and vocoder, without WavLM.
    pub fn mel() -> Package {
        let package = Package::new(
            "config_mel.yaml",
            &["tensors_mel.json", "tensors_vocoder.json"],
        );
        let config = package.path().join("vocoder_config.json");
        std::fs::copy(data("vocoder_config.json"), config).unwrap();
        package
    }

    fn new(config: &str, layouts: &[&str]) -> Package {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(data(config), folder.path().join("config.yaml")).unwrap();
        let tensors = tensors(layouts);
        write(&folder.path().join("model.safetensors"), &tensors, |name| {
            Some(name.to_owned())
        });
        Package(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Name, shape and values.
pub type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

/// The formula weights of some layouts. Activations of the vocoder have the opposite sign: as they
/// are, 31 of them in a row are chaotic.
pub fn tensors(layouts: &[&str]) -> Tensors {
    let layout = |file: &&str| -> BTreeMap<String, Vec<usize>> {
        serde_json::from_slice(&std::fs::read(data(file)).unwrap()).unwrap()
    };
    let all = layouts.iter().flat_map(layout);
    all.map(|(name, shape)| {
        let sign = match name.starts_with("vocoder.") && name.ends_with("act.alpha") {
            true => -1.0,
            false => 1.0,
        };
        let values = formula::tensor(&name, &shape).into_iter();
        let values = values.map(|x| sign * x).collect();
        (name, shape, values)
    })
    .collect()
}

/// Writes the tensors that `rename` has a name for.
pub fn write(path: &Path, tensors: &Tensors, rename: impl Fn(&str) -> Option<String>) {
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .filter_map(|(name, shape, values)| {
            let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            Some((rename(name)?, shape.clone(), bytes))
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    serialize_to_file(views, None, path).unwrap();
}

/// A device that registers as a GPU and computes on the CPU with ggml's own operators.
#[cfg(unix)]
pub fn stand_in() -> Device {
    let standard = Search::standard();
    let build = standard
        .places
        .last()
        .expect("the build has a folder of plugins");
    let mut search = standard.clone();
    search.places.insert(0, build.join("stand_in"));
    let gpu: DeviceSpec = "hip".parse().unwrap();
    let kinds = [DeviceSpec::CPU, gpu].map(|spec| spec.kind());
    let found = Inventory::discover_on(&kinds, &search, &Host::here());
    let mut devices = found.devices.iter();
    let info = devices.find(|device| device.backend == kinds[1]);
    let info = info.unwrap_or_else(|| panic!("{:?}", found.report));
    Device::open(info, &DeviceOptions::default()).unwrap()
}
