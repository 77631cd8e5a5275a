//! A generated card that all tests share, commands to it, and OpenSSL as the judge.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::OnceLock;

use tapstone_apdu::{CommandApdu, Expected, StatusWord};
pub(crate) use tapstone_testing::skip;
use tapstone_vcard::piv::{CardData, PivAlgorithm, PivApplet, Recipe};
use tapstone_vcard::{Applet, Reply};
use tempfile::TempDir;

pub(crate) const PIN: &[u8; 8] = b"123456\xFF\xFF";
pub(crate) const PUK: &[u8; 8] = b"12345678";
pub(crate) const WRONG: &[u8; 8] = b"654321\xFF\xFF";

/// The card that is made when nothing is said.
pub(crate) fn folder() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| made("default", &Recipe::default()))
}

/// A card with the other algorithms, and a CHUID of a wanted length.
pub(crate) fn other_folder() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| made("other", &other_recipe()))
}

pub(crate) fn other_recipe() -> Recipe {
    Recipe {
        authentication: PivAlgorithm::P384,
        signature: PivAlgorithm::P256,
        management: PivAlgorithm::Rsa2048,
        card: PivAlgorithm::Rsa3072,
        chuid_bytes: Some(2339),
        ..Recipe::default()
    }
}

/// Made anew by each run, in the place that Cargo has for what tests leave behind.
fn made(name: &str, recipe: &Recipe) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("piv").join(name);
    if place.exists() {
        std::fs::remove_dir_all(&place).unwrap();
    }
    let folder = place.join("card");
    CardData::open_or_generate(&folder, recipe).unwrap();
    folder
}

/// The shared card, fresh from the reader's slot.
pub(crate) fn card() -> PivApplet {
    PivApplet::new(CardData::open(folder()).unwrap())
}

pub(crate) fn other_card() -> PivApplet {
    PivApplet::new(CardData::open(other_folder()).unwrap())
}

/// A card whose PIN is verified.
pub(crate) fn verified(mut card: PivApplet) -> PivApplet {
    assert_eq!(verify(&mut card, PIN), StatusWord::OK);
    card
}

pub(crate) fn send(card: &mut PivApplet, header: [u8; 4], data: &[u8]) -> Reply {
    let [cla, ins, p1, p2] = header;
    let command = CommandApdu::new(cla, ins, p1, p2).with_data(data).expecting(Expected::SHORT);
    card.answer(&command)
}

pub(crate) fn verify(card: &mut PivApplet, data: &[u8]) -> StatusWord {
    send(card, [0x00, 0x20, 0x00, 0x80], data).status
}

pub(crate) fn get_data(card: &mut PivApplet, tag: &[u8]) -> Reply {
    let list = [&[0x5C, tag.len() as u8], tag].concat();
    send(card, [0x00, 0xCB, 0x3F, 0xFF], &list)
}

/// Runs `openssl` with these arguments; what it printed, or `None` when it said no.
pub(crate) fn openssl(arguments: &str) -> Option<String> {
    let output = match Process::new("openssl").args(arguments.split_whitespace()).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => panic!("openssl is not installed"),
        output => output.unwrap(),
    };
    if !output.status.success() {
        eprintln!("openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A folder for what OpenSSL is given.
pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    /// The public key of a certificate, PEM.
    pub(crate) fn public_key(&self, certificate: &Path) -> String {
        let certificate = certificate.display();
        let pem = openssl(&format!("x509 -inform DER -in {certificate} -noout -pubkey")).unwrap();
        self.put("public.pem", pem.as_bytes())
    }
}
