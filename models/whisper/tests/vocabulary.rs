//! Published vocabularies: what each container holds gives the ids of openai-whisper.

use std::path::Path;

use audiocpp_testing::models;
use audiocpp_whisper::split::split_words;
use audiocpp_whisper::tokenizer::WhisperTokenizer;
use serde_json::Value;

const LATVIAN: &str = "Labdien, šī ir latviešu valoda — žņķ ģēģ!";
const FAMILY: &str = " 🎵 émoji 👩‍👩‍👧‍👦 ok";

/// openai-whisper's ids of the two texts.
struct Wanted {
    n_vocab: usize,
    latvian: &'static [u32],
    family: &'static [u32],
}

/// Checks a tokenizer against `wanted` and the suppressed ids of the model's `config.json`.
fn check(tokenizer: &WhisperTokenizer, folder: &Path, wanted: &Wanted) {
    for (text, ids) in [(LATVIAN, wanted.latvian), (FAMILY, wanted.family)] {
        assert_eq!(tokenizer.encode(text).unwrap(), ids);
        assert_eq!(tokenizer.decode(ids), text);
        let words = split_words(tokenizer, ids, "en");
        let joined: String = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(joined, text);
    }
    let words = split_words(tokenizer, wanted.family, "en");
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    assert_eq!(texts, [" 🎵", " émoji", " 👩‍👩‍👧‍👦", " ok"]);

    let config = std::fs::read(folder.join("config.json")).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    let listed = |name: &str| -> Vec<u32> {
        let ids = config[name].as_array().unwrap().iter();
        ids.map(|id| id.as_u64().unwrap() as u32).collect()
    };
    assert_eq!(
        tokenizer.suppressed_tokens().unwrap(),
        listed("suppress_ids")
    );
    assert_eq!(
        tokenizer.blank_tokens().unwrap(),
        listed("suppress_ids_begin")
    );
    // The English-only conversion starts its list one token late.
    if !tokenizer.is_multilingual() {
        return;
    }
    let languages: Vec<u32> = tokenizer.special().languages().collect();
    assert_eq!(languages, listed("lang_ids"));
}

/// Reads the folder with its `tokenizer.json`, then its bare token list alone.
fn check_folder(folder: &Path, list: &str, wanted: &Wanted) {
    let json = WhisperTokenizer::from_folder(folder, wanted.n_vocab).unwrap();
    check(&json, folder, wanted);
    let bare = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join(list), bare.path().join(list)).unwrap();
    let ranks = WhisperTokenizer::from_folder(bare.path(), wanted.n_vocab).unwrap();
    check(&ranks, folder, wanted);
}

#[test]
fn english_vocabulary() {
    let Some(folder) = models::folder("whisper-tiny.en") else {
        return;
    };
    check_folder(
        &folder,
        "vocabulary.txt",
        &Wanted {
            n_vocab: 51864,
            latvian: &[
                17822, 67, 2013, 11, 25370, 94, 18962, 4173, 3042, 85, 494, 32790, 84, 1188, 11329,
                851, 25370, 122, 129, 228, 128, 115, 34754, 96, 27092, 128, 96, 0,
            ],
            family: &[
                12520, 236, 113, 38251, 5908, 7285, 50169, 102, 447, 235, 41840, 102, 447, 235,
                41840, 100, 447, 235, 41840, 99, 12876,
            ],
        },
    );
}

#[test]
fn multilingual_vocabulary() {
    let Some(folder) = models::folder("whisper-base") else {
        return;
    };
    check_folder(
        &folder,
        "vocabulary.json",
        &Wanted {
            n_vocab: 51865,
            latvian: &[
                37880, 67, 1053, 11, 22552, 13679, 3418, 4465, 12702, 7891, 84, 1323, 13449, 3466,
                17305, 43657, 128, 115, 2127, 96, 19222, 128, 96, 0,
            ],
            family: &[
                25674, 1136, 3280, 4013, 36276, 102, 913, 235, 31017, 102, 913, 235, 31017, 100,
                913, 235, 31017, 99, 3133,
            ],
        },
    );
}
