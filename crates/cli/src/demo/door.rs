//! PIV at a door: the published path as a budget, what gets it under the target, and a card in the
//! ways to authenticate it.

use std::path::PathBuf;

use super::Skipped;
use super::components::{Pcscd, READER};
use super::run::{DemoRun, words};
use crate::print::say;

const SCENARIO: &str = "hid-rsa2048";
const TARGET: &str = "1500ms";

/// A published PIV card, played back.
const CARD: &str = "piv-card-1";

pub(super) fn demonstrate_door(run: &DemoRun, pcscd: &Pcscd<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let budget = words([&"door", &"budget", &SCENARIO, &"--target-time", &TARGET]);
    let what_if = words([&"door", &"what-if", &SCENARIO, &"--target-time", &TARGET]);
    let mut records =
        vec![run.verb("budget.json", &budget, &[])?, run.verb("what-if.json", &what_if, &[])?];
    let card_data = run.scratch().join(CARD);
    let _card = match pcscd.insert(run, CARD, Some(&card_data)) {
        // The model needs no card.
        Err(error) if error.is::<Skipped>() => {
            say!("  SKIPPED: the dialogue with a card: {error}");
            return Ok(records);
        }
        inserted => inserted?,
    };
    let trust = card_data.join("ca.der");
    let measure = words([
        &"door",
        &"measure",
        &"--reader",
        &READER,
        &"--anchors",
        &trust,
        &"--rounds",
        &"10",
    ]);
    records.push(run.verb("door.json", &measure, &[])?);
    Ok(records)
}
