//! Cards that may enter.

use p256::ecdsa::SigningKey;
use rsa::rand_core::OsRng;
use tapstone_piv::{
    AuthenticationMechanism, Certificate, Challenge, Denial, DialogueStep, PolicyRule,
    RelyingSystem, Rules, Strategy, Time,
};
use tapstone_vcard::piv::{CardData, PivAlgorithm, Recipe};

use crate::support::{
    Ca, Files, Leaf, NOW, PLAIN, Plastic, decision, dialogue, generated, relying_system, trust,
};

fn of_generated() -> (Vec<u8>, Plastic) {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    (ca, Plastic::of(generated()))
}

#[test]
fn in_every_strategy_with_the_chuid_s_identifier() {
    let (ca, mut card) = of_generated();
    let chuid = std::fs::read(generated().join("chuid.bin")).unwrap();
    for strategy in Strategy::ALL {
        let mut relying_system = relying_system(&[&ca], None);
        for _ in 0..3 {
            let identity = decision(
                &mut relying_system,
                &mut card,
                AuthenticationMechanism::PkiCak(strategy),
                Time::now(),
            );
            let identity = identity.unwrap();
            assert_eq!(identity.uuid.unwrap(), chuid[29..45], "{strategy}");
            // Agency 9999 is everybody's.
            assert_eq!(identity.fasc_n, None, "{strategy}");
        }
    }
}

#[test]
fn with_every_algorithm_of_piv() {
    for algorithm in
        [PivAlgorithm::Rsa2048, PivAlgorithm::Rsa3072, PivAlgorithm::P256, PivAlgorithm::P384]
    {
        let folder = tempfile::tempdir().unwrap();
        let curve = PivAlgorithm::P256;
        let recipe = Recipe {
            authentication: curve,
            signature: curve,
            card: algorithm,
            ..Recipe::default()
        };
        let path = folder.path().join("card");
        CardData::open_or_generate(&path, &recipe).unwrap();
        let ca = std::fs::read(path.join("ca.der")).unwrap();
        let mut card = Plastic::of(&path);
        let ran = dialogue(&mut relying_system(&[&ca], None), &mut card, PLAIN, Time::now());
        assert!(ran.outcome.unwrap().is_ok(), "{algorithm}");
        let signing = card.commands.iter().filter(|command| command.ins == 0x87);
        let chained: Vec<u8> = signing.map(|command| command.cla).collect();
        match algorithm {
            PivAlgorithm::P256 | PivAlgorithm::P384 => assert_eq!(chained, [0x00], "{algorithm}"),
            _ => assert_eq!(chained, [0x10, 0x00], "{algorithm}"),
        }
    }
}

#[test]
fn through_a_ca_between() {
    let root = Ca::root("root");
    let between = root.ca("between", Some(0));
    let mut card = Files::with(&between, &Leaf::of_card()).card();
    let mut relying_system = relying_system(&[&root.der(), &between.der()], None);
    decision(&mut relying_system, &mut card, PLAIN, NOW).unwrap();
}

/// A certificate without a key identifier names its issuer by name alone.
#[test]
fn without_a_key_identifier() {
    let root = Ca::root("root");
    let leaf = Leaf { authority: false, ..Leaf::of_card() };
    let mut card = Files::with(&root, &leaf).card();
    decision(&mut relying_system(&[&root.der()], None), &mut card, PLAIN, NOW).unwrap();
}

/// CAs keep their name when they get a new key.
#[test]
fn by_the_right_one_of_two_issuers_of_one_name() {
    let old = Ca::root("the name");
    let new = Ca::root("the name");
    for certificates in [[old.der(), new.der()], [new.der(), old.der()]] {
        for ca in [&old, &new] {
            let mut card = Files::with(ca, &Leaf::of_card()).card();
            let certificates = [&certificates[0][..], &certificates[1][..]];
            decision(&mut relying_system(&certificates, None), &mut card, PLAIN, NOW).unwrap();
        }
    }
}

#[test]
fn by_the_signature_of_the_chuid() {
    let (ca, mut card) = of_generated();
    let mut relying_system = relying_system(&[&ca], None);
    decision(&mut relying_system, &mut card, AuthenticationMechanism::Chuid, Time::now()).unwrap();
    assert_eq!(card.count(0x87), 0, "nothing is signed");
}

#[test]
fn every_step_and_every_command_is_timed() {
    let (ca, mut card) = of_generated();
    let log = dialogue(&mut relying_system(&[&ca], None), &mut card, PLAIN, Time::now()).log;
    let steps: Vec<DialogueStep> = log.steps.iter().map(|(step, _)| *step).collect();
    let order = [
        DialogueStep::Select,
        DialogueStep::ReadCertificate,
        DialogueStep::Validate,
        DialogueStep::Challenge,
        DialogueStep::ReadChuid,
    ];
    assert_eq!(steps, order);
    assert_eq!(log.exchanges.len(), card.commands.len());
    for (exchange, command) in log.exchanges.iter().zip(&card.commands) {
        assert_eq!(exchange.header, [command.cla, command.ins, command.p1, command.p2]);
        assert_eq!(exchange.sent as usize, command.encode().len());
        assert!(exchange.received >= 2 && exchange.time.0 > 0);
    }
    for step in order {
        let inside = log.exchanges.iter().filter(|one| one.step == step).map(|one| one.time);
        assert!(log.step(step).unwrap() >= inside.sum(), "{step}");
    }
    assert!(log.exchanges.iter().all(|one| one.step != DialogueStep::Validate));
}

#[test]
fn no_challenge_comes_twice() {
    let key = SigningKey::random(&mut OsRng);
    let files = Files::new();
    let ca = Ca::root("root");
    files.issue(&ca, &Leaf::of_card());
    let certificate = Certificate::parse(&files.get("card_authentication_9e.der")).unwrap();
    let mut relying_system = relying_system(&[&ca.der()], None);
    let mut card = files.card();
    for _ in 0..20 {
        decision(&mut relying_system, &mut card, PLAIN, NOW).unwrap();
    }
    let sent: std::collections::BTreeSet<Vec<u8>> =
        card.commands.iter().filter(|one| one.ins == 0x87).map(|one| one.data.clone()).collect();
    assert_eq!(sent.len(), 20);
    // An answer to one of them is none to another.
    let challenge = Challenge::new(certificate.key().unwrap()).unwrap();
    let signature: p256::ecdsa::DerSignature = p256::ecdsa::signature::Signer::sign(&key, b"other");
    assert!(!challenge.is_answered_by(certificate.key().unwrap(), &signature.to_bytes()));
}

#[test]
fn under_the_policy_that_was_asked_for() {
    let policy = tapstone_piv::CARD_AUTHENTICATION_POLICY;
    let other = der::asn1::ObjectIdentifier::new_unwrap("1.2.3.4");
    let root = Ca::root("root");
    let decide = |between: &Ca, asserted: Vec<der::asn1::ObjectIdentifier>| {
        let leaf = Leaf { policies: asserted, ..Leaf::of_card() };
        let mut card = Files::with(between, &leaf).card();
        let rules = Rules { policies: PolicyRule::One(policy), ..Rules::default() };
        let trust = trust(&[&root.der(), &between.der()], None);
        decision(&mut RelyingSystem::new(trust, rules), &mut card, PLAIN, NOW)
    };
    let all = root.ca_with("all", None, &[policy], &[]);
    assert!(decide(&all, vec![policy]).is_ok());
    assert!(matches!(decide(&all, vec![other]), Err(Denial::Policy { .. })));
    assert!(matches!(decide(&all, vec![]), Err(Denial::Policy { .. })));
    let none = root.ca("none", None);
    assert!(matches!(decide(&none, vec![policy]), Err(Denial::Policy { .. })));
    let any = der::asn1::ObjectIdentifier::new_unwrap("2.5.29.32.0");
    let any = root.ca_with("any", None, &[any], &[]);
    assert!(decide(&any, vec![policy]).is_ok());
    // Below this CA the policy has another name.
    let mapped = root.ca_with("mapped", None, &[policy], &[(policy, other)]);
    assert!(decide(&mapped, vec![other]).is_ok());
    assert!(matches!(decide(&mapped, vec![policy]), Err(Denial::Policy { .. })));
}
