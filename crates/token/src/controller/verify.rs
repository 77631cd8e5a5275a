//! Judges the results of a case, in this process, which never loads a module.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_worker::Unanswered;

use super::TokenController;
use super::error::Lost;
use super::judged::Judged;
use super::own_sample::{Told, judge_own_sample};
use super::plan::{CasePlan, CaseStop};
use super::prepare::{Prepared, key_use};
use super::ran_case::RanCase;
use crate::material::{By, Effort, Output};
use crate::protocol::{Broken, KeyUse, Report, Task};

/// The time that checking may take. What is not checked yet shares what is left of it, so that
/// each worker's results are looked at, however many the first one has.
struct CheckingTime {
    /// `None`: as long as it takes.
    left: Option<Duration>,
    /// How many parts are still to be checked: a key's results at one worker process.
    parts: u32,
}

impl CheckingTime {
    /// Under a window one more window, and at least a second; a counted case is judged whole.
    fn new(plan: &CasePlan, ran: &RanCase, parts: usize) -> Self {
        let window = Duration::from(ran.gathered.window()).max(Duration::from_secs(1));
        let left = match plan.stop {
            CaseStop::Count(_) => None,
            CaseStop::Seconds(_) | CaseStop::Precision { .. } => Some(window),
        };
        Self { left, parts: parts as u32 }
    }

    /// Checks the next part in its share of the time. That the results were fetched before is no
    /// part of it: from a fast token that takes longer than checking them.
    fn check<T>(&mut self, part: impl FnOnce(Option<Duration>) -> T) -> T {
        let started = Instant::now();
        let checked = part(self.left.map(|left| left / self.parts.max(1)));
        self.left = self.left.map(|left| left.saturating_sub(started.elapsed()));
        self.parts = self.parts.saturating_sub(1);
        checked
    }
}

/// Judges what the workers kept. Who is lost meanwhile is noted in the run.
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
    if controller.hosts().is_some() {
        return judged_by_agents(controller, plan, prepared, ran);
    }
    let judges = ran.took_part.iter().flat_map(|process| &prepared.judges[*process]);
    let mut time = CheckingTime::new(plan, ran, judges.map(Vec::len).sum());
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let numbers = prepared.numbers();
    for &process in &ran.took_part {
        let kept = controller.outputs_of(numbers[process], plan.lanes.len());
        ran.lost_afterwards = ran.lost_afterwards.take().or(kept.lost);
        ran.broken_when_read.extend(kept.broken);
        for (lane, outputs) in kept.outputs.into_iter().enumerate() {
            let judges = &prepared.judges[process][lane];
            let first = prepared.first_workers[process];
            let keyed = by_key(key_use(plan), first, outputs, judges.len());
            for (judge, outputs) in judges.iter().zip(keyed) {
                let tally = time.check(|at_most| {
                    judge.judge(&outputs, Effort { at_most, threads, seed: plan.common.seed })
                });
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

/// How long an agent may judge: what it measures with is not needed meanwhile.
const AGENT_JUDGES_FOR: Nanos = Nanos::from_secs(1);

/// The same after the user has asked to end.
const A_LOOK: Nanos = Nanos::from_millis(200);

/// Each agent judges what its workers kept, all at the same time: results stay where they are.
fn judged_by_agents(
    controller: &mut TokenController,
    plan: &CasePlan,
    prepared: &Prepared,
    ran: &mut RanCase,
) -> Vec<Judged> {
    let mut judged = vec![Judged::default(); plan.lanes.len()];
    let all = prepared.numbers();
    let numbers: Vec<usize> = ran.took_part.iter().map(|process| all[*process]).collect();
    // Who has asked to end does not wait for more than a look.
    let at_most = if ran.interrupted { A_LOOK } else { AGENT_JUDGES_FOR };
    let task = Task::Judge { seed: plan.common.seed, at_most };
    let answers = controller.workers.task_all(&numbers, &task, |report| match report {
        Report::Judged { lanes, broken } => Some((lanes, broken)),
        _ => None,
    });
    let mut told = Vec::new();
    for (answer, process) in answers.into_iter().zip(ran.took_part.clone()) {
        let (lanes, broken) = match answer {
            Ok(told) => told,
            Err(Unanswered::Lost(lost)) => {
                ran.lost_afterwards.get_or_insert(lost);
                continue;
            }
            Err(Unanswered::Interrupted) => continue,
        };
        ran.broken_when_read.extend(broken);
        for (sum, lane) in judged.iter_mut().zip(&lanes) {
            let by = if lane.by_token { record::Verifier::Token } else { record::Verifier::Agent };
            sum.checked = sum.checked.saturating_add(lane.checked);
            sum.wrong = sum.wrong.saturating_add(lane.wrong.min(lane.checked));
            sum.by = sum.by.max((lane.checked > 0).then_some(by));
        }
        told.push(Told { process, lanes });
    }
    judge_own_sample(controller, plan, prepared, ran, &told, &mut judged);
    for lane in &mut judged {
        lane.take_own_sample();
    }
    judged
}

/// The results of each key, by the number of the key.
pub(super) fn by_key(
    key_use: KeyUse,
    first_worker: u32,
    outputs: Vec<Output>,
    keys: usize,
) -> Vec<Vec<Output>> {
    let mut keyed = vec![Vec::new(); keys];
    for output in outputs {
        let thread = output.worker.wrapping_sub(first_worker) as usize;
        keyed[key_use.key(thread, output.operation, keys)].push(output);
    }
    keyed
}

/// What one worker kept.
struct KeptOutputs {
    /// By lane; what it had sent when it died, if it did.
    outputs: Vec<Vec<Output>>,
    /// Answers that cannot be, while the results were read.
    broken: Vec<Broken>,
    lost: Option<Lost>,
}

impl TokenController {
    fn outputs_of(&mut self, number: usize, lanes: usize) -> KeptOutputs {
        let mut outputs: Vec<Vec<Output>> = vec![Vec::new(); lanes];
        let mut broken = Vec::new();
        let mut ended = 0;
        let lost = self.workers.fetch(number, Task::Outputs, |report| {
            let Report::Outputs { lane, outputs: some, broken: others } = report else {
                return false;
            };
            broken.extend(others);
            ended += usize::from(some.is_empty());
            // Another machine may say anything: lanes that it was not given are none.
            if let Some(kept) = outputs.get_mut(usize::from(lane)) {
                kept.extend(some);
            }
            ended >= lanes
        });
        KeptOutputs { outputs, broken, lost }
    }
}
