//! What limits a rate, by taking each thing away that could.

use tapstone_record::{Knee, LimitedBy};

use crate::setup::{Removal, Setup};

/// A removal has to raise the rate by this factor to be a cause.
const WORTH: f64 = 1.1;

/// A removal and by what factor it raised the rate.
pub(crate) type Gain = (Removal, f64);

/// By what factor each removal raises the rate at one level of concurrency.
pub(crate) fn gains(setup: &Setup, threads: u32, processes: u32) -> Vec<Gain> {
    let removals = setup.removals().into_iter();
    let base = setup.rate(threads, processes);
    let gain = |removal| {
        let (threads, processes) = match removal {
            Removal::ThreadCap => (2 * threads, processes),
            Removal::ProcessCap => (threads, 2 * processes),
            _ => (threads, processes),
        };
        (removal, setup.without(removal).rate(threads, processes) / base)
    };
    removals.map(gain).collect()
}

/// Whether these gains bear the verdict out.
pub(crate) fn bears_out(setup: &Setup, gains: &[Gain], verdict: LimitedBy) -> bool {
    let right: Vec<LimitedBy> = gains
        .iter()
        .filter(|(_, gain)| *gain >= WORTH)
        .flat_map(|(removal, _)| removal.causes(setup))
        .collect();
    match verdict {
        LimitedBy::Device | LimitedBy::Unknown => right.is_empty(),
        cause => right.contains(&cause),
    }
}

/// The verdicts of a search: on the rate, and on the threads of one process where it differs. A
/// search that measured nothing says itself that it was interrupted.
pub(crate) fn verdicts(knee: Option<&Knee>) -> (LimitedBy, Option<LimitedBy>) {
    let Some(knee) = knee else { return (LimitedBy::Interruption, None) };
    let limit = knee.limit.as_ref().map_or(LimitedBy::Unknown, |limit| limit.limited_by);
    (limit, knee.process_limit.as_ref().map(|limit| limit.limited_by))
}
