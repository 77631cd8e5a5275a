//! CHUIDs and their signatures, written out here: SP 800-73-5 part 1, 3.1.2; RFC 5652, section 5.

use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};
use der::asn1::{ObjectIdentifier, OctetString, SetOfVec};
use der::{Any, Decode, Encode};
use p256::ecdsa::DerSignature;
use p256::ecdsa::signature::Signer;
use sha2::{Digest, Sha256, Sha384, Sha512};
use tapstone_apdu::tlv::element;
use tapstone_piv::{Chuid, Denial, Time};
use x509_cert::attr::Attribute;
use x509_cert::ext::pkix::SubjectKeyIdentifier;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;

use crate::support::{
    CA, Ca, DAY, ECDSA_SHA256, Files, Leaf, NOW, PLAIN, Spec, decision, key, key_id, name, oid,
    relying_system,
};

const CHUID_SECURITY_OBJECT: &str = "2.16.840.1.101.3.6.1";
const SHA_256: &str = "2.16.840.1.101.3.4.2.1";
/// id-data (RFC 5652, 4).
const DATA: &str = "1.2.840.113549.1.7.1";
const SERIAL: u8 = 30;

/// FASC-N, GUID and date.
fn start() -> Vec<u8> {
    [element(0x30, &[3; 25]), element(0x34, &[4; 16]), element(0x35, b"20261121")].concat()
}

/// A signature that is to be.
struct Signature {
    sid: SignerIdentifier,
    hash: &'static str,
    signer: usize,
    certificates: Vec<Spec>,
    kind: &'static str,
    /// The content type that is signed beside the digest.
    attribute: &'static str,
    signers: usize,
}

/// A certificate of a content signer, with the key identifier of its key's number.
fn certificate(issuer: &str, key: usize, serial: u8) -> Spec {
    Spec::ca("CN=Signer,O=Tests", issuer, [key, 1], serial).with(key_id(key as u8))
}

fn by_serial(serial: u8) -> SignerIdentifier {
    SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
        issuer: name(CA),
        serial_number: SerialNumber::from(serial),
    })
}

fn by_key_id(id: u8) -> SignerIdentifier {
    SignerIdentifier::SubjectKeyIdentifier(SubjectKeyIdentifier(OctetString::new([id]).unwrap()))
}

impl Signature {
    fn new() -> Self {
        Self {
            sid: by_serial(SERIAL),
            hash: SHA_256,
            signer: 2,
            certificates: vec![certificate(CA, 2, SERIAL)],
            kind: CHUID_SECURITY_OBJECT,
            attribute: CHUID_SECURITY_OBJECT,
            signers: 1,
        }
    }

    fn der(&self, signed: &[u8]) -> Vec<u8> {
        let digest = match self.hash {
            "2.16.840.1.101.3.4.2.2" => Sha384::digest(signed).to_vec(),
            "2.16.840.1.101.3.4.2.3" => Sha512::digest(signed).to_vec(),
            _ => Sha256::digest(signed).to_vec(),
        };
        let attribute = |id, value: Any| {
            let values = SetOfVec::try_from(vec![value]).unwrap();
            Attribute { oid: oid(id), values }
        };
        let digest = Any::encode_from(&OctetString::new(digest).unwrap()).unwrap();
        let attributes = SetOfVec::try_from(vec![
            attribute("1.2.840.113549.1.9.3", Any::encode_from(&oid(self.attribute)).unwrap()),
            attribute("1.2.840.113549.1.9.4", digest),
        ])
        .unwrap();
        let signature: DerSignature = key(self.signer).sign(&attributes.to_der().unwrap());
        let algorithm = |oid: ObjectIdentifier| AlgorithmIdentifierOwned { oid, parameters: None };
        let info = |version| SignerInfo {
            version,
            sid: self.sid.clone(),
            digest_alg: algorithm(oid(self.hash)),
            signed_attrs: Some(attributes.clone()),
            signature_algorithm: algorithm(ECDSA_SHA256),
            signature: OctetString::new(signature.to_bytes()).unwrap(),
            unsigned_attrs: None,
        };
        let versions = [CmsVersion::V1, CmsVersion::V3];
        let infos: Vec<SignerInfo> = versions[..self.signers].iter().map(|it| info(*it)).collect();
        let parsed = |spec: &Spec| {
            CertificateChoices::Certificate(x509_cert::Certificate::from_der(&spec.der()).unwrap())
        };
        let certificates: Vec<_> = self.certificates.iter().map(parsed).collect();
        let data = SignedData {
            version: CmsVersion::V3,
            digest_algorithms: SetOfVec::try_from(vec![algorithm(oid(self.hash))]).unwrap(),
            encap_content_info: EncapsulatedContentInfo {
                econtent_type: oid(self.kind),
                econtent: None,
            },
            certificates: Some(CertificateSet(SetOfVec::try_from(certificates).unwrap())),
            crls: None,
            signer_infos: SignerInfos(SetOfVec::try_from(infos).unwrap()),
        };
        let content = Any::encode_from(&data).unwrap();
        ContentInfo { content_type: oid("1.2.840.113549.1.7.2"), content }.to_der().unwrap()
    }

    /// The signer's serial number, or what is wrong.
    fn judged(&self) -> Result<Vec<u8>, String> {
        let behind = element(0xFE, &[]);
        let signature = self.der(&[start(), behind.clone()].concat());
        let content = [start(), element(0x3E, &signature), behind].concat();
        let chuid = Chuid::parse(&element(0x53, &content)).unwrap();
        match chuid.signer() {
            Ok(signer) => {
                let parsed = x509_cert::Certificate::from_der(signer.der()).unwrap();
                Ok(parsed.tbs_certificate.serial_number.as_bytes().to_vec())
            }
            Err(Denial::ChuidSignature { why }) => Err(why),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_signature_is_that_of_a_chuid() {
    assert_eq!(Signature::new().judged(), Ok(vec![SERIAL]));
    let wrong = |change: fn(&mut Signature)| {
        let mut signature = Signature::new();
        change(&mut signature);
        signature.judged().unwrap_err()
    };
    assert_eq!(wrong(|it| it.signer = 3), "it is not the signer's");
    assert_eq!(wrong(|it| it.signers = 0), "it has not one signer");
    assert_eq!(wrong(|it| it.signers = 2), "it has not one signer");
    assert_eq!(wrong(|it| it.kind = DATA), "it is the signature of something else");
    assert_eq!(wrong(|it| it.attribute = DATA), "its attributes are those of something else");
    let unsupported = wrong(|it| it.hash = "1.3.14.3.2.26");
    assert_eq!(unsupported, "its hash function is not supported");
    for hash in ["2.16.840.1.101.3.4.2.2", "2.16.840.1.101.3.4.2.3"] {
        assert_eq!(Signature { hash, ..Signature::new() }.judged(), Ok(vec![SERIAL]), "{hash}");
    }
}

/// Of several certificates in it, the one that is named: by issuer and serial number together, or
/// by its key identifier.
#[test]
fn the_signer_s_certificate_is_the_one_that_is_named() {
    // The same issuer with other numbers, and the same number by another issuer; they stand in the
    // set in the order of their encodings.
    let others = [
        certificate(CA, 3, SERIAL - 1),
        certificate(CA, 3, SERIAL + 1),
        certificate("CN=A,O=Tests", 4, SERIAL),
        certificate("CN=Z,O=Tests", 4, SERIAL),
        certificate("CN=Another CA,O=Tests", 4, SERIAL),
    ];
    let named = |sid: SignerIdentifier, has_own: bool| {
        let mut certificates = others.to_vec();
        certificates.extend(has_own.then(|| certificate(CA, 2, SERIAL)));
        Signature { sid, certificates, ..Signature::new() }.judged()
    };
    let missing = Err("the signer's certificate is missing".to_owned());
    for sid in [by_serial(SERIAL), by_key_id(2)] {
        assert_eq!(named(sid.clone(), true), Ok(vec![SERIAL]));
        assert_eq!(named(sid, false), missing);
    }
    assert_eq!(named(by_serial(SERIAL + 2), true), missing);
    assert_eq!(named(by_key_id(9), true), missing);
}

/// BER-TLV lengths of one, two and three bytes (ISO/IEC 7816-4, 5.2.2.2), cut after the date.
#[test]
fn a_start_is_read_after_any_length() {
    let start = start();
    for header in [&[0x53, 59][..], &[0x53, 0x81, 200], &[0x53, 0x82, 10, 0]] {
        let chuid = Chuid::parse_start(&[header, &start].concat()).unwrap();
        assert_eq!(chuid.identity.fasc_n, Some(vec![3; 25]));
        assert_eq!(chuid.identity.uuid, Some([4; 16]));
        assert_eq!(chuid.expires, Time(NOW.0 + DAY / 2 - 1));
        let cut = [header, &start[..start.len() - 1]].concat();
        assert!(Chuid::parse_start(&cut).is_err());
    }
    assert!(Chuid::parse_start(&[&[0x54, 59][..], &start].concat()).is_err());
    assert!(Chuid::parse_start(&[]).is_err());
}

/// A CHUID expires with its last day.
#[test]
fn a_chuid_holds_until_the_last_second_of_its_day() {
    let ca = Ca::root("root");
    let files = Files::with(&ca, &Leaf::of_card());
    let mut chuid = files.get("chuid.bin");
    chuid[47..55].copy_from_slice(b"20261121");
    files.put("chuid.bin", &chuid);
    let decide = |at| {
        let mut door = relying_system(&[&ca.der()], None);
        decision(&mut door, &mut files.card(), PLAIN, at).err().map(|refusal| refusal.code())
    };
    let last = NOW.0 + DAY / 2 - 1;
    assert_eq!(decide(Time(last)), None);
    assert_eq!(decide(Time(last + 1)), Some("chuid-expired"));
}
