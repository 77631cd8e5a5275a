//! REPEAT: a set-up so many times, then an operation so many times, and the last one's result.
//!
//! The operation is computed once, for each result is the same or as good as any other; the
//! card's time is charged for every one.

use p256::ecdsa::{Signature, SigningKey, signature::Signer};
use p256::elliptic_curve::rand_core::{OsRng, RngCore};
use p256::elliptic_curve::sec1::ToEncodedPoint;
use p256::{PublicKey, SecretKey, ecdh};
use rsa::Pkcs1v15Sign;
use sha1::{Digest, Sha1};
use sha2::Sha256;
use tapstone_apdu::{CommandApdu, StatusWord};

use super::cipher::{self, AES_BLOCK, DES_BLOCK, blocks_of_sha};
use super::keys::{KeyId, rsa_decrypt};
use super::{BenchApplet, work};
use crate::applet::Reply;

const NO_INPUT: u8 = 0xFF;
const LONGEST_INPUT: usize = 256;
const MOST: u16 = 32_767;
/// The most operations that wear out memory.
const MOST_WEARING: u16 = 1000;

/// The algorithms by their P1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BenchAlgorithm {
    Nothing,
    TdesEncrypt,
    TdesDecrypt,
    Aes128,
    Aes256,
    Sha1,
    Sha256,
    Rsa2048Decrypt,
    Rsa1024Decrypt,
    Rsa2048Sign,
    EcdsaSign,
    EcdhSha1,
    EcdhPlain,
    EcKeygen,
    Random,
    Ram,
    Eeprom,
}

/// What one set-up and one operation take.
struct RepeatCost {
    setup: Option<&'static str>,
    operation: Option<(&'static str, u32)>,
}

impl BenchAlgorithm {
    const ALL: [Self; 17] = [
        Self::Nothing,
        Self::TdesEncrypt,
        Self::TdesDecrypt,
        Self::Aes128,
        Self::Aes256,
        Self::Sha1,
        Self::Sha256,
        Self::Rsa2048Decrypt,
        Self::Rsa1024Decrypt,
        Self::Rsa2048Sign,
        Self::EcdsaSign,
        Self::EcdhSha1,
        Self::EcdhPlain,
        Self::EcKeygen,
        Self::Random,
        Self::Ram,
        Self::Eeprom,
    ];

    const fn key(self) -> Option<KeyId> {
        match self {
            Self::TdesEncrypt | Self::TdesDecrypt => Some(KeyId::Tdes),
            Self::Aes128 => Some(KeyId::Aes128),
            Self::Aes256 => Some(KeyId::Aes256),
            Self::Rsa2048Decrypt | Self::Rsa2048Sign => Some(KeyId::Rsa2048),
            Self::Rsa1024Decrypt => Some(KeyId::Rsa1024),
            Self::EcdsaSign | Self::EcdhSha1 | Self::EcdhPlain => Some(KeyId::P256),
            _ => None,
        }
    }

    const fn most(self) -> u16 {
        match self {
            Self::EcKeygen | Self::Eeprom => MOST_WEARING,
            _ => MOST,
        }
    }

    fn takes(self, input: &[u8]) -> bool {
        let blocks = |size| !input.is_empty() && input.len().is_multiple_of(size);
        let fits = match self {
            // Padded, 256 bytes would be 264.
            Self::TdesEncrypt => input.len() < LONGEST_INPUT,
            Self::TdesDecrypt => blocks(DES_BLOCK),
            Self::Aes128 | Self::Aes256 => blocks(AES_BLOCK),
            Self::Rsa2048Decrypt => input.len() == 256,
            Self::Rsa1024Decrypt => input.len() == 128,
            Self::EcdhSha1 | Self::EcdhPlain => input.len() == 65 && input[0] == 0x04,
            Self::Random => !input.is_empty(),
            _ => true,
        };
        fits && input.len() <= LONGEST_INPUT
    }

    const fn cost(self, bytes: usize) -> RepeatCost {
        let all = bytes as u32;
        let (setup, operation) = match self {
            Self::Nothing => return RepeatCost { setup: None, operation: None },
            Self::TdesEncrypt => {
                (Some(work::TDES_INIT), (work::TDES_BLOCK, (bytes / DES_BLOCK + 1) as u32))
            }
            Self::TdesDecrypt => {
                (Some(work::TDES_INIT), (work::TDES_BLOCK, (bytes / DES_BLOCK) as u32))
            }
            Self::Aes128 => {
                (Some(work::AES128_INIT), (work::AES128_BLOCK, (bytes / AES_BLOCK) as u32))
            }
            Self::Aes256 => {
                (Some(work::AES256_INIT), (work::AES256_BLOCK, (bytes / AES_BLOCK) as u32))
            }
            Self::Sha1 => (Some(work::SHA1_INIT), (work::SHA1_BLOCK, blocks_of_sha(bytes))),
            Self::Sha256 => (Some(work::SHA256_INIT), (work::SHA256_BLOCK, blocks_of_sha(bytes))),
            Self::Rsa2048Decrypt | Self::Rsa2048Sign => {
                (Some(work::RSA2048_INIT), (work::RSA2048_PRIVATE, 1))
            }
            Self::Rsa1024Decrypt => (Some(work::RSA1024_INIT), (work::RSA1024_PRIVATE, 1)),
            Self::EcdsaSign => (Some(work::P256_INIT), (work::P256_SIGN, 1)),
            Self::EcdhSha1 | Self::EcdhPlain => (Some(work::P256_INIT), (work::P256_ECDH, 1)),
            Self::EcKeygen => (None, (work::P256_KEYGEN, 1)),
            Self::Random => (None, (work::RANDOM_BYTE, all)),
            Self::Ram => (None, (work::RAM_BYTE, all)),
            Self::Eeprom => (None, (work::EEPROM_BYTE, all)),
        };
        RepeatCost { setup, operation: Some(operation) }
    }
}

impl BenchApplet {
    pub(super) fn repeat(&mut self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        let algorithm = *BenchAlgorithm::ALL
            .get(usize::from(command.p1))
            .ok_or(StatusWord::WRONG_PARAMETERS)?;
        let input = match command.p2 {
            NO_INPUT => Vec::new(),
            number => self.buffers.bytes(self.buffers.find(number)?).to_vec(),
        };
        let &[s0, s1, o0, o1] = command.data.as_slice() else {
            return Err(StatusWord::WRONG_LENGTH);
        };
        let setups = u16::from_be_bytes([s0, s1]);
        let operations = u16::from_be_bytes([o0, o1]);
        if !(1..=MOST).contains(&setups) || operations > algorithm.most() {
            return Err(StatusWord::WRONG_DATA);
        }
        if let Some(key) = algorithm.key() {
            self.keys.require(key)?;
        }
        if !algorithm.takes(&input) {
            return Err(StatusWord::WRONG_DATA);
        }
        let mut data = Vec::new();
        if operations > 0 {
            data = self.operate(algorithm, &input)?;
        }
        let cost = algorithm.cost(input.len());
        let setups = u32::from(setups);
        let operations = u32::from(operations);
        let mut reply = Reply::ok(data).after(work::LOOP, setups + operations);
        if let Some(name) = cost.setup {
            reply = reply.after(name, setups);
        }
        if let Some((name, each)) = cost.operation {
            reply = reply.after(name, each * operations);
        }
        Ok(reply)
    }

    fn operate(&mut self, algorithm: BenchAlgorithm, input: &[u8]) -> Result<Vec<u8>, StatusWord> {
        Ok(match algorithm {
            BenchAlgorithm::Nothing => Vec::new(),
            BenchAlgorithm::TdesEncrypt => {
                cipher::tdes_encrypt(self.keys.bytes(KeyId::Tdes)?, input)
            }
            BenchAlgorithm::TdesDecrypt => {
                cipher::tdes_decrypt(self.keys.bytes(KeyId::Tdes)?, input)?
            }
            BenchAlgorithm::Aes128 => {
                cipher::aes128_encrypt(self.keys.bytes(KeyId::Aes128)?, input)
            }
            BenchAlgorithm::Aes256 => {
                cipher::aes256_encrypt(self.keys.bytes(KeyId::Aes256)?, input)
            }
            BenchAlgorithm::Sha1 => Sha1::digest(input).to_vec(),
            BenchAlgorithm::Sha256 => Sha256::digest(input).to_vec(),
            BenchAlgorithm::Rsa2048Decrypt => rsa_decrypt(self.keys.rsa(KeyId::Rsa2048)?, input)?,
            BenchAlgorithm::Rsa1024Decrypt => rsa_decrypt(self.keys.rsa(KeyId::Rsa1024)?, input)?,
            BenchAlgorithm::Rsa2048Sign => {
                let key = self.keys.rsa(KeyId::Rsa2048)?;
                let signature = key.sign(Pkcs1v15Sign::new::<Sha1>(), &Sha1::digest(input));
                signature.map_err(|_| StatusWord::WRONG_DATA)?
            }
            BenchAlgorithm::EcdsaSign => {
                let signature: Signature = SigningKey::from(self.p256()?).sign(input);
                signature.to_der().as_bytes().to_vec()
            }
            // What Java Card's ALG_EC_SVDP_DH hands out (IEEE 1363, KDF1 with SHA-1).
            BenchAlgorithm::EcdhSha1 => Sha1::digest(self.shared_secret(input)?).to_vec(),
            BenchAlgorithm::EcdhPlain => self.shared_secret(input)?,
            BenchAlgorithm::EcKeygen => {
                let public = SecretKey::random(&mut OsRng).public_key();
                public.to_encoded_point(false).as_bytes().to_vec()
            }
            BenchAlgorithm::Random => {
                let mut bytes = vec![0; input.len()];
                OsRng.fill_bytes(&mut bytes);
                bytes
            }
            // The memory holds what was written to it, and nobody else reads it.
            BenchAlgorithm::Ram | BenchAlgorithm::Eeprom => input.to_vec(),
        })
    }

    fn p256(&self) -> Result<SecretKey, StatusWord> {
        let bytes: &[u8; 32] = self.keys.bytes(KeyId::P256)?;
        SecretKey::from_slice(bytes).map_err(|_| StatusWord::WRONG_DATA)
    }

    fn shared_secret(&self, point: &[u8]) -> Result<Vec<u8>, StatusWord> {
        let public = PublicKey::from_sec1_bytes(point).map_err(|_| StatusWord::WRONG_DATA)?;
        let key = self.p256()?;
        let shared = ecdh::diffie_hellman(key.to_nonzero_scalar(), public.as_affine());
        Ok(shared.raw_secret_bytes().to_vec())
    }
}
