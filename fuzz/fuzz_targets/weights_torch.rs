//! Any bytes as a torch file; seeds: `tests/data/weights`.
#![no_main]
mod weights;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weights::read_all("model.pt", &[b"\x80\x02", b"PK\x03\x04"], bytes));
