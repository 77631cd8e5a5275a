//! `tapstone import`: records from the result files of other programs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tapstone_import::{Imported, SkippedLine, jcalgtest};
use tapstone_report::{csv, terminal};

use crate::compare::tool;
use crate::exit::Exit;
use crate::output;

/// Lines shown of those that could not be read; more are counted.
const SHOWN: usize = 20;

/// Make a record of the result file of another program.
///
/// What the file does not say stays unknown, and every figure is marked as published.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    format: Source,
}

/// Whose file it is.
#[derive(Debug, Subcommand)]
enum Source {
    /// A result file of JCAlgTest, the public study of Java Cards
    Jcalgtest(JcAlgTest),
}

/// Make a record of a result file of JCAlgTest's performance tests.
///
/// Each method is a row: `ALG_SHA MessageDigest_update()` is jcalgtest.alg_sha.messagedigest_update.
/// JCAlgTest subtracts a baseline; where the difference could as well be negative there is no
/// time. Measurements and baseline are kept in the record. Lines that cannot be read are shown
/// and skipped.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct JcAlgTest {
    /// The result file, as CSV
    file: PathBuf,
    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write the record to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tapstone import jcalgtest NXP_JCOP41_v2.2.1.csv --output jcop41.json
  tapstone compare jcop31.json jcop41.json

Exit codes: 0 done, 2 not a result file of JCAlgTest.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// The record
    Json,
    /// A line a row
    Csv,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Source::Jcalgtest(arguments) = &arguments.format;
    if let Some(path) = &arguments.output {
        output::check(path)?;
    }
    let Imported { mut record, skipped } = jcalgtest::read(&arguments.file, tool())?;
    record.command = std::env::args().collect();
    tell(&skipped);
    if let Some(path) = &arguments.output {
        record.write(path)?;
    }
    match arguments.format {
        Format::Text => print!("{}", terminal::render(&record, &output::style(false))),
        Format::Json => print!("{}", record.to_json()?),
        Format::Csv => print!("{}", csv::render(&record)?),
    }
    Ok(Exit::Done)
}

/// Lines that could not be read, by number.
fn tell(skipped: &[SkippedLine]) {
    for SkippedLine { line, why } in skipped.iter().take(SHOWN) {
        // From the file: nothing in it may act on the terminal.
        eprintln!("skipped: line {line}: {}", why.escape_debug());
    }
    let more = skipped.len().saturating_sub(SHOWN);
    if more > 0 {
        eprintln!("skipped: {more} more lines");
    }
}
