//! The path of an authentication at a door, as a model: what each part of it takes, what would make
//! it faster, and what that means for people who wait.
//!
//! A [`Scenario`] is read from TOML. [`budget()`] adds its parts up, [`what_if()`] looks for changes
//! that reach a target, [`simulate()`] lets people come. Nothing here measures, reads a file or asks
//! the system anything, and the same seed gives the same figures.
#![forbid(unsafe_code)]

mod budget;
mod card;
mod change;
mod distribution;
mod millis;
mod path;
mod people;
mod probability;
mod queue;
mod random;
mod scenario;
mod simulate;
mod what_if;

pub use budget::budget;
pub use card::{CardError, with_card};
pub use change::{ChangeKind, PathChange};
pub use distribution::{Quantile, TimeDistribution};
pub use millis::Millis;
pub use path::{AuthenticationPath, LinkEnd, Message, PathPart, Role, StepTime};
pub use people::People;
pub use scenario::{SHIPPED, Scenario, UnknownScenario};
pub use simulate::{Crowd, SimulateError, simulate};
pub use what_if::{UnknownChange, WhatIfQuestion, what_if};
