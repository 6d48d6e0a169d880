//! Any bytes as a CTranslate2 file; seeds: `tests/data/weights`.
#![no_main]
mod weights;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weights::read_all("model.bin", &[b"\x06\0\0\0"], bytes));
