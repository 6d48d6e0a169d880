//! `cargo xtask bench vad`: Silero VAD here and in onnxruntime, and how often it is right.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{table::median, workshop::Workshop};
use crate::sh;

/// Options of `cargo xtask bench vad`.
#[derive(Args)]
pub struct Options {
    /// CPU threads of both engines.
    #[arg(long, default_value_t = 1)]
    threads: u16,
    /// Processes of each engine, in turn.
    #[arg(long, default_value_t = 5)]
    rounds: u16,
    /// Print the whole record as JSON.
    #[arg(long)]
    json: bool,
}

/// One recording in one process.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Run {
    /// From the path of the recording to its probabilities.
    seconds: f64,
    /// Greatest resident size of the process.
    #[serde(default)]
    peak_mib: Option<f64>,
}

/// What is measured.
#[derive(Serialize)]
struct Measured {
    /// Length of the recording.
    sound: f64,
    audiocpp: Vec<Run>,
    onnxruntime: Vec<Run>,
    labelled: Labelled,
}

/// Labelled speech, counted in frames.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Labelled {
    frames: usize,
    /// Frames whose probability is on the right side of one half.
    right_frames: usize,
    /// Frames that are rightly inside or outside of a segment.
    right_segments: usize,
}

/// What `audiocpp_cli vad --format json --probabilities` writes.
#[derive(Deserialize)]
struct Activity {
    segments: Vec<Span>,
    frame: f64,
    probabilities: Vec<f64>,
}

#[derive(Clone, Copy, Deserialize)]
struct Span {
    start: f64,
    end: f64,
}

impl Span {
    fn holds(&self, time: f64) -> bool {
        (self.start..self.end).contains(&time)
    }
}

/// Builds, fetches and prepares what is missing, runs the engines in turn, prints the table.
pub fn run(options: &Options) -> Result<()> {
    let workshop = Workshop::for_voice_activity()?;
    let cli = sh::release_cli()?;
    let model = sh::model_folder(&cli, "silero-vad")?.join("silero_vad.onnx");
    let clips = workshop.clips()?;
    let clip = clips.last().context("no recordings")?;
    let recording = workshop.recording(clip);
    let labelled = label(&cli, &workshop.labelled_speech()?)?;
    let mut measured = Measured {
        sound: clip.seconds,
        audiocpp: Vec::new(),
        onnxruntime: Vec::new(),
        labelled,
    };
    let threads = options.threads.to_string();
    let driver = sh::root().join("xtask/peers/silero_driver.py");
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        measured.audiocpp.push(listen(&cli, &recording, &threads)?);
        let mut peer = workshop.python(&driver);
        let json = sh::capture(peer.arg(&model).arg(&recording).arg(&threads))?;
        measured.onnxruntime.push(serde_json::from_str(&json)?);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&measured)?);
    } else {
        println!("{}", markdown(options, &measured));
    }
    Ok(())
}

/// Our engine on one recording, in a process of its own.
fn listen(cli: &Path, recording: &Path, threads: &str) -> Result<Run> {
    #[derive(Deserialize)]
    struct Timing {
        inputs: Vec<Run>,
    }
    let folder = std::env::temp_dir().join(format!("bench-vad-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let (timing, found) = (folder.join("timing.json"), folder.join("found.txt"));
    let mut vad = Command::new(cli);
    vad.arg("vad")
        .arg(recording)
        .args(["--device", "cpu", "--threads", threads]);
    sh::capture(
        vad.arg("--timing-json")
            .arg(&timing)
            .arg("--out")
            .arg(&found),
    )?;
    let read: Timing = serde_json::from_slice(&fs::read(&timing)?)?;
    fs::remove_dir_all(&folder)?;
    read.inputs.into_iter().next().context("nothing was timed")
}

/// Our engine on labelled speech.
fn label(cli: &Path, folder: &Path) -> Result<Labelled> {
    let mut vad = Command::new(cli);
    vad.arg("vad").arg(folder.join("sample.wav"));
    let json = sh::capture(vad.args(["--format", "json", "--probabilities"]))?;
    let rttm = fs::read_to_string(folder.join("sample.rttm"))?;
    compare(&serde_json::from_str(&json)?, &turns(&rttm)?)
}

/// The speakers' turns of an RTTM file.
fn turns(rttm: &str) -> Result<Vec<Span>> {
    let turn = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        ensure!(fields.len() > 4, "no RTTM line: {line}");
        let (start, length): (f64, f64) = (fields[3].parse()?, fields[4].parse()?);
        Ok(Span {
            start,
            end: start + length,
        })
    };
    rttm.lines().map(turn).collect()
}

/// Counts the frames that are right by the middle of each.
fn compare(activity: &Activity, turns: &[Span]) -> Result<Labelled> {
    ensure!(!activity.probabilities.is_empty(), "no frames");
    let mut counted = Labelled {
        frames: activity.probabilities.len(),
        right_frames: 0,
        right_segments: 0,
    };
    for (i, probability) in activity.probabilities.iter().enumerate() {
        let time = (i as f64 + 0.5) * activity.frame;
        let among = |spans: &[Span]| spans.iter().any(|span| span.holds(time));
        let speech = among(turns);
        counted.right_frames += usize::from((*probability >= 0.5) == speech);
        counted.right_segments += usize::from(among(&activity.segments) == speech);
    }
    Ok(counted)
}

/// Times are medians; the ratio is the median of each round's, since the speed of a shared machine
/// changes from round to round.
fn markdown(options: &Options, measured: &Measured) -> String {
    let hour = |runs: &[Run]| {
        let seconds = runs.iter().map(|run| run.seconds / measured.sound * 3600.0);
        median(seconds.collect())
    };
    let pairs = measured.audiocpp.iter().zip(&measured.onnxruntime);
    let ratio = median(pairs.map(|(a, b)| a.seconds / b.seconds).collect());
    let labelled = &measured.labelled;
    let share = |right: usize| 100.0 * right as f64 / labelled.frames as f64;
    format!(
        "silero-vad, {} threads, median of {} runs on {:.0} s of speech.\n\n\
         | seconds for an hour | here | onnxruntime | ratio |\n|---|--:|--:|--:|\n\
         | | {:.2} | {:.2} | {ratio:.2} |\n\n\
         Labelled speech, {} frames: {:.1} % of the probabilities and {:.1} % of the segments' \
         frames are right.",
        options.threads,
        options.rounds,
        measured.sound,
        hour(&measured.audiocpp),
        hour(&measured.onnxruntime),
        labelled.frames,
        share(labelled.right_frames),
        share(labelled.right_segments),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_compared_by_their_middle() {
        let rttm = "SPEAKER a 1 1.000 2.000 <NA> <NA> x <NA> <NA>\n\
                    SPEAKER a 1 2.500 1.000 <NA> <NA> y <NA> <NA>\n";
        let turns = turns(rttm).unwrap();
        assert_eq!((turns[1].start, turns[1].end), (2.5, 3.5));
        let activity = Activity {
            segments: vec![Span {
                start: 1.4,
                end: 4.0,
            }],
            frame: 1.0,
            probabilities: vec![0.1, 0.9, 0.2, 0.6],
        };
        let counted = compare(&activity, &turns).unwrap();
        let wanted = Labelled {
            frames: 4,
            right_frames: 2,
            right_segments: 3,
        };
        assert_eq!(counted, wanted);
        assert!(super::turns("SPEAKER a 1 x").is_err());
    }

    #[test]
    fn an_hour_is_counted_from_what_was_run() {
        let runs = |seconds: [f64; 3]| -> Vec<Run> {
            let run = |seconds| Run {
                seconds,
                peak_mib: None,
            };
            seconds.into_iter().map(run).collect()
        };
        let measured = Measured {
            sound: 600.0,
            audiocpp: runs([1.0, 1.5, 1.0]),
            onnxruntime: runs([4.0, 4.0, 5.0]),
            labelled: Labelled {
                frames: 200,
                right_frames: 190,
                right_segments: 199,
            },
        };
        let options = Options {
            threads: 1,
            rounds: 3,
            json: false,
        };
        let text = markdown(&options, &measured);
        assert!(text.contains("| 6.00 | 24.00 | 0.25 |"), "{text}");
        assert!(text.contains("95.0 %") && text.contains("99.5 %"), "{text}");
    }
}
