//! Name constraints (RFC 5280, 4.2.1.10): distinguished names, mail and DNS names, URIs, addresses,
//! and the user principal names of PIV authentication certificates.

use der::asn1::{ObjectIdentifier, Utf8StringRef};
use x509_cert::ext::pkix::NameConstraints;
use x509_cert::ext::pkix::constraints::name::GeneralSubtree;
use x509_cert::ext::pkix::name::GeneralName;

use crate::certificate::Certificate;
use crate::name::{CanonicalName, text};

/// emailAddress (PKCS #9), where certificates had their mail names once.
const EMAIL_ADDRESS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.1");
/// The user principal name by which Microsoft's directory knows the holder.
const UPN: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.20.2.3");

/// All constraints of the certificates above.
#[derive(Default)]
pub(super) struct ConstrainedNames {
    /// One entry for each certificate: a name must lie in one subtree of every entry that speaks of
    /// its form.
    permitted: Vec<Vec<Subtree>>,
    excluded: Vec<Subtree>,
}

/// The name forms that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConstrainedName {
    Directory(CanonicalName),
    Mail(String),
    Dns(String),
    Uri(String),
    Address(Vec<u8>),
    Upn(String),
    /// Of a form that nothing here compares: by which two are of one form.
    Other(String),
}

#[derive(Clone, Debug)]
struct Subtree {
    base: ConstrainedName,
    /// It begins or ends somewhere in the tree, which RFC 5280 does not allow.
    partial: bool,
}

impl ConstrainedNames {
    /// 6.1.4 (g).
    pub(super) fn add(&mut self, constraints: &NameConstraints) {
        let subtrees = |of: &Option<Vec<GeneralSubtree>>| -> Vec<Subtree> {
            of.iter().flatten().map(Subtree::from_constraint).collect()
        };
        if constraints.permitted_subtrees.is_some() {
            self.permitted.push(subtrees(&constraints.permitted_subtrees));
        }
        self.excluded.extend(subtrees(&constraints.excluded_subtrees));
    }

    /// 6.1.3 (b) and (c): the first name that is not allowed.
    pub(super) fn forbidden_name(&self, certificate: &Certificate) -> Option<String> {
        if self.permitted.is_empty() && self.excluded.is_empty() {
            return None;
        }
        names(certificate)
            .into_iter()
            .find_map(|(name, shown)| (!self.allows(&name)).then_some(shown))
    }

    fn allows(&self, name: &ConstrainedName) -> bool {
        let of_form = |subtree: &&Subtree| subtree.base.is_of_form(name);
        let excluded = self.excluded.iter().filter(of_form);
        if { excluded }.any(|subtree| subtree.holds(name, Side::Excluded) != Some(false)) {
            return false;
        }
        self.permitted.iter().all(|permitted| {
            let mut of_form = permitted.iter().filter(of_form).peekable();
            of_form.peek().is_none()
                || of_form.any(|subtree| subtree.holds(name, Side::Permitted) == Some(true))
        })
    }
}

/// Where there are two readings of a constraint, the stricter one is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Permitted,
    Excluded,
}

impl Subtree {
    fn from_constraint(subtree: &GeneralSubtree) -> Self {
        Self {
            base: ConstrainedName::from_general_name(&subtree.base),
            partial: subtree.minimum != 0 || subtree.maximum.is_some(),
        }
    }

    /// Whether a name of this form lies in it; `None`: it cannot be said.
    fn holds(&self, name: &ConstrainedName, side: Side) -> Option<bool> {
        if self.partial {
            return None;
        }
        match (&self.base, name) {
            (ConstrainedName::Directory(base), ConstrainedName::Directory(name)) => {
                Some(name.is_within(base))
            }
            (ConstrainedName::Mail(base), ConstrainedName::Mail(name)) => mail_holds(base, name),
            (ConstrainedName::Dns(base), ConstrainedName::Dns(name)) => Some(dns_holds(base, name)),
            (ConstrainedName::Uri(base), ConstrainedName::Uri(name)) => {
                uri_host(name).map(|host| host_holds(base, host))
            }
            (ConstrainedName::Address(base), ConstrainedName::Address(name)) => {
                address_holds(base, name)
            }
            (ConstrainedName::Upn(base), ConstrainedName::Upn(name)) => upn_holds(base, name, side),
            _ => None,
        }
    }
}

impl ConstrainedName {
    fn from_general_name(name: &GeneralName) -> Self {
        let lower = |text: &str| text.to_ascii_lowercase();
        match name {
            GeneralName::DirectoryName(name) => Self::Directory(CanonicalName::from_name(name)),
            GeneralName::Rfc822Name(name) => Self::Mail(name.as_str().to_owned()),
            GeneralName::DnsName(name) => Self::Dns(lower(name.as_str())),
            GeneralName::UniformResourceIdentifier(name) => Self::Uri(lower(name.as_str())),
            GeneralName::IpAddress(bytes) => Self::Address(bytes.as_bytes().to_vec()),
            GeneralName::OtherName(other) if other.type_id == UPN => {
                match other.value.decode_as::<Utf8StringRef<'_>>() {
                    Ok(upn) => Self::Upn(upn.as_str().to_lowercase()),
                    // Neither inside nor outside of any subtree.
                    Err(_) => Self::Upn(String::new()),
                }
            }
            GeneralName::OtherName(other) => Self::Other(other.type_id.to_string()),
            GeneralName::EdiPartyName(_) => Self::Other("ediPartyName".to_owned()),
            GeneralName::RegisteredId(_) => Self::Other("registeredID".to_owned()),
        }
    }

    fn is_of_form(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Other(one), Self::Other(other)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

/// The names of a certificate, each with what is said of it.
fn names(certificate: &Certificate) -> Vec<(ConstrainedName, String)> {
    let mut names = Vec::new();
    if !certificate.subject_name.is_empty() {
        let own = ConstrainedName::Directory(certificate.subject_name.clone());
        names.push((own, certificate.subject()));
    }
    let attributes = certificate.subject_dn().0.iter().flat_map(|rdn| rdn.0.iter());
    for attribute in attributes.filter(|attribute| attribute.oid == EMAIL_ADDRESS) {
        let mail = text(&attribute.value).unwrap_or_default().into_owned();
        names.push((ConstrainedName::Mail(mail.clone()), mail));
    }
    for name in &certificate.extensions.alternative_names {
        let own = ConstrainedName::from_general_name(name);
        let shown = match &own {
            ConstrainedName::Directory(_) => match name {
                GeneralName::DirectoryName(name) => name.to_string(),
                _ => unreachable!("a directory name is made of one"),
            },
            ConstrainedName::Mail(text)
            | ConstrainedName::Dns(text)
            | ConstrainedName::Uri(text)
            | ConstrainedName::Upn(text)
            | ConstrainedName::Other(text) => text.clone(),
            ConstrainedName::Address(bytes) => format!("address {}", hex::encode(bytes)),
        };
        names.push((own, shown));
    }
    names
}

/// A mailbox, all of a host, or all of a domain (`.example.com`).
fn mail_holds(base: &str, name: &str) -> Option<bool> {
    if base.is_empty() {
        return None;
    }
    // The local part counts case (RFC 5321, 2.4), the host does not.
    let (local, host) = name.rsplit_once('@')?;
    Some(match base.rsplit_once('@') {
        Some((wanted, of)) => {
            wanted == local && without_root(host).eq_ignore_ascii_case(without_root(of))
        }
        None => host_holds(&base.to_ascii_lowercase(), &host.to_ascii_lowercase()),
    })
}

/// The name itself, or labels in front of it.
fn dns_holds(base: &str, name: &str) -> bool {
    let name = without_root(name);
    let base = without_root(base);
    let base = base.strip_prefix('.').unwrap_or(base);
    base.is_empty()
        || name.strip_suffix(base).is_some_and(|labels| labels.is_empty() || labels.ends_with('.'))
}

/// One host; or with a leading period all below it, but not itself.
fn host_holds(base: &str, host: &str) -> bool {
    let base = without_root(base);
    let host = without_root(host);
    match base.strip_prefix('.') {
        Some(_) => host.len() > base.len() && host.ends_with(base),
        None => host == base,
    }
}

/// A host with the period of the root at its end is the same host.
fn without_root(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// The host of a URI; `None` where there is none, or an address: then RFC 5280 wants a refusal. One
/// that is written with % could be any.
fn uri_host(uri: &str) -> Option<&str> {
    let (_, after) = uri.split_once("://")?;
    let authority = after.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.starts_with('[') {
        return None;
    }
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let plain = without_root(host);
    let is_address = plain.parse::<std::net::Ipv4Addr>().is_ok();
    let named = !plain.is_empty() && !plain.contains('%') && !is_address;
    named.then_some(host)
}

/// An address and a mask, of version 4 or 6.
fn address_holds(base: &[u8], address: &[u8]) -> Option<bool> {
    if !matches!(base.len(), 8 | 32) || !matches!(address.len(), 4 | 16) {
        return None;
    }
    let (network, mask) = base.split_at(base.len() / 2);
    if network.len() != address.len() {
        return Some(false);
    }
    let differs = |((one, other), mask): ((&u8, &u8), &u8)| (one ^ other) & mask != 0;
    Some(!network.iter().zip(address).zip(mask).any(differs))
}

/// No standard has constraints for these: `user@domain`, a domain with or without `@`, and with a
/// leading period all below it. What is excluded is excluded with all below it.
fn upn_holds(base: &str, name: &str, side: Side) -> Option<bool> {
    let (_, domain) = name.rsplit_once('@')?;
    let Some(wanted) = base.strip_prefix('@').or((!base.contains('@')).then_some(base)) else {
        return Some(base == name);
    };
    if wanted.is_empty() {
        return None;
    }
    Some(match side {
        Side::Permitted => host_holds(wanted, domain),
        Side::Excluded => dns_holds(wanted, domain),
    })
}
