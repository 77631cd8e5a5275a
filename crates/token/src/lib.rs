//! The benchmark of PKCS #11 tokens and HSMs.
//!
//! [`catalogue`] says what can be measured, [`worker`] measures it in a process that loads the
//! module, [`controller`] runs such processes and never loads one, and [`material`] prepares inputs and
//! judges results in software.

#![allow(clippy::unnecessary_cast, reason = "CK_ULONG has 32 bits on some platforms")]

pub mod catalogue;
pub mod controller;
pub mod material;
pub mod module;
pub mod pin;
pub mod pin_source;
pub mod protocol;
pub mod worker;
