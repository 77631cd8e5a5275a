//! The PIN: sent once, never with the last try, never again after a refusal.

use tapstone_piv::{AuthenticationMechanism, Denial, PivPin, RelyingSystem, Rules, Time};

use crate::support::{Plastic, generated, trust};

fn relying_system() -> RelyingSystem {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    RelyingSystem::new(trust(&[&ca], None), Rules::default())
}

/// VERIFY with a PIN, not the question for the counter.
fn sent(card: &Plastic) -> usize {
    card.commands.iter().filter(|command| command.ins == 0x20 && !command.data.is_empty()).count()
}

#[test]
fn a_right_pin_and_a_signature_open_the_door() {
    let pin = PivPin::new(b"123456").unwrap();
    for mechanism in [AuthenticationMechanism::PkiAuth, AuthenticationMechanism::Contact] {
        let mut relying_system = relying_system();
        let mut card = Plastic::of(generated());
        relying_system.prepare(&mut card, mechanism, Time::now()).unwrap();
        relying_system.look_at_tries(&mut card).unwrap().unwrap();
        let ran = relying_system.authenticate(&mut card, mechanism, Some(&pin), Time::now());
        assert!(ran.outcome.unwrap().is_ok(), "{mechanism:?}");
        assert_eq!(sent(&card), 1);
    }
}

#[test]
fn a_wrong_pin_is_sent_once() {
    let pin = PivPin::new(b"999999").unwrap();
    for mechanism in [AuthenticationMechanism::PkiAuth, AuthenticationMechanism::Contact] {
        let mut relying_system = relying_system();
        let mut card = Plastic::of(generated());
        relying_system.prepare(&mut card, mechanism, Time::now()).unwrap();
        for round in 0..3 {
            let ran = relying_system.authenticate(&mut card, mechanism, Some(&pin), Time::now());
            let refusal = ran.outcome.unwrap().unwrap_err();
            assert_eq!(refusal.code(), if round == 0 { "pin" } else { "pin-not-sent" });
            assert!(!refusal.to_string().contains("999999"));
        }
        assert_eq!(sent(&card), 1);
        let looked = relying_system.look_at_tries(&mut card).unwrap();
        assert!(matches!(looked, Err(Denial::PinNotSent { .. })));
    }
}

#[test]
fn the_last_try_is_never_used() {
    let wrong = PivPin::new(b"999999").unwrap();
    let mut card = Plastic::of(generated());
    for tries in [3, 2, 1, 0] {
        let looked = relying_system().look_at_tries(&mut card).unwrap();
        assert_eq!(looked.is_ok(), tries > 1, "{tries} tries");
        // Another door, which does not look.
        let mut other = relying_system();
        other.authenticate(&mut card, AuthenticationMechanism::PkiAuth, Some(&wrong), Time::now());
    }
}

#[test]
fn without_a_pin_none_is_sent() {
    let mut relying_system = relying_system();
    let mut card = Plastic::of(generated());
    let ran =
        relying_system.authenticate(&mut card, AuthenticationMechanism::PkiAuth, None, Time::now());
    assert_eq!(ran.outcome.unwrap().unwrap_err().code(), "pin-not-sent");
    assert_eq!(sent(&card), 0);
}

#[test]
fn no_pin_has_more_than_eight_bytes() {
    assert!(PivPin::new(b"").is_none() && PivPin::new(b"123456789").is_none());
    assert!(PivPin::new(b"1").is_some() && PivPin::new(b"12345678").is_some());
}
