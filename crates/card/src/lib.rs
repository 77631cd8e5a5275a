//! Measures PC/SC and the smart cards behind it.
//!
//! [`scard`] is PC/SC's C interface, [`pcsc`] its calls as operations, [`suite`] sequences of APDUs
//! as operations. [`worker`] measures them in a process of its own, because SCardTransmit can hang
//! and cannot be cancelled; [`controller`] starts such processes, makes inputs, verifies results and
//! turns what was seen into the cases of a record.

pub mod controller;
mod look;
pub mod pcsc;
pub mod protocol;
pub mod scard;
pub mod suite;
pub mod worker;
