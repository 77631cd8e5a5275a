//! Each judge takes a right answer that OpenSSL or a standard made, and no other.

use super::*;
use crate::suite::file::InputText;
use crate::suite::material::Maker;

/// The keys of `suites/card-bench.toml`, a P-256 key of RFC 6979, A.2.5, and what the point of
/// another one was sent for.
fn value(name: &str) -> Option<Vec<u8>> {
    let text = match name {
        "des" => "f462a7eac78ffedcda0298cb5db9d3e5",
        "aes128" => "19d9634a9d745f0157f0bde661e11619",
        "aes256" => "da9b7791762e2e2200797c0043e5f0c7127f1e6ce638f6b7ab608dc71885a34f",
        "rfc6979" => "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721",
        "p256" => OWN,
        "rsa_p" => {
            "d166579f380b03c7645d831312d3238a962c57722507ec8c75436eacd6fd6c4b40cee041b3b2d376066d95\
             807637835d17f846534ac3d4811027d4733b5fdc73"
        }
        "rsa_q" => {
            "ca2be8016cadb851b5ed62cfa29b37fe81cadc130c64e80f24ec121dca56f598b8512a8189be076c4f852d\
             7b75b49beda2234d9056ab8a54bc6e918ba81a2693"
        }
        _ => return None,
    };
    Some(hex(text))
}

/// A private value whose certificate is [`CERTIFICATE`].
const OWN: &str = "dac1b9c8b7dcf1ebcec811ca142c1dc39f85e8e1e2b90f91ff42fca6c3269762";

/// `openssl req -x509` for that key.
const CERTIFICATE: &str = "
    3082016f30820115a00302010202144de6d8b09dd50ec19cea861f0a91bcea36bc6b04300a06082a8648ce3d040302
    300c310a300806035504030c01743020170d3236313132313134353633375a180f3231323631303238313435363337
    5a300c310a300806035504030c01743059301306072a8648ce3d020106082a8648ce3d030107034200043a0d100151
    b6e407182a75f57276f79a41eb5c8fa8ea0a197a0afac4f4d6518e1be458cbbfdebcbff67d22905dc9ab4237745085
    b87d5b7d412dc7aab0256d59a3533051301d0603551d0e04160414c00fa5540d64d91cfaec051aece122c1b2484b86
    301f0603551d23041830168014c00fa5540d64d91cfaec051aece122c1b2484b86300f0603551d130101ff04053003
    0101ff300a06082a8648ce3d0403020348003045022022aa480035429b8e728f9340730df69fbda8130e83ce5a2c71
    67f05b833aadb70221008ea15360929d65b40b18b382f187d047e82d90cac04af3c520ba5688383ad824";

/// Another key pair, and what it shares with [`OWN`]: `openssl pkeyutl -derive`.
const THEIRS: &str = "55a4586deb70ee66af987067c8d65c7d003f38763fec8ce9331d21225a250e7d";
const POINT: &str = "04e346742e4c462f1770a8f68dd890f54675e250815512a80882e6552c58a29516c1eb79d95539
    6cb3c00acb495749ee682977a6f0f8a1a9ee26a0348387455bd1";
const SHARED: &str = "6532d1b13213ba5710e640ae94442c2a7c16874935513e014f5605a351b9adeb";

/// `openssl dgst -sha256 -sign` of `abc` by [`OWN`].
const SIGNATURE: &str = "3046022100fbe3972df060bc59265512f9e12d8bb6625ab2763a08a1907584262bc77d1b
    2b022100958da3d9e5e65a6100519db59e3e15a215f5c017406131cb3bc9245e2adcb630";

/// SHA-256 and SHA-1 of `abc`: FIPS 180-4, the first examples.
const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const SHA1: &str = "a9993e364706816aba3e25717850c26c9cd0d89d";

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text.split_whitespace().collect::<String>()).unwrap()
}

fn answer(is: &str, key: Option<&str>) -> Answer {
    let text = AnswerText {
        is: is.to_owned(),
        key: key.map(str::to_owned),
        bytes: Some(3),
        digest: Some(SHA256.to_owned()),
    };
    Answer::from_text(&text, value).unwrap()
}

/// The judge's word on this answer, one that differs in its last bit, and none at all.
#[track_caller]
fn judges(answer: &Answer, input: &[u8], plain: &[u8], right: &[u8]) {
    let material = Material { input: input.to_vec(), plain: plain.to_vec() };
    let template = |tag: u8, content: &[u8]| tlv::element(tag, content);
    let object = template(0x53, &template(0x70, &hex(CERTIFICATE)));
    let saved = [("certificate".to_owned(), object)];
    let point = Point { bytes: 0, set_ups: 1, operations: 1 };
    let judge = |output: &[u8]| {
        answer.judge(SeenAnswer { material: &material, point, output, saved: &saved })
    };
    assert_eq!(judge(right), Some(true), "{answer:?}");
    let mut wrong = right.to_vec();
    match wrong.last_mut() {
        Some(last) => *last ^= 1,
        None => wrong.push(0),
    }
    assert_eq!(judge(&wrong), Some(false), "{answer:?}");
    if !right.is_empty() {
        assert_eq!(judge(&[]), Some(false), "{answer:?}");
    }
    // After no operation on the card there is no answer.
    let none = Point { operations: 0, ..point };
    let seen = |output| SeenAnswer { material: &material, point: none, output, saved: &saved };
    assert_eq!(answer.judge(seen(&[])), Some(true));
    assert_eq!(answer.judge(seen(&[0])), Some(false));
}

#[test]
fn bytes_as_they_were() {
    judges(&answer("input", None), b"abc", b"xyz", b"abc");
    judges(&answer("plain-text", None), b"abc", b"xyz", b"xyz");
    judges(&answer("empty", None), b"abc", b"xyz", b"");
    judges(&answer("digest", None), b"", b"", b"abc");
}

#[test]
fn lengths() {
    let material = Material { input: b"abcd".to_vec(), plain: Vec::new() };
    let point = Point { bytes: 4, set_ups: 1, operations: 1 };
    for (is, right, wrong) in
        [("length", &b"xyz"[..], &b"wxyz"[..]), ("length-of-input", b"wxyz", b"xyz")]
    {
        let judge = |output| {
            answer(is, None).judge(SeenAnswer { material: &material, point, output, saved: &[] })
        };
        assert_eq!((judge(right), judge(wrong)), (Some(true), Some(false)), "{is}");
    }
}

#[test]
fn hashes() {
    judges(&answer("sha1", None), b"abc", b"", &hex(SHA1));
    judges(&answer("sha256", None), b"abc", b"", &hex(SHA256));
}

#[test]
fn ciphers() {
    // `openssl enc -des-ede-cbc -nopad` of the input, a byte 80 and five of 00.
    let cipher_text = hex("6c5430cfaed6d8dd47588e7e5ad122da");
    judges(&answer("3des-m2", Some("des")), b"abcdefghij", b"", &cipher_text);
    // `openssl enc -aes-128-cbc -nopad`, `-aes-256-cbc`.
    let cipher_text = hex("8ed80174e3388e0a727332b75a2db83a");
    judges(&answer("aes-cbc", Some("aes128")), b"abcdefghijklmnop", b"", &cipher_text);
    let cipher_text = hex("d811a878ff13558b96aaefc96494b25b");
    judges(&answer("aes-cbc", Some("aes256")), b"abcdefghijklmnop", b"", &cipher_text);
}

#[test]
fn signatures() {
    // RFC 6979, A.2.5, "sample" with SHA-256.
    let rfc6979 = hex("3046022100efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716
         022100f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8");
    judges(&answer("ecdsa-sha256", Some("rfc6979")), b"sample", b"", &rfc6979);
    judges(&answer("ecdsa-sha256", Some("p256")), b"abc", b"", &hex(SIGNATURE));
    // `openssl dgst -sha1 -sign` by the key of these primes.
    let rsa = hex(
        "637441c38091555a49c918ad79581c17b5f71e8e886d77d313c0df2d67a870a2241ffebf4fb87746e21363eb27
         8cabd00e7f1f72836051399e6f530bdbba8bfeeaffd8d9be131012b88fbe81770b31364861a17e02fdfa4e60cd
         a206262cf00486de5266bbd524063f84271d3a5f456b874c25b5632393988f09f5839cce4d76",
    );
    judges(&answer("rsa-sha1", Some("rsa")), b"abc", b"", &rsa);
}

#[test]
fn agreements() {
    judges(&answer("ecdh-x", Some("p256")), &hex(POINT), b"", &hex(SHARED));
    let sha1 = Sha1::digest(hex(SHARED));
    judges(&answer("ecdh-sha1", Some("p256")), &hex(POINT), b"", &sha1);
    // RFC 5903, 8.1: both ends of the exchange agree on the x-coordinate.
    let text = InputText {
        make: "p256-point".to_owned(),
        bytes: None,
        key: None,
        program: None,
        seal: None,
        algorithm: None,
    };
    let point = Maker::from_text(&text, value).unwrap().make(0, 1).unwrap().input;
    judges(&answer("p256-point", None), b"", b"", &point);
}

#[test]
fn answers_of_a_piv_card() {
    let response = |value: &[u8]| tlv::element(0x7C, &tlv::element(0x82, value));
    let signature = response(&hex(SIGNATURE));
    judges(&answer("piv-signature", Some("certificate")), b"", &hex(SHA256), &signature);
    let shared = response(&hex(SHARED));
    judges(&answer("piv-agreement", Some("certificate")), b"", &hex(THEIRS), &shared);
    // Without its certificate a key cannot be judged, which is not the same as wrong.
    let material = Material { input: Vec::new(), plain: hex(SHA256) };
    let point = Point { bytes: 0, set_ups: 1, operations: 1 };
    let seen = SeenAnswer { material: &material, point, output: &signature, saved: &[] };
    assert_eq!(answer("piv-signature", Some("certificate")).judge(seen), None);
}

#[test]
fn judges_want_their_keys() {
    let of = |is: &str, key: Option<&str>| {
        let text = AnswerText {
            is: is.to_owned(),
            key: key.map(str::to_owned),
            bytes: None,
            digest: Some("x".to_owned()),
        };
        Answer::from_text(&text, value).unwrap_err()
    };
    assert_eq!(of("aes-cbc", None), "key is missing");
    assert_eq!(of("aes-cbc", Some("nothing")), "values has no nothing");
    assert_eq!(of("3des-m2", Some("aes256")), "aes256 has 32 bytes, not one of [16]");
    assert_eq!(of("ecdsa-sha256", Some("aes128")), "aes128 is no private key of P-256");
    assert_eq!(of("length", None), "bytes is missing");
    assert!(of("digest", None).starts_with("digest: "));
}
