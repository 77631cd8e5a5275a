//! Every arrival of an open loop's schedule, with what became of it. The schedule is known without
//! the run, so requests that nobody got to are counted, and not forgotten.

use tapstone_measure::exceedance::{ArrivalBatch, LEVEL_BATCHES};
use tapstone_measure::latency_bound::LatencyBound;
use tapstone_measure::pace::Schedule;
use tapstone_measure::units::{Nanos, PerSecond};

use super::gather::{Gathered, SampleSink};
use super::plan::{CasePlan, LoadPlan};
use crate::protocol::RawSample;

/// Keeps samples in memory.
#[derive(Debug, Default)]
pub(super) struct SampleStore(Vec<RawSample>);

impl SampleSink for SampleStore {
    fn take(&mut self, _: &[String], samples: &[RawSample]) -> Result<(), String> {
        self.0.extend(samples);
        Ok(())
    }
}

/// Arrivals of a level in their order, those that filled the queue left out.
pub(super) struct LevelArrivals {
    arrivals: Vec<Arrival>,
    closed: Nanos,
}

/// A request by its intended start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    intended: Nanos,
    /// From there to its end; `None`: it had not ended, or failed.
    latency: Option<Nanos>,
}

impl Arrival {
    /// When it had ended; `None`: it had not, or failed.
    fn end(&self) -> Option<Nanos> {
        self.latency.map(|latency| self.intended + latency)
    }
}

impl LevelArrivals {
    /// Of a case whose processes have followed schedules of these seeds.
    pub(super) fn new(
        plan: &CasePlan,
        gathered: &Gathered,
        processes: usize,
        samples: SampleStore,
        filling: u64,
    ) -> Self {
        let window = gathered.opened..gathered.closed;
        let mut moments = Vec::new();
        if let LoadPlan::Open { rate, poisson } = plan.load {
            for place in 0..processes {
                let share = PerSecond(rate.0 / processes as f64);
                let seed = plan.common.seed.wrapping_add(place as u64);
                let schedule = if poisson {
                    Schedule::poisson(gathered.started, share, seed)
                } else {
                    Schedule::constant(gathered.started, share)
                };
                moments.extend(schedule.moments_in(window.clone()));
            }
        }
        moments.sort_unstable();
        let mut arrivals = accounted(&moments, samples.0);
        arrivals.drain(..(filling as usize).min(arrivals.len()));
        Self { arrivals, closed: gathered.closed }
    }

    /// Judged by this bound. What arrived so late that it could still have stayed within the bound
    /// when the window closed is left out.
    pub(super) fn bounded_by(mut self, bound: LatencyBound) -> BoundedArrivals {
        let last = Nanos(self.closed.0.saturating_sub(bound.longest.0));
        self.arrivals.retain(|arrival| arrival.intended <= last);
        BoundedArrivals { arrivals: self.arrivals, closed: self.closed, bound }
    }
}

/// Each moment of the schedule with the sample of its request, if there is one.
fn accounted(moments: &[Nanos], mut samples: Vec<RawSample>) -> Vec<Arrival> {
    samples.sort_unstable_by_key(|sample| sample.start);
    let mut samples = samples.into_iter().peekable();
    let find = |moment: &Nanos| {
        while samples.next_if(|sample| sample.start < *moment).is_some() {}
        let done = samples.next_if(|sample| sample.start == *moment);
        let latency = done.filter(|sample| sample.code == 0).map(|sample| sample.latency);
        Arrival { intended: *moment, latency }
    };
    moments.iter().map(find).collect()
}

/// Arrivals of which it is known whether they stayed within a bound.
pub(super) struct BoundedArrivals {
    arrivals: Vec<Arrival>,
    closed: Nanos,
    bound: LatencyBound,
}

impl BoundedArrivals {
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals.len() as u64
    }

    pub(super) fn beyond(&self) -> u64 {
        self.arrivals.iter().filter(|arrival| self.is_beyond(arrival)).count() as u64
    }

    fn is_beyond(&self, arrival: &Arrival) -> bool {
        arrival.latency.is_none_or(|latency| latency > self.bound.longest)
    }

    /// The bounded quantile of the latency; `None` where it lies among those that had not ended.
    pub(super) fn quantile(&self) -> Option<Nanos> {
        let mut latencies: Vec<Nanos> =
            self.arrivals.iter().filter_map(|arrival| arrival.latency).collect();
        latencies.sort_unstable();
        let within = (1.0 - self.bound.share_beyond()) * self.arrivals.len() as f64;
        latencies.get((within.ceil() as usize).checked_sub(1)?).copied()
    }

    /// In batches of equally many. A request that had not ended has waited until the window closed.
    pub(super) fn batches(&self) -> Vec<ArrivalBatch> {
        let each = self.arrivals.len() / LEVEL_BATCHES;
        if each == 0 {
            return Vec::new();
        }
        let waited = |arrival: &Arrival| arrival.latency.unwrap_or(self.closed - arrival.intended);
        // The last end so far; `None` from the first request on that had not ended.
        let mut ended = None;
        let batch = |(place, arrivals): (usize, &[Arrival])| {
            let before = ended;
            let last = arrivals.iter().map(Arrival::end).collect::<Option<Vec<_>>>();
            let last = last.and_then(|ends| ends.into_iter().max());
            ended = match place {
                0 => last,
                _ => last.zip(ended).map(|(last, before)| last.max(before)),
            };
            ArrivalBatch {
                arrivals: arrivals.len() as u64,
                beyond: arrivals.iter().filter(|arrival| self.is_beyond(arrival)).count() as u64,
                mean_latency: Nanos(
                    arrivals.iter().map(waited).sum::<Nanos>().0 / arrivals.len().max(1) as u64,
                ),
                shortest_latency: arrivals.iter().map(waited).min().unwrap_or_default(),
                taken: ended.zip(before).map(|(end, before)| end - before),
            }
        };
        let batches = self.arrivals.chunks_exact(each).take(LEVEL_BATCHES);
        batches.enumerate().map(batch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(start: u64, latency: u64, code: u64) -> RawSample {
        RawSample { worker: 0, lane: 0, start: Nanos(start), latency: Nanos(latency), code }
    }

    #[test]
    fn requests_that_nobody_got_to_and_failures_lie_beyond_the_bound() {
        let moments: Vec<Nanos> = (0..100).map(|at| Nanos(at * 10)).collect();
        // Of each ten: one fails, one is never begun, one takes long. Samples come in any order,
        // and those from before the window are nobody's.
        let mut samples: Vec<RawSample> = (0..100)
            .filter(|at| at % 10 != 4)
            .map(|at| sample(at * 10, if at % 10 == 5 { 900 } else { 5 }, u64::from(at % 10 == 3)))
            .collect();
        samples.push(sample(7, 5, 0));
        samples.reverse();
        let arrivals = accounted(&moments, samples);
        let level = LevelArrivals { arrivals, closed: Nanos(1_500) };
        let bound: LatencyBound = "p50 <= 500ns".parse().unwrap();
        let bounded = level.bounded_by(bound);
        assert_eq!((bounded.arrivals(), bounded.beyond()), (100, 30));
        assert_eq!(bounded.quantile(), Some(Nanos(5)));
        let batches = bounded.batches();
        assert_eq!(batches.len(), LEVEL_BATCHES);
        assert_eq!(batches.iter().map(|batch| batch.beyond).sum::<u64>(), 30);
        assert!(batches.iter().all(|batch| batch.shortest_latency == Nanos(5)));
    }

    #[test]
    fn a_batch_takes_from_the_last_end_before_it_to_its_own() {
        // A request each 10 ns on a device that takes 30 ns; the 91st never ends.
        let moments: Vec<Nanos> = (0..100).map(|at| Nanos(at * 10)).collect();
        let served = |at: u64| sample(at * 10, 30 * (at + 1) - at * 10, 0);
        let samples = (0..100).filter(|at| *at != 90).map(served).collect();
        let arrivals = accounted(&moments, samples);
        let level = LevelArrivals { arrivals, closed: Nanos(10_000) };
        let batches = level.bounded_by("p50 <= 5us".parse().unwrap()).batches();
        let taken: Vec<Option<Nanos>> = batches.iter().map(|batch| batch.taken).collect();
        assert_eq!(taken[0], None);
        assert_eq!(taken[1..18], [Some(Nanos(5 * 30)); 17]);
        assert_eq!(taken[18..], [None; 2]);
    }

    #[test]
    fn who_arrives_too_late_to_be_judged_is_left_out() {
        let moments: Vec<Nanos> = (0..100).map(|at| Nanos(at * 10)).collect();
        let level =
            LevelArrivals { arrivals: accounted(&moments, Vec::new()), closed: Nanos(1_000) };
        let bounded = level.bounded_by("p99 <= 500ns".parse().unwrap());
        assert_eq!((bounded.arrivals(), bounded.beyond()), (51, 51));
        assert_eq!(bounded.quantile(), None);
    }
}
