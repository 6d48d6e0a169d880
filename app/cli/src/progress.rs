//! Progress bars and warnings on stderr.

use std::{
    io::IsTerminal,
    sync::{Arc, Mutex},
    time::Duration,
};

use audiocpp::engine::{CancelToken, Event, EventSink, RunContext, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows events: progress as a bar where stderr is a terminal, warnings as lines everywhere.
pub struct Progress {
    /// Absent where stderr is not a terminal.
    bar: Option<ProgressBar>,
    /// What the bar is set up for.
    unit: Mutex<Option<Unit>>,
    /// What warnings are about now, and those that were shown.
    warned: Mutex<(String, Vec<String>)>,
}

impl Progress {
    /// A display for this process's stderr.
    pub fn new() -> Arc<Progress> {
        let bar = std::io::stderr()
            .is_terminal()
            .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        Arc::new(Progress {
            bar,
            unit: Mutex::default(),
            warned: Mutex::default(),
        })
    }

    /// A context that reports here and stops with `cancel`.
    pub fn context(self: &Arc<Self>, cancel: &CancelToken) -> RunContext {
        RunContext::with_sink(cancel.clone(), self.clone())
    }

    /// Names what the following events are about.
    pub fn about(&self, subject: &str) {
        if let Ok(mut warned) = self.warned.lock() {
            *warned = (subject.to_owned(), Vec::new());
        }
    }

    /// Prints a warning about the current subject, once.
    pub fn warn(&self, message: &str) {
        let Ok(mut warned) = self.warned.lock() else {
            return;
        };
        let (subject, shown) = &mut *warned;
        if shown.iter().any(|earlier| earlier == message) {
            return;
        }
        let line = warning(subject, message);
        shown.push(message.to_owned());
        self.line(&line);
    }

    /// Prints a line on stderr without tearing the bar.
    pub fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
        if let Ok(mut unit) = self.unit.lock() {
            *unit = None;
        }
    }

    fn update(&self, bar: &ProgressBar, stage: String, done: f64, total: Option<f64>, unit: Unit) {
        // Tenths, so that a bar over seconds moves smoothly.
        let scale = if unit == Unit::Seconds { 10.0 } else { 1.0 };
        if let Ok(mut shown) = self.unit.lock()
            && *shown != Some(unit)
        {
            *shown = Some(unit);
            bar.reset();
            bar.set_style(style(unit));
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        match total {
            Some(total) => bar.set_length((total * scale) as u64),
            None => bar.unset_length(),
        }
        bar.set_position((done * scale) as u64);
        bar.set_message(stage);
    }
}

/// What the bar shows for one unit.
fn style(unit: Unit) -> ProgressStyle {
    let template = match unit {
        Unit::Bytes => {
            "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}"
        }
        Unit::Seconds => "{msg} {wide_bar} {percent}% {elapsed} elapsed, {eta} left",
        Unit::Items => "{msg} {wide_bar} {pos}/{len} {eta}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl EventSink for Progress {
    fn event(&self, event: Event) {
        match event {
            Event::Progress {
                stage,
                done,
                total,
                unit,
            } => {
                if let Some(bar) = &self.bar {
                    self.update(bar, stage, done, total, unit);
                }
            }
            Event::Warning { message } => self.warn(&message),
            Event::Stage { stage, seconds } => tracing::debug!("{stage}: {:.1} ms", seconds * 1e3),
            Event::Speech(_) | Event::Stems { .. } => {}
            Event::Segment(segment) => tracing::info!(
                "{:.2} --> {:.2}{}",
                segment.start,
                segment.end,
                segment.text
            ),
        }
    }
}

/// `warning: SUBJECT: MESSAGE`, with the subject only once.
fn warning(subject: &str, message: &str) -> String {
    if subject.is_empty() || message.starts_with(subject) {
        format!("warning: {message}")
    } else {
        format!("warning: {subject}: {message}")
    }
}
