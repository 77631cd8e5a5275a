//! A coordinator's own sample: it draws results once an agent has committed itself to all of them, and
//! judges them itself. An agent that shows others than it kept, or none, is named.

use std::num::NonZeroUsize;

use tapstone_worker::Unanswered;

use super::TokenController;
use super::commitment::{MOST_SHOWN, can_be_shown, input_seed, key_hash, leaf_of};
use super::judge;
use super::judged::{Judged, OwnSample};
use super::plan::CasePlan;
use super::prepare::{Prepared, RING, key_use};
use super::ran_case::{RanCase, Refuted};
use crate::catalogue::Variant;
use crate::material::{Effort, KeyMaterial, Output, Sha256Hash, root_by_path};
use crate::protocol::{
    Commitment, KeyUse, LaneReady, LaneTally, Report, ShownLane, ShownResult, ShownResults, Task,
};

/// Results that are drawn of a host at most.
const OF_A_HOST: usize = 128;

/// Results that are drawn of a case at most, but one of each lane of a process.
const OF_A_CASE: usize = 4096;

/// What the drawn results of a lane may take, in bytes.
const SHOWN_BYTES: usize = 128 << 10;

/// What the path of a result may take, in bytes: of a lane of 2^32 results.
const PATH_BYTES: usize = 32 * 32;

/// What a worker's agent said of a case: the number of the process in the case, and its lanes.
pub(super) struct Told {
    pub(super) process: usize,
    pub(super) lanes: Vec<LaneTally>,
}

/// Draws of what agents have committed themselves to, and judges that.
pub(super) fn judge_own_sample(
    controller: &mut TokenController,
    plan: &CasePlan,
    prepared: &Prepared,
    ran: &mut RanCase,
    told: &[Told],
    judged: &mut [Judged],
) {
    let all = prepared.numbers();
    let hosts = prepared.processes.len().max(1);
    let variants: Vec<&Variant> = plan.lanes.iter().map(|lane| &lane.variant).collect();
    let shown_lanes = variants.iter().filter(|variant| can_be_shown(variant)).count().max(1);
    let parts = told.len().max(1) * shown_lanes;
    let most = (OF_A_HOST * hosts / parts).min(OF_A_CASE / parts).clamp(1, MOST_SHOWN);
    let mut draws: Vec<Vec<Draw>> = Vec::new();
    for agent in told {
        let draw = |(variant, tally): (&&Variant, &LaneTally)| Draw::new(variant, tally, most);
        draws.push(variants.iter().zip(&agent.lanes).map(draw).collect());
    }
    // Nothing can be drawn of operations whose results only their machine can judge.
    let asked: Vec<usize> = (0..told.len())
        .filter(|place| draws[*place].iter().any(|draw| !draw.indices.is_empty()))
        .collect();
    let numbers: Vec<usize> = asked.iter().map(|place| all[told[*place].process]).collect();
    let indices = |draws: &Vec<Draw>| draws.iter().map(|draw| draw.indices.clone()).collect();
    let tasks: Vec<Task> =
        asked.iter().map(|place| Task::Show { drawn: indices(&draws[*place]) }).collect();
    let answers = controller.answers_to(&numbers, tasks, |report| match report {
        Report::Shown(shown) => Some(*shown),
        _ => None,
    });
    for ((answer, place), number) in answers.into_iter().zip(asked).zip(numbers) {
        let shown = match answer {
            Ok(shown) => shown,
            Err(Unanswered::Lost(lost)) => {
                ran.lost_afterwards.get_or_insert(lost);
                continue;
            }
            Err(Unanswered::Interrupted) => continue,
        };
        let process = told[place].process;
        let drawn = Drawn {
            key_use: key_use(plan),
            first_worker: prepared.first_workers[process],
            threads: ran.threads,
            seed: prepared.seed,
            ready: &prepared.ready[process],
            shown: &shown,
        };
        for (lane, draw) in draws[place].iter().enumerate().take(judged.len()) {
            let sample = drawn.judge(lane, variants[lane], draw);
            if sample.found.unproven > 0 {
                let host = controller.host_name(number);
                ran.refute(Refuted { host, why: sample.doubt.unwrap_or("it showed nothing") });
            }
            judged[lane].own = judged[lane].own.plus(sample.found);
        }
    }
}

/// What is drawn of a lane.
struct Draw {
    commitment: Option<Commitment>,
    /// The places of the drawn results among those that were kept, rising.
    indices: Vec<u64>,
}

impl Draw {
    fn new(variant: &Variant, tally: &LaneTally, most: usize) -> Self {
        let commitment = tally.kept.filter(|_| can_be_shown(variant));
        let bytes = variant.output_capacity_bytes() + PATH_BYTES;
        let most = most.min(SHOWN_BYTES / bytes).max(1);
        let indices = commitment.map(|kept| kept.draw(most)).unwrap_or_default();
        Self { commitment, indices }
    }
}

/// What was shown of a worker process, and what is known of where it comes from.
struct Drawn<'a> {
    key_use: KeyUse,
    /// The number of its first thread.
    first_worker: u32,
    threads: u32,
    /// What its agent was given to make inputs from.
    seed: u64,
    /// What each lane said when it was ready, in the order of the plan.
    ready: &'a [LaneReady],
    shown: &'a ShownResults,
}

/// What came of the sample of a lane of a process, and what is to be said against it.
#[derive(Default)]
struct LaneSample {
    found: OwnSample,
    doubt: Option<&'static str>,
}

impl Drawn<'_> {
    fn judge(&self, lane: usize, variant: &Variant, draw: &Draw) -> LaneSample {
        let Some(commitment) = draw.commitment else { return LaneSample::default() };
        let drawn = draw.indices.len() as u64;
        let found = OwnSample { kept: commitment.count, drawn, ..OwnSample::default() };
        let lies = |doubt| LaneSample {
            found: OwnSample { unproven: drawn, ..found },
            doubt: Some(doubt),
        };
        let nothing = ShownLane::default();
        let shown = self.shown.lanes.get(lane).unwrap_or(&nothing);
        if shown.results.len() != draw.indices.len() {
            return lies("it did not show the results that were drawn");
        }
        let mut tally = found;
        match self.check(lane, variant, shown, draw, commitment, &mut tally) {
            Ok(()) => LaneSample { found: tally, doubt: None },
            Err(doubt) => lies(doubt),
        }
    }

    /// Judges what is proven; what is to be said against it, if not all is.
    fn check(
        &self,
        lane: usize,
        variant: &Variant,
        shown: &ShownLane,
        draw: &Draw,
        commitment: Commitment,
        tally: &mut OwnSample,
    ) -> Result<(), &'static str> {
        let keys = self.ready.get(lane).map_or(1, |ready| ready.keys.len()).max(1);
        let mut by_key: Vec<Vec<Output>> = vec![Vec::new(); keys];
        let mut last = None;
        for (result, index) in shown.results.iter().zip(&draw.indices) {
            let key = self.key_of(&result.output, keys)?;
            let hash = key_hash(&self.shown.nonce, lane, key, material(shown, key));
            if !is_proven(result, &hash, *index, commitment) {
                return Err(
                    "it showed another result than the one that it had committed itself to",
                );
            }
            // Leaves have an order: one result cannot be many.
            let place = Some((key, result.output.worker, result.output.operation));
            if last >= place {
                return Err("it has committed itself to the same result more than once");
            }
            last = place;
            by_key[key].push(result.output.clone());
        }
        for (number, outputs) in by_key.iter().enumerate().filter(|(_, some)| !some.is_empty()) {
            let nonce = &self.shown.nonce;
            let seed = input_seed(nonce, self.seed, self.first_worker, number as u64);
            let made = judge::inputs(variant, material(shown, number), seed, RING);
            let (_, judge) = made.map_err(|_| "it showed a key that is none for this operation")?;
            let threads = NonZeroUsize::MIN;
            let found = judge.judge(outputs, Effort { at_most: None, threads, seed });
            tally.checked += found.checked;
            tally.wrong += found.wrong;
        }
        Ok(())
    }

    /// The key that a result is of, which its thread and its number say.
    fn key_of(&self, output: &Output, keys: usize) -> Result<usize, &'static str> {
        let thread = output.worker.wrapping_sub(self.first_worker);
        if thread >= self.threads {
            return Err("it showed a result of a thread that it was not given");
        }
        Ok(self.key_use.key(thread as usize, output.operation, keys))
    }
}

fn material(shown: &ShownLane, key: usize) -> &KeyMaterial {
    let of_it = shown.keys.iter().find(|shown| shown.number as usize == key);
    of_it.map_or(&KeyMaterial::None, |shown| &shown.material)
}

fn is_proven(result: &ShownResult, key: &Sha256Hash, index: u64, commitment: Commitment) -> bool {
    let leaf = leaf_of(key, &result.output);
    root_by_path(leaf, index, commitment.count, &result.path) == Some(commitment.root)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::agent_case::AgentCase;
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::protocol::{Job, KeyPlan, LaneJob, NewKeys, Ring};

    const SEED: u64 = 42;
    const FIRST: u32 = 5;

    fn variant() -> Variant {
        Catalogue::builtin().select("sha256.digest").unwrap().remove(0)
    }

    /// A case whose worker has digested all that it was given, and what its agent said of that.
    struct Case {
        agent: AgentCase,
        rings: Vec<Vec<Ring>>,
    }

    impl Case {
        fn new() -> Self {
            let keys = KeyPlan::Own { count: 1, on_token: false };
            let mut agent = AgentCase::new(Job {
                run: "r".into(),
                lanes: vec![LaneJob { variant: variant(), keys }],
                first_worker: FIRST,
                verify: true,
                key_use: KeyUse::InTurn,
                new_keys: NewKeys::ForSession,
                extra_objects: 0,
                idle_sessions: 0,
            });
            agent.keep_ready(vec![ready()]);
            let rings = agent.make_inputs(SEED, RING as u32, [9; 32]).unwrap();
            Self { agent, rings }
        }

        /// Right, as the operation of this number of a thread gives it.
        fn output(&self, worker: u32, operation: u64) -> Output {
            let input = self.rings[0][0].inputs.input(operation);
            let bytes = Sha256Hash::of_parts(&[&input.message]).as_bytes().to_vec();
            Output { worker, operation, iv: None, bytes }
        }

        fn judge(&mut self, outputs: Vec<Output>) -> LaneTally {
            self.agent.expect_outputs(1, Duration::from_secs(1));
            assert!(self.agent.take_outputs(0, outputs, Vec::new()).is_none());
            let judged = self.agent.take_outputs(0, Vec::new(), Vec::new()).unwrap();
            let Report::Judged { lanes, .. } = judged else { panic!("{judged:?}") };
            lanes[0]
        }

        fn show_drawn(&mut self, draw: &Draw) -> ShownResults {
            let shown = self.agent.show(std::slice::from_ref(&draw.indices));
            let Report::Shown(shown) = shown else { panic!("{shown:?}") };
            *shown
        }
    }

    fn ready() -> LaneReady {
        LaneReady { keys: Vec::new(), hardware: None }
    }

    fn judged(draw: &Draw, shown: &ShownResults) -> LaneSample {
        let ready = [ready()];
        let drawn = Drawn {
            key_use: KeyUse::InTurn,
            first_worker: FIRST,
            threads: 2,
            seed: SEED,
            ready: &ready,
            shown,
        };
        drawn.judge(0, &variant(), draw)
    }

    /// 400 right results of two threads, and what was drawn of them.
    fn kept() -> (Case, Draw) {
        let mut case = Case::new();
        let numbers = (0..400).map(|number| (FIRST + number % 2, 7 + u64::from(number / 2)));
        let outputs = numbers.map(|(worker, number)| case.output(worker, number)).collect();
        let tally = case.judge(outputs);
        assert_eq!((tally.kept.unwrap().count, tally.checked, tally.wrong), (400, 400, 0));
        let draw = Draw::new(&variant(), &tally, MOST_SHOWN);
        assert_eq!(draw.indices.len(), MOST_SHOWN);
        (case, draw)
    }

    #[test]
    fn what_an_honest_agent_shows_is_judged_and_right() {
        let (mut case, draw) = kept();
        let shown = case.show_drawn(&draw);
        let sample = judged(&draw, &shown);
        let n = MOST_SHOWN as u64;
        let right = OwnSample { kept: 400, drawn: n, checked: n, wrong: 0, unproven: 0 };
        assert_eq!((sample.found, sample.doubt), (right, None));
        let again = case.show_drawn(&draw);
        assert!(again.lanes.is_empty(), "once is enough: nobody draws until it suits");
    }

    #[test]
    fn a_wrong_result_that_the_agent_kept_is_wrong() {
        let mut case = Case::new();
        let mut outputs: Vec<Output> = (0..8).map(|n| case.output(FIRST, n)).collect();
        outputs[3].bytes[0] ^= 1;
        let tally = case.judge(outputs);
        let draw = Draw::new(&variant(), &tally, MOST_SHOWN);
        let sample = judged(&draw, &case.show_drawn(&draw));
        assert_eq!((sample.found.checked, sample.found.wrong, sample.found.unproven), (8, 1, 0));
    }

    #[test]
    fn inputs_of_another_nonce_or_seed_are_not_those_of_the_run() {
        let mut case = Case::new();
        // Right digests of inputs that the agent chose itself.
        case.rings[0][0].inputs.ring.iter_mut().for_each(|input| input.message = vec![1; 32]);
        let outputs = (0..8).map(|n| case.output(FIRST, n)).collect();
        let tally = case.judge(outputs);
        let draw = Draw::new(&variant(), &tally, MOST_SHOWN);
        let mut shown = case.show_drawn(&draw);
        assert_eq!(judged(&draw, &shown).found.wrong, 8);
        shown.nonce = [8; 32];
        assert_eq!(judged(&draw, &shown).found.unproven, 8, "the nonce is committed to as well");
    }

    #[test]
    fn whatever_else_is_shown_than_was_kept_and_drawn_is_not_believed() {
        type Lie = fn(&mut ShownResults);
        let lies: [(&str, Lie); 9] = [
            ("one bit of a result", |shown| shown.lanes[0].results[3].output.bytes[0] ^= 1),
            ("another operation's number", |shown| {
                shown.lanes[0].results[3].output.operation += 64
            }),
            ("another thread's", |shown| shown.lanes[0].results[3].output.worker ^= 3),
            ("a thread that is none", |shown| shown.lanes[0].results[3].output.worker = 1),
            ("in another order", |shown| shown.lanes[0].results.swap(3, 4)),
            ("one instead of another", |shown| {
                shown.lanes[0].results[3] = shown.lanes[0].results[4].clone();
            }),
            ("one less", |shown| drop(shown.lanes[0].results.pop())),
            ("another key", |shown| {
                shown.lanes[0].keys[0].material = KeyMaterial::rsa(&[5; 256], &[1, 0, 1]);
            }),
            ("nothing", |shown| shown.lanes.clear()),
        ];
        for (what, lie) in lies {
            let (mut case, draw) = kept();
            let mut shown = case.show_drawn(&draw);
            lie(&mut shown);
            let sample = judged(&draw, &shown);
            assert_eq!(sample.found.unproven, MOST_SHOWN as u64, "{what}");
            assert!(
                sample.doubt.unwrap().starts_with("it showed")
                    || sample.doubt.unwrap().starts_with("it did not show"),
                "{what}"
            );
            assert_eq!(sample.found.checked, 0, "{what}");
        }
    }

    #[test]
    fn one_result_is_not_many() {
        let mut case = Case::new();
        let same = case.output(FIRST, 7);
        let tally = case.judge(vec![same; 100]);
        let draw = Draw::new(&variant(), &tally, MOST_SHOWN);
        let sample = judged(&draw, &case.show_drawn(&draw));
        assert_eq!(sample.found.unproven, MOST_SHOWN as u64);
        assert!(sample.doubt.unwrap().contains("more than once"), "{:?}", sample.doubt);
    }

    #[test]
    fn no_agent_shows_more_than_its_own_limit_or_what_is_not_there() {
        let (mut case, mut draw) = kept();
        draw.indices = (0..400).collect();
        assert_eq!(case.show_drawn(&draw).lanes[0].results.len(), MOST_SHOWN);
        let (mut case, mut draw) = kept();
        draw.indices = vec![400, u64::MAX];
        let shown = case.show_drawn(&draw);
        assert_eq!(shown, ShownResults::default(), "nor what inputs come from");
    }
}
