//! Path validation on its own.

use std::sync::Arc;

use tapstone_piv::{
    Certificate, CertificatePurpose, PathDemands, RevocationRule, Trust, TrustError,
};

use crate::support::{Ca, Files, Leaf, NOW, crl, days, trust};

fn validated(certificates: &[&[u8]], leaf: &[u8]) -> Result<(), &'static str> {
    let leaf = Arc::new(Certificate::parse(leaf).unwrap());
    let trust = trust(certificates, None);
    let purpose = Some(CertificatePurpose::CardAuthentication);
    let demands = PathDemands { purpose, ..PathDemands::default() };
    let path = trust.validate(&leaf, &demands, NOW);
    path.map(|_| ()).map_err(|refusal| refusal.code())
}

fn leaf(ca: &Ca) -> Vec<u8> {
    let files = Files::with(ca, &Leaf::default());
    files.get("card_authentication_9e.der")
}

#[test]
fn the_length_that_a_ca_allows_is_kept() {
    let root = Ca::root("root");
    let first = root.ca("first", Some(0));
    let second = first.ca("second", None);
    let all = [&root.der()[..], &first.der(), &second.der()];
    assert_eq!(validated(&all, &leaf(&first)), Ok(()));
    assert_eq!(validated(&all, &leaf(&second)), Err("path-too-long"));
    let first = root.ca("first", Some(1));
    let second = first.ca("second", None);
    let all = [&root.der()[..], &first.der(), &second.der()];
    assert_eq!(validated(&all, &leaf(&second)), Ok(()));
}

#[test]
fn what_is_no_ca_issues_nothing() {
    let root = Ca::root("root");
    let between = root.ca("between", None);
    let all = [&root.der()[..], &between.no_longer_a_ca(&root)];
    assert_eq!(validated(&all, &leaf(&between)), Err("not-a-ca"));
}

#[test]
fn a_ring_of_cas_leads_nowhere() {
    let one = Ca::root("one");
    let other = Ca::root("other");
    // Each certified by the other, and neither by itself.
    let cross = |of: &Ca, by: &Ca| {
        let below = by.ca(&of.name, None);
        below.der()
    };
    let root = Ca::root("root");
    let all = [&root.der()[..], &cross(&one, &other), &cross(&other, &one)];
    assert!(validated(&all, &leaf(&one)).is_err());
}

#[test]
fn without_an_anchor_nothing_is_trusted() {
    let between = Ca::root("root").ca("between", None);
    let certificate = Certificate::parse(&between.der()).unwrap();
    let error = Trust::new(Vec::new(), vec![certificate]).unwrap_err();
    assert_eq!(error, TrustError::NoAnchor { found: 1 });
    assert!(error.to_string().contains("\nhint: "));
}

/// A self-signed CA among the intermediates is believed by nobody.
#[test]
fn an_intermediate_is_no_anchor_because_it_signed_itself() {
    let roots = [Ca::root("root"), Ca::root("another")];
    let [anchor, other] = [&roots[0], &roots[1]].map(|ca| Certificate::parse(&ca.der()).unwrap());
    let trust = Trust::new(vec![anchor], vec![other]).unwrap();
    let decide = |ca| {
        let leaf = Arc::new(Certificate::parse(&leaf(ca)).unwrap());
        let path = trust.validate(&leaf, &PathDemands::default(), NOW);
        path.map(|_| ()).map_err(|refusal| refusal.code())
    };
    assert_eq!(decide(&roots[0]), Ok(()));
    assert_eq!(decide(&roots[1]), Err("untrusted"));
}

#[test]
fn files_that_are_something_else_are_refused() {
    let root = Ca::root("root");
    let list = crl(&root, &[1], days(-1), days(1));
    for bytes in [&b""[..], b"hello", &[0x30, 0x80], &list, &root.der()[..100]] {
        assert!(Certificate::parse(bytes).is_err());
    }
    let certificate = || vec![Certificate::parse(&root.der()).unwrap()];
    let with = |crls: &[Vec<u8>]| {
        let trust = Trust::new(certificate(), Vec::new()).unwrap();
        trust.checking_revocation(RevocationRule::Require, crls).left_out().to_vec()
    };
    for bytes in [b"".to_vec(), b"hello".to_vec(), root.der(), list[..60].to_vec()] {
        let left_out = with(&[bytes, list.clone()]);
        assert!(left_out.len() == 1 && left_out[0].starts_with("a CRL that cannot be used: "));
    }
    assert!(with(&[list]).is_empty());
}
