//! An OCSP answer that was fetched beforehand, with the certificate that it is about.

use std::sync::{Arc, OnceLock};

use tapstone_piv::{Certificate, PathDemands, RevocationRule, Time, Trust};

use super::certificate::{after_first, inside, signed_part};
use super::crl::CA;
use crate::FuzzTarget;
use crate::structure::Structure;

/// Without a fresh answer that its CA signed a certificate is refused.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "ocsp",
    reads: "OCSP answers",
    structure: Structure::Tlv,
    longest: 4096,
    check,
};

const LEAF: &[u8] = include_bytes!("../data/leaf.der");
/// The one answer that says that the certificate is good; inputs are made from it.
const GOOD: &[u8] = include_bytes!("../data/good.ocsp");
/// Shortly after it was given: 24 November 2026, 23:00.
const AT: Time = Time(1_795_561_200);

fn check(input: &[u8]) {
    static READ: OnceLock<(Certificate, Arc<Certificate>)> = OnceLock::new();
    let (ca, leaf) = READ.get_or_init(|| {
        let read = |der| Certificate::parse(der).expect("it is a certificate");
        (read(CA), Arc::new(read(LEAF)))
    });
    let trust = Trust::new(vec![ca.clone()], Vec::new()).expect("there is an anchor");
    let trust = trust.checking_revocation(RevocationRule::Require, &[]);
    let trust = trust.with_ocsp_answers(&[input.to_vec()]);
    if trust.left_out().is_empty() && trust.validate(leaf, &PathDemands::default(), AT).is_ok() {
        let signed = signed_part(basic_response(GOOD));
        let known = input.windows(signed.len()).any(|part| part == signed);
        assert!(known, "an answer that nobody signed is believed");
    }
}

/// BasicOCSPResponse (RFC 6960, 4.2.1): inside the OCTET STRING after status and type.
fn basic_response(response: &[u8]) -> &[u8] {
    let bytes = inside(after_first(inside(response)));
    inside(after_first(inside(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_good_answer_is_believed() {
        let read = |der| Certificate::parse(der).unwrap();
        let trust = Trust::new(vec![read(CA)], Vec::new()).unwrap();
        let trust = trust.checking_revocation(RevocationRule::Require, &[]);
        let leaf = Arc::new(read(LEAF));
        let refused = trust.validate(&leaf, &PathDemands::default(), AT);
        assert!(refused.is_err(), "without an answer");
        let trust = trust.with_ocsp_answers(&[GOOD.to_vec()]);
        trust.validate(&leaf, &PathDemands::default(), AT).unwrap();
        assert_eq!(basic_response(GOOD)[0], 0x30);
    }
}
