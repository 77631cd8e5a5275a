//! The time of a test taken apart, over the cases in which it differs; and every command summed up.

use std::collections::BTreeMap;

use tapstone_measure::linear::{Fit, FitPoint, fit};
use tapstone_measure::units::Nanos;
use tapstone_record as record;

use super::card_run::CardRun;
use crate::protocol::Sample;
use crate::suite::job::{JobCase, Piece, Step};
use crate::suite::plan::Plan;
use crate::suite::point::Point;

/// The costs of every test of which something was varied, in the order of the plan.
#[must_use]
pub fn costs(ran: &CardRun, plan: &Plan) -> Vec<record::Cost> {
    let mut tests: Vec<&str> = plan.cases.iter().map(|case| case.test.as_str()).collect();
    tests.dedup();
    tests.into_iter().filter_map(|test| cost(ran, plan, test)).collect()
}

/// One case of a test in one round.
struct Cell {
    point: Point,
    bytes: u64,
    commands: u64,
    latency: Nanos,
}

fn cost(ran: &CardRun, plan: &Plan, test: &str) -> Option<record::Cost> {
    let lanes: Vec<u16> = (0_u16..)
        .zip(&plan.cases)
        .filter(|(_, case)| case.test == test)
        .map(|(number, _)| number)
        .collect();
    if lanes.len() < 2 {
        return None;
    }
    let points = || lanes.iter().map(|lane| plan.cases[usize::from(*lane)].point);
    // Where no input grows, bytes grow only with what else is varied, and say nothing of their own.
    let grows = points().any(|point| Some(point.bytes) != points().next().map(|it| it.bytes));
    let all = lanes.iter().map(|lane| cells(ran, *lane, plan.cases[usize::from(*lane)].point));
    let by_lane: Vec<BTreeMap<u64, Cell>> = all.filter(|cells| !cells.is_empty()).collect();
    // Rounds in which every case went well: a fit over others would compare different moments.
    let rounds: Vec<Vec<FitPoint>> = by_lane
        .first()?
        .keys()
        .filter_map(|round| {
            by_lane.iter().map(|cells| Some(observation(cells.get(round)?, grows))).collect()
        })
        .collect();
    let whole = rounds.len();
    let Fit { coefficients, worst_residual } = fit(&rounds)?;
    let [fixed, byte, set_up, operation, operation_byte] = coefficients[..] else { return None };
    Some(record::Cost {
        operation: test.to_owned(),
        fixed_ns: fixed?.into(),
        commands: by_lane.iter().flat_map(BTreeMap::values).map(|cell| cell.commands).min()?,
        byte_ns: byte.map(Into::into),
        set_up_ns: set_up.map(Into::into),
        operation_ns: operation.map(Into::into),
        operation_byte_ns: operation_byte.map(Into::into),
        n: whole as u64 * by_lane.len() as u64,
        worst_residual: record::Fraction(worst_residual),
        method: format!(
            "least squares over {} cases in each of {whole} rounds; Student's t over the rounds",
            by_lane.len()
        ),
    })
}

/// What each round measured of the case, by the round's number.
fn cells(ran: &CardRun, lane: u16, point: Point) -> BTreeMap<u64, Cell> {
    let ready = ran.ready.iter().flatten().next();
    let lanes = ready.map_or(1, |ready| u64::from(ready.lanes.max(1)));
    let samples = ran.samples.iter().flatten();
    let good = samples.filter(|sample| sample.lane == lane && sample.fault.is_none());
    let cell = |sample: &Sample| Cell {
        point,
        bytes: sample.exchanges.iter().map(|of| u64::from(of.sent + of.received)).sum(),
        commands: sample.exchanges.len() as u64,
        latency: sample.latency,
    };
    good.map(|sample| (sample.number / lanes, cell(sample))).collect()
}

/// Fixed, bytes over the interface, set-ups, operations, bytes worked on.
fn observation(cell: &Cell, grows: bool) -> FitPoint {
    let operations = f64::from(cell.point.operations);
    let amounts = vec![
        1.0,
        if grows { cell.bytes as f64 } else { 0.0 },
        f64::from(cell.point.set_ups),
        operations,
        operations * f64::from(cell.point.bytes),
    ];
    FitPoint { amounts, value: cell.latency.0 as f64 }
}

/// Every command of the measured operations, summed up by name and header.
#[must_use]
pub fn apdus(ran: &CardRun, plan: &Plan) -> Vec<record::Apdu> {
    let mut all: BTreeMap<(String, String), record::Apdu> = BTreeMap::new();
    for sample in ran.samples.iter().flatten() {
        let Some(lane) = plan.job.lanes.get(usize::from(sample.lane)) else { continue };
        for exchange in &sample.exchanges {
            let Some(step) = step(lane, exchange.step) else { continue };
            let (name, header) = match exchange.fetched {
                true => ("GET RESPONSE".to_owned(), "00C00000".to_owned()),
                false => (step.name.clone(), header(&step.header)),
            };
            let key = (name.clone(), header.clone());
            let apdu = all.entry(key).or_insert_with(|| record::Apdu::new(name, None, header));
            apdu.add(exchange.time, exchange.sent, exchange.received);
        }
    }
    all.into_values().collect()
}

/// The step of an exchange; connecting to a cold card is none.
fn step(lane: &JobCase, number: u16) -> Option<&Step> {
    lane.measure.get(usize::from(number.checked_sub(lane.steps_before())?))
}

/// CLA, INS, P1 and P2, with two dots for a byte that differs from command to command.
fn header(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Bytes(bytes) => hex::encode_upper(bytes),
        Piece::Value(_) => "..".to_owned(),
        Piece::Number { width, .. } => "..".repeat(usize::from(*width)),
    };
    pieces.iter().map(piece).collect()
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;
