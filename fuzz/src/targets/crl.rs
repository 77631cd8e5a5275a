//! A certificate revocation list, in DER or PEM, with the CA that made it.

use std::sync::OnceLock;

use tapstone_piv::{Certificate, KeptCrl, RevocationList, Trust};

use super::certificate::signed_part;
use crate::FuzzTarget;
use crate::structure::Structure;

/// No changed list is taken for one of its CA, and an index of a list lists as much as the list.
pub const TARGET: FuzzTarget =
    FuzzTarget { name: "crl", reads: "CRLs", structure: Structure::Tlv, longest: 4096, check };

pub(super) const CA: &[u8] = include_bytes!("../data/ca.der");
/// What the CA signed; inputs are made from these.
const LISTS: [&[u8]; 2] = [include_bytes!("../data/one.crl"), include_bytes!("../data/empty.crl")];

fn check(input: &[u8]) {
    static TRUST: OnceLock<Trust> = OnceLock::new();
    let trust = TRUST.get_or_init(|| {
        let ca = Certificate::parse(CA).expect("the CA is one");
        Trust::new(vec![ca], Vec::new()).expect("there is an anchor")
    });
    let _ = KeptCrl::open(&mut std::io::Cursor::new(input), |_| None::<&[u8]>);
    let Ok(list) = trust.parse_list(input) else { return };
    let _ = list.issuer();
    if list.is_signed() && !input.trim_ascii_start().starts_with(b"-----") {
        let known = LISTS.iter().any(|list| signed_part(list) == signed_part(input));
        assert!(known, "a list that nobody signed is used");
    }
    let mut index = Vec::new();
    list.write_index([7; 32], &mut index).expect("it goes into memory");
    let read = RevocationList::read_index(&mut &index[..]).expect("what was written can be read");
    assert_eq!(read.list.entries(), list.entries());
    assert_eq!(read.crl_sha256, [7; 32]);
}
