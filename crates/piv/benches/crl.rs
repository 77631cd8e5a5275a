//! What a CRL of a million entries costs: parsed, verified and written as an index the first time,
//! opened from that index later, and looked up. Time, and the most memory of a process of its own.
//!
//! `cargo bench -p tapstone-piv --bench crl`; run as a test it does the same with a thousand.

#![allow(clippy::unwrap_used, reason = "a bench")]

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_piv::{
    Certificate, Denial, KeptCrl, PathDemands, RevocationRule, Time, Trust, crl_digest,
};

use self::mint::{certificate, list};

/// 2026-11-21 12:00 UTC.
const NOW: Time = Time(1_795_262_400);
const LOOK_UPS: usize = 10_000;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let folder = words.get(2).map(Path::new);
    match (words.get(1).map(String::as_str), folder) {
        (Some("mint"), Some(folder)) => mint_files(folder, words[3].parse().unwrap()),
        (Some("first"), Some(folder)) => first(folder),
        (Some("later"), Some(folder)) => later(folder),
        _ => {
            let entries = if words.iter().any(|word| word == "--bench") { 1_000_000 } else { 1000 };
            let folder = tempfile::tempdir().unwrap();
            let child = |mode: &str| {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.arg(mode).arg(folder.path()).arg(entries.to_string());
                assert!(command.status().unwrap().success());
            };
            println!("a CRL of {entries} entries");
            child("mint");
            child("first");
            for _ in 0..5 {
                child("later");
            }
        }
    }
}

fn mint_files(folder: &Path, entries: u64) {
    let key = SigningKey::random(&mut rsa::rand_core::OsRng);
    std::fs::write(folder.join("ca.der"), certificate(&key, 1, true)).unwrap();
    std::fs::write(folder.join("leaf.der"), certificate(&key, 3, false)).unwrap();
    std::fs::write(folder.join("list.crl"), list(&key, entries)).unwrap();
}

fn trust(folder: &Path) -> Trust {
    let ca = std::fs::read(folder.join("ca.der")).unwrap();
    let trust = Trust::new(vec![Certificate::parse(&ca).unwrap()], Vec::new()).unwrap();
    trust.checking_revocation(RevocationRule::Require, &[])
}

/// Everything from the file to a list that can be asked, and its index.
fn first(folder: &Path) {
    let trust = trust(folder);
    let start = Monotonic.now();
    let der = std::fs::read(folder.join("list.crl")).unwrap();
    let bytes = der.len();
    let digest = crl_digest(&der);
    let list = trust.parse_list(&der).unwrap();
    list.write_index(digest, &mut File::create(folder.join("index")).unwrap()).unwrap();
    let took = Monotonic.now() - start;
    assert!(list.is_signed());
    println!("first: {bytes} bytes in {took}, {} MB at most", peak_megabytes());
}

/// As `tapstone door measure` does it: the CRL hashed, the index read beside it.
fn later(folder: &Path) {
    let trust = trust(folder);
    let start = Monotonic.now();
    let mut crl = File::open(folder.join("list.crl")).unwrap();
    let kept = KeptCrl::open(&mut crl, |_| File::open(folder.join("index")).ok()).unwrap();
    let index = kept.index.unwrap();
    assert!(index.crl_sha256 == kept.sha256 && trust.knows_signer(&index.list));
    let took = Monotonic.now() - start;
    let trust = trust.with_list(index.list);
    let most = peak_megabytes();
    let looked_up = look_ups(folder, &trust);
    println!("later: {took}, {most} MB at most; {looked_up}");
}

/// A path is checked with and without revocation; what differs is the look-up.
fn look_ups(folder: &Path, trust: &Trust) -> String {
    let leaf = Certificate::parse(&std::fs::read(folder.join("leaf.der")).unwrap()).unwrap();
    let path = trust.validate(&Arc::new(leaf), &PathDemands::default(), NOW);
    let path = path.map_err(|refusal: Denial| refusal.to_string()).unwrap();
    let start = Monotonic.now();
    for _ in 0..LOOK_UPS {
        trust.recheck(&path, NOW).unwrap();
    }
    let each = Nanos((Monotonic.now() - start).0 / LOOK_UPS as u64);
    format!("{each} to look a certificate up, with everything around it")
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1000
}

/// Certificates and a CRL, written out by hand: a million entries fit into no other's patience.
mod mint {
    use super::{DerSignature, NOW, Signer, SigningKey};

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let mut bytes = match length {
            0..0x80 => vec![tag, length as u8],
            0x80..0x100 => vec![tag, 0x81, length as u8],
            0x100..0x1_0000 => vec![tag, 0x82, (length >> 8) as u8, length as u8],
            _ => {
                let length = (length as u32).to_be_bytes();
                [&[tag, 0x84][..], &length].concat()
            }
        };
        bytes.extend_from_slice(content);
        bytes
    }

    const ALGORITHM: [u8; 12] = [0x30, 10, 6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2];
    /// id-ecPublicKey on P-256.
    const EC_P256: [u8; 21] = [
        0x30, 19, 6, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1, 6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3,
        1, 7,
    ];
    /// CN=CA.
    const NAME: [u8; 15] = [0x30, 13, 0x31, 11, 0x30, 9, 6, 3, 0x55, 4, 3, 0x0C, 2, b'C', b'A'];
    const FROM: &[u8] = b"260101000000Z";
    const UNTIL: &[u8] = b"280101000000Z";

    fn signed(key: &SigningKey, body: Vec<u8>) -> Vec<u8> {
        const { assert!(NOW.0 > 1_767_225_600, "after FROM") };
        let signature: DerSignature = key.sign(&body);
        let bits = [&[0], &signature.to_bytes()[..]].concat();
        element(0x30, &[body, ALGORITHM.to_vec(), element(3, &bits)].concat())
    }

    pub(super) fn certificate(key: &SigningKey, serial: u8, is_ca: bool) -> Vec<u8> {
        let point = key.verifying_key().to_encoded_point(false);
        let bits = element(3, &[&[0], point.as_bytes()].concat());
        let spki = element(0x30, &[&EC_P256[..], &bits].concat());
        let validity = element(0x30, &[element(0x17, FROM), element(0x17, UNTIL)].concat());
        let basic = [0x30, 15, 6, 3, 0x55, 0x1D, 0x13, 1, 1, 0xFF, 4, 5, 0x30, 3, 1, 1, 0xFF];
        let extensions = match is_ca {
            true => element(0xA3, &element(0x30, &basic)),
            false => Vec::new(),
        };
        let body = [
            element(0xA0, &[2, 1, 2]),
            vec![2, 1, serial],
            ALGORITHM.to_vec(),
            NAME.to_vec(),
            validity,
            match is_ca {
                true => NAME.to_vec(),
                false => [&NAME[..13], b"XX"].concat(),
            },
            spki,
            extensions,
        ];
        signed(key, element(0x30, &body.concat()))
    }

    /// Serial numbers of 16 bytes in no order, as CAs have them.
    pub(super) fn list(key: &SigningKey, entries: u64) -> Vec<u8> {
        let mut revoked = Vec::with_capacity(entries as usize * 35);
        for number in 0..entries {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            revoked.extend([0x30, 33, 2, 16, 0x40]);
            revoked.extend([0; 7]);
            revoked.extend(mixed.to_be_bytes());
            revoked.extend([0x17, 13]);
            revoked.extend(FROM);
        }
        let dates = [element(0x17, FROM), element(0x17, UNTIL)].concat();
        let number = [0x30, 10, 6, 3, 0x55, 0x1D, 0x14, 4, 3, 2, 1, 1];
        let extensions = element(0xA0, &element(0x30, &number));
        let head = [vec![2, 1, 1], ALGORITHM.to_vec(), NAME.to_vec(), dates].concat();
        let body = [head, element(0x30, &revoked), extensions].concat();
        signed(key, element(0x30, &body))
    }
}
