//! Who owns a nanosecond: every nanosecond of a thread has one owner, and they add up to its wall
//! time.
//!
//! It is the innermost call, except that a call that waits belongs to what it waits for: on pcscd's
//! socket to what is below PC/SC, on a terminal or for a card to be put in to the user, on a lock
//! to the lock, for another process to that. Sleeps and spins belong to the call that made them. PKCS#11 is kept apart by
//! module: a proxy and the module behind it are two owners.

mod own_times;

use std::collections::{BTreeMap, HashMap, HashSet};

use tapstone_measure::units::Nanos;

pub use self::own_times::OwnTimes;
use crate::timeline::{
    CalledFunction, Family, FunctionId, Kind, Leaf, On, Place, Span, Thread, Timeline,
};

/// An owner of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The program and its libraries, outside of any call that is watched.
    Program,
    /// A PKCS#11 module, by its file name.
    Pkcs11(String),
    /// The PC/SC client library.
    Pcsc,
    /// What the PC/SC client waits for: the service, the reader and the card.
    BelowPcsc,
    /// Below PC/SC: the service has not taken the command up yet.
    Queue,
    /// Below PC/SC: the service itself.
    Service,
    /// Below PC/SC: the reader's driver, the reader and the card.
    Driver,
    /// Another thread or process that holds a lock.
    Lock,
    /// A process that this one has started.
    Children,
    /// A person: a terminal, or a card that is to be put in.
    User,
}

impl Owner {
    /// As a record has it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Program => "program".to_owned(),
            Self::Pkcs11(module) => format!("pkcs11 {module}"),
            Self::Pcsc => "pcsc".to_owned(),
            Self::BelowPcsc => "below-pcsc".to_owned(),
            Self::Queue => "queue".to_owned(),
            Self::Service => "pcscd".to_owned(),
            Self::Driver => "driver-and-card".to_owned(),
            Self::Lock => "lock".to_owned(),
            Self::Children => "children".to_owned(),
            Self::User => "user".to_owned(),
        }
    }
}

/// The owners of one thread's time.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Their time. All together is the thread's wall time.
    pub time: BTreeMap<Owner, Nanos>,
    /// Of each span of the thread, the time that no call inside it and nothing that it waited for
    /// owns.
    pub own: OwnTimes,
    /// Of each call of libc, the time that no span around it owns: what it waited for, or all of it
    /// outside of any.
    pub own_leaves: OwnTimes,
}

/// Shares out the time of each thread, in the timeline's order.
#[must_use]
pub fn of_threads(timeline: &Timeline) -> Vec<Owners> {
    let drivers = Drivers::of(timeline);
    timeline.threads.iter().map(|thread| of_thread(timeline, &drivers, thread)).collect()
}

fn of_thread(timeline: &Timeline, drivers: &Drivers<'_>, thread: &Thread) -> Owners {
    let below = drivers.below(timeline, thread);
    let mut time: BTreeMap<Owner, Nanos> = BTreeMap::new();
    let mut own: OwnTimes = thread.spans.iter().map(Span::time).collect();
    let mut outside = thread.wall();
    let mut take = |own: &mut OwnTimes, parent: Option<Place>, time: Nanos| {
        let has = parent.map_or(outside, |parent| own.get(parent.index()));
        // Moments are rounded; nobody gives more than it has.
        let taken = time.min(has);
        match parent {
            Some(parent) => own.set(parent.index(), has - taken),
            None => outside = has - taken,
        }
        taken
    };
    for (at, span) in thread.spans.iter().enumerate() {
        let taken = take(&mut own, span.parent, span.time());
        own.set(at, taken);
    }
    // A process that calls a reader driver is the service.
    let is_service = drivers.callers.contains(&thread.process);
    let outside_owner = if is_service { Owner::Service } else { Owner::Program };
    let mut own_leaves = OwnTimes::zero(thread.leaves.len());
    for (at, leaf) in thread.leaves.iter().enumerate() {
        let outside = leaf.parent.is_none().then(|| outside_owner.clone());
        let Some(owner) = waits_for(timeline, thread, leaf).or(outside) else { continue };
        let taken = take(&mut own, leaf.parent, leaf.time);
        own_leaves.set(at, taken);
        match leaf.parent.and_then(|parent| below.get(&parent.get())) {
            Some(below) if owner == Owner::BelowPcsc => {
                for (owner, part) in below.parts(taken) {
                    *time.entry(owner).or_default() += part;
                }
            }
            _ => *time.entry(owner).or_default() += taken,
        }
    }
    let mut of_functions: BTreeMap<FunctionId, Nanos> = BTreeMap::new();
    for (span, own) in thread.spans.iter().zip(own.iter()) {
        *of_functions.entry(span.call).or_default() += own;
    }
    for (function, own) in of_functions {
        *time.entry(owner_of_call(timeline.call(function))).or_default() += own;
    }
    *time.entry(outside_owner).or_default() += outside;
    time.retain(|_, time| *time > Nanos::ZERO);
    Owners { time, own, own_leaves }
}

/// The layer of a call.
#[must_use]
pub fn owner_of(timeline: &Timeline, span: &Span) -> Owner {
    owner_of_call(timeline.call(span.call))
}

/// The layer of a function.
#[must_use]
pub fn owner_of_call(call: &CalledFunction) -> Owner {
    match call.family {
        Family::Pkcs11 => Owner::Pkcs11(call.module.clone()),
        Family::Pcsc => Owner::Pcsc,
        Family::Driver => Owner::Driver,
        Family::Libc(_) => Owner::Program,
    }
}

/// What a libc call waited for, when that is not the one who called it.
fn waits_for(timeline: &Timeline, thread: &Thread, leaf: &Leaf) -> Option<Owner> {
    let Family::Libc(kind) = timeline.call(leaf.call).family else { return None };
    match (kind, leaf.on) {
        (Kind::Lock, _) => Some(Owner::Lock),
        (Kind::Children, _) => Some(Owner::Children),
        // Without a time limit there is no waiting: it asks.
        (Kind::Poll, _) if leaf.b == 0 => None,
        (Kind::Poll | Kind::Read, On::Service) => {
            Some(if waits_for_a_card(timeline, thread, leaf) {
                Owner::User
            } else {
                Owner::BelowPcsc
            })
        }
        (Kind::Poll | Kind::Read, On::Terminal) => Some(Owner::User),
        _ => None,
    }
}

/// SCardGetStatusChange with a time limit waits until somebody does something.
fn waits_for_a_card(timeline: &Timeline, thread: &Thread, leaf: &Leaf) -> bool {
    thread.path(leaf.parent).next().is_some_and(|span| {
        timeline.call(span.call).function == "SCardGetStatusChange" && span.detail != 0
    })
}

/// What lies below PC/SC in one exchange with a card, seen from both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Below {
    /// Until the service has read the command.
    queue: Nanos,
    /// The service, before and after the driver.
    service: Nanos,
    /// The driver, the reader and the card.
    driver: Nanos,
}

/// Calls of reader drivers.
struct Drivers<'a> {
    /// Processes that make any.
    callers: HashSet<u32>,
    /// The exchanges with cards and who made them, by their start.
    transmits: Vec<(&'a Thread, &'a Span)>,
}

impl<'a> Drivers<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        let mut all = Self { callers: HashSet::new(), transmits: Vec::new() };
        for thread in &timeline.threads {
            let is_driver = |span: &&Span| timeline.call(span.call).family == Family::Driver;
            for span in thread.spans.iter().filter(is_driver) {
                all.callers.insert(thread.process);
                all.transmits.extend(span.exchange().is_some().then_some((thread, span)));
            }
        }
        all.transmits.sort_by_key(|(_, span)| span.start);
        all
    }

    /// Splits what the exchanges of a client waited for by what the daemon, traced at the same
    /// time, did meanwhile: IFDHTransmitToICC with the same command, inside the client's
    /// SCardTransmit.
    ///
    /// Has nothing of exchanges of which the daemon's side was not seen.
    fn below(&self, timeline: &Timeline, client: &Thread) -> HashMap<u32, Below> {
        let mut found = HashMap::new();
        for (at, span) in client.spans.iter().enumerate() {
            let is_client = timeline.call(span.call).family == Family::Pcsc;
            let Some(exchange) = span.exchange().filter(|_| is_client) else { continue };
            let first = self.transmits.partition_point(|(_, driver)| driver.start < span.start);
            let inside = self.transmits[first..].iter();
            let same = inside.take_while(|(_, driver)| driver.start < span.end).filter(
                |(thread, driver)| {
                    thread.process != client.process
                        && driver.end <= span.end
                        && driver.exchange().is_some_and(|other| {
                            timeline.exchange(other).command == timeline.exchange(exchange).command
                        })
                },
            );
            if let [(thread, driver)] = same.copied().collect::<Vec<_>>()[..] {
                found.insert(at as u32, split(timeline, thread, driver, span));
            }
        }
        found
    }
}

fn split(timeline: &Timeline, daemon: &Thread, driver: &Span, client: &Span) -> Below {
    // The command came out of a read that ended between the client's call and the driver's.
    let read = daemon.leaves.iter().rev().find(|leaf| {
        timeline.call(leaf.call).family == Family::Libc(Kind::Read)
            && leaf.end <= driver.start
            && leaf.end >= client.start
    });
    let taken_up = read.map_or(client.start, |leaf| leaf.end);
    let queue = taken_up - client.start;
    let driver_time = driver.time();
    Below { queue, driver: driver_time, service: client.time() - queue - driver_time }
}

impl Below {
    /// A part of it, shared out as the whole was.
    fn parts(&self, time: Nanos) -> [(Owner, Nanos); 3] {
        let all = (self.queue + self.service + self.driver).0.max(1) as f64;
        let part = |of: Nanos| Nanos((time.0 as f64 * of.0 as f64 / all) as u64);
        let queue = part(self.queue);
        let driver = part(self.driver);
        [(Owner::Queue, queue), (Owner::Driver, driver), (Owner::Service, time - queue - driver)]
    }
}
