//! Memory does not grow with the length of the file. Alone in its program, so that no other test
//! moves the peak.
#![cfg(target_os = "linux")]
use audiocpp::audio::{AudioSource, Reader, WavFormat, WavWriter, mono_at};
use std::path::PathBuf;

/// Peak memory of this process so far, in kB.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_length() {
    let folder = tempfile::tempdir().unwrap();
    let make = |minutes: usize| {
        let path = folder.path().join(format!("{minutes}.wav"));
        let mut out = WavWriter::create(&path, 8000, 1, WavFormat::Pcm16).unwrap();
        for _ in 0..minutes {
            out.write(&[0.1; 8000 * 60]).unwrap();
        }
        out.finish().unwrap();
        path
    };
    let frames = |path: PathBuf| {
        let mut stream = mono_at(Reader::open(path).unwrap(), 16_000).unwrap();
        let (mut out, mut frames) = (Vec::new(), 0);
        while stream.read(&mut out, 480_000).unwrap() > 0 {
            frames += out.len();
            out.clear();
        }
        frames
    };
    let (short, long) = (make(10), make(60));
    assert_eq!(frames(short), 10 * 60 * 16_000);
    let after_short = peak_kb();
    assert_eq!(frames(long), 60 * 60 * 16_000);
    let grown = peak_kb() - after_short;
    assert!(
        grown * 10 < after_short,
        "{grown} kB on top of {after_short} kB"
    );
}
