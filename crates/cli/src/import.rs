//! `tapstone import`: records from the result files of other programs.

mod panel_log;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tapstone_import::{Imported, SkippedLine, jcalgtest};
use tapstone_record::Record;
use tapstone_report::terminal;

use crate::command_line;
use crate::compare::tool;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{self, Format, OutputArguments};
use crate::print::say;
use panel_log::PanelLog;
use tapstone_text::Foreign;

/// Lines shown of those that could not be read; more are counted.
const SHOWN: usize = 20;

/// Make a record of the result file of another program.
///
/// What the file does not say stays unknown, and every figure is marked as published.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    format: ImportSource,
}

/// Whose file it is.
#[derive(Debug, Subcommand)]
enum ImportSource {
    /// A result file of JCAlgTest, the public study of Java Cards
    Jcalgtest(JcAlgTest),
    PanelLog(PanelLog),
}

/// Make a record of a result file of JCAlgTest's performance tests.
///
/// Each method is a case: `ALG_SHA MessageDigest_update()` is jcalgtest.alg_sha.messagedigest_update.
/// JCAlgTest subtracts a baseline; where the difference could as well be negative there is no
/// time. Measurements and baseline are kept in the record. Lines that cannot be read are shown
/// and skipped.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct JcAlgTest {
    /// The result file, as CSV
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone import jcalgtest NXP_JCOP41_v2.2.1.csv --output jcop41.json
  tapstone compare jcop31.json jcop41.json

Exit codes: 0 done, 2 not a result file of JCAlgTest.";

pub(crate) fn run_import(arguments: &Arguments) -> anyhow::Result<Exit> {
    interrupt::finish_files_first()?;
    match &arguments.format {
        ImportSource::Jcalgtest(arguments) => jcalgtest(arguments),
        ImportSource::PanelLog(arguments) => panel_log::import_panel_log(arguments),
    }
}

fn jcalgtest(arguments: &JcAlgTest) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let Imported { mut record, skipped } = jcalgtest::read(&arguments.file, tool())?;
    record.command = command_line::words();
    report_skipped_lines(&skipped, skipped.len() as u64);
    print_imported(&record, &arguments.output)?;
    Ok(Exit::Done)
}

/// As any record; but to people the hundreds of methods that a card lacks are counted, not listed.
fn print_imported(record: &Record, output: &OutputArguments) -> anyhow::Result<()> {
    if output.format != Format::Text || output.verbose {
        return output.put(record);
    }
    let mut shown = record.clone();
    shown.results.retain(|case| case.latency_ns.is_some());
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    for case in record.results.iter().filter(|case| case.latency_ns.is_none()) {
        *codes.entry(case.status.code.as_deref().unwrap_or("unknown")).or_default() += 1;
    }
    let without: usize = codes.values().sum();
    if without > 0 {
        let codes: Vec<_> = codes.iter().map(|(code, count)| format!("{count} × {code}")).collect();
        shown.warnings.push(format!(
            "{without} methods have no time, and are not in this table but in the record: {}",
            codes.join(", ")
        ));
    }
    output.put_shown(record, |_| Ok(terminal::render(&shown, &output::style(false))))
}

/// Lines that could not be read, by number, of so many in all.
fn report_skipped_lines(skipped: &[SkippedLine], all: u64) {
    for SkippedLine { line, why } in skipped.iter().take(SHOWN) {
        say!("skipped: line {line}: {}", Foreign::new(why));
    }
    let more = all.saturating_sub(SHOWN as u64);
    if more > 0 {
        say!("skipped: {more} more lines");
    }
}
