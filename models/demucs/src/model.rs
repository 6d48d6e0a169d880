//! The family: recognising packages, loading them, sessions.

use std::{path::Path, sync::Arc};

use audiocpp::{
    backend::FastPath,
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, Options, Result,
        RunContext, Scope, Separator, Session, Stage, Task,
    },
    graph::Device,
    weights::{Loader, Policy},
};

use crate::{
    LoadError,
    machine::Machine,
    net::Net,
    package::{Checkpoint, Package},
    separate::{DemucsStems, OPTIONS},
};

/// The Demucs family: Hybrid Demucs and Hybrid Transformer Demucs.
pub struct Demucs;

impl Family for Demucs {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "demucs",
            title: "Demucs: source separation in the waveform and spectrogram domains",
            tasks: &[Task::Sep],
            formats: "a checkpoint (.th or .safetensors) of HTDemucs or HDemucs, a folder with \
                      one, or a bag (.yaml) with its checkpoints beside it",
            options: OPTIONS,
        }
    }

    fn can_load(&self, path: &Path) -> bool {
        let Ok(package) = Package::find(path) else {
            return false;
        };
        let named = |ending: &str| {
            let mut files = package.files.iter();
            files.all(|file| file.extension().is_some_and(|found| found == ending))
        };
        // Other families have safetensors, too: those of this one name their class.
        let safetensors = || {
            package
                .files
                .iter()
                .all(|file| Checkpoint::open(file).is_ok())
        };
        named("th") || (named("safetensors") && safetensors())
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

/// The loaded networks of a bag; sessions share their weights.
pub struct DemucsModel {
    nets: Vec<Arc<Net>>,
    /// For each network, the weights of its stems.
    weights: Vec<Vec<f32>>,
    loaded: Loaded,
}

/// Loads the model at `path` (file or folder) on `device`.
///
/// # Errors
/// [`LoadError`]: not a Demucs model, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<DemucsModel, LoadError> {
    let package = Package::find(path)?;
    let short = device.fast_path(FastPath::ShortConv);
    let (mut nets, mut loaded) = (Vec::<Arc<Net>>::new(), Loaded::new(path, device));
    for file in &package.files {
        let Checkpoint {
            source,
            prefix,
            mut config,
        } = Checkpoint::open(file)?;
        if let Some(seconds) = package.bag.as_ref().and_then(|(_, bag)| bag.segment)
            && (!config.fixed_segment || seconds <= config.segment_seconds())
        {
            config.segment = (seconds * f64::from(config.samplerate)) as usize;
        }
        if let Some(first) = nets.first() {
            let first = &first.config;
            let same = (&first.sources, first.samplerate, first.audio_channels)
                == (&config.sources, config.samplerate, config.audio_channels);
            if !same {
                let problem = "its stems, rate or channels are not those of the bag's first";
                return Err(LoadError::package(file, problem));
            }
        }
        let loader = Loader::new(&*source, device, policy);
        let root = prefix.map_or(loader.root(), |prefix| loader.root().pp(prefix));
        nets.push(Arc::new(Net::load(&root, config, short)?));
        loaded.finish(loader)?;
    }
    let stems = nets.first().map_or(0, |net| net.config.sources.len());
    let weights = match package.bag {
        Some((yaml, bag)) => {
            let weights = bag.weights.unwrap_or(vec![vec![1.0; stems]; nets.len()]);
            let sum = |s: usize| weights.iter().map(|w| w[s]).sum::<f32>();
            let fits = weights
                .iter()
                .all(|w| w.len() == stems && w.iter().all(|x| *x >= 0.0))
                && (0..stems).all(|s| sum(s) > 0.0);
            if !fits {
                let problem =
                    format!("wanted weights for {stems} stems of each model, some above 0");
                return Err(LoadError::package(&yaml, problem));
            }
            weights
        }
        None => vec![vec![1.0; stems]],
    };
    Ok(DemucsModel {
        nets,
        weights,
        loaded,
    })
}

impl DemucsModel {
    /// The networks of the bag, each with graphs of its own.
    ///
    /// # Errors
    /// A transform that cannot be.
    pub fn machines(&self) -> Result<Vec<Machine>> {
        let machine = |net: &Arc<Net>| Machine::new(self.loaded.device(), net.clone());
        self.nets.iter().map(machine).collect()
    }

    /// The networks of the bag.
    pub fn nets(&self) -> &[Arc<Net>] {
        &self.nets
    }
}

impl Model for DemucsModel {
    fn info(&self) -> ModelInfo {
        let first = self.nets.first();
        self.loaded
            .info("demucs", &[], first.map_or(0, |net| net.config.samplerate))
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("demucs", OPTIONS, Scope::Session)?;
        match task {
            Task::Sep => {
                let stems = DemucsStems::new(self.machines()?, self.weights.clone());
                Ok(Session::Separate(Box::new(Separator::new(stems))))
            }
            other => Err(Error::other_task("demucs", Task::Sep, other)),
        }
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        // A second of two chords that come and go.
        let Some(mut machine) = self.machines()?.into_iter().next() else {
            return Ok(Vec::new());
        };
        let config = &machine.net().config;
        let (rate, channels) = (config.samplerate as usize, config.audio_channels);
        let value = |i: usize| {
            let (t, c) = ((i / channels) as f32 / rate as f32, (i % channels) as f32);
            let tone = |hertz: f32| (std::f32::consts::TAU * hertz * t).sin();
            0.2 * (tone(220.0 + 20.0 * c) + tone(1330.0)) * (1.0 + tone(3.0))
        };
        let frames: Vec<f32> = (0..rate * channels).map(value).collect();
        let made = machine.branches(&frames)?;
        let stems = machine.separate(&frames)?;
        let stage = |name: &str, values: Vec<f32>| Stage {
            name: name.into(),
            values,
        };
        Ok(vec![
            stage("bins of stems", made.bins),
            stage("samples of stems", made.samples),
            stage("stems", stems.concat()),
        ])
    }
}
