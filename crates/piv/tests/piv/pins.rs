//! The PIN: sent once, never with the last try, never again after a refusal.

use tapstone_piv::{Desk, Mechanism, Pin, Refusal, Rules, Time};

use crate::support::{Plastic, generated, trust};

fn desk() -> Desk {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    Desk::new(trust(&[&ca], None), Rules::default())
}

/// VERIFY with a PIN, not the question for the counter.
fn sent(card: &Plastic) -> usize {
    card.commands.iter().filter(|command| command.ins == 0x20 && !command.data.is_empty()).count()
}

#[test]
fn a_right_pin_and_a_signature_open_the_door() {
    let pin = Pin::new(b"123456").unwrap();
    for mechanism in [Mechanism::PkiAuth, Mechanism::Contact] {
        let (mut desk, mut card) = (desk(), Plastic::of(generated()));
        desk.prepare(&mut card, mechanism, Time::now()).unwrap();
        desk.look_at_tries(&mut card).unwrap().unwrap();
        let ran = desk.authenticate(&mut card, mechanism, Some(&pin), Time::now());
        assert!(ran.outcome.unwrap().is_ok(), "{mechanism:?}");
        assert_eq!(sent(&card), 1);
    }
}

#[test]
fn a_wrong_pin_is_sent_once() {
    let pin = Pin::new(b"999999").unwrap();
    for mechanism in [Mechanism::PkiAuth, Mechanism::Contact] {
        let (mut desk, mut card) = (desk(), Plastic::of(generated()));
        desk.prepare(&mut card, mechanism, Time::now()).unwrap();
        for round in 0..3 {
            let ran = desk.authenticate(&mut card, mechanism, Some(&pin), Time::now());
            let refusal = ran.outcome.unwrap().unwrap_err();
            assert_eq!(refusal.code(), if round == 0 { "pin" } else { "pin-not-sent" });
            assert!(!refusal.to_string().contains("999999"));
        }
        assert_eq!(sent(&card), 1);
        let looked = desk.look_at_tries(&mut card).unwrap();
        assert!(matches!(looked, Err(Refusal::PinNotSent { .. })));
    }
}

#[test]
fn the_last_try_is_never_used() {
    let wrong = Pin::new(b"999999").unwrap();
    let mut card = Plastic::of(generated());
    for tries in [3, 2, 1, 0] {
        let looked = desk().look_at_tries(&mut card).unwrap();
        assert_eq!(looked.is_ok(), tries > 1, "{tries} tries");
        // Another door, which does not look.
        let mut other = desk();
        other.authenticate(&mut card, Mechanism::PkiAuth, Some(&wrong), Time::now());
    }
}

#[test]
fn without_a_pin_none_is_sent() {
    let (mut desk, mut card) = (desk(), Plastic::of(generated()));
    let ran = desk.authenticate(&mut card, Mechanism::PkiAuth, None, Time::now());
    assert_eq!(ran.outcome.unwrap().unwrap_err().code(), "pin-not-sent");
    assert_eq!(sent(&card), 0);
}

#[test]
fn no_pin_has_more_than_eight_bytes() {
    assert!(Pin::new(b"").is_none() && Pin::new(b"123456789").is_none());
    assert!(Pin::new(b"1").is_some() && Pin::new(b"12345678").is_some());
}
