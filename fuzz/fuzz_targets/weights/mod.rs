//! Opening bytes as a weight file and reading all that it lists.
use audiocpp::weights::{open_bytes, to_f32};

/// Reads `bytes`, as they are and behind each of `starts`, so that the fuzzer need not find the
/// format's magic; `name` only tells formats without one apart.
pub fn read_all(name: &str, starts: &[&[u8]], bytes: &[u8]) {
    read(name, bytes);
    for start in starts {
        read(name, &[start, bytes].concat());
    }
}

fn read(name: &str, bytes: &[u8]) {
    let Ok(source) = open_bytes(name, bytes.to_vec().into()) else {
        return;
    };
    for info in source.tensors() {
        let bytes = source.bytes(info).expect("a listed tensor has bytes");
        assert_eq!(Some(bytes.len()), info.dtype.nbytes(&info.shape));
        let _ = to_f32(&bytes, info.dtype);
    }
    let _ = source.metadata().to_json();
}
