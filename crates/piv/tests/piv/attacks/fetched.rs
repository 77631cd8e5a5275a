//! Issuers that are fetched: what helps a path, and what a stranger's card could do with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cms::cert::CertificateChoices;
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{CertificateSet, EncapsulatedContentInfo, SignedData, SignerInfos};
use der::asn1::{ObjectIdentifier, SetOfVec};
use der::{Any, Decode, Encode};
use tapstone_measure::units::Nanos;
use tapstone_piv::{Certificate, Denial, IssuerSource, PathDemands, RevocationRule, Trust};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AccessDescription, AuthorityInfoAccessSyntax};

use crate::support::{CA, ListSpec, ROOT, Spec, World, extension, ia5, oid};

const CA_ISSUERS: &str = "1.3.6.1.5.5.7.48.2";
const LONG: Nanos = Nanos::from_millis(60_000);

fn access(addresses: &[&str]) -> Extension {
    let one = |address: &&str| AccessDescription {
        access_method: oid(CA_ISSUERS),
        access_location: GeneralName::UniformResourceIdentifier(ia5(address)),
    };
    let all = addresses.iter().map(one).collect();
    extension("1.3.6.1.5.5.7.1.1", false, &AuthorityInfoAccessSyntax(all))
}

/// Certificates at addresses, and who was asked for.
#[derive(Clone, Debug, Default)]
struct Published {
    files: HashMap<String, Vec<u8>>,
    asked: Arc<Mutex<Vec<String>>>,
    pause: std::time::Duration,
}

impl Published {
    fn with(mut self, address: &str, bytes: Vec<u8>) -> Self {
        self.files.insert(address.to_owned(), bytes);
        self
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl IssuerSource for Published {
    fn fetch(&self, address: &str) -> Result<Vec<u8>, String> {
        self.asked.lock().unwrap().push(address.to_owned());
        std::thread::sleep(self.pause);
        self.files.get(address).cloned().ok_or_else(|| format!("{address}: nothing is there"))
    }
}

/// A card whose CA is not here, and names an address for it.
fn world() -> World {
    let mut world = World::new();
    world.cas.clear();
    world.leaf.set(access(&["a"]));
    world
}

fn usual_ca() -> Spec {
    World::new().cas[0].clone()
}

/// With what is published: the decision, and what was told.
fn decide(trust: &mut Trust, world: &World) -> (Result<(), Denial>, Vec<String>) {
    let leaf = Arc::new(Certificate::parse(&world.leaf.der()).unwrap());
    let notes = trust.fetch_issuers(&leaf);
    let demands = PathDemands { purpose: world.purpose, policies: world.policies.clone() };
    (trust.validate(&leaf, &demands, world.at).map(|_| ()), notes)
}

fn code(world: &World, published: &Published) -> Result<(), &'static str> {
    let mut trust = world.trust().unwrap().fetching_issuers(Box::new(published.clone()), LONG);
    decide(&mut trust, world).0.map_err(|refusal| refusal.code())
}

#[test]
fn a_missing_ca_is_fetched_only_where_that_is_wanted() {
    let world = world();
    let published = Published::default().with("a", usual_ca().der());
    let mut trust = world.trust().unwrap();
    let (decided, notes) = decide(&mut trust, &world);
    assert_eq!((decided.unwrap_err().code(), notes.len()), ("untrusted", 0), "off");
    let mut trust = trust.fetching_issuers(Box::new(published.clone()), LONG);
    let (decided, notes) = decide(&mut trust, &world);
    assert!(decided.is_ok());
    assert_eq!(notes, ["the issuer of \"CN=A Card,O=Tests\" came from a"]);
    let (decided, notes) = decide(&mut trust, &world);
    assert!(decided.is_ok() && notes.is_empty(), "it is here now");
    assert_eq!(published.asked(), ["a"]);
    // Nothing is missing.
    assert_eq!(code(&World::new(), &Published::default()), Ok(()));
}

#[test]
fn forms_of_what_is_published() {
    let certificate = x509_cert::Certificate::from_der(&usual_ca().der()).unwrap();
    let stranger = x509_cert::Certificate::from_der(&World::new().leaf.der()).unwrap();
    let mut certificates = SetOfVec::new();
    for one in [stranger, certificate] {
        certificates.insert(CertificateChoices::Certificate(one)).unwrap();
    }
    let data = SignedData {
        version: CmsVersion::V1,
        digest_algorithms: SetOfVec::new(),
        encap_content_info: EncapsulatedContentInfo {
            econtent_type: ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1"),
            econtent: None,
        },
        certificates: Some(CertificateSet(certificates)),
        crls: None,
        signer_infos: SignerInfos(SetOfVec::new()),
    };
    let cms = ContentInfo {
        content_type: ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2"),
        content: Any::encode_from(&data).unwrap(),
    };
    for (bytes, expected) in [
        (cms.to_der().unwrap(), Ok(())),
        (b"no certificate".to_vec(), Err("untrusted")),
        (Vec::new(), Err("untrusted")),
    ] {
        assert_eq!(code(&world(), &Published::default().with("a", bytes)), expected);
    }
}

#[test]
fn nothing_that_was_fetched_is_believed() {
    // A CA of that name with another key, one of another name, and a self-signed one.
    let forged = Spec { key: 5, ..usual_ca() };
    let other = Spec::ca("CN=Other,O=Tests", ROOT, [1, 0], 2);
    let own_root = Spec::ca(CA, CA, [1, 1], 2);
    for (wrong, name) in [(forged, "forged"), (other, "other"), (own_root, "self-signed")] {
        let published = Published::default().with("a", wrong.der());
        assert_eq!(code(&world(), &published), Err("untrusted"), "{name}");
    }
    // What does not lead to an anchor is not kept: it would be in everybody's way.
    let below_nobody = Spec::ca(CA, "CN=Nobody,O=Tests", [1, 5], 2);
    let world = world();
    let published = Published::default().with("a", below_nobody.der());
    let mut trust = world.trust().unwrap().fetching_issuers(Box::new(published), LONG);
    let before = format!("{trust:?}").matches("Certificate {").count();
    assert!(decide(&mut trust, &world).0.is_err());
    assert_eq!(format!("{trust:?}").matches("Certificate {").count(), before);
    // The path is judged like any other.
    let expired = Spec { until: crate::support::days(-1), ..usual_ca() };
    let published = Published::default().with("a", expired.der());
    assert_eq!(code(&world, &published), Err("expired"));
}

/// A chain of so many CAs below the root, each of which says where its issuer is.
fn chain(length: usize) -> (World, Published) {
    let mut world = world();
    let mut published = Published::default();
    let name = |number: usize| format!("CN=CA {number},O=Tests");
    for number in 0..length {
        let issuer = if number + 1 == length { ROOT.to_owned() } else { name(number + 1) };
        let signer = if number + 1 == length { 0 } else { 1 };
        let mut ca = Spec::ca(&name(number), &issuer, [1, signer], 2);
        ca.set(access(&[&format!("a{}", number + 1)]));
        published = published.with(&format!("a{number}"), ca.der());
    }
    world.leaf.issuer = crate::support::name(&name(0));
    world.leaf.set(access(&["a0"]));
    (world, published)
}

#[test]
fn so_many_are_fetched_and_no_more() {
    for (length, expected) in [(1, Ok(())), (8, Ok(())), (9, Err("untrusted"))] {
        let (world, published) = chain(length);
        assert_eq!(code(&world, &published), expected, "{length}");
        assert_eq!(published.asked().len(), length.min(8));
    }
    // Of many addresses of one certificate the first two.
    let mut world = world();
    world.leaf.set(access(&["x", "a", "y"]));
    let published = Published::default().with("a", usual_ca().der());
    assert_eq!(code(&world, &published), Ok(()));
    assert_eq!(published.asked(), ["x", "a"]);
    world.leaf.set(access(&["x", "y", "a"]));
    assert_eq!(code(&world, &published), Err("untrusted"));
}

#[test]
fn a_ring_of_issuers_comes_to_an_end() {
    let mut world = world();
    world.leaf.issuer = crate::support::name("CN=One,O=Tests");
    let mut one = Spec::ca("CN=One,O=Tests", "CN=Two,O=Tests", [1, 1], 2);
    one.set(access(&["b"]));
    let mut two = Spec::ca("CN=Two,O=Tests", "CN=One,O=Tests", [1, 1], 3);
    two.set(access(&["a"]));
    let published = Published::default().with("a", one.der()).with("b", two.der());
    assert_eq!(code(&world, &published), Err("untrusted"));
    assert_eq!(published.asked(), ["a", "b"]);
}

#[test]
fn whoever_does_not_answer_is_asked_once() {
    let world = world();
    let published = Published::default();
    let mut trust = world.trust().unwrap().fetching_issuers(Box::new(published.clone()), LONG);
    let (_, notes) = decide(&mut trust, &world);
    assert_eq!(notes, ["the issuer of \"CN=A Card,O=Tests\" was not fetched: a: nothing is there"]);
    assert!(decide(&mut trust, &world).1.is_empty());
    assert_eq!(published.asked(), ["a"]);
}

#[test]
fn a_slow_publisher_is_not_waited_for_again() {
    let (world, mut published) = chain(3);
    published.pause = std::time::Duration::from_millis(700);
    let limit = Nanos::from_millis(600);
    let mut trust = world.trust().unwrap().fetching_issuers(Box::new(published.clone()), limit);
    let (decided, notes) = decide(&mut trust, &world);
    assert_eq!(decided.unwrap_err().code(), "untrusted");
    assert_eq!(published.asked(), ["a0"]);
    assert!(notes[1].contains("was not fetched from a1: it was enough"), "{notes:?}");
}

/// Its CRL was here from the beginning, and nobody knew who had signed it.
#[test]
fn a_fetched_ca_is_asked_for_revocation_as_others_are() {
    let listed = |serials: &[u8]| {
        let mut world = world();
        world.rule = RevocationRule::Require;
        world.lists = vec![ListSpec::new(ROOT, 0, 1, &[]), ListSpec::new(CA, 1, 1, serials)];
        code(&world, &Published::default().with("a", usual_ca().der()))
    };
    assert_eq!(listed(&[8]), Ok(()));
    assert_eq!(listed(&[7]), Err("revoked"));
}
