//! Card data: what makes one PIV card differ from another. Objects, keys, PIN and PUK.
//!
//! It is a folder with a file for each object and each key, or one TOML file with the same in hex:
//!
//! | file | holds |
//! | --- | --- |
//! | `chuid.bin`, `ccc.bin`, `security_object.bin`, … | the object's content, without its tag 53 |
//! | `discovery.bin`, `biometric_templates.bin` | the whole object, with its own tag |
//! | `piv_authentication_9a.der` | certificate of a key, X.509 DER |
//! | `digital_signature_9c.der` | |
//! | `key_management_9d.der` | |
//! | `card_authentication_9e.der` | |
//! | the same names with `.p8` | the key, PKCS #8 DER, unencrypted |
//! | `retired_1.der` to `retired_20.der` | certificates of retired keys |
//! | `pin`, `puk` | as typed; without the file 123456 and 12345678 |
//! | `ca.der`, `ca.p8` | the CA that issued a generated card; not on the card |
//!
//! Any of them may be missing: the card then answers 6A82, or 6A86 for a key. Nothing is held
//! against anything else, because cards with a wrong certificate or a foreign CHUID are worth
//! testing too. A generated card has all mandatory objects but the biometric ones.

mod certificate;
mod chuid;
mod containers;
mod error;
mod generate;
mod identifiers;
mod signed;
mod store;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use zeroize::Zeroizing;

pub use self::containers::CertificateStorage;
pub use self::error::CardDataError;
use super::key::{PivAlgorithm, PrivateKey};
use super::object::{self, ObjectContent};
use super::pin::PinSecret;
use super::{YUBICO_SERIAL_BYTES, tlv};

/// The key references that a card has: SP 800-73-5 part 1, table 4.
const KEYS: [u8; 4] = [0x9A, 0x9C, 0x9D, 0x9E];

const DEFAULT_PIN: &[u8] = b"123456";
const DEFAULT_PUK: &[u8] = b"12345678";

/// The contents of card data by the names of its files.
type Files = BTreeMap<String, Zeroizing<Vec<u8>>>;

/// What is on one card.
#[derive(Debug)]
pub struct CardData {
    pub(super) pin: PinSecret,
    pub(super) puk: PinSecret,
    /// What GET DATA answers, by tag.
    objects: BTreeMap<u32, Vec<u8>>,
    keys: BTreeMap<u8, PrivateKey>,
    /// The bytes of the certificate for card authentication, as DER.
    certificate: usize,
}

/// What a generated card is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// Of the key for PIV authentication, 9A.
    pub authentication: PivAlgorithm,
    /// Of the key for digital signatures, 9C.
    pub signature: PivAlgorithm,
    /// Of the key for key management, 9D.
    pub management: PivAlgorithm,
    /// Of the key for card authentication, 9E.
    pub card: PivAlgorithm,
    /// How many bytes the CHUID is to have, without its tag 53; `None`: as many as it takes.
    pub chuid_bytes: Option<usize>,
    /// How many bytes the certificate for card authentication is to have; `None`: as many as it
    /// takes.
    pub certificate_bytes: Option<usize>,
    /// How certificates stand on the card. The files hold them as DER in any case.
    pub certificates: CertificateStorage,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            authentication: PivAlgorithm::Rsa2048,
            signature: PivAlgorithm::Rsa2048,
            management: PivAlgorithm::P256,
            card: PivAlgorithm::P256,
            chuid_bytes: None,
            certificate_bytes: None,
            certificates: CertificateStorage::Plain,
        }
    }
}

impl Recipe {
    fn keys(&self) -> [(u8, PivAlgorithm); 4] {
        let [pa, ds, km, ca] = KEYS;
        [(pa, self.authentication), (ds, self.signature), (km, self.management), (ca, self.card)]
    }
}

impl CardData {
    /// Reads a folder or a file.
    ///
    /// # Errors
    /// When it cannot be read, holds nothing, or holds something that is not what its name says.
    pub fn open(path: &Path) -> Result<Self, CardDataError> {
        Self::open_with(path, CertificateStorage::Plain)
    }

    fn open_with(path: &Path, certificates: CertificateStorage) -> Result<Self, CardDataError> {
        Self::from_files(path, &store::read(path)?, certificates)
    }

    /// Makes a card with its own CA: PIN 123456, PUK 12345678. RSA keys take some seconds.
    ///
    /// # Errors
    /// When the CHUID cannot have the wanted length.
    pub fn generate(recipe: &Recipe) -> Result<Self, CardDataError> {
        Self::from_files(Path::new("(generated)"), &generate::files(recipe)?, recipe.certificates)
    }

    /// Reads the folder or file, or makes the folder with a new card when there is none or an empty
    /// one. Processes that do so at once all get the same card, and an interrupted one leaves
    /// nothing behind under this name. With the default recipe any card that is there will do.
    ///
    /// # Errors
    /// As [`Self::open`] and [`Self::generate`]; when the card that is there is not as the recipe
    /// says; when the folder cannot be written.
    pub fn open_or_generate(path: &Path, recipe: &Recipe) -> Result<Self, CardDataError> {
        if store::is_free(path)? {
            store::write(path, &generate::files(recipe)?)?;
        }
        let card_data = Self::open_with(path, recipe.certificates)?;
        match card_data.unlike(recipe) {
            None => Ok(card_data),
            Some(what) => Err(CardDataError::Unlike { path: path.into(), what }),
        }
    }

    /// What GET DATA answers for this tag.
    pub(super) fn response(&self, tag: u32) -> Option<&[u8]> {
        self.objects.get(&tag).map(Vec::as_slice)
    }

    pub(super) fn key(&self, reference: u8) -> Option<&PrivateKey> {
        self.keys.get(&reference)
    }

    /// A number for Yubico's GET SERIAL: the end of the GUID, zeros without one. Clients print it
    /// as a signed number, so the highest bit is zero.
    pub(super) fn serial(&self) -> [u8; YUBICO_SERIAL_BYTES] {
        let elements = self.content(object::CHUID).and_then(tlv::elements).unwrap_or_default();
        let guid = elements.into_iter().find(|(tag, _)| *tag == chuid::GUID);
        let end = guid.and_then(|(_, value)| value.last_chunk::<YUBICO_SERIAL_BYTES>());
        let mut serial = end.copied().unwrap_or_default();
        serial[0] &= 0x7F;
        serial
    }

    /// Each key's reference, algorithm, and the work that it is on the card for: 9D agrees on keys
    /// where its algorithm can, the others answer challenges.
    pub(crate) fn work_of_keys(
        &self,
    ) -> impl Iterator<Item = (u8, PivAlgorithm, &'static str)> + '_ {
        const KEY_MANAGEMENT: u8 = 0x9D;
        self.keys.iter().map(|(reference, key)| {
            let algorithm = key.algorithm();
            let agreement = algorithm.agreement_work().filter(|_| *reference == KEY_MANAGEMENT);
            (*reference, algorithm, agreement.unwrap_or(algorithm.response_work()))
        })
    }

    fn content(&self, tag: u32) -> Option<&[u8]> {
        tlv::only(0x53, self.response(tag)?)
    }

    /// What is not as the recipe says, which says nothing when it is the default one.
    fn unlike(&self, recipe: &Recipe) -> Option<String> {
        if (Recipe { certificates: CertificateStorage::Plain, ..*recipe }) == Recipe::default() {
            return None;
        }
        for (reference, wanted) in recipe.keys() {
            let found = self.key(reference).map(PrivateKey::algorithm);
            if found != Some(wanted) {
                let found = found.map_or("no key".into(), |algorithm| algorithm.to_string());
                return Some(format!("{reference:02X} has {found}, not {wanted}"));
            }
        }
        if let Some(wanted) = recipe.certificate_bytes.filter(|wanted| *wanted != self.certificate)
        {
            let found = self.certificate;
            return Some(format!("the certificate of 9E has {found} bytes, not {wanted}"));
        }
        let wanted = recipe.chuid_bytes?;
        let found = self.content(object::CHUID).map_or(0, <[u8]>::len);
        (found != wanted).then(|| format!("the CHUID has {found} bytes, not {wanted}"))
    }

    fn from_files(
        path: &Path,
        files: &Files,
        certificates: CertificateStorage,
    ) -> Result<Self, CardDataError> {
        let mut objects = BTreeMap::new();
        for (name, content) in files {
            if let Some(object) = object::by_file(name) {
                objects.insert(object.tag, response(object.content, content, certificates));
            }
        }
        let mut keys = BTreeMap::new();
        for reference in KEYS {
            let name = key_file(reference);
            if let Some(der) = files.get(&name) {
                let key = PrivateKey::from_pkcs8(der)
                    .map_err(|why| CardDataError::Key { path: path.join(&name), why })?;
                keys.insert(reference, key);
            }
        }
        if objects.is_empty() && keys.is_empty() {
            return Err(CardDataError::Empty { path: path.into() });
        }
        let typed = |name: &'static str, default: &[u8], parse: fn(&[u8]) -> Option<PinSecret>| {
            let text = files.get(name).map_or(default, |text| text.trim_ascii_end());
            let padded = PinSecret::padded(text).map(Zeroizing::new);
            let secret = padded.and_then(|padded| parse(&*padded));
            secret.ok_or_else(|| CardDataError::Pin { path: path.join(name), name })
        };
        let pin = typed("pin", DEFAULT_PIN, PinSecret::pin)?;
        let puk = typed("puk", DEFAULT_PUK, PinSecret::puk)?;
        let certificate = files.get(certificate_file(0x9E)).map_or(0, |der| der.len());
        Ok(Self { pin, puk, objects, keys, certificate })
    }
}

/// What GET DATA answers for an object with this content.
fn response(kind: ObjectContent, content: &[u8], certificates: CertificateStorage) -> Vec<u8> {
    match kind {
        ObjectContent::Whole => content.to_vec(),
        ObjectContent::Data => tlv::element(0x53, content),
        ObjectContent::Certificate => {
            tlv::element(0x53, &containers::certificate(content, certificates))
        }
    }
}

fn certificate_file(reference: u8) -> &'static str {
    let object = object::certificate_of(reference).and_then(object::by_tag);
    object.map_or("", |object| object.file)
}

fn key_file(reference: u8) -> String {
    certificate_file(reference).replace(".der", ".p8")
}
