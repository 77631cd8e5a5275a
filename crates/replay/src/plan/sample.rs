//! Which results of a replay are kept and judged: all, or of very many a sample that is drawn before
//! the replay begins, so that what is known of it holds for the rest, too.

use std::collections::BTreeMap;

use tapstone_measure::pace::SplitMix;
use tapstone_workload::OperationKind;

use super::{SPARE_BYTES, work_of};
use crate::steps::{ReplayProcess, ReplayStep};

/// Operations of one kind that are judged at most. When none of so many is wrong, at most 0.03 % of
/// all are, at a confidence of 95 % (1 − 0.05^(1/n)).
const MOST_JUDGED: u64 = 10_000;

/// Their results take so many bytes at most, all together.
const MOST_BYTES: u64 = 32 << 20;

/// How many operations of a kind are still to be drawn from how many (Vitter, Faster Methods for
/// Random Sampling, 1984, algorithm S).
#[derive(Clone, Copy, Debug, Default)]
struct Drawn {
    left: u64,
    wanted: u64,
    bytes: u64,
}

/// Marks the steps whose results are judged.
pub(super) fn draw_judged(processes: &mut [ReplayProcess], seed: u64) {
    let mut kinds: BTreeMap<OperationKind, Drawn> = BTreeMap::new();
    for thread in processes.iter().flat_map(|process| &process.threads) {
        for_each_operation(&thread.steps, |kind, places| {
            let drawn = kinds.entry(kind).or_default();
            drawn.left += 1;
            drawn.bytes +=
                places.iter().map(|place| result_bytes(&thread.steps[*place])).sum::<u64>();
        });
    }
    limit(&mut kinds);
    let mut random = SplitMix(seed);
    for thread in processes.iter_mut().flat_map(|process| &mut process.threads) {
        let mut judged = Vec::new();
        for_each_operation(&thread.steps, |kind, places| {
            let drawn = kinds.get_mut(&kind).expect("its operations were counted above");
            if random.bits() % drawn.left < drawn.wanted {
                drawn.wanted -= 1;
                judged.extend_from_slice(places);
            }
            drawn.left -= 1;
        });
        for place in judged {
            thread.steps[place].is_judged = true;
        }
    }
}

/// How many of each kind are wanted.
fn limit(kinds: &mut BTreeMap<OperationKind, Drawn>) {
    for drawn in kinds.values_mut() {
        drawn.wanted = drawn.left.min(MOST_JUDGED);
    }
    let bytes =
        |drawn: &Drawn| u128::from(drawn.bytes) * u128::from(drawn.wanted) / u128::from(drawn.left);
    let all: u128 = kinds.values().map(bytes).sum();
    for drawn in kinds.values_mut().filter(|_| all > u128::from(MOST_BYTES)) {
        // Of each kind one at least, and no more than there is room for.
        drawn.wanted = ((u128::from(drawn.wanted) * u128::from(MOST_BYTES) / all) as u64).max(1);
    }
}

fn result_bytes(step: &ReplayStep) -> u64 {
    u64::from(if step.gives_result() { step.room.saturating_sub(SPARE_BYTES) } else { 0 })
}

/// An operation of a session, and the places of the calls that follow its beginning.
struct Operation {
    kind: OperationKind,
    places: Vec<usize>,
}

/// Tells each operation of a thread: its kind, and the places of the calls that it is given input
/// and gives results by. It goes from its beginning to the next one of its session. Where another thread
/// came in between nothing is told: what it was given is not known.
fn for_each_operation(steps: &[ReplayStep], mut tell: impl FnMut(OperationKind, &[usize])) {
    let mut open: BTreeMap<(Option<u32>, &str), Operation> = BTreeMap::new();
    let mut tell_any = |Operation { kind, places }| {
        if !places.is_empty() {
            tell(kind, &places);
        }
    };
    for (place, step) in steps.iter().enumerate() {
        let Some(work) = work_of(step.call.name()) else { continue };
        let key = (step.session, work);
        if let Some(mechanism) = step.mechanism {
            let kind = OperationKind { function: work, mechanism: Some(mechanism.number) };
            if let Some(before) = open.insert(key, Operation { kind, places: Vec::new() }) {
                tell_any(before);
            }
        } else if step.is_interrupted {
            // Another thread may have given it input, or begun another one.
            open.remove(&key);
        } else if let Some(operation) = open.get_mut(&key) {
            operation.places.push(place);
        }
    }
    open.into_values().for_each(tell_any);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ReplayOptions, plan_replay};
    use tapstone_measure::units::Nanos;
    use tapstone_workload::{Workload, WorkloadCall, WorkloadThread};

    /// As many signatures by one thread, a key with results of so many bytes.
    fn planned(signatures: usize, output_bytes: u32) -> Vec<ReplayProcess> {
        let call = |function| WorkloadCall {
            session: 1,
            duration: Nanos(100),
            ..WorkloadCall::named(function)
        };
        let begin = WorkloadCall { mechanism: Some(1), object: 1, ..call("C_SignInit") };
        let work = WorkloadCall { input_bytes: 32, output_bytes, ..call("C_Sign") };
        let calls = std::iter::repeat_n([begin, work], signatures).flatten().collect();
        let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
        let load = Workload { threads, ..Workload::default() };
        plan_replay(&load, &ReplayOptions { seed: 7, ..ReplayOptions::default() })
            .unwrap()
            .processes
    }

    fn judged(processes: &[ReplayProcess]) -> Vec<usize> {
        let steps = processes[0].threads[0].steps.iter().enumerate();
        steps.filter(|(_, step)| step.is_judged).map(|(place, _)| place).collect()
    }

    #[test]
    fn all_of_a_few_are_judged() {
        let all = judged(&planned(500, 256));
        assert_eq!(all, (0..500).map(|number| 2 * number + 1).collect::<Vec<_>>());
    }

    #[test]
    fn of_very_many_a_sample_is_drawn_from_all_their_time() {
        let processes = planned(50_000, 256);
        let drawn = judged(&processes);
        assert_eq!(drawn.len(), 10_000);
        let steps = processes[0].threads[0].steps.len();
        for quarter in 0..4 {
            let within = steps * quarter / 4..steps * (quarter + 1) / 4;
            let count = drawn.iter().filter(|place| within.contains(place)).count();
            // Hypergeometric: 2,500 with a standard deviation of 39.
            assert!((2_300..2_700).contains(&count), "quarter {quarter}: {count}");
        }
        assert_eq!(drawn, judged(&planned(50_000, 256)), "the same seed draws the same");
    }

    #[test]
    fn of_long_results_fewer_are_judged() {
        let kind = |function| OperationKind { function, mechanism: None };
        let mut kinds = BTreeMap::from([
            (kind("C_Encrypt"), Drawn { left: 9_000, bytes: 9_000 << 20, wanted: 0 }),
            (kind("C_Sign"), Drawn { left: 9_000, bytes: 9_000 << 8, wanted: 0 }),
            (kind("C_Digest"), Drawn { left: 2, bytes: 64, wanted: 0 }),
        ]);
        limit(&mut kinds);
        let wanted: Vec<u64> = kinds.values().map(|drawn| drawn.wanted).collect();
        assert_eq!(wanted, [1, 31, 31]);
    }
}
