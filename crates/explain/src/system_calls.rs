//! The system calls of a run beside its timeline: as the tables, the detectors and Perfetto take
//! them. The probe's own are left out, and those that load it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use nix::errno::Errno;
use tapstone_events::system_calls::{NameId, Observed, StackId, SystemCall, TracedProcess};
use tapstone_measure::units::Nanos;
use tapstone_record as record;

use crate::findings::{CallOrigin, FileCall, Stops};
use crate::operation::OperationRule;
use crate::timeline::Timeline;

/// Kinds that a record keeps.
const MOST_KINDS: usize = 1000;

/// What tables and detectors take of system calls.
pub struct SystemCalls<'a> {
    pub(crate) files: Box<dyn Iterator<Item = FileCall<'a>> + 'a>,
    /// Where the operation is a system call: the thread (an index into [`Timeline::threads`]) and
    /// the moment of each return.
    pub(crate) returns: Vec<(usize, Nanos)>,
    /// The most frequent first.
    pub(crate) kinds: Vec<record::SystemCall>,
    pub(crate) stops: Stops<'a>,
}

impl SystemCalls<'_> {
    /// They were not observed.
    #[must_use]
    pub fn none() -> Self {
        Self {
            files: Box::new(std::iter::empty()),
            returns: Vec::new(),
            kinds: Vec::new(),
            stops: Stops::none(),
        }
    }
}

impl<'a> SystemCalls<'a> {
    /// Those of a run, if they were observed.
    #[must_use]
    pub fn beside(
        observed: Option<&'a Observed>,
        timeline: &Timeline,
        operation: &OperationRule,
    ) -> Self {
        observed.map_or_else(Self::none, |observed| system_calls(observed, timeline, operation))
    }
}

fn system_calls<'a>(
    observed: &'a Observed,
    timeline: &Timeline,
    operation: &OperationRule,
) -> SystemCalls<'a> {
    let threads = ThreadPlaces::of_timeline(timeline);
    let returns = match operation {
        OperationRule::SystemCall(name) => returns(observed, &threads, name),
        _ => Vec::new(),
    };
    let mut origins = Origins::of_run(observed);
    let kinds = kinds(observed, &mut origins);
    let stops = stops(observed, ThreadPlaces::of_timeline(timeline));
    let files = observed.program_calls().filter_map(move |call| {
        let path = observed.names.get(call.on?);
        Some(FileCall {
            thread: threads.of_call(&call)?,
            start: call.start,
            end: call.end,
            call: call.name(),
            path,
            origin: origins.origin(&call)?,
        })
    });
    SystemCalls { files: Box::new(files), returns, kinds, stops }
}

/// All that were stopped at, the probe's too: they cost as much.
fn stops(observed: &Observed, threads: ThreadPlaces) -> Stops<'_> {
    let moments = observed.calls.iter();
    let moments = moments.filter_map(move |call| Some((threads.of_call(&call)?, call.start)));
    Stops { cost: observed.stop_cost.per_call(), moments: Box::new(moments) }
}

fn returns(observed: &Observed, threads: &ThreadPlaces, name: &str) -> Vec<(usize, Nanos)> {
    let calls = observed.program_calls();
    let returned = calls.filter(|call| call.name() == name && call.result.is_some());
    returned.filter_map(|call| Some((threads.of_call(&call)?, call.end))).collect()
}

/// The timeline's threads by process and number. Numbers are used again.
struct ThreadPlaces(HashMap<(u32, u32), Vec<(Nanos, usize)>>);

impl ThreadPlaces {
    fn of_timeline(timeline: &Timeline) -> Self {
        let mut threads: HashMap<_, Vec<_>> = HashMap::new();
        for (place, thread) in timeline.threads.iter().enumerate() {
            threads.entry((thread.process, thread.id)).or_default().push((thread.start, place));
        }
        threads.values_mut().for_each(|places| places.sort_unstable());
        Self(threads)
    }

    /// The last one of these numbers that had begun, or the first: a thread is known from its first
    /// watched call on.
    fn of_call(&self, call: &SystemCall) -> Option<usize> {
        let places = self.0.get(&(call.process, call.thread))?;
        let begun = places.partition_point(|(start, _)| *start <= call.end);
        Some(places[begun.saturating_sub(1)].1)
    }
}

/// Who wanted a call, by its stack.
struct Origins<'a> {
    observed: &'a Observed,
    programs: HashMap<u32, &'a str>,
    known: HashMap<(u32, StackId), Option<CallOrigin<'a>>>,
}

impl<'a> Origins<'a> {
    fn of_run(observed: &'a Observed) -> Self {
        let file = |process: &'a TracedProcess| {
            Some((process.process, process.program.file_name()?.to_str()?))
        };
        let programs = observed.processes.iter().filter_map(file).collect();
        Self { observed, programs, known: HashMap::new() }
    }

    fn origin(&mut self, call: &SystemCall) -> Option<CallOrigin<'a>> {
        let Self { observed, programs, known } = self;
        *known.entry((call.process, call.stack)).or_insert_with(|| {
            let frames = observed.stacks.frames(call.stack);
            let stack: Vec<_> =
                frames.map(|frame| (&*frame.module, frame.function.as_deref())).collect();
            CallOrigin::of_stack(&stack, programs.get(&call.process).copied().unwrap_or_default())
        })
    }
}

#[derive(Default)]
struct CallTally {
    count: u64,
    failed: BTreeMap<i32, u64>,
    time: Nanos,
    origin: Option<record::Origin>,
}

fn kinds(observed: &Observed, origins: &mut Origins<'_>) -> Vec<record::SystemCall> {
    let mut tallies: HashMap<(&str, Option<NameId>, StackId), CallTally> = HashMap::new();
    for call in observed.program_calls() {
        let tally = tallies.entry((call.name(), call.on, call.stack)).or_default();
        if tally.count == 0 {
            tally.origin = origins.origin(&call).as_ref().map(CallOrigin::record);
        }
        tally.count += 1;
        tally.time += call.end - call.start;
        if let Some(result) = call.result.filter(|result| (-4095..0).contains(result)) {
            *tally.failed.entry(-result as i32).or_default() += 1;
        }
    }
    let mut tallies: Vec<_> = tallies.into_iter().collect();
    tallies.sort_unstable_by_key(|((call, object, stack), tally)| {
        (Reverse(tally.count), *call, *object, *stack)
    });
    tallies.truncate(MOST_KINDS);
    let kind = |((call, object, stack), tally): ((&str, Option<NameId>, StackId), CallTally)| {
        let failed = tally.failed.into_iter();
        record::SystemCall {
            call: call.to_owned(),
            object: object.map(|name| String::from_utf8_lossy(observed.names.get(name)).into()),
            origin: tally.origin,
            stack: observed.program_frames(stack).map(ToString::to_string).collect(),
            count: tally.count,
            failed: failed.map(|(code, count)| (error(code), count)).collect(),
            time_ns: tally.time,
        }
    };
    tallies.into_iter().map(kind).collect()
}

/// `ENOENT`; a number where it has no name, as those which only the kernel uses.
fn error(code: i32) -> String {
    match Errno::from_raw(code) {
        Errno::UnknownErrno => format!("errno {code}"),
        known => format!("{known:?}"),
    }
}
