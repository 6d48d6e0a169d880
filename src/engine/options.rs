//! Options that a family declares, and values checked against the declaration.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{
    error::{Error, Result},
    suggest::hint,
};

/// When an option takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// When the weights are loaded.
    Load,
    /// When a session is opened on a loaded model.
    Session,
    /// For one request.
    Request,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Load => "load",
            Scope::Session => "session",
            Scope::Request => "request",
        })
    }
}

/// The values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OptionKind {
    /// `true` or `false`.
    Bool,
    /// A whole number within the bounds, both included.
    Int {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// A number within the bounds, both included.
    Float {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// Any text.
    Text,
    /// One of a few words.
    Choice {
        /// The words.
        values: &'static [&'static str],
    },
}

/// The declaration of one option.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OptionSpec {
    /// Name, in snake case.
    pub name: &'static str,
    /// When it takes effect.
    pub scope: Scope,
    /// What values it takes.
    #[serde(flatten)]
    pub kind: OptionKind,
    /// Its value when it is not given, as a user would write it; `None` leaves it to the model.
    pub default: Option<&'static str>,
    /// One sentence.
    pub doc: &'static str,
}

/// One option's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text, or the word of a choice.
    Text(String),
}

/// Values by option name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options(BTreeMap<String, OptionValue>);

impl Options {
    /// Whether no option was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets `name`, replacing an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: OptionValue) {
        self.0.insert(name.into(), value);
    }

    /// The value given for `name`, if any.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.0.get(name)
    }

    /// The truth value given for `name`.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            OptionValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The whole number given for `name`.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            OptionValue::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The number given for `name`; whole numbers count.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            OptionValue::Float(value) => Some(*value),
            OptionValue::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The text or choice given for `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            OptionValue::Text(value) => Some(value),
            _ => None,
        }
    }

    /// All names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Reads `key=value` pairs against what `family` declares for `scope`.
    ///
    /// A key may carry the family as a prefix (`whisper.beam_size`). Unknown keys, values of the
    /// wrong type or out of bounds, and a key given twice with different values are errors.
    pub fn parse<S: AsRef<str>>(
        pairs: &[S],
        family: &str,
        specs: &[OptionSpec],
        scope: Scope,
    ) -> Result<Options> {
        let mut options = Options::default();
        for pair in pairs {
            let pair = pair.as_ref();
            let Some((key, text)) = pair.split_once('=') else {
                return Err(Error::unsupported(format!(
                    "{scope} option `{pair}` has no value: write {pair}=VALUE"
                )));
            };
            let key = key.trim();
            let key = key
                .strip_prefix(family)
                .and_then(|k| k.strip_prefix('.'))
                .unwrap_or(key);
            let value = find(key, family, specs, scope)?.parse(text.trim())?;
            if let Some(earlier) = options.get(key)
                && *earlier != value
            {
                return Err(Error::unsupported(format!(
                    "{scope} option `{key}` is given twice with different values"
                )));
            }
            options.set(key, value);
        }
        Ok(options)
    }

    /// Checks values that came from elsewhere (a file, another process) like [`Options::parse`].
    pub fn check(&self, family: &str, specs: &[OptionSpec], scope: Scope) -> Result<()> {
        for (name, value) in self.iter() {
            find(name, family, specs, scope)?.check(value)?;
        }
        Ok(())
    }
}

/// The declaration of `key` for `scope`, or an error that names the nearest one.
fn find<'a>(
    key: &str,
    family: &str,
    specs: &'a [OptionSpec],
    scope: Scope,
) -> Result<&'a OptionSpec> {
    if let Some(spec) = specs.iter().find(|spec| spec.name == key) {
        if spec.scope == scope {
            return Ok(spec);
        }
        return Err(Error::unsupported(format!(
            "`{key}` is a {} option of {family}, not a {scope} option: use --{}-option",
            spec.scope, spec.scope
        )));
    }
    let names = specs
        .iter()
        .filter(|spec| spec.scope == scope)
        .map(|spec| spec.name);
    Err(Error::unsupported(format!(
        "{family} has no {scope} option `{key}`{}",
        hint(key, names)
    )))
}

impl OptionSpec {
    /// Reads a value as a user writes it.
    pub fn parse(&self, text: &str) -> Result<OptionValue> {
        let value = match self.kind {
            OptionKind::Bool => match text {
                "true" | "1" | "yes" | "on" => Some(OptionValue::Bool(true)),
                "false" | "0" | "no" | "off" => Some(OptionValue::Bool(false)),
                _ => None,
            },
            OptionKind::Int { .. } => text.parse().ok().map(OptionValue::Int),
            OptionKind::Float { .. } => text.parse().ok().map(OptionValue::Float),
            OptionKind::Text | OptionKind::Choice { .. } => Some(OptionValue::Text(text.into())),
        };
        let value = value.ok_or_else(|| self.refuse(text))?;
        self.check(&value)?;
        Ok(value)
    }

    /// Checks type and bounds.
    pub fn check(&self, value: &OptionValue) -> Result<()> {
        let good = match (self.kind, value) {
            (OptionKind::Bool, OptionValue::Bool(_)) | (OptionKind::Text, OptionValue::Text(_)) => {
                true
            }
            (OptionKind::Int { min, max }, OptionValue::Int(n)) => (min..=max).contains(n),
            (OptionKind::Float { min, max }, OptionValue::Float(x)) => (min..=max).contains(x),
            (OptionKind::Float { min, max }, OptionValue::Int(n)) => {
                (min..=max).contains(&(*n as f64))
            }
            (OptionKind::Choice { values }, OptionValue::Text(word)) => {
                values.contains(&word.as_str())
            }
            _ => false,
        };
        if good {
            Ok(())
        } else {
            Err(self.refuse(&value.to_string()))
        }
    }

    fn refuse(&self, found: &str) -> Error {
        let wanted = match self.kind {
            OptionKind::Bool => "true or false".to_owned(),
            OptionKind::Int { min, max } => format!("a whole number from {min} to {max}"),
            OptionKind::Float { min, max } => format!("a number from {min} to {max}"),
            OptionKind::Text => "text".to_owned(),
            OptionKind::Choice { values } => format!("one of {}", values.join(", ")),
        };
        Error::unsupported(format!(
            "option `{}` is `{found}`, wanted {wanted}",
            self.name
        ))
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Bool(value) => value.fmt(f),
            OptionValue::Int(value) => value.fmt(f),
            OptionValue::Float(value) => value.fmt(f),
            OptionValue::Text(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: [OptionSpec; 3] = [
        OptionSpec {
            name: "beam_size",
            scope: Scope::Request,
            kind: OptionKind::Int { min: 1, max: 16 },
            default: Some("5"),
            doc: "Hypotheses kept by beam search.",
        },
        OptionSpec {
            name: "patience",
            scope: Scope::Request,
            kind: OptionKind::Float { min: 0.0, max: 4.0 },
            default: Some("1"),
            doc: "Beam search stops later when this is larger.",
        },
        OptionSpec {
            name: "kv_type",
            scope: Scope::Session,
            kind: OptionKind::Choice {
                values: &["f16", "f32"],
            },
            default: None,
            doc: "Type of the cache.",
        },
    ];

    fn request(pairs: &[&str]) -> Result<Options> {
        Options::parse(pairs, "whisper", &SPECS, Scope::Request)
    }

    #[test]
    fn values_are_typed_and_the_family_prefix_is_dropped() {
        let options = request(&["whisper.beam_size=3", "patience=2"]).unwrap();
        assert_eq!(options.int("beam_size"), Some(3));
        assert_eq!(options.float("patience"), Some(2.0));
        let json = serde_json::to_string(&options).unwrap();
        assert_eq!(json, r#"{"beam_size":3,"patience":2.0}"#);
        assert_eq!(serde_json::from_str::<Options>(&json).unwrap(), options);
    }

    #[test]
    fn slips_are_errors_that_name_the_fix() {
        let message = |pairs: &[&str]| request(pairs).unwrap_err().message;
        assert!(message(&["beam_sise=3"]).contains("did you mean `beam_size`"));
        assert!(message(&["beam_size=99"]).contains("from 1 to 16"));
        assert!(message(&["beam_size=x"]).contains("is `x`"));
        assert!(message(&["patience=NaN"]).contains("from 0 to 4"));
        assert!(message(&["kv_type=f16"]).contains("--session-option"));
        assert!(message(&["beam_size"]).contains("beam_size=VALUE"));
        assert!(message(&["beam_size=3", "beam_size=4"]).contains("twice"));
    }

    #[test]
    fn values_from_elsewhere_are_checked_too() {
        let mut options = Options::default();
        options.set("beam_size", OptionValue::Text("3".into()));
        assert!(options.check("whisper", &SPECS, Scope::Request).is_err());
        options.set("beam_size", OptionValue::Int(3));
        assert!(options.check("whisper", &SPECS, Scope::Request).is_ok());
    }
}
