//! When the next operation starts: at once (a closed loop) or at a planned moment (an open one).
//!
//! A closed loop asks how fast the device can go. An open loop asks how long a request waits at a
//! given rate, so its latencies count from the *intended* start: a stall is charged to all the
//! requests that it held up (Tene, "How NOT to Measure Latency"; Schroeder et al., "Open Versus
//! Closed: A Cautionary Tale", NSDI 2006).

use crate::clock::Clock;
use crate::gate::Gate;
use crate::units::{Nanos, PerSecond};

/// The start of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationStart {
    /// When the operation should have started: where its latency counts from.
    pub intended: Nanos,
    /// When the operation did start, on the run's clock.
    pub start: Nanos,
    /// The generator's own delay from `intended` to `start`; `None` when the device held the worker
    /// up.
    pub scheduling_delay: Option<Nanos>,
}

/// Decides when the next operation starts.
pub trait Pace {
    /// Waits for the next start. `None`: there is none before the window closes.
    fn next<C: Clock>(
        &mut self,
        clock: &C,
        gate: &Gate,
        previous_end: Nanos,
    ) -> Option<OperationStart>;
}

/// The next operation starts as soon as the one before has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedLoop {
    /// Two clock readings for each operation.
    TwoReadings,
    /// The end of one operation is the start of the next: cheaper, but the loop's own work is
    /// inside the latency.
    Chained,
}

impl Pace for ClosedLoop {
    #[inline]
    fn next<C: Clock>(
        &mut self,
        clock: &C,
        _: &Gate,
        previous_end: Nanos,
    ) -> Option<OperationStart> {
        let start = match self {
            Self::TwoReadings => clock.now(),
            Self::Chained => previous_end,
        };
        Some(OperationStart { intended: start, start, scheduling_delay: None })
    }
}

/// Requests arrive on a schedule that knows nothing of the device; the workers of a process share
/// them, and whoever is free takes the next.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    schedule: Schedule,
}

impl OpenLoop {
    /// Workers of one process are given clones of one schedule.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule }
    }
}

/// A worker that waits looks this often whether the run has been ended.
const CLOSE_CHECK: Nanos = Nanos::from_millis(50);

impl Pace for OpenLoop {
    fn next<C: Clock>(&mut self, clock: &C, gate: &Gate, _: Nanos) -> Option<OperationStart> {
        let intended = self.schedule.moment(gate.next_arrival());
        let mut now = clock.now();
        let waits = now < intended;
        while now < intended {
            if gate.closes() <= intended.min(now + CLOSE_CHECK) {
                return None;
            }
            clock.wait_until(intended.min(now + CLOSE_CHECK));
            now = clock.now();
        }
        Some(OperationStart {
            intended,
            start: now,
            scheduling_delay: waits.then(|| now - intended),
        })
    }
}

/// The moments at which requests arrive: at constant or exponential gaps.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: Nanos,
    /// Sums of the gaps of one round of the schedule, in nanoseconds; the last is its length.
    offsets: std::sync::Arc<[f64]>,
}

/// Gaps of a Poisson schedule before it repeats.
const POISSON_ROUND: usize = 1 << 16;

impl Schedule {
    /// Equal gaps from `start` on.
    #[must_use]
    pub fn constant(start: Nanos, rate: PerSecond) -> Self {
        Self { start, offsets: [1e9 / rate.0].into() }
    }

    /// Independent users: exponential gaps with the same mean, from a recorded seed.
    #[must_use]
    pub fn poisson(start: Nanos, rate: PerSecond, seed: u64) -> Self {
        let mut random = SplitMix(seed);
        let gaps: Vec<f64> = (0..POISSON_ROUND).map(|_| -random.uniform().ln()).collect();
        // Scaled to the exact mean: 65,536 random gaps alone would be off by 0.4 %.
        let scale = 1e9 / rate.0 * gaps.len() as f64 / gaps.iter().sum::<f64>();
        let offsets = gaps.iter().scan(0.0, |sum, gap| {
            *sum += gap * scale;
            Some(*sum)
        });
        Self { start, offsets: offsets.collect() }
    }

    /// When requests arrive in this range of time, in order: those that a run was to do.
    #[must_use]
    pub fn moments_in(&self, range: std::ops::Range<Nanos>) -> Vec<Nanos> {
        let moments = (0..).map(|number| self.moment(number));
        let before_end = moments.take_while(|moment| *moment < range.end);
        before_end.filter(|moment| *moment >= range.start).collect()
    }

    /// When request `number` arrives.
    fn moment(&self, number: u64) -> Nanos {
        let round = self.offsets.len() as u64;
        let length = self.offsets[self.offsets.len() - 1];
        let within = match number % round {
            0 => 0.0,
            place => self.offsets[place as usize - 1],
        };
        self.start + Nanos(((number / round) as f64 * length + within).round() as u64)
    }
}

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next 64 random bits, all of equal quality.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in (0, 1].
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const MILLI: u64 = 1_000_000;

    /// A clock that only waiting moves, which wakes up late, and can be told to close the gate.
    #[derive(Default)]
    struct Sleeper<'a> {
        now: Cell<u64>,
        late: u64,
        waits: RefCell<Vec<u64>>,
        closes: Option<(u64, &'a Gate)>,
    }

    impl Clock for Sleeper<'_> {
        fn now(&self) -> Nanos {
            Nanos(self.now.get())
        }

        fn wait_until(&self, moment: Nanos) {
            assert!(moment.0 > self.now.get(), "waits for a moment that has passed");
            self.now.set(moment.0 + self.late);
            self.waits.borrow_mut().push(moment.0);
            if let Some((at, gate)) = self.closes.filter(|(at, _)| moment.0 >= *at) {
                gate.close_at(Nanos(at));
            }
        }
    }

    /// The first start of an open loop whose second request is due so late.
    fn second_start(clock: &Sleeper<'_>, gate: &Gate, due: u64) -> Option<OperationStart> {
        let rate = PerSecond(1e9 / due as f64);
        let mut pace = OpenLoop::new(Schedule::constant(Nanos::ZERO, rate));
        gate.next_arrival();
        pace.next(clock, gate, Nanos::ZERO)
    }

    #[test]
    fn the_first_gap_lies_between_the_first_request_and_the_second() {
        let start = Nanos(1_000);
        let schedule = Schedule::poisson(start, PerSecond(1e3), 7);
        let after = |gaps: usize| start + Nanos(schedule.offsets[gaps - 1].round() as u64);
        assert_eq!(schedule.moment(0), start);
        assert_eq!((schedule.moment(1), schedule.moment(2)), (after(1), after(2)));
        let round = POISSON_ROUND as u64;
        assert_eq!(schedule.moment(round), after(POISSON_ROUND), "a round ends with its last gap");
    }

    #[test]
    fn a_closed_loop_starts_at_once_or_where_the_last_call_ended() {
        let clock = Sleeper { now: Cell::new(70), ..Sleeper::default() };
        let gate = Gate::default();
        for (mut pace, start) in [(ClosedLoop::TwoReadings, 70), (ClosedLoop::Chained, 60)] {
            let start = Nanos(start);
            let expected = OperationStart { intended: start, start, scheduling_delay: None };
            assert_eq!(pace.next(&clock, &gate, Nanos(60)), Some(expected));
        }
    }

    #[test]
    fn a_request_that_waited_for_the_device_has_no_delay_of_the_generator() {
        for now in [10 * MILLI, 10 * MILLI + 1, 90 * MILLI] {
            let clock = Sleeper { now: Cell::new(now), ..Sleeper::default() };
            let start = second_start(&clock, &Gate::default(), 10 * MILLI).unwrap();
            assert_eq!(start.intended, Nanos(10 * MILLI));
            assert_eq!((start.start, start.scheduling_delay), (Nanos(now), None));
            assert!(clock.waits.borrow().is_empty());
        }
    }

    #[test]
    fn waking_up_late_is_the_delay_of_the_generator() {
        let clock = Sleeper { late: 7, ..Sleeper::default() };
        let start = second_start(&clock, &Gate::default(), 10 * MILLI).unwrap();
        assert_eq!(start.start, Nanos(10 * MILLI + 7));
        assert_eq!(start.scheduling_delay, Some(Nanos(7)));
    }

    #[test]
    fn a_request_that_is_due_when_the_window_closes_is_not_begun() {
        for (closes, begins) in
            [(10 * MILLI - 1, false), (10 * MILLI, false), (10 * MILLI + 1, true)]
        {
            let gate = Gate::default();
            gate.close_at(Nanos(closes));
            let start = second_start(&Sleeper::default(), &gate, 10 * MILLI);
            assert_eq!(start.is_some(), begins, "closes at {closes}");
        }
    }

    /// Looks every 50 ms whether the run has been ended, however far away the next request is.
    #[test]
    fn a_worker_that_waits_hears_that_the_run_has_ended() {
        let clock = Sleeper::default();
        assert!(second_start(&clock, &Gate::default(), 120 * MILLI).is_some());
        assert_eq!(*clock.waits.borrow(), [50 * MILLI, 100 * MILLI, 120 * MILLI]);
        let gate = Gate::default();
        let clock = Sleeper { closes: Some((50 * MILLI, &gate)), ..Sleeper::default() };
        assert_eq!(second_start(&clock, &gate, 120 * MILLI), None);
        assert_eq!(*clock.waits.borrow(), [50 * MILLI]);
        // An end that is known is not waited for.
        let gate = Gate::default();
        gate.close_at(Nanos(80 * MILLI));
        let clock = Sleeper::default();
        assert_eq!(second_start(&clock, &gate, 120 * MILLI), None);
        assert_eq!(*clock.waits.borrow(), [50 * MILLI]);
    }

    #[test]
    fn constant_gaps_are_those_of_the_rate() {
        let schedule = Schedule::constant(Nanos(10), PerSecond(3.0));
        let moments: Vec<u64> = (0..4).map(|number| schedule.moment(number).0).collect();
        assert_eq!(moments, [10, 333_333_343, 666_666_677, 1_000_000_010]);
    }

    #[test]
    fn poisson_gaps_are_exponential_and_their_mean_is_exact() {
        let schedule = Schedule::poisson(Nanos(10), PerSecond(1000.0), 1);
        let count = POISSON_ROUND as u64;
        assert_eq!(count, 65_536);
        assert_eq!(schedule.moment(0), Nanos(10));
        let length = (schedule.moment(count) - Nanos(10)).0;
        assert!(length.abs_diff(count * MILLI) <= 1, "{length}");
        let gaps: Vec<f64> = (0..count)
            .map(|number| (schedule.moment(number + 1) - schedule.moment(number)).0 as f64 / 1e6)
            .collect();
        for times in [0.5, 1.0, 2.0, 4.0] {
            let longer = gaps.iter().filter(|gap| **gap > times).count() as f64 / count as f64;
            assert!((longer - f64::exp(-times)).abs() < 0.01, "{times}: {longer}");
        }
        // A second round has the gaps of the first.
        for number in [1, 2, 1000] {
            let again = schedule.moment(count + number) - schedule.moment(count);
            assert!(again.0.abs_diff((schedule.moment(number) - Nanos(10)).0) <= 1);
        }
    }

    #[test]
    fn the_moments_of_a_range_are_known_without_a_run() {
        let schedule = Schedule::constant(Nanos(10), PerSecond(1e6));
        let moments = schedule.moments_in(Nanos(1_010)..Nanos(3_010));
        assert_eq!(moments, [Nanos(1_010), Nanos(2_010)]);
        let poisson = Schedule::poisson(Nanos::ZERO, PerSecond(1000.0), 3);
        let all = poisson.moments_in(Nanos::ZERO..Nanos::from_secs(70));
        assert!(all.is_sorted() && all.len().abs_diff(70_000) < 5 * 265, "{}", all.len());
    }

    #[test]
    fn a_seed_decides_a_schedule() {
        let moment = |seed| Schedule::poisson(Nanos::ZERO, PerSecond(10.0), seed).moment(100);
        assert_eq!(moment(7), moment(7));
        assert_ne!(moment(7), moment(8));
    }

    /// The numbers of the authors' own program.
    #[test]
    fn split_mix_is_that_of_its_authors() {
        let numbers = [6457827717110365317_u64, 3203168211198807973, 9817491932198370423];
        let mut random = SplitMix(1234567);
        assert_eq!(numbers, std::array::from_fn(|_| random.bits()));
        let mut random = SplitMix(1234567);
        for number in numbers {
            // 53 bits, all that an f64 holds below 1; and never 0, whose logarithm there is not.
            let share = random.uniform() * 2f64.powi(53);
            assert_eq!(share, (number / 2048 + 1) as f64);
        }
    }
}
