//! "Did you mean": the nearest of a set of known names.

/// The candidate nearest to `wanted`, unless all are too far to be a slip.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wanted.to_lowercase();
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|name| {
            let candidate = name.to_lowercase();
            let distance = strsim::damerau_levenshtein(&lower, &candidate);
            // `whisper` for `whisper-base`: a beginning counts as near.
            let starts = lower.len() >= 3 && candidate.starts_with(&lower);
            (if starts { distance.min(1) } else { distance }, name)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `; did you mean `x`?` for the nearest known name, else the list of all of them.
pub fn hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(wanted, known.clone()) {
        return format!("; did you mean `{name}`?");
    }
    let names: Vec<&str> = known.into_iter().collect();
    if names.is_empty() {
        "; there are none".into()
    } else {
        format!("; known: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_name_and_strangers_do_not() {
        let known = ["whisper", "piper", "kokoro"];
        assert_eq!(nearest("wisper", known), Some("whisper"));
        assert_eq!(nearest("Pipre", known), Some("piper"));
        assert_eq!(nearest("whis", known), Some("whisper"));
        assert_eq!(nearest("demucs", known), None);
        assert_eq!(hint("kokro", known), "; did you mean `kokoro`?");
        assert_eq!(hint("zzz", known), "; known: whisper, piper, kokoro");
        assert_eq!(hint("zzz", []), "; there are none");
    }
}
