//! The extensions of a certificate that path validation and the PIV profiles look at.

use der::asn1::{ObjectIdentifier, OctetStringRef};
use der::oid::AssociatedOid;
use der::{Any, Decode, ErrorKind, Tag};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::crl::CrlDistributionPoints;
use x509_cert::ext::pkix::crl::dp::DistributionPoint;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityInfoAccessSyntax, AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies,
    ExtendedKeyUsage, InhibitAnyPolicy, KeyUsage, NameConstraints, PolicyConstraints,
    PolicyMappings, SubjectAltName, SubjectKeyIdentifier,
};

/// FIPS 201-3, appendix B.
const FASC_N: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.6");
const FASC_N_BYTES: usize = 25;
/// id-pkix-ocsp-nocheck (RFC 6960, 4.2.2.2.1).
const OCSP_NO_CHECK: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.5");
/// Where a certificate's OCSP responder and its issuer's certificate are (RFC 5280, 4.2.2.1).
const AD_OCSP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");
const AD_CA_ISSUERS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.2");

/// What the extensions say; absent ones say nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) subject_key_id: Option<Vec<u8>>,
    pub(crate) authority_key_id: Option<Vec<u8>>,
    pub(crate) basic_constraints: Option<BasicConstraints>,
    pub(crate) key_usage: Option<KeyUsage>,
    /// `None` without the extension.
    pub(crate) extended_key_usage: Option<Vec<ObjectIdentifier>>,
    /// Empty without the extension, which may not be empty.
    pub(crate) policies: Vec<ObjectIdentifier>,
    pub(crate) mappings: Vec<(ObjectIdentifier, ObjectIdentifier)>,
    pub(crate) policy_constraints: Option<PolicyConstraints>,
    pub(crate) inhibit_any_policy: Option<u32>,
    pub(crate) name_constraints: Option<NameConstraints>,
    pub(crate) alternative_names: Vec<GeneralName>,
    pub(crate) distribution_points: Vec<DistributionPoint>,
    /// Addresses of OCSP responders.
    pub(crate) ocsp: Vec<String>,
    /// Addresses of certificates of the issuer.
    pub(crate) ca_issuers: Vec<String>,
    pub(crate) ocsp_no_check: bool,
    /// A critical extension that nothing here understands.
    pub(crate) critical: Option<ObjectIdentifier>,
    pub(crate) fasc_n: Option<Vec<u8>>,
    pub(crate) uuid: Option<[u8; 16]>,
    /// What is wrong with FASC-N or UUID: it cannot be said whose card it is.
    pub(crate) bad_identifier: Option<&'static str>,
}

impl Extensions {
    /// # Errors
    /// When one of them is not as RFC 5280 has it, or is there twice (4.2).
    pub(crate) fn read(extensions: &[Extension]) -> der::Result<Self> {
        let mut read = Self::default();
        for (place, extension) in extensions.iter().enumerate() {
            if extensions[..place].iter().any(|before| before.extn_id == extension.extn_id) {
                return Err(ErrorKind::Value { tag: Tag::Sequence }.into());
            }
            read.add(extension)?;
        }
        Ok(read)
    }

    fn add(&mut self, extension: &Extension) -> der::Result<()> {
        let value = extension.extn_value.as_bytes();
        match extension.extn_id {
            SubjectKeyIdentifier::OID => {
                let id = SubjectKeyIdentifier::from_der(value)?;
                self.subject_key_id = Some(id.0.as_bytes().to_vec());
            }
            AuthorityKeyIdentifier::OID => {
                let id = AuthorityKeyIdentifier::from_der(value)?;
                self.authority_key_id = id.key_identifier.map(|id| id.as_bytes().to_vec());
            }
            BasicConstraints::OID => {
                self.basic_constraints = Some(BasicConstraints::from_der(value)?);
            }
            KeyUsage::OID => self.key_usage = Some(KeyUsage::from_der(value)?),
            ExtendedKeyUsage::OID => {
                self.extended_key_usage = Some(ExtendedKeyUsage::from_der(value)?.0);
            }
            SubjectAltName::OID => self.read_names(SubjectAltName::from_der(value)?),
            CrlDistributionPoints::OID => {
                self.distribution_points = CrlDistributionPoints::from_der(value)?.0;
            }
            AuthorityInfoAccessSyntax::OID => {
                self.read_access(&AuthorityInfoAccessSyntax::from_der(value)?);
            }
            OCSP_NO_CHECK => self.ocsp_no_check = true,
            other => self.add_policy(other, value, extension.critical)?,
        }
        Ok(())
    }

    /// Extensions that constrain a path, and those that nothing here knows.
    fn add_policy(
        &mut self,
        oid: ObjectIdentifier,
        value: &[u8],
        critical: bool,
    ) -> der::Result<()> {
        match oid {
            CertificatePolicies::OID => {
                let policies = CertificatePolicies::from_der(value)?.0;
                self.policies = policies.into_iter().map(|one| one.policy_identifier).collect();
                let once = |(place, one)| !self.policies[..place].contains(one);
                if self.policies.is_empty() || !self.policies.iter().enumerate().all(once) {
                    // RFC 5280, 4.2.1.4: at least one, and none twice.
                    return Err(ErrorKind::Value { tag: Tag::Sequence }.into());
                }
            }
            PolicyMappings::OID => {
                let mappings = PolicyMappings::from_der(value)?.0;
                let pair = |mapping: x509_cert::ext::pkix::PolicyMapping| {
                    (mapping.issuer_domain_policy, mapping.subject_domain_policy)
                };
                self.mappings = mappings.into_iter().map(pair).collect();
            }
            PolicyConstraints::OID => {
                self.policy_constraints = Some(PolicyConstraints::from_der(value)?);
            }
            InhibitAnyPolicy::OID => {
                self.inhibit_any_policy = Some(InhibitAnyPolicy::from_der(value)?.0);
            }
            NameConstraints::OID => {
                self.name_constraints = Some(NameConstraints::from_der(value)?);
            }
            other if critical => self.critical = Some(other),
            _ => {}
        }
        Ok(())
    }

    /// FASC-N and UUID (FIPS 201-3, 4.2.2): one of each, or none. A certificate of a card in which
    /// they are anything else is refused, that of a CA may be.
    fn read_names(&mut self, names: SubjectAltName) {
        for name in &names.0 {
            match name {
                GeneralName::OtherName(other) if other.type_id == FASC_N => {
                    self.add_fasc_n(&other.value);
                }
                GeneralName::UniformResourceIdentifier(uri) => self.add_uuid(uri.as_str()),
                _ => {}
            }
        }
        self.alternative_names = names.0;
    }

    fn add_fasc_n(&mut self, value: &Any) {
        let octets = value.decode_as::<OctetStringRef<'_>>().map(|octets| octets.as_bytes());
        match octets {
            Ok(octets) if octets.len() == FASC_N_BYTES && self.fasc_n.is_none() => {
                self.fasc_n = Some(octets.to_vec());
            }
            Ok(octets) if octets.len() == FASC_N_BYTES => {
                self.bad_identifier = Some("more than one FASC-N");
            }
            Ok(_) => self.bad_identifier = Some("a FASC-N that has not 25 bytes"),
            Err(_) => self.bad_identifier = Some("a FASC-N that is no OCTET STRING"),
        }
    }

    fn add_uuid(&mut self, uri: &str) {
        let text = uri.to_ascii_lowercase();
        let Some(digits) = text.strip_prefix("urn:uuid:") else { return };
        let bytes = hex::decode(digits.replace('-', "")).ok();
        match bytes.and_then(|bytes| bytes.try_into().ok()) {
            Some(uuid) if self.uuid.is_none() => self.uuid = Some(uuid),
            Some(_) => self.bad_identifier = Some("more than one UUID"),
            None => self.bad_identifier = Some("a UUID that has not 32 hexadecimal digits"),
        }
    }

    fn read_access(&mut self, access: &AuthorityInfoAccessSyntax) {
        for description in &access.0 {
            let GeneralName::UniformResourceIdentifier(uri) = &description.access_location else {
                continue;
            };
            match description.access_method {
                AD_OCSP => self.ocsp.push(uri.as_str().to_owned()),
                AD_CA_ISSUERS => self.ca_issuers.push(uri.as_str().to_owned()),
                _ => {}
            }
        }
    }

    /// Whether it is a CA's (RFC 5280, 4.2.1.9).
    pub(crate) fn is_ca(&self) -> bool {
        self.basic_constraints.as_ref().is_some_and(|constraints| constraints.ca)
    }

    /// Whether its key may sign CRLs: without the extension a key may sign everything.
    pub(crate) fn may_sign_crls(&self) -> bool {
        self.key_usage.is_none_or(|usage| usage.crl_sign())
    }
}
