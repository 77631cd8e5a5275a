//! The PIV applet, asked as a terminal asks it; what it signs and holds is judged by OpenSSL.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod card_data;
mod icam;
mod keys;
mod objects;
mod pin;
mod robustness;
mod support;
