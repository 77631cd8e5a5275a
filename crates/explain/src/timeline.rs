//! What a program did, in order: the threads of its processes, their calls, one inside the other,
//! and what they waited for. Everything that is found out is found out from this.
//!
//! Times are CLOCK_MONOTONIC. A [`Span`] is a call of PKCS#11, PC/SC or a reader driver; a [`Leaf`]
//! is a call of libc inside one or outside of all, or many short ones of the same kind in a row.

mod span;

use std::collections::{BTreeMap, HashMap};

use tapstone_measure::units::Nanos;

pub use tapstone_events::{
    CalledFrom, CalledFunction, End, Family, FunctionId, Kind, On, Place, Program, TextId,
    WatchCost,
};
use tapstone_events::{ProcessEnd, SummedCalls, UnlistedCall, UnseenProgram};

pub use self::span::Span;
pub(crate) use self::span::{About, Outcome};

/// All that was observed of one run, thread by thread.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Programs that ran, in the order in which they began.
    pub processes: Vec<Program>,
    /// What those took that ended in good order.
    pub ends: Vec<ProcessEnd>,
    /// Their threads. A thread that has done nothing that is watched is not here.
    pub threads: Vec<Thread>,
    /// What was called: functions of a library, by a library.
    pub calls: Vec<CalledFunction>,
    /// What a call of each takes longer for being watched, where that is known.
    pub watch_costs: HashMap<FunctionId, WatchCost>,
    /// For how much of its time the callers of each had a processor, where that is known.
    pub running: HashMap<FunctionId, RunningTime>,
    /// Paths, names and addresses.
    pub texts: Vec<Box<[u8]>>,
    /// Exchanges with a card.
    pub exchanges: Vec<Exchange>,
    /// From the start of the first program to its end.
    pub started: Nanos,
    /// When observation ended, on the clock of `started`.
    pub ended: Nanos,
    /// The id of the command's own process: what it forks off, and a daemon that is traced with it,
    /// have others.
    pub root: u32,
    /// Calls that were counted after `summed_from`, and are in no thread.
    pub summed: Vec<SummedCalls>,
    /// The last of those, by process, thread and beginning; a call comes before those inside it.
    pub last_calls: Vec<UnlistedCall>,
    /// When calls were no longer all listed.
    pub summed_from: Option<Nanos>,
    /// Events that found no space: what is here is a lower bound then.
    pub dropped: u64,
    /// The processor time of the command and of the processes that it waited for, where that is
    /// known.
    pub processor: Option<Nanos>,
    /// Programs that were started and are not here: the probe did not begin in them.
    pub unseen: Vec<UnseenProgram>,
}

/// For how much of some calls' time the threads that made them had a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTime {
    /// The time of these calls.
    pub time: Nanos,
    /// The processor time of their threads meanwhile.
    pub ran: Nanos,
}

impl RunningTime {
    /// From 0, where they waited, to 1, where they worked.
    #[must_use]
    pub fn share(self) -> f64 {
        (self.ran.0 as f64 / self.time.0.max(1) as f64).min(1.0)
    }
}

/// A thread and what it did.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its process, by id.
    pub process: u32,
    /// The thread's id, as the kernel numbers it (gettid(2)).
    pub id: u32,
    /// When it was first and last seen; for a program's first thread its start and end.
    pub start: Nanos,
    /// When the thread was last seen, on the clock of `start`.
    pub end: Nanos,
    /// In the order of their beginnings; a call comes before those inside it.
    pub spans: Vec<Span>,
    /// In the order of their beginnings.
    pub leaves: Vec<Leaf>,
    /// Time that a fix put into calls, by their places in `spans`. Calls into which it put none are
    /// not here.
    pub injected: BTreeMap<Place, Nanos>,
    /// Where the first calls of each place came from, in the order of their beginnings.
    pub callers: Vec<CalledFrom>,
    /// When the probe made room for the thread's events, and how long that took.
    pub room_made: Vec<(Nanos, Nanos)>,
}

/// An index into [`Timeline::exchanges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeId(pub Place);

/// A libc call, or many.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The beginning of the first.
    pub start: Nanos,
    /// The end of the last; the thread's when it never returned.
    pub end: Nanos,
    /// The function of libc that was called.
    pub call: FunctionId,
    /// The call around it: an index into the thread's spans.
    pub parent: Option<Place>,
    /// How many. More than one: short ones, among which others may lie.
    pub count: u32,
    /// The time of all these calls together.
    pub time: Nanos,
    /// What the last one returned.
    pub result: i64,
    /// A descriptor, an address, a number that was looked up.
    pub a: u64,
    /// A length in bytes, or a time that was asked for in nanoseconds.
    pub b: u64,
    /// A path, an address (sockaddr), a name.
    pub text: Option<TextId>,
    /// What it waited for.
    pub on: On,
    /// A fix answered instead of the function.
    pub replaced: bool,
}

/// A command to a card and its response. Data are kept only where they name what is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// CLA INS P1 P2 and P3, and data where they may be known.
    pub command: Box<[u8]>,
    /// A digest of a command that reads; 0 for all others.
    pub digest: u64,
    /// Bytes to the card.
    pub sent: u32,
    /// Bytes from the card, status word included.
    pub received: u32,
    /// The status word; 0 when there was none.
    pub status: u16,
    /// A digest of the response.
    pub answer: u32,
}

impl Timeline {
    /// Up to when calls are in their threads: the end of the run, unless they were summed earlier.
    #[must_use]
    pub fn listed_until(&self) -> Nanos {
        self.summed_from.map_or(self.ended, |from| from.clamp(self.started, self.ended))
    }

    /// A function as it was called.
    ///
    /// # Panics
    /// For an id of another timeline.
    #[must_use]
    pub fn call(&self, id: FunctionId) -> &CalledFunction {
        &self.calls[id.0 as usize]
    }

    /// A path, a name or an address.
    #[must_use]
    pub fn text(&self, id: TextId) -> &[u8] {
        &self.texts[id.0.index()]
    }

    /// An exchange with a card.
    #[must_use]
    pub fn exchange(&self, id: ExchangeId) -> &Exchange {
        &self.exchanges[id.0.index()]
    }

    /// How long the first program ran.
    #[must_use]
    pub fn wall(&self) -> Nanos {
        self.ended - self.started
    }
}

impl Timeline {
    /// Takes in what others did in the same time: a daemon, with a file of events of its own. Calls
    /// of theirs that began before or ended after are left out.
    pub fn take_in(&mut self, other: Self) {
        let offset = |ids: usize| ids as u32;
        let calls = offset(self.calls.len());
        let texts = offset(self.texts.len());
        let exchanges = offset(self.exchanges.len());
        self.calls.extend(other.calls);
        let renumbered = |FunctionId(id)| FunctionId(id + calls);
        self.watch_costs
            .extend(other.watch_costs.into_iter().map(|(id, cost)| (renumbered(id), cost)));
        self.running.extend(other.running.into_iter().map(|(id, it)| (renumbered(id), it)));
        let last = other.last_calls.into_iter();
        let last = last.filter(|call| call.start >= self.started && call.end <= self.ended);
        self.last_calls
            .extend(last.map(|call| UnlistedCall { function: renumbered(call.function), ..call }));
        self.texts.extend(other.texts);
        self.exchanges.extend(other.exchanges);
        self.processes.extend(other.processes);
        self.unseen.extend(other.unseen);
        self.ends.extend(other.ends);
        for mut thread in other.threads {
            thread.keep_within(self.started, self.ended);
            for span in &mut thread.spans {
                span.call.0 += calls;
                span.about = span.about.map(|it| it.renumbered(exchanges, texts));
            }
            for leaf in &mut thread.leaves {
                leaf.call.0 += calls;
                leaf.text = leaf.text.map(|id| TextId(Place::new(id.0.get() + texts)));
            }
            if !thread.spans.is_empty() || !thread.leaves.is_empty() {
                self.threads.push(thread);
            }
        }
    }
}

/// The last calls of a timeline with the number of those around each on its thread.
pub fn with_depths(last_calls: &[UnlistedCall]) -> impl Iterator<Item = (&UnlistedCall, u32)> {
    let mut around: Vec<&UnlistedCall> = Vec::new();
    last_calls.iter().map(move |call| {
        let is_over = |it: &UnlistedCall| {
            (it.process, it.thread) != (call.process, call.thread) || it.end < call.end
        };
        // Those around others end later.
        while around.last().is_some_and(|it| is_over(it)) {
            around.pop();
        }
        around.push(call);
        (call, around.len() as u32 - 1)
    })
}

impl Thread {
    /// Keeps what lies in a stretch of time.
    pub(crate) fn keep_within(&mut self, start: Nanos, end: Nanos) {
        let inside = |from: Nanos, to: Nanos| from >= start && to <= end;
        let mut places = vec![None; self.spans.len()];
        let mut kept = Vec::new();
        for (at, span) in self.spans.iter().enumerate() {
            if inside(span.start, span.end) {
                places[at] = Some(Place::new(kept.len() as u32));
                let parent = span.parent.and_then(|parent| places[parent.index()]);
                kept.push(Span { parent, ..*span });
            }
        }
        self.leaves.retain(|leaf| inside(leaf.start, leaf.end));
        self.callers.retain(|call| inside(call.at, call.at));
        self.room_made.retain(|(at, _)| inside(*at, *at));
        for leaf in &mut self.leaves {
            leaf.parent = leaf.parent.and_then(|parent| places[parent.index()]);
        }
        let injected = std::mem::take(&mut self.injected).into_iter();
        self.injected =
            injected.filter_map(|(place, time)| Some((places[place.index()]?, time))).collect();
        self.spans = kept;
        self.start = self.start.max(start);
        self.end = self.end.min(end).max(start);
    }

    /// From the first to the last that was seen of it.
    #[must_use]
    pub fn wall(&self) -> Nanos {
        self.end - self.start
    }

    /// The calls around a span, from the innermost, itself first.
    pub fn path(&self, from: Option<Place>) -> impl Iterator<Item = &Span> {
        let mut next = from;
        std::iter::from_fn(move || {
            let span = &self.spans[next?.index()];
            next = span.parent;
            Some(span)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Story, millis};

    #[test]
    fn injected_time_stays_with_its_call() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").advance(millis(4)).injects(millis(1)).exit();
                told.enter("C_Login").advance(millis(2));
                told.enter("SCardStatus").advance(millis(4)).injects(millis(3)).exit().exit();
                told.enter("C_Sign").advance(millis(8)).injects(millis(2)).exit();
            })
            .timeline();
        let thread = &mut timeline.threads[0];
        let times: Vec<_> = thread.injected.clone().into_iter().collect();
        let at = Place::new;
        assert_eq!(times, [(at(0), millis(1)), (at(2), millis(3)), (at(3), millis(2))]);
        // Without the first call, and then without the last.
        thread.keep_within(millis(4), millis(18));
        let times: Vec<_> = thread.injected.clone().into_iter().collect();
        assert_eq!(times, [(at(1), millis(3)), (at(2), millis(2))]);
        thread.keep_within(millis(4), millis(10));
        let times: Vec<_> = thread.injected.clone().into_iter().collect();
        assert_eq!((thread.spans.len(), times), (2, vec![(at(1), millis(3))]));
        assert_eq!(thread.spans[1].start, millis(6));
    }

    #[test]
    fn injected_time_of_a_daemon_is_taken_in() {
        let told = |calls: u64| {
            let mut story = Story::new();
            story.thread(|told| {
                for _ in 0..calls {
                    told.enter("C_Sign").advance(millis(4)).injects(millis(1)).exit();
                }
            });
            story.timeline()
        };
        let mut timeline = told(1);
        timeline.take_in(told(2));
        let injected: Vec<_> = timeline.threads.iter().map(|it| it.injected.clone()).collect();
        let one = BTreeMap::from([(Place::new(0), millis(1))]);
        assert_eq!(injected, [one.clone(), one]);
    }
}
