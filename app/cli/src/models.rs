//! `models list | pull | show | rm | path`.

use audiocpp::engine::{
    CancelToken,
    package::{Catalogue, Entry, Store, human_bytes},
};
use serde_json::{Value, json};

use crate::{
    args::Models,
    failure::{Failure, Outcome},
    model::fetch,
    output::print,
    progress::Progress,
};

/// Runs one of the `models` commands.
pub fn run(command: &Models, cancel: &CancelToken) -> Outcome {
    let catalogue = Catalogue::built_in().map_err(Failure::run)?;
    let store = Store::of_user().map_err(Failure::run)?;
    match command {
        Models::List { installed, json } => list(catalogue, &store, *installed, *json),
        Models::Pull {
            ids,
            force,
            offline,
        } => pull(catalogue, ids, *force, *offline, cancel),
        Models::Show { id, verify, json } => {
            show(find(catalogue, id)?, &store, *verify, *json, cancel)
        }
        Models::Rm { ids } => remove(catalogue, &store, ids),
        Models::Path { id } => path(catalogue, &store, id.as_deref()),
    }
}

fn find<'a>(catalogue: &'a Catalogue, id: &str) -> Outcome<&'a Entry> {
    catalogue.get(id).map_err(Failure::setup)
}

/// One model for programs.
fn describe(entry: &Entry, store: &Store) -> Value {
    let manifest = store.installed(&entry.id);
    json!({
        "id": entry.id,
        "title": entry.title,
        "family": entry.family,
        "tasks": entry.tasks,
        "licence": entry.licence,
        "home": entry.home,
        "languages": entry.languages,
        "size": manifest.as_ref().map_or(entry.size(), |m| m.files.iter().map(|f| f.size).sum()),
        "installed": manifest.is_some(),
        "path": manifest.as_ref().map(|_| store.folder(&entry.id)),
        "source": manifest.map(|manifest| manifest.source),
        "sources": entry.sources,
        "by_hand": entry.by_hand,
    })
}

fn list(catalogue: &Catalogue, store: &Store, installed: bool, json: bool) -> Outcome {
    let models = catalogue.models.iter();
    let models: Vec<&Entry> = models
        .filter(|entry| !installed || store.installed(&entry.id).is_some())
        .collect();
    if json {
        let models: Vec<Value> = models.iter().map(|entry| describe(entry, store)).collect();
        return print_json(&json!({ "schema_version": 1, "models": models }));
    }
    let head = [
        "ID",
        "FAMILY",
        "TASKS",
        "SIZE",
        "LICENCE",
        "LANGUAGES",
        "INSTALLED",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    for entry in models {
        let languages = match entry.languages.as_slice() {
            [] => "-".to_owned(),
            few if few.len() <= 3 => few.join(","),
            many => format!("{} languages", many.len()),
        };
        let tasks: Vec<&str> = entry.tasks.iter().map(|task| task.name()).collect();
        rows.push([
            entry.id.clone(),
            entry.family.clone(),
            tasks.join(","),
            size(entry),
            entry.licence.clone(),
            languages,
            if store.installed(&entry.id).is_some() {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
        ]);
    }
    print(&table(&rows))
}

/// What a download of the whole package is, if it can be pulled at all.
fn size(entry: &Entry) -> String {
    match entry.by_hand {
        Some(_) => "by hand".into(),
        None => human_bytes(entry.size()),
    }
}

/// Columns as wide as their widest cell, two blanks apart.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn pull(
    catalogue: &Catalogue,
    ids: &[String],
    force: bool,
    offline: bool,
    cancel: &CancelToken,
) -> Outcome {
    // A slip in the last name should not show only after the first was fetched.
    let entries = ids
        .iter()
        .map(|id| find(catalogue, id))
        .collect::<Outcome<Vec<&Entry>>>()?;
    let progress = Progress::new();
    let context = progress.context(cancel);
    for entry in entries {
        let (path, fetched) = fetch(entry, offline, force, &progress, &context)?;
        if !fetched {
            progress.line(&format!("{} is installed", entry.id));
        }
        print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}

fn show(entry: &Entry, store: &Store, verify: bool, json: bool, cancel: &CancelToken) -> Outcome {
    let context = Progress::new().context(cancel);
    if verify {
        store.verify(&entry.id, &context).map_err(Failure::run)?;
    }
    let mut about = describe(entry, store);
    if json {
        if verify {
            about["verified"] = true.into();
        }
        return print_json(&about);
    }
    let tasks: Vec<String> = entry
        .tasks
        .iter()
        .map(|task| format!("{} ({task})", task.phrase()))
        .collect();
    let mut rows = vec![
        ["id".to_owned(), entry.id.clone()],
        ["title".to_owned(), entry.title.clone()],
        ["family".to_owned(), entry.family.clone()],
        ["tasks".to_owned(), tasks.join(", ")],
        ["licence".to_owned(), entry.licence.clone()],
        ["home".to_owned(), entry.home.clone()],
        ["languages".to_owned(), entry.languages.join(" ")],
        ["size".to_owned(), size(entry)],
    ];
    for source in &entry.sources {
        rows.push(["source".to_owned(), source.label()]);
    }
    if let Some(how) = &entry.by_hand {
        rows.push(["by hand".to_owned(), how.clone()]);
    }
    let installed = match store.installed(&entry.id) {
        Some(manifest) => format!(
            "{} from {}",
            store.folder(&entry.id).display(),
            manifest.source
        ),
        None if entry.sources.is_empty() => "no".to_owned(),
        None => format!("no: audiocpp_cli models pull {}", entry.id),
    };
    rows.push(["installed".to_owned(), installed]);
    if verify {
        rows.push([
            "verified".to_owned(),
            "every file has its sha256".to_owned(),
        ]);
    }
    print(&table(&rows))
}

fn remove(catalogue: &Catalogue, store: &Store, ids: &[String]) -> Outcome {
    for id in ids {
        // Only names of the catalogue are ever joined to the store's folder.
        find(catalogue, id)?;
    }
    let mut missing = Vec::new();
    for id in ids {
        if !store.remove(id).map_err(Failure::run)? {
            missing.push(id.as_str());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure {
        code: 1,
        message: format!("not installed: {}", missing.join(", ")),
    })
}

fn path(catalogue: &Catalogue, store: &Store, id: Option<&str>) -> Outcome {
    let Some(id) = id else {
        return print(&format!("{}\n", store.models().display()));
    };
    let entry = find(catalogue, id)?;
    if store.installed(&entry.id).is_none() {
        let message = format!("model `{id}` is not installed: audiocpp_cli models pull {id}");
        return Err(Failure { code: 1, message });
    }
    print(&format!("{}\n", store.folder(&entry.id).display()))
}

/// Prints JSON for programs.
pub fn print_json(value: &Value) -> Outcome {
    print(&format!("{value:#}\n"))
}
