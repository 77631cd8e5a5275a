//! What the catalogue promises: its names, what a selector means, which sizes are possible.

use super::*;

fn names(selector: &str) -> Vec<String> {
    let chosen = Catalogue::builtin().select(selector).unwrap();
    chosen.into_iter().map(|variant| variant.name).collect()
}

fn only(name: &str) -> Variant {
    let mut chosen = Catalogue::builtin().select(name).unwrap();
    assert_eq!(chosen.len(), 1, "{name}");
    chosen.remove(0)
}

#[test]
fn the_catalogue() {
    let mut text = String::new();
    for variant in Catalogue::builtin().variants() {
        let Variant { name, mechanism, message_bytes, description, .. } = variant;
        let mechanism = mechanism.map_or("-", Mechanism::name);
        let suite = if variant.in_default_suite { "*" } else { " " };
        text +=
            &format!("{suite} {name:<28} {mechanism:<28} {message_bytes:>4} B  {description}\n");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn names_are_unique_and_a_short_name_precedes_its_variants() {
    let variants = Catalogue::builtin().variants();
    for (place, variant) in variants.iter().enumerate() {
        assert!(variants[..place].iter().all(|other| other.name != variant.name));
        if let Some((stem, _)) = variant.name.rsplit_once('.').filter(|(s, _)| s.contains('.')) {
            assert!(variants[..place].iter().any(|other| other.name == stem), "{}", variant.name);
        }
    }
}

#[test]
fn a_selector_means_one_name_or_a_name_and_its_variants() {
    assert_eq!(names("rsa2048.sign"), ["rsa2048.sign"]);
    assert_eq!(
        names("rsa2048.sign.*"),
        [
            "rsa2048.sign",
            "rsa2048.sign.pkcs1-sha256",
            "rsa2048.sign.pss",
            "rsa2048.sign.pss-sha256"
        ]
    );
    assert_eq!(names("aes128-cbc.*").len(), 4);
    assert_eq!(names("*").len(), Catalogue::builtin().variants().len() - 1);
    assert!(!names("*").contains(&"login".to_owned()));
    assert_eq!(names("login"), ["login"]);
}

#[test]
fn an_unknown_name_gets_the_nearest_ones() {
    let error = |name| Catalogue::builtin().select(name).unwrap_err().to_string();
    insta::assert_snapshot!(
        ["rsa2048.sing", "ecdsa-p256", "RSA2048.sign.psss", "teleport", "rsa2048.verify.*"]
            .map(error)
            .join("\n\n")
    );
}

#[test]
fn sizes_are_possible_or_explained() {
    let sized = |name, bytes| only(name).with_message_bytes(bytes);
    assert_eq!(sized("aes128-gcm.encrypt", 17).unwrap().message_bytes, 17);
    assert_eq!(sized("sha256.digest", 1).unwrap().message_bytes, 1);
    assert!(sized("rsa2048.sign", 32).is_ok(), "the size that it has");
    let complaints = [
        sized("rsa2048.sign", 64),
        sized("aes128-cbc.encrypt", 17),
        sized("3des-cbc.decrypt", 4),
        sized("random", 0),
        sized("sha256.digest", MAX_MESSAGE_BYTES + 1),
    ];
    insta::assert_snapshot!(complaints.map(|result| result.unwrap_err().to_string()).join("\n\n"));
}

#[test]
fn buffers_hold_the_longest_answer() {
    let cases = [
        ("rsa2048.sign", 256),
        ("rsa4096.decrypt", 512),
        ("ecdsa-p521.sign", 132),
        ("aes128-gcm.encrypt", 1040),
        ("aes128-gcm.decrypt", 1040),
        ("ecdh-p384.derive", 48),
        ("ml-dsa-65.sign", 3309),
        ("ml-kem-768.encapsulate", 1088),
        ("aes256.wrap.pad", 48),
        ("random", 32),
    ];
    for (name, bytes) in cases {
        assert_eq!(only(name).output_capacity_bytes(), bytes, "{name}");
    }
}

#[test]
fn a_variant_travels_unchanged() {
    for variant in Catalogue::builtin().variants() {
        let wire = postcard::to_stdvec(variant).unwrap();
        assert_eq!(&postcard::from_bytes::<Variant>(&wire).unwrap(), variant);
    }
}

#[test]
fn the_default_suite_is_at_most_a_page() {
    let suite = Catalogue::builtin().default_suite();
    assert!(suite.cases.len() <= 23);
    let marked = Catalogue::builtin().variants().iter().filter(|v| v.in_default_suite).count();
    assert_eq!(marked, suite.cases.len());
}

#[test]
fn claims_can_ask_for_the_length_of_a_key() {
    let cases = [("rsa3072.sign", Some(3072)), ("ecdsa-p521.sign", Some(521)), ("random", None)];
    for (name, bits) in cases {
        assert_eq!(only(name).key_bits(), bits, "{name}");
    }
}
