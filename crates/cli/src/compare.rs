//! `tapstone compare`: two records, or a record and published figures, against one another.

mod arguments;
mod baseline;
mod sides;

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use tapstone_compare::baseline::without_figures;
use tapstone_record::{Comparison, Emulated, Judgement, Record, Target, Tool};
use tapstone_reference::{PublishedItem, SourceConclusion};
use tapstone_report::terminal;

pub(crate) use self::arguments::Arguments;
use self::baseline::Baselines;
use self::sides::{ComparedSide, OpenedRecord};
use crate::command_line;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{self, Format};
use crate::print::{out, outln, say};

pub(crate) fn run_compare(arguments: &Arguments) -> anyhow::Result<Exit> {
    interrupt::finish_files_first()?;
    arguments.output.check()?;
    let first = ComparedSide::open(&arguments.first)?;
    if let Some(folder) = &arguments.baseline {
        return with_baseline(arguments, first, folder);
    }
    let Some(second) = &arguments.second else { return alone(arguments, first) };
    if !arguments.more.is_empty() {
        return beside(arguments, first, second);
    }
    let (comparison, candidate) = match (first, ComparedSide::open(second)?) {
        (ComparedSide::Record(one), ComparedSide::Record(other)) => (
            tapstone_compare::compare_records(one.named(), other.named(), arguments.fail_above)?,
            other,
        ),
        // Wherever it stands, what is published is the baseline.
        (ComparedSide::Reference(reference), ComparedSide::Record(record))
        | (ComparedSide::Record(record), ComparedSide::Reference(reference)) => {
            let item = arguments.item.as_deref();
            let fail_above = arguments.fail_above;
            (
                tapstone_compare::compare_with_reference(
                    &reference,
                    item,
                    record.named(),
                    fail_above,
                )?,
                record,
            )
        }
        (ComparedSide::Reference(_), ComparedSide::Reference(_)) => anyhow::bail!(
            "{} and {second} are both published, without an interval\nhint: compare a record with \
             one of them, or show one alone: tapstone compare {}",
            arguments.first,
            arguments.first
        ),
    };
    let exit = exit(&comparison);
    let record = record(comparison, candidate.record);
    arguments.output.put(&record)?;
    Ok(exit)
}

/// A record and the one that a folder keeps for it.
fn with_baseline(arguments: &Arguments, side: ComparedSide, folder: &Path) -> anyhow::Result<Exit> {
    let ComparedSide::Record(candidate) = side else {
        anyhow::bail!(
            "{} is published, and no run\nhint: --baseline goes with one record, the new one",
            arguments.first
        )
    };
    let baselines = Baselines(folder);
    let found = baselines.find(&candidate)?;
    anyhow::ensure!(
        found.is_some() || arguments.update,
        "{} has no record of the same work on the same device as {}\nhint: --update keeps {} there, \
         for later runs to be compared with",
        folder.display(),
        candidate.path,
        candidate.path
    );
    let compare = |kept: &OpenedRecord| {
        tapstone_compare::compare_records(kept.named(), candidate.named(), arguments.fail_above)
    };
    let compared = found.as_ref().map(compare).transpose()?;
    if arguments.update {
        let kept =
            baselines.keep(&candidate, found.as_ref().map(|found| Path::new(&found.path)))?;
        say!("{} is now the baseline: {}", candidate.path, kept.display());
        for failed in without_figures(&candidate.record) {
            say!("it is none for {}: {}", failed.operation, failed.why);
        }
    }
    let Some(comparison) = compared else { return Ok(Exit::Done) };
    let exit = exit(&comparison);
    arguments.output.put(&record(comparison, candidate.record))?;
    Ok(exit)
}

/// Several records, in the order in which they were named.
fn beside(arguments: &Arguments, first: ComparedSide, second: &str) -> anyhow::Result<Exit> {
    let others = [second].into_iter().chain(arguments.more.iter().map(String::as_str));
    let sides = [Ok(first)].into_iter().chain(others.map(ComparedSide::open));
    let records = sides.map(|side| match side? {
        ComparedSide::Record(record) => Ok(record),
        ComparedSide::Reference(reference) => anyhow::bail!(
            "reference:{} is published, and has items of its own\nhint: compare one record with it, \
             or records with one another",
            reference.name
        ),
    });
    let records = records.collect::<anyhow::Result<Vec<_>>>()?;
    let named: Vec<_> = records.iter().map(|record| record.named()).collect();
    let all = tapstone_compare::side_by_side(&named)?;
    let newest = &records.last().expect("there are three at least").record;
    let environment = newest.environment.clone();
    let mut target = Target::new(newest.target.kind);
    target.emulated = emulated(&records);
    let mut record = Record::new(tool(), Timestamp::now(), environment, target);
    record.command = command_line::words();
    record.warnings = all.sides.iter().filter_map(foreign_maker).collect();
    record.side_by_side = Some(all);
    arguments.output.put(&record)?;
    Ok(Exit::Done)
}

/// What the devices of several records play, each profile once; `None` where all are real.
fn emulated(records: &[Box<OpenedRecord>]) -> Option<Emulated> {
    let all: Vec<&Emulated> =
        records.iter().filter_map(|opened| opened.record.target.emulated.as_ref()).collect();
    let first = *all.first()?;
    if all.len() == records.len() && all.iter().all(|other| *other == first) {
        return Some(first.clone());
    }
    let mut profiles: Vec<&str> = all.iter().map(|emulated| emulated.profile.as_str()).collect();
    profiles.dedup();
    let profile = format!("{} ({} of {})", profiles.join(", "), all.len(), records.len());
    Some(Emulated { profile, sha256: String::new() })
}

/// A sentence about figures that another program made.
fn foreign_maker(side: &tapstone_record::Side) -> Option<String> {
    let by = side.made_by.as_ref()?;
    Some(format!("the figures of {} were made by {by}, not by Tapstone", side.source))
}

/// Surely exceeded is a miss. Undecided is not: the text says what would decide it. Where a threshold
/// was asked for and an operation has nothing left to hold against it, that was not measured.
fn exit(comparison: &Comparison) -> Exit {
    let exceeded = comparison.cases.iter().any(|row| row.threshold == Some(Judgement::Exceeded));
    let lost = comparison.threshold.is_some() && !comparison.not_compared.is_empty();
    match (exceeded, lost) {
        (true, _) => Exit::Missed,
        (false, true) => Exit::NotMeasured,
        (false, false) => Exit::Done,
    }
}

/// A record of the comparison: environment and target are the candidate's, figures are in the
/// rows, and where they came from is in the sides.
fn record(comparison: Comparison, candidate: Record) -> Record {
    let Record { environment, target, .. } = candidate;
    let mut record = Record::new(tool(), Timestamp::now(), environment, target);
    record.command = command_line::words();
    record.comparison = Some(comparison);
    record
}

pub(crate) fn tool() -> Tool {
    Tool { name: "tapstone".into(), version: env!("CARGO_PKG_VERSION").into() }
}

/// A reference on its own, as JSON.
#[derive(Serialize)]
struct Published {
    name: &'static str,
    source: String,
    items: Vec<PublishedItem>,
    conclusions: Vec<SourceConclusion>,
}

fn alone(arguments: &Arguments, side: ComparedSide) -> anyhow::Result<Exit> {
    let reference = match side {
        ComparedSide::Reference(reference) => *reference,
        ComparedSide::Record(opened) => anyhow::bail!(
            "{} alone has nothing to be compared with\nhint: name a second record, a folder with \
             --baseline, or a reference: {}",
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
        Format::Text => out!("{}", terminal::render_reference(&reference, &output::style(false))),
        Format::Json => {
            let published = Published {
                name: reference.name,
                items: reference.items(),
                conclusions: reference.conclusions(),
                source: reference.source,
            };
            outln!("{}", serde_json::to_string_pretty(&published)?);
        }
        _ => anyhow::bail!(
            "a reference alone has no rows of a comparison\nhint: use --format json, or read the \
             file in the folder reference of the sources"
        ),
    }
    Ok(Exit::Done)
}
