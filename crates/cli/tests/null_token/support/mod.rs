//! Runs `tapstone token` on the null module, and reads what it left behind.

mod log;
mod outcome;
mod process;
mod run;

pub(crate) use self::log::{Log, Noted};
pub(crate) use self::outcome::Outcome;
pub(crate) use self::process::{Running, eventually};
pub(crate) use self::run::{PIN, Tapstone, module, one_at_a_time};
