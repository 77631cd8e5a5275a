//! Several devices, each in a run of its own, and how much longer each takes than the fastest.

use tapstone_record::{
    CaseResult, Estimate, Fraction, LoadKind, Provenance, Quantity, SideBySide, SideBySideCase,
    TargetKind,
};

use crate::pairs::{figure_of, provenance, same_work, usable};
use crate::{CompareError, NamedRecord, side};

/// Puts records side by side: each operation that at least two of them have.
///
/// # Errors
/// When there is none.
pub fn side_by_side(records: &[NamedRecord<'_>]) -> Result<SideBySide, CompareError> {
    let mut rows: Vec<SideBySideCase> = Vec::new();
    let mut met: Vec<&CaseResult> = Vec::new();
    for case in records.iter().flat_map(|named| usable(named.record)) {
        if met.iter().any(|known| same_work(known, case)) {
            continue;
        }
        met.push(case);
        rows.extend(beside(records, case));
    }
    if rows.is_empty() {
        let names = records.iter().map(|named| named.path.to_owned()).collect();
        return Err(CompareError::NothingShared { names });
    }
    Ok(SideBySide {
        sides: records.iter().map(|named| side::side_of_record(*named)).collect(),
        cases: rows,
    })
}

fn beside(records: &[NamedRecord<'_>], case: &CaseResult) -> Option<SideBySideCase> {
    let token = records.iter().any(|named| named.record.target.kind == TargetKind::Token);
    let quantity = match token && case.load.kind == LoadKind::Closed {
        true => Quantity::Throughput,
        false => Quantity::Latency,
    };
    let figure = |named: &NamedRecord<'_>| {
        let same = usable(named.record).find(|other| same_work(case, other))?;
        let figure = figure_of(same, quantity).filter(|figure| figure.estimate > 0.0)?;
        Some((figure, provenance(named.record, same)))
    };
    let (figures, provenance): (Vec<Option<Estimate>>, Vec<Option<Provenance>>) =
        records.iter().map(|named| figure(named).unzip()).unzip();
    if figures.iter().flatten().count() < 2 {
        return None;
    }
    // What one operation takes, so that the fastest has the least.
    let time = |figure: &Estimate| match quantity {
        Quantity::Throughput => 1.0 / figure.estimate,
        _ => figure.estimate,
    };
    let fastest = figures.iter().flatten().map(time).fold(f64::INFINITY, f64::min);
    let excess = |figure: &Option<Estimate>| Some(Fraction(time(figure.as_ref()?) / fastest - 1.0));
    Some(SideBySideCase {
        operation: case.operation.clone(),
        message_bytes: case.message_bytes,
        concurrency: case.concurrency,
        quantity,
        excess: figures.iter().map(excess).collect(),
        figures,
        provenance,
    })
}
