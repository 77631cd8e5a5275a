//! One device as a run of the bench sees it: the module's settings and what is beside it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tapstone_record::{Knee, LimitedBy};

use crate::remote::{RemoteEngine, Way};
use crate::support::{Outcome, Tapstone};

/// What could keep the rate low, and is taken away to see whether it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Twice as many threads as the search tried.
    ThreadCap,
    /// Twice as many processes.
    ProcessCap,
    /// The programs beside it.
    Neighbours,
    /// The module's own use of the processor.
    Computing,
    /// The lock of its library.
    Lock,
    /// The engine that the threads of a process share.
    SharedEngine,
    /// The time that requests are on their way.
    Delay,
}

impl Removal {
    /// Verdicts that name it. A library that spins while it waits uses up this machine, too.
    pub(crate) fn causes(self, setup: &Setup) -> Vec<LimitedBy> {
        match self {
            Self::ThreadCap | Self::ProcessCap => vec![LimitedBy::SearchCap],
            Self::Neighbours => vec![LimitedBy::OtherPrograms],
            Self::Computing => vec![LimitedBy::Client],
            Self::Lock if setup.lock == Some("spin") => {
                vec![LimitedBy::ProcessLock, LimitedBy::ProcessLockOrConnection, LimitedBy::Client]
            }
            Self::Lock => vec![LimitedBy::ProcessLock, LimitedBy::ProcessLockOrConnection],
            Self::SharedEngine => {
                vec![LimitedBy::ProcessConnection, LimitedBy::ProcessLockOrConnection]
            }
            Self::Delay => vec![LimitedBy::Network],
        }
    }
}

/// Who shares the engine that takes the service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Each call has one, so that no call waits for another.
    Call,
    /// The threads of a process share one.
    Process,
    /// All processes together, with so many servers.
    Device(u32),
    /// All processes together, behind a network.
    Remote(Way),
}

/// What one run measures. Times are those of the module's settings.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) engine: Engine,
    pub(crate) service: Duration,
    /// The service time is spent on the processor.
    pub(crate) spins: bool,
    /// Each signature is made, by arithmetic.
    pub(crate) computes: bool,
    /// How threads wait for the library's lock, `sleep` or `spin`; `None` without one.
    pub(crate) lock: Option<&'static str>,
    /// The share by which the service time rises and falls, and its period.
    pub(crate) swing: Option<(f64, Duration)>,
    /// What each second operation takes more.
    pub(crate) stall: Option<Duration>,
    /// From the module to its engine, in each direction.
    pub(crate) delay: Duration,
    /// Programs that compute, each before all others on a processor of its own.
    pub(crate) neighbours: usize,
    pub(crate) max_threads: u32,
    pub(crate) max_processes: u32,
    /// The search is interrupted after so long.
    pub(crate) interrupted_after: Option<Duration>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            engine: Engine::Call,
            service: Duration::ZERO,
            spins: false,
            computes: false,
            lock: None,
            swing: None,
            stall: None,
            delay: Duration::ZERO,
            neighbours: 0,
            max_threads: 8,
            max_processes: 2,
            interrupted_after: None,
        }
    }
}

impl Setup {
    /// What can be taken away from it.
    pub(crate) fn removals(&self) -> Vec<Removal> {
        let applies = [
            (Removal::ThreadCap, true),
            (Removal::ProcessCap, true),
            (Removal::Neighbours, self.neighbours > 0),
            (Removal::Computing, self.spins || self.computes),
            (Removal::Lock, self.lock.is_some()),
            (Removal::SharedEngine, self.engine == Engine::Process),
            (Removal::Delay, self.delay > Duration::ZERO),
        ];
        applies.into_iter().filter(|(_, applies)| *applies).map(|(removal, _)| removal).collect()
    }

    /// The same without it; caps are the caller's.
    pub(crate) fn without(&self, removal: Removal) -> Self {
        let same = self.clone();
        match removal {
            Removal::ThreadCap | Removal::ProcessCap => same,
            Removal::Neighbours => Self { neighbours: 0, ..same },
            Removal::Computing => Self { spins: false, computes: false, ..same },
            Removal::Lock => Self { lock: None, ..same },
            Removal::SharedEngine => Self { engine: Engine::Call, ..same },
            Removal::Delay => Self { delay: Duration::ZERO, ..same },
        }
    }

    /// Whether it needs a link that the kernel sees.
    pub(crate) fn needs_link(&self) -> bool {
        matches!(self.engine, Engine::Remote(Way::Link | Way::AcknowledgedLink))
    }

    /// A search for the limit; `None` if it was interrupted before it had measured a level.
    pub(crate) fn search(&self) -> Option<Knee> {
        let arguments = format!(
            "--find-limit --seconds 0.15 --max-threads {} --max-processes {}",
            self.max_threads, self.max_processes
        );
        let outcome = self.measure(&arguments, self.interrupted_after);
        outcome.record().knee
    }

    /// The rate at one level of concurrency, in operations per second.
    pub(crate) fn rate(&self, threads: u32, processes: u32) -> f64 {
        // A multiple of every period that is drawn.
        let arguments = format!("--seconds 0.6 --threads {threads} --processes {processes}");
        let outcome = self.measure(&arguments, None);
        outcome.row().throughput.map_or(0.0, |rate| rate.estimate)
    }

    fn measure(&self, arguments: &str, interrupted_after: Option<Duration>) -> Outcome {
        let home = tempfile::tempdir().unwrap();
        let remote = match self.engine {
            Engine::Remote(way) => Some(RemoteEngine::start(self.service, self.delay, way)),
            _ => None,
        };
        let variables = self.variables(home.path(), remote.as_ref().map(RemoteEngine::address));
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let _beside: Vec<Neighbour> = (0..self.neighbours).map(Neighbour::start).collect();
        let run = Tapstone::on(&variables).args("--op rsa1024.sign --no-verify").args(arguments);
        let run = run.quietly().start();
        if let Some(after) = interrupted_after {
            std::thread::sleep(after);
            run.signal(Signal::INT);
        }
        run.wait()
    }

    fn variables(&self, home: &Path, remote: Option<SocketAddr>) -> Vec<(&'static str, String)> {
        let microseconds = |time: Duration| format!("{}us", time.as_micros());
        let mut all = Vec::new();
        let mut set = |name, value: String| all.push((name, value));
        set("WAIT", if self.spins { "spin" } else { "sleep" }.to_owned());
        if self.computes {
            set("MODEL", "honest".to_owned());
        }
        match self.engine {
            Engine::Call => {}
            Engine::Process => set("ENGINE", "shared".to_owned()),
            Engine::Device(servers) => {
                set("ENGINE_FILE", home.join("engine").to_str().unwrap().to_owned());
                set("SERVERS", servers.to_string());
            }
            Engine::Remote(_) => set("ENGINE_TCP", remote.unwrap().to_string()),
        }
        if !matches!(self.engine, Engine::Remote(_)) && self.service > Duration::ZERO {
            set("SERVICE", microseconds(self.service));
        }
        if let Some(lock) = self.lock {
            set("LOCK", lock.to_owned());
        }
        if let Some((share, period)) = self.swing {
            set("SWING", format!("{share:.2}/{}", microseconds(period)));
        }
        if let Some(stall) = self.stall {
            set("STALL", format!("{}/2", microseconds(stall)));
        }
        all
    }
}

/// A program that computes until this is dropped or this process is gone, before all others on its
/// processor where the system allows that.
pub(crate) struct Neighbour(Child);

impl Neighbour {
    pub(crate) fn start(processor: usize) -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", "-10", "taskset", "-c", &processor.to_string()]);
        command.args(["sh", "-c", "while kill -0 \"$0\"; do :; done"]);
        command.arg(std::process::id().to_string());
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.unwrap())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        // What it used is then known as this process's own.
        self.0.wait().unwrap();
    }
}
