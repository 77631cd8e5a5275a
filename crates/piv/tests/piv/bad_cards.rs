//! Cards that answer what no card should: refused in words, never a panic.

use std::cell::Cell;

use tapstone_apdu::CommandApdu;
use tapstone_measure::units::Nanos;
use tapstone_piv::{
    AuthenticationMechanism, CardLost, Denial, RelyingSystem, Rules, Strategy, TimeLimit,
};

use crate::support::{
    Ca, Files, Leaf, NOW, PLAIN, Plastic, dialogue, relying_system, rules, trust,
};

const CERTIFICATE: [u8; 5] = [0x5C, 3, 0x5F, 0xC1, 0x01];

fn reads(command: &CommandApdu, object: &[u8]) -> bool {
    command.ins == 0xCB && command.data == object
}

fn refusal(
    edit: impl FnMut(&CommandApdu, &mut Vec<u8>) -> Option<CardLost> + 'static,
) -> Result<(), Denial> {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut card = files.card().editing(edit);
    dialogue(&mut relying_system(&[&ca.der()], None), &mut card, PLAIN, NOW)
        .outcome
        .unwrap()
        .map(|_| ())
}

#[test]
fn as_it_is_it_would_be_granted() {
    assert_eq!(refusal(|_, _| None), Ok(()));
}

#[test]
fn objects_that_are_missing() {
    let ca = Ca::root("root");
    for name in ["card_authentication_9e.der", "chuid.bin"] {
        let files = Files::with(&ca, &Leaf::of_card());
        std::fs::remove_file(files.path().join(name)).unwrap();
        for strategy in Strategy::ALL {
            let way = AuthenticationMechanism::PkiCak(strategy);
            let ran =
                dialogue(&mut relying_system(&[&ca.der()], None), &mut files.card(), way, NOW);
            let decision = ran.outcome.unwrap();
            if strategy == Strategy::NoChuid && name == "chuid.bin" {
                assert!(decision.is_ok());
            } else {
                assert_eq!(decision.unwrap_err().code(), "missing", "{strategy}: {name}");
            }
        }
    }
}

#[test]
fn a_certificate_that_does_not_parse() {
    let ca = Ca::root("root");
    for bytes in [&b"no certificate"[..], &[0x30, 0x82, 0xFF, 0xFF], &[0x30, 0]] {
        let files = Files::new();
        files.put("card_authentication_9e.der", bytes);
        for strategy in Strategy::ALL {
            let way = AuthenticationMechanism::PkiCak(strategy);
            let ran =
                dialogue(&mut relying_system(&[&ca.der()], None), &mut files.card(), way, NOW);
            assert_eq!(ran.outcome.unwrap().unwrap_err().code(), "not-a-certificate");
        }
    }
}

/// What is said to be compressed, and is not; whole it is granted (`gzip.rs`).
#[test]
fn a_certificate_that_is_only_said_to_be_compressed() {
    // CertInfo with its lowest bit set, in front of the error detection code.
    let refused = refusal(|_, response| {
        let info = response.windows(3).position(|bytes| bytes == [0x71, 1, 0]);
        if let Some(place) = info {
            response[place + 2] = 1;
        }
        None
    });
    assert!(matches!(refused, Err(Denial::Compressed { .. })), "{refused:?}");
}

/// Wherever it is cut, the end of the response is missing and its outer length says so.
#[test]
fn responses_that_are_cut_short() {
    for length in [0, 1, 2, 3, 4, 10, 200] {
        let refused = refusal(move |command, response| {
            if reads(command, &CERTIFICATE) {
                response.truncate(length);
                response.extend([0x90, 0x00]);
            }
            None
        });
        assert_eq!(refused.unwrap_err().code(), "malformed", "{length}");
    }
}

/// That is no answer of a card at all: there is no decision.
#[test]
fn responses_without_a_status_word() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    for length in [0, 1] {
        let mut card = files.card().editing(move |_, response| {
            response.truncate(length);
            None
        });
        let ran = relying_system(&[&ca.der()], None).authenticate(&mut card, PLAIN, None, NOW);
        assert_eq!(ran.outcome.unwrap_err().code, "no status word");
    }
}

/// 61xx for ever, 6Cxx for ever, and errors.
#[test]
fn status_words_that_lead_nowhere() {
    for (word, code) in [
        ([0x61, 0x00], "malformed"),
        ([0x6C, 0x10], "status"),
        ([0x6D, 0x00], "status"),
        ([0x69, 0x82], "status"),
    ] {
        let refused = refusal(move |_, response| {
            *response = word.to_vec();
            None
        });
        assert_eq!(refused.unwrap_err().code(), code, "{word:02X?}");
    }
}

#[test]
fn a_challenge_that_is_not_answered() {
    for answer in [&[0x7C, 0][..], &[0x7C, 2, 0x82, 0], &[0x82, 0], &[], &[0x7C, 0x7F, 1]] {
        let refused = refusal(move |command, response| {
            if command.ins == 0x87 {
                *response = [answer, &[0x90, 0x00]].concat();
            }
            None
        });
        let code = refused.unwrap_err().code();
        assert!(["malformed", "wrong-key"].contains(&code), "{answer:02X?}: {code}");
    }
}

/// An answer that was right once is wrong the next time.
#[test]
fn a_replayed_answer() {
    thread_local!(static HEARD: Cell<Option<Vec<u8>>> = const { Cell::new(None) });
    let replay = |command: &CommandApdu, response: &mut Vec<u8>| {
        if command.ins == 0x87 {
            let heard = HEARD.take().unwrap_or_else(|| response.clone());
            response.clone_from(&heard);
            HEARD.set(Some(heard));
        }
        None
    };
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    for strategy in Strategy::ALL {
        HEARD.set(None);
        let mut relying_system: RelyingSystem = relying_system(&[&ca.der()], None);
        let mut card: Plastic = files.card().editing(replay);
        let way = AuthenticationMechanism::PkiCak(strategy);
        assert!(relying_system.authenticate(&mut card, way, None, NOW).outcome.unwrap().is_ok());
        let second = relying_system.authenticate(&mut card, way, None, NOW).outcome.unwrap();
        assert_eq!(second.unwrap_err().code(), "wrong-key", "{strategy}");
    }
}

/// The card is taken out at each of its commands: nobody enters, and the next one goes on.
#[test]
fn a_card_that_is_taken_out() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let whole = {
        let mut card = files.card();
        dialogue(&mut relying_system(&[&ca.der()], None), &mut card, PLAIN, NOW);
        card.commands.len()
    };
    for strategy in Strategy::ALL {
        for place in 0..whole {
            let mut relying_system = relying_system(&[&ca.der()], None);
            let mut number = 0;
            let mut card = files.card().editing(move |_, response| {
                number += 1;
                (number > place).then(|| {
                    response.clear();
                    CardLost { call: "SCardTransmit".into(), code: "SCARD_W_REMOVED_CARD".into() }
                })
            });
            let way = AuthenticationMechanism::PkiCak(strategy);
            let ran = relying_system.authenticate(&mut card, way, None, NOW);
            if ran.outcome.as_ref().is_ok_and(Result::is_ok) {
                assert_eq!(strategy, Strategy::NoChuid, "only its dialogue is shorter");
                continue;
            }
            assert_eq!(ran.outcome.unwrap_err().code, "SCARD_W_REMOVED_CARD");
            let next = relying_system.authenticate(&mut files.card(), way, None, NOW);
            assert!(next.outcome.unwrap().is_ok(), "{strategy} {place}");
        }
    }
}

/// Every answer is late: the door does not wait for all of them.
#[test]
fn one_that_takes_its_time() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let within = |limit: u64| {
        let mut card = files.card().editing(|_, _| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            None
        });
        let time_limit = TimeLimit(Nanos::from_millis(limit));
        let mut door =
            RelyingSystem::new(trust(&[&ca.der()], None), Rules { time_limit, ..rules() });
        let ran = door.authenticate(&mut card, PLAIN, None, NOW);
        (card.commands.len(), ran.outcome.unwrap().map_err(|refusal| refusal.code()))
    };
    let (commands, outcome) = within(20);
    assert_eq!((commands, outcome), (1, Err("too-slow")), "no command after the limit");
    assert!(within(60_000).1.is_ok());
}
