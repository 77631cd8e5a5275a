//! A card in the reader with files of its own, and programs that use both.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::pcscd::{READER, VirtualCard, client, skip};

/// Where Debian and others put OpenSC's module.
const MODULES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so",
    "/usr/lib/aarch64-linux-gnu/opensc-pkcs11.so",
    "/usr/lib64/opensc-pkcs11.so",
    "/usr/lib/opensc-pkcs11.so",
];

/// See the module's text.
pub(crate) struct Session {
    directory: TempDir,
    _card: VirtualCard,
}

impl Session {
    /// What a generated card has.
    pub(crate) const PIN: &str = "123456";

    /// With a card that is made for it. `None`, which has been said then, where there is no pcscd.
    pub(crate) fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("card");
        let arguments = ["piv".as_ref(), "--card-data".as_ref(), folder.as_os_str()];
        let card = VirtualCard::insert(&arguments)?;
        Some(Self { directory, _card: card })
    }

    /// A file of this session; those of the card are below `card/`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.file(name), bytes).unwrap();
        self.file(name).display().to_string()
    }

    /// What a program says on standard output, which has to succeed. `None`: it is not installed.
    pub(crate) fn run(&self, line: &str) -> Option<String> {
        let words: Vec<_> = line.split_whitespace().collect();
        Some(succeed(words[0], &words[1..])?.0)
    }

    /// The program says no.
    pub(crate) fn is_refused(&self, line: &str) -> bool {
        let words: Vec<_> = line.split_whitespace().collect();
        client(words[0], &words[1..]).is_some_and(|output| !output.status.success())
    }

    /// `opensc-tool` or `piv-tool`.
    pub(crate) fn opensc(&self, program: &str, argument: &str) -> Option<String> {
        Some(succeed(program, &["--reader", READER, argument])?.0)
    }

    /// `pkcs11-tool` with the PIN.
    pub(crate) fn pkcs11(&self, arguments: &str) -> Option<String> {
        let card = ["--module", self.module()?, "--slot-description", READER, "--pin", Self::PIN];
        let all: Vec<_> = card.into_iter().chain(arguments.split_whitespace()).collect();
        Some(succeed("pkcs11-tool", &all)?.0)
    }

    /// `yubico-piv-tool`, which says on standard error that it succeeded.
    pub(crate) fn yubico(&self, arguments: &str) -> Option<String> {
        let all: Vec<_> =
            ["--reader", READER].into_iter().chain(arguments.split_whitespace()).collect();
        let (said, told) = succeed("yubico-piv-tool", &all)?;
        Some(said + &told)
    }

    /// The public key of a certificate that is read from the card, PEM.
    pub(crate) fn public_key(&self, id: &str, pem: &Path) {
        let der = self.file("certificate.der").display().to_string();
        let read = format!("--read-object --type cert --id {id} --output-file {der}");
        self.pkcs11(&read).unwrap();
        let pem = pem.display();
        self.run(&format!("openssl x509 -inform DER -in {der} -noout -pubkey -out {pem}")).unwrap();
    }

    pub(crate) fn module(&self) -> Option<&'static str> {
        let found = MODULES.into_iter().find(|path| Path::new(path).exists());
        if found.is_none() {
            skip("OpenSC's module opensc-pkcs11.so (Debian: opensc-pkcs11)");
        }
        found
    }
}

/// What a program says on standard output and on standard error.
fn succeed(program: &str, arguments: &[&str]) -> Option<(String, String)> {
    let output = client(program, arguments)?;
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let status = output.status;
    assert!(status.success(), "{program} {arguments:?}: {status}: {said}{complained}");
    Some((said.into_owned(), complained.into_owned()))
}
