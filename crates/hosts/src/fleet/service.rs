//! The thread behind a fleet: packets to and from all hosts, their leases and their clocks.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use tapstone_measure::units::Nanos;
use tapstone_token::controller::{HostClock, Lost, Wanted};
use tapstone_token::protocol::{Report, Task};
use tapstone_worker::ReportSender;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;

use super::{Adopt, Command, DiscoveryAnswer, Host, HostStates, State, Wish, claims};
use crate::clock::{Offset, RoundTrip};
use crate::discovery::clocks;
use crate::error::HostsError;
use crate::moments;
use crate::peer::{Peer, settle};
use crate::wire::{AgentId, Body, FromAgent, LEASE, Packet, ToAgent, printable};
use crate::wire::{coordinator_subject, run_subject};

/// Round trips to each agent's clock.
pub(crate) type Trips = Vec<(AgentId, Vec<RoundTrip>)>;

/// How often leases and acknowledgements are looked at.
const TICK: Duration = Duration::from_millis(20);

/// How long agents may take to clean up at the end: their workers have five seconds.
const FAREWELL: Duration = Duration::from_secs(8);

/// See the module's text.
pub(super) struct Service {
    client: Client,
    packets: Subscriber,
    run: u64,
    members: Vec<Member>,
    shared: Arc<HostStates>,
    commands: UnboundedSender<Command>,
}

/// A claimed host, its workers and its clock.
struct Member {
    host: Host,
    peer: Peer,
    workers: BTreeMap<usize, RequestedWorker>,
    /// What moments are translated by.
    clock: HostClock,
    lost: bool,
    /// It has said that it is done.
    gone: bool,
}

/// A worker that was asked for.
struct RequestedWorker {
    reports: ReportSender<Report>,
    /// Until it has joined.
    answer: Option<Sender<(usize, DiscoveryAnswer)>>,
    lost: Arc<Mutex<Option<Lost>>>,
}

impl Service {
    /// Connects, finds hosts and claims them.
    pub(super) async fn gather(
        wish: &Wish,
        commands: UnboundedSender<Command>,
        shared: Arc<HostStates>,
    ) -> Result<Self, HostsError> {
        let client = wish.server.connect("tapstone token").await?;
        let (run, hosts) = claims::claim(&client, wish).await?;
        let subscribed = client.subscribe(coordinator_subject(run)).await;
        let packets = subscribed.map_err(|error| HostsError::Subscribe(error.to_string()))?;
        // The agents' first packets must find somebody who listens.
        settle(&client).await;
        let clock = HostClock { offset_ns: 0, bound: Nanos::NEVER, round_trip: Nanos::ZERO };
        let member = |host: Host| {
            let agent = host.calling.agent;
            let peer = Peer::new(&client, run, agent, run_subject(agent));
            let workers = BTreeMap::new();
            Member { host, peer, workers, clock, lost: false, gone: false }
        };
        let members: Vec<Member> = hosts.into_iter().map(member).collect();
        *shared.lock() = vec![State::default(); members.len()];
        Ok(Self { client, packets, run, members, shared, commands })
    }

    pub(super) fn run_number(&self) -> u64 {
        self.run
    }

    pub(super) fn hosts(&self) -> Vec<Host> {
        self.members.iter().map(|member| member.host.clone()).collect()
    }

    /// Serves the controller until the run ends.
    pub(super) async fn serve(mut self, mut orders: UnboundedReceiver<Command>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(message) = self.packets.next() => self.hear(&message.payload).await,
                order = orders.recv() => match order {
                    None | Some(Command::End) => break,
                    Some(order) => self.obey(order).await,
                },
                _ = tick.tick() => self.look_after().await,
            }
        }
        self.end().await;
    }

    async fn obey(&mut self, order: Command) {
        match order {
            Command::Join { wanted, reports, answer } => self.join(wanted, reports, answer).await,
            Command::Task { host, number, task } => self.give(host, number, task).await,
            Command::Kill { host, number } => {
                let member = &mut self.members[host];
                if member.workers.remove(&number).is_some() && !member.lost {
                    member.peer.push(&ToAgent::Kill { worker: number as u32 });
                    member.peer.flush(&self.client).await;
                }
            }
            Command::Clocks { adopt, answer } => {
                let living = self.members.iter().filter(|member| !member.lost);
                let agents = living.map(|member| member.host.calling.agent).collect();
                let client = self.client.clone();
                let commands = self.commands.clone();
                tokio::spawn(async move {
                    let trips = clocks(&client, agents).await;
                    let _ = commands.send(Command::Measured { trips, adopt, answer });
                });
            }
            Command::Measured { trips, adopt, answer } => {
                let _ = answer.send(self.measured(&trips, adopt));
            }
            Command::End => {}
        }
    }

    async fn join(
        &mut self,
        wanted: Wanted,
        reports: ReportSender<Report>,
        answer: Sender<(usize, DiscoveryAnswer)>,
    ) {
        let member = &mut self.members[wanted.host];
        if member.lost {
            let _ = answer.send((wanted.number, Err("is lost\nhint: look at its agent".into())));
            return;
        }
        let worker = RequestedWorker { reports, answer: Some(answer), lost: Arc::default() };
        member.workers.insert(wanted.number, worker);
        member.peer.push(&ToAgent::Join { worker: wanted.number as u32 });
        member.peer.flush(&self.client).await;
    }

    async fn give(&mut self, host: usize, number: usize, task: Task) {
        let member = &mut self.members[host];
        if !member.lost {
            let task = moments::to_agent(task, member.clock.offset_ns);
            member.peer.push(&ToAgent::Task { worker: number as u32, task });
            member.peer.flush(&self.client).await;
        }
    }

    /// Clocks by host, from round trips that were just made.
    fn measured(&mut self, trips: &Trips, adopt: Adopt) -> Vec<HostClock> {
        let mut states = self.shared.lock();
        for (place, member) in self.members.iter_mut().enumerate() {
            let of_it = trips.iter().find(|(agent, _)| *agent == member.host.calling.agent);
            let Some(offset) = of_it.and_then(|(_, trips)| Offset::from_round_trips(trips)) else {
                continue;
            };
            let before = member.clock;
            member.clock = match adopt {
                Adopt::Use => offset.clock(),
                // The bound has to hold over the whole case: the worse of before and after.
                Adopt::Look => {
                    let after = offset.held_against(before.offset_ns);
                    HostClock { bound: before.bound.max(after.bound), ..before }
                }
            };
            member.peer.round_trip = member.clock.round_trip;
            states[place].clock = Some(member.clock);
        }
        self.members.iter().map(|member| member.clock).collect()
    }

    async fn hear(&mut self, bytes: &[u8]) {
        let Ok(packet) = postcard::from_bytes::<Packet>(bytes) else { return };
        let is_it = |member: &Member| member.host.calling.agent == packet.agent;
        let Some(place) = self.members.iter().position(is_it) else { return };
        // Late words of the lost mean nothing: what they did is not in the figures.
        if packet.run != self.run || self.members[place].lost {
            return;
        }
        if let Body::Bye(why) = &packet.body {
            self.members[place].gone = true;
            return self.lose(place, printable(why)).await;
        }
        let member = &mut self.members[place];
        let message = member.peer.take(packet.ack, packet.body);
        if let Some(message) = message {
            match postcard::from_bytes(&message) {
                Ok(message) => member.take(message),
                Err(_) => self.lose(place, "it could not be understood".into()).await,
            }
        }
    }

    async fn look_after(&mut self) {
        let mut silent = Vec::new();
        for (place, member) in self.members.iter_mut().enumerate().filter(|(_, m)| !m.lost) {
            member.peer.flush(&self.client).await;
            if member.peer.is_silent() {
                silent.push(place);
            }
        }
        for place in silent {
            self.lose(place, format!("nothing was heard of it for {} s", LEASE.as_secs())).await;
        }
    }

    /// A host is gone: its workers are, too.
    async fn lose(&mut self, place: usize, why: String) {
        let member = &mut self.members[place];
        let lost = member.host.lost(&why);
        member.lost = true;
        self.shared.lock()[place].lost = Some(why);
        for (number, worker) in std::mem::take(&mut member.workers) {
            worker.lose(number, lost.clone());
        }
        // Should it hear again: its plan is no longer wanted.
        member.peer.bye(&self.client, "the host was given up").await;
    }

    /// Tells the hosts that the run is over, and waits until they have cleaned up.
    async fn end(mut self) {
        let begun = Instant::now();
        let mut tick = tokio::time::interval(Duration::from_millis(200));
        while begun.elapsed() < FAREWELL && self.members.iter().any(|m| !m.lost && !m.gone) {
            tokio::select! {
                Some(message) = self.packets.next() => {
                    let Ok(packet) = postcard::from_bytes::<Packet>(&message.payload) else { continue };
                    let known = |member: &&mut Member| member.host.calling.agent == packet.agent;
                    let member = self.members.iter_mut().find(known);
                    if let (Some(member), Body::Bye(_)) = (member, packet.body) {
                        member.gone = true;
                    }
                }
                _ = tick.tick() => {
                    for member in self.members.iter_mut().filter(|m| !m.lost && !m.gone) {
                        member.peer.bye(&self.client, "the run is over").await;
                    }
                }
            }
        }
        self.note_the_silent();
        settle(&self.client).await;
    }

    /// Whoever has not taken leave may have left something behind.
    fn note_the_silent(&self) {
        let silent = |(_, member): &(&mut State, &Member)| !member.lost && !member.gone;
        let mut states = self.shared.lock();
        for (state, _) in states.iter_mut().zip(&self.members).filter(silent) {
            let seconds = FAREWELL.as_secs();
            state.lost = Some(format!("it did not say within {seconds} s that it has cleaned up"));
        }
    }
}

impl Member {
    fn take(&mut self, message: FromAgent) {
        match message {
            FromAgent::Joined { worker, joined } => {
                let number = worker as usize;
                let Some(worker) = self.workers.get_mut(&number) else { return };
                let lost = Arc::clone(&worker.lost);
                let Some(answer) = worker.answer.take() else { return };
                let joined = joined
                    .map(|entered| (entered, lost))
                    .map_err(|refusal| printable(&refusal.text));
                if joined.is_err() {
                    self.workers.remove(&number);
                }
                let _ = answer.send((number, joined));
            }
            FromAgent::Report { worker, report } => {
                let number = worker as usize;
                if let Some(worker) = self.workers.get(&number) {
                    let report = moments::from_agent(*report, self.clock.offset_ns);
                    worker.reports.report(number, report);
                }
            }
            FromAgent::Lost { worker, lost } => {
                let number = worker as usize;
                if let Some(worker) = self.workers.remove(&number) {
                    worker.lose(number, lost);
                }
            }
        }
    }
}

impl RequestedWorker {
    fn lose(mut self, number: usize, lost: Lost) {
        if let Some(answer) = self.answer.take() {
            let hint = "look at its agent; it removes the run's keys once it has noticed";
            let _ = answer.send((number, Err(format!("{lost}\nhint: {hint}"))));
        }
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(lost);
        self.reports.end(number);
    }
}
