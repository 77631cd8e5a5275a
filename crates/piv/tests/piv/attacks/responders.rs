//! OCSP answers that say it, and answers that must not be believed: RFC 6960.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use der::asn1::{ObjectIdentifier, OctetString};
use der::{Any, Decode, Encode};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use tapstone_piv::{
    AuthenticationMechanism, Certificate, OcspRules, OcspSource, RelyingSystem, RevocationRule,
    Strategy, Time,
};
use x509_cert::ext::Extension;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    AsResponseBytes, BasicOcspResponse, CertId, CertStatus, OcspGeneralizedTime, OcspRequest,
    OcspResponse, ResponderId, ResponseData, RevokedInfo, SingleResponse, Version,
};

use crate::support::{
    CA, CARD_SERIAL, ECDSA_SHA256, Files, Leaf, ListSpec, NOW, ROOT, Spec, World, attack, days,
    extended, extension, generalized, ia5, key, key_usage, name, names, oid, rules, signed, spki,
    unknown,
};
use x509_cert::ext::pkix::KeyUsages;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AccessDescription, AuthorityInfoAccessSyntax};

const SIGNER: &str = "CN=Responder,O=Tests";
const OCSP_SIGNING: &str = "1.3.6.1.5.5.7.3.9";
const NO_CHECK: &str = "1.3.6.1.5.5.7.48.1.5";
const SHA_1: &str = "1.3.14.3.2.26";
const SHA_256: &str = "2.16.840.1.101.3.4.2.1";
const NONCE: &str = "1.3.6.1.5.5.7.48.1.2";

/// An answer that is to be.
#[derive(Clone, Debug)]
struct AnswerSpec {
    serial: u8,
    issuer_name: &'static str,
    issuer_key: usize,
    status: CertStatus,
    from: Time,
    until: Option<Time>,
    signer: usize,
    responder: &'static str,
    delegate: Option<Vec<u8>>,
    nonce: Option<Vec<u8>>,
    single: Option<Extension>,
    /// The responder is named by the hash of this key, and not by its name.
    by_key: Option<usize>,
    /// Of the CertID; all but SHA-256 are written with SHA-1's digests.
    hash: &'static str,
}

impl AnswerSpec {
    /// By the CA itself, about the card.
    fn new() -> Self {
        Self {
            serial: CARD_SERIAL,
            issuer_name: CA,
            issuer_key: 1,
            status: CertStatus::good(),
            from: days(-1),
            until: Some(days(1)),
            signer: 1,
            responder: CA,
            delegate: None,
            nonce: None,
            single: None,
            by_key: None,
            hash: SHA_1,
        }
    }

    /// By a delegate.
    fn delegated(spec: &Spec) -> Self {
        Self { signer: 4, responder: SIGNER, delegate: Some(spec.der()), ..Self::new() }
    }

    fn der(&self) -> Vec<u8> {
        let key_bits = spki(key(self.issuer_key)).subject_public_key;
        let hash = |bytes: &[u8]| match self.hash {
            SHA_256 => OctetString::new(&Sha256::digest(bytes)[..]).unwrap(),
            _ => OctetString::new(&Sha1::digest(bytes)[..]).unwrap(),
        };
        let cert_id = CertId {
            hash_algorithm: AlgorithmIdentifierOwned {
                oid: oid(self.hash),
                parameters: Some(Any::null()),
            },
            issuer_name_hash: hash(&name(self.issuer_name).to_der().unwrap()),
            issuer_key_hash: hash(key_bits.raw_bytes()),
            serial_number: x509_cert::serial_number::SerialNumber::from(self.serial),
        };
        let single = SingleResponse {
            cert_id,
            cert_status: self.status,
            this_update: OcspGeneralizedTime(generalized(self.from)),
            next_update: self.until.map(|until| OcspGeneralizedTime(generalized(until))),
            single_extensions: self.single.clone().map(|single| vec![single]),
        };
        let nonce = self
            .nonce
            .as_ref()
            .map(|nonce| vec![extension(NONCE, false, &OctetString::new(nonce.clone()).unwrap())]);
        let data = ResponseData {
            version: Version::V1,
            responder_id: match self.by_key {
                Some(number) => {
                    let bits = spki(key(number)).subject_public_key;
                    let hash = Sha1::digest(bits.raw_bytes());
                    ResponderId::ByKey(OctetString::new(&hash[..]).unwrap())
                }
                None => ResponderId::ByName(name(self.responder)),
            },
            produced_at: OcspGeneralizedTime(generalized(self.from)),
            responses: vec![single],
            response_extensions: nonce,
        };
        let basic = BasicOcspResponse {
            signature: signed(self.signer, &data),
            tbs_response_data: data,
            signature_algorithm: AlgorithmIdentifierOwned { oid: ECDSA_SHA256, parameters: None },
            certs: self
                .delegate
                .as_ref()
                .map(|der| vec![x509_cert::Certificate::from_der(der).unwrap()]),
        };
        let response_bytes = Some(basic.to_response_bytes().unwrap());
        let response_status = x509_ocsp::OcspResponseStatus::Successful;
        OcspResponse { response_status, response_bytes }.to_der().unwrap()
    }
}

/// A delegate of the CA, which need not be asked about.
fn delegate() -> Spec {
    let mut spec = Spec::ca(SIGNER, CA, [4, 1], 44)
        .with(key_usage(KeyUsages::DigitalSignature))
        .with(extended(&[OCSP_SIGNING]))
        .with(extension(NO_CHECK, false, &der::asn1::Null));
    spec.remove(oid("2.5.29.19"));
    spec
}

/// The root's list is there, and the CA's is not: the card's status is for OCSP to say.
fn world() -> World {
    let mut world = World::listed();
    world.lists.truncate(1);
    world
}

fn answer(change: impl Fn(&mut AnswerSpec)) -> impl Fn(&mut World) {
    move |world| {
        let mut spec = AnswerSpec::new();
        change(&mut spec);
        world.answers.push(spec.der());
    }
}

fn revoked() -> CertStatus {
    let revocation_time = OcspGeneralizedTime(generalized(days(-3)));
    CertStatus::Revoked(RevokedInfo { revocation_time, revocation_reason: None })
}

#[test]
fn what_they_say() {
    let good = || answer(|_| {});
    attack("a revoked card", "revoked", world, answer(|a| a.status = revoked()), good());
    let unknown_status = answer(|a| a.status = CertStatus::unknown());
    attack("a card that is not known", "ocsp-unknown", world, unknown_status, good());
    attack("nothing fresh", "no-crl", world, |_| {}, good());
    attack("another card", "no-crl", world, answer(|a| a.serial = 99), good());
    attack("another CA's key", "no-crl", world, answer(|a| a.issuer_key = 3), good());
    attack("another CA's name", "no-crl", world, answer(|a| a.issuer_name = ROOT), good());
    let single = |critical| answer(move |a| a.single = Some(unknown(critical)));
    attack("a critical extension", "no-crl", world, single(true), single(false));
    // Whoever says that it was revoked is believed.
    let both = |serial| {
        move |w: &mut World| {
            answer(|_| {})(w);
            w.lists.push(ListSpec::new(CA, 1, 1, &[serial]));
        }
    };
    attack("revoked by the CRL alone", "revoked", world, both(CARD_SERIAL), both(99));
}

#[test]
fn when_they_are() {
    let second = |more: i64| Time(NOW.0.saturating_add_signed(more));
    let until = |more| answer(move |a| a.until = Some(second(more)));
    attack("an answer that expired", "no-crl", world, until(-1), until(0));
    let from = |more| answer(move |a| a.from = second(more));
    attack("an answer to come", "no-crl", world, from(61), from(60));
    let age = |seconds: i64| {
        move |w: &mut World| {
            w.rules = OcspRules { max_age: Duration::from_secs(3600), ..OcspRules::default() };
            let old = |a: &mut AnswerSpec| {
                a.until = None;
                a.from = second(-seconds);
            };
            answer(old)(w);
        }
    };
    attack("an old answer without an end", "no-crl", world, age(3601), age(3600));
}

#[test]
fn who_signs_them() {
    attack("a forged answer", "no-crl", world, answer(|a| a.signer = 5), answer(|_| {}));
    let named = |responder| answer(move |a| a.responder = responder);
    attack("an answer in another's name", "no-crl", world, named(ROOT), named("CN=ca,O=TESTS"));
    let by = |change: fn(&mut Spec)| {
        move |w: &mut World| {
            let mut spec = delegate();
            change(&mut spec);
            w.answers.push(AnswerSpec::delegated(&spec).der());
        }
    };
    let good = || by(|_| {});
    let usage: fn(&mut Spec) = |spec| spec.set(extended(&["1.3.6.1.5.5.7.3.2"]));
    attack("a delegate that may not", "no-crl", world, by(usage), good());
    attack(
        "a delegate without usages",
        "no-crl",
        world,
        by(|s| s.remove(oid("2.5.29.37"))),
        good(),
    );
    let enciphers: fn(&mut Spec) = |spec| spec.set(key_usage(KeyUsages::KeyEncipherment));
    attack("a delegate that does not sign", "no-crl", world, by(enciphers), good());
    attack("a delegate of the root", "no-crl", world, by(|s| s.signer = 0), good());
    attack("a delegate of another name", "no-crl", world, by(|s| s.issuer = name(ROOT)), good());
    attack("a delegate that expired", "no-crl", world, by(|s| s.until = days(-1)), good());
    let critical: fn(&mut Spec) = |spec| spec.set(unknown(true));
    attack("a delegate that is not understood", "no-crl", world, by(critical), good());
    // Without nocheck its own status is asked for: here of a CRL, which is not about the card.
    let asked = |has_list: bool, serial| {
        move |w: &mut World| {
            by(|spec| spec.remove(ObjectIdentifier::new_unwrap(NO_CHECK)))(w);
            if has_list {
                w.lists.push(ListSpec::new(CA, 1, 1, &[serial]));
            }
        }
    };
    attack("a delegate without a status", "no-crl", world, asked(false, 0), asked(true, 99));
    // The card's CRL has expired; it still says whom it revoked.
    attack(
        "a delegate that was revoked",
        "crl-expired",
        world,
        |w| {
            asked(true, 44)(w);
            w.lists[1].until = days(-1);
        },
        good(),
    );
}

/// The delegate's status is on a CRL by another key of the CA's, and the status of that key is asked
/// for while the delegate's answer is being judged.
#[test]
fn a_delegate_on_the_list_of_another_key_is_judged() {
    let mut world = World::listed();
    let mut lister = Spec::ca(CA, ROOT, [6, 0], 8).with(key_usage(KeyUsages::CRLSign));
    lister.remove(oid("2.5.29.19"));
    world.cas.push(lister);
    world.lists[1].signer = 6;
    let mut asked = delegate();
    asked.remove(oid(NO_CHECK));
    world.answers.push(AnswerSpec::delegated(&asked).der());
    let decide = |world: World| {
        let (told, decision) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(world.decide()));
        decision.recv_timeout(Duration::from_secs(60)).expect("a decision, and no standstill")
    };
    assert_eq!(decide(world.clone()), Ok(Vec::new()));
    world.lists[0].revoked.push((8, Vec::new()));
    assert_eq!(decide(world), Err("no-crl"), "the list's key was revoked");
}

/// A responder that answers what a test wants.
#[derive(Debug)]
struct Responder {
    spec: AnswerSpec,
    nonce: ToldNonce,
}

#[derive(Clone, Copy, Debug)]
enum ToldNonce {
    Same,
    None,
    Other,
    /// Nobody answers.
    Silence,
}

impl OcspSource for Responder {
    fn ask(&self, _: &[String], request: &[u8]) -> Result<Vec<u8>, String> {
        let request = OcspRequest::from_der(request).unwrap();
        let mut spec = self.spec.clone();
        spec.nonce = match self.nonce {
            ToldNonce::Same => Some(request.nonce().unwrap().0.as_bytes().to_vec()),
            ToldNonce::None => None,
            ToldNonce::Other => Some(vec![1; 32]),
            ToldNonce::Silence => return Err("connection refused".to_owned()),
        };
        Ok(spec.der())
    }
}

fn live(nonce: ToldNonce, require_nonce: bool) -> impl Fn(&mut World) {
    move |world| {
        let responder = Responder { spec: AnswerSpec::new(), nonce };
        world.source = Some(Arc::new(responder));
        world.rules = OcspRules { require_nonce, ..OcspRules::default() };
    }
}

#[test]
fn live_answers() {
    let nonce = "ocsp-nonce";
    let same = || live(ToldNonce::Same, true);
    attack("an answer with another nonce", nonce, world, live(ToldNonce::Other, false), same());
    let without = |required| live(ToldNonce::None, required);
    attack("an answer without a nonce", nonce, world, without(true), without(false));
    attack("a responder that is silent", "ocsp", world, live(ToldNonce::Silence, false), same());
    let preferred = |nonce| {
        let mut world = world();
        world.rule = RevocationRule::Prefer;
        live(nonce, false)(&mut world);
        world.decide()
    };
    let told = preferred(ToldNonce::Silence).unwrap();
    assert!(told.len() == 1 && told[0].contains("connection refused"), "{told:?}");
    assert_eq!(preferred(ToldNonce::Same), Ok(Vec::new()));
    assert_eq!(preferred(ToldNonce::Other), Err(nonce), "an old answer is no missing one");
}

/// A check made beforehand rests on an OCSP answer, and lasts no longer than that.
#[test]
fn a_check_ends_with_its_answer() {
    const BACKGROUND: AuthenticationMechanism =
        AuthenticationMechanism::PkiCak(Strategy::BackgroundValidation);
    let files = Files::new();
    let own = Leaf::of_card().uuid.unwrap();
    let uuid = ia5(&format!("urn:uuid:{}", hex::encode(own)));
    let second = |more: u64| Time(NOW.0 + more);
    let ends: [fn(&mut AnswerSpec); 2] = [
        |answer| answer.until = Some(Time(NOW.0 + 3600)),
        |answer| {
            answer.until = None;
            answer.from = NOW;
        },
    ];
    for end in ends {
        let mut world = world();
        world.rules.max_age = Duration::from_secs(3600);
        world.leaf.set(names(vec![GeneralName::UniformResourceIdentifier(uuid.clone())]));
        answer(end)(&mut world);
        files.put("card_authentication_9e.der", &world.leaf.der());
        files.put_key(key(9));
        let mut door = RelyingSystem::new(world.trust().unwrap(), rules());
        door.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
        let mut at_door = |at| {
            let ran = door.authenticate(&mut files.card(), BACKGROUND, None, at);
            (ran.fell_back, ran.outcome.unwrap().err().map(|refusal| refusal.code()))
        };
        assert_eq!(at_door(second(3600)), (false, None));
        assert_eq!(at_door(second(3601)), (true, Some("no-crl")));
    }
}

/// The CA has two certificates, so that there are two paths: a responder that says nothing is waited
/// for on the first of them only.
#[test]
fn a_silent_responder_is_asked_once() {
    let silent = Arc::new(Counting::default());
    let mut world = world();
    world.source = Some(Arc::<Counting>::clone(&silent));
    world.cas.push(Spec { serial: 3, ..world.cas[0].clone() });
    assert_eq!(world.decide(), Err("ocsp"));
    assert_eq!(silent.0.load(Ordering::SeqCst), 1);
    // Another decision asks again.
    assert_eq!(world.decide(), Err("ocsp"));
    assert_eq!(silent.0.load(Ordering::SeqCst), 2);
}

/// A responder that never answers.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl OcspSource for Counting {
    fn ask(&self, _: &[String], _: &[u8]) -> Result<Vec<u8>, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err("connection refused".to_owned())
    }
}

/// Answers when there is something to say.
#[derive(Debug, Default)]
struct Later(std::sync::Mutex<Option<Vec<u8>>>);

impl OcspSource for Later {
    fn ask(&self, _: &[String], _: &[u8]) -> Result<Vec<u8>, String> {
        self.0.lock().unwrap().clone().ok_or_else(|| "connection refused".to_owned())
    }
}

/// A card that was refused once is known no longer: it is read in full before it is known again.
#[test]
fn a_known_card_that_was_refused_is_forgotten() {
    for strategy in [Strategy::KnownCard, Strategy::KnownCardOverlap] {
        let known = AuthenticationMechanism::PkiCak(strategy);
        let later = Arc::new(Later::default());
        let mut world = world();
        world.source = Some(Arc::<Later>::clone(&later));
        let files = card_of(&mut world);
        let mut door = RelyingSystem::new(world.trust().unwrap(), rules());
        let mut decide = |at| {
            let ran = door.authenticate(&mut files.card(), known, None, at);
            (ran.fell_back, ran.outcome.unwrap().err().map(|refusal| refusal.code()))
        };
        let says = |answer: Option<Vec<u8>>| *later.0.lock().unwrap() = answer;
        says(Some(AnswerSpec::new().der()));
        assert_eq!(decide(NOW), (true, None));
        assert_eq!(decide(NOW), (false, None));
        // The answer ends after a day, and the responder is silent.
        says(None);
        assert_eq!(decide(days(1)), (false, None));
        let late = Time(days(1).0 + 1);
        assert_eq!(decide(late), (true, Some("ocsp")));
        let fresh = AnswerSpec { until: Some(days(2)), ..AnswerSpec::new() };
        says(Some(fresh.der()));
        assert_eq!(decide(late), (true, None), "{strategy}: read in full");
        assert_eq!(decide(late), (false, None));
    }
}

/// The world's leaf on a card, with the identifier of its CHUID.
fn card_of(world: &mut World) -> Files {
    let files = Files::new();
    let own = Leaf::of_card().uuid.unwrap();
    let uuid = ia5(&format!("urn:uuid:{}", hex::encode(own)));
    world.leaf.set(names(vec![GeneralName::UniformResourceIdentifier(uuid)]));
    files.put("card_authentication_9e.der", &world.leaf.der());
    files.put_key(key(9));
    files
}

/// What a check made beforehand refused is looked at again at the door.
#[test]
fn a_refusal_is_not_remembered() {
    const BACKGROUND: AuthenticationMechanism =
        AuthenticationMechanism::PkiCak(Strategy::BackgroundValidation);
    let later = Arc::new(Later::default());
    let mut world = world();
    world.source = Some(Arc::<Later>::clone(&later));
    let files = card_of(&mut world);
    let mut door = RelyingSystem::new(world.trust().unwrap(), rules());
    let mut decide = || {
        door.prepare(&mut files.card(), BACKGROUND, NOW).unwrap();
        let ran = door.authenticate(&mut files.card(), BACKGROUND, None, NOW);
        (ran.fell_back, ran.outcome.unwrap().err().map(|refusal| refusal.code()))
    };
    assert_eq!(decide(), (true, Some("ocsp")));
    *later.0.lock().unwrap() = Some(AnswerSpec::new().der());
    assert_eq!(decide(), (false, None), "found when it was checked in the background");
}

/// A responder is asked at the addresses that the card's certificate names, in their order.
#[test]
fn responders_are_asked_where_the_certificate_says() {
    let mut world = World::new();
    let uri = |text| GeneralName::UniformResourceIdentifier(ia5(text));
    let access =
        |method, text| AccessDescription { access_method: oid(method), access_location: uri(text) };
    let all = vec![
        access("1.3.6.1.5.5.7.48.1", "http://a"),
        access("1.3.6.1.5.5.7.48.2", "http://ca"),
        access("1.3.6.1.5.5.7.48.1", "http://b"),
    ];
    world.leaf.set(extension("1.3.6.1.5.5.7.1.1", false, &AuthorityInfoAccessSyntax(all)));
    let der = world.leaf.der();
    let certificate = Certificate::parse(&der).unwrap();
    assert_eq!(certificate.ocsp_addresses(), ["http://a", "http://b"]);
    assert_eq!(certificate.issuer_addresses(), ["http://ca"]);
    assert_eq!(certificate.der(), der);
}

/// Nobody is told which cards come to a door before their path is valid.
#[test]
fn nobody_is_asked_about_a_forged_card() {
    #[derive(Debug)]
    struct Nobody;
    impl OcspSource for Nobody {
        fn ask(&self, _: &[String], _: &[u8]) -> Result<Vec<u8>, String> {
            panic!("a responder was asked")
        }
    }
    let mut world = world();
    world.source = Some(Arc::new(Nobody));
    world.leaf.signer = 5;
    assert_eq!(world.decide(), Err("tampered"));
    world.leaf.signer = 1;
    world.cas[0].until = days(-1);
    assert_eq!(world.decide(), Err("expired"));
}

/// RFC 6960, 4.2.2.3: a responder is named by its name or by the hash of its key.
#[test]
fn how_responders_are_named() {
    let by_key = |number| answer(move |a| a.by_key = Some(number));
    attack("an answer of another key", "no-crl", world, by_key(3), by_key(1));
    let delegated = |change: fn(&mut AnswerSpec)| {
        move |w: &mut World| {
            let mut spec = AnswerSpec::delegated(&delegate());
            change(&mut spec);
            w.answers.push(spec.der());
        }
    };
    let good = || delegated(|_| {});
    let named: fn(&mut AnswerSpec) = |answer| answer.responder = "CN=Other,O=Tests";
    attack("a delegate in another's name", "no-crl", world, delegated(named), good());
    let forged: fn(&mut AnswerSpec) = |answer| answer.signer = 5;
    attack("a forged answer of a delegate", "no-crl", world, delegated(forged), good());
}

/// RFC 6960, 4.1.1: the CertID names its hash function.
#[test]
fn how_certificates_are_named() {
    let hashed = |hash| answer(move |a| a.hash = hash);
    let sha_384 = "2.16.840.1.101.3.4.2.2";
    attack("a CertID of another function", "no-crl", world, hashed(sha_384), hashed(SHA_256));
}

/// What the request asks, as RFC 6960, 4.1 has it: one certificate, by the SHA-1 digests of its
/// issuer's name and key, and its serial number.
#[test]
fn a_request_names_the_card() {
    #[derive(Debug, Default)]
    struct Heard(std::sync::Mutex<Vec<(Vec<String>, Vec<u8>)>>);
    impl OcspSource for Heard {
        fn ask(&self, addresses: &[String], request: &[u8]) -> Result<Vec<u8>, String> {
            self.0.lock().unwrap().push((addresses.to_vec(), request.to_vec()));
            Err("connection refused".to_owned())
        }
    }
    let heard = Arc::new(Heard::default());
    let mut world = world();
    world.source = Some(Arc::<Heard>::clone(&heard));
    for _ in 0..2 {
        assert_eq!(world.decide(), Err("ocsp"));
    }
    let requests: Vec<OcspRequest> = {
        let heard = heard.0.lock().unwrap();
        heard.iter().map(|(_, der)| OcspRequest::from_der(der).unwrap()).collect()
    };
    let nonces: Vec<_> = requests.iter().map(|one| one.nonce().unwrap().0).collect();
    assert_eq!(nonces[0].as_bytes().len(), 32);
    assert_ne!(nonces[0], nonces[1]);
    for request in requests {
        let [asked] = &request.tbs_request.request_list[..] else { panic!("{request:?}") };
        let id = &asked.req_cert;
        let bits = spki(key(1)).subject_public_key;
        assert_eq!(id.hash_algorithm.oid, oid(SHA_1));
        assert_eq!(id.issuer_name_hash.as_bytes(), &Sha1::digest(name(CA).to_der().unwrap())[..]);
        assert_eq!(id.issuer_key_hash.as_bytes(), &Sha1::digest(bits.raw_bytes())[..]);
        assert_eq!(id.serial_number.as_bytes(), [CARD_SERIAL]);
    }
}

/// A responder says nothing, and the CRL does.
#[test]
fn a_list_does_where_the_responder_is_silent() {
    let listed = |serial: u8| {
        move |w: &mut World| {
            live(ToldNonce::Silence, false)(w);
            w.lists.push(ListSpec::new(CA, 1, 1, &[serial]));
        }
    };
    attack("a silent responder and a list", "revoked", world, listed(CARD_SERIAL), listed(99));
}
