//! Agents on the null module, and a coordinator that measures with them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use jsonschema::Validator;
use rustix::process::{Pid, Signal, kill_process};
use tapstone_record::{Record, Row, SCHEMA_JSON, Window};
use tempfile::TempDir;

use crate::support::{Machine, Nats, Process, Relay, eventually};

/// No run of these tests takes so long: one that does hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// After so long of silence either side gives the other up; what follows takes seconds.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA_JSON).unwrap()).unwrap()
});

/// The module: Cargo puts the shared library of a dependency beside the test program.
pub(crate) fn module() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let module = program.with_file_name("libnull_module.so");
    assert!(module.exists(), "{}: built as a dev-dependency", module.display());
    module
}

pub(crate) const PIN: &str = "1234";

/// An agent's configuration, its log, and where its module keeps things.
pub(crate) struct Home(TempDir);

impl Home {
    /// The target is called `null`; `extra` is added to it.
    pub(crate) fn new(name: &str, extra: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let module = module();
        let text = format!("name = '{name}'\n[targets.null]\nmodule = '{}'\n", module.display());
        fs::write(home.path("agent.toml"), text + extra).unwrap();
        home
    }

    /// With this PIN.
    pub(crate) fn with_pin(name: &str, pin: &str) -> Self {
        let home = Self::new(name, "");
        let file = home.path("pin");
        fs::write(&file, pin).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let config = home.path("agent.toml");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(config, format!("{text}pin-file = '{}'\n", file.display())).unwrap();
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// Makes a command this agent's, with `NULL_MODULE_…` variables named without that prefix.
    pub(crate) fn agent(
        &self,
        mut command: Command,
        url: &str,
        variables: &[(&str, &str)],
    ) -> Command {
        without_variables(&mut command);
        command.envs(variables.iter().map(|(name, value)| (format!("NULL_MODULE_{name}"), value)));
        command.env("NULL_MODULE_LOG", self.path("log"));
        command.arg("agent").args(["--nats", url]).arg("--config").arg(self.path("agent.toml"));
        let log = File::create(self.path("stderr")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    pub(crate) fn wait_until_it_says(&self, text: &str) {
        let said = eventually(PATIENCE, || self.log().contains(text));
        assert!(said, "the agent says {text:?}: {}", self.log());
    }

    /// When the module's signatures ended, on the agent's clock.
    pub(crate) fn ends_ns(&self) -> Vec<u64> {
        let files = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let is_log =
            |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("log.");
        let bytes: Vec<u8> =
            files.filter(is_log).flat_map(|path| fs::read(path).unwrap()).collect();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        bytes.chunks_exact(16).map(|entry| number(&entry[..8])).collect()
    }
}

/// An agent on this machine.
pub(crate) struct Agent {
    pub(crate) home: Home,
    child: Child,
}

impl Agent {
    pub(crate) fn start(home: Home, url: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_with(home, url, variables, &[])
    }

    /// With more arguments.
    pub(crate) fn start_with(
        home: Home,
        url: &str,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        Self::start_as(home, url, variables, |command| command.args(arguments))
    }

    /// The command as this makes it.
    pub(crate) fn start_as(
        home: Home,
        url: &str,
        variables: &[(&str, &str)],
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        let mut command = home.agent(command, url, variables);
        let child = change(&mut command).spawn().unwrap();
        home.wait_until_it_says("is there and free");
        Self { home, child }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn wait(mut self) -> Option<i32> {
        let mut status = None;
        let ended = eventually(PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(ended, "the agent still runs");
        status.and_then(|status| status.code())
    }
}

/// It cleans up as after a SIGTERM.
impl Drop for Agent {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::CONT);
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            if !eventually(LEASE, || self.child.try_wait().unwrap().is_some()) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// An agent on a machine with a network and a clock of its own.
pub(crate) struct Away {
    pub(crate) home: Home,
    pub(crate) relay: Relay,
    pub(crate) ahead_seconds: i64,
    _process: Process,
    _machine: Machine,
}

impl Away {
    /// `None`, which has been said then: such machines cannot be made here.
    pub(crate) fn start(
        home: Home,
        nats: &Nats,
        ahead_seconds: i64,
        delay: Duration,
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        let machine = Machine::new(ahead_seconds)?;
        let relay = Relay::from_within(machine.network(), nats.address()).delay(delay);
        let command = machine.command(env!("CARGO_BIN_EXE_tapstone"));
        let command = home.agent(command, &nats.url_at(relay.address()), variables);
        let process = machine.start(command);
        home.wait_until_it_says("is there and free");
        Some(Self { home, relay, ahead_seconds, _process: process, _machine: machine })
    }
}

/// `tapstone token --hosts`, or another verb, in a directory of its own.
pub(crate) struct Lab {
    command: Command,
    directory: TempDir,
}

/// The same under way.
pub(crate) struct Running {
    child: Child,
    directory: TempDir,
}

/// The same when it has ended.
pub(crate) struct Outcome {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    directory: TempDir,
}

impl Lab {
    pub(crate) fn new(verb: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        without_variables(&mut command);
        command.arg(verb).stdin(Stdio::null());
        Self { command, directory: tempfile::tempdir().unwrap() }
    }

    /// `token` on so many hosts' target `null`.
    pub(crate) fn on_hosts(count: usize, url: &str) -> Self {
        let lab = Self::new("token").args(&format!("--hosts {count} --nats {url} --target null"));
        let record = lab.path("record.json");
        lab.arg("--output").arg(record)
    }

    pub(crate) fn args(mut self, arguments: &str) -> Self {
        self.command.args(arguments.split_whitespace());
        self
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn start(mut self) -> Running {
        let file = |name: &str| File::create(self.directory.path().join(name)).unwrap();
        self.command.stdout(file("stdout")).stderr(file("stderr"));
        Running { child: self.command.spawn().unwrap(), directory: self.directory }
    }

    pub(crate) fn run(self) -> Outcome {
        self.start().wait()
    }
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn wait(mut self) -> Outcome {
        let mut status = None;
        let ended = eventually(PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            self.child.kill().unwrap();
        }
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name)).unwrap();
        let (stdout, stderr) = (read("stdout"), read("stderr"));
        assert!(ended, "still running after {PATIENCE:?}\n{stderr}");
        let exit = status.and_then(|status| status.code());
        Outcome { exit, stdout, stderr, directory: self.directory }
    }
}

impl Outcome {
    /// The same, once the exit code is as it should be.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The record, which satisfies the schema and holds no PIN.
    pub(crate) fn record(&self) -> Record {
        let path = self.path("record.json");
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("no record: {error}\n{}", self.stderr));
        let value = serde_json::from_str(&text).unwrap();
        let complaints: Vec<String> =
            VALIDATOR.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(complaints, [""; 0]);
        Record::from_json(&text, &path).unwrap()
    }

    /// The only row of the record.
    pub(crate) fn row(&self) -> Row {
        let mut rows = self.record().results;
        assert_eq!(rows.len(), 1, "one row");
        rows.remove(0)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// How many of these ended in a window that is on a clock which is so far behind.
pub(crate) fn within(ends_ns: &[u64], window: Window, ahead_ns: i64) -> u64 {
    let inside = window.start_ns.0..window.end_ns.0;
    let here = |end: &u64| end.saturating_add_signed(-ahead_ns);
    ends_ns.iter().filter(|end| inside.contains(&here(end))).count() as u64
}

/// Names of the objects in a store.
pub(crate) fn objects(store: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(store) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".object")).collect()
}

fn without_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("NULL_MODULE_") || name.starts_with("TAPSTONE_") {
            command.env_remove(name);
        }
    }
}
