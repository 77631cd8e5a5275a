//! Runs a program under observation, says where its time goes, and tries fixes on it.

mod clock;
pub mod events;
pub mod probe;
pub mod timeline;
#[path = "../../probe/src/wire.rs"]
#[allow(dead_code, unreachable_pub, reason = "a file of two crates")]
mod wire;
