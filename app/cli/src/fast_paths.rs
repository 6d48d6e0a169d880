//! `fast-paths`, and what the device flags mean.

use audiocpp::{
    backend::{
        BackendType, Choices, DeviceSpec, FastPath, Inventory, Request,
        fast_path::{FAST_PATH_VARIABLE, TABLE},
        spec::DEVICE_VARIABLE,
    },
    engine::{Family, Registry},
    graph::{Device, DeviceOptions},
};
use serde_json::json;

use crate::{
    args::DeviceArgs,
    failure::{Failure, Outcome},
    models::{print_json, table},
    output::print,
};

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

impl DeviceArgs {
    /// The device that `--device`, `--backend` and the environment name.
    pub fn spec(&self) -> Outcome<DeviceSpec> {
        let backend = self.backend.as_deref().map(str::parse).transpose();
        let backend: Option<BackendType> = backend.map_err(usage)?;
        let environment = std::env::var(DEVICE_VARIABLE).ok();
        DeviceSpec::from_options(backend, self.device.as_deref(), environment.as_deref())
            .map_err(usage)
    }

    /// The fast paths to force: the environment's list, then the flags, which win.
    pub fn fast_paths(&self) -> Outcome<Vec<String>> {
        let environment = std::env::var(FAST_PATH_VARIABLE).unwrap_or_default();
        let listed = environment.split(',').map(str::trim);
        let all: Vec<String> = listed
            .filter(|text| !text.is_empty())
            .chain(self.fast_path.iter().map(String::as_str))
            .map(str::to_owned)
            .collect();
        Choices::from_options(None, all.iter().map(String::as_str)).map_err(usage)?;
        Ok(all)
    }
}

/// Families whose models ask for a path.
fn users(registry: &Registry, path: FastPath) -> Vec<&'static str> {
    let asks = |family: &&dyn Family| family.fast_paths().contains(&path);
    let families = registry.families().filter(asks);
    families.map(|family| family.info().name).collect()
}

/// Prints the table of fast paths for a device.
pub fn run(args: &DeviceArgs, registry: &Registry, as_json: bool) -> Outcome {
    let request = Request {
        spec: args.spec()?,
        fallback_cpu: args.fallback.is_some(),
    };
    let forced = args.fast_paths()?;
    let options = DeviceOptions {
        fast_paths: Choices::from_options(None, forced.iter().map(String::as_str))
            .map_err(usage)?,
        strict: args.strict_device,
        ..DeviceOptions::default()
    };
    let plan = Inventory::for_request(&request).plan(&request);
    let opened = plan
        .and_then(|plan| plan.open(|info| Device::open(info, &options)))
        .map_err(usage)?;
    let decisions = opened.value.fast_paths();
    if as_json {
        let rows: Vec<_> = TABLE
            .iter()
            .zip(&decisions)
            .map(|(row, decision)| {
                json!({
                    "name": row.name,
                    "what": row.what,
                    "instead": row.instead,
                    "ops": row.ops,
                    "on": decision.on,
                    "status": decision.status,
                    "forced": decision.forced,
                    "reason": decision.reason,
                    "families": users(registry, row.path),
                })
            })
            .collect();
        return print_json(&json!({
            "schema_version": 1,
            "device": opened.device.spec(),
            "fallbacks": opened.fallbacks,
            "fast_paths": rows,
        }));
    }
    let head = ["FAST PATH", "", "STATUS", "USED BY", "WHY", "WHAT"];
    let mut lines = vec![head.map(str::to_owned)];
    for (row, decision) in TABLE.iter().zip(&decisions) {
        lines.push([
            row.name.to_owned(),
            if decision.on { "on" } else { "off" }.to_owned(),
            format!("{:?}", decision.status).to_lowercase(),
            match users(registry, row.path) {
                none if none.is_empty() => "-".to_owned(),
                families => families.join(", "),
            },
            decision.reason.clone(),
            row.what.to_owned(),
        ]);
    }
    print(&format!("{}\n", opened.device.spec()))?;
    print(&table(&lines))
}
