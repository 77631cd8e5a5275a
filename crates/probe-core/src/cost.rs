//! What watching itself costs: the probe takes the time of its own work at some of the calls, in
//! the program and between its other work, where caches are as cold as they are.
//!
//! The time of a call is taken around the function alone. What the probe does between the two
//! readings of the clock is part of that time; what it does before and after is not, but of the
//! time of a call around it. Both go when a program makes a call no more, and neither is saved: the
//! program does not pay them when nobody watches.
//!
//! What the probe's work takes longer than at best, it mostly waits for memory that the program's own
//! has displaced from caches. It displaces some in turn, for which the program waits: that cannot be
//! measured, and is taken to be no longer.

use core::sync::atomic::{AtomicU64, Ordering};

/// Of so many beginnings and ends one is timed, at random.
const ONE_OF: u64 = 32;

/// Says which beginnings and ends are timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostSampling(u64);

impl CostSampling {
    /// Whether this one is. At random, so that no rhythm of the program's meets it.
    #[inline(always)]
    pub fn is_due(&mut self) -> bool {
        // Knuth's multiplier for 64 bits; the upper bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 32).is_multiple_of(ONE_OF)
    }
}

/// What watching a function was seen to cost, on the probe's clock.
#[repr(C)]
#[derive(Debug, Default)]
pub struct StubCost {
    /// Beginnings that were timed.
    pub beginnings: AtomicU64,
    /// Their time before the call's own begins.
    pub before: AtomicU64,
    /// Their time within the call's own.
    pub inside: AtomicU64,
    /// Ends that were timed.
    pub ends: AtomicU64,
    /// Their time, after the call's own has ended.
    pub after: AtomicU64,
    /// The shortest beginning; 0: none was timed.
    pub least_beginning: AtomicU64,
    /// The shortest end; 0: none was timed.
    pub least_end: AtomicU64,
}

impl StubCost {
    /// The probe worked on a call from `from` to `to`; the call's own time began at `start`.
    pub fn add_beginning(&self, from: u64, start: u64, to: u64) {
        let earlier = self.before.load(Ordering::Relaxed) + self.inside.load(Ordering::Relaxed);
        if is_interrupted(to.saturating_sub(from), earlier, &self.beginnings) {
            return;
        }
        self.beginnings.fetch_add(1, Ordering::Relaxed);
        self.before.fetch_add(start.saturating_sub(from), Ordering::Relaxed);
        self.inside.fetch_add(to.saturating_sub(start), Ordering::Relaxed);
        note_least(&self.least_beginning, to.saturating_sub(from));
    }

    /// A call's own time ended at `end`, and the probe worked on until `to`.
    pub fn add_end(&self, end: u64, to: u64) {
        let earlier = self.after.load(Ordering::Relaxed);
        if is_interrupted(to.saturating_sub(end), earlier, &self.ends) {
            return;
        }
        self.ends.fetch_add(1, Ordering::Relaxed);
        self.after.fetch_add(to.saturating_sub(end), Ordering::Relaxed);
        note_least(&self.least_end, to.saturating_sub(end));
    }
}

fn note_least(least: &AtomicU64, time: u64) {
    let before = least.load(Ordering::Relaxed);
    // Of two threads at once one may win that is not the shorter: it is among the shortest.
    if time > 0 && (before == 0 || time < before) {
        least.store(time, Ordering::Relaxed);
    }
}

/// Whether something else had the processor in a time that was taken: it is many times the mean of
/// those `earlier`, of which there are `count`. One such among a hundred would count as much as all
/// the others.
fn is_interrupted(time: u64, earlier: u64, count: &AtomicU64) -> bool {
    const TIMES: u64 = 16;
    /// Fewer have no mean that could be trusted: those that are left out do not change it.
    const FEWEST: u64 = 16;
    let count = count.load(Ordering::Relaxed);
    let mean = earlier.checked_div(count).unwrap_or_default();
    count >= FEWEST && mean > 0 && time > mean.saturating_mul(TIMES)
}

/// How much of a function's time the thread had a processor, at some of its calls.
#[repr(C)]
#[derive(Debug, Default)]
pub struct StubRunning {
    /// Calls of which that is known, each for those that it stands for.
    pub calls: AtomicU64,
    /// Their time, on the probe's clock.
    pub time: AtomicU64,
    /// The processor time of their threads meanwhile, in nanoseconds.
    pub ran: AtomicU64,
}

impl StubRunning {
    /// Asked of the first calls too: some functions are called a few times only, for long.
    const FIRST: u64 = 8;
    /// So many that were looked at tell how short a function's calls are.
    const ENOUGH: u64 = 256;

    /// Whether a call is to be looked at, and for how many of those that are due it then stands. To
    /// ask the kernel twice takes a microsecond, so that once enough were looked at, fewer are of calls
    /// that are shorter than `short` in the mean, on the probe's clock.
    pub fn is_due(&self, sampling: &mut CostSampling, short: u64) -> Option<u64> {
        let calls = self.calls.load(Ordering::Relaxed);
        if !sampling.is_due() {
            return (calls < Self::FIRST).then_some(1);
        }
        let are_short = || self.time.load(Ordering::Relaxed) < calls.saturating_mul(short);
        if calls < Self::ENOUGH || !are_short() {
            return Some(1);
        }
        sampling.is_due().then_some(ONE_OF)
    }

    /// A call has returned that stands for so many.
    pub fn add(&self, time: u64, ran: u64, calls: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.time.fetch_add(time * calls, Ordering::Relaxed);
        self.ran.fetch_add(ran * calls, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_is_timed_whatever_the_rhythm() {
        for rhythm in [1, 2, 3, 31, 32, 33, 64] {
            let mut sampling = CostSampling::default();
            let due = (0..rhythm * 32_000).filter(|turn| sampling.is_due() && turn % rhythm == 0);
            let share = due.count() as f64 / 1_000.0;
            assert!((0.85..1.15).contains(&share), "every {rhythm}th: {share}");
        }
    }

    #[test]
    fn the_first_calls_are_looked_at_and_then_some() {
        let running = StubRunning::default();
        let mut sampling = CostSampling::default();
        let mut seen = 0;
        for call in 0..3_200 {
            if let Some(calls) = running.is_due(&mut sampling, 10) {
                running.add(10, 9, calls);
                seen += 1;
            }
            assert!(call >= 8 || seen == call + 1, "the first eight");
        }
        assert!((70..150).contains(&seen), "{seen}");
        assert_eq!(running.time.load(Ordering::Relaxed), 10 * seen);
        assert_eq!(running.ran.load(Ordering::Relaxed), 9 * seen);
    }

    #[test]
    fn short_calls_are_looked_at_less_often_once_their_length_is_known() {
        // The later half of the calls does not run.
        let seen_of = |time: u64| {
            let running = StubRunning::default();
            let mut sampling = CostSampling::default();
            let mut seen = 0;
            for call in 0..640_000 {
                if let Some(calls) = running.is_due(&mut sampling, 100) {
                    running.add(time, if call < 320_000 { time } else { 0 }, calls);
                    seen += 1;
                }
            }
            let share = running.ran.load(Ordering::Relaxed) as f64
                / running.time.load(Ordering::Relaxed) as f64;
            assert!((0.45..0.55).contains(&share), "each half counts as much: {share}");
            seen
        };
        let (short, long) = (seen_of(99), seen_of(100));
        assert!((19_000..21_000).contains(&long), "one of 32: {long}");
        assert!((800..960).contains(&short), "256, then one of 1,024: {short}");
    }

    #[test]
    fn what_lies_in_a_calls_time_is_kept_apart() {
        let cost = StubCost::default();
        cost.add_beginning(100, 130, 135);
        cost.add_beginning(200, 210, 211);
        cost.add_end(300, 320);
        // A clock that another processor's is behind.
        cost.add_end(400, 390);
        let read = |field: &AtomicU64| field.load(Ordering::Relaxed);
        assert_eq!([read(&cost.beginnings), read(&cost.before), read(&cost.inside)], [2, 40, 6]);
        assert_eq!([read(&cost.ends), read(&cost.after)], [2, 20]);
        assert_eq!([read(&cost.least_beginning), read(&cost.least_end)], [11, 20]);
    }

    #[test]
    fn a_time_in_which_another_program_ran_is_no_cost() {
        let cost = StubCost::default();
        cost.add_beginning(0, 5_000, 5_100);
        let cold = cost.before.load(Ordering::Relaxed);
        assert_eq!(cold, 5_000, "the first is cold, and counts");
        for _ in 0..100 {
            cost.add_beginning(0, 100, 110);
            cost.add_end(0, 50);
        }
        cost.add_beginning(0, 1_000_000, 1_000_010);
        cost.add_end(0, 900);
        cost.add_end(0, 700);
        let read = |field: &AtomicU64| field.load(Ordering::Relaxed);
        assert_eq!([read(&cost.beginnings), read(&cost.before)], [101, 15_000]);
        assert_eq!(
            [read(&cost.ends), read(&cost.after)],
            [101, 5_700],
            "16 times the mean is many"
        );
    }
}
