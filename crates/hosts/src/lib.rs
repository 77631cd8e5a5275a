//! One load from many machines: agents that run workers, and the coordinator that steers them, over
//! NATS.
//!
//! The lab of `tapstone-token` knows other machines as its trait `Hosts`, and this crate is what
//! stands behind it: [`Fleet`] on the coordinator's side, [`agent`] on the others. NATS brings
//! discovery, request and reply; it loses what was under way when a connection breaks, so all that
//! belongs to a run goes through numbered packets that are repeated until they are acknowledged.
//!
//! What this crate refuses to be: a cluster. It starts nothing on other machines, it stores
//! nothing, and no path, PIN or command crosses the network towards an agent.
#![forbid(unsafe_code)]

pub mod agent;
mod clock;
mod config;
mod connection;
mod discovery;
mod error;
mod fleet;
mod moments;
mod peer;
mod stream;
mod wire;

pub use clock::Offset;
pub use config::{Config, ConfigError, TargetConfig};
pub use connection::{Credentials, Server};
pub use discovery::{Present, look_around};
pub use error::{Absent, HostsError};
pub use fleet::{Fleet, Watch, Wish, clock_of};
pub use wire::{AgentId, Calling, Facts, LEASE, TargetFacts};
