//! `--list-loaders` and `--version`.

use audiocpp::engine::Registry;
use serde_json::{Value, json};

use crate::{
    failure::Outcome,
    models::{print_json, table},
    output::print,
};

/// Lists the families with their tasks and options.
pub fn list(registry: &Registry, as_json: bool) -> Outcome {
    if as_json {
        return print_json(&describe(registry));
    }
    let head = ["FAMILY", "TASKS", "READS", "TITLE"];
    let mut rows = vec![head.map(str::to_owned)];
    for info in registry.families().map(|family| family.info()) {
        let tasks: Vec<&str> = info.tasks.iter().map(|task| task.name()).collect();
        rows.push([
            info.name.into(),
            tasks.join(","),
            info.formats.into(),
            info.title.into(),
        ]);
    }
    print(&table(&rows))?;
    for info in registry.families().map(|family| family.info()) {
        for option in info.options {
            let default = option
                .default
                .map_or(String::new(), |value| format!(" [{value}]"));
            print(&format!(
                "  --{}-option {}.{}{default}  {}\n",
                option.scope, info.name, option.name, option.doc
            ))?;
        }
    }
    Ok(())
}

/// The same for programs; tasks are listed with the modes in which they run.
fn describe(registry: &Registry) -> Value {
    let families: Vec<Value> = registry
        .families()
        .map(|family| family.info())
        .map(|info| {
            let tasks: Vec<Value> = info
                .tasks
                .iter()
                .map(|task| json!({"task": task, "modes": ["offline"]}))
                .collect();
            json!({
                "family": info.name,
                "title": info.title,
                "formats": info.formats,
                "tasks": tasks,
                "options": info.options,
            })
        })
        .collect();
    json!({ "schema_version": 1, "families": families })
}

/// Prints version, commit and the backends that are loaded.
pub fn version(program: &str) -> Outcome {
    print(&audiocpp::about(program))
}
