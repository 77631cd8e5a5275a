//! A case as an agent's relay holds it: the inputs that it has made, which nobody else knows, and
//! the judging of what became of them. The module has no part in this process.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::judge::Judge;
use super::prepare::{MadeInputs, inputs_of_lanes};
use super::verify::by_key;
use crate::catalogue::Variant;
use crate::material::{By, Effort, KeyMaterial, MaterialError, Output};
use crate::protocol::{Broken, Job, LaneReady, LaneTally, Report, Ring};

/// See the module's text.
pub(super) struct AgentCase {
    job: Job,
    /// What the worker said of its keys; empty until it has.
    ready: Vec<LaneReady>,
    judges: Vec<Vec<Judge>>,
    /// While results are fetched to be judged.
    fetched: Option<Fetched>,
}

/// Results on their way from the worker.
struct Fetched {
    seed: u64,
    at_most: Duration,
    /// By lane.
    outputs: Vec<Vec<Output>>,
    broken: Vec<Broken>,
    ended: usize,
}

impl AgentCase {
    pub(super) const fn new(job: Job) -> Self {
        Self { job, ready: Vec::new(), judges: Vec::new(), fetched: None }
    }

    /// Keeps what the worker said of its keys; what of it may leave this machine. The value of a key
    /// may be readable here, and is nobody else's business.
    pub(super) fn keep_ready(&mut self, ready: Vec<LaneReady>) -> Vec<LaneReady> {
        let mut told = ready.clone();
        for key in told.iter_mut().flat_map(|lane| &mut lane.keys) {
            key.material = KeyMaterial::None;
        }
        self.ready = ready;
        told
    }

    /// The inputs for the worker; `seed_of` gives the seed of the key of a number.
    pub(super) fn make_inputs(
        &mut self,
        ring: u32,
        seed_of: impl Fn(u64) -> u64,
    ) -> Result<Vec<Vec<Ring>>, MaterialError> {
        let variants: Vec<&Variant> = self.job.lanes.iter().map(|lane| &lane.variant).collect();
        let ring = (ring as usize).clamp(1, MOST_INPUTS);
        let MadeInputs { rings, judges } = inputs_of_lanes(&variants, &self.ready, ring, seed_of)?;
        self.judges = judges;
        Ok(rings)
    }

    /// Results are on their way, to be judged in this time.
    pub(super) fn expect_outputs(&mut self, seed: u64, at_most: Duration) {
        let outputs = vec![Vec::new(); self.job.lanes.len()];
        self.fetched = Some(Fetched { seed, at_most, outputs, broken: Vec::new(), ended: 0 });
    }

    /// Takes results; what was found of them, once they are all here.
    pub(super) fn take_outputs(
        &mut self,
        lane: u8,
        outputs: Vec<Output>,
        broken: Vec<Broken>,
    ) -> Option<Report> {
        let fetched = self.fetched.as_mut()?;
        fetched.broken.extend(broken);
        fetched.ended += usize::from(outputs.is_empty());
        if let Some(kept) = fetched.outputs.get_mut(usize::from(lane)) {
            kept.extend(outputs);
        }
        if fetched.ended < self.job.lanes.len() {
            return None;
        }
        let fetched = self.fetched.take()?;
        Some(self.judge(fetched))
    }

    fn judge(&self, fetched: Fetched) -> Report {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let deadline = Instant::now() + fetched.at_most;
        let mut left = self.judges.iter().map(Vec::len).sum::<usize>() as u32;
        let mut lanes = Vec::new();
        for (judges, outputs) in self.judges.iter().zip(fetched.outputs) {
            let mut tally = LaneTally::default();
            let keyed = by_key(self.job.key_use, self.job.first_worker, outputs, judges.len());
            for (judge, outputs) in judges.iter().zip(keyed) {
                let time = deadline.saturating_duration_since(Instant::now()) / left.max(1);
                left = left.saturating_sub(1);
                let effort = Effort { at_most: Some(time), threads, seed: fetched.seed };
                let of_key = judge.judge(&outputs, effort);
                tally.checked += of_key.checked;
                tally.wrong += of_key.wrong;
                tally.by_token |= of_key.by == By::Token;
            }
            lanes.push(tally);
        }
        Report::Judged { lanes, broken: fetched.broken }
    }
}

/// Inputs in a ring, whatever is asked for.
const MOST_INPUTS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{KeyReady, KeyUse, NewKeys};

    #[test]
    fn what_was_read_of_keys_stays_on_their_machine() {
        let job = Job {
            run: "r".into(),
            lanes: Vec::new(),
            first_worker: 0,
            verify: true,
            key_use: KeyUse::InTurn,
            new_keys: NewKeys::ForSession,
            extra_objects: 0,
            idle_sessions: 0,
        };
        let mut case = AgentCase::new(job);
        let key = |material| KeyReady {
            material,
            on_token: true,
            sensitive: Some(false),
            extractable: Some(true),
            always_authenticate: false,
        };
        let secret = KeyMaterial::secret(&[0x5a; 32]);
        let lane = |material| LaneReady { keys: vec![key(material)], hardware: Some(true) };
        let told = case.keep_ready(vec![lane(secret.clone()), lane(KeyMaterial::None)]);
        assert_eq!(case.ready[0].keys[0].material, secret, "results are judged with it");
        assert!(told.iter().flat_map(|lane| &lane.keys).all(|key| {
            key.material == KeyMaterial::None && key.on_token && key.extractable == Some(true)
        }));
        let sent = postcard::to_stdvec(&Report::Prepared(Ok(told))).unwrap();
        assert!(!sent.windows(4).any(|bytes| bytes == [0x5a; 4]));
    }
}
