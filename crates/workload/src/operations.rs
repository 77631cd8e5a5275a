//! Calls into operations: what a user would count. A signature is a C_SignInit with its C_Sign.

use std::collections::{HashMap, HashSet};

use tapstone_measure::units::Nanos;

use crate::model::{Workload, WorkloadCall};

/// CKR_BUFFER_TOO_SMALL: the operation goes on (PKCS#11, 5.2).
const BUFFER_TOO_SMALL: u64 = 0x150;

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationKind {
    /// The function that does the work: `C_Sign`, `C_FindObjects`, `C_GetTokenInfo`.
    pub function: &'static str,
    /// Its mechanism, if it has one.
    pub mechanism: Option<u64>,
}

/// One operation of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenOperation {
    /// What was done by it.
    pub kind: OperationKind,
    /// A place among the workload's threads.
    pub thread: usize,
    /// When its first call began, since the program's start.
    pub start: Nanos,
    /// When its last call ended.
    pub end: Nanos,
    /// Time inside its calls.
    pub in_calls: Nanos,
    /// Calls that make it up.
    pub calls: u32,
    /// Its key, if it has one.
    pub object: u32,
    /// Bytes that it was given.
    pub input_bytes: u64,
    /// What the call that failed returned; 0 when none did. Of a call whose buffer was too small and
    /// that was made again, what it returned then.
    pub result: u64,
    /// It came to its result, or to a failure: not only begun, with nobody who goes on, or in a call
    /// that never returned. A search has come to its result with its first objects. In a session that
    /// several threads use it is not known, and true: another one may have gone on.
    pub is_ended: bool,
    /// A call of it failed in a replay, and not when it was recorded: its time is none of such an
    /// operation's.
    pub fails_anew: bool,
}

/// All operations of a workload, in the order of their beginnings within each thread.
#[must_use]
pub fn operations(workload: &Workload) -> Vec<TokenOperation> {
    let mut all = Vec::new();
    let shared = shared_sessions(workload);
    for (number, thread) in workload.threads.iter().enumerate() {
        let mut open: HashMap<(u32, &'static str), usize> = HashMap::new();
        for (begin, call) in thread.timed_calls() {
            let role = call_role(call.function);
            let key = (call.session, role.work);
            let known = open.get(&key).copied().filter(|_| role.part != Part::First);
            let place = known.unwrap_or_else(|| {
                all.push(begun_operation(number, begin, role.work, call));
                all.len() - 1
            });
            add_call(&mut all[place], begin, call);
            all[place].is_ended |=
                brings_to_end(role.part, call) || shared.contains(&(thread.process, call.session));
            match role.part {
                Part::First if call.succeeded() => {
                    open.insert(key, place);
                }
                Part::Last if ends_operation(call) => {
                    open.remove(&key);
                }
                _ => {}
            }
        }
    }
    all
}

/// Sessions that several threads use, by process and session.
fn shared_sessions(workload: &Workload) -> HashSet<(u32, u32)> {
    let mut users: HashMap<(u32, u32), usize> = HashMap::new();
    let mut shared = HashSet::new();
    for (number, thread) in workload.threads.iter().enumerate() {
        for call in thread.calls.iter().filter(|call| call.session != 0) {
            let session = (thread.process, call.session);
            if *users.entry(session).or_insert(number) != number {
                shared.insert(session);
            }
        }
    }
    shared
}

fn begun_operation(
    thread: usize,
    begin: Nanos,
    work: &'static str,
    call: &WorkloadCall,
) -> TokenOperation {
    TokenOperation {
        kind: OperationKind { function: work, mechanism: worked_mechanism(work, call) },
        thread,
        start: begin - call.held_up,
        end: begin,
        in_calls: Nanos::ZERO,
        calls: 0,
        object: call.object,
        input_bytes: 0,
        result: 0,
        is_ended: false,
        fails_anew: false,
    }
}

/// Whether an operation has its result, or has failed, with that call.
fn brings_to_end(part: Part, call: &WorkloadCall) -> bool {
    let is_result = match part {
        Part::Alone => true,
        Part::Last => ends_operation(call),
        Part::First | Part::Middle => call.function == "C_FindObjects",
    };
    let has_failed = !matches!(call.result, 0 | BUFFER_TOO_SMALL);
    !call.unfinished && (is_result || has_failed)
}

/// A mechanism is a part of what is done where it does the work. Questions about mechanisms are one
/// kind of operation.
fn worked_mechanism(work: &str, call: &WorkloadCall) -> Option<u64> {
    call.mechanism.filter(|_| work != "C_GetMechanismInfo")
}

fn add_call(operation: &mut TokenOperation, begin: Nanos, call: &WorkloadCall) {
    operation.end = Nanos(begin.0.saturating_add(call.duration.0));
    let taken = call.duration.0.saturating_add(call.held_up.0);
    operation.in_calls = Nanos(operation.in_calls.0.saturating_add(taken));
    operation.calls += 1;
    // Of a search those are objects; what had no room for its result is given again.
    let is_asked_again = call.only_length || call.result == BUFFER_TOO_SMALL;
    if !is_asked_again && call.function != "C_FindObjects" {
        operation.input_bytes = operation.input_bytes.saturating_add(call.input_bytes.into());
    }
    if matches!(operation.result, 0 | BUFFER_TOO_SMALL) {
        operation.result = call.result;
    }
    operation.fails_anew |= call.fails_anew;
}

/// A call that only asked for a length leaves its operation open (PKCS#11, 5.2), and so does one
/// whose buffer was too small.
fn ends_operation(call: &WorkloadCall) -> bool {
    !call.only_length && call.result != BUFFER_TOO_SMALL
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Middle,
    Last,
    Alone,
}

#[derive(Clone, Copy)]
struct CallRole {
    work: &'static str,
    part: Part,
}

/// Which operation a function is a part of, and which part.
fn call_role(function: &'static str) -> CallRole {
    const WORKS: [&str; 6] =
        ["C_Encrypt", "C_Decrypt", "C_Digest", "C_Sign", "C_Verify", "C_FindObjects"];
    let work = |function: &str| WORKS.into_iter().find(|work| *work == function);
    if function == "C_FindObjects" {
        return CallRole { work: "C_FindObjects", part: Part::Middle };
    }
    if let Some(work) = work(function) {
        return CallRole { work, part: Part::Last };
    }
    let endings = [("Init", Part::First), ("Update", Part::Middle), ("Final", Part::Last)];
    for (ending, part) in endings {
        if let Some(work) = function.strip_suffix(ending).and_then(work) {
            return CallRole { work, part };
        }
    }
    if function == "C_DigestKey" {
        return CallRole { work: "C_Digest", part: Part::Middle };
    }
    CallRole { work: function, part: Part::Alone }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WorkloadThread;

    fn call(function: &'static str, session: u32, micros: u64) -> WorkloadCall {
        WorkloadCall {
            session,
            duration: Nanos(1_000 * micros),
            mechanism: function.ends_with("Init").then_some(1),
            ..WorkloadCall::named(function)
        }
    }

    fn told(calls: Vec<WorkloadCall>) -> Vec<(&'static str, u32, u64, u64)> {
        let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
        let workload = Workload { threads, ..Workload::default() };
        let micros = |time: Nanos| time.0 / 1_000;
        operations(&workload)
            .iter()
            .map(|it| (it.kind.function, it.calls, micros(it.in_calls), it.result))
            .collect()
    }

    #[test]
    fn a_signature_is_its_preparation_and_its_lengths_too() {
        let length = WorkloadCall { only_length: true, ..call("C_Sign", 1, 2) };
        let calls = vec![call("C_SignInit", 1, 1), length, call("C_Sign", 1, 30)];
        assert_eq!(told(calls), [("C_Sign", 3, 33, 0)]);
    }

    #[test]
    fn a_signature_that_a_larger_buffer_held_went_well() {
        let given = |function, result, output| WorkloadCall {
            result,
            input_bytes: 32,
            output_bytes: output,
            ..call(function, 1, 2)
        };
        let begin = || call("C_SignInit", 1, 1);
        let calls = vec![begin(), given("C_Sign", 0x150, 0), given("C_Sign", 0, 256)];
        assert_eq!(told(calls.clone()), [("C_Sign", 3, 5, 0)]);
        let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
        let all = operations(&Workload { threads, ..Workload::default() });
        assert_eq!(all[0].input_bytes, 32, "the same input");
        // Nobody asked again.
        assert_eq!(told(vec![begin(), given("C_Sign", 0x150, 0)]), [("C_Sign", 2, 3, 0x150)]);
    }

    #[test]
    fn sessions_have_operations_of_their_own_and_parts_belong_to_one() {
        let calls = vec![
            call("C_DigestInit", 1, 1),
            call("C_SignInit", 2, 1),
            call("C_DigestUpdate", 1, 5),
            call("C_SignUpdate", 2, 7),
            call("C_DigestFinal", 1, 1),
            call("C_SignFinal", 2, 1),
            call("C_GetInfo", 0, 1),
        ];
        assert_eq!(
            told(calls),
            [("C_Digest", 3, 7, 0), ("C_Sign", 3, 9, 0), ("C_GetInfo", 1, 1, 0)]
        );
    }

    #[test]
    fn what_follows_a_preparation_that_failed_stands_alone() {
        let failed = WorkloadCall { result: 0x60, ..call("C_SignInit", 1, 1) };
        let lost = WorkloadCall { result: 0x91, ..call("C_Sign", 1, 1) };
        assert_eq!(told(vec![failed, lost]), [("C_Sign", 1, 1, 0x60), ("C_Sign", 1, 1, 0x91)]);
    }

    #[test]
    fn questions_about_mechanisms_are_of_one_kind() {
        let asked = |number| WorkloadCall {
            mechanism: Some(number),
            ..WorkloadCall::named("C_GetMechanismInfo")
        };
        let threads =
            vec![WorkloadThread { calls: vec![asked(1), asked(2)], ..WorkloadThread::default() }];
        let all = operations(&Workload { threads, ..Workload::default() });
        assert!(all.len() == 2 && all.iter().all(|it| it.kind.mechanism.is_none()), "{all:?}");
    }

    #[test]
    fn what_is_begun_and_left_has_not_ended() {
        let calls = vec![
            call("C_SignInit", 1, 10),
            call("C_SignInit", 2, 10),
            call("C_Sign", 2, 3),
            call("C_FindObjectsInit", 3, 10),
            call("C_FindObjects", 3, 10),
            call("C_DigestInit", 4, 10),
            WorkloadCall { result: 0x30, ..call("C_DigestUpdate", 4, 10) },
            WorkloadCall { unfinished: true, ..call("C_GetInfo", 0, 10) },
        ];
        let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
        let all = operations(&Workload { threads, ..Workload::default() });
        let ended: Vec<bool> = all.iter().map(|it| it.is_ended).collect();
        assert_eq!(ended, [false, true, true, true, false]);

        // Another thread may have gone on with it.
        let thread =
            |call: WorkloadCall| WorkloadThread { calls: vec![call], ..WorkloadThread::default() };
        let threads = vec![thread(call("C_SignInit", 1, 10)), thread(call("C_Sign", 1, 3))];
        let all = operations(&Workload { threads, ..Workload::default() });
        assert!(all.iter().all(|it| it.is_ended));
    }

    #[test]
    fn a_search_goes_to_its_end() {
        let calls = vec![
            call("C_FindObjectsInit", 1, 1),
            call("C_FindObjects", 1, 2),
            call("C_FindObjects", 1, 2),
            call("C_FindObjectsFinal", 1, 1),
        ];
        assert_eq!(told(calls), [("C_FindObjects", 4, 6, 0)]);
    }
}
