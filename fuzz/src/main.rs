//! Runs the fuzz targets with libFuzzer, and says what they reached. `make fuzz` builds them first.
//!
//! Everything is kept in `target/fuzz`: a folder for each session, from which all totals are made,
//! the corpus as it grew, and the inputs that made a target fail. `fuzz/sessions.jsonl` has the
//! sessions of other machines.
#![forbid(unsafe_code)]

mod campaign;

use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::campaign::{Campaign, Wishes, bugs, corpus, table};

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let verb = arguments.next().context("a verb: run, table, minimise, plant or hunt")?;
    let out = arguments.next().context("the folder of all that is made")?;
    let campaign = Campaign::below(out.as_ref());
    match verb.as_str() {
        "run" => campaign.run(&Wishes::from_environment()?),
        "table" => table::write(&campaign).map(|()| ExitCode::SUCCESS),
        "minimise" => corpus::minimise(&campaign).map(|()| ExitCode::SUCCESS),
        "plant" => bugs::plant(&campaign).map(|()| ExitCode::SUCCESS),
        "hunt" => bugs::hunt(&campaign),
        other => bail!("{other}: no such verb"),
    }
}
