//! Published weight files, where they have been fetched.

use audiocpp::weights::{Format, StoredType, Value, open};
use audiocpp_testing::models;

#[test]
fn whisper_tiny_is_read_from_ctranslate2() {
    let Some(folder) = models::folder("whisper-tiny.en") else {
        return;
    };
    let source = open(folder).unwrap();
    assert_eq!(source.format(), Format::CTranslate2);
    assert_eq!(source.tensors().len(), 148);
    let halves = source
        .tensors()
        .iter()
        .filter(|t| t.dtype == StoredType::F16);
    let bytes: usize = halves.map(|t| source.bytes(t).unwrap().len()).sum();
    assert_eq!(bytes, 75_529_728);
    let spec = source.metadata().get("spec").and_then(Value::as_str);
    assert_eq!(spec, Some("WhisperSpec"));
    let tied = source.find("decoder/projection/weight").unwrap();
    assert_eq!(
        (tied.name.as_str(), &tied.shape[..]),
        ("decoder/embeddings/weight", &[51864, 384][..])
    );
}
