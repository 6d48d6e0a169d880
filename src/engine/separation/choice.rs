//! Which stems a request asks for, and what they are made of.

use crate::engine::{
    Rest, SeparateRequest,
    error::{Error, Result},
    suggest::hint,
};

/// What a stem of the result is made of; numbers are those of the network's stems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// The sum of these.
    Of(Vec<usize>),
    /// The mix without this one.
    Without(usize),
}

/// The stems of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub outputs: Vec<(String, Made)>,
    /// For each stem of the network, whether it is needed.
    pub wanted: Vec<bool>,
}

impl Choice {
    /// What `request` wants of a network with `stems`.
    pub fn new(request: &SeparateRequest, stems: &[String]) -> Result<Choice> {
        let find = |name: &str| {
            stems.iter().position(|stem| stem == name).ok_or_else(|| {
                Error::bad_input(format!(
                    "this model has no stem `{name}`{}; it has {}",
                    hint(name, stems.iter().map(String::as_str)),
                    stems.join(", ")
                ))
            })
        };
        let outputs = match (&request.two_stems, &request.stems[..]) {
            (Some(_), [_, ..]) => {
                return Err(Error::bad_input(
                    "a list of stems and two stems exclude each other",
                ));
            }
            (Some(name), []) => {
                let stem = find(name)?;
                let rest = match request.rest {
                    Rest::Sum => Made::Of((0..stems.len()).filter(|&i| i != stem).collect()),
                    Rest::Difference => Made::Without(stem),
                };
                vec![
                    (name.clone(), Made::Of(vec![stem])),
                    (format!("no_{name}"), rest),
                ]
            }
            (None, []) => {
                let all = stems.iter().enumerate();
                all.map(|(i, name)| (name.clone(), Made::Of(vec![i])))
                    .collect()
            }
            (None, names) => {
                let mut outputs: Vec<(String, Made)> = Vec::new();
                for name in names {
                    let made = Made::Of(vec![find(name)?]);
                    if !outputs.iter().any(|(known, _)| known == name) {
                        outputs.push((name.clone(), made));
                    }
                }
                outputs
            }
        };
        let mut wanted = vec![false; stems.len()];
        for (_, made) in &outputs {
            match made {
                Made::Of(parts) => parts.iter().for_each(|&i| wanted[i] = true),
                Made::Without(stem) => wanted[*stem] = true,
            }
        }
        Ok(Choice { outputs, wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(request: SeparateRequest) -> Result<Choice> {
        let stems = ["drums", "bass", "vocals"].map(str::to_owned);
        Choice::new(&request, &stems)
    }

    #[test]
    fn all_some_or_two_stems() {
        let all = choice(SeparateRequest::default()).unwrap();
        assert_eq!((all.outputs.len(), all.wanted), (3, vec![true; 3]));
        let some = choice(SeparateRequest {
            stems: vec!["vocals".into(), "bass".into(), "vocals".into()],
            ..Default::default()
        });
        let some = some.unwrap();
        assert_eq!(some.wanted, [false, true, true]);
        assert_eq!(some.outputs[0], ("vocals".into(), Made::Of(vec![2])));
        assert_eq!(some.outputs.len(), 2);
        let mut two = SeparateRequest {
            two_stems: Some("bass".into()),
            ..Default::default()
        };
        let sum = choice(two.clone()).unwrap();
        assert_eq!(sum.outputs[1], ("no_bass".into(), Made::Of(vec![0, 2])));
        two.rest = Rest::Difference;
        let without = choice(two.clone()).unwrap();
        assert_eq!(without.outputs[1], ("no_bass".into(), Made::Without(1)));
        assert_eq!(without.wanted, [false, true, false]);
        two.stems.push("drums".into());
        assert!(choice(two).is_err());
    }

    #[test]
    fn a_slip_is_pointed_out() {
        let error = choice(SeparateRequest {
            stems: vec!["vocal".into()],
            ..Default::default()
        });
        let message = error.unwrap_err().message;
        assert!(message.contains("did you mean `vocals`"), "{message}");
        assert!(message.ends_with("drums, bass, vocals"), "{message}");
    }
}
