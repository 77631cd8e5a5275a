//! How many devices carry a recorded load: from replays on one, by a queue that explains them.
//!
//! The load is replayed on that queue, so many times and on so many of them, with the very plan that
//! a device would be given. Nothing is said of a queue that is busier than [`MOST_UTILISATION`]: there
//! a latency hangs on the last percent of a service time.

mod device_model;
mod fit;

use tapstone_measure::exceedance::GeneratorHealth;
use tapstone_measure::interval::Estimate;
use tapstone_measure::latency_bound::LatencyBound;
use tapstone_measure::units::{Nanos, PerSecond};

pub use self::device_model::DeviceModel;
use self::device_model::PlannedCalls;
use self::fit::sorted_latencies;
pub use self::fit::{DeviceFit, MeasuredReplay, NoDeviceModel, fit_device};
use crate::measured::measured_workload;
use crate::plan::{ReplayOptions, plan_replay};
use crate::scale_limit::{ScaleVerdict, judge_level, transactions_level};
use crate::steady::SteadyLoad;
use crate::steps::ReplayProcess;

/// Nothing is predicted for servers that are busier.
pub const MOST_UTILISATION: f64 = 0.9;
/// Replays with random starts of their own that a prediction is made of, at least, ...
const FEWEST_REPLAYS: u64 = 6;
/// ... and at most, ...
const MOST_REPLAYS: u64 = 60;
/// ... until so many transactions are in them.
const ENOUGH_TRANSACTIONS: u64 = 6_000;
/// Calls of a replay beyond which no higher scale is looked at.
const MOST_CALLS: usize = 2_000_000;

/// What so many devices are predicted to carry.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedCapacity {
    /// Devices, among which the clients are dealt.
    pub devices: u32,
    /// They carry the load so many times at least, by the queue that carries least; 0: not known.
    pub fewest: u32,
    /// And by the one that carries most.
    pub most: u32,
    /// A higher scale than the fewest was not looked at: it needs too many threads or calls.
    pub is_capped: bool,
    /// What is predicted at the fewest; `None` for 0.
    pub load: Option<PredictedLoad>,
}

/// A scale on some devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedLoad {
    /// Transactions.
    pub rate: PerSecond,
    /// The share of their time in which the servers work.
    pub utilisation: f64,
    /// The bound's quantile of transactions, in nanoseconds, with the interval of its mean over
    /// random starts (95 %). How well the queue is the device is not in it.
    pub latency: Estimate,
}

/// A load on devices that are such queues.
#[derive(Clone, Copy, Debug)]
pub struct CapacityQuestion<'a> {
    /// The load.
    pub load: &'a SteadyLoad<'a>,
    /// How it is planned, but for scale and devices.
    pub options: &'a ReplayOptions,
    /// What its transactions are to keep.
    pub bound: LatencyBound,
}

/// What the servers of a plan's devices do in the time in which all clients are there.
fn utilisation(
    model: &DeviceModel,
    processes: &[ReplayProcess],
    span: Nanos,
    served: Nanos,
) -> f64 {
    let devices = processes.iter().map(|process| process.device + 1).max().unwrap_or(1);
    served.0 as f64 / (span.0 as f64 * f64::from(model.servers()) * f64::from(devices)).max(1.0)
}

/// The value below which that share of sorted ones lies; `None` of none.
fn quantile(sorted: &[u64], share: f64) -> Option<Nanos> {
    let last = sorted.len().checked_sub(1)?;
    Some(Nanos(sorted[((sorted.len() as f64 * share) as usize).min(last)]))
}

impl CapacityQuestion<'_> {
    /// The highest scale that so many devices carry, by each of the queues that explain one.
    #[must_use]
    pub fn predict(&self, fit: &DeviceFit, devices: u32) -> PredictedCapacity {
        let carried = fit.models.iter().map(|model| self.carried(model, devices));
        let carried: Vec<(u32, bool, Option<PredictedLoad>)> = carried.collect();
        let most = carried.iter().map(|of| of.0).max().unwrap_or_default();
        let least = carried.into_iter().min_by_key(|of| of.0);
        let (fewest, is_capped, load) = least.unwrap_or_default();
        PredictedCapacity { devices, fewest, most, is_capped, load }
    }

    /// The highest scale within the bound on such devices; whether a limit of replays ended the
    /// search; and the load at that scale.
    fn carried(&self, model: &DeviceModel, devices: u32) -> (u32, bool, Option<PredictedLoad>) {
        let mut within = (0, None);
        let mut beyond = None;
        let mut is_capped = false;
        let mut scale = 1;
        while beyond.is_none_or(|beyond| beyond > within.0 + 1) {
            match self.look(model, devices, scale) {
                None => (beyond, is_capped) = (Some(scale), true),
                Some((ScaleVerdict::Within, load)) => within = (scale, Some(load)),
                Some(_) => (beyond, is_capped) = (Some(scale), false),
            }
            scale = beyond.map_or(2 * within.0, |beyond| within.0 + (beyond - within.0) / 2);
        }
        (within.0, is_capped, within.1)
    }

    /// What becomes of a scale; `None`: it is not planned, or has too many calls.
    fn look(
        &self,
        model: &DeviceModel,
        devices: u32,
        scale: u32,
    ) -> Option<(ScaleVerdict, PredictedLoad)> {
        let share = self.bound.share_beyond();
        let mut all = Vec::new();
        let mut quantiles = Vec::new();
        let mut used = Vec::new();
        let mut calls = 0;
        for round in 0..MOST_REPLAYS {
            let is_enough = all.len() as u64 >= ENOUGH_TRANSACTIONS || calls > MOST_CALLS;
            if round >= FEWEST_REPLAYS && is_enough {
                break;
            }
            // Other starts than those of the replays that were measured.
            let seed = self.options.seed.wrapping_add(round + 1);
            let options =
                ReplayOptions { scale, devices, steady: true, seed, ..self.options.clone() };
            let plan = plan_replay(self.load.workload, &options).ok()?;
            let threads = plan.processes.iter().flat_map(|process| &process.threads);
            calls += threads.map(|thread| thread.steps.len()).sum::<usize>();
            if calls > MOST_CALLS && round < FEWEST_REPLAYS {
                return None;
            }
            let window = (self.load.span, self.load.span + self.load.span);
            let planned = PlannedCalls::new(&plan.processes);
            let replayed = model.simulate(self.load.workload, &planned, seed, window);
            used.push(utilisation(model, &plan.processes, self.load.span, replayed.served));
            let measured =
                measured_workload(self.load.workload, &plan.processes, &replayed.threads);
            let transactions =
                self.load.steady_part(&plan.processes).transactions(&measured).ok()?;
            let sorted = sorted_latencies(&transactions);
            quantiles.push(quantile(&sorted, 1.0 - share)?.0 as f64);
            all.extend(transactions);
        }
        let utilisation = used.iter().sum::<f64>() / used.len() as f64;
        let rate = self.load.rate(scale);
        let level = transactions_level(&all, self.bound, rate, GeneratorHealth::Sound);
        let verdict = match judge_level(&level, share) {
            _ if utilisation > MOST_UTILISATION => ScaleVerdict::Open,
            verdict => verdict,
        };
        let latency = Estimate::mean_of(&quantiles)?;
        Some((verdict, PredictedLoad { rate, utilisation, latency }))
    }
}

#[cfg(test)]
mod tests;
