//! Events into a timeline: calls inside calls, and threads that last as long as their process.

use std::cmp::Reverse;
use std::collections::HashMap;

use tapstone_events::{
    CallBegun, CallEnded, CallOutcome, End, Event, EventSource, LibcCalls, StubId,
};
use tapstone_measure::units::Nanos;

use crate::timeline::{
    About, Exchange, ExchangeId, Leaf, Outcome, Place, RunningTime, Span, Thread, Timeline,
};

/// Reads what was observed of a run.
///
/// # Errors
/// What the source says when it cannot be read.
pub fn read_timeline<S: EventSource>(source: &S) -> Result<Timeline, S::Error> {
    let run = source.observed_run();
    let mut reading = TimelineReading {
        timeline: Timeline {
            started: run.started,
            ended: run.ended,
            dropped: run.dropped,
            processor: run.processor,
            summed_from: run.summed_from,
            ..Timeline::default()
        },
        thread: None,
    };
    source.read_events(&mut |event| reading.take(event))?;
    Ok(reading.finish())
}

/// A timeline to which events are added.
struct TimelineReading {
    timeline: Timeline,
    thread: Option<OpenThread>,
}

impl TimelineReading {
    fn take(&mut self, event: Event) {
        let Self { timeline, thread } = self;
        match event {
            Event::Program(program) => timeline.processes.push(program),
            Event::Unseen(program) => timeline.unseen.push(program),
            Event::Function(function) => timeline.calls.push(function),
            Event::WatchCost { function, cost } => {
                timeline.watch_costs.insert(function, cost);
            }
            Event::Running { function, time, ran } => {
                timeline.running.insert(function, RunningTime { time, ran });
            }
            Event::Summed(calls) => timeline.summed.push(calls),
            Event::Unlisted(call) => timeline.last_calls.push(call),
            Event::Text(text) => timeline.texts.push(text),
            Event::Thread { process, id } => {
                timeline.threads.extend(thread.take().and_then(OpenThread::finish));
                *thread = Some(OpenThread::new(process, id, timeline.listed_until()));
            }
            Event::ProcessEnded(end) => {
                timeline.ends.push(end);
                if let Some(thread) = thread {
                    thread.alive(end.at);
                }
            }
            of_thread => {
                if let Some(thread) = thread {
                    thread.take(of_thread, &mut timeline.exchanges);
                }
            }
        }
    }

    fn finish(self) -> Timeline {
        let Self { mut timeline, thread } = self;
        timeline.threads.extend(thread.and_then(OpenThread::finish));
        timeline.root = root(&timeline);
        first_threads(&mut timeline);
        still_open(&mut timeline);
        let Timeline { started, ended, .. } = timeline;
        // A daemon was there before.
        timeline.threads.retain_mut(|thread| {
            if thread.start < started {
                thread.keep_within(started, ended);
            }
            !thread.spans.is_empty() || !thread.leaves.is_empty()
        });
        timeline.threads.sort_by_key(|thread| thread.start);
        // Of two that began at once the longer one is around the other.
        timeline.last_calls.sort_by_key(|it| (it.process, it.thread, it.start, Reverse(it.end)));
        timeline
    }
}

/// The first program that began after the command was started: a daemon began before.
fn root(timeline: &Timeline) -> u32 {
    let began = timeline.processes.iter().filter(|process| process.started >= timeline.started);
    began.min_by_key(|process| process.started).map_or(0, |process| process.id)
}

/// The command's first thread lived as long as the run, or for as long as its calls were listed. What began before it is a daemon's, and
/// counts from there on.
fn first_threads(timeline: &mut Timeline) {
    let Timeline { root, started, .. } = *timeline;
    let listed_until = timeline.listed_until();
    for thread in &mut timeline.threads {
        if thread.process == root && thread.id == root {
            thread.start = started;
            thread.end = listed_until.max(thread.end);
        }
    }
}

/// What never returned lasted as long as its process.
fn still_open(timeline: &mut Timeline) {
    let mut ends: HashMap<u32, Nanos> = HashMap::new();
    for thread in &timeline.threads {
        let end = ends.entry(thread.process).or_default();
        *end = thread.end.max(*end);
    }
    for thread in &mut timeline.threads {
        let end = ends[&thread.process];
        for span in thread.spans.iter_mut().filter(|span| span.end == Nanos::NEVER) {
            span.end = end;
            thread.end = end;
        }
        for leaf in thread.leaves.iter_mut().filter(|leaf| leaf.end == Nanos::NEVER) {
            leaf.end = end;
            leaf.time = end - leaf.start;
            thread.end = end;
        }
    }
}

/// A thread whose events come in.
struct OpenThread {
    thread: Thread,
    /// Calls that have not returned: indices into the thread's spans, and their stubs.
    open: Vec<(u32, StubId)>,
    last: Nanos,
    /// What is noted later says nothing of how long its calls were listed.
    listed_until: Nanos,
}

impl OpenThread {
    fn new(process: u32, id: u32, listed_until: Nanos) -> Self {
        let thread = Thread { process, id, start: Nanos::NEVER, ..Thread::default() };
        Self { thread, open: Vec::new(), last: Nanos::ZERO, listed_until }
    }

    fn take(&mut self, event: Event, exchanges: &mut Vec<Exchange>) {
        match event {
            Event::Alive(at) => self.alive(at),
            Event::Executed(at) => self.executed(at),
            Event::CalledFrom(call) => self.thread.callers.push(call),
            Event::CallBegun(begun) => self.begun(begun, exchanges),
            Event::CallEnded(ended) => self.ended(ended, exchanges),
            Event::Libc(calls) => self.libc(&calls),
            Event::RoomMade { at, took } => {
                self.alive(at);
                self.thread.room_made.push((at, took));
            }
            Event::Injected { at, time } => {
                self.seen(at);
                if let Some((open, _)) = self.open.last().filter(|_| time > Nanos::ZERO) {
                    *self.thread.injected.entry(Place::new(*open)).or_default() += time;
                }
            }
            Event::Program(_)
            | Event::ProcessEnded(_)
            | Event::Unseen(_)
            | Event::Function(_)
            | Event::WatchCost { .. }
            | Event::Running { .. }
            | Event::Summed(_)
            | Event::Unlisted(_)
            | Event::Text(_)
            | Event::Thread { .. } => {}
        }
    }

    fn seen(&mut self, at: Nanos) {
        self.thread.start = self.thread.start.min(at);
        self.last = self.last.max(at);
    }

    /// It was there, without a call.
    fn alive(&mut self, at: Nanos) {
        self.seen(at.min(self.listed_until));
    }

    /// exec(3): what was open is gone.
    fn executed(&mut self, at: Nanos) {
        self.alive(at);
        for (open, _) in self.open.drain(..) {
            self.thread.spans[open as usize].end_at(at);
        }
    }

    fn begun(&mut self, begun: CallBegun, exchanges: &mut Vec<Exchange>) {
        self.seen(begun.at);
        let exchange = begun.sent.map(|sent| {
            exchanges.push(Exchange {
                command: sent.command,
                digest: sent.digest,
                sent: sent.bytes,
                received: 0,
                status: 0,
                answer: 0,
            });
            ExchangeId(Place::new(exchanges.len() as u32 - 1))
        });
        let reader = begun.reader.map(About::reader);
        let span = Span {
            start: begun.at,
            end: Nanos::NEVER,
            call: begun.function,
            parent: self.open.last().map(|(open, _)| Place::new(*open)),
            end_kind: End::Open,
            result: 0,
            handle: begun.handle,
            detail: begun.detail,
            operand: begun.operand,
            outcome: Outcome::NOTHING,
            about: exchange.map(About::exchange).or(reader),
            on_token: begun.on_token,
        };
        self.open.push((self.thread.spans.len() as u32, begun.stub));
        self.thread.spans.push(span);
    }

    fn ended(&mut self, ended: CallEnded, exchanges: &mut [Exchange]) {
        self.seen(ended.at);
        let Some(place) = self.open.iter().rposition(|(_, stub)| *stub == ended.stub) else {
            return;
        };
        for (inside, _) in self.open.drain(place + 1..) {
            let span = &mut self.thread.spans[inside as usize];
            span.end_at(ended.at);
            span.end_kind = End::Abandoned;
        }
        let Some((open, _)) = self.open.pop() else { return };
        let span = &mut self.thread.spans[open as usize];
        span.end_at(ended.at);
        span.end_kind = ended.end;
        span.result = ended.result;
        match (ended.outcome, span.exchange()) {
            (CallOutcome::Response { bytes, status, digest }, Some(exchange)) => {
                let exchange = &mut exchanges[exchange.0.index()];
                exchange.received = bytes;
                exchange.status = status;
                exchange.answer = digest;
            }
            (CallOutcome::Made(made), None) => span.outcome = Outcome::made(made),
            (CallOutcome::Found { count, digest }, None) => {
                span.outcome = Outcome::found(count, digest);
            }
            // A beginning and an end that tell of different functions.
            _ => {}
        }
    }

    fn libc(&mut self, calls: &LibcCalls) {
        self.seen(calls.start);
        if let Some(end) = calls.end {
            self.last = self.last.max(end);
        }
        self.thread.leaves.push(Leaf {
            start: calls.start,
            end: calls.end.map_or(Nanos::NEVER, |end| end.max(calls.start)),
            call: calls.function,
            parent: self.open.last().map(|(open, _)| Place::new(*open)),
            count: calls.count,
            time: calls.time,
            result: calls.result,
            a: calls.a,
            b: calls.b,
            text: calls.text,
            on: calls.on,
            replaced: calls.replaced,
        });
    }

    fn finish(mut self) -> Option<Thread> {
        // Of a wait inside a call it is asked when it is over.
        self.thread.callers.sort_by_key(|call| call.at);
        self.thread.end = self.last;
        (self.thread.start != Nanos::NEVER).then_some(self.thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapstone_events::{FunctionId, ObservedRun, Program};

    /// One thread's events, as a file of somebody else may have them.
    #[derive(Default)]
    struct Made {
        events: Vec<Event>,
        summed_from: Option<Nanos>,
    }

    impl EventSource for Made {
        type Error = std::convert::Infallible;

        fn observed_run(&self) -> ObservedRun {
            let Self { summed_from, .. } = *self;
            let ended = Nanos(1_000);
            ObservedRun { started: Nanos(1), ended, summed_from, ..ObservedRun::default() }
        }

        fn read_events(&self, take: &mut dyn FnMut(Event)) -> Result<(), Self::Error> {
            take(Event::Thread { process: 7, id: 7 });
            self.events.iter().cloned().for_each(take);
            Ok(())
        }
    }

    fn begun(at: u64, stub: u32) -> Event {
        Event::CallBegun(CallBegun {
            at: Nanos(at),
            stub: StubId(stub),
            function: FunctionId(0),
            handle: 0,
            detail: 0,
            operand: 0,
            only_length: false,
            on_token: false,
            sent: None,
            reader: None,
        })
    }

    #[test]
    fn no_call_ends_before_it_begins() {
        let ended = Event::CallEnded(CallEnded {
            at: Nanos(100),
            stub: StubId(1),
            end: End::Returned,
            result: 0,
            outcome: CallOutcome::Made(0),
        });
        let events =
            vec![begun(500, 1), begun(600, 2), ended, begun(700, 3), Event::Executed(Nanos(9))];
        let Ok(timeline) = read_timeline(&Made { events, ..Made::default() });
        let spans = &timeline.threads[0].spans;
        assert_eq!(spans.len(), 3);
        assert!(spans.iter().all(|span| span.start <= span.end), "{spans:?}");
    }

    #[test]
    fn injected_time_is_that_of_the_innermost_open_call() {
        let injected = |at, time| Event::Injected { at: Nanos(at), time: Nanos(time) };
        let ended = Event::CallEnded(CallEnded {
            at: Nanos(300),
            stub: StubId(2),
            end: End::Returned,
            result: 0,
            outcome: CallOutcome::Made(0),
        });
        let mut events = vec![
            injected(90, 1),
            begun(100, 1),
            injected(105, 0),
            begun(110, 2),
            injected(200, 40),
            injected(210, 2),
            ended,
        ];
        let Ok(timeline) = read_timeline(&Made { events: events.clone(), ..Made::default() });
        let times: Vec<_> = timeline.threads[0].injected.clone().into_iter().collect();
        assert_eq!(times, [(Place::new(1), Nanos(42))]);
        events.push(injected(350, 7));
        let Ok(timeline) = read_timeline(&Made { events, ..Made::default() });
        let times: Vec<_> = timeline.threads[0].injected.clone().into_iter().collect();
        assert_eq!(times, [(Place::new(0), Nanos(7)), (Place::new(1), Nanos(42))]);
    }

    #[test]
    fn a_thread_ends_where_its_calls_were_no_longer_listed() {
        let end_of = |summed_from, late: u64| {
            let program = Program { id: 7, parent: 0, program: String::new(), started: Nanos(2) };
            let ended = Event::CallEnded(CallEnded {
                at: Nanos(late),
                stub: StubId(1),
                end: End::Returned,
                result: 0,
                outcome: CallOutcome::Made(0),
            });
            let events =
                vec![Event::Program(program), begun(100, 1), ended, Event::Alive(Nanos(900))];
            let Ok(timeline) = read_timeline(&Made { events, summed_from });
            timeline.threads[0].end
        };
        assert_eq!(end_of(None, 150), Nanos(1_000), "the run's end");
        assert_eq!(end_of(Some(Nanos(200)), 150), Nanos(200));
        // A thread that had room for longer, and a file that nobody wrote in earnest.
        assert_eq!(end_of(Some(Nanos(200)), 300), Nanos(300));
        assert_eq!(end_of(Some(Nanos(5_000)), 150), Nanos(1_000));
    }
}
