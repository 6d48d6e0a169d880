//! Any bytes as a numpy file; seeds: `tests/data/weights`.
#![no_main]
mod weights;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weights::read_all(
    "arrays.npz",
    &[b"\x93NUMPY\x01\0", b"PK\x03\x04"],
    bytes
));
