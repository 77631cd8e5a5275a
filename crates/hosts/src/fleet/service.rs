//! The thread behind a fleet: packets to and from all hosts, their leases and their clocks.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::connection::State as Connection;
use async_nats::{StatusCode, Subscriber};
use futures_util::StreamExt;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_token::controller::{HostClock, Lost, Wanted};
use tapstone_token::protocol::{Report, Task};
use tapstone_worker::ReportSender;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;

use super::{
    Adopt, Command, DiscoveryAnswer, Host, HostStates, SERVER_GONE, State, Wish, claims, told_by,
};
use crate::clock::{ClockTrouble, Offset, RoundTrip};
use crate::coordinator::Coordinator;
use crate::discovery::clocks;
use crate::dropped::DroppedCounts;
use crate::envelope::{Direction, Dropped};
use crate::error::HostsError;
use crate::identity::Identity;
use crate::moments;
use crate::peer::{Ends, Peer, settle};
use crate::wire::{Body, FromAgent, LEASE, ToAgent};
use crate::wire::{coordinator_subject, inbox_prefix, presence_subject, printable, printable_line};

/// Round trips to each agent's clock.
pub(crate) type Trips = BTreeMap<Identity, Vec<RoundTrip>>;

/// How often leases and acknowledgements are looked at.
const TICK: Duration = Duration::from_millis(20);

/// How often it is asked whether an agent is connected, which the server answers.
const PRESENCE: Duration = Duration::from_millis(300);

/// Nobody at an agent's subjects for so long is told: twice in a row, so that a connection that comes
/// back at once is no news.
const ABSENT: Duration = Duration::from_millis(250);

/// After so long it is lost. A connection that breaks is back before.
const GONE: Duration = Duration::from_secs(6);

/// A connected agent of which nothing is heard for so long is called silent.
const SILENT: Duration = Duration::from_secs(3);

/// How long agents may take to clean up at the end: their workers have five seconds.
const FAREWELL: Duration = Duration::from_secs(8);

/// See the module's text.
pub(super) struct Service {
    coordinator: Coordinator,
    packets: Subscriber,
    /// What the server says of agents that are not connected.
    absences: Subscriber,
    absence_inbox: String,
    asked_for_presence: Instant,
    /// When our own connection broke, and whether that was told.
    disconnected: Option<(Instant, bool)>,
    dropped: DroppedCounts,
    say: fn(&str),
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
    /// When that was measured.
    measured: Nanos,
    /// While the server says that it is not connected.
    absence: Option<Absence>,
    /// The user was told that it is silent.
    told_silent: bool,
    lost: bool,
    /// It has said that it is done.
    gone: bool,
}

/// Nobody listens at an agent's subjects.
#[derive(Clone, Copy)]
struct Absence {
    since: Instant,
    /// When the server said so last.
    last: Instant,
    told: bool,
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
        let coordinator =
            Coordinator::connect(&wish.server, "tapstone token", &wish.enrolment).await?;
        let hosts = claims::claim(&coordinator, wish).await?;
        let client = &coordinator.client;
        let heard = coordinator_subject(coordinator.key.identity(), coordinator.run, "*");
        let subscribed = client.subscribe(heard).await;
        let packets = subscribed.map_err(|error| HostsError::Subscribe(error.to_string()))?;
        let absence_inbox =
            format!("{}.{:016x}", inbox_prefix(coordinator.key.identity()), coordinator.run);
        let subscribed = client.subscribe(format!("{absence_inbox}.*")).await;
        let absences = subscribed.map_err(|error| HostsError::Subscribe(error.to_string()))?;
        // The agents' first packets must find somebody who listens.
        settle(client).await;
        let clock = HostClock { offset_ns: 0, bound: Nanos::NEVER, round_trip: Nanos::ZERO };
        let member = |host: Host| {
            let ends = Ends {
                me: Arc::clone(&coordinator.key),
                other: host.calling.agent,
                run: coordinator.run,
                direction: Direction::ToAgent,
            };
            let peer = Peer::new(client, ends);
            let workers = BTreeMap::new();
            Member {
                host,
                peer,
                workers,
                clock,
                measured: Nanos::ZERO,
                absence: None,
                told_silent: false,
                lost: false,
                gone: false,
            }
        };
        let members: Vec<Member> = hosts.into_iter().map(member).collect();
        *shared.lock() = vec![State::default(); members.len()];
        let dropped = DroppedCounts::default();
        Ok(Self {
            coordinator,
            packets,
            absences,
            absence_inbox,
            asked_for_presence: Instant::now(),
            disconnected: None,
            dropped,
            say: wish.say,
            members,
            shared,
            commands,
        })
    }

    pub(super) const fn run_number(&self) -> u64 {
        self.coordinator.run
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
                Some(message) = self.packets.next() => {
                    self.hear(&message.payload, &message.subject).await;
                }
                Some(message) = self.absences.next() => {
                    if message.status == Some(StatusCode::NO_RESPONDERS) {
                        self.note_absence(&message.subject);
                    }
                }
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
                    member.peer.flush(&self.coordinator.client).await;
                }
            }
            Command::Clocks { adopt, answer } => {
                let living = self.members.iter().filter(|member| !member.lost);
                let agents = living.map(|member| member.host.calling.agent).collect();
                let coordinator = self.coordinator.clone();
                let commands = self.commands.clone();
                let begun = Monotonic.now();
                tokio::spawn(async move {
                    let trips = clocks(&coordinator, agents).await;
                    let _ = commands.send(Command::Measured { trips, begun, adopt, answer });
                });
            }
            Command::Measured { trips, begun, adopt, answer } => {
                let clocks = self.measured(&trips, begun, adopt).await;
                let _ = answer.send(clocks);
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
        member.peer.flush(&self.coordinator.client).await;
    }

    async fn give(&mut self, host: usize, number: usize, task: Task) {
        let member = &mut self.members[host];
        if !member.lost {
            let task = moments::to_agent(task, member.clock.offset_ns);
            member.peer.push(&ToAgent::Task { worker: number as u32, task });
            member.peer.flush(&self.coordinator.client).await;
        }
    }

    /// Clocks by host, from round trips that were just made. Whose answers cannot be is lost.
    async fn measured(&mut self, trips: &Trips, begun: Nanos, adopt: Adopt) -> Vec<HostClock> {
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            if member.lost {
                continue;
            }
            let of_it = trips.get(&member.host.calling.agent).map_or(&[][..], Vec::as_slice);
            match member.take_clock(of_it, begun, adopt) {
                Ok(clock) => self.shared.lock()[place].clock = Some(clock),
                Err(trouble) => self.lose(place, format!("it {trouble}")).await,
            }
        }
        self.members.iter().map(|member| member.clock).collect()
    }

    async fn hear(&mut self, bytes: &[u8], subject: &str) {
        match self.open(bytes, subject) {
            Ok((place, ack, body)) => self.take(place, ack, body).await,
            Err(why) => self.dropped.note(why),
        }
    }

    /// Whose packet it is. The subject says who speaks, which costs less to find out than whether it
    /// is true.
    fn open(&mut self, bytes: &[u8], subject: &str) -> Result<(usize, u64, Body), Dropped> {
        let sender = subject.rsplit('.').next().unwrap_or_default();
        let sender = Identity::from_digits(sender).map_err(|_| Dropped::Foreign)?;
        let is_it = |member: &Member| member.host.calling.agent == sender;
        let place = self.members.iter().position(is_it).ok_or(Dropped::Foreign)?;
        let packet = self.members[place].peer.open(bytes)?;
        Ok((place, packet.ack, packet.body))
    }

    async fn take(&mut self, place: usize, ack: u64, body: Body) {
        let member = &mut self.members[place];
        // Late words of the lost mean nothing: what they did is not in the figures.
        if member.lost {
            return;
        }
        if let Body::Bye(why) = &body {
            member.gone = true;
            return self.lose(place, format!("it says: {}", printable_line(why))).await;
        }
        let message = member.peer.take(ack, body);
        if let Some(message) = message {
            match postcard::from_bytes(&message) {
                Ok(message) => member.take(message),
                Err(_) => self.lose(place, "it could not be understood".into()).await,
            }
        }
    }

    /// The server says that nobody listens at an agent's subjects.
    fn note_absence(&mut self, subject: &str) {
        let agent = subject.rsplit('.').next().and_then(|token| Identity::from_digits(token).ok());
        let is_it = |member: &&mut Member| Some(member.host.calling.agent) == agent;
        let Some(member) = self.members.iter_mut().find(is_it) else { return };
        let now = Instant::now();
        let absence = member.absence.get_or_insert(Absence { since: now, last: now, told: false });
        absence.last = now;
        if !member.lost && !absence.told && absence.since.elapsed() >= ABSENT {
            absence.told = true;
            let name = &member.host.calling.name;
            let seconds = GONE.as_secs();
            (self.say)(&format!(
                "warning: {name} is not connected to the server any more: it was killed, or its \
                 connection broke; it is given up if it is not back within {seconds} s"
            ));
        }
    }

    async fn ask_for_presence(&mut self) {
        if self.asked_for_presence.elapsed() < PRESENCE {
            return;
        }
        self.asked_for_presence = Instant::now();
        for member in self.members.iter_mut().filter(|member| !member.lost) {
            // Two answers that did not come: somebody listens again.
            member.absence = member.absence.filter(|absence| absence.last.elapsed() < 2 * PRESENCE);
            let agent = member.host.calling.agent;
            let inbox = format!("{}.{agent}", self.absence_inbox);
            let client = &self.coordinator.client;
            let _ = client.publish_with_reply(presence_subject(agent), inbox, "".into()).await;
        }
    }

    async fn look_after(&mut self) {
        let is_connected = self.coordinator.client.connection_state() == Connection::Connected;
        self.look_at_the_server(is_connected);
        if is_connected {
            self.ask_for_presence().await;
        }
        let mut lost = Vec::new();
        for (place, member) in self.members.iter_mut().enumerate().filter(|(_, m)| !m.lost) {
            member.peer.flush(&self.coordinator.client).await;
            if let Some(why) = member.reason_to_give_up(self.disconnected.is_some()) {
                lost.push((place, why));
            } else if is_connected && member.is_newly_silent() {
                let name = &member.host.calling.name;
                let seconds = SILENT.as_secs();
                (self.say)(&format!(
                    "warning: {name} is silent: nothing was heard of it for {seconds} s"
                ));
            }
        }
        for (place, why) in lost {
            self.lose(place, why).await;
        }
    }

    /// That the server is away is told once, and not of each host.
    fn look_at_the_server(&mut self, is_connected: bool) {
        match (&mut self.disconnected, is_connected) {
            (None, false) => self.disconnected = Some((Instant::now(), false)),
            (Some((since, told)), false) if !*told && since.elapsed() >= SILENT => {
                *told = true;
                (self.say)("warning: the server is gone: no host can be heard until it is back");
            }
            (Some((_, told)), true) => {
                if *told {
                    (self.say)("the server is back");
                }
                // Hosts need a moment to come back, too; until they are heard it is still why.
                let all_heard =
                    self.members.iter().all(|member| member.lost || member.peer.silence() < SILENT);
                if all_heard {
                    self.disconnected = None;
                } else {
                    *told = false;
                }
            }
            _ => {}
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
        member.peer.bye(&self.coordinator.client, "the host was given up").await;
    }

    /// Tells the hosts that the run is over, and waits until they have cleaned up.
    async fn end(mut self) {
        let begun = Instant::now();
        let mut tick = tokio::time::interval(Duration::from_millis(200));
        while begun.elapsed() < FAREWELL && self.members.iter().any(|m| !m.lost && !m.gone) {
            tokio::select! {
                Some(message) = self.packets.next() => {
                    match self.open(&message.payload, &message.subject) {
                        Ok((place, _, Body::Bye(_))) => self.members[place].gone = true,
                        Ok(_) => {}
                        Err(why) => self.dropped.note(why),
                    }
                }
                _ = tick.tick() => {
                    for member in self.members.iter_mut().filter(|m| !m.lost && !m.gone) {
                        member.peer.bye(&self.coordinator.client, "the run is over").await;
                    }
                }
            }
        }
        self.note_the_silent();
        if self.dropped.total() > 0 {
            (self.say)(&format!("warning: {}", self.dropped));
        }
        settle(&self.coordinator.client).await;
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
    /// Why it is lost, if it is. `without_server`: nobody can be heard, whose fault that is.
    fn reason_to_give_up(&self, without_server: bool) -> Option<String> {
        if self.absence.is_some_and(|absence| absence.since.elapsed() >= GONE) {
            let seconds = GONE.as_secs();
            return Some(format!("it was not connected to the server for {seconds} s"));
        }
        self.peer.is_silent().then(|| match without_server {
            true => SERVER_GONE.to_owned(),
            false => format!("nothing was heard of it for {} s", LEASE.as_secs()),
        })
    }

    /// It has just become silent; told once until it is heard again.
    fn is_newly_silent(&mut self) -> bool {
        let silent = self.peer.silence() >= SILENT && self.absence.is_none();
        let newly = silent && !self.told_silent;
        self.told_silent = silent;
        newly
    }

    /// Takes what was measured of its clock.
    fn take_clock(
        &mut self,
        trips: &[RoundTrip],
        begun: Nanos,
        adopt: Adopt,
    ) -> Result<HostClock, ClockTrouble> {
        let before = self.clock;
        let offset = match Offset::from_round_trips(trips) {
            // A connection that is away for a moment costs nothing while the clock is known.
            Err(ClockTrouble::Silent) if adopt == Adopt::Look => return Ok(before),
            offset => offset?,
        };
        if before.bound != Nanos::NEVER {
            offset.agrees_with(before, Monotonic.now() - self.measured)?;
        }
        self.clock = match adopt {
            Adopt::Use => offset.clock(),
            // The bound has to hold over the whole case: the worse of before and after.
            Adopt::Look => {
                let after = offset.held_against(before.offset_ns);
                HostClock { bound: before.bound.max(after.bound), ..before }
            }
        };
        if adopt == Adopt::Use {
            self.measured = begun;
        }
        self.peer.round_trip = self.clock.round_trip;
        Ok(self.clock)
    }

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
                    worker.lose(number, told_by(&self.host.calling.name, lost));
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
