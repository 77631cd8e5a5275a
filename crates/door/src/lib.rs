//! The path of an authentication at a door, as a model: what each part of it takes, what would make
//! it faster, and what that means for people who wait.
//!
//! A [`Scenario`] is read from TOML. [`budget()`] adds its parts up, [`what_if()`] looks for changes
//! that reach a target, [`simulate()`] lets people come. Nothing here measures, reads a file or asks
//! the system anything, and the same seed gives the same figures.
#![forbid(unsafe_code)]

mod budget;
mod card;
mod chance;
mod change;
mod dice;
mod distribution;
mod millis;
mod path;
mod people;
mod queue;
mod scenario;
mod simulate;
mod what_if;

pub use budget::budget;
pub use card::{CardError, with_card};
pub use change::{Change, Kind};
pub use distribution::{Distribution, Quantile};
pub use millis::Millis;
pub use path::{End, Message, Part, Path, Piece, Role};
pub use people::People;
pub use scenario::{SHIPPED, Scenario, UnknownScenario};
pub use simulate::{Crowd, SimulateError, simulate};
pub use what_if::{Question, UnknownChange, what_if};
