//! The tree of plain values that a weight file carries beside its tensors.

use serde_json::{Number, json};

/// A value found in a weight file: GGUF key/values, whisper.cpp hyper-parameters, the object
/// tree of a pickle, safetensors metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: Python's `None`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number; wide enough for every integer type and torch's 80-bit magic number.
    Int(i128),
    /// A real number.
    Float(f64),
    /// UTF-8 text.
    Text(String),
    /// Raw bytes, e.g. a vocabulary entry that need not be UTF-8.
    Bytes(Vec<u8>),
    /// A run of `f32`, e.g. mel filters.
    Floats(Vec<f32>),
    /// A list, tuple or set.
    List(Vec<Value>),
    /// Keys and values in file order; keys are mostly text.
    Map(Vec<(Value, Value)>),
    /// A tensor of this file, by its name in `Source::tensors`.
    Tensor(String),
    /// A reference to a class, written `module.Name`.
    Class(String),
    /// An instance of a class whose code was not run: constructor arguments and attributes.
    Object {
        /// `module.Name` of the class.
        class: String,
        /// Positional constructor arguments.
        args: Vec<Value>,
        /// Attributes and items by key.
        fields: Vec<(Value, Value)>,
    },
}

impl Value {
    /// An empty map.
    pub fn map() -> Self {
        Value::Map(Vec::new())
    }

    /// The value under text `key` of a map or object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let (Value::Map(entries)
        | Value::Object {
            fields: entries, ..
        }) = self
        else {
            return None;
        };
        entries
            .iter()
            .find(|(k, _)| matches!(k, Value::Text(t) if t == key))
            .map(|(_, v)| v)
    }

    /// Follows `keys` through nested maps and objects.
    pub fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// A whole number, also from a bool.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(i) => i64::try_from(*i).ok(),
            Value::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub fn as_usize(&self) -> Option<usize> {
        match self {
            Value::Int(i) => usize::try_from(*i).ok(),
            _ => None,
        }
    }

    /// A real number, also from a whole one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(f) => Some(*f),
            Value::Int(i) => Some(*i as f64),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }

    /// Bytes, also of text.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(b) => Some(b),
            Value::Text(t) => Some(t.as_bytes()),
            _ => None,
        }
    }

    /// The `f32` run.
    pub fn as_floats(&self) -> Option<&[f32]> {
        match self {
            Value::Floats(f) => Some(f),
            _ => None,
        }
    }

    /// Items of a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Entries of a map or attributes of an object.
    pub fn entries(&self) -> &[(Value, Value)] {
        match self {
            Value::Map(entries)
            | Value::Object {
                fields: entries, ..
            } => entries,
            _ => &[],
        }
    }

    /// JSON for `serde` configs. Bytes become lossy text, a tensor `{"tensor": name}`, a class
    /// its name, an object its fields plus `"__class__"` and, if any, `"__args__"`; a number
    /// that JSON cannot hold becomes null.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(b) => json!(b),
            Value::Int(i) => match (i64::try_from(*i), u64::try_from(*i)) {
                (Ok(i), _) => json!(i),
                (_, Ok(u)) => json!(u),
                _ => Number::from_f64(*i as f64).map_or(serde_json::Value::Null, Into::into),
            },
            Value::Float(f) => json!(f),
            Value::Text(t) | Value::Class(t) => json!(t),
            Value::Bytes(b) => json!(String::from_utf8_lossy(b)),
            Value::Floats(f) => json!(f),
            Value::List(items) => items.iter().map(Value::to_json).collect(),
            Value::Map(entries) => json_object(entries).into(),
            Value::Tensor(name) => json!({ "tensor": name }),
            Value::Object {
                class,
                args,
                fields,
            } => {
                let mut object = json_object(fields);
                object.insert("__class__".into(), json!(class));
                if !args.is_empty() {
                    let args = args.iter().map(Value::to_json).collect();
                    object.insert("__args__".into(), args);
                }
                object.into()
            }
        }
    }

    /// The value as a map key or part of a tensor name.
    pub fn key(&self) -> String {
        match self {
            Value::Text(t) | Value::Class(t) | Value::Tensor(t) => t.clone(),
            other => other.to_json().to_string(),
        }
    }
}

fn json_object(entries: &[(Value, Value)]) -> serde_json::Map<String, serde_json::Value> {
    entries
        .iter()
        .map(|(k, v)| (k.key(), v.to_json()))
        .collect()
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_by_key_and_as_json() {
        let tree = Value::Map(vec![
            ("n".into(), Value::Int(u64::MAX.into())),
            (
                "model".into(),
                Value::Object {
                    class: "demucs.HTDemucs".into(),
                    args: vec![Value::Int(1)],
                    fields: vec![(Value::Int(7), Value::List(vec![Value::Null]))],
                },
            ),
        ]);
        assert_eq!(tree.at(&["model", "7"]), None);
        assert_eq!(tree.get("n").unwrap().as_f64(), Some(u64::MAX as f64));
        assert_eq!(tree.get("n").unwrap().as_i64(), None);
        let json = tree.to_json();
        assert_eq!(json["n"], u64::MAX);
        assert_eq!(json["model"]["7"], json!([null]));
        assert_eq!(json["model"]["__class__"], "demucs.HTDemucs");
        assert_eq!(json["model"]["__args__"], json!([1]));
    }
}
