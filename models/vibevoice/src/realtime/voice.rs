//! Voices: keys and values that the language models had after a recording and its words.
//!
//! They are published as `.pt` files, pickles of transformers' classes of which only the tensors are
//! read; no code is run.

use std::{collections::BTreeMap, path::Path};

use audiocpp::{
    nn::CausalLmSize,
    weights::{Source, open, to_f32, torch},
};

use crate::{LoadError, config::RealtimeConfig};

/// Classes that such files name.
const CLASSES: [&str; 4] = [
    "transformers.modeling_outputs.*",
    "transformers.cache_utils.*",
    "vibevoice.modular.*",
    "torch.bfloat16",
];
/// Steps beyond this are of no voice.
const MOST_STEPS: usize = 8192;

/// What a language model had read.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefix {
    /// The last hidden state `[width]`.
    pub hidden: Vec<f32>,
    /// Keys and values of each block, `[steps, kv heads * head width]`.
    pub rows: Vec<[Vec<f32>; 2]>,
    /// How many steps.
    pub steps: usize,
}

/// A voice.
#[derive(Debug, Clone, PartialEq)]
pub struct Voice {
    /// The lower language model's.
    pub lower: Prefix,
    /// The upper language model's.
    pub upper: Prefix,
    /// The upper language model's without the text.
    pub without_text: Prefix,
}

impl Voice {
    /// Reads a `.pt` file, or a safetensors file with tensors of the same names.
    ///
    /// # Errors
    /// A file that is no voice of this model.
    pub fn read(path: &Path, config: &RealtimeConfig) -> Result<Voice, LoadError> {
        let pickled = path.extension().is_some_and(|ending| ending == "pt");
        let source: Box<dyn Source> = match pickled {
            true => Box::new(torch::open(path, &CLASSES)?),
            false => open(path)?,
        };
        let prefix = |part: &str, size: &CausalLmSize| Prefix::read(&*source, path, part, size);
        Ok(Voice {
            lower: prefix("lm", &config.lower)?,
            upper: prefix("tts_lm", &config.upper)?,
            without_text: prefix("neg_tts_lm", &config.upper)?,
        })
    }
}

impl Prefix {
    fn read(
        source: &dyn Source,
        path: &Path,
        part: &str,
        size: &CausalLmSize,
    ) -> Result<Prefix, LoadError> {
        let wrong = |problem: String| LoadError::package(path, problem);
        let tensors = Tensors::of(source, part);
        let (shape, all) = tensors.get(path, "last_hidden_state")?;
        let steps = match shape[..] {
            [1, steps, width] if width == size.width && (1..=MOST_STEPS).contains(&steps) => steps,
            _ => {
                let width = size.width;
                let problem = format!(
                    "the hidden states of `{part}` are {shape:?}, wanted [1, steps, {width}]"
                );
                return Err(wrong(problem));
            }
        };
        let (heads, each) = (size.kv_heads, size.head_width);
        let rows = |name: String| -> Result<Vec<f32>, LoadError> {
            let (shape, values) = tensors.get(path, &name)?;
            if shape != [1, heads, steps, each] {
                let wanted = [1, heads, steps, each];
                return Err(wrong(format!(
                    "`{part}.{name}` is {shape:?}, wanted {wanted:?}"
                )));
            }
            let mut turned = Vec::with_capacity(values.len());
            for step in 0..steps {
                for head in 0..heads {
                    turned.extend_from_slice(&values[(head * steps + step) * each..][..each]);
                }
            }
            Ok(turned)
        };
        let block = |i| {
            Ok([
                rows(format!("key_cache.{i}"))?,
                rows(format!("value_cache.{i}"))?,
            ])
        };
        Ok(Prefix {
            hidden: all[all.len() - size.width..].to_vec(),
            rows: (0..size.layers)
                .map(block)
                .collect::<Result<_, LoadError>>()?,
            steps,
        })
    }
}

/// The tensors of one part, by the ends of their names.
struct Tensors<'s> {
    source: &'s dyn Source,
    part: String,
    names: BTreeMap<String, String>,
}

impl<'s> Tensors<'s> {
    fn of(source: &'s dyn Source, part: &str) -> Tensors<'s> {
        let prefix = format!("{part}.");
        let mut names = BTreeMap::new();
        for info in source.tensors() {
            let Some(inner) = info.name.strip_prefix(&prefix) else {
                continue;
            };
            // Newer versions of transformers keep `layers.N.keys`.
            let parts: Vec<&str> = inner.split('.').collect();
            let short = match parts[..] {
                [.., "layers", i, "keys"] => format!("key_cache.{i}"),
                [.., "layers", i, "values"] => format!("value_cache.{i}"),
                [.., kind @ ("key_cache" | "value_cache"), i] => format!("{kind}.{i}"),
                [.., last] => last.to_owned(),
                [] => continue,
            };
            names.entry(short).or_insert_with(|| info.name.clone());
        }
        Tensors {
            source,
            part: part.to_owned(),
            names,
        }
    }

    fn get(&self, path: &Path, name: &str) -> Result<(Vec<usize>, Vec<f32>), LoadError> {
        let info = self.names.get(name).and_then(|full| self.source.find(full));
        let info = info.ok_or_else(|| {
            LoadError::package(
                path,
                format!("no voice: it has no `{name}` in `{}`", self.part),
            )
        })?;
        let values = to_f32(&self.source.bytes(info)?, info.dtype).map_err(|_| {
            let problem = format!(
                "`{}` holds {}, which is no type of weights",
                info.name, info.dtype
            );
            LoadError::package(path, problem)
        })?;
        Ok((info.shape.clone(), values))
    }
}
