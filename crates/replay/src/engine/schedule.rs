//! The steps of a thread in a form that is quickly read: programs repeat themselves, so that each
//! distinct call is there once, and a step is its moment and which of them it is.

use std::collections::HashMap;

use tapstone_measure::units::Nanos;

use crate::steps::{Due, ReplayStep};

/// When a step is due, its turn if its call has one, and a place among the distinct calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScheduledCall {
    pub(super) due: Due,
    pub(super) turn: u32,
    pub(super) call: u32,
}

/// A call that is made at one step or at many.
#[derive(Clone, Copy, Debug)]
pub(super) struct DistinctCall {
    /// Its own `due` and `origin` say nothing, and its `turn` no more than that there is one.
    pub(super) step: ReplayStep,
    /// A session or an object begins or ends with it.
    pub(super) changes_handles: bool,
    /// It is given the same each time.
    pub(super) is_given_the_same: bool,
}

/// The steps of a thread, in order.
#[derive(Debug)]
pub(super) struct Schedule {
    steps: Vec<ScheduledCall>,
    calls: Vec<DistinctCall>,
}

impl Schedule {
    pub(super) fn new(steps: &[ReplayStep]) -> Self {
        let mut known: HashMap<ReplayStep, u32> = HashMap::new();
        let mut calls = Vec::new();
        let steps = steps.iter().map(|step| {
            // What differs from step to step and is no part of a call.
            let turn = step.turn.map(|_| 0);
            let due = Due::AfterAnswer(Nanos::ZERO);
            let call = ReplayStep { origin: 0, due, turn, is_interrupted: false, ..*step };
            let call = *known.entry(call).or_insert_with(|| {
                let changes_handles = call.changes_handles();
                let is_given_the_same = call.is_given_the_same();
                calls.push(DistinctCall { step: call, changes_handles, is_given_the_same });
                calls.len() as u32 - 1
            });
            ScheduledCall { due: step.due, turn: step.turn.unwrap_or_default(), call }
        });
        let steps = steps.collect();
        Self { steps, calls }
    }

    /// How many distinct calls there are.
    pub(super) fn distinct_calls(&self) -> usize {
        self.calls.len()
    }

    /// Each step with its call.
    pub(super) fn steps(&self) -> impl Iterator<Item = (ScheduledCall, &DistinctCall)> {
        self.steps.iter().map(|step| (*step, &self.calls[step.call as usize]))
    }

    /// The room that the longest result has, in bytes.
    pub(super) fn longest_result(&self) -> usize {
        let steps = self.calls.iter().map(|call| &call.step).filter(|step| step.gives_bytes());
        steps.map(|step| step.room as usize).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ReplayOptions, plan_replay};
    use tapstone_workload::{Workload, WorkloadCall, WorkloadThread};

    #[test]
    fn the_steps_come_back_as_they_were() {
        let call = |function, pause| WorkloadCall {
            session: 1,
            computing: Nanos(pause),
            ..WorkloadCall::named(function)
        };
        let begin = WorkloadCall { mechanism: Some(1), object: 1, ..call("C_SignInit", 5) };
        let work = |pause| WorkloadCall { output_bytes: 256, ..call("C_Sign", pause) };
        let calls = (0..100).flat_map(|pause| [begin, work(pause)]).collect();
        let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
        let load = Workload { threads, ..Workload::default() };
        let plan = plan_replay(&load, &ReplayOptions::default()).unwrap();
        let steps = &plan.processes[0].threads[0].steps;

        let schedule = Schedule::new(steps);
        assert_eq!(schedule.calls.len(), 2);
        let again: Vec<ReplayStep> = schedule
            .steps()
            .zip(steps)
            .map(|(it, step)| ReplayStep { due: it.0.due, origin: step.origin, ..it.1.step })
            .collect();
        assert_eq!(&again, steps);
    }
}
