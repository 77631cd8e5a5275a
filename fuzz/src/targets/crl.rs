//! A certificate revocation list, in DER or PEM, with the CA that made it.

use std::cell::RefCell;

use tapstone_piv::{Certificate, Trust};

use super::certificate::signed_part;
use crate::Target;
use crate::structure::Structure;

/// No changed list is taken for one of its CA.
///
/// OCSP answers, which are signed by the same CAs, get a target of their own beside this one as
/// soon as `tapstone-piv` reads them.
pub const TARGET: Target =
    Target { name: "crl", reads: "CRLs", structure: Structure::Tlv, longest: 4096, check };

const CA: &[u8] = include_bytes!("../data/ca.der");
/// What the CA signed; inputs are made from these.
const LISTS: [&[u8]; 2] = [include_bytes!("../data/one.crl"), include_bytes!("../data/empty.crl")];

thread_local! {
    /// Reading it takes longer than most inputs do.
    static READ_CA: RefCell<Option<Certificate>> = const { RefCell::new(None) };
}

fn check(input: &[u8]) {
    let ca = READ_CA.with_borrow_mut(|kept| {
        kept.get_or_insert_with(|| Certificate::parse(CA).expect("the CA is one")).clone()
    });
    let Ok(trust) = Trust::new(vec![ca], Some(&[input.to_vec()])) else { return };
    assert!(trust.checks_revocation());
    if trust.unused_crls().is_empty() && !input.trim_ascii_start().starts_with(b"-----") {
        let known = LISTS.iter().any(|list| signed_part(list) == signed_part(input));
        assert!(known, "a list that nobody signed is used");
    }
}
