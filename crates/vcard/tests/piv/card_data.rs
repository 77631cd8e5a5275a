//! Card data: what is generated, judged by OpenSSL; folders, files, and what can be wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tapstone_apdu::{StatusWord, tlv};
use tapstone_vcard::piv::{CardData, CardDataError, CertificateStorage, PivApplet, Recipe};

use crate::support::{Desk, card, folder, get_data, openssl, other_folder, other_recipe, verify};

const KEYS: [&str; 4] = [
    "piv_authentication_9a",
    "digital_signature_9c",
    "key_management_9d",
    "card_authentication_9e",
];

fn text(certificate: &Path) -> String {
    openssl(&format!("x509 -inform DER -in {} -noout -text", certificate.display())).unwrap()
}

/// The CA's certificate, PEM.
fn ca(desk: &Desk, folder: &Path) -> String {
    let der = folder.join("ca.der");
    let pem = desk.path("ca.pem").display().to_string();
    openssl(&format!("x509 -inform DER -in {} -out {pem}", der.display())).unwrap();
    pem
}

#[test]
fn certificates_are_the_ca_s_and_of_the_keys() {
    let desk = Desk::new();
    for folder in [folder(), other_folder()] {
        let ca = ca(&desk, folder);
        for name in KEYS {
            let der = folder.join(name).with_extension("der");
            let key = folder.join(name);
            let der = der.display();
            let key = key.with_extension("p8");
            let pem = desk.path("card.pem").display().to_string();
            openssl(&format!("x509 -inform DER -in {der} -out {pem}")).unwrap();
            openssl(&format!("verify -x509_strict -CAfile {ca} {pem}")).unwrap();
            let certified = openssl(&format!("x509 -in {pem} -noout -pubkey")).unwrap();
            let key = key.display();
            let public = openssl(&format!("pkey -inform DER -in {key} -pubout")).unwrap();
            assert_eq!(certified, public, "{name}");
        }
    }
}

#[test]
fn certificates_say_what_the_keys_are_for() {
    let of = |name: &str| text(&folder().join(name).with_extension("der"));
    let authentication = of(KEYS[0]);
    assert!(authentication.contains("Public-Key: (2048 bit)"), "{authentication}");
    assert!(authentication.contains("Microsoft Smartcard Login"), "{authentication}");
    let card = of(KEYS[3]);
    let purpose = "X509v3 Extended Key Usage: critical\n                2.16.840.1.101.3.6.8\n";
    assert!(card.contains(purpose), "{card}");
    assert!(card.contains("NIST CURVE: P-256"), "{card}");
    for named in [&authentication, &card] {
        assert!(named.contains("othername: 2.16.840.1.101.3.6.6"), "{named}");
        assert!(named.contains("URI:urn:uuid:"), "{named}");
        assert!(named.contains("Policy: 2.16.840.1.101.3.2.1.48."), "{named}");
    }
    assert!(of(KEYS[1]).contains("Digital Signature, Non Repudiation"));
    assert!(of(KEYS[2]).contains("Key Agreement"));
    assert!(text(&other_folder().join("key_management_9d.der")).contains("Key Encipherment"));
}

#[test]
fn chuid_and_security_object_are_signed() {
    for folder in [folder(), other_folder()] {
        let desk = Desk::new();
        let ca = ca(&desk, folder);
        let chuid = fs::read(folder.join("chuid.bin")).unwrap();
        // 30 19 FASC-N, 34 10 GUID, 35 08 date, 3E 82 length, signature, FE 00.
        let (plain, rest) = chuid.split_at(27 + 18 + 10);
        assert_eq!(rest[..2], [0x3E, 0x82]);
        let (signature, end) = rest[4..].split_at(rest.len() - 4 - 2);
        assert_eq!(end, [0xFE, 0x00]);
        let signature = desk.put("chuid.p7", signature);
        let content = desk.put("chuid", &[plain, end].concat());
        let signer = desk.path("signer.pem").display().to_string();
        let verify = |signature: &str, more: &str| {
            openssl(&format!(
                "cms -verify -binary -inform DER -in {signature} -CAfile {ca} -purpose any {more}"
            ))
        };
        verify(&signature, &format!("-content {content} -signer {signer}")).unwrap();
        let changed = desk.put("changed", &[&plain[1..], end].concat());
        assert!(verify(&signature, &format!("-content {changed}")).is_none());
        let purpose = openssl(&format!("x509 -in {signer} -noout -ext extendedKeyUsage")).unwrap();
        assert!(purpose.contains("2.16.840.1.101.3.6.7"), "{purpose}");

        let object = fs::read(folder.join("security_object.bin")).unwrap();
        let mapping = "BA09013000023001036050BB82";
        assert_eq!(hex::encode_upper(&object[..13]), mapping);
        let signature = desk.put("security.p7", &object[15..object.len() - 2]);
        let signed = desk.path("hashes").display().to_string();
        verify(&signature, &format!("-certfile {signer} -out {signed}")).unwrap();
        let parsed = openssl(&format!("asn1parse -inform DER -in {signed}")).unwrap();
        for file in ["chuid.bin", "printed_information.bin", "discovery.bin"] {
            let file = folder.join(file).display().to_string();
            let digest = openssl(&format!("dgst -sha256 -r {file}")).unwrap();
            assert!(parsed.contains(&digest[..64].to_uppercase()), "{file}: {parsed}");
        }
    }
}

#[test]
fn secrets_are_their_owner_s_and_the_folder_too() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder()), 0o700);
    for secret in ["piv_authentication_9a.p8", "ca.p8", "pin", "puk"] {
        assert_eq!(mode(&folder().join(secret)), 0o600, "{secret}");
    }
    let siblings = fs::read_dir(folder().parent().unwrap()).unwrap().count();
    assert_eq!(siblings, 1, "nothing is left of making it");
}

#[test]
fn processes_that_generate_at_once_get_the_same_card() {
    let desk = Desk::new();
    let path = desk.path("below").join("card");
    // An empty folder is as good as none.
    fs::create_dir_all(&path).unwrap();
    // Curve keys only: this is about the folder.
    let recipe = Recipe {
        authentication: tapstone_vcard::piv::PivAlgorithm::P256,
        signature: tapstone_vcard::piv::PivAlgorithm::P384,
        ..Recipe::default()
    };
    let chuids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let card_data = CardData::open_or_generate(&path, &recipe).unwrap();
                    get_data(&mut PivApplet::new(card_data), &[0x5F, 0xC1, 0x02]).data
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(chuids.iter().all(|chuid| *chuid == chuids[0]));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_card_that_is_there_is_used_again_or_refused() {
    for recipe in [other_recipe(), Recipe::default()] {
        CardData::open_or_generate(other_folder(), &recipe).unwrap();
    }
    let error = CardData::open_or_generate(folder(), &other_recipe()).unwrap_err().to_string();
    assert!(error.contains("9A has rsa2048, not p384"), "{error}");
    let wanted = Recipe { chuid_bytes: Some(2000), ..Recipe::default() };
    let error = CardData::open_or_generate(folder(), &wanted).unwrap_err().to_string();
    assert!(error.contains("not 2000\nhint:"), "{error}");
}

/// Curve keys only: this is about certificates.
fn with_certificates(bytes: Option<usize>, certificates: CertificateStorage) -> Recipe {
    let p256 = tapstone_vcard::piv::PivAlgorithm::P256;
    Recipe {
        authentication: p256,
        signature: p256,
        certificate_bytes: bytes,
        certificates,
        ..Recipe::default()
    }
}

/// What GET DATA answers for the certificate of 9E.
fn certificate_object(path: &Path, recipe: &Recipe) -> Vec<u8> {
    let card_data = CardData::open_or_generate(path, recipe).unwrap();
    get_data(&mut PivApplet::new(card_data), &[0x5F, 0xC1, 0x01]).data
}

#[test]
fn a_certificate_has_the_bytes_that_are_asked_for_and_is_valid() {
    for bytes in [800, 1314, 1517] {
        let desk = Desk::new();
        let path = desk.path("card");
        let recipe = with_certificates(Some(bytes), CertificateStorage::Plain);
        certificate_object(&path, &recipe);
        let certificate = path.join("card_authentication_9e.der");
        assert_eq!(fs::read(&certificate).unwrap().len(), bytes);
        let pem = |der: &Path| openssl(&format!("x509 -inform DER -in {}", der.display())).unwrap();
        let ca = desk.put("ca.pem", pem(&path.join("ca.der")).as_bytes());
        let leaf = desk.put("leaf.pem", pem(&certificate).as_bytes());
        let verified = openssl(&format!("verify -CAfile {ca} {leaf}"));
        assert!(verified.is_some_and(|said| said.contains(": OK")), "{bytes}");
        let other = with_certificates(Some(bytes + 1), CertificateStorage::Plain);
        let error = CardData::open_or_generate(&path, &other).unwrap_err().to_string();
        assert!(error.contains("the certificate of 9E has"), "{error}");
    }
    let short = with_certificates(Some(100), CertificateStorage::Plain);
    assert!(CardData::generate(&short).is_err());
}

/// SP 800-73-5 part 1, appendix A: 70 with gzip, 71 with CertInfo 01. gzip itself is the judge.
#[test]
fn a_compressed_certificate_is_the_same_in_fewer_bytes() {
    let desk = Desk::new();
    let path = desk.path("card");
    let plain = certificate_object(&path, &with_certificates(None, CertificateStorage::Plain));
    let packed = certificate_object(&path, &with_certificates(None, CertificateStorage::Gzip));
    assert!(packed.len() < plain.len(), "{} {}", packed.len(), plain.len());
    let elements = tlv::elements(tlv::only(0x53, &packed).unwrap()).unwrap();
    assert_eq!((elements[1].0, elements[1].1), (0x71, &[0x01][..]));
    let file = desk.put("certificate.gz", elements[0].1);
    let unpacked = std::process::Command::new("gzip").args(["-dc", &file]).output().unwrap();
    assert_eq!(unpacked.stdout, fs::read(path.join("card_authentication_9e.der")).unwrap());
}

#[test]
fn a_length_that_no_chuid_has_is_refused() {
    for wanted in [100, 2913] {
        let recipe = Recipe { chuid_bytes: Some(wanted), ..Recipe::default() };
        let error = CardData::generate(&recipe).unwrap_err();
        assert!(matches!(error, CardDataError::ChuidLength { .. }), "{error}");
    }
}

#[test]
fn a_file_holds_what_a_folder_holds() {
    let desk = Desk::new();
    let hex_of = |name: &str| hex::encode(fs::read(folder().join(name)).unwrap());
    let chuid = hex_of("chuid.bin");
    let (first, second) = chuid.split_at(500);
    let path = desk.put(
        "card.toml",
        format!(
            "pin = \"999999\"\n[files]\n\"chuid.bin\" = '''\n{first}\n{second}\n'''\n\
             \"card_authentication_9e.p8\" = \"{}\"\n",
            hex_of("card_authentication_9e.p8")
        )
        .as_bytes(),
    );
    let mut from_file = PivApplet::new(CardData::open(Path::new(&path)).unwrap());
    let tag = [0x5F, 0xC1, 0x02];
    assert_eq!(get_data(&mut from_file, &tag).data, get_data(&mut card(), &tag).data);
    assert_eq!(get_data(&mut from_file, &[0x7E]).status, StatusWord::NOT_FOUND);
    assert_eq!(verify(&mut from_file, b"999999\xFF\xFF"), StatusWord::OK);
}

#[test]
fn what_is_wrong_is_named_with_a_hint_and_without_secrets() {
    let desk = Desk::new();
    let error_of = |name: &str| {
        let error = CardData::open(&desk.path(name)).unwrap_err().to_string();
        assert!(error.contains("\nhint: "), "{error}");
        error
    };
    assert!(error_of("nothing").contains("cannot read"));
    fs::create_dir(desk.path("empty")).unwrap();
    assert!(error_of("empty").contains("no object and no key"));
    for (name, file, content, said) in [
        ("a", "chuid.der", &b"x"[..], "a/chuid.der is no object"),
        ("b", "card_authentication_9e.p8", b"hunter2", "9e.p8 is no private key"),
        ("c", "pin", b"777", "c/pin does not hold a pin"),
        ("d", "puk", b"longer than 8", "d/puk does not hold a puk"),
        ("e", "facial_image.bin", &[0; 70_000], "has 70000 bytes"),
    ] {
        fs::create_dir(desk.path(name)).unwrap();
        desk.put(&format!("{name}/discovery.bin"), &[0x7E, 0]);
        desk.put(&format!("{name}/{file}"), content);
        let error = error_of(name);
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("777") && !error.contains("hunter2"), "{error}");
    }
    for (content, said) in [
        (&b"pin = 777777\n"[..], "line 1: invalid type"),
        (b"\n[files]\n\"chuid.bin\" = \"zz\"\n", "chuid.bin is not hex"),
        (b"[files]\nchuid = \"00\"\n", "card.toml/chuid is no object"),
        (b"pain = \"777777\"\n", "unknown field"),
    ] {
        desk.put("card.toml", content);
        let error = error_of("card.toml");
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("\"777777\""), "{error}");
    }
}
