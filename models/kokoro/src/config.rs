//! The files of a package, and what the configuration among them says.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::LoadError;

/// The files of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// `config.json`, or `vocab.json` beside an ONNX export.
    pub config: PathBuf,
    /// The network.
    pub weights: PathBuf,
    /// Files of voices, in order of their names.
    pub voices: Vec<PathBuf>,
}

impl Package {
    /// What lies in the folder `path`, or in the folder of the weights at `path`: a configuration,
    /// one weight file, and voices beside it or under `voices/`.
    pub fn find(path: &Path) -> Option<Package> {
        let (folder, named) = match path.is_file() {
            true => (path.parent()?, Some(path.to_owned())),
            false => (path, None),
        };
        let config = ["config.json", "vocab.json"]
            .map(|name| folder.join(name))
            .into_iter()
            .find(|path| Config::read(path).is_ok())?;
        let weights = named.or_else(|| {
            let mut found = files(folder, &["onnx", "pth", "safetensors"]).into_iter();
            found.next().filter(|_| found.next().is_none())
        })?;
        let mut voices = files(folder, &["npz", "bin"]);
        voices.extend(files(&folder.join("voices"), &["pt", "npz", "bin"]));
        Some(Package {
            config,
            weights,
            voices,
        })
    }
}

/// The files of a folder with one of these endings, by name.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let wanted = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| endings.contains(&ending))
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(wanted).collect();
    found.sort();
    found
}

/// The configuration, as far as shapes of tensors do not tell it. What an ONNX export does not
/// bring is that of Kokoro-82M.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Config {
    /// Numbers of the phonemes.
    pub vocab: HashMap<String, i32>,
    /// The language model's.
    #[serde(default)]
    pub plbert: PlBert,
    /// The vocoder's.
    #[serde(default)]
    pub istftnet: IstftNet,
}

/// Numbers of the language model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)] // the names are the file's
#[serde(default)]
pub struct PlBert {
    pub num_attention_heads: usize,
    pub num_hidden_layers: usize,
}

impl Default for PlBert {
    fn default() -> Self {
        PlBert {
            num_attention_heads: 12,
            num_hidden_layers: 12,
        }
    }
}

/// Numbers of the vocoder.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)] // the names are the file's
#[serde(default)]
pub struct IstftNet {
    pub upsample_rates: Vec<usize>,
    pub resblock_dilation_sizes: Vec<Vec<usize>>,
    pub gen_istft_n_fft: usize,
    pub gen_istft_hop_size: usize,
}

impl Default for IstftNet {
    fn default() -> Self {
        IstftNet {
            upsample_rates: vec![10, 6],
            resblock_dilation_sizes: vec![vec![1, 3, 5]; 3],
            gen_istft_n_fft: 20,
            gen_istft_hop_size: 5,
        }
    }
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// [`LoadError::Package`].
    pub fn read(path: &Path) -> Result<Config, LoadError> {
        let problem = |problem: String| LoadError::package(path, problem);
        let bytes = std::fs::read(path).map_err(|e| problem(e.to_string()))?;
        let config: Config = serde_json::from_slice(&bytes).map_err(|e| problem(e.to_string()))?;
        let net = &config.istftnet;
        let small = |n: &usize| (1..=1 << 12).contains(n);
        let sane = (1..=4).contains(&net.upsample_rates.len())
            && net.upsample_rates.iter().all(|n| (2..=64).contains(n))
            && net.resblock_dilation_sizes.len() <= 8
            && net
                .resblock_dilation_sizes
                .iter()
                .all(|d| d.len() <= 8 && d.iter().all(small))
            && (4..=4096).contains(&net.gen_istft_n_fft)
            && (1..=net.gen_istft_n_fft / 2).contains(&net.gen_istft_hop_size)
            && (1..=256).contains(&config.plbert.num_attention_heads)
            && (1..=256).contains(&config.plbert.num_hidden_layers);
        match sane {
            true => Ok(config),
            false => Err(problem(format!(
                "{net:?} and {:?} make no Kokoro",
                config.plbert
            ))),
        }
    }
}
