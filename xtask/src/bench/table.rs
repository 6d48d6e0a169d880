//! What was measured, as text, Markdown or JSON.

use super::workshop::Clip;
use audiocpp_testing::wer::{WordErrors, word_errors};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of one engine on one recording, as its driver reports it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// Seconds to load the model.
    pub load: f64,
    /// Seconds from the recording's path to its text, model loaded.
    pub wall: f64,
    /// The transcript.
    pub text: String,
    /// Most memory resident at once.
    pub peak_mib: f64,
    /// Version and settings of the engine.
    pub settings: BTreeMap<String, serde_json::Value>,
}

/// All runs of one engine on one recording.
#[derive(Serialize)]
pub struct Measured {
    clip: String,
    seconds: f64,
    #[serde(skip)]
    said: String,
    engine: String,
    /// One for each round.
    pub runs: Vec<Run>,
}

/// The whole benchmark.
#[derive(Serialize)]
pub struct Report {
    /// Catalogue id.
    pub model: String,
    /// CPU threads of every engine.
    pub threads: u16,
    /// Runs behind each row.
    pub rounds: u16,
    /// Grouped by recording, each with the engines in the same order.
    pub measured: Vec<Measured>,
}

const COLUMNS: [&str; 8] = [
    "recording",
    "engine",
    "load s",
    "wall s",
    "ratio",
    "real time",
    "peak MiB",
    "WER",
];

impl Measured {
    /// Nothing measured yet.
    pub fn new(clip: &Clip, engine: String) -> Self {
        Self {
            clip: clip.name.clone(),
            seconds: clip.seconds,
            said: clip.text.clone(),
            engine,
            runs: Vec::new(),
        }
    }

    fn median(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(of).collect())
    }

    /// Of the worst run.
    fn errors(&self) -> WordErrors {
        let errors = self
            .runs
            .iter()
            .map(|run| word_errors(&self.said, &run.text));
        errors
            .max_by_key(|errors| errors.errors)
            .unwrap_or_default()
    }
}

/// The middle of the values, between the two middle ones of an even count.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

impl Report {
    /// Medians, worst errors; `ratio` is the wall time over that of the recording's first engine.
    fn rows(&self) -> Vec<[String; 8]> {
        let row = |m: &Measured| {
            let first = self
                .measured
                .iter()
                .find(|other| other.clip == m.clip)
                .unwrap_or(m);
            let wall = m.median(|run| run.wall);
            let errors = m.errors();
            [
                format!("{} {:.0} s", m.clip, m.seconds),
                m.engine.clone(),
                format!("{:.2}", m.median(|run| run.load)),
                format!("{wall:.2}"),
                format!("{:.2}", wall / first.median(|run| run.wall)),
                format!("{:.1} x", m.seconds / wall),
                format!(
                    "{:.0}",
                    m.runs.iter().map(|run| run.peak_mib).fold(0.0, f64::max)
                ),
                format!(
                    "{:.1} % ({}/{})",
                    100.0 * errors.rate(),
                    errors.errors,
                    errors.words
                ),
            ]
        };
        self.measured.iter().map(row).collect()
    }

    fn heading(&self) -> String {
        format!(
            "{}, {} threads, median of {} runs; ratio: wall time over the first engine's",
            self.model, self.threads, self.rounds
        )
    }

    /// A line for each engine with its settings.
    fn settings(&self) -> Vec<String> {
        let first = self.measured.first().map(|m| m.clip.as_str());
        let of_first = self
            .measured
            .iter()
            .filter(|m| Some(m.clip.as_str()) == first);
        of_first
            .filter_map(|m| {
                let settings = m.runs.first()?.settings.iter();
                let said = settings.map(|(name, value)| match value.as_str() {
                    Some(text) => format!("{name}: {}", text.trim()),
                    None => format!("{name}: {value}"),
                });
                Some(format!(
                    "{}: {}",
                    m.engine,
                    said.collect::<Vec<_>>().join("; ")
                ))
            })
            .collect()
    }

    /// Aligned columns.
    pub fn text(&self) -> String {
        let rows = self.rows();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].len());
            cells
                .chain([COLUMNS[column].len()])
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded = cells
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| {
                    if column < 2 {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = vec![self.heading(), line(&COLUMNS.map(String::from))];
        lines.extend(rows.iter().map(|row| line(row)));
        lines.push(String::new());
        lines.extend(self.settings());
        lines.join("\n")
    }

    /// A Markdown table under its heading.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let mut lines = vec![format!("{}.", self.heading()), String::new()];
        lines.push(line(&COLUMNS.map(String::from)));
        lines.push("|---|---|--:|--:|--:|--:|--:|--:|".into());
        lines.extend(self.rows().iter().map(|row| line(row)));
        lines.push(String::new());
        lines.extend(
            self.settings()
                .iter()
                .map(|line| format!("- {}", line.replace(" | ", ", "))),
        );
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let clip = Clip {
            name: "jfk".into(),
            seconds: 10.0,
            text: "ask not what".into(),
        };
        let engine = |name: &str, walls: &[f64], text: &str| {
            let mut measured = Measured::new(&clip, name.into());
            measured.runs.extend(walls.iter().map(|&wall| Run {
                load: 0.5,
                wall,
                text: text.into(),
                peak_mib: 100.0 * wall,
                settings: BTreeMap::from([("threads".into(), 2.into())]),
            }));
            measured
        };
        let measured = vec![
            engine("a", &[2.0, 9.0, 1.0], "Ask not what."),
            engine("b", &[4.0, 4.0, 4.0], "ask what"),
        ];
        Report {
            model: "m".into(),
            threads: 2,
            rounds: 3,
            measured,
        }
    }

    #[test]
    fn rows_have_medians_ratios_peaks_and_errors() {
        let rows = report().rows();
        assert_eq!(
            rows[0],
            [
                "jfk 10 s",
                "a",
                "0.50",
                "2.00",
                "1.00",
                "5.0 x",
                "900",
                "0.0 % (0/3)"
            ]
        );
        assert_eq!(
            rows[1],
            [
                "jfk 10 s",
                "b",
                "0.50",
                "4.00",
                "2.00",
                "2.5 x",
                "400",
                "33.3 % (1/3)"
            ]
        );
    }

    #[test]
    fn the_forms_agree() {
        let report = report();
        let (text, markdown) = (report.text(), report.markdown());
        assert!(
            text.contains("\njfk 10 s   b         0.50    4.00   2.00"),
            "{text}"
        );
        assert!(text.ends_with("\na: threads: 2\nb: threads: 2"), "{text}");
        assert!(
            markdown.contains("\n| jfk 10 s | b | 0.50 | 4.00 | 2.00 | 2.5 x |"),
            "{markdown}"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["measured"][1]["runs"][0]["wall"], 4.0);
    }

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
