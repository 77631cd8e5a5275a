//! A command in the making, in a directory of its own.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::turn::Turn;
use super::{Outcome, Running};

/// The PIN of every token of the module.
pub(crate) const PIN: &str = "1234";

/// The module: Cargo puts the shared library of a dependency beside the test program.
fn module() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let module = program.with_file_name("libnull_module.so");
    assert!(module.exists(), "{}: built as a dev-dependency", module.display());
    module
}

/// `tapstone token` with the null module, its PIN in a file, its record, log and store in a
/// directory that goes with it.
pub(crate) struct Tapstone {
    command: Command,
    directory: TempDir,
    warm_up: &'static str,
    turn: fn() -> Turn,
}

impl Tapstone {
    /// With `NULL_MODULE_…` variables, named without that prefix.
    pub(crate) fn new(variables: &[(&str, &str)]) -> Self {
        let run = Self::bare().variables(variables).arg("--module").arg(module());
        let pin = run.path("pin");
        fs::write(&pin, PIN).unwrap();
        fs::set_permissions(&pin, Permissions::from_mode(0o600)).unwrap();
        run.arg("--pin-file").arg(pin)
    }

    /// The same without `--pin-file`.
    pub(crate) fn without_pin(variables: &[(&str, &str)]) -> Self {
        Self::bare().variables(variables).arg("--module").arg(module())
    }

    /// No module, no PIN.
    pub(crate) fn bare() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        let ours = |(name, _): &(OsString, OsString)| {
            let name = name.to_string_lossy();
            name.starts_with("NULL_MODULE_") || name.starts_with("TAPSTONE_")
        };
        for (name, _) in std::env::vars_os().filter(ours) {
            command.env_remove(name);
        }
        command.arg("token").stdin(Stdio::null());
        Self { command, directory, warm_up: "0.05", turn: Turn::shared }
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

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The PIN from a file with these bytes.
    pub(crate) fn pin(self, pin: &[u8]) -> Self {
        let file = self.path("other-pin");
        fs::write(&file, pin).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        self.arg("--pin-file").arg(file)
    }

    /// The module notes when each signature was done. Its first one takes longer: each thread
    /// needs memory for its notes.
    pub(crate) fn logged(self) -> Self {
        let log = self.path("log");
        Self { warm_up: "0.5", ..self.env("NULL_MODULE_LOG", log) }
    }

    /// While no other run of these tests takes the processor.
    pub(crate) fn quietly(self) -> Self {
        Self { turn: Turn::alone, ..self }
    }

    /// Token objects and the count of wrong PINs outlive the module, in the run's directory.
    pub(crate) fn stored(self) -> Self {
        let store = self.path("store");
        self.stored_in(&store)
    }

    /// The same in another run's directory.
    pub(crate) fn stored_in(self, store: &Path) -> Self {
        self.env("NULL_MODULE_STORE", store)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs to its end, and writes a record.
    pub(crate) fn run(self) -> Outcome {
        self.start().wait()
    }

    pub(crate) fn start(self) -> Running {
        let record = self.path("record.json");
        self.arg("--output").arg(record).start_without_record()
    }

    pub(crate) fn run_without_record(self) -> Outcome {
        self.start_without_record().wait()
    }

    fn start_without_record(mut self) -> Running {
        // Into files: nobody has to read a pipe while the run goes on.
        let stdout = File::create(self.path("stdout")).unwrap();
        let stderr = File::create(self.path("stderr")).unwrap();
        self.command.args(["--warm-up", self.warm_up]).stdout(stdout).stderr(stderr);
        let turn = (self.turn)();
        Running::new(self.command.spawn().unwrap(), self.directory, turn)
    }

    fn variables(mut self, variables: &[(&str, &str)]) -> Self {
        let prefixed = variables.iter().map(|(name, value)| (format!("NULL_MODULE_{name}"), value));
        self.command.envs(prefixed);
        self
    }
}
