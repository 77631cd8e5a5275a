//! Cards that may not enter, in every strategy, each with its reason.

use der::asn1::ObjectIdentifier;
use p256::ecdsa::SigningKey;
use rsa::rand_core::OsRng;
use tapstone_piv::{AuthenticationMechanism, Denial, Strategy, Time};
use x509_cert::ext::pkix::KeyUsages;

use crate::support::{
    Ca, DAY, Files, Leaf, NOW, PLAIN, crl, days, decision, generated, refused_in_all,
    relying_system,
};

#[track_caller]
fn leaf_is_refused(leaf: &Leaf, code: &str) {
    let ca = Ca::root("root");
    let files = Files::with(&ca, leaf);
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), NOW, code);
}

#[test]
fn expired() {
    leaf_is_refused(&Leaf { until: days(-1), ..Leaf::of_card() }, "expired");
}

#[test]
fn not_yet_valid() {
    leaf_is_refused(&Leaf { from: days(1), ..Leaf::of_card() }, "not-yet-valid");
}

#[test]
fn by_a_clock_that_is_wrong() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    refused_in_all(
        || relying_system(&[&ca.der()], None),
        || files.card(),
        Time(0),
        "not-yet-valid",
    );
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), days(500), "expired");
    let said = decision(&mut relying_system(&[&ca.der()], None), &mut files.card(), PLAIN, Time(0));
    assert!(said.unwrap_err().to_string().contains("is the clock right?"));
}

#[test]
fn of_an_expired_root() {
    let ca = Ca::expired_root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), NOW, "expired");
}

#[test]
fn untrusted() {
    let ca = Ca::root("root");
    let other = Ca::root("another");
    let files = Files::with(&other, &Leaf::of_card());
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), NOW, "untrusted");
}

/// Whoever makes a CA of the same name has another key.
#[test]
fn of_a_false_ca_of_the_same_name() {
    let ca = Ca::root("root");
    let false_one = Ca::root("root");
    let files = Files::with(&false_one, &Leaf::of_card());
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), NOW, "untrusted");
    let leaf = Leaf { authority: false, ..Leaf::of_card() };
    let files = Files::with(&false_one, &leaf);
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), NOW, "tampered");
}

#[test]
fn tampered() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let name = "card_authentication_9e.der";
    let mut der = files.get(name);
    let place = der.windows(6).position(|bytes| bytes == b"a card").unwrap();
    der[place] = b'A';
    files.put(name, &der);
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), NOW, "tampered");
}

#[test]
fn without_the_right_usages() {
    let usage = Some(KeyUsages::KeyEncipherment);
    leaf_is_refused(&Leaf { usage, ..Leaf::of_card() }, "usage");
    leaf_is_refused(&Leaf { usage: None, ..Leaf::of_card() }, "usage");
    leaf_is_refused(&Leaf { extended: None, ..Leaf::of_card() }, "usage");
    // Client authentication.
    let extended = Some(ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2"));
    leaf_is_refused(&Leaf { extended, ..Leaf::of_card() }, "usage");
}

#[test]
fn with_a_critical_extension_that_nobody_knows() {
    leaf_is_refused(&Leaf { unknown: true, ..Leaf::of_card() }, "critical-extension");
}

#[test]
fn without_an_identifier() {
    leaf_is_refused(&Leaf::default(), "no-identifier");
}

#[test]
fn revoked() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf { serial: 66, ..Leaf::of_card() });
    let list = |serials: &[u8]| [crl(&ca, serials, days(-1), days(1))];
    refused_in_all(
        || relying_system(&[&ca.der()], Some(&list(&[65, 66]))),
        || files.card(),
        NOW,
        "revoked",
    );
    for strategy in Strategy::ALL {
        let mut relying_system = relying_system(&[&ca.der()], Some(&list(&[65, 67])));
        let way = AuthenticationMechanism::PkiCak(strategy);
        decision(&mut relying_system, &mut files.card(), way, NOW).unwrap();
    }
}

#[test]
fn of_a_revoked_ca() {
    let root = Ca::root("root");
    // Its serial number is 2.
    let between = root.ca("between", None);
    let files = Files::with(&between, &Leaf::of_card());
    let lists = [crl(&root, &[2], days(-1), days(1)), crl(&between, &[], days(-1), days(1))];
    let relying_system = || relying_system(&[&root.der(), &between.der()], Some(&lists));
    refused_in_all(relying_system, || files.card(), NOW, "revoked");
}

#[test]
fn when_the_crl_has_expired_or_is_of_the_future() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let list = [crl(&ca, &[], days(-2), days(-1))];
    refused_in_all(
        || relying_system(&[&ca.der()], Some(&list)),
        || files.card(),
        NOW,
        "crl-expired",
    );
    let list = [crl(&ca, &[], days(1), days(2))];
    refused_in_all(
        || relying_system(&[&ca.der()], Some(&list)),
        || files.card(),
        NOW,
        "crl-not-yet-valid",
    );
}

/// With CRLs, nobody passes on whom none of them says anything. A forged one says nothing.
#[test]
fn when_no_crl_says_anything() {
    let ca = Ca::root("root");
    let other = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    refused_in_all(|| relying_system(&[&ca.der()], Some(&[])), || files.card(), NOW, "no-crl");
    let forged = [crl(&other, &[], days(-1), days(1))];
    refused_in_all(|| relying_system(&[&ca.der()], Some(&forged)), || files.card(), NOW, "no-crl");
    let trust = crate::support::trust(&[&ca.der()], Some(&forged));
    assert_eq!(trust.left_out().len(), 1);
}

#[test]
fn for_a_copied_certificate_without_its_key() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    files.put_key(&SigningKey::random(&mut OsRng));
    refused_in_all(|| relying_system(&[&ca.der()], None), || files.card(), NOW, "wrong-key");
}

/// Only where the CHUID is read; the identifier of `no-chuid` is the certificate's.
#[test]
fn for_the_chuid_of_another_card() {
    let ca = Ca::root("root");
    for (leaf, code) in [
        (Leaf { fasc_n: Some(vec![1; 25]), ..Leaf::of_card() }, "fasc-n-mismatch"),
        (Leaf { uuid: Some([1; 16]), ..Leaf::of_card() }, "uuid-mismatch"),
    ] {
        let files = Files::with(&ca, &leaf);
        for strategy in Strategy::ALL {
            let mut relying_system = relying_system(&[&ca.der()], None);
            let way = AuthenticationMechanism::PkiCak(strategy);
            for _ in 0..2 {
                let decision = decision(&mut relying_system, &mut files.card(), way, NOW);
                if strategy == Strategy::NoChuid {
                    assert_eq!(decision.unwrap().uuid, leaf.uuid);
                } else {
                    assert_eq!(decision.unwrap_err().code(), code, "{strategy}");
                }
            }
        }
    }
}

#[test]
fn with_an_expired_chuid() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut chuid = files.get("chuid.bin");
    // 35 08 and the date, after the GUID.
    assert_eq!(chuid[45..47], [0x35, 8]);
    chuid[47..55].copy_from_slice(b"20261120");
    files.put("chuid.bin", &chuid);
    for strategy in Strategy::ALL {
        let way = AuthenticationMechanism::PkiCak(strategy);
        let decision =
            decision(&mut relying_system(&[&ca.der()], None), &mut files.card(), way, NOW);
        match strategy {
            Strategy::NoChuid => assert!(decision.is_ok()),
            _ => assert!(matches!(decision, Err(Denial::ChuidExpired { .. })), "{strategy}"),
        }
    }
}

#[test]
fn for_a_chuid_that_was_changed_or_is_of_nobody() {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    let at = Time::now();
    let files = Files::new();
    let decide = |files: &Files, ca: &[u8], at| {
        decision(
            &mut relying_system(&[ca], None),
            &mut files.card(),
            AuthenticationMechanism::Chuid,
            at,
        )
        .map(|_| ())
    };
    assert_eq!(decide(&files, &ca, at), Ok(()));
    let other = Ca::root("another").der();
    assert!(matches!(decide(&files, &other, at), Err(Denial::Untrusted { .. })));
    let late = Time(at.0 + 10 * 365 * DAY);
    assert!(matches!(decide(&files, &ca, late), Err(Denial::ChuidExpired { .. })));
    let whole = files.get("chuid.bin");
    // In the FASC-N, in the GUID, and in the date.
    for place in [5, 35, 50] {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        files.put("chuid.bin", &changed);
        let refused = decide(&files, &ca, at);
        assert!(matches!(refused, Err(Denial::ChuidSignature { .. })), "{place}: {refused:?}");
    }
}
