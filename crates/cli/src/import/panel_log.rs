//! `tapstone import panel-log`: stage times out of a real panel's log.

use std::path::PathBuf;

use clap::Args;
use tapstone_import::panel_log::{self, Map};

use super::report_skipped_lines;
use crate::command_line;
use crate::compare::tool;
use crate::exit::Exit;
use crate::output::OutputArguments;

/// Make a record of the log of an access-control panel: a case for each stage.
///
/// The map says which columns are what, and from which event to which a stage is. The log's
/// resolution is found, and every interval is wider by it. Broken lines are shown and skipped.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PanelLog {
    /// The log, as CSV with a header
    file: PathBuf,
    /// Which column is what, as TOML
    #[arg(long, value_name = "FILE")]
    map: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone import panel-log door.csv --map map.toml
  tapstone import panel-log door.csv --map map.toml --output door.json --quiet
  tapstone compare before.json after.json

A map of a log with a line for each event:
  format = \"%Y-%m-%d %H:%M:%S%.f\"
  [events]
  time = \"Timestamp\"
  transaction = \"Badge\"
  event = \"Event\"
  [[stage]]
  operation = \"door.pki-cak\"
  from = \"Card detected\"
  to = \"Wiegand sent\"

Exit codes: 0 done, 2 the log or the map cannot be used.";

pub(super) fn import_panel_log(arguments: &PanelLog) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let map = Map::read(&arguments.map)?;
    let mut log = panel_log::read(&arguments.file, &map, tool())?;
    log.record.command = command_line::words();
    report_skipped_lines(&log.skipped, log.lines_skipped);
    arguments.output.put(&log.record)?;
    Ok(Exit::Done)
}
