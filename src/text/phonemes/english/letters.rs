//! How an unknown word sounds, guessed from its letters by a small convolutional network.
//!
//! ```text
//! letters -> embedding -> 6 x (x + relu(conv)) -> for every letter: its sounds, and its stress
//! ```

use std::sync::LazyLock;

/// Made by `scripts/english/letters_to_sounds.py`, which describes it.
static STORED: &[u8] = include_bytes!("letters.bin");

static NETWORK: LazyLock<Option<Network>> = LazyLock::new(|| Network::read(STORED));

const VOWELS: &str = "æɑɔəɛɜɪiuʊʌᵻᵊAIOWY";

/// Letters in the order of their embeddings, which start at 1.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz'";

struct Network {
    channels: usize,
    kernel: usize,
    dilations: Vec<usize>,
    /// What a letter may stand for: none, one or a few sounds.
    chunks: Vec<String>,
    /// `[letter, channel]`.
    embedding: Vec<f32>,
    layers: Vec<Layer>,
    /// `[chunk or stress, channel]`.
    out: Layer,
}

struct Layer {
    bias: Vec<f32>,
    /// `[out, tap, in]`.
    weight: Vec<f32>,
}

/// The sounds of a word in misaki's symbols; empty for words without letters.
pub fn guess(word: &str) -> String {
    let letters: Vec<usize> = word
        .chars()
        .filter_map(|c| LETTERS.find(c.to_ascii_lowercase()).map(|index| index + 1))
        .collect();
    match &*NETWORK {
        Some(network) if !letters.is_empty() => network.guess(&letters),
        _ => String::new(),
    }
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn size(&mut self) -> Option<usize> {
        let bytes = self.take(2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    fn floats(&mut self, count: usize) -> Option<Vec<f32>> {
        let bytes = self.take(count.checked_mul(4)?)?;
        let parts = bytes.chunks_exact(4);
        Some(
            parts
                .map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]]))
                .collect(),
        )
    }

    /// Rows of 8-bit integers by their scales.
    fn rows(&mut self, scales: &[f32], columns: usize) -> Option<Vec<f32>> {
        let bytes = self.take(scales.len().checked_mul(columns)?)?;
        let rows = bytes.chunks_exact(columns.max(1)).zip(scales);
        Some(
            rows.flat_map(|(row, scale)| {
                row.iter().map(move |byte| f32::from(*byte as i8) * scale)
            })
            .collect(),
        )
    }
}

impl Network {
    fn read(stored: &[u8]) -> Option<Network> {
        let mut bytes = Bytes(stored.strip_prefix(b"L2S1")?);
        let [channels, kernel, depth, count] =
            [bytes.size()?, bytes.size()?, bytes.size()?, bytes.size()?];
        let dilations: Vec<usize> = bytes.take(depth)?.iter().map(|d| usize::from(*d)).collect();
        let mut chunks = Vec::new();
        for _ in 0..count {
            let length = usize::from(bytes.take(1)?[0]);
            chunks.push(String::from_utf8(bytes.take(length)?.to_vec()).ok()?);
        }
        let letters = LETTERS.len() + 1;
        let scales = bytes.floats(letters)?;
        let embedding = bytes.rows(&scales, channels)?;
        let mut layer = |out: usize, taps: usize| {
            let scales = bytes.floats(out)?;
            let bias = bytes.floats(out)?;
            let weight = bytes.rows(&scales, channels * taps)?;
            // From [out, in, tap] to [out, tap, in], so that a tap is a run of memory.
            let turned = weight.chunks_exact(channels * taps).flat_map(|row| {
                (0..taps).flat_map(move |tap| (0..channels).map(move |i| row[i * taps + tap]))
            });
            Some(Layer {
                bias,
                weight: turned.collect(),
            })
        };
        let layers = dilations
            .iter()
            .map(|_| layer(channels, kernel))
            .collect::<Option<Vec<_>>>()?;
        let out = layer(count + 3, 1)?;
        Some(Network {
            channels,
            kernel,
            dilations,
            chunks,
            embedding,
            layers,
            out,
        })
    }

    fn guess(&self, letters: &[usize]) -> String {
        let width = self.channels;
        let rows = letters
            .iter()
            .map(|letter| &self.embedding[letter * width..][..width]);
        let mut x: Vec<f32> = rows.flatten().copied().collect(); // [letter, channel]
        for (layer, dilation) in self.layers.iter().zip(&self.dilations) {
            let change = layer.apply(&x, width, self.kernel, *dilation);
            for (value, change) in x.iter_mut().zip(change) {
                *value += change.max(0.0);
            }
        }
        let scores = self.out.apply(&x, width, 1, 1); // [letter, chunk and stress]
        let scores: Vec<&[f32]> = scores.chunks_exact(self.chunks.len() + 3).collect();
        self.decode(&scores)
    }

    /// The best sounds for each letter, with one main stress.
    fn decode(&self, scores: &[&[f32]]) -> String {
        let count = self.chunks.len();
        let has_vowel = |chunk: &str| chunk.chars().any(|sound| VOWELS.contains(sound));
        let picked: Vec<&str> = scores
            .iter()
            .map(|row| {
                let best = (0..count).max_by(|a, b| row[*a].total_cmp(&row[*b]));
                self.chunks[best.unwrap_or(0)].as_str()
            })
            .collect();
        // Log probabilities of no, main and second stress.
        let stress: Vec<[f32; 3]> = scores
            .iter()
            .map(|row| log_softmax([row[count], row[count + 1], row[count + 2]]))
            .collect();
        let main = (0..picked.len())
            .filter(|i| has_vowel(picked[*i]))
            .max_by(|a, b| stress[*a][1].total_cmp(&stress[*b][1]));
        let mut sounds = String::new();
        for (i, chunk) in picked.iter().enumerate() {
            let [none, first, second] = stress[i];
            let mut mark = if main == Some(i) {
                Some('ˈ')
            } else if has_vowel(chunk) && second > none.max(first) {
                Some('ˌ')
            } else {
                None
            };
            for sound in chunk.chars() {
                if VOWELS.contains(sound) {
                    sounds.extend(mark.take());
                }
                sounds.push(sound);
            }
        }
        sounds
    }
}

impl Layer {
    /// A convolution over rows of `width` channels, as long as its input.
    fn apply(&self, x: &[f32], width: usize, taps: usize, dilation: usize) -> Vec<f32> {
        let length = x.len() / width;
        let reach = taps / 2 * dilation;
        let mut out = Vec::with_capacity(length * self.bias.len());
        for t in 0..length {
            for (o, bias) in self.bias.iter().enumerate() {
                let mut sum = *bias;
                for tap in 0..taps {
                    let Some(from) = (t + tap * dilation)
                        .checked_sub(reach)
                        .filter(|from| *from < length)
                    else {
                        continue;
                    };
                    let weight = &self.weight[(o * taps + tap) * width..][..width];
                    let row = &x[from * width..][..width];
                    sum += weight.iter().zip(row).map(|(w, x)| w * x).sum::<f32>();
                }
                out.push(sum);
            }
        }
        out
    }
}

fn log_softmax(values: [f32; 3]) -> [f32; 3] {
    let most = values.into_iter().fold(f32::MIN, f32::max);
    let total: f32 = values.iter().map(|value| (value - most).exp()).sum();
    values.map(|value| value - most - total.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_sound_likely() {
        for (word, wanted) in [
            ("blicket", "blˈɪkɪt"),
            ("snorfing", "snˈɔɹfɪŋ"),
            ("frumious", "fɹˈumiəs"),
        ] {
            assert_eq!(guess(word), wanted, "{word}");
        }
        assert_eq!(guess(""), "");
        assert_eq!(guess("123"), "");
        assert!(guess(&"a".repeat(300)).chars().count() > 0);
    }

    #[test]
    fn a_damaged_network_is_none() {
        assert!(Network::read(&STORED[..STORED.len() - 1]).is_none());
        assert!(Network::read(b"L2S1\xff\xff\xff\xff\xff\xff\xff\xff").is_none());
    }
}
