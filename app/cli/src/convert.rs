//! `convert`: a package as one GGUF file.

use std::{fs, io::BufWriter, path::Path};

use audiocpp::{
    engine::{
        CancelToken, Error, Family, Registry,
        package::{Catalogue, FILE_KEY, Located, locate},
    },
    weights::{self, Policy, TensorInfo},
};
use tempfile::NamedTempFile;

use crate::{
    args::Convert,
    failure::{Failure, Outcome},
    output::print,
};

/// Settings beside the weights that are larger than this belong to something else.
const MOST_BYTES: u64 = 64 << 20;

/// Writes the file.
pub fn run(args: &Convert, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let policy: Policy = args
        .weight_type
        .parse()
        .map_err(|e: String| Failure::usage(e))?;
    let catalogue = Catalogue::built_in().map_err(Failure::setup)?;
    let path = match locate(&args.model, catalogue).map_err(Failure::setup)? {
        Located::Path(path) => path,
        Located::Known(entry) => {
            return Err(Failure::usage(format!(
                "`{}` is a name of the catalogue: give the folder of its files",
                entry.id
            )));
        }
    };
    let family = registry
        .detect(&path, args.family.as_deref())
        .map_err(Failure::setup)?;
    if cancel.is_cancelled() {
        return Err(Failure::run(Error::cancelled()));
    }
    let written = write(family, &path, &args.out, policy).map_err(Failure::run)?;
    print(&format!("{}: {written} tensors\n", args.out.display()))
}

fn write(family: &dyn Family, path: &Path, out: &Path, policy: Policy) -> Result<usize, Error> {
    let model = |error: weights::Error| Error::model(error.to_string());
    let source = weights::open(path).map_err(model)?;
    let mut texts = vec![("audiocpp.family".to_owned(), family.info().name.to_owned())];
    texts.extend(settings(path)?);
    let dtype = |info: &TensorInfo| {
        let policy = match policy {
            Policy::Q8_0 | Policy::Q4K if family.precise(&info.name) => Policy::F16,
            other => other,
        };
        policy.target(info.dtype, &info.shape)
    };
    let folder = out.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let mut staged = NamedTempFile::new_in(folder).map_err(|e| Error::file(folder, &e))?;
    let mut writer = BufWriter::new(staged.as_file_mut());
    weights::write_gguf(&mut writer, out, &*source, &texts, dtype).map_err(model)?;
    drop(writer);
    staged
        .persist(out)
        .map_err(|e| Error::file(out, &e.error))?;
    Ok(source.tensors().len())
}

/// The JSON files beside the weights, but the index of their parts.
fn settings(path: &Path) -> Result<Vec<(String, String)>, Error> {
    let folder = if path.is_dir() {
        Some(path)
    } else {
        path.parent()
    };
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
    let mut texts = Vec::new();
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let fits = entry
            .metadata()
            .is_ok_and(|m| m.is_file() && m.len() <= MOST_BYTES);
        if fits && name.ends_with(".json") && !name.ends_with(".index.json") {
            let file = entry.path();
            let text = fs::read_to_string(&file).map_err(|e| Error::file(&file, &e))?;
            texts.push((format!("{FILE_KEY}{name}"), text));
        }
    }
    texts.sort();
    Ok(texts)
}
