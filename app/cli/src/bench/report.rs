//! From rounds to figures, and the figures as a table.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Setting,
    round::{Round, Run},
    statistics::{mean, percentile},
};

/// The figures of one setting; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// What was asked for.
    pub setting: Setting,
    /// The device that was opened.
    pub device: String,
    /// The vendor's name of it.
    pub device_name: String,
    /// Timed runs of all rounds.
    pub runs: usize,
    /// Median over all runs.
    pub p50: f64,
    /// The worst of the rounds' 90th percentiles.
    pub worst_p90: f64,
    /// Median until the first part of the result.
    pub first_p50: f64,
    /// Median time over the length of the sound; below 1 is faster than real time.
    pub real_time_factor: f64,
    /// Mean time of a run in each stage, and in none of them (`rest`).
    pub stage_means: BTreeMap<String, f64>,
    /// Mean time to open the device and load the model.
    pub load_mean: f64,
    /// Most memory that a process held, in bytes.
    pub peak_memory: Option<u64>,
    /// Bytes of weights on the device.
    pub weight_bytes: u64,
    /// Whether every run of every round gave the same result.
    pub results_agree: bool,
    /// Whether that result is the first setting's.
    pub same_as_first: bool,
    /// The rounds as they were measured.
    pub rounds: Vec<Round>,
}

/// A setting that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotRun {
    /// What was asked for.
    pub setting: Setting,
    /// The message.
    pub why: String,
}

/// Everything that `--json` writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of this form.
    pub schema_version: u32,
    /// The task.
    pub task: String,
    /// The model as it was named.
    pub model: String,
    /// Seconds of sound in a run.
    pub audio_seconds: f64,
    /// Processes for each setting.
    pub rounds: u16,
    /// Runs before the clock starts, in each process.
    pub warmup: u16,
    /// Timed runs in each process.
    pub reps: u16,
    /// One for each setting that ran, in the order of the command.
    pub figures: Vec<Figures>,
    /// The others.
    pub not_run: Vec<NotRun>,
}

impl Figures {
    /// The figures of a setting's rounds; `None` without a timed run. `first` is the result that
    /// the first setting gave.
    pub fn of(setting: Setting, rounds: Vec<Round>, first: Option<&str>) -> Option<Figures> {
        let runs: Vec<&Run> = rounds.iter().flat_map(|round| &round.runs).collect();
        let times = |of: &dyn Fn(&Run) -> f64| runs.iter().map(|r| of(r)).collect::<Vec<f64>>();
        let p90s = rounds.iter().filter_map(|round| {
            let seconds: Vec<f64> = round.runs.iter().map(|run| run.seconds).collect();
            percentile(&seconds, 0.9)
        });
        let last = rounds.last()?;
        let p50 = percentile(&times(&|run| run.seconds), 0.5)?;
        let result = last.result.clone();
        Some(Figures {
            device: last.device.clone(),
            device_name: last.device_name.clone(),
            runs: runs.len(),
            p50,
            worst_p90: p90s.fold(0.0, f64::max),
            first_p50: percentile(&times(&|run| run.first_seconds), 0.5)?,
            real_time_factor: p50 / last.audio_seconds,
            stage_means: stage_means(&runs),
            load_mean: mean(&rounds.iter().map(|r| r.load_seconds).collect::<Vec<_>>())?,
            peak_memory: rounds.iter().filter_map(|round| round.peak_memory).max(),
            weight_bytes: last.weight_bytes,
            results_agree: rounds
                .iter()
                .all(|round| round.results_agree && round.result == result),
            same_as_first: first.is_none_or(|first| first == result),
            setting,
            rounds,
        })
    }
}

/// The mean of every stage over all runs; a run without a stage counts as zero there.
fn stage_means(runs: &[&Run]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for run in runs {
        let told: f64 = run.stages.values().sum();
        for (stage, seconds) in &run.stages {
            *sums.entry(stage.clone()).or_default() += seconds;
        }
        *sums.entry("rest".into()).or_default() += (run.seconds - told).max(0.0);
    }
    for sum in sums.values_mut() {
        *sum /= runs.len().max(1) as f64;
    }
    sums
}

const MIB: f64 = (1u64 << 20) as f64;

impl Report {
    /// A Markdown page: what was done, a table of speed, a table of stages, what did not run.
    pub fn markdown(&self) -> String {
        let mut page = format!(
            "{} with `{}`, {:.1} s of sound a run; {} fresh processes a setting, each {} warm-ups and {} timed runs.\n\n",
            self.task, self.model, self.audio_seconds, self.rounds, self.warmup, self.reps
        );
        page += "| Setting | Device | P50 ms | worst P90 ms | first result ms | real-time factor | against the first | load ms | peak memory MiB | weights MiB | result |\n";
        page += "|---|---|---|---|---|---|---|---|---|---|---|\n";
        let base = self.figures.first().map(|figures| figures.p50);
        for f in &self.figures {
            let peak = f
                .peak_memory
                .map_or("-".to_owned(), |bytes| format!("{:.0}", bytes as f64 / MIB));
            let verdict = match (f.results_agree, f.same_as_first) {
                (true, true) => "same",
                (true, false) => "differs from the first",
                (false, _) => "runs differ",
            };
            page += &format!(
                "| {} | {} | {:.1} | {:.1} | {:.1} | {:.4} | {:+.1} % | {:.0} | {peak} | {:.0} | {verdict} |\n",
                f.setting,
                f.device,
                f.p50 * 1e3,
                f.worst_p90 * 1e3,
                f.first_p50 * 1e3,
                f.real_time_factor,
                base.map_or(0.0, |base| (f.p50 / base - 1.0) * 100.0),
                f.load_mean * 1e3,
                f.weight_bytes as f64 / MIB,
            );
        }
        page += &self.stages();
        if !self.not_run.is_empty() {
            page += "\n| Not run | Why |\n|---|---|\n";
            for missing in &self.not_run {
                let why = missing.why.replace('|', "\\|").replace('\n', " ");
                page += &format!("| {} | {why} |\n", missing.setting);
            }
        }
        page
    }

    /// Mean milliseconds of each stage, one column each.
    fn stages(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for name in self.figures.iter().flat_map(|f| f.stage_means.keys()) {
            if !names.contains(&name.as_str()) && name != "rest" {
                names.push(name);
            }
        }
        if names.is_empty() {
            return String::new();
        }
        names.push("rest");
        let mut table = format!("\n| Stage means, ms | {} |\n", names.join(" | "));
        table += &format!("|---|{}\n", "---|".repeat(names.len()));
        for f in &self.figures {
            let cell = |name: &&str| {
                let seconds = f.stage_means.get(*name);
                seconds.map_or("-".to_owned(), |s| format!("{:.1}", s * 1e3))
            };
            let cells: Vec<String> = names.iter().map(cell).collect();
            table += &format!("| {} | {} |\n", f.setting, cells.join(" | "));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(process: u32, seconds: &[f64], result: &str) -> Round {
        let run = |&seconds: &f64| Run {
            seconds,
            first_seconds: seconds / 2.0,
            stages: [("encode".to_owned(), seconds / 4.0)].into(),
        };
        Round {
            process,
            device: "cpu".into(),
            device_name: "a CPU".into(),
            load_seconds: 0.25,
            audio_seconds: 10.0,
            weight_bytes: 3 << 20,
            peak_memory: Some(u64::from(process) << 20),
            result: result.into(),
            results_agree: true,
            runs: seconds.iter().map(run).collect(),
            ..Round::default()
        }
    }

    fn setting(device: &str) -> Setting {
        Setting {
            device: Some(device.into()),
            weight_type: Some("f16".into()),
        }
    }

    #[test]
    fn figures_join_the_rounds() {
        let rounds = vec![
            round(7, &[1.0, 2.0, 3.0], "a"),
            round(9, &[2.0, 4.0, 6.0], "a"),
        ];
        let f = Figures::of(setting("cpu"), rounds.clone(), Some("a")).unwrap();
        assert_eq!((f.runs, f.p50, f.first_p50), (6, 2.5, 1.25));
        assert!((f.worst_p90 - 5.6).abs() < 1e-12, "{}", f.worst_p90);
        assert_eq!(f.real_time_factor, 0.25);
        assert_eq!(
            (f.stage_means["encode"], f.stage_means["rest"]),
            (0.75, 2.25)
        );
        assert_eq!(f.peak_memory, Some(9 << 20));
        assert!(f.results_agree && f.same_as_first);
        let other = vec![rounds[0].clone(), round(8, &[1.0], "b")];
        let f = Figures::of(setting("cpu"), other, Some("a")).unwrap();
        assert!(!f.results_agree && !f.same_as_first);
        assert!(Figures::of(setting("cpu"), vec![round(1, &[], "a")], None).is_none());
    }

    #[test]
    fn the_page_has_a_row_for_every_setting() {
        let figures = |device: &str, seconds: &[f64]| {
            let rounds = vec![round(7, seconds, "a")];
            Figures::of(setting(device), rounds, Some("a")).unwrap()
        };
        let report = Report {
            schema_version: 1,
            task: "asr".into(),
            model: "whisper-base".into(),
            audio_seconds: 10.0,
            rounds: 1,
            warmup: 3,
            reps: 3,
            figures: vec![figures("cpu", &[1.0, 2.0, 3.0]), figures("hip:0", &[0.5])],
            not_run: vec![NotRun {
                setting: setting("vulkan:0"),
                why: "no such | device".into(),
            }],
        };
        let page = report.markdown();
        let wanted = "\
asr with `whisper-base`, 10.0 s of sound a run; 1 fresh processes a setting, each 3 warm-ups and 3 timed runs.

| Setting | Device | P50 ms | worst P90 ms | first result ms | real-time factor | against the first | load ms | peak memory MiB | weights MiB | result |
|---|---|---|---|---|---|---|---|---|---|---|
| cpu f16 | cpu | 2000.0 | 2800.0 | 1000.0 | 0.2000 | +0.0 % | 250 | 7 | 3 | same |
| hip:0 f16 | cpu | 500.0 | 500.0 | 250.0 | 0.0500 | -75.0 % | 250 | 7 | 3 | same |

| Stage means, ms | encode | rest |
|---|---|---|
| cpu f16 | 500.0 | 1500.0 |
| hip:0 f16 | 125.0 | 375.0 |

| Not run | Why |
|---|---|
| vulkan:0 f16 | no such \\| device |
";
        assert_eq!(page, wanted);
    }
}
