//! Trying a device in a child process.
//!
//! Vendor libraries abort, fault and hang where an ordinary library would return an error. A
//! child that tries the device step by step, and says each step before the next, turns all of
//! that into an answer.
use serde::{Deserialize, Serialize};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// The steps that a child takes, in order. Each one is said when it is done.
pub const STEPS: [&str; 6] = ["load", "open", "memory", "product", "graph", "canary"];

/// Output of a child beyond this many bytes is not kept.
const MOST_OUTPUT: u64 = 1 << 16;

/// One line of a child's output: a step that is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, one of [`STEPS`].
    pub step: String,
    /// Whether it worked.
    pub ok: bool,
    /// What was seen, or what went wrong.
    #[serde(default)]
    pub detail: String,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ended", rename_all = "snake_case")]
pub enum End {
    /// Every step worked.
    Passed,
    /// A step said that it failed.
    Failed {
        /// The step and what it said.
        reason: String,
    },
    /// The process died in a step.
    Crashed {
        /// The step, how it died, and its last words.
        reason: String,
    },
    /// The process did not come to an end.
    TimedOut {
        /// The step it hung in.
        reason: String,
    },
    /// The process could not be started.
    NotStarted {
        /// The system's reason.
        reason: String,
    },
}

/// The steps that were done, and the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trial {
    /// Done steps, in order.
    pub steps: Vec<Step>,
    /// How it ended.
    #[serde(flatten)]
    pub end: End,
}

/// Runs `command` and follows its steps for at most `limit`, after which it is killed.
pub fn run(command: &mut Command, limit: Duration) -> Trial {
    let spawned = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            return Trial {
                steps: Vec::new(),
                end: End::NotStarted {
                    reason: error.to_string(),
                },
            };
        }
    };
    let lines = follow(child.stdout.take());
    let words = follow(child.stderr.take());
    let status = wait(&mut child, limit);
    // A grandchild may hold the pipe open for ever; what has arrived by now must do.
    let grace = Duration::from_millis(200);
    let steps: Vec<Step> = drain(&lines, grace)
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let words = drain(&words, grace);
    let end = judge(&steps, status, words.last().map_or("", String::as_str));
    Trial { steps, end }
}

/// Sends each line of a pipe, up to [`MOST_OUTPUT`] bytes; the rest is read and dropped, so that
/// the child never waits for a full pipe.
fn follow(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            for line in reader
                .by_ref()
                .take(MOST_OUTPUT)
                .split(b'\n')
                .map_while(Result::ok)
            {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                if !text.is_empty() && sender.send(text).is_err() {
                    return;
                }
            }
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        });
    }
    receiver
}

fn drain(lines: &mpsc::Receiver<String>, grace: Duration) -> Vec<String> {
    let end = Instant::now() + grace;
    let mut list = Vec::new();
    while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
        list.push(line);
    }
    list
}

/// None if the limit passed and the child was killed.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

fn judge(steps: &[Step], status: Option<ExitStatus>, last_words: &str) -> End {
    if let Some(failed) = steps.iter().find(|step| !step.ok) {
        return End::Failed {
            reason: format!("{}: {}", failed.step, failed.detail),
        };
    }
    let said = |name: &&&str| steps.iter().any(|step| step.step == **name);
    let current = STEPS.iter().find(|name| !said(name));
    let Some(status) = status else {
        return End::TimedOut {
            reason: match current {
                Some(step) => format!("hung in step {step}"),
                None => "hung at its end, after every step".to_owned(),
            },
        };
    };
    if status.success() && current.is_none() {
        return End::Passed;
    }
    let place = current.map_or("after every step".to_owned(), |step| {
        format!("in step {step}")
    });
    let words = match last_words {
        "" => String::new(),
        words => format!(": {words}"),
    };
    End::Crashed {
        reason: format!("{status} {place}{words}"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, milliseconds: u64) -> Trial {
        run(
            Command::new("sh").args(["-c", script]),
            Duration::from_millis(milliseconds),
        )
    }

    fn all_steps() -> String {
        STEPS
            .iter()
            .map(|step| format!(r#"echo '{{"step":"{step}","ok":true}}';"#))
            .collect()
    }

    #[test]
    fn a_child_that_takes_every_step_passes() {
        let trial = shell(&all_steps(), 5000);
        assert_eq!(trial.end, End::Passed);
        assert_eq!(trial.steps.len(), STEPS.len());
    }

    #[test]
    fn a_failed_step_gives_its_reason() {
        let trial = shell(
            r#"echo '{"step":"load","ok":true}'; echo '{"step":"open","ok":false,"detail":"no memory"}'; exit 1"#,
            5000,
        );
        assert_eq!(
            trial.end,
            End::Failed {
                reason: "open: no memory".into()
            }
        );
    }

    #[test]
    fn an_abort_names_the_step_and_the_last_words() {
        let script = r#"echo '{"step":"load","ok":true}'; echo rocBLAS error >&2; kill -ABRT $$"#;
        let End::Crashed { reason } = shell(script, 5000).end else {
            panic!("it aborted");
        };
        assert!(
            reason.contains("in step open") && reason.contains("rocBLAS error"),
            "{reason}"
        );
        assert!(reason.contains("signal: 6"), "{reason}");
    }

    #[test]
    fn hanging_is_ended_in_a_step_and_at_the_end() {
        let End::TimedOut { reason } = shell("exec sleep 30", 100).end else {
            panic!("it hung");
        };
        assert!(reason.contains("step load"), "{reason}");
        let End::TimedOut { reason } = shell(&(all_steps() + "exec sleep 30"), 300).end else {
            panic!("it hung at its end");
        };
        assert!(reason.contains("at its end"), "{reason}");
    }

    #[test]
    fn silence_noise_and_absence() {
        assert!(matches!(shell("exit 0", 5000).end, End::Crashed { .. }));
        let noisy = format!("{} yes | head -c 300000 >&2; exit 0", all_steps());
        assert_eq!(shell(&noisy, 10_000).end, End::Passed);
        let gone = run(
            &mut Command::new("/no/such/program"),
            Duration::from_secs(1),
        );
        assert!(matches!(gone.end, End::NotStarted { .. }));
    }
}
