//! Sequences of APDUs as operations.
//!
//! A suite is a TOML file ([`mod@file`]). [`plan`] settles what of it is done on this card with these
//! permissions, makes the inputs and keeps what is expected; [`job`] is what a worker gets of it,
//! which `run` carries out; [`verify`] judges what came back, in the controller's process.

pub mod file;
#[cfg(test)]
mod firewall_tests;
pub mod job;
pub mod material;
pub mod plan;
pub mod point;
pub(crate) mod port;
mod rehearsal;
mod render;
pub(crate) mod run;
mod template;
pub mod verify;
