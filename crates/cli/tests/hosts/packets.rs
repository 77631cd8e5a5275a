//! Signed envelopes, put together and taken apart by hand: what a stranger makes of the layout that
//! `crates/hosts/src/envelope.rs` describes.

use std::fs;
use std::path::Path;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::keys;

/// Somebody with a packet key.
pub(crate) struct Signer {
    pair: Ed25519KeyPair,
    protocol: u32,
    version: String,
}

impl Signer {
    /// With the key of the agent of this name in these tests.
    pub(crate) fn for_name(name: &str) -> Self {
        Self::from_pem(&keys::file_of(name))
    }

    /// With the key of the coordinator of these tests.
    pub(crate) fn coordinator() -> Self {
        Self::from_pem(&keys::file_of(keys::COORDINATOR))
    }

    /// With the key in a file.
    pub(crate) fn from_file(path: &Path) -> Self {
        Self::from_pem(&fs::read_to_string(path).unwrap())
    }

    fn from_pem(pem: &str) -> Self {
        let lines = pem.lines().filter(|line| !line.starts_with('-'));
        let der = STANDARD.decode(lines.collect::<String>()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).unwrap();
        Self { pair, protocol: 3, version: env!("CARGO_PKG_VERSION").to_owned() }
    }

    pub(crate) fn of_version(self, protocol: u32, version: &str) -> Self {
        Self { protocol, version: version.to_owned(), ..self }
    }

    pub(crate) fn identity(&self) -> String {
        hex::encode(self.pair.public_key().as_ref())
    }

    pub(crate) fn seal(
        &self,
        to: &str,
        run: u64,
        direction: u8,
        number: u64,
        body: &[u8],
    ) -> Vec<u8> {
        self.seal_as(&self.identity(), to, run, direction, number, body)
    }

    /// With this name in it, whose key it may not be.
    pub(crate) fn seal_as(
        &self,
        from: &str,
        to: &str,
        run: u64,
        direction: u8,
        number: u64,
        body: &[u8],
    ) -> Vec<u8> {
        let mut rest = self.protocol.to_le_bytes().to_vec();
        rest.push(self.version.len() as u8);
        rest.extend(self.version.as_bytes());
        rest.extend(hex::decode(from).unwrap());
        rest.extend(hex::decode(to).unwrap());
        rest.extend(run.to_le_bytes());
        rest.push(direction);
        rest.extend(number.to_le_bytes());
        rest.extend(body);
        let signature = self.pair.sign(&[b"tapstone packet 1\0", &rest[..]].concat());
        [b"tapstone", signature.as_ref(), &rest].concat()
    }
}

/// What an envelope says, whoever signed it.
pub(crate) struct Head {
    pub(crate) version: String,
    pub(crate) from: String,
    pub(crate) run: u64,
    pub(crate) number: u64,
    pub(crate) body: Vec<u8>,
}

impl Head {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let rest = &bytes[8 + 64 + 4..];
        let (version, rest) = rest[1..].split_at(usize::from(rest[0]));
        let number = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().unwrap());
        Self {
            version: String::from_utf8(version.to_vec()).unwrap(),
            from: hex::encode(&rest[..32]),
            run: number(64),
            number: number(73),
            body: rest[81..].to_vec(),
        }
    }
}
