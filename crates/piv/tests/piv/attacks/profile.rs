//! Certificates that are valid and not for this: FIPS 201-3 and the Common Policy's profiles.

use std::sync::Arc;

use der::{Any, Tag};
use rsa::{BigUint, RsaPublicKey};
use tapstone_piv::CertificatePurpose::{
    self, CardAuthentication, ContentSigning, DigitalSignature, KeyManagement, PivAuthentication,
};
use tapstone_piv::{Certificate, Denial, PathDemands, Time};
use x509_cert::ext::pkix::KeyUsages;
use x509_cert::ext::pkix::name::{GeneralName, OtherName};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use crate::support::{
    Ca, DAY, Leaf, NOW, World, attack, basic, days, extended, ia5, key_usage, names as alternative,
    oid, policies, trust,
};

const CLIENT: &str = "1.3.6.1.5.5.7.3.2";
const ANY: &str = "2.5.29.37.0";
const LOGON: &str = "1.3.6.1.4.1.311.20.2.2";
const OCSP: &str = "1.3.6.1.5.5.7.3.9";
const CARD: &str = "2.16.840.1.101.3.6.8";
const CONTENT: &str = "2.16.840.1.101.3.6.7";
const PIV_I_CONTENT: &str = "2.16.840.1.101.3.8.7";

fn world(purpose: CertificatePurpose) -> impl Fn() -> World {
    move || World { purpose: Some(purpose), ..World::new() }
}

/// A change of the leaf's extended key usage; empty: without the extension.
fn for_usages(usages: &'static [&'static str]) -> impl Fn(&mut World) {
    move |world| match usages.is_empty() {
        true => world.leaf.remove(oid("2.5.29.37")),
        false => world.leaf.set(extended(usages)),
    }
}

#[test]
fn extended_key_usages() {
    let slots: [(&str, CertificatePurpose, &[&str], &[&str]); 11] = [
        ("9E in place of 9A", PivAuthentication, &[CARD], &[CLIENT]),
        ("9E and 9A in one", PivAuthentication, &[CLIENT, CARD], &[CLIENT, ANY]),
        ("a content signer in place of 9A", PivAuthentication, &[CONTENT], &[ANY]),
        ("a PIV-I content signer in place of 9A", PivAuthentication, &[PIV_I_CONTENT], &[]),
        ("a responder in place of 9A", PivAuthentication, &[CLIENT, OCSP], &[LOGON]),
        ("9A in place of 9E", CardAuthentication, &[CLIENT], &[CARD]),
        ("9E without its usage", CardAuthentication, &[], &[CARD]),
        ("9E for everything", CardAuthentication, &[ANY], &[CARD]),
        ("9E that signs content", CardAuthentication, &[CARD, CONTENT], &[CARD]),
        ("9E in place of a content signer", ContentSigning, &[CARD], &[PIV_I_CONTENT]),
        ("anybody in place of a content signer", ContentSigning, &[], &[CONTENT]),
    ];
    for (name, purpose, bad, good) in slots {
        attack(name, "usage", world(purpose), for_usages(bad), for_usages(good));
    }
    // The extension is there, and empty.
    let nothing = |w: &mut World| w.leaf.set(extended(&[]));
    for (purpose, good) in [(CardAuthentication, &[CARD]), (ContentSigning, &[CONTENT])] {
        attack("usages without a usage", "usage", world(purpose), nothing, for_usages(good));
    }
}

/// 9A is for logging on, where it says what it is for; 9C may be for mail alone.
#[test]
fn a_key_for_mail_alone() {
    const MAIL: &str = "1.3.6.1.5.5.7.3.4";
    let bad = for_usages(&[MAIL]);
    attack("9A for mail", "usage", world(PivAuthentication), bad, for_usages(&[MAIL, CLIENT]));
    let mut signs = world(DigitalSignature)();
    for_usages(&[MAIL])(&mut signs);
    signs.leaf.set(key_usage(KeyUsages::DigitalSignature | KeyUsages::NonRepudiation));
    assert_eq!(signs.decide(), Ok(Vec::new()));
}

/// What a certificate is for beside, in words.
#[test]
fn the_other_usage_is_named() {
    let said = |purpose, usages| {
        let mut world = world(purpose)();
        for_usages(usages)(&mut world);
        let leaf = Arc::new(Certificate::parse(&world.leaf.der()).unwrap());
        let demands = PathDemands { purpose: Some(purpose), ..PathDemands::default() };
        let refusal = world.trust().unwrap().validate(&leaf, &demands, world.at).unwrap_err();
        let Denial::OtherUsage { purpose, .. } = refusal else { panic!("{refusal}") };
        purpose
    };
    for (usages, name) in [
        (&[CARD][..], "card authentication (id-PIV-cardAuth)"),
        (&[CONTENT], "content signing (id-PIV-content-signing)"),
        (&[PIV_I_CONTENT], "content signing (id-fpki-pivi-content-signing)"),
        (&[OCSP], "signing OCSP answers"),
    ] {
        assert_eq!(said(PivAuthentication, usages), name);
    }
    let other = said(CardAuthentication, &[CARD, CLIENT]);
    assert_eq!(other, format!("the extended key usage {CLIENT}"));
}

#[test]
fn key_usages() {
    let usage = |usage: der::flagset::FlagSet<KeyUsages>| {
        move |world: &mut World| world.leaf.set(key_usage(usage))
    };
    let signature = KeyUsages::DigitalSignature;
    let both = signature | KeyUsages::NonRepudiation;
    let missing = |world: &mut World| world.leaf.remove(oid("2.5.29.15"));
    let card = world(CardAuthentication);
    attack("9E without key usages", "usage", &card, missing, usage(signature.into()));
    attack("9E that commits", "usage", &card, usage(both), usage(signature.into()));
    let enciphers = usage(KeyUsages::KeyEncipherment.into());
    attack("9E that enciphers", "usage", &card, enciphers, usage(signature.into()));
    let plain = |purpose| {
        move || {
            let mut world = world(purpose)();
            world.leaf.remove(oid("2.5.29.37"));
            world
        }
    };
    let signs = plain(DigitalSignature);
    attack("9C that does not commit", "usage", signs, usage(signature.into()), usage(both));
    let agrees = usage(KeyUsages::KeyAgreement.into());
    attack("9D that signs", "usage", plain(KeyManagement), usage(signature.into()), agrees);
    attack(
        "a CA in place of a card",
        "usage",
        &card,
        |world| world.leaf.set(basic(true, None)),
        |world| world.leaf.set(basic(false, None)),
    );
}

/// The policies by mechanism, as a door asks for them without being told.
#[test]
fn usual_policies() {
    let asserting = |policy: &'static str| {
        move |world: &mut World| {
            world.policies = world.purpose.unwrap().usual_policies();
            world.cas[0].set(policies(&["2.5.29.32.0"]));
            match policy {
                "" => {}
                policy => world.leaf.set(policies(&[policy])),
            }
        }
    };
    let common = |last: &str| -> &'static str {
        Box::leak(format!("2.16.840.1.101.3.2.1.3.{last}").into_boxed_str())
    };
    let card = world(CardAuthentication);
    let authentication = || {
        let mut world = world(PivAuthentication)();
        world.leaf.set(extended(&[CLIENT]));
        world
    };
    let signer = || {
        let mut world = world(ContentSigning)();
        world.leaf.set(extended(&[CONTENT]));
        world
    };
    let cases: [(&str, &dyn Fn() -> World, &str, &str); 6] = [
        ("9E under 9A's policy", &card, common("13"), common("17")),
        ("9E under none", &card, "", common("19")),
        ("9E under one for tests", &card, "2.16.840.1.101.3.2.1.48.13", common("17")),
        ("9A under 9E's policy", &authentication, common("17"), common("13")),
        ("9A under a PIV-I card's", &authentication, common("19"), common("18")),
        ("a content signer under a card's", &signer, common("17"), common("39")),
    ];
    for (name, world, bad, good) in cases {
        attack(name, "policy", world, asserting(bad), asserting(good));
    }
}

/// FIPS 201-3, 4.2.2: a certificate says once, and in one way, whose card it is.
#[test]
fn identifiers() {
    let fasc_n = |tag, bytes: &[u8]| {
        let value = Any::new(tag, bytes).unwrap();
        GeneralName::OtherName(OtherName { type_id: oid("2.16.840.1.101.3.6.6"), value })
    };
    let fasc = || fasc_n(Tag::OctetString, &[7; 25]);
    let urn = |text| GeneralName::UniformResourceIdentifier(ia5(text));
    let uuid = || urn("urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
    let other = urn("URN:UUID:f81d4fae-7dec-11d0-a765-00a0c91e6bf7");
    let has = |names: Vec<GeneralName>| move |w: &mut World| w.leaf.set(alternative(names.clone()));
    let good = || has(vec![fasc(), uuid(), urn("http://a.gov/")]);
    let slots = [
        ("two FASC-Ns", vec![fasc(), uuid(), fasc_n(Tag::OctetString, &[8; 25])]),
        ("the same FASC-N twice", vec![fasc(), fasc()]),
        ("a FASC-N that is none, after one that is", vec![fasc(), fasc_n(Tag::Null, &[])]),
        ("a FASC-N of another type", vec![fasc_n(Tag::Utf8String, &[7; 25])]),
        ("a short FASC-N", vec![fasc_n(Tag::OctetString, &[7; 24])]),
        ("a long FASC-N", vec![fasc_n(Tag::OctetString, &[7; 26])]),
        ("two UUIDs", vec![uuid(), other]),
        ("a short UUID", vec![fasc(), urn("urn:uuid:f81d4fae")]),
    ];
    for (name, bad) in slots {
        for purpose in [CardAuthentication, PivAuthentication] {
            let world = || {
                let mut world = World { purpose: Some(purpose), ..World::new() };
                if purpose == PivAuthentication {
                    world.leaf.set(extended(&[CLIENT]));
                }
                world
            };
            attack(name, "bad-identifier", world, has(bad.clone()), good());
        }
    }
}

/// A content signer may commit to what it signs; no card's authentication key may.
#[test]
fn whoever_signs_content_may_commit() {
    let signer = || {
        let mut world = world(ContentSigning)();
        world.leaf.set(extended(&[CONTENT]));
        world
    };
    let usage = |other: KeyUsages| {
        move |w: &mut World| w.leaf.set(key_usage(KeyUsages::DigitalSignature | other))
    };
    let bad = usage(KeyUsages::KeyEncipherment);
    attack(
        "a content signer that enciphers",
        "usage",
        signer,
        bad,
        usage(KeyUsages::NonRepudiation),
    );
}

/// A certificate with an RSA key of this length, which nobody has to have.
fn of_rsa(bits: usize, usage: KeyUsages, at: Time) -> impl Fn(CertificatePurpose) -> String {
    let modulus = BigUint::from_bytes_be(&vec![0xFF; bits / 8]);
    let key = RsaPublicKey::new_unchecked(modulus, 65_537_u32.into());
    let key = SubjectPublicKeyInfoOwned::from_key(key).unwrap();
    let ca = Ca::lasting_root("root");
    let until = Time(at.0 + DAY);
    let extended = None;
    let leaf = Leaf { usage: Some(usage), extended, from: days(-1), until, ..Leaf::of_card() };
    let der = ca.leaf(key, &leaf);
    move |purpose| {
        let certificate = Arc::new(Certificate::parse(&der).unwrap());
        let demands = PathDemands { purpose: Some(purpose), ..PathDemands::default() };
        match trust(&[&ca.der()], None).validate(&certificate, &demands, at) {
            Ok(_) => "granted".to_owned(),
            Err(Denial::Usage { what, .. }) => what,
            Err(refusal) => refusal.code().to_owned(),
        }
    }
}

/// FIPS 201-3, 4.2.2.4 and SP 800-78-5, table 1: 9D deciphers with RSA, and agrees with a curve.
#[test]
fn key_management_by_kind_of_key() {
    assert_eq!(of_rsa(2048, KeyUsages::KeyEncipherment, NOW)(KeyManagement), "granted");
    let lacks = "the key usage keyEncipherment or keyAgreement";
    assert_eq!(of_rsa(2048, KeyUsages::KeyAgreement, NOW)(KeyManagement), lacks);
    let signs = of_rsa(2048, KeyUsages::DigitalSignature, NOW);
    assert_eq!(signs(KeyManagement), lacks);
    assert_eq!(signs(PivAuthentication), "granted");
    let without = of_rsa(2048, KeyUsages::KeyEncipherment, NOW)(PivAuthentication);
    assert_eq!(without, "the key usage digitalSignature");
    let plain = |usage| {
        let mut world = world(KeyManagement)();
        world.leaf.remove(oid("2.5.29.37"));
        world.leaf.set(key_usage(usage));
        world.decide()
    };
    assert_eq!(plain(KeyUsages::KeyEncipherment), Err("usage"));
    assert_eq!(plain(KeyUsages::KeyAgreement), Ok(Vec::new()));
}

/// SP 800-57 part 1, table 4: 2048 bits until the end of 2030, 3072 beyond; 1024 never.
#[test]
fn lengths_of_rsa_keys() {
    let end = Time(1_924_992_000);
    for (bits, at, said) in [
        (1024, NOW, "strength"),
        (2048, NOW, "granted"),
        (2048, Time(end.0 - 1), "granted"),
        (2048, end, "strength"),
        (3072, end, "granted"),
    ] {
        let decided = of_rsa(bits, KeyUsages::DigitalSignature, at)(PivAuthentication);
        assert_eq!(decided, said, "{bits} at {at}");
    }
}

/// What is wrong with an identifier is said.
#[test]
fn a_bad_identifier_is_named() {
    let fasc_n = |bytes: &[u8]| {
        let value = Any::new(Tag::OctetString, bytes).unwrap();
        GeneralName::OtherName(OtherName { type_id: oid("2.16.840.1.101.3.6.6"), value })
    };
    for (names, said) in [
        (vec![fasc_n(&[7; 25]), fasc_n(&[8; 25])], "more than one FASC-N"),
        (vec![fasc_n(&[7; 24])], "a FASC-N that has not 25 bytes"),
        (vec![fasc_n(&[7; 25]), fasc_n(&[7; 26])], "a FASC-N that has not 25 bytes"),
    ] {
        let mut world = world(CardAuthentication)();
        world.leaf.set(alternative(names));
        let leaf = Arc::new(Certificate::parse(&world.leaf.der()).unwrap());
        let purpose = Some(CardAuthentication);
        let demands = PathDemands { purpose, ..PathDemands::default() };
        let refusal = world.trust().unwrap().validate(&leaf, &demands, world.at).unwrap_err();
        let Denial::BadIdentifier { what, .. } = refusal else { panic!("{refusal}") };
        assert_eq!(what, said);
    }
}
