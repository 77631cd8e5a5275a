//! `tapstone compare`: two records, or a record and published figures, against one another.

mod arguments;
mod sides;

use jiff::Timestamp;
use serde::Serialize;
use tapstone_record::reference::{Conclusion, Item};
use tapstone_record::{Comparison, Judgement, Record, Tool};
use tapstone_report::{comparison_csv, terminal};

pub(crate) use self::arguments::Arguments;
use self::sides::Side;
use crate::exit::Exit;
use crate::output::{self, Format, OutputArguments};

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let first = Side::open(&arguments.first)?;
    let Some(second) = &arguments.second else { return alone(arguments, first) };
    let (comparison, candidate) = match (first, Side::open(second)?) {
        (Side::Record(one), Side::Record(other)) => {
            (tapstone_compare::records(one.named(), other.named(), arguments.fail_above)?, other)
        }
        // Wherever it stands, what is published is the baseline.
        (Side::Reference(reference), Side::Record(record))
        | (Side::Record(record), Side::Reference(reference)) => {
            let item = arguments.item.as_deref();
            let fail_above = arguments.fail_above;
            (
                tapstone_compare::with_reference(&reference, item, record.named(), fail_above)?,
                record,
            )
        }
        (Side::Reference(_), Side::Reference(_)) => anyhow::bail!(
            "{} and {second} are both published, without an interval\nhint: compare a record with \
             one of them, or show one alone: tapstone compare {}",
            arguments.first,
            arguments.first
        ),
    };
    let exit = exit(&comparison);
    let record = record(comparison, candidate.record);
    show(&record, &arguments.output)?;
    Ok(exit)
}

/// Surely exceeded is a miss. Undecided is not: the text says what would decide it.
fn exit(comparison: &Comparison) -> Exit {
    let exceeded = comparison.rows.iter().any(|row| row.threshold == Some(Judgement::Exceeded));
    if exceeded { Exit::Missed } else { Exit::Done }
}

/// A record of the comparison: environment and target are the candidate's, figures are in the
/// rows, and where they came from is in the sides.
fn record(comparison: Comparison, candidate: Record) -> Record {
    let Record { environment, target, .. } = candidate;
    let mut record = Record::new(tool(), Timestamp::now(), environment, target);
    record.command = std::env::args().collect();
    record.comparison = Some(comparison);
    record
}

pub(crate) fn tool() -> Tool {
    Tool { name: "tapstone".into(), version: env!("CARGO_PKG_VERSION").into() }
}

/// As any record, but CSV has the rows of the comparison.
pub(crate) fn show(record: &Record, output: &OutputArguments) -> anyhow::Result<()> {
    match (&record.comparison, output.format) {
        (Some(comparison), Format::Csv) => {
            print!("{}", comparison_csv::render(comparison)?);
            Ok(output.output.as_deref().map_or(Ok(()), |path| record.write(path))?)
        }
        _ => output.put(record),
    }
}

/// A reference on its own, as JSON.
#[derive(Serialize)]
struct Published {
    name: &'static str,
    source: String,
    items: Vec<Item>,
    conclusions: Vec<Conclusion>,
}

fn alone(arguments: &Arguments, side: Side) -> anyhow::Result<Exit> {
    let reference = match side {
        Side::Reference(reference) => *reference,
        Side::Record(opened) => anyhow::bail!(
            "{} alone has nothing to be compared with\nhint: name a second record, or a \
             reference: {}",
            opened.path,
            sides::references()
        ),
    };
    anyhow::ensure!(
        arguments.output.output.is_none() && arguments.fail_above.is_none(),
        "a reference alone is shown, not compared\nhint: --output and --fail-above need a record \
         beside it"
    );
    match arguments.output.format {
        Format::Text => print!("{}", terminal::render_reference(&reference, &output::style(false))),
        Format::Json => {
            let published = Published {
                name: reference.name,
                items: reference.series(),
                conclusions: reference.conclusions(),
                source: reference.source,
            };
            println!("{}", serde_json::to_string_pretty(&published)?);
        }
        Format::Csv => anyhow::bail!(
            "a reference alone has no rows of a comparison\nhint: use --format json, or read the \
             file in the folder reference of the sources"
        ),
    }
    Ok(Exit::Done)
}
