//! The coordinator's side: hosts that have agreed to take part in a run, as the controller's [`Hosts`].
//!
//! The controller is synchronous; all that waits for the network is in one thread of its own
//! ([`service`]), which a fleet talks to through channels.

mod claims;
mod service;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_token::controller::{
    HostClock, Hosts, Joined, Joining, Lost, TokenMeasureError, Wanted,
};
use tapstone_token::protocol::{Report, Task, TokenProtocol};
use tapstone_worker::{RemoteWorker, ReportSender};
use tokio::sync::mpsc::UnboundedSender;

use self::service::Service;
use crate::connection::Server;
use crate::enrolment::Enrolment;
use crate::error::HostsError;
use crate::runtime::runtime;
use crate::wire::{Calling, Entered, Facts, TargetFacts, printable_line};

/// What is wanted of the network.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The NATS server and how to log in there.
    pub server: Server,
    /// Who we are, and whom we know.
    pub enrolment: Enrolment,
    /// How many hosts to claim; with fewer the run does not start.
    pub count: usize,
    /// What all of them have to offer.
    pub target: String,
    /// How long a call of the module may take.
    pub timeout: Duration,
    /// The user has asked to end.
    pub interrupt: Arc<AtomicBool>,
    /// Tells the user what happens to hosts.
    pub say: fn(&str),
}

/// A host of a run.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) calling: Calling,
    pub(crate) facts: Facts,
    pub(crate) target: TargetFacts,
}

/// Why a host is lost that nobody can reach.
pub(crate) const SERVER_GONE: &str = "the server was gone for 10 s, and with it all hosts";

impl Host {
    /// Why its workers are gone.
    fn lost(&self, why: &str) -> Lost {
        // One sentence about the server, however many hosts.
        if why == SERVER_GONE {
            return Lost::Unreachable(why.to_owned());
        }
        Lost::Unreachable(format!("{} was lost: {why}", self.calling.name))
    }
}

/// How long hosts may take to start workers that load a module and enter a token: some calls, each
/// of which may take so long, for each of them.
fn joining_time(call: Duration, workers: usize) -> Duration {
    const CALLS: u32 = 10;
    Duration::from_secs(60) + (call * CALLS).saturating_mul(workers.max(1) as u32)
}

/// A worker that an agent says is gone: in its own name, and as one line that acts on no terminal.
/// An agent can say anything, but not in the name of another, or of the server.
fn told_by(name: &str, lost: Lost) -> Lost {
    match lost {
        Lost::Unreachable(text) => Lost::Unreachable(format!("{name}: {}", printable_line(&text))),
        Lost::Garbled(text) => Lost::Garbled(printable_line(&text)),
        Lost::Crashed { how, call } => Lost::Crashed { how: printable_line(&how), call },
        Lost::BeyondBuffer { how, call } => Lost::BeyondBuffer { how: printable_line(&how), call },
        lost @ Lost::Hung { .. } => lost,
    }
}

/// See the module's text.
pub struct Fleet {
    hosts: Vec<Host>,
    target: String,
    run: u64,
    interrupt: Arc<AtomicBool>,
    /// How long a call of the module may take.
    timeout: Duration,
    commands: UnboundedSender<Command>,
    shared: Arc<HostStates>,
    thread: Option<JoinHandle<()>>,
}

/// What the controller may read while the service runs.
#[derive(Debug, Default)]
pub(crate) struct HostStates(Mutex<Vec<State>>);

/// How a host stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Its clock, as it is used.
    pub(crate) clock: Option<HostClock>,
    /// Why it is lost.
    pub(crate) lost: Option<String>,
}

impl HostStates {
    fn lock(&self) -> MutexGuard<'_, Vec<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the fleet asks of its network thread.
pub(crate) enum Command {
    Join {
        wanted: Wanted,
        reports: ReportSender<Report>,
        answer: Sender<(usize, DiscoveryAnswer)>,
    },
    Task {
        host: usize,
        number: usize,
        task: Task,
    },
    Kill {
        host: usize,
        number: usize,
    },
    /// Measures all clocks; `adopt` uses what comes out.
    Clocks {
        adopt: Adopt,
        answer: Sender<Vec<HostClock>>,
    },
    Measured {
        trips: service::Trips,
        begun: Nanos,
        adopt: Adopt,
        answer: Sender<Vec<HostClock>>,
    },
    End,
}

/// Whether an offset is used from now on, or only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adopt {
    Use,
    Look,
}

/// What became of a worker that was asked for.
pub(crate) type DiscoveryAnswer = Result<(Box<Entered>, Arc<Mutex<Option<Lost>>>), String>;

impl Fleet {
    /// Finds hosts and claims as many as are wanted, all of them or none.
    ///
    /// # Errors
    /// The server cannot be reached, or too few hosts are there and free.
    pub fn gather(wish: Wish) -> Result<Self, HostsError> {
        let (commands, orders) = tokio::sync::mpsc::unbounded_channel();
        let (ready, gathered) = mpsc::channel();
        let shared = Arc::new(HostStates::default());
        let target = wish.target.clone();
        let interrupt = Arc::clone(&wish.interrupt);
        let timeout = wish.timeout;
        let service = (commands.clone(), Arc::clone(&shared));
        let thread = thread::Builder::new().name("hosts".into()).spawn(move || {
            let runtime = match runtime() {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(error))),
            };
            runtime.block_on(async {
                match Service::gather(&wish, service.0, service.1).await {
                    Ok(service) => {
                        let _ = ready.send(Ok((service.run_number(), service.hosts())));
                        service.serve(orders).await;
                    }
                    Err(error) => drop(ready.send(Err(error))),
                }
            });
        });
        let thread = thread.map_err(HostsError::Start)?;
        let gone = || Err(HostsError::Start(io::Error::other("its thread ended")));
        let (run, hosts) = gathered.recv().unwrap_or_else(|_| gone())?;
        Ok(Self { hosts, target, run, interrupt, timeout, commands, shared, thread: Some(thread) })
    }

    /// The hosts for a record, which follows them while they work.
    #[must_use]
    pub fn watch(&self) -> HostsWatch {
        let target = self.target.clone();
        let hosts = self.hosts.clone();
        HostsWatch { target, hosts, shared: Arc::clone(&self.shared) }
    }

    /// Asks for workers and waits for all of them, or for the user to end.
    fn join_at_once(&mut self, wanted: &[Wanted], reports: &ReportSender<Report>) -> Vec<Joining> {
        let (answer, answers) = mpsc::channel();
        for wanted in wanted {
            let reports = reports.clone();
            let answer = answer.clone();
            let _ = self.commands.send(Command::Join { wanted: *wanted, reports, answer });
        }
        drop(answer);
        let mut joined: Vec<Option<DiscoveryAnswer>> = wanted.iter().map(|_| None).collect();
        // A host starts its workers one after the other.
        let limit = joining_time(self.timeout, wanted.len());
        let deadline = Instant::now() + limit;
        while let Some((number, answer)) = self.wait(&answers, deadline) {
            if let Some(place) = wanted.iter().position(|wanted| wanted.number == number) {
                joined[place] = Some(answer);
            }
        }
        if Instant::now() >= deadline {
            let text = format!("did not start its worker within {} s", limit.as_secs());
            for answer in &mut joined {
                answer.get_or_insert_with(|| Err(text.clone()));
            }
        }
        let pairs = wanted.iter().zip(joined);
        pairs.map(|(wanted, answer)| self.joining(*wanted, answer)).collect()
    }

    /// The next answer; `None` when all are in, the time is over, or the user wants no more.
    fn wait<T>(&self, answers: &Receiver<T>, deadline: Instant) -> Option<T> {
        loop {
            match answers.recv_timeout(Duration::from_millis(50)) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.interrupt.load(Relaxed) => return None,
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn joining(&self, wanted: Wanted, answer: Option<DiscoveryAnswer>) -> Joining {
        let host = &self.hosts[wanted.host];
        match answer {
            None => Err(TokenMeasureError::Interrupted),
            Some(Err(text)) => {
                Err(TokenMeasureError::Host { host: host.calling.name.clone(), text })
            }
            Some(Ok((entered, lost))) => Ok(Joined {
                worker: Box::new(AgentWorker {
                    host: wanted.host,
                    name: host.calling.name.clone(),
                    number: wanted.number,
                    commands: self.commands.clone(),
                    lost,
                }),
                module: PathBuf::from(&host.target.module),
                library: entered.library,
                target: entered.target,
            }),
        }
    }

    fn measure_clocks(&mut self, adopt: Adopt) -> Vec<HostClock> {
        let (answer, answers) = mpsc::channel();
        let _ = self.commands.send(Command::Clocks { adopt, answer });
        answers.recv().unwrap_or_default()
    }
}

impl Hosts for Fleet {
    fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.calling.name.clone()).collect()
    }

    fn target(&self) -> String {
        self.target.clone()
    }

    fn run(&self) -> u64 {
        self.run
    }

    /// Where PINs are given, hosts come one after the other: a wrong one is tried once in all.
    fn join(&mut self, wanted: &[Wanted], reports: &ReportSender<Report>) -> Vec<Joining> {
        let logs_in = wanted.iter().any(|wanted| self.hosts[wanted.host].target.logs_in);
        if !logs_in {
            return self.join_at_once(wanted, reports);
        }
        let mut all: Vec<Joining> = Vec::new();
        for wanted in wanted {
            match all.last() {
                Some(Err(_)) => all.push(Err(TokenMeasureError::Interrupted)),
                _ => all.extend(self.join_at_once(std::slice::from_ref(wanted), reports)),
            }
        }
        all
    }

    fn set_clocks(&mut self) {
        self.measure_clocks(Adopt::Use);
    }

    fn clocks(&mut self) -> Vec<HostClock> {
        self.measure_clocks(Adopt::Look)
    }

    /// A word and its repetition, after the worst round trip.
    fn notice(&self) -> Nanos {
        let states = self.shared.lock();
        let trips = states.iter().filter_map(|state| Some(state.clock?.round_trip.0));
        Nanos(4 * trips.max().unwrap_or(0))
    }

    fn cores(&self) -> Vec<u32> {
        self.hosts.iter().map(|host| host.facts.environment.cores.unwrap_or(1)).collect()
    }

    fn lost(&self, host: usize) -> Option<String> {
        self.shared.lock().get(host)?.lost.clone()
    }
}

/// The agents are told that the run is over, and waited for: they clean up.
impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A worker on another machine.
struct AgentWorker {
    host: usize,
    /// What that host is called.
    name: String,
    number: usize,
    commands: UnboundedSender<Command>,
    lost: Arc<Mutex<Option<Lost>>>,
}

impl RemoteWorker<TokenProtocol> for AgentWorker {
    fn send_task(&mut self, task: Task) {
        let _ = self.commands.send(Command::Task { host: self.host, number: self.number, task });
    }

    fn machine(&self) -> &str {
        &self.name
    }

    fn post_mortem(&mut self) -> Lost {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).take();
        lost.unwrap_or_else(|| Lost::Garbled("the worker process is gone".into()))
    }

    fn kill(&mut self) {
        let _ = self.commands.send(Command::Kill { host: self.host, number: self.number });
    }
}

/// The hosts of a run for its record, also after the controller has ended.
#[derive(Clone, Debug)]
pub struct HostsWatch {
    target: String,
    hosts: Vec<Host>,
    shared: Arc<HostStates>,
}

impl HostsWatch {
    /// What the target is called in the agents' configurations.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Hosts that are lost.
    #[must_use]
    pub fn lost(&self) -> Vec<Lost> {
        let states = self.shared.lock();
        let lost = |(host, state): (&Host, &State)| Some(host.lost(state.lost.as_deref()?));
        let mut all: Vec<Lost> = Vec::new();
        for lost in self.hosts.iter().zip(states.iter()).filter_map(lost) {
            if !all.contains(&lost) {
                all.push(lost);
            }
        }
        all
    }

    /// The module of the first host.
    #[must_use]
    pub fn module(&self) -> Option<record::Module> {
        let target = &self.hosts.first()?.target;
        Some(record::Module { path: target.module.clone(), sha256: target.sha256.clone() })
    }

    /// The hosts as they stand, without windows.
    #[must_use]
    pub fn hosts(&self) -> Vec<record::Host> {
        let states = self.shared.lock().clone();
        let host = |(host, state): (&Host, State)| record::Host {
            name: host.calling.name.clone(),
            agent: host.calling.agent.to_string(),
            version: host.calling.version.clone(),
            state: match state.lost {
                Some(_) => record::HostState::Lost,
                None => record::HostState::Done,
            },
            reason: state.lost,
            environment: Some(host.facts.environment.clone()),
            clock: state.clock.map(clock_of),
            window: None,
        };
        self.hosts.iter().zip(states).map(host).collect()
    }
}

/// A clock as a record has it.
#[must_use]
pub fn clock_of(clock: HostClock) -> record::HostClock {
    record::HostClock {
        offset_ns: clock.offset_ns,
        bound_ns: clock.bound,
        round_trip_ns: clock.round_trip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_speaks_in_its_own_name_only() {
        let blame = "client-2 was lost: it is broken\n\x1b[2Jerror: client-2";
        for lost in [Lost::Unreachable(blame.into()), Lost::Unreachable(SERVER_GONE.into())] {
            let told = told_by("client-1", lost).to_string();
            assert!(told.starts_with("client-1: "), "{told}");
            assert!(!told.contains(char::is_control), "{told}");
        }
        let how = blame.to_owned();
        for lost in [Lost::Garbled(blame.into()), Lost::Crashed { how, call: None }] {
            let told = told_by("client-1", lost).to_string();
            assert!(!told.contains(char::is_control), "{told}");
        }
    }
}
