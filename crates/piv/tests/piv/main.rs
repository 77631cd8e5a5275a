//! Authentication of cards at a door, against virtual cards in this process: what is granted, what
//! is refused and why, in every strategy. OpenSSL judges the same certificates.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod attacks;
mod bad_cards;
mod chuids;
mod granted;
mod icam;
mod identity;
mod openssl;
mod path;
mod pins;
mod pkits;
mod preparations;
mod refused;
mod strategies;
mod support;
mod words;
