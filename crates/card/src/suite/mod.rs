//! Sequences of APDUs as operations.

pub mod job;
pub(crate) mod run;
