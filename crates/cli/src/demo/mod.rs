//! `tapstone demo`: every verb on what each machine can have, a software token and a virtual
//! card behind the real pcscd, and one page with all of it.
//!
//! It runs this program's own verbs, as a user would, with records and events in a folder. What it
//! starts it stops again, also after Ctrl-C.

mod card;
mod components;
mod door;
mod run;
mod token;
mod trace;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tapstone_measure::units::Nanos;
use tapstone_record::Record;

use self::components::Pcscd;
use self::run::DemoRun;
use crate::exit::Exit;
use crate::print::{outln, say};
use crate::report::{self, Repeatable};

/// Show everything on a software token and a virtual card, and make one page of it.
///
/// It takes under four minutes and needs SoftHSM2 for the token; pcscd with the virtual reader
/// vpcd (as root, unless pcscd runs already) for the cards; pkcs11-tool of OpenSC to be traced.
/// What is missing is skipped, and said. Everything is made in a temporary folder and removed
/// again: no other token or card is touched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder for the records and the page, made where it is not there
    #[arg(long, short, value_name = "FOLDER", default_value = "demo")]
    output: PathBuf,
    /// Only these parts
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<DemoPart>,
}

const EXAMPLES: &str = "\
Examples:
  tapstone demo
  tapstone demo trace door --output shown

Exit codes: 0 done, also when parts were skipped; 2 a part failed, or nothing could be shown.";

/// A part of the demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DemoPart {
    /// How fast is a token, where is its limit, does a claim hold?
    Token,
    /// What does each call of PC/SC cost?
    Pcsc,
    /// Where does a program's time go, and what would a fix bring?
    Trace,
    /// What is a card's time made of, beside published cards?
    Card,
    /// Why does a door take four seconds, and what gets it under 1.5?
    Door,
}

impl DemoPart {
    const fn question(self) -> &'static str {
        match self {
            Self::Token => "token: how fast is it, where is its limit, does a claim hold?",
            Self::Pcsc => "pcsc: what does each call of PC/SC cost?",
            Self::Trace => {
                "trace, trial: where does pkcs11-tool's time go, what would a fix bring?"
            }
            Self::Card => "card: what is its time made of, beside published cards?",
            Self::Door => "door: why four seconds, and what gets it under 1.5?",
        }
    }

    /// What makes its records again.
    fn command(self) -> Vec<String> {
        let part = self.to_possible_value().map(|value| value.get_name().to_owned());
        ["tapstone", "demo"].map(str::to_owned).into_iter().chain(part).collect()
    }

    /// The records that it made, in the order of the page.
    fn demonstrate(self, run: &DemoRun, pcscd: &Pcscd<'_>) -> anyhow::Result<Vec<PathBuf>> {
        match self {
            Self::Token => token::demonstrate_token(run),
            Self::Pcsc => card::calls(run, pcscd),
            Self::Trace => trace::demonstrate_trace(run, pcscd),
            Self::Card => card::suite(run, pcscd),
            Self::Door => door::demonstrate_door(run, pcscd),
        }
    }
}

/// Why a part cannot be shown here; the others can.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Skipped(String);

pub(crate) fn run_demo(arguments: &Arguments) -> anyhow::Result<Exit> {
    let began = Instant::now();
    let folder = &arguments.output;
    std::fs::create_dir_all(folder).with_context(|| {
        format!("cannot make the folder {}\nhint: --output names another", folder.display())
    })?;
    let run = DemoRun::new(folder)?;
    let pcscd = Pcscd::new(run.scratch());
    let parts = match &arguments.parts[..] {
        [] => DemoPart::value_variants(),
        some => some,
    };
    let mut records = Vec::new();
    let mut skipped = 0;
    for part in parts {
        say!("\n{}", part.question());
        match part.demonstrate(&run, &pcscd) {
            Ok(made) => {
                made.iter().try_for_each(learnt)?;
                // The token and the card of the records are gone afterwards, and with them what
                // their own commands name.
                let again = part.command();
                let made = made.into_iter();
                records.extend(made.map(|record| Repeatable { record, again: again.clone() }));
            }
            Err(error) if error.is::<Skipped>() => {
                say!("  SKIPPED: {error}");
                skipped += 1;
            }
            Err(error) => return Err(error),
        }
    }
    drop(pcscd);
    anyhow::ensure!(
        !records.is_empty(),
        "nothing could be shown here\nhint: on Debian and Ubuntu `scripts/setup` installs what is \
         missing"
    );
    let page = folder.join("report.html");
    report::write_page(&records, &page)?;
    let took = Nanos(began.elapsed().as_nanos() as u64);
    say!("\n{} of {} parts in {took}.", parts.len() - skipped, parts.len());
    outln!("{}", std::path::absolute(&page)?.display());
    Ok(Exit::Done)
}

/// What a record says, in a sentence or two.
fn learnt(path: &PathBuf) -> anyhow::Result<()> {
    for sentence in tapstone_report::verdict::sentences(&Record::read(path)?) {
        say!("  {sentence}");
    }
    Ok(())
}
