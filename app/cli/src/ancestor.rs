//! Flags of audio.cpp that this program does not take, and what to say about them.

use audiocpp::engine::{Registry, Task};

/// Why a flag is not taken.
enum Why {
    /// It belongs to these tasks.
    Tasks(&'static [Task]),
    /// It is not needed, or there is another way.
    Instead(&'static str),
}

use Why::{Instead, Tasks};

const SPEECH: Why = Tasks(&[Task::Tts, Task::Clon, Task::Vdes]);
const TEXTS: Why = Instead("use --text-file, which takes files, folders and patterns");
const VOICE: Why = Tasks(&[Task::Vc, Task::Svc, Task::S2s]);
const SOUND: Why = Tasks(&[Task::Gen]);
const VAD: Why = Tasks(&[Task::Vad]);
const BY_CONTENT: Why = Instead("packages are recognised by their content, so leave it out");
const DECLARED: Why = Instead("see --list-loaders for what a family takes as --request-option");
const PIPELINE: Why = Instead("there are no pipelines here; run one task at a time");
const FOLDERS: Why = Instead("name several inputs, folders or patterns, and a folder with --out");
const LOGS: Why = Instead("use --verbose, and 2>FILE to keep what it says");

/// Flag, and why it is not taken.
const FLAGS: [(&str, Why); 67] = [
    ("text", SPEECH),
    ("max-text-length", SPEECH),
    ("voice-id", SPEECH),
    ("voice-ref", SPEECH),
    ("reference-text", SPEECH),
    ("instruct", SPEECH),
    ("style-language", SPEECH),
    ("emotion", SPEECH),
    ("speaking-rate", SPEECH),
    ("pitch-shift", SPEECH),
    ("energy-scale", SPEECH),
    ("style-tag", SPEECH),
    ("text-chunk-size", SPEECH),
    ("text-chunk-mode", SPEECH),
    ("batch-text-file", TEXTS),
    ("batch-text-dir", TEXTS),
    ("voice-state-out", SPEECH),
    ("speaker", SPEECH),
    ("source-audio", VOICE),
    ("target-voice", VOICE),
    ("prosody-ref", VOICE),
    ("style-ref", VOICE),
    ("target-text", VOICE),
    ("style-ref-text", VOICE),
    ("use-prosody-code", VOICE),
    ("predict-target-prosody", VOICE),
    ("use-pitch-shift", VOICE),
    ("source-shift-steps", VOICE),
    ("prosody-shift-steps", VOICE),
    ("style-shift-steps", VOICE),
    ("target-duration-seconds", VOICE),
    ("reference-duration-seconds", VOICE),
    ("lyrics", SOUND),
    ("track-name", SOUND),
    ("duration-seconds", SOUND),
    ("repaint-start", SOUND),
    ("repaint-end", SOUND),
    ("repaint-mode", SOUND),
    ("repaint-strength", SOUND),
    ("guidance-scale", SOUND),
    ("num-inference-steps", SOUND),
    ("max-steps", SOUND),
    ("turns-out", Tasks(&[Task::Diar])),
    ("vad-chunks-out", VAD),
    ("registry-config", BY_CONTENT),
    ("model-spec-override", BY_CONTENT),
    ("config", BY_CONTENT),
    ("weight", Instead("use --weight-type")),
    ("inspect", Instead("use `models show`")),
    ("log", LOGS),
    ("log-file", LOGS),
    ("pipeline", PIPELINE),
    ("list-pipelines", PIPELINE),
    ("workflow-input", PIPELINE),
    ("task-route", PIPELINE),
    (
        "audio-converter",
        Instead("audio of every common format is read as it is, so leave it out"),
    ),
    ("request-sequence", FOLDERS),
    ("batch-merge-audio", FOLDERS),
    ("batch-manifest-out", FOLDERS),
    ("batch-audio-role", FOLDERS),
    ("audio-chunk-seconds", DECLARED),
    ("audio-chunk-mode", DECLARED),
    ("max-tokens", DECLARED),
    ("top-k", DECLARED),
    ("top-p", DECLARED),
    ("repetition-penalty", DECLARED),
    ("do-sample", DECLARED),
];

/// One line about a flag (`--voice-id`) that clap did not know, if audio.cpp knows it.
pub fn explain(flag: &str, registry: &Registry) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let name = name.split('=').next().unwrap_or(name);
    let (_, why) = FLAGS.iter().find(|(known, _)| *known == name)?;
    Some(match why {
        Instead(hint) => format!("--{name} of audio.cpp is not taken: {hint}"),
        Tasks(tasks) => {
            let phrases: Vec<&str> = tasks.iter().map(|task| task.phrase()).collect();
            let phrases = phrases.join(", ");
            if tasks
                .iter()
                .any(|task| registry.require_task(*task).is_ok())
            {
                format!(
                    "--{name} belongs to {phrases}, and is not taken in this form: see the commands in --help"
                )
            } else {
                format!("--{name} belongs to {phrases}, and no family in this build does that")
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn no_flag_is_both_taken_and_refused() {
        let command = Cli::command();
        let taken: Vec<&str> = command
            .get_arguments()
            .filter_map(|arg| arg.get_long())
            .collect();
        for (name, _) in FLAGS {
            assert!(!taken.contains(&name), "--{name}");
        }
    }

    #[test]
    fn flags_of_other_tasks_are_explained() {
        let registry = Registry::default();
        let line = explain("--voice-id=x", &registry).unwrap();
        assert_eq!(
            line,
            "--voice-id belongs to speech synthesis, voice cloning, voice design, and no family \
             in this build does that"
        );
        assert!(
            explain("--pipeline", &registry)
                .unwrap()
                .contains("one task at a time")
        );
        assert_eq!(explain("--bakend", &registry), None);
    }
}
