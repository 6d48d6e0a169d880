//! Which sounds of connected speech belong to which word.

/// The sounds of one word in connected speech.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Its sounds; empty for a word that is not heard.
    pub ipa: String,
    /// There is no blank before it.
    pub joined: bool,
}

/// Splits `groups` (the sounds of a clause, at its blanks) over words, which sound like `alone`
/// by themselves. As many groups as words are one each; else the sounds are cut where the whole
/// differs least from the words by themselves.
pub fn align(groups: &[String], alone: &[String]) -> Vec<Part> {
    if groups.len() == alone.len() {
        let part = |group: &String| Part {
            ipa: group.clone(),
            joined: false,
        };
        return groups.iter().map(part).collect();
    }
    let mut sounds: Vec<char> = Vec::new();
    let mut blanks = Vec::new();
    for group in groups {
        blanks.push(sounds.len());
        sounds.extend(group.chars());
    }
    let cuts = cuts(&sounds, &blanks, alone);
    let mut start = 0;
    cuts.into_iter()
        .map(|end| {
            let part = Part {
                ipa: sounds[start..end].iter().collect(),
                joined: start > 0 && !blanks.contains(&start),
            };
            start = end;
            part
        })
        .collect()
}

/// Cost of cutting where there is no blank.
const INSIDE: usize = 3;

/// Where each word ends in `sounds`, by dynamic programming over words and places.
fn cuts(sounds: &[char], blanks: &[usize], alone: &[String]) -> Vec<usize> {
    let count = sounds.len();
    let far = usize::MAX / 4;
    let mut best = vec![far; count + 1];
    best[0] = 0;
    let mut from: Vec<Vec<usize>> = Vec::new();
    for word in alone {
        let word: Vec<char> = word.chars().collect();
        let mut next = vec![far; count + 1];
        let mut back = vec![0; count + 1];
        // A word is hardly longer in a sentence than by itself.
        let longest = word.len() * 2 + 8;
        for start in 0..=count {
            if best[start] >= far {
                continue;
            }
            let reach = &sounds[start..count.min(start + longest)];
            for (length, cost) in prefix_costs(reach, &word).into_iter().enumerate() {
                let end = start + length;
                let inside = end < count && !blanks.contains(&end);
                // Stress and length marks stay with their sound.
                let split = sounds
                    .get(end)
                    .is_some_and(|c| matches!(c, 'ː' | '\u{300}'..='\u{36f}'));
                let total = best[start]
                    + cost
                    + if inside { INSIDE } else { 0 }
                    + if split { far / 8 } else { 0 };
                if total < next[end] {
                    (next[end], back[end]) = (total, start);
                }
            }
        }
        best = next;
        from.push(back);
    }
    let mut ends = vec![count; alone.len()];
    let mut at = count;
    for (index, back) in from.iter().enumerate().rev() {
        ends[index] = at;
        at = back[at];
    }
    ends
}

/// Edits between `word` and every prefix of `sounds`, the empty one first.
fn prefix_costs(sounds: &[char], word: &[char]) -> Vec<usize> {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    let mut costs = vec![word.len()];
    for sound in sounds {
        let mut diagonal = row[0];
        row[0] += 1;
        for (j, wanted) in word.iter().enumerate() {
            let change = diagonal + usize::from(sound != wanted);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
        costs.push(row[word.len()]);
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(groups: &[&str], alone: &[&str]) -> Vec<(String, bool)> {
        let own = |list: &[&str]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let parts = align(&own(groups), &own(alone));
        parts
            .into_iter()
            .map(|part| (part.ipa, part.joined))
            .collect()
    }

    #[test]
    fn joined_words_are_cut_and_spelled_ones_gathered() {
        let found = aligned(&["ɪnðə", "hˈaʊs"], &["ˈɪn", "ðˈə", "hˈaʊs"]);
        let wanted = [("ɪn", false), ("ðə", true), ("hˈaʊs", false)];
        assert_eq!(found, wanted.map(|(ipa, joined)| (ipa.to_owned(), joined)));
        let found = aligned(
            &["fˈɔːɹ", "twˈɛnti", "tˈuː", "dˈeɪz"],
            &["fˈɔːɹ", "twˈɛntitˈuː", "dˈeɪz"],
        );
        assert_eq!(found[1].0, "twˈɛntitˈuː");
        assert_eq!(aligned(&[], &["a"]), [(String::new(), false)]);
    }
}
