//! The shipped profiles against the published figures that they stand for, on the card's own
//! clock: nothing sleeps.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod jcop;
mod piv;
mod workloads;

use tapstone_vcard::{Profile, shipped};

/// The shipped profile of this name.
fn profile(name: &str) -> Profile {
    let shipped = shipped().iter().find(|shipped| shipped.name == name);
    shipped.expect("it is shipped").profile()
}

#[test]
fn every_shipped_profile_is_read_and_calls_itself_as_its_file() {
    for shipped in shipped() {
        assert_eq!(shipped.profile().name, shipped.name);
    }
}
