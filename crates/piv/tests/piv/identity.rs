//! Whom a card is granted as: what its certificate proves, or a signed CHUID. And cards that change
//! places in the middle.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tapstone_apdu::CommandApdu;
use tapstone_piv::{
    AuthenticationMechanism, CardConnection, CardLost, Certificate, Denial, PolicyRule,
    RelyingSystem, RevocationRule, Rules, Strategy, Time, Trust,
};

use crate::support::{
    Ca, Files, Leaf, NOW, PLAIN, Plastic, crl, days, decision, dialogue, generated, relying_system,
    trust,
};

/// A FASC-N of agency 4700, from a test card of the GSA's; those of generated cards are of 9999.
const FASC_N: [u8; 25] = [
    0xD1, 0x38, 0x10, 0xD8, 0x28, 0xAF, 0x2C, 0x10, 0x84, 0x24, 0x6D, 0xA1, 0x68, 0x58, 0x28, 0xAF,
    0x02, 0x10, 0x84, 0x8D, 0x84, 0xE7, 0x39, 0xC3, 0xEB,
];

/// A card whose CHUID says this, and whose certificate says that.
fn card(ca: &Ca, fasc_n: [u8; 25], guid: [u8; 16], leaf: &Leaf) -> Files {
    let files = Files::with(ca, leaf);
    let mut chuid = files.get("chuid.bin");
    chuid[2..27].copy_from_slice(&fasc_n);
    chuid[29..45].copy_from_slice(&guid);
    files.put("chuid.bin", &chuid);
    files
}

fn identified(fasc_n: Option<[u8; 25]>, uuid: Option<[u8; 16]>) -> Leaf {
    Leaf { fasc_n: fasc_n.map(Into::into), uuid, ..Leaf::default() }
}

/// The GUID of an unsigned CHUID is anybody's. Its owner came in before, and is known.
#[test]
fn a_card_does_not_choose_whom_it_is_granted_as() {
    let ca = Ca::root("root");
    let victim = card(&ca, FASC_N, [9; 16], &identified(None, Some([9; 16])));
    let thief = card(&ca, FASC_N, [9; 16], &identified(Some(FASC_N), None));
    for strategy in Strategy::ALL {
        let way = AuthenticationMechanism::PkiCak(strategy);
        let mut door = relying_system(&[&ca.der()], None);
        let own = decision(&mut door, &mut victim.card(), way, NOW).unwrap();
        assert_eq!((own.fasc_n, own.uuid), (None, Some([9; 16])), "{strategy}");
        for _ in 0..2 {
            let granted = decision(&mut door, &mut thief.card(), way, NOW).unwrap();
            assert_eq!(granted.uuid, None, "{strategy}");
            assert_eq!(granted.fasc_n.unwrap(), FASC_N, "{strategy}");
        }
    }
}

#[test]
fn agency_9999_identifies_nobody() {
    let ca = Ca::root("root");
    let of_no_agency = Leaf::of_card();
    for strategy in Strategy::ALL {
        let decide = |leaf: &Leaf| {
            let mut door = relying_system(&[&ca.der()], None);
            let way = AuthenticationMechanism::PkiCak(strategy);
            decision(&mut door, &mut Files::with(&ca, leaf).card(), way, NOW)
        };
        let alone = decide(&Leaf { uuid: None, ..of_no_agency.clone() });
        assert_eq!(alone.unwrap_err(), Denial::NoIdentifier, "{strategy}");
        let near = decide(&of_no_agency).unwrap();
        assert_eq!((near.fasc_n, near.uuid), (None, of_no_agency.uuid), "{strategy}");
    }
}

/// An element twice: one would be compared, and the other one perhaps believed.
#[test]
fn a_chuid_with_two_guids() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut chuid = files.get("chuid.bin");
    let second = [&[0x34, 16][..], &[7; 16]].concat();
    chuid.splice(45..45, second);
    files.put("chuid.bin", &chuid);
    let refused = decision(&mut relying_system(&[&ca.der()], None), &mut files.card(), PLAIN, NOW);
    assert_eq!(refused.unwrap_err().code(), "malformed");
}

/// Its path was good, is not for a while, and is again: in between the register forgot it.
#[test]
fn a_known_card_that_was_refused_is_read_again() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let list = [crl(&ca, &[], days(-1), days(1))];
    let mut door = relying_system(&[&ca.der()], Some(&list));
    let known = AuthenticationMechanism::PkiCak(Strategy::KnownCard);
    let mut fell_back = |at| {
        let ran = door.authenticate(&mut files.card(), known, None, at);
        (ran.fell_back, ran.outcome.unwrap().is_ok())
    };
    assert_eq!(fell_back(NOW), (true, true), "registered");
    assert_eq!(fell_back(NOW), (false, true));
    assert_eq!(fell_back(days(2)), (true, false), "the list has expired");
    assert_eq!(fell_back(NOW), (true, true), "read in full again");
}

/// The contact sequence looks at the path of the certificate that was read beforehand.
#[test]
fn a_contact_card_needs_a_path_too() {
    let pin = tapstone_piv::PivPin::new(b"123456").unwrap();
    let own = std::fs::read(generated().join("ca.der")).unwrap();
    let contact = AuthenticationMechanism::Contact;
    for (ca, code) in [(own, None), (Ca::root("another").der(), Some("untrusted"))] {
        let mut door = relying_system(&[&ca], None);
        let mut card = Plastic::of(generated());
        door.prepare(&mut card, contact, Time::now()).unwrap();
        let ran = door.authenticate(&mut card, contact, Some(&pin), Time::now());
        assert_eq!(ran.outcome.unwrap().err().map(|refusal| refusal.code()), code);
        let pins = usize::from(code.is_none());
        assert_eq!(card.count(0x20), pins, "a card that is not trusted gets no PIN");
    }
}

/// Two cards in turn: after so many commands the second one is in the reader.
struct Swapped {
    cards: [Plastic; 2],
    after: usize,
    sent: usize,
    signed_by: Vec<usize>,
}

impl CardConnection for Swapped {
    fn transmit(&mut self, command: &[u8], response: &mut Vec<u8>) -> Result<(), CardLost> {
        let which = usize::from(self.sent >= self.after);
        self.sent += 1;
        if CommandApdu::parse(command).unwrap().0.ins == 0x87 {
            self.signed_by.push(which);
        }
        self.cards[which].transmit(command, response)
    }
}

/// Whenever cards are swapped, whoever is granted has signed.
#[test]
fn cards_that_are_swapped_in_the_middle() {
    let ca = Ca::root("root");
    let of = |guid: u8| card(&ca, FASC_N, [guid; 16], &identified(Some(FASC_N), Some([guid; 16])));
    let files = [of(1), of(2)];
    let mut granted = [0; 2];
    for strategy in Strategy::ALL {
        for after in 0..20 {
            let mut door = relying_system(&[&ca.der()], None);
            let way = AuthenticationMechanism::PkiCak(strategy);
            // Both are known, and both certificates are checked.
            for files in &files {
                decision(&mut door, &mut files.card(), way, NOW).unwrap();
            }
            let cards = [files[0].card(), files[1].card()];
            let mut swapped = Swapped { cards, after, sent: 0, signed_by: Vec::new() };
            let ran = door.authenticate(&mut swapped, way, None, NOW);
            if let Ok(identity) = ran.outcome.unwrap() {
                let who = usize::from(identity.uuid.unwrap()[0]) - 1;
                assert_eq!(swapped.signed_by.last(), Some(&who), "{strategy} {after}");
                granted[who] += 1;
            }
            // What a mixed dialogue leaves behind changes nothing for either.
            for (number, files) in (1..).zip(&files) {
                let own = decision(&mut door, &mut files.card(), way, NOW).unwrap();
                assert_eq!(own.uuid, Some([number; 16]), "{strategy} {after}");
            }
        }
    }
    assert!(granted.iter().all(|count| *count > 5), "{granted:?}");
}

/// A card whose 9E certificate lies in the place of 9A: no PIN will do.
#[test]
fn a_9e_certificate_in_the_place_of_9a() {
    let pin = tapstone_piv::PivPin::new(b"123456").unwrap();
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(generated()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let decide = || {
        let mut card = Plastic::of(folder.path());
        let way = AuthenticationMechanism::PkiAuth;
        let mut door = relying_system(&[&ca], None);
        let ran = door.authenticate(&mut card, way, Some(&pin), Time::now());
        (ran.outcome.unwrap().err().map(|refusal| refusal.code()), card.count(0x20))
    };
    assert_eq!(decide(), (None, 1));
    for kind in ["der", "p8"] {
        let name = |key| folder.path().join(format!("{key}.{kind}"));
        std::fs::copy(name("card_authentication_9e"), name("piv_authentication_9a")).unwrap();
    }
    assert_eq!(decide(), (Some("usage"), 0), "and the PIN is not even given to it");
}

/// Under the usual policies, a generated card is granted in every way where its CA is believed.
#[test]
fn the_usual_policies_grant_a_generated_card() {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    let usual = || Rules { policies: PolicyRule::Usual, ..Rules::default() };
    let mut door = RelyingSystem::new(trust(&[&ca], None), usual());
    for way in [PLAIN, AuthenticationMechanism::Chuid] {
        decision(&mut door, &mut Plastic::of(generated()), way, Time::now()).unwrap();
    }
    let minted = Ca::root("root");
    let mut door = RelyingSystem::new(trust(&[&minted.der()], None), usual());
    let refused =
        decision(&mut door, &mut Files::with(&minted, &Leaf::of_card()).card(), PLAIN, NOW);
    assert_eq!(refused.unwrap_err().code(), "policy");
}

/// The answer to GET DATA for the certificate, with another content and CertInfo.
fn stored(content: Vec<u8>) -> impl FnMut(&CommandApdu, &mut Vec<u8>) -> Option<CardLost> {
    use tapstone_apdu::tlv::element;

    let inside = [element(0x70, &content), element(0x71, &[1]), element(0xFE, &[])].concat();
    let mut rest = element(0x53, &inside);
    move |command, response| {
        let asks = command.ins == 0xCB && command.data == [0x5C, 3, 0x5F, 0xC1, 0x01];
        if asks || command.ins == 0xC0 && !rest.is_empty() {
            let more = rest.split_off(rest.len().min(256));
            *response = std::mem::replace(&mut rest, more);
            let left = rest.len().min(255) as u8;
            response.extend(if rest.is_empty() { [0x90, 0] } else { [0x61, left] });
        }
        None
    }
}

#[test]
fn certificates_in_gzip() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let whole = gzip(&files.get("card_authentication_9e.der"));
    let decide = |content: Vec<u8>| {
        let mut card = files.card().editing(stored(content));
        let mut door = relying_system(&[&ca.der()], None);
        decision(&mut door, &mut card, PLAIN, NOW).map(|_| ()).map_err(|refusal| refusal.code())
    };
    assert_eq!(decide(whole.clone()), Ok(()));
    // A hundred megabytes in a hundred kilobytes; less is a bomb already.
    assert_eq!(decide(gzip(&vec![0x30; 16_385])), Err("compressed"));
    assert_eq!(decide(gzip(&vec![0x30; 16_384])), Err("not-a-certificate"), "as far as the bound");
    assert_eq!(decide(gzip(&vec![0; 3_000_000])), Err("compressed"));
    assert_eq!(decide(whole[..whole.len() - 4].to_vec()), Err("compressed"));
    assert_eq!(decide([&whole[..], &[0]].concat()), Err("compressed"));
    let mut changed = whole.clone();
    let crc = changed.len() - 6;
    changed[crc] ^= 1;
    assert_eq!(decide(changed), Err("compressed"));
}

/// Granted, although nothing says whether it was revoked: then the log says so.
#[test]
fn what_was_not_checked_is_told() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    for strategy in Strategy::ALL {
        let anchor = vec![Certificate::parse(&ca.der()).unwrap()];
        let trust = Trust::new(anchor, Vec::new()).unwrap();
        let trust = trust.checking_revocation(RevocationRule::Prefer, &[]);
        let mut door = RelyingSystem::new(trust, crate::support::rules());
        let way = AuthenticationMechanism::PkiCak(strategy);
        for _ in 0..2 {
            let ran = dialogue(&mut door, &mut files.card(), way, NOW);
            assert!(ran.outcome.unwrap().is_ok());
            assert_eq!(ran.log.unchecked.len(), 1, "{strategy}");
        }
    }
}
