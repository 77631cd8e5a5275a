//! Where results go, and in which form.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use tapstone_files::Access;
use tapstone_record::Record;
use tapstone_report::{
    comparison_csv, csv, door_csv, github, junit, markdown, openmetrics, terminal,
};

use crate::print::{self, out, say};

/// What every verb that writes a record takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Also write the record to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Show each case at length
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// The record
    Json,
    /// A line a case
    Csv,
    /// Tables for an issue or a wiki
    Markdown,
    /// A test case for each claim, comparison and operation
    Junit,
    /// Annotations of GitHub Actions
    Github,
    /// Gauges for a collector of metrics
    Openmetrics,
}

impl Format {
    /// These records in this format.
    pub(crate) fn render(
        self,
        records: &[&Record],
        style: &terminal::Style,
    ) -> anyhow::Result<String> {
        let each = |one: &dyn Fn(&Record) -> anyhow::Result<String>| -> anyhow::Result<String> {
            records.iter().map(|record| one(record)).collect()
        };
        match self {
            Self::Text => {
                let texts: Vec<_> =
                    records.iter().map(|record| terminal::render(record, style)).collect();
                Ok(texts.join("\n"))
            }
            Self::Json => each(&|record| Ok(format!("{}\n", record.to_json()?))),
            Self::Csv => each(&csv_of),
            Self::Markdown => Ok(markdown::render(records)),
            Self::Junit => Ok(junit::render(records)),
            Self::Github => Ok(github::render(records)),
            Self::Openmetrics => Ok(openmetrics::render(records)),
        }
    }
}

/// What a record came to has rows of its own: those of a comparison, of devices beside each other, of
/// the model of a door.
fn csv_of(record: &Record) -> anyhow::Result<String> {
    if let Some(comparison) = &record.comparison {
        return Ok(comparison_csv::render(comparison)?);
    }
    if let Some(all) = &record.side_by_side {
        return Ok(comparison_csv::render_side_by_side(all)?);
    }
    let model = if record.results.is_empty() { door_csv::render(record)? } else { None };
    Ok(model.map_or_else(|| csv::render(record), Ok)?)
}

impl OutputArguments {
    /// Fails now rather than after an hour of measuring, if the record cannot be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.output.as_deref().map_or(Ok(()), check)
    }

    /// The record to its file, then to standard output: what is printed can be made from it again.
    pub(crate) fn put(&self, record: &Record) -> anyhow::Result<()> {
        self.put_shown(record, |output| output.shown(record, &style(output.verbose)))
    }

    /// The same with a text of its own on standard output.
    pub(crate) fn put_shown(
        &self,
        record: &Record,
        text: impl FnOnce(&Self) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let written = self.write(record, Access::Everybody);
        let shown = text(self).map(|text| out!("{text}"));
        let has_json = self.format == Format::Json && !print::is_closed();
        rescue_unless_kept(record, written.as_ref(), shown.is_ok(), has_json);
        written.unwrap_or(Ok(())).and(shown)
    }

    /// The same where standard output belongs to a program that was traced: to standard error, and
    /// nowhere but to the file with `--quiet`. `access` is the file's.
    pub(crate) fn put_aside(&self, record: &Record, access: Access) -> anyhow::Result<()> {
        let written = self.write(record, access);
        let shown = match self.quiet {
            true => Ok(()),
            false => self
                .shown(record, &style_of(&std::io::stderr(), self.verbose))
                .map(|text| print::to_error(format_args!("{text}"))),
        };
        let has_json = self.format == Format::Json && !self.quiet;
        rescue_unless_kept(record, written.as_ref(), shown.is_ok(), has_json);
        written.unwrap_or(Ok(())).and(shown)
    }

    /// `None` where no file was asked for.
    fn write(&self, record: &Record, access: Access) -> Option<anyhow::Result<()>> {
        let path = self.output.as_deref()?;
        Some(record.write(path, access).map_err(Into::into))
    }

    pub(crate) fn shown(&self, record: &Record, style: &terminal::Style) -> anyhow::Result<String> {
        self.format.render(&[record], style)
    }
}

/// How standard output shows a record.
pub(crate) fn style(verbose: bool) -> terminal::Style {
    style_of(&std::io::stdout(), verbose)
}

fn style_of(stream: &impl IsTerminal, verbose: bool) -> terminal::Style {
    let terminal = stream.is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let unicode = !matches!(std::env::var("TERM").as_deref(), Ok("dumb"));
    terminal::Style { width: width(), colour, unicode, verbose }
}

/// What was measured is not lost with an output that failed. `written` is what became of the file,
/// if one was asked for; `has_json` says that whoever reads the output has the whole record there.
fn rescue_unless_kept(
    record: &Record,
    written: Option<&anyhow::Result<()>>,
    is_shown: bool,
    has_json: bool,
) {
    let is_printed = is_shown && !print::has_failed();
    let is_kept = match written {
        Some(Ok(())) => true,
        Some(Err(_)) => is_printed && has_json,
        None => is_printed,
    };
    if !is_kept {
        rescue(record);
    }
}

/// Puts the record where there is room, and says where.
fn rescue(record: &Record) {
    let Ok(text) = record.to_json() else { return };
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix("tapstone-record-").suffix(".json").tempfile();
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        Ok(file.keep()?.1)
    });
    match written {
        Ok(path) => say!("the record is in {}", path.display()),
        Err(_) => print::to_error(format_args!("{text}")),
    }
}

/// Fails now rather than after an hour of measuring, if a file cannot be written there.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    tapstone_files::check_writable(path).map_err(|error| {
        anyhow!(
            "{}: {error}\nhint: it cannot be written there; name a file in a folder that may be \
             written to",
            path.display()
        )
    })
}

/// Writes a file whole or not at all.
pub(crate) fn write_file(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    tapstone_files::write_whole(path, access, write).map_err(|error| {
        anyhow!(
            "{}: {error}\nhint: name a file that can be written, on a disk with room",
            path.display()
        )
    })
}

/// How many columns standard output has; 100 in a pipe.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}
