//! A certificate, in DER or PEM.

use tapstone_piv::Certificate;

use crate::FuzzTarget;
use crate::structure::Structure;

/// Two readings agree, and no changed certificate is taken for one that signed itself.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "certificate",
    reads: "certificates",
    structure: Structure::Tlv,
    longest: 4096,
    check,
};

/// Self-signed certificates that inputs are made from.
const ROOTS: [&[u8]; 3] = [
    include_bytes!("../data/ca.der"),
    include_bytes!("../data/ca-rsa.der"),
    include_bytes!("../data/ca-piv.der"),
];

fn check(input: &[u8]) {
    let Ok(certificate) = Certificate::parse(input) else { return };
    let again = Certificate::parse(certificate.der()).expect("what was read can be read again");
    assert_eq!(again.der(), certificate.der());
    assert_eq!(again.subject(), certificate.subject());
    assert_eq!(again.key(), certificate.key());
    if certificate.is_self_signed() {
        let known = ROOTS.iter().any(|root| signed_part(root) == signed_part(certificate.der()));
        assert!(known, "a certificate that nobody signed has signed itself");
    }
}

/// The first element inside the outer one: what is signed. Read apart from the code that is tried.
pub(super) fn signed_part(der: &[u8]) -> &[u8] {
    let inside = &der[header_bytes(der)..];
    let length = header_bytes(inside) + content_bytes(inside);
    &inside[..length]
}

/// What is inside an element of DER.
pub(super) fn inside(element: &[u8]) -> &[u8] {
    &element[header_bytes(element)..]
}

/// What stands after the first element of some.
pub(super) fn after_first(elements: &[u8]) -> &[u8] {
    &elements[header_bytes(elements) + content_bytes(elements)..]
}

fn header_bytes(element: &[u8]) -> usize {
    match element[1] {
        0..=0x7F => 2,
        more => 2 + usize::from(more & 0x7F),
    }
}

fn content_bytes(element: &[u8]) -> usize {
    match element[1] {
        short @ 0..=0x7F => short.into(),
        _ => {
            element[2..header_bytes(element)].iter().fold(0, |sum, it| sum << 8 | usize::from(*it))
        }
    }
}
