use super::*;
use crate::text::Utf8Stream;

/// All 256 bytes in GPT-2's order of printable first, then a few merges.
fn tiny_ranks() -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    for merged in [
        " t", "he", " the", "in", " in", "ll", "語", " a", "\u{20ac}",
    ] {
        // Three-byte characters need their first two bytes merged before.
        if merged.len() == 3 && merged.chars().count() == 1 {
            pieces.push(merged.as_bytes()[..2].to_vec());
        }
        pieces.push(merged.as_bytes().to_vec());
    }
    pieces
}

fn ids_of(pieces: &[Vec<u8>], tokens: &[&[u8]]) -> Vec<u32> {
    let id = |token: &&[u8]| pieces.iter().position(|piece| piece == token);
    tokens
        .iter()
        .map(|token| id(token).expect("token in the list") as u32)
        .collect()
}

#[test]
fn rank_list_encodes_by_merge_order() {
    let pieces = tiny_ranks();
    let tokenizer = Tokenizer::from_ranks(&pieces).unwrap();
    assert_eq!(tokenizer.len(), pieces.len());
    // " then" is one cut; " the" wins, "n" is left. "in" starts the text without a blank.
    let wanted: [&[u8]; 5] = [b"in", b" the", b"n", b" in", b"n"];
    assert_eq!(
        tokenizer.encode("in then inn").unwrap(),
        ids_of(&pieces, &wanted)
    );
    // A number, letters and a sign are cut apart; "'ll" is a contraction.
    let wanted: [&[u8]; 6] = [b"x", b"'", b"ll", b"4", b"2", b"!"];
    assert_eq!(
        tokenizer.encode("x'll42!").unwrap(),
        ids_of(&pieces, &wanted)
    );
}

#[test]
fn decodes_to_bytes_and_streams_whole_characters() {
    let tokenizer = Tokenizer::from_ranks(&tiny_ranks()).unwrap();
    let text = "the 語é🎵 €";
    let ids = tokenizer.encode(text).unwrap();
    assert_eq!(tokenizer.decode_bytes(&ids), text.as_bytes());
    let mut stream = Utf8Stream::new();
    let pushed: Vec<String> = ids
        .iter()
        .map(|id| stream.push(tokenizer.piece(*id).unwrap()))
        .collect();
    assert_eq!(pushed.concat(), text);
    assert!(pushed.iter().any(String::is_empty), "emoji spans tokens");
    assert_eq!(tokenizer.decode(&[0xff]), "\u{fffd}");
    assert!(tokenizer.decode_bytes(&[1_000_000]).is_empty());
}

/// A small `tokenizer.json` with one control token.
fn tiny_json() -> String {
    serde_json::json!({
        "version": "1.0",
        "added_tokens": [{"id": 11, "content": "<|end|>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
            "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
            "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": false,
            "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4, "<": 5, "|": 6, "e": 7,
                "n": 8, "d": 9, ">": 10},
            "merges": ["a b", "Ġ ab"]}
    })
    .to_string()
}

#[test]
fn json_keeps_control_tokens_out_of_plain_text() {
    let tokenizer = Tokenizer::from_json(tiny_json().as_bytes()).unwrap();
    assert_eq!(tokenizer.encode("ab ab").unwrap(), [3, 4]);
    assert_eq!(
        tokenizer.encode("ab<|end|>").unwrap(),
        [3, 5, 6, 7, 8, 9, 6, 10]
    );
    assert_eq!(
        tokenizer.encode_with_added("ab<|end|>", false).unwrap(),
        [3, 11]
    );
    assert_eq!(tokenizer.id("<|end|>"), Some(11));
    assert_eq!(tokenizer.added_token(11), Some("<|end|>"));
    assert_eq!(tokenizer.added_token(3), None);
    assert_eq!(tokenizer.decode(&[3, 4, 11]), "ab ab<|end|>");
}

#[test]
fn vocabulary_and_merges_files_make_the_same_tokenizer() {
    let vocab = r#"{"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4, "<|endoftext|>": 5}"#;
    let tokenizer =
        Tokenizer::from_vocab_merges(vocab.as_bytes(), "#version: 0.2\na b\nĠ ab\n").unwrap();
    assert_eq!(tokenizer.encode("ab ab").unwrap(), [3, 4]);
    assert_eq!(tokenizer.decode(&[4, 5]), " ab<|endoftext|>");
}

#[test]
fn sentencepiece_style_json_spells_blanks() {
    let json = serde_json::json!({
        "version": "1.0", "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
            "split": true},
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}]},
        "post_processor": null,
        "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
            "vocab": {"<unk>": 0, "▁": 1, "h": 2, "▁h": 3, "<0xC3>": 4, "<0xA9>": 5},
            "merges": [["▁", "h"]]}
    });
    let tokenizer = Tokenizer::from_json(json.to_string().as_bytes()).unwrap();
    let ids = tokenizer.encode("hé").unwrap();
    assert_eq!(ids, [3, 4, 5]);
    assert_eq!(tokenizer.decode(&ids), " hé");
}

#[test]
fn broken_files_say_which_part_is_wrong() {
    let error = |result: Result<Tokenizer>| match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    assert!(error(Tokenizer::from_json(b"{}")).starts_with("tokenizer.json: "));
    assert!(error(Tokenizer::from_json(b"\xff")).starts_with("tokenizer.json: "));
    let merges = error(Tokenizer::from_vocab_merges(b"{\"a\": 0}", "a b\nbroken"));
    assert_eq!(
        merges,
        "merges.txt: line 2: expected two tokens, found `broken`"
    );
    let missing = error(Tokenizer::from_vocab_merges(b"{\"a\": 0}", "a b"));
    assert!(missing.contains("`b` out of vocabulary"), "{missing}");
    let none: [&[u8]; 0] = [];
    assert_eq!(
        error(Tokenizer::from_ranks(&none)),
        "token list: the vocabulary is empty"
    );
    let absent = error(Tokenizer::from_file(Path::new("/no/such/tokenizer.json")));
    assert!(absent.starts_with("tokenizer file /no/such/tokenizer.json: "));
}
