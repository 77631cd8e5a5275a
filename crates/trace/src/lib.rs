//! Runs a program under observation, says where its time goes, and tries fixes on it.
//!
//! - [`command`], [`run`], [`rounds`]: a program, run as its user would run it, once or in turns.
//! - [`probe`], [`events`], [`observe`]: the same with the probe inside, and what it saw.
//! - [`timeline`], [`owners`], [`tables`]: what the program did, and whose time it was.

mod clock;

pub mod behaviour;
pub mod blind;
pub mod codes;
pub mod command;
pub mod daemon;
pub mod events;
pub mod guard;
pub mod observe;
pub mod owners;
pub mod probe;
pub mod rounds;
pub mod run;
pub mod tables;
pub mod trial;
pub mod timeline;

#[path = "../../probe/src/wire.rs"]
#[allow(dead_code, unreachable_pub, reason = "a file of two crates")]
mod wire;
