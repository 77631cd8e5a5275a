//! What all sessions reached, as a table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use tapstone_fuzz::FuzzTarget;
use tapstone_fuzz::targets::TARGETS;

use super::{Campaign, Session, kept};

const PAGE: &str = "../docs/fuzzing.md";
const BEGIN: &str = "<!-- begin of the table that `make fuzz-table` writes -->\n";
const END: &str = "<!-- end of the table -->\n";

/// The sum of a target's sessions.
#[derive(Debug, Default)]
struct Total {
    executions: u64,
    cpu_nanos: u64,
    edges: u64,
    edges_in_all: u64,
    /// Counted over all sessions: the execution that reached the last new edge.
    last_new_edge: u64,
}

impl Total {
    fn add(&mut self, session: &Session) {
        if session.log.last_new_edge > 0 {
            let at = session.log.last_new_edge.min(session.executions.count);
            self.last_new_edge = self.executions + at;
        }
        self.executions += session.executions.count;
        self.cpu_nanos += session.executions.cpu_nanos;
        if session.log.edges > 0 {
            self.edges = session.log.edges;
            self.edges_in_all = session.log.edges_in_all;
        }
    }

    fn row(&self, target: &FuzzTarget, inputs: usize) -> String {
        let seconds = self.cpu_nanos as f64 / 1e9;
        let last = match self.executions {
            0 => "-".to_owned(),
            all => format!("{:.0} %", 100.0 * self.last_new_edge as f64 / all as f64),
        };
        format!(
            "| `{}` | {} | {} of {} | {inputs} | {} | {:.1} | {:.0} | {last} |\n",
            target.name,
            target.reads,
            self.edges,
            self.edges_in_all,
            self.executions,
            seconds / 60.0,
            self.executions as f64 / seconds.max(1e-9),
        )
    }
}

/// The table in Markdown.
fn text(campaign: &Campaign) -> anyhow::Result<String> {
    let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
    for session in campaign.sessions()? {
        if let Some(target) = session.target() {
            totals.entry(target.name).or_default().add(&session);
        }
    }
    let mut text = "| target | reads | edges reached | inputs kept | executions | processor time, \
                    min | executions/s | last new edge after |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut all = Total::default();
    for target in TARGETS {
        let total = totals.remove(target.name).unwrap_or_default();
        let inputs = fs::read_dir(Campaign::kept_corpus(target)).map_or(0, Iterator::count);
        text += &total.row(target, inputs);
        all.executions += total.executions;
        all.cpu_nanos += total.cpu_nanos;
    }
    text +=
        &format!("| all | | | | {} | {:.1} | | |\n", all.executions, all.cpu_nanos as f64 / 60e9);
    Ok(text)
}

/// For whoever ran the targets.
pub(crate) fn print(campaign: &Campaign) -> anyhow::Result<()> {
    print!("{}", text(campaign)?);
    Ok(())
}

/// Into the page about fuzzing, with the sessions that it is made from beside the sources.
pub(crate) fn write(campaign: &Campaign) -> anyhow::Result<()> {
    kept::write(&campaign.sessions()?)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (before, rest) = page.split_once(BEGIN).context("the page has a place for the table")?;
    let (_, after) = rest.split_once(END).context("the page has an end of the table")?;
    let table = text(campaign)?;
    print!("{table}");
    fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}"))?;
    Ok(())
}
