//! The GSA's ICAM test cards as sets of card data: cards that somebody else made.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tapstone_apdu::StatusWord;
use tapstone_vcard::piv::{CardData, PivApplet};

use crate::support::{Desk, get_data, openssl, send, skip};

/// One folder a card, with the names of `/Cards` in GSA/gsa-icam-card-builder.
fn cards() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("TAPSTONE_TEST_ICAM") else {
        skip("the environment variable TAPSTONE_TEST_ICAM (folder with ICAM test cards)");
        return Vec::new();
    };
    let entries = std::fs::read_dir(&folder).expect("TAPSTONE_TEST_ICAM names a folder");
    let folders = entries.map(|entry| entry.unwrap().path());
    let cards: Vec<_> = folders.filter(|path| path.join("chuid.bin").is_file()).collect();
    assert!(!cards.is_empty(), "{folder:?} holds no card");
    cards
}

#[test]
fn their_objects_are_given_as_they_are() {
    for path in cards() {
        let mut card = PivApplet::new(CardData::open(&path).unwrap());
        let chuid = std::fs::read(path.join("chuid.bin")).unwrap();
        let read = get_data(&mut card, &[0x5F, 0xC1, 0x02]);
        assert_eq!(read.data[4..], chuid, "{path:?}");
        let discovery = std::fs::read(path.join("discovery.bin")).unwrap();
        assert_eq!(get_data(&mut card, &[0x7E]).data, discovery, "{path:?}");
        // There is no such certificate in these folders.
        assert_eq!(get_data(&mut card, &[0x5F, 0xC1, 0x0A]).status, StatusWord::NOT_FOUND);
    }
}

#[test]
fn their_card_authentication_keys_sign() {
    let message = b"at the door";
    for path in cards() {
        let certificate = path.join("card_authentication_9e.der");
        let desk = Desk::new();
        let public = desk.public_key(&certificate);
        let mut card = PivApplet::new(CardData::open(&path).unwrap());
        let digest = Sha256::digest(message);
        let curve = [&[0x7C, 36, 0x82, 0, 0x81, 32][..], &digest].concat();
        let mut signed = send(&mut card, [0x00, 0x87, 0x11, 0x9E], &curve);
        if signed.status == StatusWord::WRONG_PARAMETERS {
            let info = hex::decode("003031300D060960864801650304020105000420").unwrap();
            let padding = vec![0xFF; 256 - 2 - info.len() - 32];
            let block = [&[0x00, 0x01], &padding[..], &info, &digest].concat();
            let header = [0x7C, 0x82, 0x01, 0x06, 0x82, 0x00, 0x81, 0x82, 0x01, 0x00];
            signed = send(&mut card, [0x00, 0x87, 0x07, 0x9E], &[&header[..], &block].concat());
        }
        assert_eq!(signed.status, StatusWord::OK, "{path:?}");
        let header = if signed.data.len() > 256 { 8 } else { 4 };
        let signature = desk.put("signature", &signed.data[header..]);
        let message = desk.put("message", message);
        let verify = format!("dgst -sha256 -verify {public} -signature {signature} {message}");
        assert!(openssl(&verify).is_some(), "{path:?}");
    }
}
