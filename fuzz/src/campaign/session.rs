//! One run of one target by libFuzzer, as its folder tells it.
//!
//! How often the target was executed is what it counted itself; libFuzzer's own count must be the
//! same. A session that was killed counts as far as its folder goes.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tapstone_fuzz::targets::TARGETS;
use tapstone_fuzz::{Executions, FuzzTarget};

/// The count, as the target writes it.
pub(super) const EXECUTIONS: &str = "executions";
/// What libFuzzer prints.
pub(super) const LOG: &str = "log";

/// What a target did in one run: a line of `fuzz/sessions.jsonl`, when it did not fail.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    /// That of its folder: when it began, in milliseconds since 1970, and its target.
    pub(crate) name: String,
    pub(crate) executions: Executions,
    pub(crate) log: Log,
    /// Inputs that made the target fail, as paths.
    #[serde(skip)]
    pub(crate) failures: Vec<String>,
}

/// What libFuzzer said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Log {
    /// Edges that are instrumented.
    pub(crate) edges_in_all: u64,
    /// Edges that the corpus reached at the start.
    pub(crate) edges_at_start: u64,
    /// Edges that were reached at the end.
    pub(crate) edges: u64,
    /// The execution that reached the last new edge; 0: none was new.
    pub(crate) last_new_edge: u64,
    /// Executions at the end, by libFuzzer's own count; `None` when it did not come to its end.
    pub(crate) executed: Option<u64>,
}

impl Session {
    /// `None`: it never began.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if target_in(name).is_none() {
            return Ok(None);
        }
        let Ok(log) = fs::read(folder.join(LOG)) else { return Ok(None) };
        let log = Log::from_text(&String::from_utf8_lossy(&log));
        let executions = fs::read(folder.join(EXECUTIONS)).unwrap_or_default();
        let executions = Executions::from_bytes(&executions).unwrap_or_default();
        agree(executions, log).with_context(|| folder.display().to_string())?;
        let mut failures = Vec::new();
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // What libFuzzer calls slow is within the time limit, on a machine that others use.
            if name.starts_with("failure-") && !name.starts_with("failure-slow-unit-") {
                failures.push(path.display().to_string());
            }
        }
        Ok(Some(Self { name: name.to_owned(), executions, log, failures }))
    }

    /// The target that it ran; `None`: there is none of that name any more.
    pub(crate) fn target(&self) -> Option<&'static FuzzTarget> {
        target_in(&self.name)
    }

    /// For whoever watches.
    pub(crate) fn in_words(&self) -> String {
        let seconds = self.executions.cpu_nanos as f64 / 1e9;
        format!(
            "{:15} {:>10} executions in {seconds:6.1} s of processor time, {} edges, {} of them new{}",
            self.target().map_or("", |target| target.name),
            self.executions.count,
            self.log.edges,
            self.log.edges.saturating_sub(self.log.edges_at_start),
            if self.failures.is_empty() { "" } else { ", FAILED" },
        )
    }
}

/// The target that is part of a session's name.
fn target_in(session: &str) -> Option<&'static FuzzTarget> {
    let (_, name) = session.split_once('-')?;
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Two counts of the same executions, and the time that they took: no target does its work in
/// less than 50 ns.
fn agree(counted: Executions, log: Log) -> anyhow::Result<()> {
    ensure!(
        counted.count.saturating_mul(50) <= counted.cpu_nanos,
        "{} executions in {} ns cannot be",
        counted.count,
        counted.cpu_nanos
    );
    let Some(executed) = log.executed else { return Ok(()) };
    ensure!(
        (0..=Executions::STEP).contains(&executed.wrapping_sub(counted.count)),
        "the target counted {} executions, and libFuzzer {executed}",
        counted.count
    );
    Ok(())
}

impl Log {
    fn from_text(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("stat::number_of_executed_units:") {
                log.executed = rest.trim().parse().ok();
            } else if let Some((_, rest)) = line.split_once(" PC tables (") {
                log.edges_in_all = number(rest);
            } else if let Some((execution, rest)) =
                line.strip_prefix('#').and_then(|it| it.split_once('\t'))
                && let Some((_, edges)) = rest.split_once("cov: ")
            {
                log.take(number(execution), rest, number(edges));
            }
        }
        log
    }

    fn take(&mut self, execution: u64, rest: &str, edges: u64) {
        if rest.starts_with("INITED") {
            self.edges_at_start = edges;
        } else if edges > self.edges && self.edges_at_start > 0 {
            self.last_new_edge = execution;
        }
        self.edges = self.edges.max(edges);
    }
}

/// The number at the start of a text; 0 where there is none.
fn number(text: &str) -> u64 {
    let digits = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG_TEXT: &str = "\
INFO: Loaded 1 modules   (9876 inline 8-bit counters): 9876 [0x5, 0x6), \n\
INFO: Loaded 1 PC tables (9876 PCs): 9876 [0x5,0x6), \n\
#2\tINITED cov: 30 ft: 31 corp: 1/1b exec/s: 0 rss: 30Mb\n\
#5\tNEW    cov: 31 ft: 40 corp: 2/2b lim: 4 exec/s: 0 rss: 30Mb L: 1/1 MS: 1 ChangeBit-\n\
#9\tREDUCE cov: 31 ft: 44 corp: 2/2b lim: 4 exec/s: 0 rss: 30Mb L: 1/1 MS: 1 ChangeBit-\n\
#700\tDONE   cov: 31 ft: 44 corp: 2/2b lim: 4 exec/s: 0 rss: 30Mb\n\
stat::number_of_executed_units: 700\n";

    #[test]
    fn a_log_tells_edges_and_executions() {
        let expected = Log {
            edges_in_all: 9876,
            edges_at_start: 30,
            edges: 31,
            last_new_edge: 5,
            executed: Some(700),
        };
        assert_eq!(Log::from_text(LOG_TEXT), expected);
    }

    #[test]
    fn counts_that_differ_are_an_error() {
        let log = Log::from_text(LOG_TEXT);
        let counted = |count, cpu_nanos| agree(Executions { count, cpu_nanos }, log);
        assert!(counted(700, 1 << 40).is_ok());
        assert!(counted(700 - Executions::STEP, 1 << 40).is_ok());
        assert!(counted(701, 1 << 40).is_err(), "more than there were");
        assert!(counted(600, 1 << 40).is_err(), "too few");
        assert!(counted(700, 34_000).is_err(), "faster than a machine can");
    }
}
