//! SoftHSM2 with its tokens in a temporary directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use tapstone_discover::{self as discover, State};
use tapstone_testing::private_environment;
use tempfile::TempDir;

use super::{Tapstone, skip};
use crate::run::write_secret;

/// The PIN of every token. The hyphen keeps it out of base64, so that it is nowhere by chance.
pub(crate) const PIN: &str = "gehe1m-7315";

const SO_PIN: &str = "verwa1ter-9846";

/// The label of the token that is there from the start.
const LABEL: &str = "hsm";

/// See the module's text.
pub(crate) struct Hsm {
    module: PathBuf,
    directory: TempDir,
}

impl Hsm {
    /// With one token; `None` when SoftHSM2 is not installed, which has been said then.
    pub(crate) fn new() -> Option<Self> {
        let Some(module) = module() else {
            skip("SoftHSM2's module libsofthsm2.so");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let tokens = directory.path().join("tokens");
        fs::create_dir(&tokens).unwrap();
        let conf = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n",
            tokens.display()
        );
        fs::write(directory.path().join("softhsm2.conf"), conf).unwrap();
        let hsm = Self { module, directory };
        hsm.write_secret("pin", PIN);
        hsm.add_token(LABEL)?;
        Some(hsm)
    }

    /// One more token with the same PIN.
    pub(crate) fn add_token(&self, label: &str) -> Option<()> {
        let mut command = Command::new("softhsm2-util");
        command.args(["--init-token", "--free", "--label", label, "--pin", PIN]);
        self.complete(command.args(["--so-pin", SO_PIN]), "softhsm2-util")
    }

    /// Runs OpenSC's `pkcs11-tool` on the first token, logged in; `None` when it is not installed.
    pub(crate) fn pkcs11_tool(&self, arguments: &str) -> Option<()> {
        let mut command = Command::new("pkcs11-tool");
        command.arg("--module").arg(&self.module);
        command.args(["--token-label", LABEL, "--login", "--pin", PIN]);
        self.complete(command.args(arguments.split_whitespace()), "pkcs11-tool (OpenSC)")
    }

    /// `tapstone token` on the first token, with its PIN.
    pub(crate) fn tapstone(&self) -> Tapstone {
        self.on(self.label()).arg("--pin-file").arg(self.path("pin"))
    }

    /// `tapstone token` on the token with this label, without a PIN.
    pub(crate) fn on(&self, label: &str) -> Tapstone {
        self.anywhere().arg("--token-label").arg(label)
    }

    /// `tapstone token` without saying on which token.
    pub(crate) fn anywhere(&self) -> Tapstone {
        self.bare("token").args("--warm-up 0.01 --module").arg(&self.module)
    }

    /// `tapstone token` on the first token, through the module that spoils answers.
    pub(crate) fn behind_hostile_module(&self) -> Tapstone {
        self.bare("token")
            .args("--warm-up 0.01 --max-failures 1000000 --module")
            .arg(hostile_module())
            .args("--token-label")
            .arg(LABEL)
            .arg("--pin-file")
            .arg(self.path("pin"))
            .env("HOSTILE_MODULE_BEHIND", &self.module)
    }

    /// `tapstone` with a verb, which may or may not be told of the module.
    pub(crate) fn bare(&self, verb: &str) -> Tapstone {
        let run = Tapstone::new(verb).env("SOFTHSM2_CONF", self.path("softhsm2.conf"));
        run.env("XDG_STATE_HOME", self.path("state")).never_says(PIN)
    }

    /// A file that only its owner can read.
    pub(crate) fn write_secret(&self, name: &str, secret: &str) -> PathBuf {
        let path = self.path(name);
        write_secret(&path, secret);
        path
    }

    /// Of the token that is there from the start.
    pub(crate) fn label(&self) -> &'static str {
        LABEL
    }

    pub(crate) fn module(&self) -> &Path {
        &self.module
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// All objects on all tokens, byte by byte as SoftHSM2 keeps them. No session object is here.
    pub(crate) fn objects(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let tokens = fs::read_dir(self.path("tokens")).unwrap();
        let files = tokens.flat_map(|token| fs::read_dir(token.unwrap().path()).unwrap());
        let is_object = |path: &PathBuf| {
            path.extension().is_some_and(|of| of == "object") && !path.ends_with("token.object")
        };
        let paths = files.map(|file| file.unwrap().path()).filter(is_object);
        // One that is removed in this moment is no longer there.
        paths.filter_map(|path| fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
    }

    fn complete(&self, command: &mut Command, name: &str) -> Option<()> {
        private_environment(command);
        let output = command.env("SOFTHSM2_CONF", self.path("softhsm2.conf")).output();
        match output {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skip(name);
                None
            }
            output => {
                let output = output.unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{command:?}: {said}");
                Some(())
            }
        }
    }
}

/// The module that spoils answers: Cargo puts the shared library of a dependency beside the test
/// program.
pub(crate) fn hostile_module() -> PathBuf {
    let module = std::env::current_exe().unwrap().with_file_name("libhostile_module.so");
    assert!(module.exists(), "{}: built as a dev-dependency", module.display());
    module
}

/// Where p11-kit's configuration or the package puts it.
fn module() -> Option<PathBuf> {
    let candidates = discover::modules(&[]).candidates.into_iter();
    let mut ready = candidates.filter(|candidate| candidate.state == State::Ready);
    ready.find(|candidate| candidate.path.ends_with("libsofthsm2.so")).map(|found| found.path)
}
