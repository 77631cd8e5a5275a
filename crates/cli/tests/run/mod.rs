//! `tapstone` with arguments, run in a directory of its own, and what it leaves behind there.
//!
//! Each program of tests adds what only it needs: `impl Tapstone` and `impl Outcome` stand in its
//! `support`, too.

pub(crate) mod null_module;
mod outcome;
mod running;

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tapstone_testing::private_environment;
use tempfile::TempDir;

pub(crate) use self::outcome::Outcome;
pub(crate) use self::running::{Running, TIME_LIMIT};

/// A command in the making. Files go by their names in its directory.
pub(crate) struct Tapstone {
    command: Command,
    directory: TempDir,
    writes_record: bool,
    defaults: BTreeMap<&'static str, &'static str>,
    secrets: Vec<String>,
    turn: fn() -> Box<dyn Any>,
}

impl Tapstone {
    /// A verb and nothing else, in a private environment.
    pub(crate) fn new(verb: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.current_dir(directory.path()).arg(verb).stdin(Stdio::null());
        let defaults = BTreeMap::new();
        let secrets = Vec::new();
        let turn = || Box::new(()) as Box<dyn Any>;
        Self { command, directory, writes_record: true, defaults, secrets, turn }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Arguments in one string, separated by blanks.
    pub(crate) fn args(mut self, arguments: &str) -> Self {
        self.command.args(arguments.split_whitespace());
        self
    }

    /// An option that is given last, with the value that it was last told here.
    pub(crate) fn by_default(mut self, option: &'static str, value: &'static str) -> Self {
        self.defaults.insert(option, value);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// A file that nobody else may read, as one with a PIN has to be.
    pub(crate) fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        write_secret(&self.path(name), bytes);
        self
    }

    /// With this PIN in a file. Nothing that the record has is this text.
    pub(crate) fn pin(self, pin: impl AsRef<[u8]>) -> Self {
        let quoted = format!("\"{}\"", String::from_utf8_lossy(pin.as_ref()));
        self.file("pin", pin).args("--pin-file pin").never_says(quoted)
    }

    /// This is in nothing that it leaves behind.
    pub(crate) fn never_says(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Without `--output`.
    pub(crate) fn without_record(mut self) -> Self {
        self.writes_record = false;
        self
    }

    /// While it runs, this is held.
    pub(crate) fn holding(mut self, turn: fn() -> Box<dyn Any>) -> Self {
        self.turn = turn;
        self
    }

    /// At the head of a process group of its own, as a shell starts it.
    pub(crate) fn in_a_group(mut self) -> Self {
        self.command.process_group(0);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn run(self) -> Outcome {
        self.start().wait()
    }

    pub(crate) fn start(mut self) -> Running {
        if self.writes_record {
            self = self.args("--output record.json");
        }
        let defaults = std::mem::take(&mut self.defaults);
        self.command.args(defaults.into_iter().flat_map(|(option, value)| [option, value]));
        // Into files: nobody has to read a pipe while the run goes on.
        let file = |name| File::create(self.directory.path().join(name)).unwrap();
        self.command.stdout(file("stdout")).stderr(file("stderr"));
        let held = (self.turn)();
        Running::new(self.command.spawn().unwrap(), self.directory, self.secrets, held)
    }
}

/// A file that only its owner can read.
pub(crate) fn write_secret(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}
