//! What a person at a terminal sees while a case runs; in a pipe, nothing.

use std::io::IsTerminal;
use std::time::Duration;

use crate::print::say;
use indicatif::{ProgressBar, ProgressStyle};
use tapstone_measure::units::Nanos;
use tapstone_text::{Foreign, thousands};
use tapstone_token::controller::{CaseProgress, TokenObserver};

/// One line that is rewritten, with rate, latencies and the time left. What is wider than the terminal
/// is cut off: a line that wraps cannot be rewritten.
pub(crate) struct Live {
    bar: ProgressBar,
    /// Cases done and in all, before the name of the case.
    place: String,
    quiet: bool,
}

impl Live {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = if shown { ProgressBar::new(1000) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:12.cyan/blue} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        // A hidden one needs no thread, which there may be none for (`ulimit -u`).
        if shown {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Self { bar, place: String::new(), quiet }
    }

    /// Which case of how many comes next.
    pub(crate) fn begin_case(&mut self, number: usize, of: usize) {
        self.place = if of > 1 { format!("[{number}/{of}] ") } else { String::new() };
    }

    /// Says something for good, above the line.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| say!("{}", Foreign::with_lines(text)));
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl TokenObserver for Live {
    fn notice(&mut self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    fn stage(&mut self, case: &str, stage: &str) {
        self.bar.set_position(0);
        self.bar.set_message(format!("{}{case}: {stage}", self.place));
    }

    fn progress(&mut self, case: &str, progress: &CaseProgress) {
        let share = match (progress.window, progress.count) {
            (_, Some(count)) => progress.completed as f64 / count.max(1) as f64,
            (Some(window), None) => progress.elapsed.as_secs_f64() / window.as_secs_f64(),
            (None, None) => 0.0,
        };
        self.bar.set_position((1000.0 * share.min(1.0)) as u64);
        self.bar.set_message(format!("{}{case}: {}", self.place, describe(progress)));
    }
}

fn describe(progress: &CaseProgress) -> String {
    let mut text = progress.rate.to_string();
    if let (Some(p50), Some(p99)) = (progress.p50, progress.p99) {
        text.push_str(&format!(", p50 {p50}, p99 {p99}"));
    }
    if progress.failed > 0 {
        text.push_str(&format!(", {} failed", thousands(progress.failed)));
    }
    if let Some(left) = left(progress) {
        text.push_str(&format!(", at most {} left", whole_seconds(left)));
    }
    text
}

fn left(progress: &CaseProgress) -> Option<Nanos> {
    match (progress.window, progress.count) {
        (_, Some(count)) if progress.rate.0 > 0.0 => {
            let seconds = count.saturating_sub(progress.completed) as f64 / progress.rate.0;
            Some(Nanos((seconds * 1e9) as u64))
        }
        (Some(window), _) => Some(window - progress.elapsed),
        _ => None,
    }
}

fn whole_seconds(length: Nanos) -> String {
    let seconds = length.0.div_ceil(1_000_000_000);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
