//! A process of its own for calls that can hang, crash or print.
//!
//! - [`Process`] is the worker as the one that started it sees it: it gets orders through one
//!   pipe, answers through another, and is watched and ended by its handle.
//! - [`private_pipes`] are the worker's ends, out of reach of whatever code it calls.
//! - [`Board`] is memory of both in which the worker says what it is calling, so that a call that
//!   never returns has a name.
//! - [`send`] and [`receive`] move one message.

mod board;
mod frames;
mod lost;
mod pipes;
mod process;

pub use board::{Board, InFlight, PLACES, Place};
pub use frames::{receive, send};
pub use lost::Lost;
pub use pipes::private_pipes;
pub use process::{Command, Process, Word};
