//! The family: recognising packages, loading them, sessions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    engine::{
        DetectSpeechRequest, Error, Family, FamilyInfo, FrameDetector, LoadOptions, Loaded, Model,
        ModelInfo, OptionKind, OptionSpec, Options, Result, RunContext, Scope, Session,
        SpeechDetector, Stage, Task,
    },
    graph::Device,
    weights::{self, Loader, Policy, Source},
};

use crate::{
    LoadError,
    machine::{Machine, State},
    names::{Named, STFT},
    net::{Net, Size},
};

const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "rate",
    scope: Scope::Request,
    kind: OptionKind::Choice {
        values: &["auto", "8000", "16000"],
    },
    default: Some("auto"),
    doc: "Which network listens: auto takes the one for 8 kHz where the sound has no more.",
}];

/// Files that are larger are not of this family; they are not opened to be recognised.
const LARGEST: u64 = 16 << 20;

/// The Silero VAD family.
pub struct SileroVad;

/// The weights at `path`: the file itself; of a folder `silero_vad.onnx`, which has both rates,
/// else its only file of weights.
fn weights_file(path: &Path) -> Option<PathBuf> {
    let is_weights = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("onnx" | "safetensors" | "jit" | "pt"))
            && path.metadata().is_ok_and(|meta| meta.len() <= LARGEST)
    };
    if path.is_file() {
        return is_weights(path).then(|| path.to_owned());
    }
    let usual = path.join("silero_vad.onnx");
    if usual.is_file() {
        return Some(usual);
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let mut files = entries.map(|e| e.path()).filter(|path| is_weights(path));
    let first = files.next();
    first.filter(|_| files.next().is_none())
}

impl Family for SileroVad {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "silero_vad",
            title: "Silero VAD: voice activity detection, versions 5 and 6",
            tasks: &[Task::Vad],
            formats: "silero_vad*.onnx or silero_vad_16k.safetensors, or a folder with one of them",
            options: OPTIONS,
        }
    }

    fn can_load(&self, path: &Path) -> bool {
        weights_file(path)
            .and_then(|file| weights::open(&file).ok())
            .is_some_and(|source| !networks(Arc::from(source)).is_empty())
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

/// The networks of a file with their sizes, the lowest rate first.
fn networks(source: Arc<dyn Source>) -> Vec<(Named, Size)> {
    let sized = |named: Named| {
        let size = Size::of(named.shape(STFT)?)?;
        Some((named, size))
    };
    let mut found: Vec<_> = Named::all(source).into_iter().filter_map(sized).collect();
    found.sort_by_key(|(_, size)| size.rate);
    found
}

/// Loaded networks, one for each rate; sessions share their weights.
pub struct SileroModel {
    nets: Vec<Arc<Net>>,
    loaded: Loaded,
}

/// Loads the networks at `path` (file or folder) on `device`.
///
/// # Errors
/// [`LoadError`]: another network, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<SileroModel, LoadError> {
    let file = weights_file(path).ok_or_else(|| {
        let wanted = "wanted silero_vad.onnx, or one other .onnx or .safetensors file";
        LoadError::package(path, wanted)
    })?;
    let source: Arc<dyn Source> = Arc::from(weights::open(&file)?);
    let found = networks(source);
    if found.is_empty() {
        let wanted = "this is not a Silero VAD of version 5 or 6: its tensors have other names";
        return Err(LoadError::package(&file, wanted));
    }
    let mut model = SileroModel {
        nets: Vec::new(),
        loaded: Loaded::new(path, device),
    };
    for (named, size) in found {
        let loader = Loader::new(&named, device, policy);
        let net = Net::load(&loader.root(), size).map_err(LoadError::Weights)?;
        model.loaded.count(net.cell.parameters());
        model.loaded.finish(loader)?;
        model.nets.push(Arc::new(net));
    }
    Ok(model)
}

impl SileroModel {
    /// The rates that there is a network for, the lowest first.
    pub fn rates(&self) -> impl Iterator<Item = u32> {
        self.nets.iter().map(|net| net.size.rate)
    }

    /// The network for `rate`, if there is one, at work.
    pub fn machine(&self, rate: u32) -> Option<Machine> {
        let net = self.nets.iter().find(|net| net.size.rate == rate)?;
        Some(Machine::new(self.loaded.device(), net.clone()))
    }
}

impl Model for SileroModel {
    fn info(&self) -> ModelInfo {
        self.loaded
            .info("silero_vad", &[], self.rates().last().unwrap_or_default())
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("silero_vad", OPTIONS, Scope::Session)?;
        match task {
            Task::Vad => {
                let machine = |net: &Arc<Net>| Machine::new(self.loaded.device(), net.clone());
                let frames = Frames {
                    machines: self.nets.iter().map(machine).collect(),
                    stream: None,
                };
                Ok(Session::DetectSpeech(Box::new(SpeechDetector::new(frames))))
            }
            other => Err(Error::other_task("silero_vad", Task::Vad, other)),
        }
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        let mut stages = Vec::new();
        for net in &self.nets {
            let mut machine = Machine::new(self.loaded.device(), net.clone());
            let mut state = machine.start();
            let mut values = Vec::new();
            machine.probabilities(&mut state, &test_sound(net.size), &mut values)?;
            stages.push(Stage {
                name: format!("probabilities at {} Hz", net.size.rate),
                values,
            });
        }
        Ok(stages)
    }
}

/// Two seconds of a voice-like buzz that comes and goes, for comparing devices.
fn test_sound(size: Size) -> Vec<f32> {
    let rate = size.rate as f32;
    let sample = |i: u32| {
        let t = i as f32 / rate;
        let buzz = |n: u8| (std::f32::consts::TAU * 140.0 * f32::from(n) * t).sin() / f32::from(n);
        0.2 * (1..12).map(buzz).sum::<f32>() * (5.0 * t).sin().max(0.0)
    };
    (0..2 * size.rate).map(sample).collect()
}

/// One stream at a time, through the network for its rate.
struct Frames {
    machines: Vec<Machine>,
    /// Which network listens, and its state.
    stream: Option<(usize, State)>,
}

impl FrameDetector for Frames {
    fn begin(&mut self, request: &DetectSpeechRequest, rate: u32) -> Result<(u32, usize)> {
        request
            .options
            .check("silero_vad", OPTIONS, Scope::Request)?;
        let rates: Vec<u32> = self.machines.iter().map(|m| m.net().size.rate).collect();
        let chosen = match request.options.text("rate").unwrap_or("auto") {
            // The lowest rate that keeps all that the sound has.
            "auto" => rates.iter().position(|has| *has >= rate),
            asked => {
                let found = rates.iter().position(|has| has.to_string() == asked);
                Some(found.ok_or_else(|| {
                    Error::unsupported(format!("this file has no network for {asked} Hz"))
                })?)
            }
        };
        let chosen = chosen.unwrap_or(rates.len() - 1);
        let machine = &self.machines[chosen];
        self.stream = Some((chosen, machine.start()));
        Ok((rates[chosen], machine.net().size.frame()))
    }

    fn probabilities(&mut self, samples: &[f32], out: &mut Vec<f32>) -> Result<()> {
        match &mut self.stream {
            Some((chosen, state)) => self.machines[*chosen].probabilities(state, samples, out),
            None => Err(Error::internal("no stream was begun")),
        }
    }
}
