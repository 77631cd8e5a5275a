//! One load from many machines: agents that run workers, and the coordinator that steers them, over
//! NATS.
//!
//! The controller of `tapstone-token` knows other machines only as its trait `Hosts`. This crate
//! implements it: [`Fleet`] runs on the coordinator, [`agent`] on the other machines. NATS provides
//! discovery, request and reply, but loses messages when a connection breaks. So all messages of a
//! run are numbered, acknowledged, and repeated until they arrive.
//!
//! NATS is not trusted with more than that. Every agent and every coordinator has a packet key of its
//! own ([`PacketKey`]), knows the others by their public halves ([`Enrolment`], [`Config`]), and
//! drops what is not signed by one of them.
//!
//! It is not a cluster manager: it starts nothing on other machines, it stores nothing, and it sends
//! no path, PIN or command line to an agent.
#![forbid(unsafe_code)]

pub mod agent;
mod clock;
mod config;
mod connection;
mod coordinator;
mod discovery;
mod dropped;
mod enrolment;
mod envelope;
mod error;
mod fleet;
#[doc(hidden)]
pub mod foreign;
mod identity;
mod limits;
mod moments;
mod names;
mod peer;
mod policy;
mod runtime;
mod stream;
mod wire;

pub use clock::{ClockTrouble, Offset};
pub use config::{Config, ConfigError, TargetConfig};
pub use connection::{Credentials, Server};
pub use discovery::{Around, Present, look_around};
pub use enrolment::{Enrolment, EnrolmentError};
pub use error::{Absent, HostsError};
pub use fleet::{Fleet, HostsWatch, Wish, clock_of};
pub use identity::{Identity, PacketKey, PacketKeyError};
pub use limits::{KeyOperation, Limits};
pub use wire::{Calling, Facts, LEASE, TargetFacts};
