//! Path validation on its own.

use std::sync::Arc;

use tapstone_piv::{Certificate, CertificatePurpose, Trust, TrustError};

use crate::support::{Ca, Files, Leaf, NOW, crl, days, trust};

fn validated(certificates: &[&[u8]], leaf: &[u8]) -> Result<(), &'static str> {
    let leaf = Arc::new(Certificate::parse(leaf).unwrap());
    let trust = trust(certificates, None);
    let path = trust.validate(&leaf, CertificatePurpose::CardAuthentication, None, NOW);
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
    let (one, other) = (Ca::root("one"), Ca::root("other"));
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
fn without_a_self_signed_certificate_nothing_is_trusted() {
    let between = Ca::root("root").ca("between", None);
    let certificate = Certificate::parse(&between.der()).unwrap();
    let error = Trust::new(vec![certificate], None).unwrap_err();
    assert_eq!(error, TrustError::NoAnchor { found: 1 });
    assert!(error.to_string().contains("\nhint: "));
    assert!(matches!(Trust::new(Vec::new(), None), Err(TrustError::NoAnchor { found: 0 })));
}

#[test]
fn files_that_are_something_else_are_refused() {
    let root = Ca::root("root");
    let list = crl(&root, &[1], days(-1), days(1));
    for bytes in [&b""[..], b"hello", &[0x30, 0x80], &list, &root.der()[..100]] {
        assert!(Certificate::parse(bytes).is_err());
    }
    let certificate = || vec![Certificate::parse(&root.der()).unwrap()];
    for bytes in [b"".to_vec(), b"hello".to_vec(), root.der(), list[..60].to_vec()] {
        let error = Trust::new(certificate(), Some(&[bytes])).unwrap_err();
        assert!(matches!(error, TrustError::Crl(_)), "{error}");
    }
    assert!(Trust::new(certificate(), Some(&[list])).is_ok());
}
