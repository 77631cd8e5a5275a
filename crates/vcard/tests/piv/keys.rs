//! GENERAL AUTHENTICATE: every key and algorithm, judged by OpenSSL, and all ways to be refused.

use std::path::Path;

use sha2::{Digest, Sha256, Sha384};
use tapstone_apdu::StatusWord;
use tapstone_vcard::piv::{PivApplet, work};
use tapstone_vcard::{CardWork, Reply};

use crate::support::{
    Desk, PIN, card, folder, get_data, openssl, other_card, other_folder, send, verified, verify,
};

const MESSAGE: &[u8] = b"what the card is to sign";

fn tlv(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    match value.len() {
        length @ 0..=0x7F => bytes.push(length as u8),
        length @ 0x80..=0xFF => bytes.extend([0x81, length as u8]),
        length => {
            bytes.push(0x82);
            bytes.extend((length as u16).to_be_bytes());
        }
    }
    bytes.extend(value);
    bytes
}

fn authenticate(card: &mut PivApplet, algorithm: u8, key: u8, tag: u8, value: &[u8]) -> Reply {
    let template = tlv(0x7C, &[tlv(0x82, &[]), tlv(tag, value)].concat());
    send(card, [0x00, 0x87, algorithm, key], &template)
}

/// The response in the template.
fn response(reply: &Reply, work: &'static str) -> Vec<u8> {
    assert_eq!(reply.status, StatusWord::OK);
    assert_eq!(reply.work, [CardWork { name: work, count: 1 }]);
    let at = |from: &[u8]| match from[1] {
        0x82 => 4,
        0x81 => 3,
        _ => 2,
    };
    assert_eq!(reply.data[0], 0x7C);
    let inner = &reply.data[at(&reply.data)..];
    assert_eq!(inner[0], 0x82);
    inner[at(inner)..].to_vec()
}

/// What PKCS #1 v1.5 makes of a SHA-256 (RFC 8017, 9.2).
fn padded(length: usize) -> Vec<u8> {
    let info = hex::decode("3031300D060960864801650304020105000420").unwrap();
    let digest = Sha256::digest(MESSAGE);
    let mut block = vec![0x00, 0x01];
    block.resize(length - 1 - info.len() - digest.len(), 0xFF);
    block.push(0x00);
    block.extend(info);
    block.extend(digest);
    block
}

fn is_signature(certificate: &Path, hash: &str, signature: &[u8]) -> bool {
    let desk = Desk::new();
    let public = desk.public_key(certificate);
    let signature = desk.put("signature", signature);
    let message = desk.put("message", MESSAGE);
    openssl(&format!("dgst -{hash} -verify {public} -signature {signature} {message}")).is_some()
}

#[test]
fn rsa_2048_signs_for_authentication() {
    let reply = authenticate(&mut verified(card()), 0x07, 0x9A, 0x81, &padded(256));
    let signature = response(&reply, work::RSA2048_PRIVATE);
    let certificate = folder().join("piv_authentication_9a.der");
    assert!(is_signature(&certificate, "sha256", &signature));
    let mut other = signature;
    other[100] ^= 1;
    assert!(!is_signature(&certificate, "sha256", &other));
}

#[test]
fn rsa_3072_signs_without_a_pin_for_card_authentication() {
    let reply = authenticate(&mut other_card(), 0x05, 0x9E, 0x81, &padded(384));
    let signature = response(&reply, work::RSA3072_PRIVATE);
    let certificate = other_folder().join("card_authentication_9e.der");
    assert!(is_signature(&certificate, "sha256", &signature));
}

#[test]
fn p_256_signs_without_a_pin_for_card_authentication() {
    let certificate = folder().join("card_authentication_9e.der");
    let reply = authenticate(&mut card(), 0x11, 0x9E, 0x81, &Sha256::digest(MESSAGE));
    let signature = response(&reply, work::P256_SIGN);
    assert!(is_signature(&certificate, "sha256", &signature));
    assert!(!is_signature(&certificate, "sha512", &signature));
}

#[test]
fn p_384_signs_also_a_hash_that_is_shorter() {
    let mut card = verified(other_card());
    let certificate = other_folder().join("piv_authentication_9a.der");
    let reply = authenticate(&mut card, 0x14, 0x9A, 0x81, &Sha384::digest(MESSAGE));
    assert!(is_signature(&certificate, "sha384", &response(&reply, work::P384_SIGN)));
    let reply = authenticate(&mut card, 0x14, 0x9A, 0x81, &Sha256::digest(MESSAGE));
    assert!(is_signature(&certificate, "sha256", &response(&reply, work::P384_SIGN)));
}

#[test]
fn a_digital_signature_needs_the_pin_right_before() {
    let mut card = card();
    let block = padded(256);
    let sign = |card: &mut PivApplet| authenticate(card, 0x07, 0x9C, 0x81, &block);
    assert_eq!(sign(&mut card).status, StatusWord::SECURITY_NOT_SATISFIED);
    assert_eq!(verify(&mut card, PIN), StatusWord::OK);
    let signature = response(&sign(&mut card), work::RSA2048_PRIVATE);
    assert!(is_signature(&folder().join("digital_signature_9c.der"), "sha256", &signature));
    assert_eq!(sign(&mut card).status, StatusWord::SECURITY_NOT_SATISFIED, "once for each");
    verify(&mut card, PIN);
    get_data(&mut card, &[0x7E]);
    assert_eq!(sign(&mut card).status, StatusWord::SECURITY_NOT_SATISFIED, "not right before");
    verify(&mut card, PIN);
    verify(&mut card, &[]);
    assert_eq!(sign(&mut card).status, StatusWord::SECURITY_NOT_SATISFIED, "a question is no PIN");
}

#[test]
fn p_256_agrees_with_openssl_on_a_secret() {
    let desk = Desk::new();
    let mine = desk.path("mine.pem");
    let public = desk.path("mine.der");
    let mine = mine.display();
    let public = public.display();
    openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {mine}"))
        .unwrap();
    openssl(&format!("pkey -in {mine} -pubout -outform DER -out {public}")).unwrap();
    let info = std::fs::read(desk.path("mine.der")).unwrap();
    // The point is what a SubjectPublicKeyInfo ends with.
    let point = &info[info.len() - 65..];
    let mut card = verified(card());
    let reply = authenticate(&mut card, 0x11, 0x9D, 0x85, point);
    let secret = response(&reply, work::P256_ECDH);
    let peer = desk.public_key(&folder().join("key_management_9d.der"));
    let expected = desk.path("secret").display().to_string();
    openssl(&format!("pkeyutl -derive -inkey {mine} -peerkey {peer} -out {expected}")).unwrap();
    assert_eq!(secret, std::fs::read(expected).unwrap());

    let mut off_curve = point.to_vec();
    off_curve[64] ^= 1;
    for bad in [&off_curve[..], &point[..64], &point[1..], &[]] {
        let status = authenticate(&mut card, 0x11, 0x9D, 0x85, bad).status;
        assert_eq!(status, StatusWord::WRONG_DATA, "{bad:02X?}");
    }
}

#[test]
fn rsa_decrypts_for_key_management() {
    let desk = Desk::new();
    let public = desk.public_key(&other_folder().join("key_management_9d.der"));
    let plain = desk.put("plain", b"a key");
    let cipher = desk.path("cipher").display().to_string();
    openssl(&format!("pkeyutl -encrypt -pubin -inkey {public} -in {plain} -out {cipher}")).unwrap();
    let block = std::fs::read(cipher).unwrap();
    let reply = authenticate(&mut verified(other_card()), 0x07, 0x9D, 0x81, &block);
    let decrypted = response(&reply, work::RSA2048_PRIVATE);
    assert_eq!(decrypted.len(), 256);
    assert_eq!(decrypted[..2], [0x00, 0x02]);
    assert_eq!(decrypted[250..], *b"\0a key");
}

#[test]
fn what_is_wrong_with_a_challenge_is_said() {
    let mut card = verified(card());
    let block = padded(256);
    let hash = Sha256::digest(MESSAGE);
    let too_large = [0xFF; 256];
    for (algorithm, key, tag, value, status) in [
        // Another algorithm than the key's, no such key, not a key for this command.
        (0x11, 0x9A, 0x81, &block[..], StatusWord::WRONG_PARAMETERS),
        (0x05, 0x9A, 0x81, &block, StatusWord::WRONG_PARAMETERS),
        (0x06, 0x9A, 0x81, &block[..128], StatusWord::WRONG_PARAMETERS),
        (0x07, 0x82, 0x81, &block, StatusWord::WRONG_PARAMETERS),
        (0x07, 0x04, 0x81, &block, StatusWord::WRONG_PARAMETERS),
        // Lengths, and a number that is no residue.
        (0x07, 0x9A, 0x81, &block[1..], StatusWord::WRONG_DATA),
        (0x07, 0x9A, 0x81, &too_large, StatusWord::WRONG_DATA),
        (0x11, 0x9E, 0x81, &[0; 33], StatusWord::WRONG_DATA),
        (0x11, 0x9E, 0x81, &[], StatusWord::WRONG_DATA),
        // A key for signatures does not agree, one for agreement does not sign.
        (0x11, 0x9E, 0x85, &[4; 65], StatusWord::WRONG_DATA),
        (0x11, 0x9D, 0x81, &hash, StatusWord::WRONG_DATA),
        (0x07, 0x9A, 0x85, &block, StatusWord::WRONG_DATA),
        (0x07, 0x9A, 0x80, &block, StatusWord::WRONG_DATA),
    ] {
        let reply = authenticate(&mut card, algorithm, key, tag, value);
        assert_eq!(reply.status, status, "{algorithm:02X} {key:02X} {tag:02X}");
        assert!(reply.work.is_empty());
    }
    for template in [&[][..], &[0x7C], &[0x7C, 0], &[0x7C, 2, 0x82, 0], &[0x81, 1, 0]] {
        let status = send(&mut card, [0x00, 0x87, 0x07, 0x9A], template).status;
        assert_eq!(status, StatusWord::WRONG_DATA, "{template:02X?}");
    }
}

#[test]
fn a_pin_is_needed_before_the_data_is_looked_at() {
    let mut card = card();
    for (algorithm, key) in [(0x07, 0x9A), (0x07, 0x9C), (0x11, 0x9D)] {
        let status = authenticate(&mut card, algorithm, key, 0x81, &[]).status;
        assert_eq!(status, StatusWord::SECURITY_NOT_SATISFIED, "{key:02X}");
    }
}

#[test]
fn nobody_holds_the_card_management_key() {
    let mut card = card();
    let ask = |card: &mut PivApplet, algorithm| {
        send(card, [0x00, 0x87, algorithm, 0x9B], &[0x7C, 2, 0x81, 0])
    };
    let challenge = ask(&mut card, 0x00).data;
    assert_eq!(challenge[..4], [0x7C, 0x0A, 0x81, 0x08]);
    assert_ne!(ask(&mut card, 0x00).data, challenge);
    assert_eq!(ask(&mut card, 0x0A).data.len(), 4 + 16);
    let answer = tlv(0x7C, &tlv(0x82, &[0; 16]));
    let status = send(&mut card, [0x00, 0x87, 0x0A, 0x9B], &answer).status;
    assert_eq!(status, StatusWord::SECURITY_NOT_SATISFIED);
    assert_eq!(ask(&mut card, 0x07).status, StatusWord::WRONG_PARAMETERS);
    let witness = send(&mut card, [0x00, 0x87, 0x0A, 0x9B], &[0x7C, 2, 0x80, 0]).status;
    assert_eq!(witness, StatusWord::WRONG_DATA);
}
