//! Whether a finding's time is the program's, or that of the stops at its system calls.
//!
//! A stop is a switch to the tracer and back, which varies more than what the program does itself:
//! taking it off a time would leave a remainder that is mostly noise.

use tapstone_measure::units::Nanos;

use super::{Finding, Removed, words};

/// From this part of a finding's time on, what the stops cost decides what would be saved.
const MOST: f64 = 0.1;

/// The system calls that were stopped at.
pub(crate) struct Stops<'a> {
    /// What one stop costs the program.
    pub(crate) cost: Nanos,
    /// Each: its thread, an index into [`Timeline::threads`](crate::timeline::Timeline::threads),
    /// and its beginning.
    pub(crate) moments: Box<dyn Iterator<Item = (usize, Nanos)> + 'a>,
}

impl Stops<'_> {
    /// The program was not stopped: nothing is to be subtracted.
    pub(crate) fn none() -> Self {
        Self { cost: Nanos::ZERO, moments: Box::new(std::iter::empty()) }
    }

    /// For each finding, why nothing is predicted of it: when its time is in good part that of
    /// stops.
    pub(crate) fn objections(self, findings: &[Finding]) -> Vec<Option<String>> {
        let mut counts = vec![0; findings.len()];
        for (thread, moment) in self.moments {
            for (finding, count) in findings.iter().zip(&mut counts) {
                *count += u64::from(holds(&finding.removed, thread, moment));
            }
        }
        let cost = self.cost;
        let objection = |(finding, count): (&Finding, u64)| {
            let all = Nanos(cost.0.saturating_mul(count));
            (count > 0 && all.0 as f64 >= MOST * finding.time.0 as f64).then(|| {
                let calls = words::counted(count, "system call");
                format!(
                    "{calls} in it stopped for the tracer, at about {cost} each: its time is not \
                     what the program takes without --syscalls, and predicts nothing"
                )
            })
        };
        findings.iter().zip(counts).map(objection).collect()
    }
}

/// Whether a moment of a thread would be removed.
fn holds(removed: &[Removed], thread: usize, moment: Nanos) -> bool {
    let begun =
        removed.partition_point(|stretch| (stretch.thread, stretch.start) <= (thread, moment));
    let last = begun.checked_sub(1).map(|at| removed[at]);
    last.is_some_and(|stretch| stretch.thread == thread && moment < stretch.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings;
    use crate::operation::Operations;
    use crate::synthetic::{Story, micros, millis};

    #[test]
    fn time_that_is_the_tracers_predicts_nothing() {
        let timeline = Story::new()
            .thread(|told| {
                told.enter("SCardEndTransaction").leaf("usleep", millis(50)).exit();
                for _ in 0..100 {
                    told.leaf("getprotobynumber", micros(100)).with(|leaf| leaf.a = 6);
                }
            })
            .timeline();
        let findings = findings::find(&timeline, &Operations::whole(&timeline), []);
        let places: Vec<_> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["SCardEndTransaction", "getprotobynumber"]);
        // One in the sleep, four in each lookup, and one that another thread makes.
        let lookups =
            (0..100).flat_map(|at| [1, 3, 5, 7].map(|part| (0, micros(50_000 + 100 * at + part))));
        let moments = [(0, Nanos::ZERO), (1, micros(1))].into_iter().chain(lookups);
        let stops = Stops { cost: micros(20), moments: Box::new(moments) };
        let [None, Some(objection)] = &stops.objections(&findings)[..] else { panic!() };
        // The first lookup is needed, and no part of the finding.
        let says = "396 system calls in it stopped for the tracer, at about 20.0 µs each";
        assert!(objection.starts_with(says), "{objection}");
        assert_eq!(Stops::none().objections(&findings), [None, None]);
    }
}
