//! Makers of inputs, by the names that suites give them.

use p256::SecretKey;
use p256::elliptic_curve::sec1::ToEncodedPoint;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rsa::{Pkcs1v15Encrypt, RsaPublicKey};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384};
use tapstone_apdu::tlv;

use super::ciphers::triple_des_m2;
use super::{Material, keys};
use crate::suite::file::InputText;

/// The longest input: a buffer of the benchmark applet, and more than any card takes at once.
const LONGEST: u32 = 4096;

/// Makes the input of an operation, anew each time.
#[derive(Clone, Debug)]
pub enum Maker {
    /// Pseudo-random bytes, from the seed of the run.
    Random,
    /// Two-key Triple DES cipher text of random plain text, ISO 9797 method 2 padding.
    TripleDes {
        /// The two-key Triple DES key, 16 bytes.
        key: Vec<u8>,
    },
    /// RSA cipher text of random plain text, PKCS#1 v1.5.
    Rsa {
        /// The public key that input is encrypted under.
        key: Box<RsaPublicKey>,
    },
    /// A program of the benchmark applet as an image (applet/COMMANDS.md, Programs).
    Image {
        /// The program of the benchmark applet, as its bytes.
        program: Vec<u8>,
        /// What is sealed, if anything.
        seal: Option<Seal>,
    },
    /// A point of P-256, uncompressed.
    Point,
    /// A dynamic authentication template with a point to agree on a key with (SP 800-73-5 part 2,
    /// 3.2.4).
    PivPoint {
        /// What the key is: one of an elliptic curve.
        algorithm: PivAlgorithm,
    },
    /// A dynamic authentication template with a challenge (SP 800-73-5 part 2, 3.2.4).
    PivChallenge {
        /// What the key is.
        algorithm: PivAlgorithm,
    },
}

/// What is sealed of a program.
#[derive(Clone, Debug)]
pub struct Seal {
    bytes: usize,
    key: SealKey,
}

#[derive(Clone, Debug)]
enum SealKey {
    TripleDes(Vec<u8>),
    Rsa(Box<RsaPublicKey>),
}

/// An algorithm of PIV's asymmetric keys (SP 800-78-5, table 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PivAlgorithm {
    /// 07: RSA 2048.
    Rsa2048,
    /// 05: RSA 3072.
    Rsa3072,
    /// 11: ECC P-256.
    P256,
    /// 14: ECC P-384.
    P384,
}

impl Maker {
    /// The maker that a suite names.
    ///
    /// # Errors
    /// In words: an unknown maker, or a key that is not there.
    pub fn from_text(
        text: &InputText,
        value: impl Fn(&str) -> Option<Vec<u8>> + Copy,
    ) -> Result<Self, String> {
        let key = || text.key.as_deref().ok_or_else(|| "key is missing".to_owned());
        let algorithm = || PivAlgorithm::from_hex(text.algorithm.as_deref().unwrap_or_default());
        let triple_des = |name: &str| keys::symmetric(name, &[16], value);
        let rsa = |name: &str| keys::rsa(name, value).map(|key| Box::new(key.to_public_key()));
        Ok(match text.make.as_str() {
            "random" => Self::Random,
            "3des-m2" => Self::TripleDes { key: triple_des(key()?)? },
            "rsa-pkcs1" => Self::Rsa { key: rsa(key()?)? },
            "p256-point" => Self::Point,
            "piv-challenge" => Self::PivChallenge { algorithm: algorithm()? },
            "piv-point" => match algorithm()? {
                algorithm @ (PivAlgorithm::P256 | PivAlgorithm::P384) => {
                    Self::PivPoint { algorithm }
                }
                _ => return Err("algorithm: 11 or 14, of elliptic curves".to_owned()),
            },
            "image" => {
                let name = text.program.as_deref().ok_or("program is missing")?;
                let program = value(name).ok_or_else(|| format!("values has no {name}"))?;
                let seal = match (text.seal, text.key.as_deref()) {
                    (None, None) => None,
                    (Some(bytes), Some(name)) => {
                        let by_rsa = value(&format!("{name}_p")).is_some();
                        let key = if by_rsa {
                            SealKey::Rsa(rsa(name)?)
                        } else {
                            SealKey::TripleDes(triple_des(name)?)
                        };
                        Some(Seal { bytes: bytes as usize, key })
                    }
                    _ => return Err("seal and key belong together".to_owned()),
                };
                Self::Image { program, seal }
            }
            other => {
                return Err(format!(
                    "\"{other}\" is no maker: random, 3des-m2, rsa-pkcs1, image, p256-point, \
                     piv-challenge, piv-point"
                ));
            }
        })
    }

    /// An input: always the same for the same seed.
    ///
    /// # Errors
    /// In words, when the length does not fit the maker.
    pub fn make(&self, bytes: u32, seed: u64) -> Result<Material, String> {
        if bytes > LONGEST {
            return Err(format!("bytes: at most {LONGEST}, not {bytes}"));
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut plain = vec![0; bytes as usize];
        random.fill_bytes(&mut plain);
        let input = match self {
            Self::Random => plain.clone(),
            Self::TripleDes { key } => triple_des_m2(key, &plain),
            Self::Rsa { key } => rsa_encrypt(key, &plain, &mut random)?,
            Self::Image { program, seal } => image(program, seal.as_ref(), &mut random)?,
            Self::Point => pair_p256(&mut random).1,
            Self::PivChallenge { algorithm } => {
                random.fill_bytes(&mut plain);
                plain = algorithm.digest(&plain, &mut random);
                template(0x81, &algorithm.block(&plain))
            }
            Self::PivPoint { algorithm } => {
                let point;
                (plain, point) = match algorithm {
                    PivAlgorithm::P384 => pair_p384(&mut random),
                    _ => pair_p256(&mut random),
                };
                template(0x85, &point)
            }
        };
        Ok(Material { input, plain })
    }
}

fn rsa_encrypt(
    key: &RsaPublicKey,
    plain: &[u8],
    random: &mut ChaCha8Rng,
) -> Result<Vec<u8>, String> {
    key.encrypt(random, Pkcs1v15Encrypt, plain).map_err(|why| format!("RSA encryption: {why}"))
}

/// Header, sealed part, clear part: applet/COMMANDS.md, Programs.
fn image(program: &[u8], seal: Option<&Seal>, random: &mut ChaCha8Rng) -> Result<Vec<u8>, String> {
    let body = [&Sha1::digest(program)[..], program].concat();
    let (sealed, clear) = match seal {
        None => (Vec::new(), &body[..]),
        Some(Seal { bytes, key }) => {
            let short = || format!("seal: the program and its digest have {} bytes", body.len());
            let (inner, clear) = body.split_at_checked(*bytes).ok_or_else(short)?;
            let inner = [inner, &Sha1::digest(inner)[..]].concat();
            let sealed = match key {
                SealKey::TripleDes(key) => triple_des_m2(key, &inner),
                SealKey::Rsa(key) => rsa_encrypt(key, &inner, random)?,
            };
            (sealed, clear)
        }
    };
    let length = |part: &[u8]| (part.len() as u16).to_be_bytes();
    Ok([b"TP", &length(&sealed)[..], &length(clear)[..], &sealed, clear].concat())
}

/// A private value, and its point uncompressed.
fn pair_p256(random: &mut ChaCha8Rng) -> (Vec<u8>, Vec<u8>) {
    let key = SecretKey::random(random);
    let point = key.public_key().to_encoded_point(false);
    (key.to_bytes().to_vec(), point.as_bytes().to_vec())
}

fn pair_p384(random: &mut ChaCha8Rng) -> (Vec<u8>, Vec<u8>) {
    let key = p384::SecretKey::random(random);
    let point = key.public_key().to_encoded_point(false);
    (key.to_bytes().to_vec(), point.as_bytes().to_vec())
}

/// What a card computes on, under its tag, and an empty place for the response.
fn template(tag: u8, value: &[u8]) -> Vec<u8> {
    tlv::element(0x7C, &[tlv::element(0x82, &[]), tlv::element(tag, value)].concat())
}

impl PivAlgorithm {
    /// By its identifier in hexadecimal.
    ///
    /// # Errors
    /// In words, for any other.
    pub fn from_hex(identifier: &str) -> Result<Self, String> {
        match identifier {
            "07" => Ok(Self::Rsa2048),
            "05" => Ok(Self::Rsa3072),
            "11" => Ok(Self::P256),
            "14" => Ok(Self::P384),
            other => Err(format!("algorithm \"{other}\": 07, 05, 11 or 14 (SP 800-78-5)")),
        }
    }

    /// A hash as it is signed with such a key.
    fn digest(self, seed: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
        let mut message = [seed, &[0; 32]].concat();
        random.fill_bytes(&mut message);
        match self {
            Self::P384 => Sha384::digest(&message).to_vec(),
            _ => Sha256::digest(&message).to_vec(),
        }
    }

    /// What the card computes on: the hash itself, or for RSA the padded block (RFC 8017, 9.2),
    /// since PIV cards do the raw operation.
    fn block(self, digest: &[u8]) -> Vec<u8> {
        /// DigestInfo of SHA-256 up to the digest (RFC 8017, 9.2, note 1).
        const DIGEST_INFO: [u8; 19] = [
            0x30, 0x31, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            0x01, 0x05, 0x00, 0x04, 0x20,
        ];
        let modulus_bytes = match self {
            Self::Rsa2048 => 256,
            Self::Rsa3072 => 384,
            Self::P256 | Self::P384 => return digest.to_vec(),
        };
        let end = [&DIGEST_INFO[..], digest].concat();
        let padding = vec![0xFF; modulus_bytes - 3 - end.len()];
        [&[0x00, 0x01][..], &padding, &[0x00], &end].concat()
    }
}
