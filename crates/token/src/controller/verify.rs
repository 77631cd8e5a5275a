//! Judges the results of a case, in this process, which never loads a module.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use tapstone_record as record;

use super::TokenController;
use super::case::RanCase;
use super::error::Lost;
use super::plan::{CasePlan, CaseStop};
use super::prepare::{Prepared, key_use};
use crate::material::{By, Effort, Output};
use crate::protocol::{Report, Task};

/// How the results of one lane were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) checked: u64,
    pub(super) wrong: u64,
    /// Who judged; the token, as soon as it had a part in it.
    pub(super) by: Option<record::Verifier>,
}

impl Judged {
    /// All lanes of a mix together.
    pub(super) fn sum(lanes: &[Self]) -> Self {
        let add = |sum: Self, lane: &Self| Self {
            checked: sum.checked + lane.checked,
            wrong: sum.wrong + lane.wrong,
            by: sum.by.max(lane.by),
        };
        lanes.iter().fold(Self::default(), add)
    }
}

/// Judges what the workers kept. Under a window it takes at most one more window of time, and at
/// least a second; a counted case is judged whole. Who is lost meanwhile is noted in the run.
pub(super) fn judge(
    controller: &mut TokenController,
    plan: &CasePlan,
    prepared: &Prepared,
    ran: &mut RanCase,
) -> Vec<Judged> {
    let mut judged = vec![Judged::default(); plan.lanes.len()];
    if !plan.common.verify {
        return judged;
    }
    let window = Duration::from(ran.gathered.window()).max(Duration::from_secs(1));
    let deadline = match plan.stop {
        CaseStop::Count(_) => None,
        CaseStop::Seconds(_) | CaseStop::Precision { .. } => Some(Instant::now() + window),
    };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let numbers = prepared.numbers();
    for &process in &ran.took_part {
        let (outputs, lost) = controller.outputs_of(numbers[process], plan.lanes.len());
        ran.lost_afterwards = ran.lost_afterwards.take().or(lost);
        for (lane, outputs) in outputs.into_iter().enumerate() {
            let judges = &prepared.judges[process][lane];
            let keyed = by_key(plan, prepared.first_workers[process], outputs, judges.len());
            for (judge, outputs) in judges.iter().zip(keyed) {
                let effort = Effort { deadline, threads, seed: plan.common.seed };
                let tally = judge.judge(&outputs, effort);
                judged[lane].checked += tally.checked;
                judged[lane].wrong += tally.wrong;
                judged[lane].by = judged[lane].by.max(match tally.by {
                    By::Software => Some(record::Verifier::Software),
                    By::Token => Some(record::Verifier::Token),
                    By::None => None,
                });
            }
        }
    }
    judged
}

/// Each key's results.
fn by_key(
    plan: &CasePlan,
    first_worker: u32,
    outputs: Vec<Output>,
    keys: usize,
) -> Vec<Vec<Output>> {
    let mut keyed = vec![Vec::new(); keys];
    for output in outputs {
        let thread = output.worker.wrapping_sub(first_worker) as usize;
        keyed[key_use(plan).key(thread, output.operation, keys)].push(output);
    }
    keyed
}

impl TokenController {
    /// What a worker kept, by lane; what it had sent when it died, if it did. And who was lost.
    fn outputs_of(&mut self, number: usize, lanes: usize) -> (Vec<Vec<Output>>, Option<Lost>) {
        let mut outputs: Vec<Vec<Output>> = vec![Vec::new(); lanes];
        let mut ended = 0;
        let lost = self.workers.fetch(number, Task::Outputs, |report| {
            let Report::Outputs { lane, outputs: some } = report else { return false };
            ended += usize::from(some.is_empty());
            // Another machine may say anything: lanes that it was not given are none.
            if let Some(kept) = outputs.get_mut(usize::from(lane)) {
                kept.extend(some);
            }
            ended >= lanes
        });
        (outputs, lost)
    }
}
