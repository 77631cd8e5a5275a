//! A comparison as CSV: a header, then one line for each operation and item.
//!
//! Figures are in the unit of `quantity`: operations per second for `throughput`, nanoseconds for
//! `latency`, `wall-time` and `cpu-time`. Ratios are candidate over baseline. A cell is empty where there is
//! nothing to say; empty is never zero.

use ::csv::Writer;
use tapstone_record::{
    Change, ComparedCase, Comparison, Judgement, Provenance, Quantity, SideBySide,
};

use crate::csv::{CsvError, harmless_cell};
use crate::words;

/// The rows of a comparison, one line each, below a header.
///
/// # Errors
/// When the encoder refuses a line, which would be a defect.
pub fn render(comparison: &Comparison) -> Result<String, CsvError> {
    let mut text = Vec::new();
    let mut writer = Writer::from_writer(&mut text);
    writer.write_record(COLUMNS.iter().map(|(name, _)| name))?;
    for row in &comparison.cases {
        writer.write_record(COLUMNS.iter().map(|(_, cell)| harmless_cell(&cell(row))))?;
    }
    writer.flush().map_err(::csv::Error::from)?;
    drop(writer);
    Ok(String::from_utf8(text).expect("every cell was a string"))
}

/// Several devices beside one another, a line for each operation and device that has a figure.
///
/// # Errors
/// As [`render`].
pub fn render_side_by_side(all: &SideBySide) -> Result<String, CsvError> {
    let mut text = Vec::new();
    let mut writer = Writer::from_writer(&mut text);
    writer.write_record([
        "operation",
        "message_bytes",
        "quantity",
        "device",
        "source",
        "figure",
        "low",
        "high",
        "excess",
        "provenance",
        "emulated",
        "made_by",
    ])?;
    for row in &all.cases {
        let sides = all.sides.iter().zip(row.figures.iter().zip(&row.excess));
        for (at, (side, (figure, excess))) in sides.enumerate() {
            let (Some(figure), Some(excess)) = (figure, excess) else { continue };
            writer.write_record([
                harmless_cell(&row.operation),
                self::text(row.message_bytes),
                quantity(row.quantity).to_owned(),
                harmless_cell(&side.name),
                harmless_cell(&side.source),
                figure.estimate.to_string(),
                figure.low.to_string(),
                figure.high.to_string(),
                excess.0.to_string(),
                provenance(row.provenance.get(at).copied().flatten()).to_owned(),
                harmless_cell(side.emulated.as_deref().unwrap_or_default()),
                harmless_cell(side.made_by.as_deref().unwrap_or_default()),
            ])?;
        }
    }
    writer.flush().map_err(::csv::Error::from)?;
    drop(writer);
    Ok(String::from_utf8(text).expect("every cell was a string"))
}

/// A column: its name, and what a row has in it.
type Column = (&'static str, fn(&ComparedCase) -> String);

/// All columns, in their order. New ones are added at the end.
const COLUMNS: &[Column] = &[
    ("operation", |row| row.operation.clone()),
    ("item", |row| text(row.item.clone())),
    ("message_bytes", |row| text(row.message_bytes)),
    ("threads", |row| text(row.concurrency.map(|of| of.threads))),
    ("processes", |row| text(row.concurrency.map(|of| of.processes))),
    ("hosts", |row| text(row.concurrency.map(|of| of.hosts))),
    ("quantity", |row| quantity(row.quantity).into()),
    ("baseline", |row| row.baseline.estimate.to_string()),
    ("baseline_low", |row| row.baseline.low.to_string()),
    ("baseline_high", |row| row.baseline.high.to_string()),
    ("baseline_provenance", |row| provenance(row.baseline_provenance).into()),
    ("candidate", |row| row.candidate.estimate.to_string()),
    ("candidate_low", |row| row.candidate.low.to_string()),
    ("candidate_high", |row| row.candidate.high.to_string()),
    ("candidate_provenance", |row| provenance(row.candidate_provenance).into()),
    ("ratio", |row| row.ratio.estimate.to_string()),
    ("ratio_low", |row| row.ratio.low.to_string()),
    ("ratio_high", |row| row.ratio.high.to_string()),
    ("verdict", |row| verdict(row.verdict).into()),
    ("threshold", |row| text(row.threshold.map(judgement))),
    ("more_samples", |row| text(row.more_samples)),
    ("rounds", |row| text(row.rounds)),
    ("no_number", |row| text(row.no_number.map(words::no_number))),
    ("variation", |row| text(row.variation.map(words::variation))),
];

const fn quantity(of: Quantity) -> &'static str {
    match of {
        Quantity::Throughput => "throughput",
        Quantity::Latency => "latency",
        Quantity::WallTime => "wall-time",
        Quantity::CpuTime => "cpu-time",
    }
}

const fn verdict(of: Change) -> &'static str {
    match of {
        Change::Faster => "faster",
        Change::Slower => "slower",
        Change::Inconclusive => "inconclusive",
    }
}

const fn judgement(of: Judgement) -> &'static str {
    match of {
        Judgement::Held => "held",
        Judgement::Exceeded => "exceeded",
        Judgement::Undecided => "undecided",
    }
}

fn provenance(of: Option<Provenance>) -> &'static str {
    words::provenance(of.unwrap_or_default())
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
