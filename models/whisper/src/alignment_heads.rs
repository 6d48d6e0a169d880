//! Which cross-attention heads follow the sound.

/// A decoder layer and a head in it.
pub type Head = (usize, usize);

/// A published model: decoder layers, encoder layers, vocabulary, heads that OpenAI found to
/// follow the audio from word to word.
struct Published {
    decoder_layers: usize,
    encoder_layers: usize,
    n_vocab: usize,
    heads: &'static [Head],
}

#[rustfmt::skip]
const PUBLISHED: [Published; 11] = [
    // tiny.en
    Published { decoder_layers: 4, encoder_layers: 4, n_vocab: 51864, heads: &[
        (1, 0), (2, 0), (2, 5), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4),
    ] },
    // tiny
    Published { decoder_layers: 4, encoder_layers: 4, n_vocab: 51865, heads: &[
        (2, 2), (3, 0), (3, 2), (3, 3), (3, 4), (3, 5),
    ] },
    // base.en
    Published { decoder_layers: 6, encoder_layers: 6, n_vocab: 51864, heads: &[
        (3, 3), (4, 7), (5, 1), (5, 5), (5, 7),
    ] },
    // base
    Published { decoder_layers: 6, encoder_layers: 6, n_vocab: 51865, heads: &[
        (3, 1), (4, 2), (4, 3), (4, 7), (5, 1), (5, 2), (5, 4), (5, 6),
    ] },
    // small.en
    Published { decoder_layers: 12, encoder_layers: 12, n_vocab: 51864, heads: &[
        (6, 6), (7, 0), (7, 3), (7, 8), (8, 2), (8, 5), (8, 7), (9, 0), (9, 4), (9, 8), (9, 10),
        (10, 0), (10, 1), (10, 2), (10, 3), (10, 6), (10, 11), (11, 2), (11, 4),
    ] },
    // small
    Published { decoder_layers: 12, encoder_layers: 12, n_vocab: 51865, heads: &[
        (5, 3), (5, 9), (8, 0), (8, 4), (8, 7), (8, 8), (9, 0), (9, 7), (9, 9), (10, 5),
    ] },
    // medium.en
    Published { decoder_layers: 24, encoder_layers: 24, n_vocab: 51864, heads: &[
        (11, 4), (14, 1), (14, 12), (14, 14), (15, 4), (16, 0), (16, 4), (16, 9), (17, 12),
        (17, 14), (18, 7), (18, 10), (18, 15), (20, 0), (20, 3), (20, 9), (20, 14), (21, 12),
    ] },
    // medium
    Published { decoder_layers: 24, encoder_layers: 24, n_vocab: 51865, heads: &[
        (13, 15), (15, 4), (15, 15), (16, 1), (20, 0), (23, 4),
    ] },
    // large-v2; large-v1 has the same sizes and cannot be told from it here.
    Published { decoder_layers: 32, encoder_layers: 32, n_vocab: 51865, heads: &[
        (10, 12), (13, 17), (16, 11), (16, 12), (16, 13), (17, 15), (17, 16), (18, 4), (18, 11),
        (18, 19), (19, 11), (21, 2), (21, 3), (22, 3), (22, 9), (22, 12), (23, 5), (23, 7),
        (23, 13), (25, 5), (26, 1), (26, 12), (27, 15),
    ] },
    // large-v3
    Published { decoder_layers: 32, encoder_layers: 32, n_vocab: 51866, heads: &[
        (7, 0), (10, 17), (12, 18), (13, 12), (16, 1), (17, 14), (19, 11), (21, 4), (24, 1),
        (25, 6),
    ] },
    // large-v3-turbo
    Published { decoder_layers: 4, encoder_layers: 32, n_vocab: 51866, heads: &[
        (2, 4), (2, 11), (3, 3), (3, 6), (3, 11), (3, 14),
    ] },
];

/// The alignment heads of a model whose files do not name them: those published for a model of
/// these sizes, else every head (of `n_heads`) in the later half of the decoder.
pub fn alignment_heads(
    decoder_layers: usize,
    encoder_layers: usize,
    n_vocab: usize,
    n_heads: usize,
) -> Vec<Head> {
    let published = PUBLISHED.iter().find(|known| {
        known.decoder_layers == decoder_layers
            && known.encoder_layers == encoder_layers
            && known.n_vocab == n_vocab
    });
    match published {
        Some(known) => known.heads.to_vec(),
        None => (decoder_layers / 2..decoder_layers)
            .flat_map(|layer| (0..n_heads).map(move |head| (layer, head)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_their_models() {
        for known in &PUBLISHED {
            let width = match known.encoder_layers {
                4 => 6,
                6 => 8,
                12 => 12,
                24 => 16,
                _ => 20,
            };
            for (layer, head) in known.heads {
                assert!(*layer < known.decoder_layers && *head < width);
            }
            assert!(known.heads.is_sorted());
        }
        assert_eq!(alignment_heads(32, 32, 51866, 20).len(), 10);
        assert_eq!(alignment_heads(4, 32, 51866, 20)[0], (2, 4));
    }

    #[test]
    fn an_unknown_model_uses_the_later_half() {
        assert_eq!(alignment_heads(2, 32, 51866, 2), [(1, 0), (1, 1)]);
        assert_eq!(alignment_heads(3, 3, 51864, 1), [(1, 0), (2, 0)]);
        assert_eq!(alignment_heads(0, 0, 0, 8), []);
    }
}
