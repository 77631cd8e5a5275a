//! What the tests of `tapstone pcsc`, `tapstone card` and the applet share: cards in the virtual
//! readers, `tapstone` runs beside them, and what those leave behind.

mod card;
#[path = "../../pcscd/mod.rs"]
mod pcscd;
mod played;
mod run;
mod suites;

pub(crate) use self::card::{Card, Slot, Waiting, empty, has_card};
pub(crate) use self::pcscd::{NoPcscd, Pcscd, answers};
pub(crate) use self::played::{Log, Played, Says};
pub(crate) use self::suites::{COUNTS, bench_profile, tries};
pub(crate) use crate::run::{Outcome, Running, Tapstone};
pub(crate) use tapstone_testing::{eventually, skip, undisturbed};
