//! The family: recognising packages, loading them, sessions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    backend::FastPath,
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, OptionKind, OptionSpec,
        Options, Result, RunContext, Scope, Session, Stage, Task,
    },
    graph::Device,
    nn::{WavLm, WavLmSize},
    weights::{self, Loader, Policy, Source},
};

use crate::{
    LoadError,
    config::{CLASS, Config},
    machine::{Machine, Networks},
    net::{Decoder, Encoder},
    speech::Speech,
    vocoder::{Vocoder, VocoderConfig},
};

/// Options of the family.
pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "wavlm",
    scope: Scope::Load,
    kind: OptionKind::Text,
    default: None,
    doc: "File or folder with WavLM base+, where the package has none.",
}];

/// What the files of a package are called.
const CONFIG: &str = "config.yaml";
const WEIGHTS: &str = "model.safetensors";
const VOCODER: &str = "vocoder_config.json";
/// What WavLM is called beside them; folders, or files with one of the endings.
const WAVLM: [&str; 2] = ["wavlm-base-plus", "wavlm_base_plus"];
const ENDINGS: [&str; 5] = ["safetensors", "gguf", "bin", "pt", "pth"];
/// What comes before WavLM's names, and the first of these.
const PREFIXES: [&str; 4] = ["", "wavlm", "model", "ssl_feature_extractor.model"];
const FIRST: &str = "feature_extractor.conv_layers.0.conv.weight";

/// The MioCodec family.
pub struct MioCodec;

impl Family for MioCodec {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "miocodec",
            title: "MioCodec: 25 tokens a second and a vector for the voice",
            tasks: &[Task::Codec, Task::Vc],
            formats: "a folder with config.yaml and model.safetensors, and with WavLM base+ \
                      (wavlm-base-plus/ or wavlm-base-plus.safetensors) for encoding",
            options: OPTIONS,
        }
    }

    fn fast_paths(&self) -> &'static [FastPath] {
        &[
            FastPath::PackedProjection,
            FastPath::FlashAttention,
            FastPath::BlockedProduct,
            FastPath::ShortConv,
            FastPath::AliasFreeSnake,
        ]
    }

    fn can_load(&self, path: &Path) -> bool {
        let Some(folder) = folder_of(path) else {
            return false;
        };
        let text = std::fs::read_to_string(folder.join(CONFIG));
        text.is_ok_and(|text| text.contains(CLASS)) && folder.join(WEIGHTS).is_file()
    }

    fn load(
        &self,
        path: &Path,
        options: &LoadOptions,
        context: &RunContext,
    ) -> Result<Box<dyn Model>> {
        options.options.check("miocodec", OPTIONS, Scope::Load)?;
        let policy = options.policy()?;
        let wavlm = options.options.text("wavlm").map(Path::new);
        options.load(context, |device| Ok(open(path, wavlm, device, policy)?))
    }
}

/// The folder of a package, named itself or by its configuration or weights.
fn folder_of(path: &Path) -> Option<&Path> {
    if path.is_dir() {
        return Some(path);
    }
    let name = path.file_name()?.to_str()?;
    [CONFIG, WEIGHTS].contains(&name).then(|| path.parent())?
}

/// WavLM in the package's folder or beside it.
fn wavlm_near(folder: &Path) -> Option<PathBuf> {
    let places = [Some(folder), folder.parent()];
    let names = || {
        let files = WAVLM
            .iter()
            .flat_map(|name| ENDINGS.map(|ending| format!("{name}.{ending}")));
        WAVLM.iter().map(|name| name.to_string()).chain(files)
    };
    let mut found = places
        .into_iter()
        .flatten()
        .flat_map(|place| names().map(|name| place.join(name)));
    found.find(|path| path.exists())
}

/// What a codec is built from.
pub struct Sources<'s> {
    /// Sizes.
    pub config: Config,
    /// Sizes of the vocoder, in the mel variant.
    pub vocoder: Option<VocoderConfig>,
    /// The weights of everything but WavLM.
    pub weights: &'s dyn Source,
    /// The weights of WavLM, what comes before their names, and the sizes.
    pub wavlm: Option<(&'s dyn Source, &'s str, WavLmSize)>,
}

/// A loaded codec; sessions share its weights.
pub struct MioCodecModel {
    nets: Arc<Networks>,
    loaded: Loaded,
}

/// Loads the package at `path` on `device`, with WavLM from the file or folder `wavlm` if one is
/// named.
///
/// # Errors
/// [`LoadError`]: not a MioCodec package, a damaged file, a device without room. A package without
/// WavLM is no error: it decodes.
pub fn open(
    path: &Path,
    wavlm: Option<&Path>,
    device: &Device,
    policy: Policy,
) -> std::result::Result<MioCodecModel, LoadError> {
    let folder = folder_of(path).unwrap_or(path);
    let read = |name: &str| {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path);
        text.map_err(|e| LoadError::package(&path, e.to_string()))
    };
    let wrong = |name: &str, problem: String| LoadError::package(&folder.join(name), problem);
    let config = Config::parse(&read(CONFIG)?).map_err(|problem| wrong(CONFIG, problem))?;
    let vocoder = match folder.join(VOCODER).is_file() && config.mels().is_some() {
        true => {
            let found = VocoderConfig::parse(&read(VOCODER)?);
            Some(found.map_err(|problem| wrong(VOCODER, problem))?)
        }
        false => None,
    };
    if let (Some(vocoder), Some(mels)) = (&vocoder, config.mels())
        && (vocoder.mels, vocoder.hop()) != (mels, config.hop)
    {
        let found = format!("{} mel bins and hop {}", vocoder.mels, vocoder.hop());
        let wanted = format!("{mels} and {} as in {CONFIG}", config.hop);
        return Err(wrong(VOCODER, format!("{found}, wanted {wanted}")));
    }
    let source = weights::open(folder.join(WEIGHTS))?;
    let own = format!("{}.{FIRST}", PREFIXES[3]);
    let apart = match wavlm {
        Some(path) => Some(path.to_owned()),
        None if source.find(&own).is_some() => None,
        None => wavlm_near(folder),
    };
    let apart = apart.map(|path| weights::open(&path)).transpose()?;
    let heard: &dyn Source = apart.as_deref().unwrap_or(&*source);
    let prefix = PREFIXES.into_iter().find(|prefix| {
        let joint = if prefix.is_empty() { "" } else { "." };
        heard.find(&format!("{prefix}{joint}{FIRST}")).is_some()
    });
    let wavlm = match prefix {
        Some(prefix) => {
            let size = WavLmSize::read(heard, prefix, config.ssl_layers())?;
            Some((heard, prefix, size))
        }
        None if apart.is_some() => {
            let problem = format!("no WavLM of torchaudio or transformers: it has no `{FIRST}`");
            return Err(LoadError::package(heard.path(), problem));
        }
        None => None,
    };
    let sources = Sources {
        config,
        vocoder,
        weights: &*source,
        wavlm,
    };
    build(sources, folder, device, policy)
}

/// Builds a codec from weights that are open; `path` gives it its name.
///
/// # Errors
/// [`LoadError`]: weights that are missing or have other shapes, a device without room.
pub fn build(
    sources: Sources,
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<MioCodecModel, LoadError> {
    let Sources {
        config,
        vocoder,
        weights,
        wavlm,
    } = sources;
    let short = device.fast_path(FastPath::ShortConv);
    let mut loaded = Loaded::new(path, device);
    let wavlm = match wavlm {
        Some((source, prefix, size)) => {
            for (what, found, wanted) in [
                ("its local encoder", size.width, config.local_encoder.dim),
                ("its global encoder", size.width, config.global.input),
            ] {
                if found != wanted {
                    let problem = format!("WavLM of width {found}: {what} takes {wanted}");
                    return Err(LoadError::package(source.path(), problem));
                }
            }
            let loader = Loader::new(source, device, policy);
            let root = loader.root();
            let root = if prefix.is_empty() {
                root
            } else {
                root.pp(prefix)
            };
            let wavlm = WavLm::load(&root, size)?;
            loaded.finish(loader)?;
            Some(wavlm)
        }
        None => None,
    };
    let loader = Loader::new(weights, device, policy);
    let root = loader.root();
    let encoder = wavlm.map(|wavlm| Encoder::load(&root, wavlm, &config, short));
    let encoder = encoder.transpose()?;
    let decoder = Decoder::load(&root, &config, short)?;
    let vocoder = match vocoder {
        Some(sizes) => {
            let vocoder = Vocoder::load(&root.pp("vocoder"), &sizes, device, short)?;
            Some((vocoder, sizes))
        }
        None => None,
    };
    loaded.finish(loader)?;
    Ok(MioCodecModel {
        nets: Arc::new(Networks {
            encoder,
            decoder,
            vocoder,
            config,
        }),
        loaded,
    })
}

impl MioCodecModel {
    /// The networks with graphs of their own.
    ///
    /// # Errors
    /// A transform that cannot be.
    pub fn machine(&self) -> Result<Machine> {
        Machine::new(self.loaded.device(), self.nets.clone())
    }
}

impl Model for MioCodecModel {
    fn info(&self) -> ModelInfo {
        self.loaded
            .info("miocodec", &[], self.nets.config.sample_rate)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("miocodec", OPTIONS, Scope::Session)?;
        let speech = Speech::new(self.machine()?);
        match task {
            Task::Codec => Ok(Session::Codec(Box::new(speech))),
            Task::Vc => Ok(Session::Convert(Box::new(speech))),
            other => Err(Error::other_task("miocodec", Task::Codec, other)),
        }
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        let mut machine = self.machine()?;
        let config = machine.config();
        let (rate, width) = (config.sample_rate as f32, config.global.output);
        let size = config.quantizer.size();
        let mut stages = Vec::new();
        let mut stage = |name: &str, values: Vec<f32>| {
            stages.push(Stage {
                name: name.into(),
                values,
            });
        };
        if self.nets.encoder.is_some() {
            // A second of a voice-like tone that glides.
            let value = |i: usize| {
                let t = i as f32 / rate;
                let phase = std::f32::consts::TAU * (120.0 + 20.0 * t) * t;
                (1..9)
                    .map(|k| (phase * k as f32).sin() / k as f32)
                    .sum::<f32>()
                    * 0.3
            };
            let samples: Vec<f32> = (0..rate as usize).map(value).collect();
            let made = machine.encode(&samples)?;
            stage("latents", made.latents);
            stage("global vector", made.global);
        }
        let tokens: Vec<i32> = (0..25).map(|i| (i * 997 % size) as i32).collect();
        let global: Vec<f32> = (0..width).map(|i| (i as f32 * 0.7).sin()).collect();
        let frames = machine.usual_samples(tokens.len()) / machine.frame_samples();
        let spectra = machine.spectra(&tokens, &global, frames)?;
        stage("spectra", spectra.clone());
        if self.nets.config.mels().is_none() || self.nets.vocoder.is_some() {
            stage("samples", machine.samples(&spectra, || Ok(()))?);
        }
        Ok(stages)
    }
}
