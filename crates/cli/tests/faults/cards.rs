//! The verbs that speak to a card: under the faults of all verbs, and with the card pulled out or
//! pcscd killed while they run.
//!
//! There is one pcscd and one card, so these runs are made one after the other.

use std::path::{Path, PathBuf};
use std::thread::sleep;

use tapstone_vcard::piv::{CardData, Recipe};

use crate::matrix::{Deed, Fault, Gone, UsualTimes, run_faults};
use crate::support::{Card, Pcscd, Slot};
use crate::workplace::Workplace;

/// Where the card's data is: making it takes seconds, and every run needs the same.
pub(crate) fn card_data() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("card-of-faults")
}

/// Makes the faults; returns what did not hold. `None`, which has been said then: no pcscd can be
/// started here.
pub(crate) fn run_with_card(
    faults: &[Fault],
    done: impl Fn(&Fault, bool) + Sync,
) -> Option<Vec<String>> {
    let (fatal, harmless): (Vec<&Fault>, Vec<&Fault>) =
        faults.iter().partition(|fault| matches!(fault.deed, Deed::Gone { .. }));
    let (usual, mut fell) = {
        let pcscd = Pcscd::start_own()?;
        let _card = insert(&pcscd);
        let usual = UsualTimes::of(faults);
        let fell = run_faults(&harmless, 1, |fault| fault.make(&usual), &done);
        (usual, fell)
    };
    for fault in fatal {
        let pcscd = Pcscd::start_own()?;
        let mut card = insert(&pcscd);
        let mut lose = |gone| match gone {
            Gone::Card => card.pull(),
            Gone::Service => pcscd.kill(),
        };
        let held = fault.holds(|| make(fault, &usual, &mut lose));
        fell.extend((!held).then(|| fault.name()));
        done(fault, held);
    }
    Some(fell)
}

fn insert(pcscd: &Pcscd) -> Card<'_> {
    CardData::open_or_generate(&card_data(), &Recipe::default()).unwrap();
    let data = card_data();
    Card::insert(pcscd, Slot::First, &["piv".as_ref(), "--card-data".as_ref(), data.as_os_str()])
}

/// Panics when something does not hold.
fn make(fault: &Fault, usual: &UsualTimes, lose: &mut dyn FnMut(Gone)) {
    let Deed::Gone { gone, at } = fault.deed else { unreachable!("nothing is gone") };
    let verb = &fault.verb;
    let workplace = Workplace::new(verb);
    let child = workplace.command(verb, "").spawn().unwrap();
    sleep(usual.after(verb, at));
    lose(gone);
    workplace.wait(verb, child).holds(&[verb.exit, 2]);
}
