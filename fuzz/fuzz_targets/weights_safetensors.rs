//! Any bytes as a safetensors file; seeds: `tests/data/weights`.
#![no_main]
mod weights;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weights::read_all("small.safetensors", &[b""], bytes));
