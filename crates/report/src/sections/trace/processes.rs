//! What each process of a traced command did with its time, the one that worked most in front.

use tapstone_measure::units::Nanos;
use tapstone_record::{ProcessTime, TimeKind, TimePart};
use tapstone_text::Foreign;

use super::super::page::Page;
use super::super::span::Span;
use crate::figures;
use crate::style::Style;

/// Processes that have a line.
const PROCESSES: usize = 4;
/// Shorter ones than that part of the longest have none.
const SHORTEST: f64 = 0.05;
/// Less than that part of a process's time has no word of its own.
const SMALLEST_SHARE: f64 = 0.01;

pub(super) fn add_processes(page: &mut Page, processes: &[ProcessTime], style: &Style) {
    let longest = processes.iter().map(|process| process.wall_ns).max().unwrap_or_default();
    let is_long = |it: &&ProcessTime| it.wall_ns.0 as f64 >= SHORTEST * longest.0 as f64;
    let long: Vec<&ProcessTime> =
        processes.iter().filter(|it| style.verbose || is_long(it)).collect();
    let shown = super::shown(long.len(), PROCESSES, style);
    for process in &long[..shown] {
        page.hanging(&Span::faint("  "), &Span::faint(sentence(process)));
    }
    super::left_out(page, processes.len() - shown);
}

/// `sleep 4711 took 204 ms: sleeping 200 ms (98.0 %), running 1.35 ms (0.7 %)`.
pub(super) fn sentence(process: &ProcessTime) -> String {
    let program = match process.program.as_str() {
        "" => "process".to_owned(),
        name => Foreign::new(name).to_string(),
    };
    let told = process.parts.iter().filter(|part| part.share.0 >= SMALLEST_SHARE);
    let part = |part: &TimePart| {
        format!("{} {} ({})", doing(&part.kind), part.time_ns, figures::share(part.share))
    };
    let parts = told.map(part).collect::<Vec<_>>().join(", ");
    let parts = if parts.is_empty() { parts } else { format!(": {parts}") };
    let threads = match process.processor_ns {
        Some(all) if all > twice_running(process) => {
            format!("; all its threads together ran for {all}")
        }
        _ => String::new(),
    };
    format!("{program} {} took {}{parts}{threads}", process.process, process.wall_ns)
}

/// More than that is no other way to count the same.
fn twice_running(process: &ProcessTime) -> Nanos {
    let running = process.parts.iter().find(|part| part.kind == TimeKind::Running);
    running.map_or(Nanos::NEVER, |part| Nanos(part.time_ns.0.saturating_mul(2)))
}

fn doing(kind: &TimeKind) -> String {
    match kind {
        TimeKind::Running => "running".to_owned(),
        TimeKind::Runnable => "ready without a processor".to_owned(),
        TimeKind::Sleeping => "sleeping".to_owned(),
        TimeKind::Input => "waiting for input".to_owned(),
        TimeKind::Lock => "waiting for threads".to_owned(),
        TimeKind::Children => "waiting for children".to_owned(),
        TimeKind::Unknown => "not known".to_owned(),
        TimeKind::Other(kind) => Foreign::new(kind.as_str()).to_string(),
    }
}
