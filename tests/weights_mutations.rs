//! Damaged weight files of every kind: an error or wrong numbers, never a panic, an abort, or
//! memory by a size that the file merely declares.

mod weights_files;

use audiocpp::weights::{open_bytes, to_f32};
use peak_alloc::PeakAlloc;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MUTATIONS: u64 = 1000;
/// The files are under 2 kB; a compressed entry may unpack to 1 MiB on suspicion.
const MOST_BYTES: usize = 4 << 20;

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Lengths and counts that readers have tripped over.
const EXTREMES: [u64; 9] = [
    0,
    1,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    u64::MAX,
];

fn mutate(file: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(file.len());
        match random.below(7) {
            0 | 1 if !file.is_empty() => file[at] ^= 1 << random.below(8),
            2 if !file.is_empty() => file[at] = random.next() as u8,
            3 => file.truncate(at),
            4 => {
                let extreme = EXTREMES[random.below(EXTREMES.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(file.len() - at);
                file[at..at + width].copy_from_slice(&extreme[..width]);
            }
            5 => {
                let end = at + random.below((file.len() - at).min(64));
                let piece: Vec<u8> = file[at..end].to_vec();
                let to = random.below(file.len());
                file.splice(to..to, piece);
            }
            _ => {
                let end = at + random.below((file.len() - at).min(16));
                file.drain(at..end);
            }
        }
    }
}

/// Opens a file and reads all of it; gives whether it opened.
fn read_all(name: &str, file: &[u8]) -> bool {
    // Beside the fixtures, so that an ONNX file finds its external data.
    let path = weights_files::fixtures().join(name);
    let Ok(source) = open_bytes(path, file.to_vec().into()) else {
        return false;
    };
    for info in source.tensors() {
        let bytes = source.bytes(info).expect("a listed tensor has bytes");
        assert_eq!(
            Some(bytes.len()),
            info.dtype.nbytes(&info.shape),
            "{}",
            info.name
        );
        let _ = to_f32(&bytes, info.dtype);
    }
    let _ = source.metadata().to_json();
    true
}

/// As [`read_all`], with a name for whatever goes wrong.
fn survives(name: &str, what: &str, file: &[u8]) -> bool {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let opened = catch_unwind(AssertUnwindSafe(|| read_all(name, file)))
        .unwrap_or_else(|_| panic!("{name}, {what}: panicked on {file:02x?}"));
    let used = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(
        used < MOST_BYTES,
        "{name}, {what}: took {used} bytes for {file:02x?}"
    );
    opened
}

// One test: the allocator counts for the whole process.
#[test]
fn damaged_files_are_survived() {
    for (name, file) in weights_files::one_of_each() {
        assert!(survives(&name, "whole", &file), "{name} is valid");
        for length in 0..file.len() {
            survives(&name, &format!("cut to {length}"), &file[..length]);
        }
        let mut opened = 0;
        for seed in 0..MUTATIONS {
            let mut damaged = file.clone();
            mutate(&mut damaged, &mut Random(seed));
            opened += usize::from(survives(&name, &format!("seed {seed}"), &damaged));
        }
        // Damage that no reader can see (to a weight's value) is there, and damage that it must.
        let most = MUTATIONS as usize * 9 / 10;
        assert!(
            (10..most).contains(&opened),
            "{name}: {opened} damaged files opened"
        );
    }
}
