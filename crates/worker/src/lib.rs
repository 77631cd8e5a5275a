//! A process of its own for calls that can hang, crash or print, and the whole conversation with
//! several of them.
//!
//! The controller's side:
//! - [`Conversation`] starts workers, asks them, hears and watches them, and ends them. It is generic
//!   over a [`WorkerProtocol`]: what is ordered, what is reported, and which calls there are.
//! - [`RemoteWorker`] is a worker of another machine in the same conversation.
//! - [`Timeouts`] and [`Interrupt`] say how long workers may take.
//! - [`Lost`] says how a worker ended, and in which call.
//!
//! The worker's side:
//! - [`private_pipes`] are its ends of the pipes, out of reach of whatever code it calls.
//! - [`send`] and [`receive`] move one message.
//! - [`Board`] is memory of both in which the worker says what it is calling, so that a call that
//!   never returns has a name.
//! - [`CleanUpWatch`] tells a worker that cleans up from one that stands still.
//! - [`signal_at_controllers_death`] tells a worker whose calls can hang that its controller has
//!   died.

mod board;
mod channel;
mod clean_up;
mod controller_death;
mod conversation;
mod frames;
mod inbox;
mod lost;
mod pipes;
mod process;
mod protocol;
mod timeouts;
mod watch;

pub use board::{BOARD_THREADS, Board, BoardCell, InFlight};
pub use channel::RemoteWorker;
pub use clean_up::{CleanUpTimeouts, CleanUpWatch};
pub use controller_death::{Controller, signal_at_controllers_death};
pub use conversation::{Conversation, Heard, HeardOf, Unanswered};
pub use frames::{receive, send};
pub use inbox::ReportSender;
pub use lost::Lost;
pub use pipes::private_pipes;
pub use process::WorkerCommand;
pub use protocol::WorkerProtocol;
pub use timeouts::{Interrupt, OnInterrupt, PROGRESS_INTERVAL, Periodic, Timeouts};
pub use watch::NOTABLE_WAIT;
