//! What was observed of a program, as owned data. This crate observes nothing and explains nothing.
//!
//! - [`Event`], [`EventSource`]: calls of PKCS#11, PC/SC, reader drivers and libc, in order.
//! - [`system_calls`]: system calls, with what they were about and where they came from.
//! - [`Losses`], [`UnseenProgram`], [`Blind`]: what could not be seen, and why.
//! - [`Fix`]: a change to a program that may be tried, as a user writes it.
//! - [`FUNCTIONS`]: which functions are watched.
//!
//! A stream of events, as a test makes it up:
//!
//! ```
//! use tapstone_events::{Event, Fix};
//! use tapstone_measure::units::Nanos;
//!
//! let events = [Event::Thread { process: 7, id: 7 }, Event::Alive(Nanos::from_millis(1))];
//! assert!(matches!(events[0], Event::Thread { id: 7, .. }));
//!
//! let fix: Fix = "no-sleep:SCardEndTransaction".parse()?;
//! assert_eq!(fix.name(), "no-sleep");
//! # Ok::<(), tapstone_events::FixError>(())
//! ```

#![forbid(unsafe_code)]

mod blind;
mod event;
mod exit;
mod fix;
mod losses;
mod place;
pub mod system_calls;
mod unseen;

pub use self::blind::Blind;
pub use self::event::{
    CallBegun, CallEnded, CallOutcome, CalledFrom, CalledFunction, End, Event, EventSource,
    FunctionId, LibcCalls, ObservedRun, On, ProcessEnd, Program, Scheduled, SentCommand, StubId,
    SummedCalls, SummedDetails, TextId, UnlistedCall, WatchCost,
};
pub use self::exit::Exit;
pub use self::fix::{Fix, FixError, WaitsIn, WatchedFunction};
pub use self::losses::Losses;
pub use self::place::Place;
pub use self::unseen::UnseenProgram;
pub use tapstone_probe_core::capture::{OTHER_ATTRIBUTES, SHAPE_BITS};
pub use tapstone_probe_core::foreign::PROBE_FILE;
pub use tapstone_probe_core::functions::{FUNCTIONS, Family, Function, Kind};
