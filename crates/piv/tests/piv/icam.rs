//! GSA's ICAM test cards: what somebody else made, refused or granted as their page says.

use std::path::{Path, PathBuf};

use tapstone_piv::{AuthenticationMechanism, PolicyRule, Strategy, Time};

use crate::support::{Plastic, decision, relying_system, skip};

/// Each card, and why it is refused. One that is refused for its CHUID is not where that is not
/// read.
const CARDS: [(&str, Option<&str>); 9] = [
    ("01-golden-piv", None),
    ("46-golden-fips-201-2-piv", None),
    ("37-golden-piv-p256", None),
    ("05-tampered-certificates", Some("tampered")),
    ("10-expired-cert-signer", Some("expired")),
    ("12-certs-not-yet-valid", Some("not-yet-valid")),
    ("13-certs-are-expired", Some("expired")),
    ("16-card-authentication-fascn-mismatch", Some("fasc-n-mismatch")),
    ("20-card-authent-uuid-mismatch", Some("uuid-mismatch")),
];

/// When this was written: cards expire.
const AT: Time = Time(1_795_262_400);

pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TAPSTONE_TEST_ICAM").map(PathBuf::from);
    if folder.is_none() {
        skip("the environment variable TAPSTONE_TEST_ICAM (folder with ICAM test cards)");
    }
    folder
}

/// The contents of a folder, in the order of the names.
pub(crate) fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn each_is_granted_or_refused_as_its_page_says() {
    let Some(folder) = folder() else { return };
    let certificates = files(&folder.join("trust"));
    let certificates: Vec<&[u8]> = certificates.iter().map(Vec::as_slice).collect();
    for (name, code) in CARDS {
        for strategy in Strategy::ALL {
            let mut relying_system = relying_system(&certificates, None);
            let mut card = Plastic::of(&folder.join(name));
            for _ in 0..2 {
                let way = AuthenticationMechanism::PkiCak(strategy);
                let decision = decision(&mut relying_system, &mut card, way, AT);
                let found = decision.as_ref().err().map(|refusal| refusal.code());
                let by_chuid = code.is_some_and(|code| code.ends_with("mismatch"));
                let expected = code.filter(|_| !by_chuid || strategy != Strategy::NoChuid);
                assert_eq!(found, expected, "{name} {strategy}: {decision:?}");
            }
        }
    }
}

#[test]
fn their_policy_is_that_of_a_test() {
    let Some(folder) = folder() else { return };
    let certificates = files(&folder.join("trust"));
    let certificates: Vec<&[u8]> = certificates.iter().map(Vec::as_slice).collect();
    let decide = |policies| {
        let rules = tapstone_piv::Rules { policies, ..crate::support::rules() };
        let trust = crate::support::trust(&certificates, None);
        let mut relying_system = tapstone_piv::RelyingSystem::new(trust, rules);
        let mut card = Plastic::of(&folder.join("46-golden-fips-201-2-piv"));
        decision(&mut relying_system, &mut card, crate::support::PLAIN, AT)
    };
    let one = PolicyRule::One;
    let common = one(tapstone_piv::CARD_AUTHENTICATION_POLICY);
    assert_eq!(decide(common).unwrap_err().code(), "policy");
    assert_eq!(decide(PolicyRule::Usual).unwrap_err().code(), "policy");
    let for_tests = der::asn1::ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.48.13");
    decide(one(for_tests)).unwrap();
}

#[test]
fn their_chuids_are_signed() {
    let Some(folder) = folder() else { return };
    let certificates = files(&folder.join("trust"));
    let certificates: Vec<&[u8]> = certificates.iter().map(Vec::as_slice).collect();
    for (name, _) in CARDS.iter().take(3) {
        let mut relying_system = relying_system(&certificates, None);
        let mut card = Plastic::of(&folder.join(name));
        let decision = decision(&mut relying_system, &mut card, AuthenticationMechanism::Chuid, AT);
        assert!(decision.is_ok(), "{name}: {decision:?}");
    }
}
