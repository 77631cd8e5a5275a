//! A CA of the tests: certificates as cards have them, with anything wrong that a test wants, and
//! CRLs.

use std::str::FromStr;
use std::time::Duration;

use der::asn1::{BitString, GeneralizedTime, Ia5String, ObjectIdentifier, OctetString};
use der::referenced::OwnedToRef;
use der::{Any, Encode, Tag};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use rsa::rand_core::OsRng;
use tapstone_piv::Time;
use x509_cert::builder::{Builder, CertificateBuilder, Profile};
use x509_cert::crl::{CertificateList, RevokedCert, TbsCertList};
use x509_cert::ext::pkix::certpolicy::PolicyInformation;
use x509_cert::ext::pkix::name::{GeneralName, OtherName};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies, ExtendedKeyUsage, KeyUsage,
    KeyUsages, PolicyMapping, PolicyMappings, SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::Validity;
use x509_cert::{Certificate, Version};

use super::{DAY, NOW};

const FASC_N: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.6");
const CARD_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.8");

/// A CA.
pub(crate) struct Ca {
    pub(crate) name: String,
    pub(crate) key: SigningKey,
    pub(crate) certificate: Certificate,
}

/// What a certificate is to be.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) serial: u8,
    pub(crate) from: Time,
    pub(crate) until: Time,
    pub(crate) usage: Option<KeyUsages>,
    pub(crate) extended: Option<ObjectIdentifier>,
    pub(crate) policies: Vec<ObjectIdentifier>,
    pub(crate) fasc_n: Option<Vec<u8>>,
    pub(crate) uuid: Option<[u8; 16]>,
    /// A critical extension that nobody knows.
    pub(crate) unknown: bool,
    pub(crate) authority: bool,
}

impl Default for Leaf {
    fn default() -> Self {
        Self {
            serial: 7,
            from: Time(NOW.0 - 100 * DAY),
            until: Time(NOW.0 + 100 * DAY),
            usage: Some(KeyUsages::DigitalSignature),
            extended: Some(CARD_AUTHENTICATION),
            policies: Vec::new(),
            fasc_n: None,
            uuid: None,
            unknown: false,
            authority: true,
        }
    }
}

/// The public key of a private one in PKCS #8.
pub(crate) fn spki(key: &SigningKey) -> SubjectPublicKeyInfoOwned {
    SubjectPublicKeyInfoOwned::from_key(*key.verifying_key()).unwrap()
}

fn validity(from: Time, until: Time) -> Validity {
    let time = |time: Time| {
        let moment = GeneralizedTime::from_unix_duration(Duration::from_secs(time.0)).unwrap();
        x509_cert::time::Time::GeneralTime(moment)
    };
    Validity { not_before: time(from), not_after: time(until) }
}

fn around() -> Validity {
    validity(Time(NOW.0 - 1000 * DAY), Time(NOW.0 + 1000 * DAY))
}

fn name(common: &str) -> Name {
    Name::from_str(&format!("CN={common},O=Tests")).unwrap()
}

impl Ca {
    /// Self-signed.
    pub(crate) fn root(common: &str) -> Self {
        Self::rooted(common, around())
    }

    /// Until far into the next decade.
    pub(crate) fn lasting_root(common: &str) -> Self {
        Self::rooted(common, validity(Time(NOW.0 - DAY), Time(NOW.0 + 4000 * DAY)))
    }

    pub(crate) fn expired_root(common: &str) -> Self {
        Self::rooted(common, validity(Time(NOW.0 - 10 * DAY), Time(NOW.0 - DAY)))
    }

    fn rooted(common: &str, validity: Validity) -> Self {
        let key = SigningKey::random(&mut OsRng);
        let serial = SerialNumber::from(1_u8);
        let builder = CertificateBuilder::new(
            Profile::Root,
            serial,
            validity,
            name(common),
            spki(&key),
            &key,
        );
        let certificate = builder.unwrap().build::<DerSignature>().unwrap();
        Self { name: common.to_owned(), key, certificate }
    }

    /// A CA below this one.
    pub(crate) fn ca(&self, common: &str, path_len: Option<u8>) -> Self {
        self.ca_with(common, path_len, &[], &[])
    }

    pub(crate) fn ca_with(
        &self,
        common: &str,
        path_len: Option<u8>,
        policies: &[ObjectIdentifier],
        mappings: &[(ObjectIdentifier, ObjectIdentifier)],
    ) -> Self {
        let key = SigningKey::random(&mut OsRng);
        let profile = Profile::SubCA { issuer: name(&self.name), path_len_constraint: path_len };
        let mut builder = CertificateBuilder::new(
            profile,
            SerialNumber::from(2_u8),
            around(),
            name(common),
            spki(&key),
            &self.key,
        )
        .unwrap();
        if !policies.is_empty() {
            builder.add_extension(&asserted(policies)).unwrap();
        }
        let pair = |(issuer, subject): &(ObjectIdentifier, ObjectIdentifier)| PolicyMapping {
            issuer_domain_policy: *issuer,
            subject_domain_policy: *subject,
        };
        if !mappings.is_empty() {
            builder.add_extension(&PolicyMappings(mappings.iter().map(pair).collect())).unwrap();
        }
        let certificate = builder.build::<DerSignature>().unwrap();
        Self { name: common.to_owned(), key, certificate }
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        self.certificate.to_der().unwrap()
    }

    /// A certificate of a card for this key.
    pub(crate) fn leaf(&self, key: SubjectPublicKeyInfoOwned, leaf: &Leaf) -> Vec<u8> {
        let profile = Profile::Manual { issuer: Some(name(&self.name)) };
        let validity = validity(leaf.from, leaf.until);
        let serial = SerialNumber::from(leaf.serial);
        let subject = name("a card");
        let id = SubjectKeyIdentifier::try_from(key.owned_to_ref()).unwrap();
        let mut builder =
            CertificateBuilder::new(profile, serial, validity, subject, key, &self.key).unwrap();
        builder.add_extension(&id).unwrap();
        if leaf.authority {
            let own = &self.certificate.tbs_certificate.subject_public_key_info;
            let id = AuthorityKeyIdentifier::try_from(own.owned_to_ref()).unwrap();
            builder.add_extension(&id).unwrap();
        }
        if let Some(usage) = leaf.usage {
            builder.add_extension(&KeyUsage(usage.into())).unwrap();
        }
        if let Some(extended) = leaf.extended {
            builder.add_extension(&ExtendedKeyUsage(vec![extended])).unwrap();
        }
        if !leaf.policies.is_empty() {
            builder.add_extension(&asserted(&leaf.policies)).unwrap();
        }
        let mut names = Vec::new();
        if let Some(fasc_n) = &leaf.fasc_n {
            let value = Any::new(Tag::OctetString, fasc_n.clone()).unwrap();
            names.push(GeneralName::OtherName(OtherName { type_id: FASC_N, value }));
        }
        if let Some(uuid) = leaf.uuid {
            let text = format!("urn:uuid:{}", hex::encode(uuid));
            names.push(GeneralName::UniformResourceIdentifier(Ia5String::new(&text).unwrap()));
        }
        if !names.is_empty() {
            builder.add_extension(&SubjectAltName(names)).unwrap();
        }
        if leaf.unknown {
            builder.add_extension(&Unknown).unwrap();
        }
        builder.build::<DerSignature>().unwrap().to_der().unwrap()
    }

    /// The same key and name again, without being a CA.
    pub(crate) fn no_longer_a_ca(&self, issuer: &Self) -> Vec<u8> {
        let profile = Profile::Manual { issuer: Some(name(&issuer.name)) };
        let mut builder = CertificateBuilder::new(
            profile,
            SerialNumber::from(3_u8),
            around(),
            name(&self.name),
            spki(&self.key),
            &issuer.key,
        )
        .unwrap();
        let id = SubjectKeyIdentifier::try_from(spki(&self.key).owned_to_ref()).unwrap();
        builder.add_extension(&id).unwrap();
        let constraints = BasicConstraints { ca: false, path_len_constraint: None };
        builder.add_extension(&constraints).unwrap();
        builder.build::<DerSignature>().unwrap().to_der().unwrap()
    }
}

fn asserted(policies: &[ObjectIdentifier]) -> CertificatePolicies {
    let information = |policy: &ObjectIdentifier| PolicyInformation {
        policy_identifier: *policy,
        policy_qualifiers: None,
    };
    CertificatePolicies(policies.iter().map(information).collect())
}

/// A critical extension that nobody knows.
struct Unknown;

impl der::oid::AssociatedOid for Unknown {
    const OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.99999.1");
}

impl der::Encode for Unknown {
    fn encoded_len(&self) -> der::Result<der::Length> {
        der::asn1::Null.encoded_len()
    }

    fn encode(&self, writer: &mut impl der::Writer) -> der::Result<()> {
        der::asn1::Null.encode(writer)
    }
}

impl x509_cert::ext::AsExtension for Unknown {
    fn critical(&self, _: &Name, _: &[x509_cert::ext::Extension]) -> bool {
        true
    }
}

/// A CRL of a CA with these serial numbers, valid between these moments.
pub(crate) fn crl(ca: &Ca, serials: &[u8], from: Time, until: Time) -> Vec<u8> {
    const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
    let algorithm = AlgorithmIdentifierOwned { oid: ECDSA_SHA256, parameters: None };
    let Validity { not_before, not_after } = validity(from, until);
    let revoked = |serial: &u8| RevokedCert {
        serial_number: SerialNumber::from(*serial),
        revocation_date: not_before,
        crl_entry_extensions: None,
    };
    let list = TbsCertList {
        version: Version::V2,
        signature: algorithm.clone(),
        issuer: name(&ca.name),
        this_update: not_before,
        next_update: Some(not_after),
        revoked_certificates: (!serials.is_empty()).then(|| serials.iter().map(revoked).collect()),
        crl_extensions: Some(vec![authority(ca)]),
    };
    let signature: DerSignature = ca.key.sign(&list.to_der().unwrap());
    let list = CertificateList {
        tbs_cert_list: list,
        signature_algorithm: algorithm,
        signature: BitString::from_bytes(&signature.to_bytes()).unwrap(),
    };
    list.to_der().unwrap()
}

fn authority(ca: &Ca) -> x509_cert::ext::Extension {
    let own = &ca.certificate.tbs_certificate.subject_public_key_info;
    let id = AuthorityKeyIdentifier::try_from(own.owned_to_ref()).unwrap();
    x509_cert::ext::Extension {
        extn_id: <AuthorityKeyIdentifier as der::oid::AssociatedOid>::OID,
        critical: false,
        extn_value: OctetString::new(id.to_der().unwrap()).unwrap(),
    }
}
