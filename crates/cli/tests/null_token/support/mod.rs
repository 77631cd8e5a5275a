//! Runs `tapstone token` on the null module, and reads what it left behind.

mod log;
mod outcome;
mod process;
mod run;
mod turn;

pub(crate) use self::log::Log;
pub(crate) use self::outcome::Outcome;
pub(crate) use self::process::{Running, eventually};
pub(crate) use self::run::{PIN, Tapstone};
