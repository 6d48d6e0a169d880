//! From the model flags to a model that can be loaded.

use std::path::{Path, PathBuf};

use audiocpp::engine::{
    Family, LoadOptions, Model, ModelInfo, Options, Registry, RunContext, Scope, Task,
    package::{Catalogue, Entry, Located, PullOptions, Store, human_bytes, locate, pull},
};

use crate::{
    args::ModelArgs,
    failure::{Failure, Outcome},
    progress::Progress,
};

/// The model that is used when none is named.
const DEFAULT_MODEL: &str = "whisper-base";

/// A model that was named and understood, but not fetched or loaded.
pub struct Choice<'a> {
    /// The family that runs it.
    pub family: &'a dyn Family,
    /// What the user calls the model, or the name of its file or folder.
    pub name: String,
    place: Place,
    load: LoadOptions,
    /// Its session options.
    pub session: Options,
    offline: bool,
}

enum Place {
    Path(PathBuf),
    Known(&'static Entry),
}

impl<'a> Choice<'a> {
    /// Checks every flag about the model: names, family, task, device and options.
    pub fn new(args: &ModelArgs, task: Task, registry: &'a Registry) -> Outcome<Choice<'a>> {
        registry.require_task(task).map_err(Failure::setup)?;
        if let Some(name) = &args.family {
            registry.family(name).map_err(Failure::setup)?;
        }
        let catalogue = Catalogue::built_in().map_err(Failure::setup)?;
        let name = match &args.model {
            Some(name) => name.as_str(),
            None => default_model(args.family.as_deref(), task, catalogue)?,
        };
        let (family, place) = match locate(name, catalogue).map_err(Failure::setup)? {
            Located::Path(path) => {
                let found = registry.detect(&path, args.family.as_deref());
                (found.map_err(Failure::setup)?, Place::Path(path))
            }
            Located::Known(entry) => {
                let family = registry.family(&entry.family).map_err(Failure::setup)?;
                if let Some(wanted) = &args.family
                    && registry.family(wanted).map_err(Failure::setup)?.info().name
                        != family.info().name
                {
                    return Err(Failure::usage(format!(
                        "model `{name}` belongs to family `{}`, not `{wanted}`",
                        entry.family
                    )));
                }
                (family, Place::Known(entry))
            }
        };
        let info = family.info();
        if !info.tasks.contains(&task) {
            return Err(Failure::usage(format!(
                "family `{}` does not do {}",
                info.name,
                task.phrase()
            )));
        }
        let options = |pairs: &[String], scope| {
            Options::parse(pairs, info.name, info.options, scope).map_err(Failure::setup)
        };
        let device = &args.device;
        let load = LoadOptions {
            device: device.spec()?.to_string(),
            threads: args.threads.map(usize::from),
            weight_type: args.weight_type.clone(),
            strict_device: device.strict_device,
            fallback_cpu: device.fallback.is_some(),
            fast_paths: device.fast_paths()?,
            options: options(&args.load_option, Scope::Load)?,
        };
        let session = options(&args.session_option, Scope::Session)?;
        let name = match &place {
            Place::Path(path) => ModelInfo::variant_of(path),
            Place::Known(entry) => entry.id.clone(),
        };
        Ok(Choice {
            family,
            name,
            place,
            load,
            session,
            offline: args.offline,
        })
    }

    /// Where the model is, after fetching it if it was not there.
    pub fn fetch(&self, progress: &Progress, context: &RunContext) -> Outcome<PathBuf> {
        match &self.place {
            Place::Path(path) => Ok(path.clone()),
            Place::Known(entry) => Ok(fetch(entry, self.offline, false, progress, context)?.0),
        }
    }

    /// Loads the model from where it is.
    pub fn load(&self, path: &Path, context: &RunContext) -> Outcome<Box<dyn Model>> {
        self.family
            .load(path, &self.load, context)
            .map_err(Failure::run)
    }
}

/// Makes sure that a model of the catalogue is on this machine, and says where it came from.
/// Returns its folder, and whether it had to be fetched.
pub fn fetch(
    entry: &Entry,
    offline: bool,
    force: bool,
    progress: &Progress,
    context: &RunContext,
) -> Outcome<(PathBuf, bool)> {
    let store = Store::of_user().map_err(Failure::run)?;
    let options = PullOptions {
        offline,
        force,
        ..PullOptions::default()
    };
    if !offline && (force || store.installed(&entry.id).is_none()) {
        progress.line(&format!(
            "fetching {} ({}, {})",
            entry.id,
            human_bytes(entry.size()),
            entry.licence
        ));
    }
    let pulled = pull(entry, &store, &options, context);
    progress.clear();
    let pulled = pulled.map_err(Failure::run)?;
    if pulled.fetched {
        progress.line(&format!("fetched {} from {}", entry.id, pulled.source));
    }
    Ok((pulled.path, pulled.fetched))
}

/// The model to use when none is named: the usual one, or the first of the named family.
fn default_model<'a>(
    family: Option<&str>,
    task: Task,
    catalogue: &'a Catalogue,
) -> Outcome<&'a str> {
    let usable = |entry: &&Entry| {
        entry.tasks.contains(&task)
            && family.is_none_or(|family| family.replace('-', "_") == entry.family)
    };
    let usual = catalogue.find(DEFAULT_MODEL).filter(usable);
    let found = usual.or_else(|| catalogue.models.iter().find(usable));
    found.map(|entry| entry.id.as_str()).ok_or_else(|| {
        Failure::usage(format!(
            "name a model with --model: the catalogue has none of family `{}` for {}",
            family.unwrap_or("any"),
            task.phrase()
        ))
    })
}
