//! Hostile input: no mutation of any container may panic or run away, and neither the sizes of
//! the reads nor the way in (path, bytes, pipe) matter.
use audiocpp::audio::{Audio, AudioSource, Reader};
use proptest::prelude::*;
use std::path::PathBuf;

fn clips() -> Vec<PathBuf> {
    let folder = format!("{}/tests/data/audio", env!("CARGO_MANIFEST_DIR"));
    let mut clips: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|p| {
            !matches!(
                p.extension().and_then(|e| e.to_str()),
                Some("md" | "sh" | "json")
            )
        })
        .collect();
    clips.sort();
    clips
}

/// A small random number generator, so that a failing mutation can be made again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n.max(1)
    }
}

fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    // Headers are where the sizes and counts are: half of the edits go there.
    let place = |dice: &mut Dice, len: usize| {
        if dice.below(2) == 0 {
            dice.below(len.min(600))
        } else {
            dice.below(len)
        }
    };
    for _ in 0..1 + dice.below(6) {
        let len = bytes.len();
        if len < 8 {
            return;
        }
        let at = place(dice, len);
        match dice.below(7) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = [0, 0xFF, 0x7F, 0x80][dice.below(4)],
            2 => bytes[at..(at + 4).min(len)].fill([0, 0xFF, 0x7F][dice.below(3)]),
            3 => bytes.truncate(at),
            4 => {
                let end = (at + 1 + dice.below(64)).min(len);
                bytes.drain(at..end);
            }
            5 => {
                let part = bytes[at..(at + 64).min(len)].to_vec();
                let to = place(dice, len);
                bytes.splice(to..to, part);
            }
            _ => bytes[at] = dice.below(256) as u8,
        }
    }
}

#[test]
fn a_thousand_mutations_of_every_container_end_well() {
    for clip in clips() {
        let whole = std::fs::read(&clip).unwrap();
        let frames = 5 * 48_000;
        let mut read = 0;
        for seed in 0..1000u64 {
            let mut bytes = whole.clone();
            mutate(&mut bytes, &mut Dice(seed));
            let Ok(mut reader) = Reader::from_bytes(bytes, "mutation") else {
                continue;
            };
            let mut out = Vec::new();
            // A mutation may well declare another rate, but never more sound than a bounded
            // multiple of its bytes.
            while reader.read(&mut out, 4096).unwrap() > 0 && out.len() < 64 * frames {
                assert!(out.iter().all(|s| s.is_finite()), "{clip:?} seed {seed}");
                out.clear();
                read += 1;
            }
        }
        println!("{}: {read} blocks", clip.display());
        let silent = clip.ends_with("silent.mp4");
        assert!(silent || read > 50, "{clip:?}: {read} blocks in all");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn read_sizes_do_not_change_what_is_decoded(
        sizes in prop::collection::vec(1usize..3000, 1..5),
        pick in 0usize..1000,
    ) {
        let clips = clips();
        let clip = &clips[pick % clips.len()];
        if let Ok(mut whole) = Reader::open(clip) {
            let want = Audio::from_source(&mut whole, None).unwrap();
            let mut reader = Reader::open(clip).unwrap();
            let mut got = Vec::new();
            for &size in sizes.iter().cycle() {
                let before = got.len();
                let frames = reader.read(&mut got, size).unwrap();
                prop_assert!(frames <= size);
                prop_assert_eq!(got.len() - before, frames * usize::from(want.channels));
                if frames == 0 {
                    break;
                }
            }
            prop_assert!(got == want.samples, "{:?} by {:?}", clip, sizes);
        }
    }
}

#[test]
fn a_pipe_and_a_wrong_name_decode_like_the_file() {
    let bytes = std::fs::read(format!(
        "{}/tests/data/audio/moov_last.m4a",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap();
    let want = Audio::from_source(&mut Reader::from_bytes(bytes.clone(), "x").unwrap(), None);
    let want = want.unwrap();
    let mut pipe = Reader::from_pipe(&bytes[..], "stdin").unwrap();
    assert_eq!(Audio::from_source(&mut pipe, None).unwrap(), want);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("H\u{f6}lla \u{6211} \u{1f3b5}.wav");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(Audio::open(&path).unwrap(), want);
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let missing = Reader::open("no/such file.wav").err().unwrap().to_string();
    assert!(
        missing.starts_with("cannot open no/such file.wav: "),
        "{missing}"
    );
    let folder = Reader::open(env!("CARGO_MANIFEST_DIR"))
        .err()
        .unwrap()
        .to_string();
    assert!(folder.contains("directory"), "{folder}");
}
