//! Distinguished names, compared as RFC 5280, 7.1 wants it: case and white space do not count, nor
//! which string type a value is written in.

use std::borrow::Cow;

use der::asn1::{BmpString, ObjectIdentifier};
use der::{Any, Encode, Tag, Tagged};
use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};
use x509_cert::name::Name;

/// A name in a form in which equal names are equal: one entry a relative distinguished name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CanonicalName(Vec<Vec<u8>>);

impl CanonicalName {
    pub(crate) fn from_name(name: &Name) -> Self {
        let one = |rdn: &x509_cert::name::RelativeDistinguishedName| {
            let mut attributes: Vec<Vec<u8>> = rdn
                .0
                .iter()
                .map(|attribute| canonical_attribute(&attribute.oid, &attribute.value))
                .collect();
            // The order of a set is that of its encoding, which case changes.
            attributes.sort();
            attributes.iter().flat_map(|attribute| with_length(attribute)).collect()
        };
        Self(name.0.iter().map(one).collect())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this name lies in the subtree below `base` (RFC 5280, 4.2.1.10).
    pub(crate) fn is_within(&self, base: &Self) -> bool {
        self.0.starts_with(&base.0)
    }

    /// This name, with one more relative distinguished name below it.
    pub(crate) fn joined(&self, rdn: &x509_cert::name::RelativeDistinguishedName) -> Self {
        let mut joined = self.clone();
        joined.0.extend(Self::from_name(&x509_cert::name::RdnSequence(vec![rdn.clone()])).0);
        joined
    }

    /// As bytes that differ where the names do.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|rdn| with_length(rdn)).collect()
    }
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

fn canonical_attribute(oid: &ObjectIdentifier, value: &Any) -> Vec<u8> {
    let mut canonical = with_length(oid.as_bytes());
    match text(value) {
        Some(text) => {
            canonical.push(b'T');
            canonical.extend(prepared(&text).into_bytes());
        }
        None => {
            canonical.push(b'D');
            canonical.extend(value.to_der().unwrap_or_default());
        }
    }
    canonical
}

/// The characters of a value of a string type.
pub(crate) fn text(value: &Any) -> Option<Cow<'_, str>> {
    let bytes = value.value();
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::VisibleString => {
            std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
        }
        // In practice Latin-1, whatever T.61 says.
        Tag::TeletexString => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => BmpString::from_ucs2(bytes.to_vec()).ok().map(|s| s.to_string().into()),
        _ => None,
    }
}

/// RFC 4518, as far as names have need of it: compatibility forms, case, and runs of white space.
fn prepared(text: &str) -> String {
    let lower = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
        NFKC.normalize(&NFKC.normalize(text).to_lowercase()).into_owned()
    };
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use x509_cert::name::{Name, RdnSequence};

    use super::CanonicalName;

    fn canonical(text: &str) -> CanonicalName {
        CanonicalName::from_name(&Name::from_str(text).expect("a name"))
    }

    #[test]
    fn case_and_white_space_do_not_count() {
        assert_eq!(canonical("CN=A  Card ,O=Tests"), canonical("CN=a card,O=TESTS"));
        assert_eq!(canonical("CN=Ünïcode"), canonical("CN=üNÏcode"));
        assert_ne!(canonical("CN=A Card,O=Tests"), canonical("CN=ACard,O=Tests"));
        assert_ne!(canonical("CN=a,O=b"), canonical("O=b,CN=a"));
        assert_ne!(canonical("CN=a"), canonical("O=a"));
    }

    #[test]
    fn a_subtree_holds_what_begins_with_its_base() {
        let below = canonical("CN=a,OU=Unit,O=org");
        assert!(below.is_within(&canonical("O=ORG")));
        assert!(below.is_within(&below));
        assert!(!canonical("O=org").is_within(&below));
        assert!(!below.is_within(&canonical("O=organisation")));
        assert!(below.is_within(&CanonicalName::from_name(&RdnSequence::default())));
    }
}
