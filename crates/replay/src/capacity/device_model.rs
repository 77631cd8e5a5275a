//! A device as a queue: so many servers, one line, first come, first served.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tapstone_measure::pace::SplitMix;
use tapstone_measure::units::Nanos;
use tapstone_workload::Workload;

use crate::measured::{ReplayedCall, ReplayedThread};
use crate::steps::{Due, ReplayProcess, ReplayStep, ReplayThread};

/// Calls that take alike: of one function, for one key and mechanism, of about one length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallKind {
    function: &'static str,
    mechanism: Option<u64>,
    key: Option<u32>,
    /// The power of two below the bytes that it is given.
    size: u32,
}

/// The calls of a plan by their kinds.
#[derive(Clone, Debug)]
pub(super) struct PlannedCalls<'a> {
    /// The plan.
    pub(super) processes: &'a [ReplayProcess],
    /// Every kind that is in it.
    pub(super) kinds: Vec<CallKind>,
    /// Of each call the place of its kind, by process and thread.
    pub(super) places: Vec<Vec<Vec<usize>>>,
    /// In the same order: how much later than it could each call began in a replay, which is the
    /// doing of the machine that replays. Empty where there was none.
    delays: Vec<Vec<Vec<Nanos>>>,
}

impl<'a> PlannedCalls<'a> {
    pub(super) fn new(processes: &'a [ReplayProcess]) -> Self {
        let mut known: BTreeMap<CallKind, usize> = BTreeMap::new();
        let mut place = |kind| {
            let next = known.len();
            *known.entry(kind).or_insert(next)
        };
        let mut places = Vec::with_capacity(processes.len());
        for process in processes {
            let of = |thread| call_kinds(thread).into_iter().map(&mut place).collect();
            places.push(process.threads.iter().map(of).collect());
        }
        let mut kinds: Vec<(usize, CallKind)> =
            known.into_iter().map(|(kind, place)| (place, kind)).collect();
        kinds.sort_unstable_by_key(|(place, _)| *place);
        Self {
            processes,
            kinds: kinds.into_iter().map(|(_, kind)| kind).collect(),
            places,
            delays: Vec::new(),
        }
    }

    /// With the delays of a replay of this plan.
    pub(super) fn with_delays_of(mut self, threads: &[Vec<ReplayedThread>]) -> Self {
        let delays = |(process, threads): (&ReplayProcess, &Vec<ReplayedThread>)| {
            process
                .threads
                .iter()
                .zip(threads)
                .map(|(planned, went)| delays(planned, went))
                .collect()
        };
        self.delays = self.processes.iter().zip(threads).map(delays).collect();
        self
    }

    /// Of a thread's call.
    fn delay(&self, process: usize, thread: usize, place: usize) -> Nanos {
        let thread = self.delays.get(process).and_then(|threads| threads.get(thread));
        thread.and_then(|calls| calls.get(place)).copied().unwrap_or_default()
    }
}

fn delays(planned: &ReplayThread, went: &ReplayedThread) -> Vec<Nanos> {
    let mut answered = Nanos::ZERO;
    let delay = |(step, time): (&ReplayStep, &ReplayedCall)| {
        let could = due_at(step, answered);
        answered = time.begin + time.duration;
        time.begin - could - time.waited
    };
    planned.steps.iter().zip(&went.times).map(delay).collect()
}

/// The kind of each call of a thread. A call that works carries on what the call before it in its
/// session began.
fn call_kinds(thread: &ReplayThread) -> Vec<CallKind> {
    let mut begun: BTreeMap<Option<u32>, (Option<u64>, Option<u32>)> = BTreeMap::new();
    let kind = |step: &ReplayStep| {
        if let Some(mechanism) = step.mechanism {
            begun.insert(step.session, (Some(mechanism.number), step.key));
        }
        let (mechanism, key) = begun.get(&step.session).copied().unwrap_or_default();
        let size = step.given_bytes().checked_ilog2().unwrap_or_default();
        CallKind { function: step.call.name(), mechanism, key: step.key.or(key), size }
    };
    thread.steps.iter().map(kind).collect()
}

/// Calls of one kind on a device.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServiceTimes {
    /// How long they took where they had not to wait, as measured.
    pub(super) measured: Vec<Nanos>,
    /// A server does them; else they wait for nobody.
    pub(super) is_served: bool,
}

/// A device as a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceModel {
    pub(super) servers: u32,
    /// The share of a call's time for which it holds a server. The rest is the way there and back,
    /// in which the server does others.
    pub(super) occupancy: f64,
    pub(super) services: BTreeMap<CallKind, ServiceTimes>,
}

/// A replay as it would go.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SimulatedReplay {
    /// As of one that was measured.
    pub(super) threads: Vec<Vec<ReplayedThread>>,
    /// What the servers of all devices did between the two moments that were asked for.
    pub(super) served: Nanos,
}

/// A thread's next call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Nanos,
    process: usize,
    thread: usize,
}

impl DeviceModel {
    /// Servers of a device.
    #[must_use]
    pub const fn servers(&self) -> u32 {
        self.servers
    }

    /// Replays a plan on devices like this one, each with a line of its own. What threads wait for
    /// from one another is left out. Between `from` and `to` it counts what the servers do.
    pub(super) fn simulate(
        &self,
        recorded: &Workload,
        calls: &PlannedCalls<'_>,
        seed: u64,
        (from, to): (Nanos, Nanos),
    ) -> SimulatedReplay {
        let mut random = SplitMix(seed);
        let mut devices: BTreeMap<u32, BinaryHeap<Reverse<Nanos>>> = BTreeMap::new();
        let PlannedCalls { processes, kinds, places, .. } = calls;
        let services: Vec<Option<&ServiceTimes>> =
            kinds.iter().map(|kind| self.services.get(kind)).collect();
        let nothing_yet =
            |process: &ReplayProcess| vec![ReplayedThread::default(); process.threads.len()];
        let mut threads: Vec<Vec<ReplayedThread>> = processes.iter().map(nothing_yet).collect();
        let mut arrivals: BinaryHeap<Reverse<Arrival>> = BinaryHeap::new();
        for (process, planned) in processes.iter().enumerate() {
            for (thread, planned) in planned.threads.iter().enumerate() {
                let first = planned
                    .steps
                    .first()
                    .map(|step| due_at(step, Nanos::ZERO) + calls.delay(process, thread, 0));
                arrivals.extend(first.map(|at| Reverse(Arrival { at, process, thread })));
            }
        }
        let mut served = Nanos::ZERO;
        while let Some(Reverse(Arrival { at, process, thread })) = arrivals.pop() {
            let planned = &processes[process].threads[thread];
            let times = &mut threads[process][thread].times;
            let place = times.len();
            let mut end = at;
            if let Some(ServiceTimes { measured, is_served }) =
                services[places[process][thread][place]]
            {
                let draw = random.bits() as usize % measured.len().max(1);
                let time = measured.get(draw).copied().unwrap_or_default();
                let start = if *is_served {
                    let free = devices.entry(processes[process].device).or_insert_with(|| {
                        (0..self.servers).map(|_| Reverse(Nanos::ZERO)).collect()
                    });
                    let start = free.pop().map_or(at, |Reverse(free)| free.max(at));
                    let left = start + Nanos((time.0 as f64 * self.occupancy) as u64);
                    free.push(Reverse(left));
                    served += left.min(to) - start.max(from);
                    start
                } else {
                    at
                };
                end = start + time;
            }
            let step = &planned.steps[place];
            let origin = recorded.threads.get(planned.origin as usize);
            let origin = origin.and_then(|thread| thread.calls.get(step.origin as usize));
            let due = match step.due {
                Due::At(due) => due,
                Due::AfterAnswer(_) => at,
            };
            times.push(ReplayedCall {
                begin: at,
                duration: end - at,
                late: at - due,
                waited: Nanos::ZERO,
                result: origin.map_or(0, |call| call.result),
                is_called: true,
                output: origin.map_or(0, |call| call.output_bytes),
            });
            if let Some(next) = planned.steps.get(place + 1) {
                let at = due_at(next, end) + calls.delay(process, thread, place + 1);
                arrivals.push(Reverse(Arrival { at, process, thread }));
            }
        }
        SimulatedReplay { threads, served }
    }
}

/// When a call begins whose thread had its last answer then.
fn due_at(step: &ReplayStep, answered: Nanos) -> Nanos {
    match step.due {
        Due::At(due) => due.max(answered),
        Due::AfterAnswer(pause) => answered + pause,
    }
}
