//! A case as an agent's relay holds it: the inputs that it has made, which nobody else knows, the
//! judging of what became of them, and what of it a coordinator may see afterwards. The module has
//! no part in this process.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::commitment::{MOST_SHOWN, can_be_shown, input_seed, key_hash, leaf_of, public_part};
use super::judge::Judge;
use super::prepare::{MadeInputs, inputs_of_lanes};
use super::verify::by_key;
use crate::catalogue::Variant;
use crate::material::{By, Effort, HashTree, KeyMaterial, MaterialError, Output};
use crate::protocol::{
    Broken, Commitment, Job, LaneReady, LaneTally, Report, Ring, ShownKey, ShownLane, ShownResult,
    ShownResults,
};

/// See the module's text.
pub(super) struct AgentCase {
    job: Job,
    /// What the worker said of its keys; empty until it has.
    ready: Vec<LaneReady>,
    judges: Vec<Vec<Judge>>,
    /// What the inputs come from.
    nonce: [u8; 32],
    /// By lane: what the coordinator may draw from, until it has.
    kept: Vec<Option<KeptLane>>,
    /// While results are fetched to be judged.
    fetched: Option<Fetched>,
}

/// The results of a lane, which do not change any more.
struct KeptLane {
    /// By key, each in the order of threads and operations: the leaves of the tree.
    keyed: Vec<Vec<Output>>,
    tree: HashTree,
}

/// Results on their way from the worker.
struct Fetched {
    seed: u64,
    at_most: Duration,
    /// The results of each lane, in the order of the plan.
    outputs: Vec<Vec<Output>>,
    broken: Vec<Broken>,
    ended: usize,
}

impl AgentCase {
    pub(super) const fn new(job: Job) -> Self {
        let ready = Vec::new();
        let judges = Vec::new();
        Self { job, ready, judges, nonce: [0; 32], kept: Vec::new(), fetched: None }
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

    /// The inputs for the worker, from a nonce that nobody else has seen.
    pub(super) fn make_inputs(
        &mut self,
        seed: u64,
        ring: u32,
        nonce: [u8; 32],
    ) -> Result<Vec<Vec<Ring>>, MaterialError> {
        let variants: Vec<&Variant> = self.job.lanes.iter().map(|lane| &lane.variant).collect();
        let ring = (ring as usize).clamp(1, MOST_INPUTS);
        let first_worker = self.job.first_worker;
        let seed_of = |key: u64| input_seed(&nonce, seed, first_worker, key);
        let MadeInputs { rings, judges } = inputs_of_lanes(&variants, &self.ready, ring, seed_of)?;
        self.judges = judges;
        self.nonce = nonce;
        self.kept.clear();
        Ok(rings)
    }

    /// Results are on their way, to be judged in this time.
    pub(super) fn expect_outputs(&mut self, seed: u64, at_most: Duration) {
        self.kept.clear();
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

    fn judge(&mut self, fetched: Fetched) -> Report {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let deadline = Instant::now() + fetched.at_most;
        let mut left = self.judges.iter().map(Vec::len).sum::<usize>() as u32;
        let mut lanes = Vec::new();
        let mut kept = Vec::new();
        for (lane, (judges, outputs)) in self.judges.iter().zip(fetched.outputs).enumerate() {
            let mut tally = LaneTally::default();
            let keyed = by_key(self.job.key_use, self.job.first_worker, outputs, judges.len());
            for (judge, outputs) in judges.iter().zip(&keyed) {
                let time = deadline.saturating_duration_since(Instant::now()) / left.max(1);
                left = left.saturating_sub(1);
                let effort = Effort { at_most: Some(time), threads, seed: fetched.seed };
                let of_key = judge.judge(outputs, effort);
                tally.checked += of_key.checked;
                tally.wrong += of_key.wrong;
                tally.by_token |= of_key.by == By::Token;
            }
            let of_lane = self.keep(lane, keyed);
            tally.kept = of_lane.as_ref().map(KeptLane::commitment);
            kept.push(of_lane);
            lanes.push(tally);
        }
        self.kept = kept;
        Report::Judged { lanes, broken: fetched.broken }
    }

    /// Keeps the results of a lane for the coordinator to draw from, if it may see any of them.
    fn keep(&self, lane: usize, mut keyed: Vec<Vec<Output>>) -> Option<KeptLane> {
        if !self.job.lanes.get(lane).is_some_and(|job| can_be_shown(&job.variant)) {
            return None;
        }
        let mut leaves = Vec::with_capacity(keyed.iter().map(Vec::len).sum());
        for (number, outputs) in keyed.iter_mut().enumerate() {
            outputs.sort_unstable_by_key(|output| (output.worker, output.operation));
            let key = key_hash(&self.nonce, lane, number, &self.material(lane, number));
            leaves.extend(outputs.iter().map(|output| leaf_of(&key, output)));
        }
        Some(KeptLane { keyed, tree: HashTree::new(leaves) })
    }

    /// The public half of a key.
    fn material(&self, lane: usize, number: usize) -> KeyMaterial {
        let key = self.ready.get(lane).and_then(|ready| ready.keys.get(number));
        key.map_or(KeyMaterial::None, |key| public_part(&key.material))
    }

    /// Shows results that the coordinator drew, and what their inputs came from; then nothing more
    /// can be drawn. Without a result there is nothing to show: no key has worked on these inputs.
    pub(super) fn show(&mut self, drawn: &[Vec<u64>]) -> Report {
        let kept = std::mem::take(&mut self.kept);
        let mut lanes = Vec::new();
        for (lane, (kept, drawn)) in kept.iter().zip(drawn).enumerate() {
            let mut shown = ShownLane::default();
            for index in drawn.iter().take(MOST_SHOWN) {
                let Some(result) = kept.as_ref().and_then(|kept| kept.at(*index)) else { continue };
                let number = result.key as u32;
                if shown.keys.iter().all(|key| key.number != number) {
                    let material = self.material(lane, result.key);
                    shown.keys.push(ShownKey { number, material });
                }
                shown.results.push(result.shown);
            }
            lanes.push(shown);
        }
        if lanes.iter().all(|lane| lane.results.is_empty()) {
            return Report::Shown(Box::default());
        }
        Report::Shown(Box::new(ShownResults { nonce: self.nonce, lanes }))
    }
}

/// A result by its place, and the number of its key.
struct PlacedResult {
    key: usize,
    shown: ShownResult,
}

impl KeptLane {
    fn commitment(&self) -> Commitment {
        let count = self.keyed.iter().map(Vec::len).sum::<usize>() as u64;
        Commitment { count, root: self.tree.root() }
    }

    fn at(&self, index: u64) -> Option<PlacedResult> {
        let path = self.tree.path(index)?;
        let mut place = index as usize;
        for (key, outputs) in self.keyed.iter().enumerate() {
            match outputs.get(place) {
                Some(output) => {
                    let shown = ShownResult { output: output.clone(), path };
                    return Some(PlacedResult { key, shown });
                }
                None => place -= outputs.len(),
            }
        }
        None
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
