//! A PKI in which a test can change anything: every certificate, CRL and OCSP answer is written out
//! before it is signed.

use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use der::asn1::{BitString, GeneralizedTime, Ia5String, ObjectIdentifier, OctetString, Uint};
use der::flagset::FlagSet;
use der::{Any, Encode};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use rsa::rand_core::OsRng;
use tapstone_piv::{
    Certificate, CertificatePurpose, OcspRules, OcspSource, PathDemands, PolicyInputs,
    RevocationRule, Time, Trust,
};
use x509_cert::crl::{CertificateList, RevokedCert, TbsCertList};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::certpolicy::PolicyInformation;
use x509_cert::ext::pkix::constraints::name::GeneralSubtree;
use x509_cert::ext::pkix::name::{GeneralName, OtherName};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies, ExtendedKeyUsage, KeyUsage,
    KeyUsages, NameConstraints, PolicyConstraints, PolicyMapping, PolicyMappings, SubjectAltName,
};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::Validity;
use x509_cert::{TbsCertificate, Version};

use super::oracle::openssl_agrees;
use super::{NOW, days, spki};

pub(crate) const ECDSA_SHA256: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");

/// Keys of the world, by number: 0 the root's, 1 the CA's, 9 the card's.
pub(crate) fn key(number: usize) -> &'static SigningKey {
    static KEYS: OnceLock<Vec<SigningKey>> = OnceLock::new();
    &KEYS.get_or_init(|| (0..10).map(|_| SigningKey::random(&mut OsRng)).collect())[number]
}

pub(crate) fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

pub(crate) fn name(text: &str) -> Name {
    Name::from_str(text).unwrap()
}

pub(crate) fn ia5(text: &str) -> Ia5String {
    Ia5String::new(text).unwrap()
}

/// A certificate that is to be.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) subject: Name,
    pub(crate) issuer: Name,
    pub(crate) key: usize,
    pub(crate) signer: usize,
    pub(crate) serial: u8,
    pub(crate) from: Time,
    pub(crate) until: Time,
    pub(crate) extensions: Vec<Extension>,
    /// The algorithm inside the signed part.
    pub(crate) inside: ObjectIdentifier,
}

impl Spec {
    fn new(subject: &str, issuer: &str, keys: [usize; 2], serial: u8) -> Self {
        let [key, signer] = keys;
        Self {
            subject: name(subject),
            issuer: name(issuer),
            key,
            signer,
            serial,
            from: days(-100),
            until: days(100),
            extensions: Vec::new(),
            inside: ECDSA_SHA256,
        }
    }

    pub(crate) fn ca(subject: &str, issuer: &str, keys: [usize; 2], serial: u8) -> Self {
        let usage = KeyUsages::KeyCertSign | KeyUsages::CRLSign;
        Self::new(subject, issuer, keys, serial).with(basic(true, None)).with(key_usage(usage))
    }

    /// In place of an extension of the same kind.
    pub(crate) fn with(mut self, extension: Extension) -> Self {
        self.set(extension);
        self
    }

    pub(crate) fn set(&mut self, extension: Extension) {
        self.remove(extension.extn_id);
        self.extensions.push(extension);
    }

    pub(crate) fn remove(&mut self, id: ObjectIdentifier) {
        self.extensions.retain(|other| other.extn_id != id);
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        let body = TbsCertificate {
            version: Version::V3,
            serial_number: SerialNumber::from(self.serial),
            signature: AlgorithmIdentifierOwned { oid: self.inside, parameters: None },
            issuer: self.issuer.clone(),
            validity: Validity { not_before: time(self.from), not_after: time(self.until) },
            subject: self.subject.clone(),
            subject_public_key_info: spki(key(self.key)),
            issuer_unique_id: None,
            subject_unique_id: None,
            extensions: (!self.extensions.is_empty()).then(|| self.extensions.clone()),
        };
        let certificate = x509_cert::Certificate {
            signature: signed(self.signer, &body),
            tbs_certificate: body,
            signature_algorithm: AlgorithmIdentifierOwned { oid: ECDSA_SHA256, parameters: None },
        };
        certificate.to_der().unwrap()
    }
}

/// A CRL that is to be.
#[derive(Clone)]
pub(crate) struct ListSpec {
    pub(crate) issuer: Name,
    pub(crate) signer: usize,
    pub(crate) from: Time,
    pub(crate) until: Time,
    /// Serial numbers, with extensions of the entry.
    pub(crate) revoked: Vec<(u8, Vec<Extension>)>,
    pub(crate) extensions: Vec<Extension>,
}

impl ListSpec {
    pub(crate) fn new(issuer: &str, signer: usize, number: u8, revoked: &[u8]) -> Self {
        Self {
            issuer: name(issuer),
            signer,
            from: days(-2),
            until: days(2),
            revoked: revoked.iter().map(|serial| (*serial, Vec::new())).collect(),
            extensions: vec![crl_number("2.5.29.20", number)],
        }
    }

    pub(crate) fn with(mut self, extension: Extension) -> Self {
        self.extensions.push(extension);
        self
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        let algorithm = AlgorithmIdentifierOwned { oid: ECDSA_SHA256, parameters: None };
        let revoked = |(serial, extensions): &(u8, Vec<Extension>)| RevokedCert {
            serial_number: SerialNumber::from(*serial),
            revocation_date: time(self.from),
            crl_entry_extensions: (!extensions.is_empty()).then(|| extensions.clone()),
        };
        let list = TbsCertList {
            version: Version::V2,
            signature: algorithm.clone(),
            issuer: self.issuer.clone(),
            this_update: time(self.from),
            next_update: Some(time(self.until)),
            revoked_certificates: (!self.revoked.is_empty())
                .then(|| self.revoked.iter().map(revoked).collect()),
            crl_extensions: (!self.extensions.is_empty()).then(|| self.extensions.clone()),
        };
        let signature = signed(self.signer, &list);
        let list =
            CertificateList { tbs_cert_list: list, signature_algorithm: algorithm, signature };
        list.to_der().unwrap()
    }
}

/// A root, a CA below it, and a card's certificate below that; and what says who was revoked.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) anchors: Vec<Spec>,
    pub(crate) cas: Vec<Spec>,
    pub(crate) leaf: Spec,
    pub(crate) lists: Vec<ListSpec>,
    /// CRLs as they are.
    pub(crate) raw_lists: Vec<Vec<u8>>,
    pub(crate) answers: Vec<Vec<u8>>,
    pub(crate) source: Option<Arc<dyn OcspSource>>,
    pub(crate) rules: OcspRules,
    pub(crate) rule: RevocationRule,
    pub(crate) purpose: Option<CertificatePurpose>,
    pub(crate) policies: PolicyInputs,
    pub(crate) at: Time,
}

pub(crate) const ROOT: &str = "CN=Root,O=Tests";
pub(crate) const CA: &str = "CN=CA,O=Tests";
pub(crate) const CARD: &str = "CN=A Card,O=Tests";
/// The leaf's serial number, and the CA's.
pub(crate) const CARD_SERIAL: u8 = 7;
pub(crate) const CA_SERIAL: u8 = 2;

/// A source that is shared, so that worlds can be copied.
#[derive(Debug)]
struct Shared(Arc<dyn OcspSource>);

impl OcspSource for Shared {
    fn ask(&self, addresses: &[String], request: &[u8]) -> Result<Vec<u8>, String> {
        self.0.ask(addresses, request)
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let leaf = Spec::new(CARD, CA, [9, 1], CARD_SERIAL)
            .with(key_usage(KeyUsages::DigitalSignature))
            .with(extended(&["2.16.840.1.101.3.6.8"]));
        Self {
            anchors: vec![Spec::ca(ROOT, ROOT, [0, 0], 1)],
            cas: vec![Spec::ca(CA, ROOT, [1, 0], CA_SERIAL)],
            leaf,
            lists: Vec::new(),
            raw_lists: Vec::new(),
            answers: Vec::new(),
            source: None,
            rules: OcspRules::default(),
            rule: RevocationRule::Off,
            purpose: Some(CertificatePurpose::CardAuthentication),
            policies: PolicyInputs::default(),
            at: NOW,
        }
    }

    /// With CRLs, of the root and of the CA.
    pub(crate) fn listed() -> Self {
        let mut world = Self::new();
        world.rule = RevocationRule::Require;
        world.lists = vec![ListSpec::new(ROOT, 0, 1, &[]), ListSpec::new(CA, 1, 1, &[])];
        world
    }

    pub(crate) fn trust(&self) -> Result<Trust, String> {
        let parse = |spec: &Spec| Certificate::parse(&spec.der()).map_err(|e| e.to_string());
        let anchors = self.anchors.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let cas = self.cas.iter().filter_map(|ca| parse(ca).ok()).collect();
        let mut lists: Vec<Vec<u8>> = self.lists.iter().map(ListSpec::der).collect();
        lists.extend(self.raw_lists.iter().cloned());
        let trust = Trust::new(anchors, cas).map_err(|error| error.to_string())?;
        let source = self.source.clone();
        let source = source.map(|source| Box::new(Shared(source)) as Box<dyn OcspSource>);
        Ok(trust
            .checking_revocation(self.rule, &lists)
            .with_ocsp_answers(&self.answers)
            .with_ocsp(self.rules, source))
    }

    /// Granted, with what nothing says anything about; or why not.
    pub(crate) fn decide(&self) -> Result<Vec<String>, &'static str> {
        let leaf = Certificate::parse(&self.leaf.der()).map_err(|_| "not-a-certificate")?;
        let trust = self.trust().map_err(|_| "no-trust")?;
        let demands = PathDemands { purpose: self.purpose, policies: self.policies.clone() };
        let path = trust.validate(&Arc::new(leaf), &demands, self.at);
        path.map(|path| path.unchecked().to_vec()).map_err(|refusal| refusal.code())
    }
}

/// An attack that must be refused for this reason, and its near miss, which must be granted.
#[track_caller]
pub(crate) fn attack(
    name: &str,
    code: &str,
    world: impl Fn() -> World,
    bad: impl Fn(&mut World),
    good: impl Fn(&mut World),
) {
    let changed = |change: &dyn Fn(&mut World)| {
        let mut world = world();
        change(&mut world);
        world.decide()
    };
    assert_eq!(changed(&bad), Err(code), "{name}");
    assert!(changed(&good).is_ok(), "near miss of {name}: {:?}", changed(&good));
    let mut granted = world();
    good(&mut granted);
    openssl_agrees(name, &granted);
}

pub(crate) fn time(time: Time) -> x509_cert::time::Time {
    x509_cert::time::Time::GeneralTime(generalized(time))
}

pub(crate) fn generalized(time: Time) -> GeneralizedTime {
    GeneralizedTime::from_unix_duration(Duration::from_secs(time.0)).unwrap()
}

pub(crate) fn signed(signer: usize, body: &impl Encode) -> BitString {
    let signature: DerSignature = key(signer).sign(&body.to_der().unwrap());
    BitString::from_bytes(&signature.to_bytes()).unwrap()
}

pub(crate) fn extension(id: &str, critical: bool, value: &impl Encode) -> Extension {
    let extn_value = OctetString::new(value.to_der().unwrap()).unwrap();
    Extension { extn_id: oid(id), critical, extn_value }
}

pub(crate) fn unknown(critical: bool) -> Extension {
    extension("1.3.6.1.4.1.99999.1", critical, &der::asn1::Null)
}

pub(crate) fn basic(ca: bool, path_len_constraint: Option<u8>) -> Extension {
    extension("2.5.29.19", true, &BasicConstraints { ca, path_len_constraint })
}

pub(crate) fn key_usage(usage: impl Into<FlagSet<KeyUsages>>) -> Extension {
    extension("2.5.29.15", true, &KeyUsage(usage.into()))
}

pub(crate) fn extended(usages: &[&str]) -> Extension {
    let usages = usages.iter().map(|usage| oid(usage)).collect();
    extension("2.5.29.37", true, &ExtendedKeyUsage(usages))
}

/// A key identifier of one byte: of the own key, and of the issuer's.
pub(crate) fn key_id(id: u8) -> Extension {
    extension("2.5.29.14", false, &OctetString::new([id]).unwrap())
}

pub(crate) fn issuer_key_id(id: u8) -> Extension {
    let key_identifier = Some(OctetString::new([id]).unwrap());
    extension(
        "2.5.29.35",
        false,
        &AuthorityKeyIdentifier { key_identifier, ..AuthorityKeyIdentifier::default() },
    )
}

pub(crate) fn policies(policies: &[&str]) -> Extension {
    let one = |policy: &&str| PolicyInformation {
        policy_identifier: oid(policy),
        policy_qualifiers: None,
    };
    extension("2.5.29.32", false, &CertificatePolicies(policies.iter().map(one).collect()))
}

pub(crate) fn mapping(issuer: &str, subject: &str) -> Extension {
    let one =
        PolicyMapping { issuer_domain_policy: oid(issuer), subject_domain_policy: oid(subject) };
    extension("2.5.29.33", true, &PolicyMappings(vec![one]))
}

pub(crate) fn policy_constraints(explicit: Option<u32>, mapping: Option<u32>) -> Extension {
    let constraints =
        PolicyConstraints { require_explicit_policy: explicit, inhibit_policy_mapping: mapping };
    extension("2.5.29.36", true, &constraints)
}

pub(crate) fn inhibit_any(skip: u32) -> Extension {
    extension("2.5.29.54", true, &skip)
}

pub(crate) fn names(names: Vec<GeneralName>) -> Extension {
    extension("2.5.29.17", false, &SubjectAltName(names))
}

pub(crate) fn upn(text: &str) -> GeneralName {
    let value = Any::new(der::Tag::Utf8String, text.as_bytes()).unwrap();
    GeneralName::OtherName(OtherName { type_id: oid("1.3.6.1.4.1.311.20.2.3"), value })
}

fn subtree(base: GeneralName) -> GeneralSubtree {
    GeneralSubtree { base, minimum: 0, maximum: None }
}

pub(crate) fn permitted(base: GeneralName) -> Extension {
    let permitted_subtrees = Some(vec![subtree(base)]);
    let constraints = NameConstraints { permitted_subtrees, excluded_subtrees: None };
    extension("2.5.29.30", true, &constraints)
}

pub(crate) fn excluded(base: GeneralName) -> Extension {
    let excluded_subtrees = Some(vec![subtree(base)]);
    let constraints = NameConstraints { permitted_subtrees: None, excluded_subtrees };
    extension("2.5.29.30", true, &constraints)
}

pub(crate) fn crl_number(id: &str, number: u8) -> Extension {
    extension(id, id == "2.5.29.27", &Uint::new(&[number]).unwrap())
}
