//! A program as it is: where its time goes, and what a fix brings.

use std::path::PathBuf;

use super::Skipped;
use super::components::Pcscd;
use super::run::{DemoRun, has_program, words};

const PROGRAM: &str = "pkcs11-tool";

/// A wait that asks again and again, in the PC/SC library: found by `trace`, taken out by `trial`.
const FIX: &str = "no-busy-wait";

pub(super) fn demonstrate_trace(run: &DemoRun, pcscd: &Pcscd<'_>) -> anyhow::Result<Vec<PathBuf>> {
    if !has_program(PROGRAM) {
        return Err(Skipped(format!("there is no {PROGRAM} (Debian: opensc)")).into());
    }
    let _card = pcscd.insert(run, "piv", Some(&run.scratch().join("piv")))?;
    let program = words([&"--", &PROGRAM, &"--module", &"opensc-pkcs11.so", &"--list-objects"]);
    // The commands hold no secret, and the page offers them for copying.
    let events = run.kept("trace.events");
    let trace = words([&"trace", &"--quiet", &"--record-command", &"--events", &events]);
    let traced = run.verb("trace.json", &[trace, program.clone()].concat(), &[])?;
    let trial = words([&"trial", &"--record-command", &"--fix", &FIX]);
    let tried = run.verb("trial.json", &[trial, program].concat(), &[])?;
    Ok(vec![traced, tried])
}
