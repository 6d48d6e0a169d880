use super::*;

/// All bytes, then a few merged tokens in rank order.
fn pieces() -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    for token in [
        "--", " -", " '", "((", " (", " ((", "'s", "日", "本", " H", "el", "♪", " ♪",
    ] {
        // A three-byte character needs its first two bytes merged before.
        if token.chars().count() == 1 {
            pieces.push(token.as_bytes()[..2].to_vec());
        }
        pieces.push(token.as_bytes().to_vec());
    }
    pieces
}

fn with_control_tokens(n_vocab: usize) -> WhisperTokenizer {
    WhisperTokenizer {
        text: Tokenizer::from_ranks(&pieces()).unwrap(),
        special: Special::for_vocab(n_vocab).unwrap(),
    }
}

/// An English-only tokenizer on a small vocabulary.
pub(crate) fn english() -> WhisperTokenizer {
    with_control_tokens(51864)
}

/// A tokenizer for 99 languages on a small vocabulary.
pub(crate) fn multilingual() -> WhisperTokenizer {
    with_control_tokens(51865)
}

#[test]
fn control_tokens_of_the_three_vocabularies() {
    let ids = |n_vocab: usize| {
        let s = Special::for_vocab(n_vocab).unwrap();
        assert_eq!(s.n_vocab(), n_vocab);
        [
            s.eot,
            s.sot,
            s.translate,
            s.transcribe,
            s.sot_prev,
            s.no_speech,
            s.timestamp_begin,
        ]
    };
    assert_eq!(
        ids(51864),
        [50256, 50257, 50357, 50358, 50360, 50361, 50363]
    );
    assert_eq!(
        ids(51865),
        [50257, 50258, 50358, 50359, 50361, 50362, 50364]
    );
    assert_eq!(
        ids(51866),
        [50257, 50258, 50359, 50360, 50362, 50363, 50365]
    );
    let error = Special::for_vocab(32000).unwrap_err().to_string();
    assert!(error.contains("32000 entries"), "{error}");
}

#[test]
fn start_sequences() {
    let tokenizer = multilingual();
    let start = |language, task, timestamps| tokenizer.sot_sequence(language, task, timestamps);
    assert_eq!(
        start("en", Task::Transcribe, true).unwrap(),
        [50258, 50259, 50359]
    );
    assert_eq!(
        start("German", Task::Translate, false).unwrap(),
        [50258, 50261, 50358, 50363]
    );
    assert_eq!(start("su", Task::Transcribe, true).unwrap()[1], 50357);
    assert!(matches!(
        start("yue", Task::Transcribe, true),
        Err(TokenizerError::LanguageNotInModel(_))
    ));
    let large = with_control_tokens(51866);
    assert_eq!(large.language_token("cantonese").unwrap(), 50358);
    assert_eq!(large.language_of(50358), Some("yue"));
    assert_eq!(tokenizer.language_of(50358), None);
}

#[test]
fn english_only_models_take_english_only() {
    let tokenizer = english();
    let start = |language, task| tokenizer.sot_sequence(language, task, false);
    assert_eq!(start("en", Task::Transcribe).unwrap(), [50257, 50362]);
    assert!(matches!(
        start("de", Task::Transcribe),
        Err(TokenizerError::LanguageNotInModel(code)) if code == "de"
    ));
    assert!(matches!(
        start("en", Task::Translate),
        Err(TokenizerError::CannotTranslate)
    ));
}

#[test]
fn timestamps_and_text_are_told_apart() {
    let tokenizer = multilingual();
    assert_eq!(tokenizer.timestamp(50364), Some(0.0));
    assert_eq!(tokenizer.timestamp(51864), Some(30.0));
    assert_eq!(tokenizer.timestamp(51865), None);
    assert_eq!(tokenizer.timestamp(50363), None);
    assert_eq!(tokenizer.timestamp_token(1.284), 50364 + 64);
    assert_eq!(tokenizer.timestamp_token(99.0), 51864);
    let mut tokens = vec![50364];
    tokens.extend(tokenizer.encode(" Hello").unwrap());
    tokens.extend([50400, 50257]);
    assert_eq!(tokenizer.decode(&tokens), " Hello");
}

#[test]
fn prompts_keep_their_last_tokens() {
    let tokenizer = multilingual();
    let prompt = tokenizer.encode_prompt("  Hello \n").unwrap();
    assert_eq!(prompt, tokenizer.encode(" Hello").unwrap());
    assert!(tokenizer.encode_prompt(" \n").unwrap().is_empty());
    let long: Vec<u32> = (0..300).collect();
    let kept = tokenizer.previous_text(&long, 448);
    assert_eq!((kept.len(), kept[0], kept[1]), (224, 50361, 77));
    assert!(tokenizer.previous_text(&[], 448).is_empty());
}

#[test]
fn suppressed_tokens_come_from_the_vocabulary() {
    let tokenizer = english();
    let id = |token: &str| match tokenizer.encode(token).unwrap()[..] {
        [id] => id,
        ref tokens => panic!("{token} is {tokens:?}"),
    };
    let refused = tokenizer.non_speech_tokens().unwrap();
    for token in ["(", " (", "((", " ((", "--", "[", " -", " '", "♪", " ♪"] {
        assert!(refused.contains(&id(token)), "{token}");
    }
    for token in ["-", "'", ",", "a"] {
        assert!(!refused.contains(&id(token)), "{token}");
    }
    // ♯ has no token of its own: what it shares with ♪ goes.
    assert_eq!(
        tokenizer.encode("♯").unwrap()[0],
        tokenizer.encode("♭").unwrap()[0]
    );
    assert!(refused.contains(&tokenizer.encode("♯").unwrap()[0]));
    let all = tokenizer.suppressed_tokens().unwrap();
    assert!(all.contains(&50257) && all.contains(&50361) && !all.contains(&50362));
    assert_eq!(tokenizer.blank_tokens().unwrap(), [32, 50256]);
}

#[test]
fn a_list_that_is_too_short_is_refused() {
    let error = match WhisperTokenizer::from_pieces(&pieces(), 51865) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("text tokens, expected 50257"), "{error}");
}

/// Writes a folder in CTranslate2's layout and reads it.
#[test]
fn folders_are_read_by_what_they_hold() {
    let folder = tempfile::tempdir().unwrap();
    let error = |n_vocab| match WhisperTokenizer::from_folder(folder.path(), n_vocab) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    assert!(error(51864).starts_with("no vocabulary in "));
    let mut list: Vec<String> = (0..50256).map(|id| format!("t{id}")).collect();
    list[0] = "Ġthe".into();
    list[1] = "語".into();
    std::fs::write(folder.path().join("vocabulary.txt"), list.join("\n")).unwrap();
    assert!(error(51864).contains("token 1 `語` is not byte-level"));
    list[1] = "èªŀ".into();
    std::fs::write(folder.path().join("vocabulary.txt"), list.join("\n")).unwrap();
    let tokenizer = WhisperTokenizer::from_folder(folder.path(), 51864).unwrap();
    assert_eq!(tokenizer.decode(&[0, 1, 50256, 50363]), " the語");
    assert!(!tokenizer.is_multilingual());
}
