//! What each strategy saves, and that it saves no security.

use std::sync::Arc;
use std::time::Duration;

use p256::ecdsa::SigningKey;
use rsa::RsaPrivateKey;
use rsa::rand_core::OsRng;
use tapstone_measure::units::Nanos;
use tapstone_piv::{
    AuthenticationMechanism, Certificate, CertificatePurpose, DialogueStep, PathDemands,
    RelyingSystem, Rules, Strategy, Time,
};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use crate::support::{
    Ca, DAY, Files, Leaf, NOW, crl, days, decision, dialogue, relying_system, rules, trust,
};

const KNOWN: AuthenticationMechanism = AuthenticationMechanism::PkiCak(Strategy::KnownCard);
const BACKGROUND: AuthenticationMechanism =
    AuthenticationMechanism::PkiCak(Strategy::BackgroundValidation);
const OVERLAP: AuthenticationMechanism = AuthenticationMechanism::PkiCak(Strategy::Overlap);

#[test]
fn a_known_card_gives_only_the_start_of_its_chuid_and_a_signature() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut relying_system = relying_system(&[&ca.der()], None);
    let mut card = files.card();
    let first = relying_system.authenticate(&mut card, KNOWN, None, NOW);
    assert!(first.fell_back && first.outcome.unwrap().is_ok());
    card.commands.clear();
    let second = relying_system.authenticate(&mut card, KNOWN, None, NOW);
    assert!(!second.fell_back && second.outcome.unwrap().is_ok());
    let ins: Vec<u8> = card.commands.iter().map(|command| command.ins).collect();
    assert_eq!(ins, [0xA4, 0xCB, 0x87]);
    assert_eq!(card.commands[1].data, [0x5C, 3, 0x5F, 0xC1, 0x02]);
    // 53 82 and two bytes of length, then 61.
    assert_eq!(card.commands[1].expected.unwrap().count(), 65);
    assert!(second.log.step(DialogueStep::ReadCertificate).is_none());
}

#[test]
fn a_known_card_has_to_sign() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut relying_system = relying_system(&[&ca.der()], None);
    decision(&mut relying_system, &mut files.card(), KNOWN, NOW).unwrap();
    // A copy with the same identifiers and the same certificate, but without the key.
    files.put_key(&SigningKey::random(&mut OsRng));
    let ran = dialogue(&mut relying_system, &mut files.card(), KNOWN, NOW);
    assert!(ran.fell_back, "the full reading was tried");
    assert_eq!(ran.outcome.unwrap().unwrap_err().code(), "wrong-key");
}

/// A holder gets a new certificate with a new key: the full reading finds and registers it.
#[test]
fn a_known_card_with_a_new_key_is_registered_again() {
    let ca = Ca::root("root");
    let mut files = Files::with(&ca, &Leaf::of_card());
    let mut relying_system = relying_system(&[&ca.der()], None);
    decision(&mut relying_system, &mut files.card(), KNOWN, NOW).unwrap();
    files.key = SigningKey::random(&mut OsRng);
    files.put_key(&files.key);
    files.issue(&ca, &Leaf::of_card());
    let again = dialogue(&mut relying_system, &mut files.card(), KNOWN, NOW);
    assert!(again.fell_back && again.outcome.unwrap().is_ok());
    let then = dialogue(&mut relying_system, &mut files.card(), KNOWN, NOW);
    assert!(!then.fell_back && then.outcome.unwrap().is_ok());
}

#[test]
fn a_refused_card_is_not_registered() {
    let ca = Ca::root("root");
    let other = Ca::root("another");
    let files = Files::with(&other, &Leaf::of_card());
    let mut relying_system = relying_system(&[&ca.der()], None);
    for _ in 0..3 {
        let ran = dialogue(&mut relying_system, &mut files.card(), KNOWN, NOW);
        assert!(ran.fell_back && ran.outcome.unwrap().is_err());
    }
}

#[test]
fn a_known_card_expires() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf { until: days(10), ..Leaf::of_card() });
    let mut relying_system = relying_system(&[&ca.der()], None);
    decision(&mut relying_system, &mut files.card(), KNOWN, NOW).unwrap();
    decision(&mut relying_system, &mut files.card(), KNOWN, days(9)).unwrap();
    let late = decision(&mut relying_system, &mut files.card(), KNOWN, days(11));
    assert_eq!(late.unwrap_err().code(), "expired");
}

/// Revocation of a known card is looked at each time; here the list itself ends in between.
#[test]
fn a_known_card_s_revocation_is_looked_at_again() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let list = [crl(&ca, &[], days(-1), days(1))];
    let mut relying_system = relying_system(&[&ca.der()], Some(&list));
    decision(&mut relying_system, &mut files.card(), KNOWN, NOW).unwrap();
    let later = decision(&mut relying_system, &mut files.card(), KNOWN, days(2));
    assert_eq!(later.unwrap_err().code(), "crl-expired");
}

#[test]
fn an_old_check_is_made_anew_at_the_door() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    // Good for ten days; the check for one.
    let list = [crl(&ca, &[], days(-1), days(10))];
    let mut relying_system = relying_system(&[&ca.der()], Some(&list));
    relying_system.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
    let at_door = |relying_system: &mut RelyingSystem, at| {
        relying_system.authenticate(&mut files.card(), BACKGROUND, None, at)
    };
    let young = at_door(&mut relying_system, days(1));
    assert!(!young.fell_back && young.outcome.unwrap().is_ok());
    let old = at_door(&mut relying_system, days(3));
    assert!(old.fell_back && old.outcome.unwrap().is_ok());
    // A check of a time to come says nothing: the clock was put back.
    let before = at_door(&mut relying_system, NOW);
    assert!(before.fell_back && before.outcome.unwrap().is_ok());
    let late = at_door(&mut relying_system, days(11));
    assert_eq!(late.outcome.unwrap().unwrap_err().code(), "crl-expired");
}

#[test]
fn a_checked_certificate_is_not_another_one() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut relying_system = relying_system(&[&ca.der()], None);
    relying_system.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
    files.issue(&Ca::root("another"), &Leaf::of_card());
    let ran = relying_system.authenticate(&mut files.card(), BACKGROUND, None, NOW);
    assert!(ran.fell_back);
    assert_eq!(ran.outcome.unwrap().unwrap_err().code(), "untrusted");
}

/// The check beforehand may be a day old, the certificate must be valid now.
#[test]
fn a_checked_certificate_expires() {
    let ca = Ca::root("root");
    let leaf = Leaf { until: Time(NOW.0 + 3600), ..Leaf::of_card() };
    let files = Files::with(&ca, &leaf);
    let mut relying_system = relying_system(&[&ca.der()], None);
    relying_system.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
    let later = Time(NOW.0 + 7200);
    let ran = relying_system.authenticate(&mut files.card(), BACKGROUND, None, later);
    assert!(!ran.fell_back);
    assert_eq!(ran.outcome.unwrap().unwrap_err().code(), "expired");
}

/// RSA of 2048 bits is strong enough until the end of 2030, whatever was found before.
#[test]
fn a_known_key_grows_weak() {
    let end = Time(1_924_992_000);
    let before = Time(end.0 - 3600);
    let ca = Ca::lasting_root("root");
    let weak = RsaPrivateKey::new(&mut OsRng, 2048).unwrap();
    let weak = SubjectPublicKeyInfoOwned::from_key(weak.to_public_key()).unwrap();
    let strong = crate::support::spki(&SigningKey::random(&mut OsRng));
    let valid = Leaf { from: days(-1), until: Time(end.0 + DAY), ..Leaf::of_card() };
    for (key, code) in [(weak, Some("strength")), (strong, None)] {
        let certificate = Arc::new(Certificate::parse(&ca.leaf(key, &valid)).unwrap());
        let purpose = Some(CertificatePurpose::CardAuthentication);
        let demands = PathDemands { purpose, ..PathDemands::default() };
        let trust = trust(&[&ca.der()], None);
        let path = trust.validate(&certificate, &demands, before).unwrap();
        trust.recheck(&path, before).unwrap();
        assert_eq!(trust.recheck(&path, end).err().map(|refusal| refusal.code()), code);
    }
}

/// The check is young enough, and what said that the card was not revoked holds no longer.
#[test]
fn a_check_lasts_no_longer_than_what_it_rests_on() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let hours = |number: u64| Time(NOW.0 + number * 3600);
    let list = [crl(&ca, &[], days(-1), hours(2))];
    let mut relying_system = relying_system(&[&ca.der()], Some(&list));
    relying_system.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
    let mut at_door = |at| relying_system.authenticate(&mut files.card(), BACKGROUND, None, at);
    let fresh = at_door(hours(2));
    assert!(!fresh.fell_back && fresh.outcome.unwrap().is_ok());
    let late = at_door(hours(3));
    assert!(late.fell_back);
    assert_eq!(late.outcome.unwrap().unwrap_err().code(), "crl-expired");
}

#[test]
fn the_time_of_a_slow_module_is_waited_and_hidden_by_overlap() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let module_time = Nanos::from_millis(300);
    let rules = Rules { module_time, age_limit: Duration::from_secs(60), ..rules() };
    let mut relying_system = RelyingSystem::new(trust(&[&ca.der()], None), rules);
    let plain = dialogue(&mut relying_system, &mut files.card(), crate::support::PLAIN, NOW).log;
    let validated = plain.step(DialogueStep::Validate).unwrap();
    assert!(validated >= module_time);
    assert!(plain.replayed > Nanos::ZERO && plain.replayed <= validated);
    let background = dialogue(&mut relying_system, &mut files.card(), BACKGROUND, NOW).log;
    assert_eq!(background.replayed, Nanos::ZERO);
    // The card needs half a second in all for its signature and its CHUID.
    let mut slow = files.card().editing(|command, _| {
        if matches!(command.ins, 0x87 | 0xCB) {
            std::thread::sleep(Duration::from_millis(250));
        }
        None
    });
    let overlap = dialogue(&mut relying_system, &mut slow, OVERLAP, NOW).log;
    assert!(overlap.step(DialogueStep::Validate).unwrap() >= module_time);
    assert_eq!(overlap.replayed, Nanos::ZERO, "nobody waited for it");
}
