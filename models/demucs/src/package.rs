//! Packages: one checkpoint, or a bag of several with their weights.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use audiocpp::weights::{self, Source, Value};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use yaml_rust2::{Yaml, YamlLoader};

use crate::{
    LoadError,
    config::{Kind, NetConfig},
};

/// Python classes whose records checkpoints hold: the networks', and fractions of seconds.
const CLASSES: [&str; 3] = [
    "demucs.hdemucs.HDemucs",
    "demucs.htdemucs.HTDemucs",
    FRACTION,
];

const FRACTION: &str = "fractions.Fraction";

/// A bag as its YAML file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bag {
    /// Signatures of the checkpoints.
    pub models: Vec<String>,
    /// Weight of each stem of each checkpoint; all alike if absent.
    pub weights: Option<Vec<Vec<f32>>>,
    /// Seconds of a segment, for networks that take other lengths.
    pub segment: Option<f64>,
}

impl Bag {
    /// Reads a bag; what is wrong with it is told in a few words.
    fn parse(text: &str) -> Result<Bag, String> {
        let documents = YamlLoader::load_from_str(text).map_err(|error| error.to_string())?;
        let Some(root) = documents.first() else {
            return Err("it is empty".into());
        };
        let list = |yaml: &Yaml| yaml.as_vec().cloned();
        let number = |yaml: &Yaml| yaml.as_f64().or(yaml.as_i64().map(|n| n as f64));
        // A signature of digits alone reads as a number: those are written in quotes.
        let models = list(&root["models"]).and_then(|models| {
            let names = models.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<Vec<_>>>()
        });
        let row = |row: &Yaml| {
            let values = list(row)?;
            let values = values.iter().map(|x| number(x).map(|x| x as f32));
            values.collect::<Option<Vec<f32>>>()
        };
        let weights = match &root["weights"] {
            Yaml::BadValue | Yaml::Null => Some(None),
            weights => list(weights)
                .and_then(|rows| rows.iter().map(row).collect::<Option<Vec<_>>>())
                .map(Some),
        };
        let segment = match &root["segment"] {
            Yaml::BadValue | Yaml::Null => Some(None),
            segment => number(segment).map(Some),
        };
        match (models, weights, segment) {
            (Some(models), Some(weights), Some(segment)) => Ok(Bag {
                models,
                weights,
                segment,
            }),
            (None, ..) => Err("wanted `models`, a list of signatures".into()),
            (_, None, _) => Err("wanted lists of numbers as `weights`".into()),
            _ => Err("wanted a number as `segment`".into()),
        }
    }
}

/// The files of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// The checkpoints.
    pub files: Vec<PathBuf>,
    /// The bag that they are in.
    pub bag: Option<(PathBuf, Bag)>,
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| endings.contains(&ending))
}

/// The files of a folder with one of these endings, by name.
fn listed(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| has_ending(path, endings))
        .collect();
    files.sort();
    files
}

impl Package {
    /// What is at `path`: a bag's `.yaml` with its checkpoints beside it, a folder with one bag, a
    /// checkpoint, or a folder with one.
    ///
    /// # Errors
    /// Nothing of the kind; a bag that cannot be read or misses a checkpoint.
    pub fn find(path: &Path) -> Result<Package, LoadError> {
        if path.is_file() {
            return match has_ending(path, &["yaml", "yml"]) {
                true => Package::of_bag(path),
                false => Ok(Package {
                    files: vec![path.to_owned()],
                    bag: None,
                }),
            };
        }
        let bags = listed(path, &["yaml", "yml"]);
        if let [bag] = &bags[..] {
            return Package::of_bag(bag);
        }
        let files = listed(path, &["th", "safetensors"]);
        match (&bags[..], &files[..]) {
            ([], [_]) => Ok(Package { files, bag: None }),
            _ => Err(LoadError::package(
                path,
                format!(
                    "{} bags (.yaml) and {} checkpoints (.th, .safetensors) are here, wanted one \
                     bag with its checkpoints, or one checkpoint",
                    bags.len(),
                    files.len()
                ),
            )),
        }
    }

    fn of_bag(yaml: &Path) -> Result<Package, LoadError> {
        let text = std::fs::read_to_string(yaml)
            .map_err(|error| LoadError::package(yaml, error.to_string()))?;
        let bag = Bag::parse(&text)
            .map_err(|error| LoadError::package(yaml, format!("not a bag of models: {error}")))?;
        let folder = yaml.parent().unwrap_or(Path::new("."));
        let here = listed(folder, &["th", "safetensors"]);
        let of = |signature: &String| {
            let found = here.iter().find(|path| signature_of(path).0 == *signature);
            found.cloned().ok_or_else(|| {
                let wanted = format!("{signature}-XXXXXXXX.th or {signature}.safetensors");
                LoadError::package(yaml, format!("a checkpoint is missing: wanted {wanted}"))
            })
        };
        let files = bag.models.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let fits = !files.is_empty() && bag.weights.as_ref().is_none_or(|w| w.len() == files.len());
        match fits {
            true => Ok(Package {
                files,
                bag: Some((yaml.to_owned(), bag)),
            }),
            false => Err(LoadError::package(
                yaml,
                "it has no models, or weights for another number of them",
            )),
        }
    }
}

/// Signature and, if it is there, first digits of the hash in the name of a checkpoint.
fn signature_of(path: &Path) -> (&str, Option<&str>) {
    let name = path
        .file_stem()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    match name.rsplit_once('-') {
        Some((signature, digits)) if is_hash(digits) => (signature, Some(digits)),
        _ => (name, None),
    }
}

fn is_hash(digits: &str) -> bool {
    digits.len() == 8
        && digits
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A checkpoint that is open: its tensors, and the network that they are for.
pub struct Checkpoint {
    /// The tensors.
    pub source: Box<dyn Source>,
    /// What comes before their names.
    pub prefix: Option<&'static str>,
    /// The network.
    pub config: NetConfig,
}

impl Checkpoint {
    /// Opens a checkpoint and checks the hash that its name promises.
    ///
    /// # Errors
    /// A damaged file; a class that is no network of this family; a network that is not supported.
    pub fn open(path: &Path) -> Result<Checkpoint, LoadError> {
        if let (_, Some(digits)) = signature_of(path) {
            check_hash(path, digits)?;
        }
        match has_ending(path, &["safetensors"]) {
            true => Checkpoint::safetensors(path),
            false => Checkpoint::torch(path),
        }
    }

    fn torch(path: &Path) -> Result<Checkpoint, LoadError> {
        let source = weights::torch::open(path, &CLASSES)?;
        let wrong = |problem: String| LoadError::package(path, problem);
        let metadata = source.metadata();
        let class = match metadata.get("klass") {
            Some(Value::Class(class)) => class.clone(),
            _ => return Err(wrong("it names no class of a network (`klass`)".into())),
        };
        if metadata.at(&["state", "__quantized"]).is_some() {
            return Err(wrong(
                "quantised checkpoints (diffq) are not supported".into(),
            ));
        }
        let list = |name: &str| match metadata.get(name) {
            Some(Value::List(items)) => items.iter().map(plain).collect(),
            _ => Vec::new(),
        };
        let kwargs = metadata.get("kwargs").map(plain);
        let config = network(path, &class, &list("args"), kwargs)?;
        Ok(Checkpoint {
            source: Box::new(source),
            prefix: Some("state"),
            config,
        })
    }

    fn safetensors(path: &Path) -> Result<Checkpoint, LoadError> {
        let source = weights::open(path)?;
        let metadata = source.metadata();
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        let class = text("klass").ok_or_else(|| {
            LoadError::package(
                path,
                "it names no class of a network (`klass` in its metadata)",
            )
        })?;
        let json = |name: &str, absent: Json| match text(name) {
            None => Ok(absent),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| LoadError::package(path, format!("`{name}`: {error}"))),
        };
        if text("structure").is_some() {
            let problem = "quantised checkpoints (diffq) are not supported";
            return Err(LoadError::package(path, problem));
        }
        let args = json("args", json!([]))?;
        let args = args.as_array().cloned().unwrap_or_default();
        let kwargs = json("kwargs", json!({}))?;
        let config = network(path, class, &args, Some(kwargs))?;
        Ok(Checkpoint {
            source,
            prefix: None,
            config,
        })
    }
}

fn network(
    path: &Path,
    class: &str,
    args: &[Json],
    kwargs: Option<Json>,
) -> Result<NetConfig, LoadError> {
    let kind = Kind::of_class(class).ok_or_else(|| {
        let known = Kind::CLASSES.map(|(name, _)| name).join(" or ");
        LoadError::package(path, format!("it is a `{class}`, wanted {known}"))
    })?;
    let kwargs = match kwargs {
        Some(Json::Object(kwargs)) => kwargs,
        _ => Map::new(),
    };
    NetConfig::new(kind, args, &kwargs).map_err(|problem| LoadError::package(path, problem))
}

/// A value of a pickle as JSON; fractions as checkpoints in safetensors write them.
fn plain(value: &Value) -> Json {
    match value {
        Value::Object { class, args, .. } if class == FRACTION => fraction(args),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.key(), plain(value)));
            Json::Object(entries.collect())
        }
        other => other.to_json(),
    }
}

/// `Fraction("39/5")` and `Fraction(39, 5)`.
fn fraction(args: &[Value]) -> Json {
    let parts = match args {
        [Value::Text(text)] => {
            let (above, below) = text.split_once('/').unwrap_or((text, "1"));
            [above.trim().parse().ok(), below.trim().parse().ok()]
        }
        [above, below] => [above.as_f64(), below.as_f64()],
        [above] => [above.as_f64(), Some(1.0)],
        _ => [None, None],
    };
    let [Some(above), Some(below)]: [Option<f64>; 2] = parts else {
        return Json::Null;
    };
    json!({ "numerator": above, "denominator": below })
}

fn check_hash(path: &Path, digits: &str) -> Result<(), LoadError> {
    let failed = |error: std::io::Error| LoadError::package(path, error.to_string());
    let mut file = File::open(path).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).map_err(failed)? {
            0 => break,
            n => hash.update(&block[..n]),
        }
    }
    let found: String = hash.finalize()[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match found == digits {
        true => Ok(()),
        false => Err(LoadError::package(
            path,
            format!(
                "the file is damaged: its SHA-256 begins with {found}, its name says {digits}; \
                 fetch it again"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_a_signature_and_a_hash() {
        let of = |name: &'static str| signature_of(Path::new(name));
        assert_eq!(of("955717e8-8726e21a.th"), ("955717e8", Some("8726e21a")));
        assert_eq!(of("955717e8.safetensors"), ("955717e8", None));
        assert_eq!(of("my-model.th"), ("my-model", None));
    }

    #[test]
    fn fractions_are_read_in_both_forms() {
        let wanted = json!({"numerator": 39.0, "denominator": 5.0});
        assert_eq!(fraction(&["39/5".into()]), wanted);
        assert_eq!(fraction(&[Value::Int(39), Value::Int(5)]), wanted);
        assert_eq!(fraction(&[]), Json::Null);
    }

    #[test]
    fn bags_are_read_and_their_checkpoints_found() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let yaml = "models: ['f7e0c4bc', 'd12395a8']\nweights: [\n  [1., 0.],\n  [0., 1.],\n]\n";
        let bag = put("two.yaml", yaml);
        let first = put("f7e0c4bc-ba3fe64a.th", "");
        let error = Package::find(folder.path()).unwrap_err().to_string();
        assert!(error.contains("wanted d12395a8"), "{error}");
        let second = put("d12395a8.safetensors", "");
        let found = Package::find(folder.path()).unwrap();
        assert_eq!(found.files, [first.clone(), second]);
        let (_, read) = found.bag.unwrap();
        assert_eq!(read.weights.unwrap()[1], [0.0, 1.0]);
        put("two.yaml", "models: [f7e0c4bc]\nsegment: 44");
        let found = Package::find(&bag).unwrap();
        assert_eq!(found.bag.unwrap().1.segment, Some(44.0));
        put("two.yaml", "models: [f7e0c4bc]\nweights: [[1.], [1.]]");
        assert!(Package::find(&bag).is_err());
        put("two.yaml", "nothing: here");
        assert!(Package::find(&bag).is_err());
        std::fs::remove_file(&bag).unwrap();
        assert!(
            Package::find(folder.path()).is_err(),
            "two checkpoints without a bag"
        );
        let damaged = Checkpoint::open(&first).err().unwrap().to_string();
        assert!(
            damaged.contains("its SHA-256 begins with e3b0c442"),
            "{damaged}"
        );
    }
}
