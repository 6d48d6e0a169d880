//! `cargo xtask bench listen`: sentences spoken here and by other programs on the same weights, read
//! back by Whisper, and scored for noise and distortion by DNSMOS.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::workshop::{Workshop, file_ending};
use crate::sh;

/// Options of `cargo xtask bench listen`.
#[derive(Args)]
pub struct Options {
    /// Synthesis models of the catalogue.
    #[arg(long, default_values = ["piper-joe", "kokoro"])]
    models: Vec<String>,
    /// Recognition model that reads the recordings back.
    #[arg(long, default_value = "whisper-base")]
    reader: String,
    /// Voice of models that have several.
    #[arg(long, default_value = "jf_alpha")]
    voice: String,
    /// Print the whole record as JSON, with the texts that were read wrongly.
    #[arg(long)]
    json: bool,
}

/// What the scores say of one speaker.
#[derive(Deserialize)]
struct Score {
    wer: f64,
    wrong: Vec<[String; 2]>,
    sig: f64,
    bak: f64,
    ovr: f64,
}

/// The recordings of one speaker and what was read from them.
struct Speaker {
    name: String,
    sound: PathBuf,
    read: PathBuf,
}

/// Builds, fetches and installs what is missing, lets everybody speak, prints the table.
pub fn run(options: &Options) -> Result<()> {
    let workshop = Workshop::for_listening()?;
    let cli = sh::release_cli()?;
    let texts = sh::root().join("xtask/peers/listen.txt");
    let mut speakers = Vec::new();
    for model in &options.models {
        let ours = Speaker::new(&workshop, format!("audiocpp {model}"))?;
        speak(&cli, model, options, &texts, &ours.sound)?;
        speakers.push(ours);
        let peer = Speaker::new(&workshop, format!("peer {model}"))?;
        let folder = sh::model_folder(&cli, model)?;
        let script = sh::root().join("xtask/peers/listen_peer.py");
        let mut python = workshop.python(&script);
        match file_ending(&folder, "npz") {
            Ok(voices) => python
                .arg("kokoro")
                .arg(file_ending(&folder, "onnx")?)
                .args([voices.as_os_str(), options.voice.as_ref()]),
            Err(_) => python.arg("piper").arg(file_ending(&folder, "onnx")?),
        };
        sh::run(python.arg(&peer.sound).stdin(File::open(&texts)?))?;
        speakers.push(peer);
    }
    for speaker in &speakers {
        let mut read = Command::new(&cli);
        read.arg("transcribe").arg(&speaker.sound);
        read.args(["--model", &options.reader, "--language", "en"]);
        read.args(["--format", "text"]);
        sh::run(read.arg("-o").arg(&speaker.read).stderr(Stdio::null()))?;
    }
    let mut score = workshop.python(&sh::root().join("xtask/peers/listen_score.py"));
    score
        .arg(&texts)
        .args(speakers.iter().map(Speaker::argument));
    let found = sh::capture(&mut score)?;
    if options.json {
        println!("{found}");
    } else {
        println!("{}", markdown(&found)?);
    }
    Ok(())
}

impl Speaker {
    fn new(workshop: &Workshop, name: String) -> Result<Speaker> {
        let folder = workshop.folder("listen")?.join(name.replace(' ', "-"));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let [sound, read] = ["sound", "read"].map(|part| folder.join(part));
        for part in [&sound, &read] {
            fs::create_dir_all(part).with_context(|| part.display().to_string())?;
        }
        Ok(Speaker { name, sound, read })
    }

    /// As `listen_score.py` takes it.
    fn argument(&self) -> String {
        format!(
            "{}={}:{}",
            self.name,
            self.sound.display(),
            self.read.display()
        )
    }
}

/// Our recordings of the texts, named by their numbers.
fn speak(cli: &Path, model: &str, options: &Options, texts: &Path, out: &Path) -> Result<()> {
    let several = Command::new(cli)
        .args(["voices", "--model", model])
        .output()?;
    let several = String::from_utf8_lossy(&several.stdout).contains(&options.voice);
    let lines = fs::read_to_string(texts)?;
    let requests = lines.lines().enumerate().map(|(i, text)| match several {
        true => json!({"id": i.to_string(), "text": text, "voice": options.voice}).to_string(),
        false => json!({"id": i.to_string(), "text": text}).to_string(),
    });
    let batch = out.with_file_name("batch.jsonl");
    fs::write(&batch, requests.collect::<Vec<_>>().join("\n"))?;
    let mut say = Command::new(cli);
    say.args(["say", "--model", model, "--seed", "1", "--batch"]);
    sh::run(say.arg(&batch).arg("-o").arg(out).stderr(Stdio::null()))
}

fn markdown(found: &str) -> Result<String> {
    let scores: BTreeMap<String, Score> = serde_json::from_str(found)?;
    ensure!(!scores.is_empty(), "nobody spoke");
    let row = |(name, s): (&String, &Score)| {
        format!(
            "| {name} | {:.2} % | {} | {:.2} | {:.2} | {:.2} |",
            100.0 * s.wer,
            s.wrong.len(),
            s.sig,
            s.bak,
            s.ovr
        )
    };
    let rows: Vec<String> = scores.iter().map(row).collect();
    Ok(format!(
        "| Speaker | Word errors | Texts with one | DNSMOS SIG | BAK | OVRL |\n\
         |---|--:|--:|--:|--:|--:|\n{}",
        rows.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_speaker() {
        let found = r#"{"peer x": {"wer": 0.125, "wrong": [["a", "b"]], "sig": 3.5, "bak": 4, "ovr": 3.25},
                        "audiocpp x": {"wer": 0, "wrong": [], "sig": 3.6, "bak": 4.1, "ovr": 3.3}}"#;
        let table = markdown(found).unwrap();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows[0], "| audiocpp x | 0.00 % | 0 | 3.60 | 4.10 | 3.30 |");
        assert_eq!(rows[1], "| peer x | 12.50 % | 1 | 3.50 | 4.00 | 3.25 |");
        assert!(markdown("{}").is_err());
    }
}
