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
