//! Before and after a case: keys made or found, inputs prepared, one operation tried; and keys gone
//! again, whatever happened in between.

use std::time::Duration;

use super::error::TokenMeasureError;
use super::judge::{self, Judge};
use super::outcome::CaseNotMeasured;
use super::plan::{CasePlan, KeyCount, KeysPlan, LanePlan};
use super::{TokenController, TokenTarget};
use crate::catalogue::{Shape, Variant};
use crate::material::{KeyMaterial, MaterialError};
use crate::protocol::{
    Job, KeyPlan, KeyUse, LaneJob, LaneReady, Login, NewKeys, Report, Ring, Task, Trouble,
};

/// Inputs in a ring: enough that a token cannot answer from memory, few enough to stay in cache.
pub(super) const RING: usize = 64;

/// A case whose keys and inputs are in place.
pub(super) struct Prepared {
    /// Process numbers, by token.
    pub(super) processes: Vec<Vec<usize>>,
    /// Of each process, in the order of `processes` flattened.
    pub(super) first_workers: Vec<u32>,
    /// By process, then lane.
    pub(super) ready: Vec<Vec<LaneReady>>,
    /// By process, lane, key; with hosts none, since each agent has its own.
    pub(super) judges: Vec<Vec<Vec<Judge>>>,
    /// What agents were given to make their inputs from.
    pub(super) seed: u64,
}

impl Prepared {
    pub(super) fn numbers(&self) -> Vec<usize> {
        self.processes.iter().flatten().copied().collect()
    }
}

impl TokenController {
    /// Makes or finds the keys, prepares the inputs, and tries one operation of each lane.
    pub(super) fn prepare(
        &mut self,
        plan: &CasePlan,
        hosts: u32,
        processes: u32,
    ) -> Result<Prepared, CaseNotMeasured> {
        let logs_in = plan.lanes.iter().any(|lane| lane.variant.shape == Shape::Login);
        // An agent knows its own login, and its worker says when there is none.
        let without = |target: &TokenTarget| self.login_for(&target.token) == Login::None;
        if logs_in && self.hosts().is_none() && self.targets.iter().any(without) {
            return Err(TokenMeasureError::NoPin.into());
        }
        let processes = self.ensure(self.tokens_of(hosts), processes)?;
        let mut prepared = Prepared {
            processes,
            first_workers: Vec::new(),
            ready: Vec::new(),
            judges: Vec::new(),
            seed: plan.common.seed,
        };
        let numbers = prepared.numbers();
        prepared.first_workers = numbers.iter().map(|_| self.fresh.worker()).collect();
        let jobs: Vec<Job> =
            prepared.first_workers.iter().map(|first| self.job(plan, *first)).collect();
        self.workers.set_remote_timeout(self.answering_time(plan));
        let order = |place: usize| Task::Prepare(Box::new(jobs[place].clone()));
        let answers = self.ask_all(&numbers, order, |report| match report {
            Report::Prepared(ready) => Some(ready),
            _ => None,
        });
        for (answer, number) in answers.into_iter().zip(&numbers) {
            match answer? {
                Ok(ready) => prepared.ready.push(ready),
                Err(Trouble::NotAllowed { text }) => {
                    let host = self.host_name(*number);
                    return Err(TokenMeasureError::Host { host, text }.into());
                }
                Err(Trouble::Call { failure, .. }) => {
                    return Err(CaseNotMeasured::Refused(failure));
                }
                Err(other) => return Err(TokenMeasureError::Keys { trouble: other }.into()),
            }
        }
        if self.hosts().is_some() {
            self.let_agents_make_inputs(plan, &numbers)?;
        } else {
            let inputs = make_inputs(plan, &mut prepared).map_err(TokenMeasureError::Material)?;
            self.try_inputs(&numbers, |place| Task::Inputs(inputs[place].clone()))?;
        }
        Ok(prepared)
    }

    /// How long another machine may take to answer a question of a case: as long as all its calls may
    /// take that one after the other make or remove an object, and a minute for everything else.
    fn answering_time(&self, plan: &CasePlan) -> Duration {
        const CALLS: u32 = 10;
        const CALLS_PER_OBJECT: u32 = 4;
        let keys = match &plan.keys {
            KeysPlan::Existing { .. } => 0,
            KeysPlan::Own { count: KeyCount::Number(number), .. } => *number,
            KeysPlan::Own { .. } => plan.threads,
        };
        let keys = keys.saturating_mul(plan.lanes.len() as u32);
        let objects = [plan.threads, plan.common.extra_objects, plan.common.idle_sessions];
        let objects = objects.into_iter().fold(keys, u32::saturating_add);
        let calls = objects.saturating_mul(CALLS_PER_OBJECT).saturating_add(CALLS);
        let calls = self.workers.timeouts().call.saturating_mul(calls);
        let warm_up = Duration::from(plan.common.warm_up);
        calls.saturating_add(warm_up).saturating_add(Duration::from_secs(60))
    }

    /// Each agent makes its own inputs: they are sent nowhere.
    fn let_agents_make_inputs(
        &mut self,
        plan: &CasePlan,
        numbers: &[usize],
    ) -> Result<(), CaseNotMeasured> {
        let task = Task::MakeInputs { seed: plan.common.seed, ring: RING as u32 };
        self.try_inputs(numbers, |_| task.clone())
    }

    /// The name of the host that a worker runs on.
    pub(super) fn host_name(&self, number: usize) -> String {
        let names = self.hosts().map(|hosts| hosts.names()).unwrap_or_default();
        let host = self.entered.get(&number).and_then(|host| names.get(*host));
        host.cloned().unwrap_or_default()
    }

    fn job(&self, plan: &CasePlan, first_worker: u32) -> Job {
        let keys = match &plan.keys {
            KeysPlan::Existing { label, id } => {
                KeyPlan::Existing { label: label.clone(), id: id.clone() }
            }
            KeysPlan::Own { count, on_token } => KeyPlan::Own {
                count: match count {
                    KeyCount::Shared => 1,
                    KeyCount::PerWorker => plan.threads,
                    KeyCount::Number(number) => *number,
                },
                // Session keys are gone with the session that a lost device takes along.
                on_token: *on_token || plan.common.reconnect,
            },
        };
        let lane = |lane: &LanePlan| LaneJob { variant: lane.variant.clone(), keys: keys.clone() };
        Job {
            run: self.run.clone(),
            lanes: plan.lanes.iter().map(lane).collect(),
            first_worker,
            verify: plan.common.verify,
            key_use: key_use(plan),
            new_keys: new_keys(plan),
            extra_objects: plan.common.extra_objects,
            idle_sessions: plan.common.idle_sessions,
        }
    }

    fn try_inputs(
        &mut self,
        numbers: &[usize],
        order: impl Fn(usize) -> Task,
    ) -> Result<(), CaseNotMeasured> {
        let answers = self.ask_all(numbers, order, |report| match report {
            Report::Tried(tried) => Some(tried),
            _ => None,
        });
        for answer in answers {
            let tried = answer?;
            if let Some(failure) = tried.into_iter().find_map(Result::err) {
                return Err(CaseNotMeasured::Refused(failure));
            }
        }
        Ok(())
    }

    /// Destroys the case's keys; replaces processes that were lost and cleans up behind them.
    pub(super) fn finish(&mut self, prepared: &Prepared) -> Result<(), TokenMeasureError> {
        let living: Vec<usize> = prepared
            .numbers()
            .into_iter()
            .filter(|number| self.workers.is_alive(*number))
            .collect();
        let answers = self.ask_all(
            &living,
            |_| Task::Finish,
            |report| match report {
                Report::Finished(finished) => Some(finished),
                _ => None,
            },
        );
        let mut outcome = Ok(());
        for answer in answers {
            let failure = match answer {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => TokenMeasureError::KeysLeft(failure),
                Err(error) => error,
            };
            outcome = outcome.and(Err(failure));
        }
        self.clean_up_after_the_lost().and(outcome)
    }

    /// After a worker has died: removes the keys that it may have left, from a fresh process where
    /// the token has none any more.
    pub(super) fn clean_up_after_the_lost(&mut self) -> Result<(), TokenMeasureError> {
        let gone = self.workers.gone();
        if gone == self.cleaned_up_after {
            return Ok(());
        }
        self.cleaned_up_after = gone;
        for token in 0..self.targets.len() {
            // The agent of a lost host removes what it made, when it has noticed.
            if self.hosts().is_some_and(|hosts| hosts.lost(token).is_some()) {
                continue;
            }
            if self.processes_of(token).is_empty() {
                self.join(token)?;
            }
            let run = self.run.clone();
            let swept = self.sweep(token, true, Some(run))?;
            if self.hosts().is_none() && swept.iter().all(|key| key.removed) {
                self.forget_keys_of_dead_workers(token);
            }
        }
        Ok(())
    }
}

/// Which thread uses which key.
pub(super) fn key_use(plan: &CasePlan) -> KeyUse {
    match plan.keys {
        KeysPlan::Own { count: KeyCount::PerWorker, .. } => KeyUse::PerThread,
        _ => KeyUse::InTurn,
    }
}

/// Where operations that generate keys keep them.
pub(super) fn new_keys(plan: &CasePlan) -> NewKeys {
    match plan.keys {
        KeysPlan::Own { on_token: true, .. } => NewKeys::OnToken,
        _ => NewKeys::ForSession,
    }
}

/// Inputs by process, lane and key; what is needed to judge the results stays here.
fn make_inputs(
    plan: &CasePlan,
    prepared: &mut Prepared,
) -> Result<Vec<Vec<Vec<Ring>>>, MaterialError> {
    let variants: Vec<&Variant> = plan.lanes.iter().map(|lane| &lane.variant).collect();
    let seed_of = |key: u64| plan.common.seed.wrapping_add(key);
    let mut all = Vec::new();
    for ready in &prepared.ready {
        let made = inputs_of_lanes(&variants, ready, RING, seed_of)?;
        all.push(made.rings);
        prepared.judges.push(made.judges);
    }
    Ok(all)
}

/// What goes to a worker, and what is kept from it, both by lane and key.
pub(super) struct MadeInputs {
    pub(super) rings: Vec<Vec<Ring>>,
    pub(super) judges: Vec<Vec<Judge>>,
}

/// Inputs for the keys of a worker; `seed_of` gives the seed of the key of a number.
pub(super) fn inputs_of_lanes(
    variants: &[&Variant],
    ready: &[LaneReady],
    ring: usize,
    seed_of: impl Fn(u64) -> u64,
) -> Result<MadeInputs, MaterialError> {
    let mut made = MadeInputs { rings: Vec::new(), judges: Vec::new() };
    for (variant, ready) in variants.iter().zip(ready) {
        let none = [KeyMaterial::None];
        let materials: Vec<&KeyMaterial> = if ready.keys.is_empty() {
            none.iter().collect()
        } else {
            ready.keys.iter().map(|key| &key.material).collect()
        };
        let mut rings = Vec::new();
        let mut judges = Vec::new();
        for (number, material) in materials.into_iter().enumerate() {
            let (ring, judge) = judge::inputs(variant, material, seed_of(number as u64), ring)?;
            rings.push(ring);
            judges.push(judge);
        }
        made.rings.push(rings);
        made.judges.push(judges);
    }
    Ok(made)
}
