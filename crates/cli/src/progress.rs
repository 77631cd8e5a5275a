//! What a person at a terminal sees while something runs; in a pipe, nothing.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tapstone_live::{Figures, LiveSocket};
use tapstone_measure::units::Nanos;
use tapstone_record::Record;
use tapstone_text::{Foreign, thousands};
use tapstone_token::controller::{CaseProgress, SearchPart, TimeLeft, TokenObserver};

use crate::print::say;

/// One line that is rewritten. What is wider than the terminal is cut off, at whatever width the
/// terminal has at that moment: a line that wraps cannot be rewritten.
pub(crate) struct ProgressLine {
    line: ProgressBar,
}

impl ProgressLine {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        let line = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{wide_msg}");
        line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        // A hidden one needs no thread, which there may be none for (`ulimit -u`).
        if shown {
            line.enable_steady_tick(Duration::from_millis(250));
        }
        Self { line }
    }

    /// The same that is drawn only when it is told to, never while something is timed.
    pub(crate) fn without_ticks(quiet: bool) -> Self {
        let line = Self::new(quiet);
        line.line.disable_steady_tick();
        line
    }

    /// The same for what tells nothing of itself until it is over: a text behind the time since now.
    pub(crate) fn timed(quiet: bool, text: &str) -> Self {
        let line = Self::new(quiet);
        let style = ProgressStyle::with_template("{elapsed} {wide_msg}");
        line.line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        line.line.set_message(text.to_owned());
        line
    }

    /// What is being done, behind a bar where it is known how much of it is done.
    pub(crate) fn draw(&self, share: Option<f64>, text: &str) {
        let bar = share.filter(|_| is_wide()).map(bar).unwrap_or_default();
        self.line.set_message(format!("{bar}{text}"));
        self.line.tick();
    }

    /// Says something for good, above the line.
    pub(crate) fn say(&self, text: &str) {
        self.line.suspend(|| say!("{}", Foreign::with_lines(text)));
    }

    pub(crate) fn end(&self) {
        self.line.finish_and_clear();
    }
}

/// Removes a line that nobody else will, since the program ends at once.
pub(crate) fn clear_line() {
    if io::stderr().is_terminal() {
        // There is nobody left to tell of an error.
        let _ = io::stderr().write_all(b"\r\x1b[2K");
    }
}

/// On a narrow terminal the words are worth more than the bar.
fn is_wide() -> bool {
    const NARROW: u16 = 60;
    terminal_size::terminal_size_of(io::stderr()).is_some_and(|(width, _)| width.0 >= NARROW)
}

fn bar(share: f64) -> String {
    const CELLS: usize = 12;
    let full = (share.clamp(0.0, 1.0) * CELLS as f64) as usize;
    format!("{}{} ", "█".repeat(full), "░".repeat(CELLS - full))
}

/// How many of equal steps are done, and when they began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    pub(crate) done: u64,
    pub(crate) of: u64,
    pub(crate) begun: Instant,
}

impl Steps {
    pub(crate) fn share(self) -> f64 {
        self.done as f64 / self.of.max(1) as f64
    }

    /// `, about 12 s left`, if the others take as long as those that are done.
    pub(crate) fn left(self) -> String {
        if self.done == 0 {
            return String::new();
        }
        let each = self.begun.elapsed().as_secs_f64() / self.done as f64;
        let left = Duration::from_secs_f64(each * self.of.saturating_sub(self.done) as f64);
        format!(", about {} left", whole_seconds(left))
    }
}

/// The line of `tapstone token`: which case, which level of a search, rate, time left and latencies.
pub(crate) struct Live {
    line: ProgressLine,
    /// Cases done and in all, before the name of the case.
    place: String,
    /// The longest that the cases after this one take together.
    later: Option<Nanos>,
    /// A level of a search or a round, and when it began.
    part: Option<(SearchPart, Instant)>,
    quiet: bool,
    /// Where others are told.
    socket: Option<LiveSocket>,
}

impl Live {
    pub(crate) fn new(quiet: bool, socket: Option<LiveSocket>) -> Self {
        let line = ProgressLine::new(quiet);
        Self { line, place: String::new(), later: None, part: None, quiet, socket }
    }

    /// Tells others that the run is over.
    pub(crate) fn finish(&mut self, record: &Record) {
        if let Some(socket) = self.socket.take() {
            socket.finish(record);
        }
    }

    /// Which case of how many comes next, and the longest that those after it take.
    pub(crate) fn begin_case(&mut self, number: usize, of: usize, later: Option<Nanos>) {
        self.place = if of > 1 { format!("[{number}/{of}] ") } else { String::new() };
        self.later = later.filter(|_| number < of);
        self.part = None;
    }

    /// Says something for good, above the line.
    pub(crate) fn say(&self, text: &str) {
        self.line.say(text);
    }

    pub(crate) fn end(&self) {
        self.line.end();
    }

    /// `[2/14] rsa2048.sign: 4 threads, pass 2: `
    fn named(&self, case: &str) -> String {
        let part = self.part.as_ref().map(|(part, _)| format!("{}: ", part.name));
        format!("{}{case}: {}", self.place, part.unwrap_or_default())
    }

    /// The time that a search or rounds still take; nothing where that is not known.
    fn left_of_search(&self) -> Option<String> {
        let (part, begun) = self.part.as_ref()?;
        Some(time_left(part.left, begun.elapsed()))
    }
}

impl TokenObserver for Live {
    fn notice(&mut self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    fn begin_part(&mut self, part: &SearchPart) {
        self.part = Some((part.clone(), Instant::now()));
    }

    fn stage(&mut self, case: &str, stage: &str) {
        if let Some(socket) = &self.socket {
            socket.stage(case, stage);
        }
        let left = self.left_of_search().filter(|left| !left.is_empty());
        let left = left.map_or_else(String::new, |left| format!(", {left}"));
        self.line.draw(Some(0.0), &format!("{}{stage}{left}", self.named(case)));
    }

    fn progress(&mut self, case: &str, progress: &CaseProgress) {
        if let Some(socket) = &self.socket {
            socket.figures(Figures {
                case: case.to_owned(),
                level: self.part.as_ref().map(|(part, _)| part.name.clone()),
                elapsed_ns: progress.elapsed,
                completed: progress.completed,
                failed: progress.failed,
                rate: progress.rate,
                p50_ns: progress.p50,
                p99_ns: progress.p99,
                missed: 0,
            });
        }
        let share = match (progress.window, progress.count) {
            (_, Some(count)) => progress.completed as f64 / count.max(1) as f64,
            (Some(window), None) => progress.elapsed.as_secs_f64() / window.as_secs_f64(),
            (None, None) => 0.0,
        };
        let left = self.left_of_search().unwrap_or_else(|| left_of_cases(progress, self.later));
        let text = describe(progress, &left);
        self.line.draw(Some(share), &format!("{}{text}", self.named(case)));
    }
}

/// What matters most stands first: a narrow terminal shows no more.
fn describe(progress: &CaseProgress, left: &str) -> String {
    let mut text = progress.rate.to_string();
    if progress.failed > 0 {
        text.push_str(&format!(", {} failed", thousands(progress.failed)));
    }
    if !left.is_empty() {
        text.push_str(&format!(", {left}"));
    }
    if let (Some(p50), Some(p99)) = (progress.p50, progress.p99) {
        text.push_str(&format!(", p50 {p50}, p99 {p99}"));
    }
    text
}

/// The time left of a case, and of all cases where there are others after it.
fn left_of_cases(progress: &CaseProgress, later: Option<Nanos>) -> String {
    let Some(own) = left(progress) else { return String::new() };
    // So many operations take as long as the device likes.
    let how = if progress.count.is_some() { "about" } else { "at most" };
    let all = later.map(|later| format!(", {} in all", whole_seconds((own + later).into())));
    format!("{how} {} left{}", whole_seconds(own.into()), all.unwrap_or_default())
}

/// What is left of a time after so much of it; nothing where it is not known.
fn time_left(left: TimeLeft, elapsed: Duration) -> String {
    match left {
        TimeLeft::UpTo(left) => {
            format!("up to {} left", whole_seconds(left.saturating_sub(elapsed)))
        }
        TimeLeft::About(left) if left > elapsed => {
            format!("about {} left", whole_seconds(left - elapsed))
        }
        TimeLeft::About(_) => "longer than expected".to_owned(),
        TimeLeft::Unknown => String::new(),
    }
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

pub(crate) fn whole_seconds(length: Duration) -> String {
    let seconds = length.as_nanos().div_ceil(1_000_000_000);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use tapstone_measure::units::PerSecond;

    use super::*;

    const PROGRESS: CaseProgress = CaseProgress {
        elapsed: Nanos::from_secs(2),
        window: Some(Nanos::from_secs(5)),
        completed: 2000,
        count: None,
        failed: 0,
        rate: PerSecond(1000.0),
        p50: None,
        p99: None,
    };

    #[test]
    fn the_time_left_is_a_bound_where_there_is_one_and_an_estimate_elsewhere() {
        assert_eq!(left_of_cases(&PROGRESS, None), "at most 3 s left");
        let later = Some(Nanos::from_secs(90));
        assert_eq!(left_of_cases(&PROGRESS, later), "at most 3 s left, 1 min 33 s in all");
        let counted = CaseProgress { count: Some(10_000), window: None, ..PROGRESS };
        assert_eq!(left_of_cases(&counted, None), "about 8 s left");
        let endless = CaseProgress { window: None, ..PROGRESS };
        assert_eq!(left_of_cases(&endless, None), "");
    }

    #[test]
    fn a_search_names_its_level_and_all_that_it_may_still_do() {
        let after = Duration::from_secs(10);
        assert_eq!(
            time_left(TimeLeft::UpTo(Duration::from_secs(70)), after),
            "up to 1 min 0 s left"
        );
        assert_eq!(time_left(TimeLeft::About(Duration::from_secs(15)), after), "about 5 s left");
        assert_eq!(time_left(TimeLeft::About(after), after), "longer than expected");
        assert_eq!(time_left(TimeLeft::Unknown, after), "");
        let mut live = Live::new(true, None);
        live.begin_case(2, 3, None);
        let part = SearchPart { name: "4 threads, pass 2".into(), left: TimeLeft::Unknown };
        live.begin_part(&part);
        assert_eq!(live.named("rsa2048.sign"), "[2/3] rsa2048.sign: 4 threads, pass 2: ");
        live.begin_case(3, 3, Some(Nanos::from_secs(1)));
        assert_eq!(live.named("rsa2048.sign"), "[3/3] rsa2048.sign: ");
        assert_eq!(live.later, None, "there is no case after the last");
    }

    #[test]
    fn equal_steps_take_as_long_as_those_before() {
        let begun = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
        let steps = Steps { done: 4, of: 10, begun };
        assert!(["about 30 s", "about 31 s"].iter().any(|left| steps.left().contains(left)));
        assert_eq!(Steps { done: 0, ..steps }.left(), "");
        assert_eq!(bar(steps.share()), "████░░░░░░░░ ");
        assert_eq!(bar(2.0), "████████████ ");
    }
}
