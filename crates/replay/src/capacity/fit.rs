//! Which queue explains replays that were measured.
//!
//! A call that came while fewer calls were under way than the device has servers did not wait: its
//! time is a server's. So each number of servers gives service times of its own, whatever the load
//! was; and with these the same plans are replayed on the queue. It explains what was measured when
//! the latencies of the transactions, and how long all of them took, are those of the device.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use tapstone_measure::units::Nanos;
use tapstone_workload::Transaction;

use super::device_model::{CallKind, DeviceModel, PlannedCalls, ServiceTimes};
use super::{quantile, utilisation};
use crate::measured::{ReplayedThread, measured_workload};
use crate::steady::{SteadyLoad, SteadyPart};
use crate::steps::ReplayProcess;

/// The most servers that are tried. More than any device has that calls are seen to wait for.
pub(super) const MOST_SERVERS: u32 = 64;
/// A queue explains a figure that lies within this share of its own.
const EXPLAINS: f64 = 0.1;
/// Or to within so many standard deviations of what it gives, drawn anew.
const DEVIATIONS: f64 = 4.0;
/// Shares of its time for which a call may hold a server, beside all of it.
const OCCUPANCIES: [f64; 8] = [0.98, 0.96, 0.94, 0.92, 0.88, 0.8, 0.7, 0.55];
/// So often a plan is replayed on each queue.
const DRAWS: u64 = 12;
/// A queue that is off by so much at one scale is not held against another.
const FAR: f64 = 1.0;
/// Calls whose mean is below this share of the longest may have nothing to do with the servers, such
/// as C_SignInit, which only takes a note in most modules. Both are tried.
const SHORT: f64 = 0.1;
/// Above this a latency grows without end, and says more of the last percent of a service time than
/// of servers.
const STABLE: f64 = 0.9;

/// A steady replay that was measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredReplay<'a> {
    /// Its plan.
    pub processes: &'a [ReplayProcess],
    /// What came of it.
    pub threads: &'a [Vec<ReplayedThread>],
}

/// The queues that explain what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFit {
    /// The one with the fewest servers first.
    pub models: Vec<DeviceModel>,
    /// How far the best of them is off at most: 0.03 for 3 %.
    pub error: f64,
}

/// Why nothing is known of the device's servers.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NoDeviceModel {
    /// There is none to look at.
    #[error("no replay began its calls when they were meant to")]
    NoReplays,
    /// No replay made calls wait.
    #[error("in these replays no call had to wait for another, so nothing is known of its servers")]
    NothingWaited,
    /// The device is no such queue.
    #[error(
        "no number of servers explains these replays: that of {servers} is off by {:.0} %",
        .error * 100.0
    )]
    NoneExplains {
        /// Of the queue that comes nearest.
        servers: u32,
        /// How far it is off.
        error: f64,
    },
}

/// Logarithms of what is compared.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// From the first beginning to the last end.
    span: f64,
    /// Of the transactions: median, mean, and the bound's quantile.
    latencies: [f64; 3],
}

/// A replay that was measured, its calls by their kinds, and what it comes to.
struct Observed<'a> {
    calls: PlannedCalls<'a>,
    steady: SteadyPart,
    threads: &'a [Vec<ReplayedThread>],
    figures: Figures,
}

/// A queue beside what was measured.
struct Judged {
    model: DeviceModel,
    /// How far it is off at most.
    error: f64,
    explains: bool,
}

/// Finds the queues that explain these replays of a load, of which the quantile at `share` beyond
/// matters.
///
/// # Errors
/// There is none, or nothing tells them apart.
pub fn fit_device<'a>(
    load: &SteadyLoad<'_>,
    share: f64,
    replays: &[MeasuredReplay<'a>],
) -> Result<DeviceFit, NoDeviceModel> {
    let observed = |replay: &MeasuredReplay<'a>| {
        let MeasuredReplay { processes, threads } = *replay;
        let steady = load.steady_part(processes);
        let figures = figures(load, &steady, share, processes, threads)?;
        let calls = PlannedCalls::new(processes).with_delays_of(threads);
        Some(Observed { calls, steady, threads, figures })
    };
    let mut measured: Vec<Observed<'_>> = replays.iter().filter_map(observed).collect();
    if measured.is_empty() {
        return Err(NoDeviceModel::NoReplays);
    }
    // The heaviest tells queues apart soonest.
    measured.sort_by_key(|one| Reverse(one.threads.iter().map(Vec::len).sum::<usize>()));
    let judge = |(servers, occupancy): (u32, f64)| -> Vec<Judged> {
        let models = models_with(servers, &measured).into_iter();
        let models = models.map(|model| DeviceModel { occupancy, ..model });
        models.map(|model| judged(load, share, &measured, model)).collect()
    };
    let mut tried: Vec<Judged> =
        (0..=MOST_SERVERS.ilog2()).flat_map(|power| judge((1 << power, 1.0))).collect();
    // Between the powers of two beside the best.
    let near = nearest(&tried).map_or(1, |(servers, _)| servers);
    let between = (near / 2 + 1..(2 * near).min(MOST_SERVERS)).filter(|it| !it.is_power_of_two());
    tried.extend(between.map(|servers| (servers, 1.0)).flat_map(judge));
    // Fewer servers that a call does not hold for all of its time are as fast.
    let near = nearest(&tried).map_or(1, |(servers, _)| servers);
    let fewer = near.div_ceil(2)..=near;
    let shares = |servers| OCCUPANCIES.into_iter().map(move |share| (servers, share));
    tried.extend(fewer.flat_map(shares).flat_map(judge));
    let Some((servers, error)) = nearest(&tried) else { return Err(NoDeviceModel::NothingWaited) };
    tried.retain(|judged| judged.explains);
    let Some((_, explained)) = nearest(&tried) else {
        return Err(NoDeviceModel::NoneExplains { servers, error });
    };
    let mut models: Vec<DeviceModel> = tried.into_iter().map(|judged| judged.model).collect();
    models.sort_by_key(DeviceModel::servers);
    if models.iter().any(|model| model.servers == MOST_SERVERS) {
        return Err(NoDeviceModel::NothingWaited);
    }
    Ok(DeviceFit { models, error: explained })
}

/// The servers of the queue that is off least, and how far it is.
fn nearest(tried: &[Judged]) -> Option<(u32, f64)> {
    let least = tried.iter().min_by(|a, b| a.error.total_cmp(&b.error));
    least.map(|judged| (judged.model.servers, judged.error))
}

/// `None`: there are no transactions.
fn figures(
    load: &SteadyLoad<'_>,
    steady: &SteadyPart,
    share: f64,
    processes: &[ReplayProcess],
    threads: &[Vec<ReplayedThread>],
) -> Option<Figures> {
    let measured = measured_workload(load.workload, processes, threads);
    let transactions = steady.transactions(&measured).ok()?;
    let start = transactions.iter().map(|one| one.start).min()?;
    let end = transactions.iter().map(|one| one.end).max()?;
    let sorted = sorted_latencies(&transactions);
    let mean = sorted.iter().sum::<u64>() as f64 / sorted.len() as f64;
    let at = |share| quantile(&sorted, share).map(|latency| latency.0 as f64);
    let latencies = [at(0.5)?, mean, at(1.0 - share)?];
    Some(Figures { span: ((end - start).0 as f64).ln(), latencies: latencies.map(f64::ln) })
}

/// Of transactions, in nanoseconds.
pub(super) fn sorted_latencies(transactions: &[Transaction]) -> Vec<u64> {
    let mut sorted: Vec<u64> = transactions.iter().map(|one| (one.end - one.start).0).collect();
    sorted.sort_unstable();
    sorted
}

/// Replays the same plans on a queue.
fn judged(
    load: &SteadyLoad<'_>,
    share: f64,
    measured: &[Observed<'_>],
    model: DeviceModel,
) -> Judged {
    let mut judged = Judged { model, error: 0.0, explains: true };
    for observed in measured {
        judged.hold_against(load, share, observed);
        if judged.error > FAR {
            break;
        }
    }
    judged
}

impl Judged {
    /// Replays a plan on the queue, and sets what comes of it beside what was measured.
    fn hold_against(&mut self, load: &SteadyLoad<'_>, share: f64, observed: &Observed<'_>) {
        let Observed { calls, steady, figures: measured, .. } = observed;
        let mut drawn: Vec<Figures> = Vec::new();
        let mut used = Vec::new();
        for draw in 0..DRAWS {
            let window = (load.span, load.span + load.span);
            let replayed = self.model.simulate(load.workload, calls, draw, window);
            used.push(utilisation(&self.model, calls.processes, load.span, replayed.served));
            let found = figures(load, steady, share, calls.processes, &replayed.threads);
            let Some(found) = found else {
                self.explains = false;
                return;
            };
            drawn.push(found);
            let off = (measured.span - found.span).abs().exp_m1();
            if off > FAR {
                (self.error, self.explains) = (self.error.max(off), false);
                return;
            }
        }
        self.hold(measured.span, drawn.iter().map(|it| it.span).collect());
        if used.iter().sum::<f64>() / used.len() as f64 <= STABLE {
            for (place, measured) in measured.latencies.into_iter().enumerate() {
                self.hold(measured, drawn.iter().map(|it| it.latencies[place]).collect());
            }
        }
    }

    /// Sets one figure beside those of the queue.
    fn hold(&mut self, measured: f64, drawn: Vec<f64>) {
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let squares = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (drawn.len() as f64 - 1.0)).sqrt();
        let off = (measured - mean).abs();
        self.error = self.error.max(off.exp_m1());
        self.explains &= off <= EXPLAINS.ln_1p().max(DEVIATIONS * deviation);
    }
}

/// The queues with so many servers: short calls wait for them too, or do not. None where nothing
/// says how long a call takes that did not wait.
fn models_with(servers: u32, replays: &[Observed<'_>]) -> Vec<DeviceModel> {
    let everything = |_: &CallKind| true;
    let Some(all) = model_of(servers, replays, &everything) else { return Vec::new() };
    let mean = |times: &ServiceTimes| {
        times.measured.iter().map(|time| time.0).sum::<u64>() as f64 / times.measured.len() as f64
    };
    let longest = all.services.values().map(mean).fold(0.0, f64::max);
    let long = all.services.iter().filter(|(_, times)| mean(times) >= SHORT * longest);
    let long: BTreeSet<CallKind> = long.map(|(kind, _)| kind.clone()).collect();
    let is_same = long.len() == all.services.len();
    let without_short = model_of(servers, replays, &|kind| long.contains(kind));
    std::iter::once(all).chain(without_short.filter(|_| !is_same)).collect()
}

fn model_of(
    servers: u32,
    replays: &[Observed<'_>],
    is_served: &dyn Fn(&CallKind) -> bool,
) -> Option<DeviceModel> {
    let mut services: BTreeMap<CallKind, ServiceTimes> = BTreeMap::new();
    for replay in replays {
        collect_service_times(servers, replay, is_served, &mut services);
    }
    let is_known = services.values().all(|times| !times.measured.is_empty());
    is_known.then_some(DeviceModel { servers, occupancy: 1.0, services })
}

/// Adds the times of calls that did not wait.
fn collect_service_times(
    servers: u32,
    replay: &Observed<'_>,
    is_served: &dyn Fn(&CallKind) -> bool,
    services: &mut BTreeMap<CallKind, ServiceTimes>,
) {
    let PlannedCalls { processes, kinds, places, .. } = &replay.calls;
    for kind in kinds {
        let new = || ServiceTimes { measured: Vec::new(), is_served: is_served(kind) };
        services.entry(kind.clone()).or_insert_with(new);
    }
    let mut by_device: BTreeMap<u32, Vec<(Nanos, Nanos, usize)>> = BTreeMap::new();
    let both = processes.iter().zip(replay.threads).zip(places);
    for ((process, threads), places) in both {
        let calls = by_device.entry(process.device).or_default();
        for (went, places) in threads.iter().zip(places) {
            let times = went.times.iter().zip(places);
            calls.extend(times.map(|(time, kind)| (time.begin, time.duration, *kind)));
        }
    }
    let mut times: Vec<&mut ServiceTimes> = Vec::new();
    let mut by_kind: BTreeMap<&CallKind, &mut ServiceTimes> = services.iter_mut().collect();
    times.extend(kinds.iter().filter_map(|kind| by_kind.remove(kind)));
    for calls in by_device.values_mut() {
        calls.sort_unstable();
        let mut under_way: BinaryHeap<Reverse<Nanos>> = BinaryHeap::new();
        for (begin, duration, kind) in calls {
            let times = &mut times[*kind];
            if !times.is_served {
                times.measured.push(*duration);
                continue;
            }
            while under_way.peek().is_some_and(|Reverse(end)| *end <= *begin) {
                under_way.pop();
            }
            if under_way.len() < servers as usize {
                times.measured.push(*duration);
            }
            under_way.push(Reverse(*begin + *duration));
        }
    }
}
