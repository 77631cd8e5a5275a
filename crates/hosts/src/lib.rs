//! One load from many machines: agents that run workers, and the coordinator that steers them, over
//! NATS.
//!
//! The controller of `tapstone-token` knows other machines only as its trait `Hosts`. This crate
//! implements it: [`Fleet`] runs on the coordinator, [`agent`] on the other machines. NATS provides
//! discovery, request and reply, but loses messages when a connection breaks. So all messages of a
//! run are numbered, acknowledged, and repeated until they arrive.
//!
//! It is not a cluster manager: it starts nothing on other machines, it stores nothing, and it sends
//! no path, PIN or command line to an agent.
#![forbid(unsafe_code)]

pub mod agent;
mod clock;
mod config;
mod connection;
mod discovery;
mod error;
mod fleet;
#[doc(hidden)]
pub mod foreign;
mod moments;
mod peer;
mod runtime;
mod stream;
mod wire;

pub use clock::Offset;
pub use config::{Config, ConfigError, TargetConfig};
pub use connection::{Credentials, Server};
pub use discovery::{Present, look_around};
pub use error::{Absent, HostsError};
pub use fleet::{Fleet, HostsWatch, Wish, clock_of};
pub use wire::{AgentId, Calling, Facts, LEASE, TargetFacts};
