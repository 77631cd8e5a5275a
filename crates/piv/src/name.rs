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

/// RFC 4518, as far as names have need of it: characters that nobody sees, compatibility forms,
/// case, and runs of white space.
fn prepared(text: &str) -> String {
    let seen = text.chars().filter(|character| !is_mapped_to_nothing(*character));
    let folded = if text.is_ascii() {
        seen.map(|character| character.to_ascii_lowercase()).collect()
    } else {
        const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
        NFKC.normalize(&case_folded(&NFKC.normalize(&seen.collect::<String>()))).into_owned()
    };
    // White space is what section 2.2 maps to a space: separators, and the controls of lines.
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// By way of the capitals, so that letters of which one form alone has a capital are the same: "ß"
/// is "SS" there. A character at a time, because the lower case of a whole word depends on where in
/// it a sigma stands.
fn case_folded(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// RFC 4518, section 2.2: hyphens and joiners that are not shown, variation selectors, control
/// characters and control functions. The controls that separate are white space, and stay.
const fn is_mapped_to_nothing(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}'
            | '\u{1806}'
            | '\u{034F}'
            | '\u{180B}'..='\u{180D}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FFFC}'
            | '\u{200B}'
            | '\u{0000}'..='\u{0008}'
            | '\u{000E}'..='\u{001F}'
            | '\u{007F}'..='\u{0084}'
            | '\u{0086}'..='\u{009F}'
            | '\u{06DD}'
            | '\u{070F}'
            | '\u{180E}'
            | '\u{200C}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2063}'
            | '\u{206A}'..='\u{206F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0001}'
            | '\u{E0020}'..='\u{E007F}'
    )
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use der::asn1::ObjectIdentifier;
    use der::{Any, Tag};
    use x509_cert::name::{Name, RdnSequence};

    use super::{CanonicalName, prepared};

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

    /// RFC 4518, sections 2.2 and 2.3.
    #[test]
    fn what_is_not_seen_does_not_count() {
        let hidden = "\u{AD}\u{1806}\u{34F}\u{180C}\u{FE0F}\u{FFFC}\u{200B}\u{1}\u{7F}\u{9F}\u{200D}\
                      \u{202E}\u{2060}\u{FEFF}\u{FFFA}\u{1D173}\u{E0001}\u{E0041}";
        for character in hidden.chars() {
            assert_eq!(prepared(&format!("B{character}ad")), "bad", "{character:?}");
        }
        let spaces = "\t\n\u{B}\u{C}\r\u{85}\u{A0}\u{1680}\u{2003}\u{2028}\u{202F}\u{3000}";
        for character in spaces.chars() {
            assert_eq!(prepared(&format!("A{character} Card{character}")), "a card");
        }
        // What is hidden between a letter and its accent does not keep them apart.
        assert_eq!(prepared("e\u{AD}\u{301}"), prepared("\u{C9}"));
    }

    #[test]
    fn letters_are_the_same_in_all_their_cases() {
        let same = [("STRASSE", "Straße"), ("ΟΔΟΣ", "οδος"), ("ΟΔΟΣ", "οδοσ"), ("ſ", "S")];
        for (one, other) in same {
            assert_eq!(prepared(one), prepared(other));
        }
        assert_ne!(prepared("Strase"), prepared("Straße"));
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

    /// A value of a string type, as DER has it.
    fn common_name(tag: Tag, bytes: &[u8]) -> CanonicalName {
        let oid = ObjectIdentifier::new_unwrap("2.5.4.3");
        let value = Any::new(tag, bytes).expect("a value");
        let attribute = x509_cert::attr::AttributeTypeAndValue { oid, value };
        let rdn = x509_cert::name::RelativeDistinguishedName(
            vec![attribute].try_into().expect("a set of one"),
        );
        CanonicalName::from_name(&RdnSequence(vec![rdn]))
    }

    /// RFC 5280, 4.1.2.4: a CA may write its name in any of these types.
    #[test]
    fn a_name_is_the_same_in_every_string_type() {
        let utf8 = common_name(Tag::Utf8String, "Café".as_bytes());
        let latin = common_name(Tag::TeletexString, b"CAF\xC9");
        let wide = common_name(Tag::BmpString, b"\0c\0a\0f\0\xE9");
        assert_eq!(utf8, latin);
        assert_eq!(utf8, wide);
        assert_ne!(utf8, common_name(Tag::TeletexString, b"CAFE"));
        assert_ne!(utf8, common_name(Tag::OctetString, "Café".as_bytes()));
    }
}
