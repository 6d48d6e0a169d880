//! Pronunciations that the user wrote: `[[həlˈoʊ]]`.

/// The pronunciation at the start of a text, and how many bytes it is with its brackets.
pub fn pronunciation(rest: &str) -> Option<(&str, usize)> {
    let inner = rest.strip_prefix("[[")?;
    let end = inner.find("]]")?;
    let ipa = inner[..end].trim();
    let plain = !ipa.is_empty() && !ipa.contains(['\n', '[']);
    plain.then_some((ipa, end + 4))
}
