//! Keys that runs left on a token: `--leftovers` lists them, and each run removes those of dead runs
//! of this machine before it begins.

use tapstone_text::Foreign;
use tapstone_token::controller::{TokenController, TokenMeasureError};
use tapstone_token::protocol::{KeyOwner, Leftover};

use super::arguments::Arguments;
use super::target;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Format;
use crate::print::{outln, say};

pub(super) fn list_leftovers(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut controller = target::open(arguments, interrupt::flag_on_signals()?)?;
    let remove = arguments.leftovers.remove;
    if remove {
        // Said before it is done.
        let found = controller.leftovers(false)?;
        let dead = found.iter().filter(|key| key.owner == KeyOwner::DeadRun).count();
        say!("removing {dead} of Tapstone's own keys, of killed runs on this machine");
    }
    let left = controller.leftovers(remove)?;
    controller.close();
    match arguments.output.shared.format {
        Format::Json => outln!("{}", serde_json::to_string_pretty(&left)?),
        _ => print(&left, remove),
    }
    let is_stuck = |key: &Leftover| key.owner == KeyOwner::DeadRun && !key.removed;
    let stuck = remove && left.iter().any(is_stuck);
    Ok(if stuck { Exit::NotMeasured } else { Exit::Done })
}

/// Removes what killed runs of this machine left, and says so. That it cannot be removed ends no
/// run.
pub(super) fn remove_keys_of_dead_runs(
    controller: &mut TokenController,
) -> Result<(), TokenMeasureError> {
    let left = controller.remove_keys_of_dead_runs()?;
    let removed = left.iter().filter(|key| key.removed).count();
    if removed > 0 {
        say!("removed {removed} keys that a killed run had left on the token");
    }
    if removed < left.len() {
        let stuck = left.len() - removed;
        say!("warning: {stuck} keys that a killed run left could not be removed from the token");
    }
    Ok(())
}

fn print(left: &[Leftover], remove: bool) {
    if left.is_empty() {
        outln!("no leftovers");
    }
    for key in left {
        let fate = match (key.owner, remove, key.removed) {
            (KeyOwner::LiveRun, ..) => "in use",
            (KeyOwner::Unknown, ..) => "owner unknown",
            (KeyOwner::DeadRun, false, _) => "left",
            (KeyOwner::DeadRun, true, true) => "removed",
            (KeyOwner::DeadRun, true, false) => "could not be removed",
        };
        outln!("{fate}  {}  {}", key.class, Foreign::new(&key.label));
    }
    let has = |owner| left.iter().any(|key| key.owner == owner);
    if has(KeyOwner::DeadRun) && !remove {
        say!("hint: --leftovers --remove removes what is left, and so does the next run");
    }
    if has(KeyOwner::Unknown) {
        say!(
            "hint: of keys whose owner is unknown this machine has no note: a run elsewhere may use \
             them. When none does, remove them by label with the token's own tool"
        );
    }
}
