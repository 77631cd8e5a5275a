//! The totals of the five PIV contact cards.

use std::collections::BTreeMap;

use serde::Deserialize;
use tapstone_apdu::{CommandApdu, Expected, StatusWord};
use tapstone_measure::units::Nanos;
use tapstone_vcard::VirtualCard;

const REFERENCE: &str = include_str!("../../../../reference/piv-door.toml");

const PIV: [u8; 11] = [0xA0, 0, 0, 3, 8, 0, 0, 0x10, 0, 1, 0];
/// The PIN of generated card data, padded (SP 800-73-5 part 2, 3.2.1).
const PIN: &[u8; 8] = b"123456\xFF\xFF";

#[derive(Deserialize)]
struct Reference {
    contact_cards_ms: BTreeMap<String, f64>,
}

#[test]
fn the_assumed_steps_add_up_to_the_published_totals() {
    let reference: Reference = toml::from_str(REFERENCE).unwrap();
    assert_eq!(reference.contact_cards_ms.len(), 5);
    let folder = tempfile::tempdir().unwrap();
    // All five ask for the same card data.
    let card_data = folder.path().join("card-data");
    for (name, published) in reference.contact_cards_ms {
        let profile = crate::profile(&format!("piv-{}", name.replace('_', "-")));
        let mut card = profile.card(Some(&card_data)).unwrap();
        let total = connect_read_verify_sign(&mut card).as_secs_f64() * 1e3;
        assert!((total / published - 1.0).abs() < 0.001, "{name}: {total} ms for {published}");
    }
}

/// What the source did, as a host does it with short APDUs.
fn connect_read_verify_sign(card: &mut VirtualCard) -> Nanos {
    card.reset();
    let mut total = card.power_on();
    send(card, &mut total, &CommandApdu::select(&PIV));
    let chuid = CommandApdu::new(0, 0xCB, 0x3F, 0xFF).with_data(&[0x5C, 3, 0x5F, 0xC1, 0x02]);
    let chuid = send(card, &mut total, &chuid.expecting(Expected::SHORT));
    // Tag 53 and its length, then the published length.
    assert_eq!(chuid.len(), 4 + 2339);
    send(card, &mut total, &CommandApdu::new(0, 0x20, 0, 0x80).with_data(PIN));
    // A signature of a padded block: 7C { 82 (asked for), 81 }, by key 9A with RSA 2048.
    let mut block = vec![0xFF; 256];
    block[..2].copy_from_slice(&[0, 1]);
    let template = [&[0x7C, 0x82, 1, 6, 0x82, 0, 0x81, 0x82, 1, 0][..], &block].concat();
    let (first, last) = template.split_at(255);
    send(card, &mut total, &CommandApdu::new(0x10, 0x87, 0x07, 0x9A).with_data(first));
    let sign = CommandApdu::new(0, 0x87, 0x07, 0x9A).with_data(last).expecting(Expected::SHORT);
    let signature = send(card, &mut total, &sign);
    assert_eq!(signature.len(), 8 + 256);
    total
}

/// The command and the GET RESPONSEs after it.
fn send(card: &mut VirtualCard, total: &mut Nanos, command: &CommandApdu) -> Vec<u8> {
    let mut data = Vec::new();
    let mut command = command.clone();
    loop {
        let answer = card.transmit(&command.encode()).unwrap();
        *total += answer.modelled;
        let (part, status) = answer.response.split_last_chunk::<2>().unwrap();
        data.extend(part);
        let status = StatusWord(u16::from_be_bytes(*status));
        let Some(left) = status.bytes_to_fetch() else {
            assert_eq!(status, StatusWord::OK, "{command:?}");
            return data;
        };
        let left = Expected::bytes(left as u32).unwrap();
        command = CommandApdu::new(0, 0xC0, 0, 0).expecting(left);
    }
}
