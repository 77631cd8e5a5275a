//! PC/SC's own calls, and a card that others have published, played back.

use std::path::PathBuf;

use super::components::{Pcscd, READER};
use super::run::{DemoRun, words};

/// A published card, and the tests of the suite that tell its parts.
const CARD: &str = "jcop41-v2.2";

pub(super) fn calls(run: &DemoRun, pcscd: &Pcscd<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let _card = pcscd.insert(run, "piv", Some(&run.scratch().join("piv")))?;
    let calls = words([&"pcsc", &"--reader", &READER, &"--max-time", &"0.5"]);
    Ok(vec![run.verb("pcsc.json", &calls, &[])?])
}

pub(super) fn suite(run: &DemoRun, pcscd: &Pcscd<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let _card = pcscd.insert(run, CARD, None)?;
    let suite = words([
        &"card",
        &"--reader",
        &READER,
        &"--suite",
        &"bench",
        &"--allow-writes",
        &"--rounds",
        &"5",
        &"--op",
        &"simple_apdu",
        &"--op",
        &"post_buffer",
        &"--op",
        &"devchip_*",
    ]);
    Ok(vec![run.verb("card.json", &suite, &[])?])
}
