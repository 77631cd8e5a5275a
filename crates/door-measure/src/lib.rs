//! PIV authentication at a door, measured on a real card.
//!
//! [`DoorController`] steers rounds in which every mechanism or strategy has its turn on the same card.
//! The dialogue itself runs in a process of its own ([`serve`]), because SCardTransmit has no time
//! limit and cannot be cancelled; the controller never calls PC/SC. [`fill_record`] makes the cases of a
//! record of what was seen: each strategy, each step of the baseline, and what the strategies gained
//! beside what was predicted.
#![forbid(unsafe_code)]

mod cases;
mod controller;
mod crl_index;
mod error;
pub mod files;
mod model;
mod observer;
mod protocol;
mod responders;
mod rounds;
mod worker;

pub use cases::{Decided, Decision, fill_record};
pub use controller::DoorController;
pub use error::{DoorMeasureError, FilesError, OpenError};
pub use observer::DoorObserver;
pub use protocol::{Authentication, DoorSetup, PolicyChoice};
pub use rounds::{DoorPlan, DoorRound, DoorRun};
pub use worker::serve;
