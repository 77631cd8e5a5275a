//! What a door does before a card comes, and that it does no more than that.

use std::process::Command;
use std::time::Duration;

use tapstone_measure::units::Nanos;
use tapstone_piv::{
    AuthenticationMechanism, Certificate, CommandLengths, DialogueStep, IssuerSource, KeptCrl,
    PivPin, PolicyRule, RelyingSystem, Rules, Strategy, Time, Trust,
};

use crate::support::{
    Ca, Files, Leaf, ListSpec, NOW, Plastic, crl, crl_number, dialogue, generated, key,
    relying_system, rules, trust,
};

const KNOWN: AuthenticationMechanism = AuthenticationMechanism::PkiCak(Strategy::KnownCard);
const MEANWHILE: AuthenticationMechanism =
    AuthenticationMechanism::PkiCak(Strategy::KnownCardOverlap);
const BACKGROUND: AuthenticationMechanism =
    AuthenticationMechanism::PkiCak(Strategy::BackgroundValidation);

fn hours(number: u64) -> Time {
    Time(NOW.0 + number * 3600)
}

#[test]
fn a_card_is_known_after_a_preparation() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    for way in [KNOWN, MEANWHILE] {
        let mut door = relying_system(&[&ca.der()], None);
        let mut card = files.card();
        door.prepare(&mut card, way, NOW).unwrap();
        // Nobody is known yet, so that nothing is asked of the CHUID beforehand: one SELECT.
        assert_eq!(card.count(0xA4), 1);
        let ran = door.authenticate(&mut card, way, None, NOW);
        assert!(!ran.fell_back && ran.outcome.unwrap().is_ok());
        card.commands.clear();
        door.prepare(&mut card, way, NOW).unwrap();
        assert!(card.commands.is_empty(), "it is known");
    }
}

#[test]
fn a_certificate_is_checked_once_beforehand() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut door = relying_system(&[&ca.der()], None);
    let mut card = files.card();
    door.prepare(&mut card, BACKGROUND, NOW).unwrap();
    assert!(!card.commands.is_empty());
    card.commands.clear();
    door.prepare(&mut card, BACKGROUND, NOW).unwrap();
    assert!(card.commands.is_empty(), "it is checked");
}

/// A check may be a day old. Half a day later the background makes it anew, without the card, and
/// no sooner.
#[test]
fn checks_that_grow_old_are_made_anew() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let is_as_young = |prepared: u64, asked: u64| {
        let mut door = relying_system(&[&ca.der()], None);
        door.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
        let mut card = files.card();
        door.prepare(&mut card, BACKGROUND, hours(prepared)).unwrap();
        assert!(card.commands.is_empty());
        let ran = door.authenticate(&mut card, BACKGROUND, None, hours(asked));
        assert!(ran.outcome.unwrap().is_ok());
        !ran.fell_back
    };
    assert!(is_as_young(13, 24) && is_as_young(13, 37));
    assert!(!is_as_young(13, 38));
    assert!(is_as_young(12, 24) && !is_as_young(12, 25), "half as old as it may be is young");
}

/// Every card has a check of its own.
#[test]
fn several_cards_are_checked_beforehand() {
    let ca = Ca::root("root");
    let cards = [7, 8, 9].map(|serial| Files::with(&ca, &Leaf { serial, ..Leaf::of_card() }));
    let mut door = relying_system(&[&ca.der()], None);
    for first in [true, false] {
        for files in &cards {
            let ran = door.authenticate(&mut files.card(), BACKGROUND, None, NOW);
            assert_eq!(ran.fell_back, first);
            assert!(ran.outcome.unwrap().is_ok());
        }
    }
}

/// A delta is valid for an hour, and its list for ten days: so long is a check that rests on both.
#[test]
fn a_check_ends_with_the_first_of_its_lists() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let door = |with_delta: bool| {
        let list = |number, until| {
            let mut list = ListSpec::new("CN=root,O=Tests", 3, number, &[99]);
            list.until = hours(until);
            list
        };
        let delta = list(2, 1).with(crl_number("2.5.29.27", 1));
        let mut lists = vec![by(&ca, &list(1, 240))];
        lists.extend(with_delta.then(|| by(&ca, &delta)));
        let mut door = relying_system(&[&ca.der()], Some(&lists));
        door.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
        door
    };
    for (with_delta, at, fell_back) in
        [(true, hours(1), false), (true, hours(2), true), (false, hours(2), false)]
    {
        let ran = door(with_delta).authenticate(&mut files.card(), BACKGROUND, None, at);
        assert_eq!(ran.fell_back, fell_back, "{at}");
        assert!(ran.outcome.unwrap().is_ok());
    }
}

/// A list that this CA signs.
fn by(ca: &Ca, list: &ListSpec) -> Vec<u8> {
    use der::Decode;
    use der::Encode;
    use p256::ecdsa::DerSignature;
    use p256::ecdsa::signature::Signer;

    let mut list = x509_cert::crl::CertificateList::from_der(&list.der()).unwrap();
    let signature: DerSignature = ca.key.sign(&list.tbs_cert_list.to_der().unwrap());
    list.signature = der::asn1::BitString::from_bytes(&signature.to_bytes()).unwrap();
    list.to_der().unwrap()
}

/// The stored path is looked at before the card is asked, or while it signs.
#[test]
fn when_a_known_card_is_asked() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let list = [crl(&ca, &[], NOW, hours(5))];
    for (way, signatures) in [(KNOWN, 0), (MEANWHILE, 1)] {
        let mut door = relying_system(&[&ca.der()], Some(&list));
        door.prepare(&mut files.card(), way, NOW).unwrap();
        let mut card = files.card();
        let started = std::time::Instant::now();
        let ran = door.authenticate(&mut card, way, None, NOW);
        let most = Nanos(started.elapsed().as_nanos() as u64);
        assert!(ran.outcome.unwrap().is_ok());
        assert!(ran.log.step(DialogueStep::Validate).unwrap() <= most);
        assert!(ran.log.steps.iter().all(|(_, time)| *time <= most), "{:?}", ran.log.steps);
        card.commands.clear();
        let late = door.authenticate(&mut card, way, None, hours(6));
        assert_eq!(late.outcome.unwrap().unwrap_err().code(), "crl-expired");
        assert_eq!(card.count(0x87), signatures);
    }
}

/// With extended lengths nothing is chained and nothing fetched; a card with RSA would be asked both.
#[test]
fn lengths_of_commands() {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    for strategy in Strategy::COMBINATIONS {
        let way = AuthenticationMechanism::PkiCak(strategy);
        let mut door = relying_system(&[&ca], None);
        let mut card = Plastic::of(generated());
        let ran = door.authenticate(&mut card, way, None, Time::now());
        assert!(ran.outcome.unwrap().is_ok(), "{strategy}");
        let is_whole = card.commands.iter().all(|one| one.ins != 0xC0 && one.cla & 0x10 == 0);
        let is_extended = strategy.name().contains("extended-length");
        assert_eq!(is_whole, is_extended, "{strategy}");
        let lengths = if is_extended { CommandLengths::Extended } else { CommandLengths::Short };
        assert_eq!(strategy.lengths(), lengths, "{strategy}");
    }
}

#[test]
fn the_pin_is_for_two_mechanisms() {
    for (mechanism, needs_pin) in [
        (AuthenticationMechanism::PkiAuth, true),
        (AuthenticationMechanism::Contact, true),
        (AuthenticationMechanism::Chuid, false),
        (KNOWN, false),
    ] {
        assert_eq!(mechanism.needs_pin(), needs_pin, "{mechanism:?}");
    }
}

/// Why the counter cannot be looked at: after a PIN, 9000 is the card's whole answer (SP 800-73-5
/// part 2, 3.2.1).
#[test]
fn a_card_that_does_not_tell_its_tries() {
    let looked = |word: [u8; 2]| {
        let mut card = Plastic::of(generated()).editing(move |command, response| {
            if command.ins == 0x20 {
                *response = word.to_vec();
            }
            None
        });
        let said = relying_system(&[&Ca::root("root").der()], None).look_at_tries(&mut card);
        said.unwrap().map_err(|refusal| refusal.to_string())
    };
    assert_eq!(looked([0x63, 0xC3]), Ok(()));
    assert!(looked([0x63, 0xC1]).unwrap_err().contains("has one try left"));
    assert!(looked([0x63, 0xC0]).unwrap_err().contains("the PIN is blocked"));
    assert!(looked([0x69, 0x83]).unwrap_err().contains("the PIN is blocked"));
    assert!(looked([0x90, 0x00]).unwrap_err().contains("the PIN was given already"));
    let other = looked([0x6A, 0x81]).unwrap_err();
    assert!(other.contains("does not tell") && other.contains("6A81"), "{other}");
    assert!(!other.contains("given already"));
}

/// One policy is asked of the card's certificates; whoever signs its CHUID has another.
#[test]
fn one_policy_is_that_of_cards() {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    let decide = |policy: &str, mechanism| {
        let policies = PolicyRule::One(der::asn1::ObjectIdentifier::new_unwrap(policy));
        let mut door = RelyingSystem::new(trust(&[&ca], None), Rules { policies, ..rules() });
        let mut card = Plastic::of(generated());
        let ran = dialogue(&mut door, &mut card, mechanism, Time::now());
        ran.outcome.unwrap().err().map(|refusal| refusal.code())
    };
    // Card authentication, and PIV authentication.
    let own = "2.16.840.1.101.3.2.1.3.17";
    let other = "2.16.840.1.101.3.2.1.3.13";
    assert_eq!(decide(own, crate::support::PLAIN), None);
    assert_eq!(decide(other, crate::support::PLAIN), Some("policy"));
    for policy in [own, other] {
        assert_eq!(decide(policy, AuthenticationMechanism::Chuid), None);
    }
}

/// The card's CA is fetched on the way, and that is told.
#[test]
fn a_door_fetches_what_is_missing() {
    #[derive(Debug)]
    struct Published(Vec<u8>);
    impl IssuerSource for Published {
        fn fetch(&self, _: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.clone())
        }
    }
    let mut world = crate::support::World::new();
    let access = x509_cert::ext::pkix::AccessDescription {
        access_method: crate::support::oid("1.3.6.1.5.5.7.48.2"),
        access_location: x509_cert::ext::pkix::name::GeneralName::UniformResourceIdentifier(
            crate::support::ia5("http://ca"),
        ),
    };
    let access = x509_cert::ext::pkix::AuthorityInfoAccessSyntax(vec![access]);
    world.leaf.set(crate::support::extension("1.3.6.1.5.5.7.1.1", false, &access));
    let ca = world.cas.remove(0).der();
    let own = hex::encode(Leaf::of_card().uuid.unwrap());
    let uuid = crate::support::ia5(&format!("urn:uuid:{own}"));
    world.leaf.set(crate::support::names(vec![
        x509_cert::ext::pkix::name::GeneralName::UniformResourceIdentifier(uuid),
    ]));
    let files = Files::new();
    files.put("card_authentication_9e.der", &world.leaf.der());
    files.put_key(key(9));
    let decide = |trust: Trust| {
        let mut door = RelyingSystem::new(trust, rules());
        let ran = door.authenticate(&mut files.card(), crate::support::PLAIN, None, NOW);
        (ran.outcome.unwrap().err().map(|refusal| refusal.code()), ran.log.fetched)
    };
    let trust = || world.trust().unwrap();
    assert_eq!(decide(trust()), (Some("untrusted"), Vec::new()));
    let source = Box::new(Published(ca));
    let fetching = trust().fetching_issuers(source, Nanos::from_millis(60_000));
    let told = "the issuer of \"CN=A Card,O=Tests\" came from http://ca".to_owned();
    assert_eq!(decide(fetching), (None, vec![told]));
}

/// No step takes longer than all of them together.
#[test]
fn steps_are_within_the_dialogue() {
    let ca = std::fs::read(generated().join("ca.der")).unwrap();
    let pin = PivPin::new(b"123456").unwrap();
    let all = Strategy::ALL.map(AuthenticationMechanism::PkiCak);
    let others = [AuthenticationMechanism::PkiAuth, AuthenticationMechanism::Chuid];
    for mechanism in all.into_iter().chain(others) {
        let mut door = relying_system(&[&ca], None);
        let started = std::time::Instant::now();
        let mut card = Plastic::of(generated());
        let ran = door.authenticate(&mut card, mechanism, Some(&pin), Time::now());
        let most = Nanos(started.elapsed().as_nanos() as u64);
        assert!(ran.outcome.unwrap().is_ok(), "{mechanism:?}");
        assert!(ran.log.steps.iter().all(|(_, time)| *time <= most), "{:?}", ran.log.steps);
        assert!(ran.log.card() <= most && ran.log.replayed <= most);
    }
}

/// Where the host has no thread left, nobody is granted by halves: an error names it. In a process
/// of its own, whose threads would have stacks that no machine has room for.
#[test]
fn where_no_thread_can_be_had() {
    const FOLDER: &str = "TAPSTONE_TEST_NO_THREAD";
    if let Some(folder) = std::env::var_os(FOLDER) {
        return without_threads(folder.as_ref());
    }
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    files.put("ca.der", &ca.der());
    files.put("list.crl", &crl(&ca, &[], NOW, hours(5)));
    let name = "preparations::where_no_thread_can_be_had";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1"])
        .env(FOLDER, files.path())
        .env("RUST_MIN_STACK", (1_u64 << 46).to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// What that process does.
fn without_threads(folder: &std::path::Path) {
    let ca = std::fs::read(folder.join("ca.der")).unwrap();
    let certificate = Certificate::parse(&ca).unwrap();
    let mut door = RelyingSystem::new(Trust::new(vec![certificate], Vec::new()).unwrap(), rules());
    let mut decide = |strategy| {
        let way = AuthenticationMechanism::PkiCak(strategy);
        let ran = door.authenticate(&mut Plastic::of(folder), way, None, NOW);
        ran.outcome.unwrap().map_err(|refusal| (refusal.code(), refusal.to_string()))
    };
    let (code, said) = decide(Strategy::Overlap).unwrap_err();
    assert_eq!(code, "no-thread");
    assert!(said.starts_with("the host has no thread to validate the path"), "{said}");
    decide(Strategy::Plain).unwrap();
    decide(Strategy::KnownCard).unwrap();
    assert_eq!(decide(Strategy::KnownCardOverlap).unwrap_err().0, "no-thread");
    decide(Strategy::KnownCard).unwrap();
    let list = std::fs::read(folder.join("list.crl")).unwrap();
    let mut list = std::io::Cursor::new(list);
    let kept = KeptCrl::open(&mut list, |_| None::<&[u8]>).unwrap_err();
    assert!(kept.to_string().contains("no thread can be had to read it"), "{kept}");
}

/// A door waits for its module no longer than that takes.
#[test]
fn a_fast_module_is_not_waited_for() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let rules = Rules { module_time: Nanos(1), ..rules() };
    let mut door = RelyingSystem::new(trust(&[&ca.der()], None), rules);
    let started = std::time::Instant::now();
    let ran = dialogue(&mut door, &mut files.card(), crate::support::PLAIN, NOW);
    assert!(ran.outcome.unwrap().is_ok());
    assert!(started.elapsed() < Duration::from_secs(60));
}
