//! A token in software, for tests: it has the private keys, and does what a module would do with
//! the prepared inputs. Where it can, it uses another implementation than the verifier does:
//! `rsa` signs what aws-lc checks, `slh-dsa` what `fips205` checks, aws-lc decrypts what `rsa` encrypted, `sha2` hashes.

use std::sync::LazyLock;

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::cipher::{self, DecryptingKey, DecryptionContext, PaddedBlockDecryptingKey};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::key_wrap::{self, AesKek, KeyWrap as _, KeyWrapPadded as _};
use aws_lc_rs::rsa::{
    KeyPair as RsaKeyPair, KeySize, OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepAlgorithm,
    OaepPrivateDecryptingKey, Pkcs1PrivateDecryptingKey, PrivateDecryptingKey,
};
use aws_lc_rs::signature::{self as sig, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, PqdsaKeyPair};
use aws_lc_rs::{error::Unspecified, kem, rand};
use rsa::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use rsa::sha2::{Digest as _, Sha256, Sha384, Sha512};
use rsa::traits::PublicKeyParts as _;
use rsa::{Pkcs1v15Sign, Pss, RsaPrivateKey};
use slh_dsa_keys::SlhDsaKeys;

use crate::catalogue::mechanism as ckm;
use crate::catalogue::{Curve, Hash, InputKind, KeySpec, MlDsa, MlKem, Parameters, Shape, Variant};
use crate::material::agreement::encapsulate;
use crate::material::key_wrap::wrap;
use crate::material::seeded::{Purpose, Seeded};
use crate::material::{Input, KeyMaterial, gcm_iv};

/// The worker that every output claims to come from.
pub(super) const WORKER: u32 = 5;

/// A token that holds the key for one kind of operation.
pub(super) enum SoftToken {
    Nothing,
    Rsa(Box<RsaPrivateKey>),
    Ecdsa(EcdsaKeyPair),
    Ecdh(PrivateKey),
    Ed25519(Ed25519KeyPair),
    MlDsa(PqdsaKeyPair),
    MlKem(kem::DecapsulationKey),
    SlhDsa(SlhDsaKeys),
    Secret(Vec<u8>),
}

impl SoftToken {
    /// Generates the key that `variant` takes.
    pub(super) fn for_variant(variant: &Variant) -> Self {
        match variant.key {
            KeySpec::None => Self::Nothing,
            KeySpec::Rsa { bits } => Self::Rsa(Box::new(rsa_key(bits))),
            KeySpec::Ec { curve } if variant.shape == Shape::Derive => {
                Self::Ecdh(PrivateKey::generate(ecdh(curve)).unwrap())
            }
            KeySpec::Ec { curve } => {
                let algorithm = match curve {
                    Curve::P256 => &sig::ECDSA_P256_SHA256_FIXED_SIGNING,
                    Curve::P384 => &sig::ECDSA_P384_SHA384_FIXED_SIGNING,
                    Curve::P521 => &sig::ECDSA_P521_SHA512_FIXED_SIGNING,
                };
                Self::Ecdsa(EcdsaKeyPair::generate(algorithm).unwrap())
            }
            KeySpec::Ed25519 => Self::Ed25519(Ed25519KeyPair::generate().unwrap()),
            KeySpec::MlDsa { set } => {
                let algorithm = match set {
                    MlDsa::MlDsa44 => &sig::ML_DSA_44_SIGNING,
                    MlDsa::MlDsa65 => &sig::ML_DSA_65_SIGNING,
                    MlDsa::MlDsa87 => &sig::ML_DSA_87_SIGNING,
                };
                Self::MlDsa(PqdsaKeyPair::generate(algorithm).unwrap())
            }
            KeySpec::MlKem { set } => {
                let algorithm = match set {
                    MlKem::MlKem512 => &kem::ML_KEM_512,
                    MlKem::MlKem768 => &kem::ML_KEM_768,
                    MlKem::MlKem1024 => &kem::ML_KEM_1024,
                };
                Self::MlKem(kem::DecapsulationKey::generate(algorithm).unwrap())
            }
            KeySpec::SlhDsa { .. } => {
                let set = variant.key.parameter_set().unwrap();
                Self::SlhDsa(SlhDsaKeys::new(set, random).unwrap())
            }
            KeySpec::Aes { .. } | KeySpec::Des3 | KeySpec::Hmac { .. } => {
                Self::Secret(random(variant.key.secret_bytes().unwrap()))
            }
        }
    }

    /// What software may know of the key.
    pub(super) fn key_material(&self, spec: KeySpec) -> KeyMaterial {
        let public = |bytes: &[u8]| KeyMaterial::public(spec, bytes).unwrap();
        match self {
            Self::Nothing => KeyMaterial::None,
            Self::Rsa(key) => KeyMaterial::rsa(&key.n().to_bytes_be(), &key.e().to_bytes_be()),
            Self::Ecdsa(key) => public(key.public_key().as_ref()),
            Self::Ecdh(key) => public(key.compute_public_key().unwrap().as_ref()),
            Self::Ed25519(key) => public(key.public_key().as_ref()),
            Self::MlDsa(key) => public(key.public_key().as_ref()),
            Self::MlKem(key) => {
                public(key.encapsulation_key().unwrap().key_bytes().unwrap().as_ref())
            }
            Self::SlhDsa(key) => public(key.public()),
            Self::Secret(value) => KeyMaterial::secret(value),
        }
    }

    /// Does operation number `operation` on `input`.
    pub(super) fn run(&self, variant: &Variant, operation: u64, input: &Input) -> Vec<u8> {
        match variant.shape {
            Shape::Sign => self.sign(variant, &input.message),
            Shape::Encrypt => {
                let gcm_iv = gcm_iv(WORKER, operation);
                let iv = if input.iv.is_empty() { &gcm_iv[..] } else { &input.iv };
                crate::material::cipher::encrypt(variant, self.value(), iv, &input.message).unwrap()
            }
            Shape::Decrypt => self.decrypt(variant, input),
            Shape::Digest => hashed(variant.hash.unwrap(), &input.message),
            Shape::Derive => {
                let Self::Ecdh(private) = self else { panic!("no ECDH key") };
                let peer = UnparsedPublicKey::new(private.algorithm(), &input.message);
                agreement::agree(private, peer, Unspecified, |secret| Ok(secret.to_vec())).unwrap()
            }
            Shape::Wrap => wrap(variant.mechanism.unwrap(), self.value(), &input.message).unwrap(),
            Shape::Unwrap => unwrap(variant, self.value(), &input.message),
            Shape::Random => random(variant.message_bytes),
            Shape::GenerateKey => random(variant.key.secret_bytes().unwrap()),
            Shape::GenerateKeyPair => match Self::for_variant(variant).key_material(variant.key) {
                KeyMaterial::Rsa { modulus, .. } => modulus,
                KeyMaterial::Public { value, .. } => value,
                other => panic!("{other:?} is no key pair"),
            },
            Shape::FindObjects => input.message.clone(),
            Shape::Encapsulate => {
                let KeySpec::MlKem { set } = variant.key else { panic!("no ML-KEM key") };
                let exchange = encapsulate(set, &input.message).unwrap();
                [&exchange.public, exchange.secret.expose()].concat()
            }
            Shape::Decapsulate => {
                let Self::MlKem(key) = self else { panic!("no ML-KEM key") };
                key.decapsulate(input.message.as_slice().into()).unwrap().as_ref().to_vec()
            }
            Shape::OpenSession | Shape::Login => Vec::new(),
        }
    }

    fn sign(&self, variant: &Variant, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Rsa(key) => {
                let digest = match variant.input {
                    InputKind::Message => hashed(Hash::Sha256, message),
                    _ => message.to_vec(),
                };
                match (variant.parameters, variant.input) {
                    (Parameters::Pss { salt_bytes, .. }, _) => {
                        let mut seeded = Seeded::new(3, Purpose::Order);
                        let scheme = Pss::new_with_salt::<Sha256>(salt_bytes);
                        key.sign_with_rng(seeded.generator(), scheme, &digest).unwrap()
                    }
                    (_, InputKind::DigestInfo) => {
                        key.sign(Pkcs1v15Sign::new_unprefixed(), &digest).unwrap()
                    }
                    _ => key.sign(Pkcs1v15Sign::new::<Sha256>(), &digest).unwrap(),
                }
            }
            Self::Ecdsa(key) if variant.input == InputKind::Message => {
                let message_signature = key.sign(&rand::SystemRandom::new(), message);
                message_signature.unwrap().as_ref().to_vec()
            }
            Self::Ecdsa(key) => {
                use aws_lc_rs::digest::{Digest, SHA256, SHA384, SHA512};
                let algorithm = match variant.hash.unwrap() {
                    Hash::Sha384 => &SHA384,
                    Hash::Sha512 => &SHA512,
                    _ => &SHA256,
                };
                let digest = Digest::import_less_safe(message, algorithm).unwrap();
                key.sign_digest(&digest).unwrap().as_ref().to_vec()
            }
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Self::MlDsa(key) => {
                let mut signature = vec![0; variant.output_capacity_bytes()];
                let length = key.sign(message, &mut signature).unwrap();
                assert_eq!(length, signature.len());
                signature
            }
            Self::SlhDsa(key) => key.sign(message),
            Self::Secret(value) => hmac(variant.hash.unwrap(), value, message),
            Self::Nothing | Self::Ecdh(_) | Self::MlKem(_) => panic!("no signing key"),
        }
    }

    fn decrypt(&self, variant: &Variant, input: &Input) -> Vec<u8> {
        let mut buffer = input.message.clone();
        if let Self::Rsa(key) = self {
            return rsa_decrypt(key, variant.parameters, &buffer);
        }
        if let Parameters::Gcm { .. } = variant.parameters {
            use aws_lc_rs::aead::{Aad, Nonce};
            let nonce = Nonce::try_assume_unique_for_key(&input.iv).unwrap();
            let key = crate::material::cipher::gcm_key(self.value()).unwrap();
            return key.open_in_place(nonce, Aad::empty(), &mut buffer).unwrap().to_vec();
        }
        #[allow(deprecated)]
        let (algorithm, context) = match self.value().len() {
            24 => {
                let iv = <&[u8; 8]>::try_from(&input.iv[..]).unwrap();
                (&cipher::DES_EDE3_FOR_LEGACY_USE_ONLY, DecryptionContext::Iv64(iv.into()))
            }
            length => {
                let iv = <&[u8; 16]>::try_from(&input.iv[..]).unwrap();
                let algorithm = if length == 16 { &cipher::AES_128 } else { &cipher::AES_256 };
                (algorithm, DecryptionContext::Iv128(iv.into()))
            }
        };
        let key = cipher::UnboundCipherKey::new(algorithm, self.value()).unwrap();
        let plain = match variant.mechanism.unwrap() {
            ckm::CKM_AES_CBC | ckm::CKM_DES3_CBC => {
                DecryptingKey::cbc(key).unwrap().decrypt(&mut buffer, context)
            }
            ckm::CKM_AES_CTR => DecryptingKey::ctr(key).unwrap().decrypt(&mut buffer, context),
            _ => PaddedBlockDecryptingKey::cbc_pkcs7(key).unwrap().decrypt(&mut buffer, context),
        };
        plain.unwrap().to_vec()
    }

    fn value(&self) -> &[u8] {
        match self {
            Self::Secret(value) => value,
            _ => panic!("no secret key"),
        }
    }
}

/// aws-lc makes long keys quickly; short ones it refuses, and `rsa` makes one slowly.
fn rsa_key(bits: u32) -> RsaPrivateKey {
    static SHORT: LazyLock<RsaPrivateKey> = LazyLock::new(|| {
        RsaPrivateKey::new(Seeded::new(1024, Purpose::Order).generator(), 1024).unwrap()
    });
    let size = match bits {
        2048 => KeySize::Rsa2048,
        3072 => KeySize::Rsa3072,
        4096 => KeySize::Rsa4096,
        _ => return SHORT.clone(),
    };
    let der = RsaKeyPair::generate(size).unwrap().as_der().unwrap();
    RsaPrivateKey::from_pkcs8_der(der.as_ref()).unwrap()
}

fn rsa_decrypt(key: &RsaPrivateKey, parameters: Parameters, cipher_text: &[u8]) -> Vec<u8> {
    let der = key.to_pkcs8_der().unwrap();
    let Ok(private) = PrivateDecryptingKey::from_pkcs8(der.as_bytes()) else {
        // 1024 bits: too short for aws-lc.
        return match parameters {
            Parameters::Oaep { hash: Hash::Sha1 } => {
                key.decrypt(rsa::Oaep::new::<sha1::Sha1>(), cipher_text).unwrap()
            }
            Parameters::Oaep { .. } => {
                key.decrypt(rsa::Oaep::new::<Sha256>(), cipher_text).unwrap()
            }
            _ => key.decrypt(rsa::Pkcs1v15Encrypt, cipher_text).unwrap(),
        };
    };
    let oaep = |algorithm: &'static OaepAlgorithm| {
        let key = OaepPrivateDecryptingKey::new(private.clone()).unwrap();
        let mut plain = vec![0; key.min_output_size()];
        key.decrypt(algorithm, cipher_text, &mut plain, None).unwrap().to_vec()
    };
    match parameters {
        Parameters::Oaep { hash: Hash::Sha1 } => oaep(&OAEP_SHA1_MGF1SHA1),
        Parameters::Oaep { .. } => oaep(&OAEP_SHA256_MGF1SHA256),
        _ => {
            let key = Pkcs1PrivateDecryptingKey::new(private).unwrap();
            let mut plain = vec![0; key.min_output_size()];
            key.decrypt(cipher_text, &mut plain).unwrap().to_vec()
        }
    }
}

fn unwrap(variant: &Variant, kek: &[u8], wrapped: &[u8]) -> Vec<u8> {
    let cipher = if kek.len() == 16 { &key_wrap::AES_128 } else { &key_wrap::AES_256 };
    let kek = AesKek::new(cipher, kek).unwrap();
    let mut value = vec![0; wrapped.len()];
    let value = match variant.mechanism.unwrap() {
        ckm::CKM_AES_KEY_WRAP => kek.unwrap(wrapped, &mut value),
        _ => kek.unwrap_with_padding(wrapped, &mut value),
    };
    value.unwrap().to_vec()
}

fn hashed(hash: Hash, message: &[u8]) -> Vec<u8> {
    match hash {
        Hash::Sha1 => sha1::Sha1::digest(message).to_vec(),
        Hash::Sha256 => Sha256::digest(message).to_vec(),
        Hash::Sha384 => Sha384::digest(message).to_vec(),
        Hash::Sha512 => Sha512::digest(message).to_vec(),
    }
}

/// HMAC as RFC 2104, section 2, spells it out.
fn hmac(hash: Hash, key: &[u8], message: &[u8]) -> Vec<u8> {
    let block_bytes = if hash.output_bytes() > 32 { 128 } else { 64 };
    let mut block = key.to_vec();
    block.resize(block_bytes, 0);
    let padded = |pad: u8, rest: &[u8]| {
        let key: Vec<u8> = block.iter().map(|byte| byte ^ pad).collect();
        hashed(hash, &[&key, rest].concat())
    };
    padded(0x5C, &padded(0x36, message))
}

fn ecdh(curve: Curve) -> &'static agreement::Algorithm {
    match curve {
        Curve::P256 => &agreement::ECDH_P256,
        Curve::P384 => &agreement::ECDH_P384,
        Curve::P521 => &agreement::ECDH_P521,
    }
}

fn random(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rand::fill(&mut bytes).unwrap();
    bytes
}
