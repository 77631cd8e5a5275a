//! Agents on the null module, and a coordinator that measures with them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tapstone_record::Window;
use tapstone_testing::private_environment;
use tempfile::TempDir;

use crate::keys::agents_part;
pub(crate) use crate::run::null_module::{PIN, objects};
use crate::run::{Tapstone, null_module, write_secret};
use crate::support::{Credentials, Machine, Nats, Process, Relay, eventually};

/// No run of these tests takes so long: one that does hangs.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// After so long of silence either side gives the other up; what follows takes seconds.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// An agent's configuration, its log, and where its module keeps things.
pub(crate) struct Home(TempDir);

impl Home {
    /// The target is called `null`; `extra` is added to it.
    pub(crate) fn new(name: &str, extra: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let module = null_module::path();
        let keys = agents_part(name, &home.path("packet.key"));
        let target = format!("[targets.null]\nmodule = '{}'\n", module.display());
        let text = format!("name = '{name}'\n{keys}{target}{extra}");
        fs::write(home.path("agent.toml"), text).unwrap();
        home
    }

    /// With the keys that `make-lab` made for this agent.
    pub(crate) fn in_lab(made: &Credentials, name: &str, extra: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let keys = fs::read_to_string(made.of_member(name, "agent.toml")).unwrap();
        fs::copy(made.of_member(name, "packet.key"), home.path("packet.key")).unwrap();
        let target = format!("[targets.null]\nmodule = '{}'\n", null_module::path().display());
        fs::write(home.path("agent.toml"), format!("{keys}{target}{extra}")).unwrap();
        home
    }

    /// With this PIN.
    pub(crate) fn with_pin(name: &str, pin: &str) -> Self {
        let home = Self::new(name, "");
        let file = home.path("pin");
        write_secret(&file, pin);
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
        private_environment(&mut command);
        null_module::tell(&mut command, variables);
        command.env("NULL_MODULE_LOG", self.path("log"));
        command.arg("agent").args(["--nats", url]).arg("--config").arg(self.path("agent.toml"));
        let log = File::create(self.path("stderr")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    pub(crate) fn wait_until_it_says(&self, text: &str) {
        self.wait_until_it_has_said(text, 1);
    }

    /// So many times since it was started.
    pub(crate) fn wait_until_it_has_said(&self, text: &str, times: usize) {
        let said = eventually(TIME_LIMIT, || self.log().matches(text).count() >= times);
        assert!(said, "the agent says {text:?}, {times} times: {}", self.log());
    }

    /// When the module's signatures ended, on the agent's clock.
    pub(crate) fn ends_ns(&self) -> Vec<u64> {
        null_module::Log::read(self.0.path()).ends_ns()
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
        self.wait_for_end()
    }

    pub(crate) fn wait_for_end(&mut self) -> Option<i32> {
        let mut status = None;
        let ended = eventually(TIME_LIMIT, || {
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

impl Tapstone {
    /// `token` on so many hosts' target `null`.
    pub(crate) fn on_hosts(count: usize, url: &str) -> Self {
        let lab = Self::new("token").args(&format!("--hosts {count} --nats {url} --target null"));
        lab.enrolled()
    }
}

impl Agent {
    /// An agent of a secured laboratory.
    pub(crate) fn in_lab(nats: &Nats, name: &str, extra: &str, variables: &[(&str, &str)]) -> Self {
        let made = nats.credentials().unwrap();
        let creds = made.agent(name);
        let options = ["--ca", made.ca.to_str().unwrap(), "--creds", creds.to_str().unwrap()];
        Self::start_with(Home::in_lab(made, name, extra), &nats.url(), variables, &options)
    }
}

impl Tapstone {
    /// `token` as a coordinator of a secured laboratory.
    pub(crate) fn in_lab(nats: &Nats, coordinator: &str, count: usize) -> Self {
        let made = nats.credentials().unwrap();
        let url = nats.url();
        Self::new("token")
            .args(&format!("--hosts {count} --nats {url} --target null --ca"))
            .arg(&made.ca)
            .arg("--creds")
            .arg(made.coordinator(coordinator))
            .arg("--enrolment")
            .arg(made.of_member(coordinator, "coordinator.toml"))
    }
}

/// How many of these ended in a window that is on a clock which is so far behind.
pub(crate) fn within(ends_ns: &[u64], window: Window, ahead_ns: i64) -> u64 {
    let inside = window.start_ns.0..window.end_ns.0;
    let here = |end: &u64| end.saturating_add_signed(-ahead_ns);
    ends_ns.iter().filter(|end| inside.contains(&here(end))).count() as u64
}
