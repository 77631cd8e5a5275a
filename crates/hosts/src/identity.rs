//! Who sends a packet: an Ed25519 key, which is not the key of the NATS user.
//!
//! A NATS client signs whatever nonce its server sends. With one key for both, a hostile server
//! could have a packet signed; so a packet key never meets the server.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::rand::{SystemRandom, fill};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use ed25519_dalek::VerifyingKey;
use pkcs8::SecretDocument;
use pkcs8::der::pem::LineEnding;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tapstone_files::{Access, FileLimit, read_text, write_whole};
use zeroize::Zeroizing;

/// Ed25519 signatures have 64 bytes (RFC 8032, section 5.1.6).
pub(crate) const SIGNATURE_BYTES: usize = 64;

/// The label of a private key in PEM (RFC 7468, section 10).
const PEM_LABEL: &str = "PRIVATE KEY";

/// An agent or a coordinator: the public half of its packet key, as 64 hexadecimal digits. It is
/// what others enrol, and a part of the subjects that are its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(pub(crate) [u8; 32]);

impl Identity {
    /// The hexadecimal digits of a key that is only compared with enrolled ones.
    pub(crate) fn from_digits(text: &str) -> Result<Self, String> {
        let mut key = [0; 32];
        hex::decode_to_slice(text, &mut key).map_err(|_| {
            let digits = text.chars().count();
            format!("a public packet key has 64 hexadecimal digits, and this has {digits} characters or others")
        })?;
        Ok(Self(key))
    }

    /// Whether this identity signed the message.
    pub(crate) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}

impl std::str::FromStr for Identity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = Self::from_digits(text)?;
        let key = VerifyingKey::from_bytes(&read.0)
            .map_err(|_| format!("{text} is no public packet key: no private key belongs to it"))?;
        // Under such a key everybody can sign, and the library that verifies does not mind.
        if key.is_weak() {
            return Err(format!("{text} is no packet key: everybody could sign for it"));
        }
        Ok(read)
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The private half. It never prints.
pub struct PacketKey {
    pair: Ed25519KeyPair,
    identity: Identity,
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketKey(of {})", self.identity)
    }
}

/// Why a packet key cannot be used. What the file holds is not shown.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}\nhint: {HINT}", .path.display())]
pub struct PacketKeyError {
    path: PathBuf,
    why: String,
}

const HINT: &str = "`tapstone hosts --new-key FILE` makes a packet key; it is an Ed25519 key in \
                    PKCS #8 (PEM), in a file that others may not read";

impl PacketKey {
    /// Reads a key as `openssl genpkey -algorithm ed25519` and [`Self::create`] write it.
    ///
    /// # Errors
    /// The file cannot be read, may be read by everybody, or holds something else.
    pub fn read(path: &Path) -> Result<Self, PacketKeyError> {
        let fail = |why: String| PacketKeyError { path: path.to_owned(), why };
        let text =
            read_text(path, FileLimit::CREDENTIAL).map_err(|error| fail(error.to_string()))?;
        let text = Zeroizing::new(text);
        let mode = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
        // A group may read it: so Kubernetes hands secrets to a pod.
        if mode & 0o007 != 0 {
            return Err(fail(format!("everybody on this machine may read it (mode {mode:o})")));
        }
        let not_a_key = || fail("it holds no Ed25519 key".to_owned());
        let (label, document) = SecretDocument::from_pem(&text).map_err(|_| not_a_key())?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(document.as_bytes());
        match pair {
            Ok(pair) if label == PEM_LABEL => Ok(Self::from_pair(pair)),
            _ => Err(not_a_key()),
        }
    }

    /// Makes a key and writes it to a new file that only its owner may read.
    ///
    /// # Errors
    /// There is a file already, or it cannot be written.
    pub fn create(path: &Path) -> Result<Self, PacketKeyError> {
        let fail = |why: String| PacketKeyError { path: path.to_owned(), why };
        if path.symlink_metadata().is_ok() {
            return Err(fail("it is there already, and a key is not written over".to_owned()));
        }
        let unmade = |_| fail("no key could be made".to_owned());
        let pair = Ed25519KeyPair::generate().map_err(unmade)?;
        let der = pair.to_pkcs8v1().map_err(unmade)?;
        let document = SecretDocument::try_from(der.as_ref())
            .and_then(|document| document.to_pem(PEM_LABEL, LineEnding::LF));
        let pem = document.map_err(|_| fail("no key could be written".to_owned()))?;
        write_whole(path, Access::Owner, |to| to.write_all(pem.as_bytes()))
            .map_err(|error| fail(error.to_string()))?;
        Ok(Self::from_pair(pair))
    }

    fn from_pair(pair: Ed25519KeyPair) -> Self {
        let mut key = [0; 32];
        key.copy_from_slice(pair.public_key().as_ref());
        Self { pair, identity: Identity(key) }
    }

    /// The public half, which others enrol.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }
}

/// Bytes that nobody can have foreseen.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // AWS-LC ends the process rather than go on without randomness.
    let filled = fill(&mut bytes);
    debug_assert!(filled.is_ok(), "{:?}", SystemRandom::new());
    bytes
}

#[cfg(test)]
pub(crate) fn test_key() -> PacketKey {
    PacketKey::from_pair(Ed25519KeyPair::generate().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packet.key");
        let made = PacketKey::create(&path).unwrap();
        let read = PacketKey::read(&path).unwrap();
        assert_eq!(read.identity(), made.identity());
        assert!(made.identity().signed(b"words", &read.sign(b"words")));
        assert!(!made.identity().signed(b"others", &read.sign(b"words")));
        assert_eq!(made.identity().to_string().parse(), Ok(made.identity()));
        let again = PacketKey::create(&path).unwrap_err().to_string();
        assert!(again.contains("there already") && again.contains("\nhint: "), "{again}");
    }

    /// All encodings of points of small order, which are those that libsodium refuses in
    /// `ge25519_has_small_order`, with either sign.
    #[test]
    fn a_key_for_which_everybody_can_sign_is_refused() {
        let weak = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        ];
        for text in weak {
            let mut other_sign: Vec<u8> = hex::decode(text).unwrap();
            other_sign[31] |= 0x80;
            for text in [text.to_owned(), hex::encode(other_sign)] {
                let refused = text.parse::<Identity>().unwrap_err();
                // The neutral point and the one opposite have no second sign.
                assert!(refused.contains("packet key: "), "{refused}");
            }
            assert!(text.parse::<Identity>().unwrap_err().contains("everybody could sign"));
        }
        // Why: this signature is of no message in particular, with the neutral point as R and 0 as S.
        let mut signature = [0; SIGNATURE_BYTES];
        signature[0] = 1;
        let neutral = Identity::from_digits(weak[1]).unwrap();
        assert!(neutral.signed(b"words", &signature), "the library verifies it");
        let typed = "ab".repeat(32).parse::<Identity>().unwrap_err();
        assert!(typed.contains("no private key belongs to it"), "{typed}");
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packet.key");
        fs::write(&path, "hunter2").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let error = PacketKey::read(&path).unwrap_err().to_string();
        assert!(error.contains("no Ed25519 key") && !error.contains("hunter2"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = PacketKey::read(&path).unwrap_err().to_string();
        assert!(error.contains("mode 644"), "{error}");
    }
}
