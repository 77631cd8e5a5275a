//! Where results go, and in which form.

use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tapstone_record::Record;
use tapstone_report::{csv, terminal};

/// What every verb that writes a record takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Also write the record to this file
    #[arg(long, value_name = "FILE")]
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
}

impl OutputArguments {
    /// Fails now rather than after an hour of measuring, if the record cannot be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.output.as_deref().map_or(Ok(()), check)
    }

    /// The record to its file, then to standard output: what is printed can be made from it again.
    pub(crate) fn put(&self, record: &Record) -> anyhow::Result<()> {
        let written = self.output.as_deref().map_or(Ok(()), |path| record.write(path));
        print!("{}", self.shown(record, &style(self.verbose))?);
        Ok(written?)
    }

    /// The same where standard output belongs to a program that was traced: to standard error, and
    /// nowhere but to the file with `--quiet`.
    pub(crate) fn put_aside(&self, record: &Record) -> anyhow::Result<()> {
        let written = self.output.as_deref().map_or(Ok(()), |path| record.write(path));
        if !self.quiet {
            eprint!("{}", self.shown(record, &style_of(&std::io::stderr(), self.verbose))?);
        }
        Ok(written?)
    }

    fn shown(&self, record: &Record, style: &terminal::Style) -> anyhow::Result<String> {
        Ok(match self.format {
            Format::Text => terminal::render(record, style),
            Format::Json => format!("{}\n", record.to_json()?),
            Format::Csv => csv::render(record)?,
        })
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

/// Fails now rather than after an hour of measuring, if the record cannot be written there.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let existed = path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| {
        anyhow::anyhow!("{}: {error}\nhint: the record cannot be written there", path.display())
    })?;
    if !existed {
        std::fs::remove_file(path).ok();
    }
    Ok(())
}

/// How many columns standard output has; 100 in a pipe.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}
