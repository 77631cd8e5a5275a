//! Were the results of a replay right? Judged after it has ended, in a process that never loads the
//! module, by software that the token has no part in.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tapstone_token_operations::material::{KeyMaterial, ResultToJudge, Verdict};
use tapstone_workload::OperationKind;

use crate::inputs::{input_of_step, iv_of_step, noise, prepared_input};
use crate::measured::ReplayedThread;
use crate::plan::{BUFFER_TOO_SMALL, work_of};
use crate::steps::{ReplayParameters, ReplayProcess, ReplayStep, StepInput};

/// What a process tells of its keys and inputs, so that its results can be judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayEvidence {
    /// The public halves, and the values of secrets that the token lets be read.
    pub keys: Vec<KeyMaterial>,
    /// Signatures that were made to be verified; nothing for a cipher text.
    pub signatures: Vec<Vec<u8>>,
}

/// How far the results of one kind of operation were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedWork {
    /// Results that software can judge.
    pub eligible: u64,
    /// Those that it did.
    pub checked: u64,
    /// Those that were wrong.
    pub wrong: u64,
    /// Some that were drawn were not judged, so that the others are no random sample.
    pub is_cut_short: bool,
}

/// Judges the results of a replay that its plan has chosen, by kind of operation; those that are not
/// judged in this time, or before somebody wants to end, stay unchecked.
#[must_use]
pub fn verify_replay(
    processes: &[ReplayProcess],
    evidence: &[ReplayEvidence],
    replayed: &[Vec<ReplayedThread>],
    time: Duration,
    stop: &AtomicBool,
) -> BTreeMap<OperationKind, VerifiedWork> {
    let mut judge = Judge { until: Instant::now() + time, stop, found: BTreeMap::new() };
    for ((process, known), threads) in processes.iter().zip(evidence).zip(replayed) {
        let noise = noise(process.seed, process.longest_input);
        let judged = JudgedProcess { process, known, noise: &noise };
        for (number, (_, went)) in process.threads.iter().zip(threads).enumerate() {
            judge.judge_thread(judged, number, went);
        }
    }
    judge.found
}

#[derive(Clone, Copy)]
struct JudgedProcess<'a> {
    process: &'a ReplayProcess,
    known: &'a ReplayEvidence,
    noise: &'a [u8],
}

struct Judge<'a> {
    until: Instant,
    stop: &'a AtomicBool,
    found: BTreeMap<OperationKind, VerifiedWork>,
}

/// An operation that goes on: what it was begun with, given, and gave.
struct OpenWork<'a> {
    begun: &'a ReplayStep,
    iv: [u8; 16],
    message: Vec<u8>,
    result: Vec<u8>,
    /// All of its results were kept.
    is_kept: bool,
}

impl Judge<'_> {
    fn judge_thread(&mut self, at: JudgedProcess<'_>, number: usize, went: &ReplayedThread) {
        let steps = &at.process.threads[number].steps;
        let mut kept = went.results.iter().peekable();
        let mut open: HashMap<(Option<u32>, &'static str), OpenWork<'_>> = HashMap::new();
        for (place, (step, time)) in steps.iter().zip(&went.times).enumerate() {
            let result = kept.next_if(|kept| kept.step as usize == place);
            let Some(work) = work_of(step.call.name()) else { continue };
            let key = (step.session, work);
            match time.result {
                0 => {}
                BUFFER_TOO_SMALL => continue,
                _ => {
                    open.remove(&key);
                    continue;
                }
            }
            // What a call made is known to nobody else.
            if step.object.is_some() {
                continue;
            }
            if step.mechanism.is_some() {
                let iv = iv_of_step(steps, number, place, at.process.prepared.len());
                let begun = OpenWork {
                    begun: step,
                    iv,
                    message: Vec::new(),
                    result: Vec::new(),
                    is_kept: true,
                };
                open.insert(key, begun);
                continue;
            }
            // Another thread may have given it input, or begun another one.
            if step.is_interrupted {
                open.remove(&key);
                continue;
            }
            if step.only_length {
                continue;
            }
            let Some(going) = open.get_mut(&key) else { continue };
            let is_last = !step.call.name().ends_with("Update");
            if step.is_judged && !step.call.name().ends_with("Final") {
                going.message.extend(input_of_step(step, number, place, at.noise));
            }
            match result {
                Some(kept) => going.result.extend(&kept.bytes),
                None => going.is_kept &= !step.gives_result(),
            }
            if is_last && let Some(done) = open.remove(&key) {
                self.judge(at, work, step, &done);
            }
        }
    }

    fn judge(
        &mut self,
        at: JudgedProcess<'_>,
        work: &'static str,
        last: &ReplayStep,
        done: &OpenWork<'_>,
    ) {
        let Some(mechanism) = done.begun.mechanism else { return };
        let nothing = KeyMaterial::None;
        let key = done.begun.key.and_then(|key| at.known.keys.get(key as usize));
        let pss = match mechanism.parameters {
            ReplayParameters::Pss { hash } => Some(hash),
            _ => None,
        };
        let judged = ResultToJudge {
            mechanism: mechanism.number,
            pss,
            key: key.unwrap_or(&nothing),
            iv: done.iv,
            message: &done.message,
            result: &done.result,
        };
        let kind = OperationKind { function: work, mechanism: Some(mechanism.number) };
        let has_time = || Instant::now() < self.until && !self.stop.load(Relaxed);
        let is_checked = last.is_judged && done.is_kept && has_time();
        let verdict = match (is_checked, last.input) {
            (false, _) if judged.can_be_judged(work) => None,
            (false, _) => return,
            (true, StepInput::Signed(place)) => Some(verify_prepared(at, place, judged)),
            (true, StepInput::CipherText(place)) => Some(opened(at, place, &done.result)),
            (true, _) => Some(match work {
                "C_Sign" => judged.as_signature(),
                "C_Encrypt" => judged.as_cipher_text(),
                "C_Digest" => judged.as_digest(),
                "C_Decrypt" => judged.as_decrypted_number(),
                _ => Verdict::NotPossible,
            }),
        };
        let found = self.found.entry(kind).or_default();
        match verdict {
            Some(Verdict::NotPossible) => return,
            Some(verdict) => {
                found.checked += 1;
                found.wrong += u64::from(verdict == Verdict::Wrong);
            }
            None => {}
        }
        found.eligible += 1;
        found.is_cut_short |= last.is_judged && !is_checked;
    }
}

/// The token said that a signature of its own is right: is it?
fn verify_prepared(at: JudgedProcess<'_>, place: u32, judged: ResultToJudge<'_>) -> Verdict {
    let prepared =
        at.process.prepared.get(place as usize).zip(at.known.signatures.get(place as usize));
    let Some((wanted, signature)) = prepared else { return Verdict::NotPossible };
    let message = prepared_input(wanted, at.noise);
    ResultToJudge { message: &message, result: signature, ..judged }.as_signature()
}

/// Is it what was encrypted?
fn opened(at: JudgedProcess<'_>, place: u32, result: &[u8]) -> Verdict {
    let Some(wanted) = at.process.prepared.get(place as usize) else {
        return Verdict::NotPossible;
    };
    match prepared_input(wanted, at.noise) == result {
        true => Verdict::Right,
        false => Verdict::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{KeptResult, ReplayedCall};
    use crate::plan::{ReplayOptions, plan_replay};
    use tapstone_workload::{Workload, WorkloadCall, WorkloadThread};

    /// Wrong digests of SHA-256, judged unless somebody wants to end.
    fn judged(stop: bool) -> VerifiedWork {
        const SHA256: u64 = 0x250;
        let call = |function| WorkloadCall { session: 1, ..WorkloadCall::named(function) };
        let begin = WorkloadCall { mechanism: Some(SHA256), ..call("C_DigestInit") };
        let work = WorkloadCall { input_bytes: 32, output_bytes: 32, ..call("C_Digest") };
        let calls = [begin, work].repeat(5);
        let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
        let load = Workload { threads, ..Workload::default() };
        let plan = plan_replay(&load, &ReplayOptions::default()).unwrap();
        let went = ReplayedCall { is_called: true, ..ReplayedCall::default() };
        let kept = |number: u32| KeptResult { step: 2 * number + 1, bytes: vec![0; 32] };
        let thread = ReplayedThread { times: vec![went; 10], results: (0..5).map(kept).collect() };
        let evidence = [ReplayEvidence::default()];
        let stop = AtomicBool::new(stop);
        let time = Duration::from_secs(600);
        let found = verify_replay(&plan.processes, &evidence, &[vec![thread]], time, &stop);
        found[&OperationKind { function: "C_Digest", mechanism: Some(SHA256) }]
    }

    #[test]
    fn whoever_wants_to_end_does_not_wait_for_what_is_not_judged_yet() {
        let all = VerifiedWork { eligible: 5, checked: 5, wrong: 5, is_cut_short: false };
        assert_eq!(judged(false), all);
        let none = VerifiedWork { eligible: 5, checked: 0, wrong: 0, is_cut_short: true };
        assert_eq!(judged(true), none);
    }
}
