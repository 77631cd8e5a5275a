//! Reads `catalogue.toml`: a family of operations is written once and expanded for each subject.

use serde::Deserialize;

use super::hash::Hash;
use super::key::KeySpec;
use super::mechanism::Mechanism;
use super::variant::{InputKind, Parameters, Shape, SizeRule, Variant};

/// How many objects a search runs over.
const FIND_AMONG: u32 = 100;

/// All operations of a catalogue file, in its order.
///
/// The catalogue is part of the program, so an error here is a defect: its text is for whoever
/// edits the file.
pub(super) fn read(text: &str) -> Result<Vec<Variant>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut variants = Vec::new();
    for family in file.family {
        for name in family.of {
            let subject = Subject::named(&name).ok_or_else(|| format!("what is {name:?}?"))?;
            for operation in &family.operation {
                let variant = subject.expand(operation);
                variants.push(variant.map_err(|error| format!("{}: {error}", operation.name))?);
            }
        }
    }
    Ok(variants)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    family: Vec<Family>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    of: Vec<String>,
    operation: Vec<Operation>,
}

/// An operation as the file writes it, with placeholders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    name: String,
    shape: Shape,
    mechanism: Option<String>,
    #[serde(default)]
    parameters: RawParameters,
    hash: Option<String>,
    input: Option<InputKind>,
    bytes: Option<usize>,
    #[serde(default)]
    sizes: RawSizes,
    description: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawParameters {
    #[default]
    None,
    Pss,
    Oaep,
    Iv,
    Counter,
    Gcm,
    Ecdh,
    Objects,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawSizes {
    #[default]
    Fixed,
    Free,
    Blocks,
}

/// What a family is read for: a key, a bare hash function, or the token itself.
struct Subject {
    name: String,
    key: KeySpec,
    hash: Option<Hash>,
}

impl Subject {
    fn named(name: &str) -> Option<Self> {
        let subject = |key, hash| Self { name: name.to_owned(), key, hash };
        if name == "token" {
            return Some(subject(KeySpec::None, None));
        }
        if let Some(hash) = Hash::named(name) {
            return Some(subject(KeySpec::None, Some(hash)));
        }
        let key = KeySpec::named(name)?;
        let hash = match key {
            KeySpec::Ec { curve } => Some(curve.hash()),
            KeySpec::Hmac { hash } => Some(hash),
            _ => None,
        };
        Some(subject(key, hash))
    }

    fn expand(&self, raw: &Operation) -> Result<Variant, String> {
        let hash = raw.hash.as_deref().map(|name| {
            let name = self.fill(name);
            Hash::named(&name).ok_or_else(|| format!("no hash function is called {name:?}"))
        });
        let hash = hash.transpose()?;
        let mechanism = raw.mechanism.as_deref().map(|name| Mechanism::named(&self.fill(name)));
        Ok(Variant {
            name: self.fill(&raw.name),
            shape: raw.shape,
            mechanism: mechanism.transpose().map_err(|error| error.to_string())?,
            parameters: self.parameters(raw.parameters, hash)?,
            hash,
            key: self.key,
            input: raw.input.unwrap_or(InputKind::None),
            message_bytes: self.message_bytes(raw, hash),
            sizes: match raw.sizes {
                RawSizes::Fixed => SizeRule::Fixed,
                RawSizes::Free => SizeRule::Free,
                RawSizes::Blocks => SizeRule::Blocks { bytes: self.block_bytes()? },
            },
            description: self.fill(&raw.description),
            in_default_suite: false,
        })
    }

    fn fill(&self, template: &str) -> String {
        let hash = self.hash.map_or("", Hash::name);
        template
            .replace("{key}", &self.name)
            .replace("{Key}", &title(&self.name))
            .replace("{hash}", hash)
            .replace("{HASH}", &hash.to_uppercase())
            .replace("{Hash}", &title(hash))
    }

    fn parameters(&self, raw: RawParameters, hash: Option<Hash>) -> Result<Parameters, String> {
        let hash = || hash.ok_or("this parameter needs a hash function");
        Ok(match (raw, self.key) {
            (RawParameters::None, _) => Parameters::None,
            (RawParameters::Pss, _) => {
                let hash = hash()?;
                Parameters::Pss { hash, salt_bytes: hash.output_bytes() }
            }
            (RawParameters::Oaep, _) => Parameters::Oaep { hash: hash()? },
            (RawParameters::Iv, _) => Parameters::Iv { bytes: self.block_bytes()? },
            (RawParameters::Counter, _) => Parameters::Counter { bits: 128 },
            (RawParameters::Gcm, _) => Parameters::Gcm { iv_bytes: 12, tag_bits: 128 },
            (RawParameters::Ecdh, KeySpec::Ec { curve }) => {
                Parameters::Ecdh { secret_bytes: curve.field_bytes() }
            }
            (RawParameters::Ecdh, _) => return Err("ECDH needs a curve".to_owned()),
            (RawParameters::Objects, _) => Parameters::Objects { count: FIND_AMONG },
        })
    }

    /// The file's figure, or the length of the digest that is signed.
    fn message_bytes(&self, raw: &Operation, hash: Option<Hash>) -> usize {
        raw.bytes.unwrap_or_else(|| match raw.input {
            Some(InputKind::Digest | InputKind::DigestInfo) => hash.map_or(0, Hash::output_bytes),
            _ => 0,
        })
    }

    fn block_bytes(&self) -> Result<usize, String> {
        match self.key {
            KeySpec::Aes { .. } => Ok(16),
            KeySpec::Des3 => Ok(8),
            _ => Err("only ciphers have blocks".to_owned()),
        }
    }
}

/// `rsa2048` as people write it: RSA-2048.
fn title(name: &str) -> String {
    if let Some(hash) = name.strip_prefix("hmac-") {
        return format!("HMAC-{}", title(hash));
    }
    for (prefix, family) in [("rsa", "RSA"), ("aes", "AES"), ("sha", "SHA"), ("p", "P")] {
        if let Some(size) = name.strip_prefix(prefix) {
            return format!("{family}-{size}");
        }
    }
    // FIPS 205 writes the last letter small, since it tells short signatures from fast signing.
    if let Some(set) = name.strip_prefix("slh-dsa-") {
        let (hash, size) = set.split_once('-').unwrap_or((set, ""));
        return format!("SLH-DSA-{}-{size}", hash.to_uppercase());
    }
    match name {
        "ed25519" => "Ed25519".to_owned(),
        "3des" => "Triple DES".to_owned(),
        other => other.to_uppercase(),
    }
}
