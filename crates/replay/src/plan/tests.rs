//! What is replayed of workloads that were made up, and what never is.

use tapstone_workload::{WorkloadCall, WorkloadThread};

use super::*;
use crate::steps::StepInput;

fn call(function: &'static str) -> WorkloadCall {
    WorkloadCall {
        session: 1,
        computing: Nanos(5),
        duration: Nanos(10),
        ..WorkloadCall::named(function)
    }
}

fn signature() -> [WorkloadCall; 2] {
    let begin = WorkloadCall { mechanism: Some(1), object: 1, ..call("C_SignInit") };
    let work = WorkloadCall { input_bytes: 32, output_bytes: 256, ..call("C_Sign") };
    [begin, work]
}

fn planned(calls: Vec<WorkloadCall>) -> Result<ReplayPlan, PlanError> {
    planned_with(calls, &ReplayOptions::default())
}

fn planned_with(
    calls: Vec<WorkloadCall>,
    options: &ReplayOptions,
) -> Result<ReplayPlan, PlanError> {
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    plan_replay(&Workload { threads, ..Workload::default() }, options)
}

#[test]
fn what_could_cost_a_token_is_never_a_step() {
    let dangerous = [
        "C_InitToken",
        "C_InitPIN",
        "C_SetPIN",
        "C_Login",
        "C_LoginUser",
        "C_Logout",
        "C_CloseAllSessions",
        "C_DestroyObject",
        "C_SetAttributeValue",
        "C_CreateObject",
        "C_CopyObject",
        "C_GenerateKey",
        "C_GenerateKeyPair",
        "C_UnwrapKey",
        "C_DeriveKey",
    ];
    let mut calls: Vec<WorkloadCall> = dangerous.into_iter().map(call).collect();
    calls.extend(signature());
    let plan = planned(calls).unwrap();
    let made: Vec<&str> =
        plan.processes[0].threads[0].steps.iter().map(|step| step.call.name()).collect();
    assert_eq!(made, ["C_SignInit", "C_Sign"]);
    assert_eq!(plan.skipped.len(), dangerous.len());
    let only = planned(dangerous.into_iter().map(call).collect());
    assert_eq!(only.unwrap_err(), PlanError::Nothing);
}

#[test]
fn pauses_of_what_is_left_out_are_kept() {
    let mut calls = vec![call("C_Login")];
    calls.extend(signature());
    calls.push(WorkloadCall { waiting: Nanos(500), after_wait: true, ..call("C_GetSessionInfo") });
    let plan = planned(calls).unwrap();
    let due: Vec<Due> = plan.processes[0].threads[0].steps.iter().map(|step| step.due).collect();
    // The first call of a thread begins at its recorded moment.
    assert_eq!(due[..2], [Due::At(Nanos(20)), Due::AfterAnswer(Nanos(5))]);
    assert_eq!(due[2], Due::At(Nanos(550)));
}

#[test]
fn a_key_is_known_by_what_it_made_or_not_at_all() {
    let plan = planned(signature().to_vec()).unwrap();
    assert_eq!(plan.keys[0].spec, Some(KeySpec::Rsa { bits: 2048 }));
    assert_eq!(plan.keys[0].certainty, KeyCertainty::Seen);
    let silent = signature().map(|call| WorkloadCall { output_bytes: 0, ..call });
    let mut calls = silent.to_vec();
    calls.push(call("C_GetSessionInfo"));
    let plan = planned(calls.clone()).unwrap();
    assert_eq!(plan.keys[0].certainty, KeyCertainty::Unknown);
    assert_eq!(plan.skipped[0].reason, SkipReason::UnknownKey);
    let keys = BTreeMap::from([(1, KeySpec::Rsa { bits: 4096 })]);
    let plan = planned_with(calls, &ReplayOptions { keys, ..ReplayOptions::default() }).unwrap();
    assert_eq!(plan.processes[0].keys[0].spec, KeySpec::Rsa { bits: 4096 });
    let keys = BTreeMap::from([(9, KeySpec::Rsa { bits: 4096 })]);
    let options = ReplayOptions { keys, ..ReplayOptions::default() };
    assert_eq!(planned_with(signature().to_vec(), &options).unwrap_err(), PlanError::NoSuchKey(9));
}

#[test]
fn decryptions_and_verifications_get_inputs_of_their_own() {
    let begin = WorkloadCall { mechanism: Some(0x1087), object: 1, ..call("C_DecryptInit") };
    let work = WorkloadCall { input_bytes: 80, output_bytes: 64, ..call("C_Decrypt") };
    let plan = planned([begin, work, begin, work].to_vec()).unwrap();
    let process = &plan.processes[0];
    assert_eq!(process.prepared.len(), 1, "of one length once");
    assert_eq!(process.threads[0].steps[1].input, StepInput::CipherText(0));
    let part = WorkloadCall { input_bytes: 80, ..call("C_DecryptUpdate") };
    let mut calls = vec![begin, part, call("C_DecryptFinal")];
    calls.push(call("C_GetSessionInfo"));
    let plan = planned(calls).unwrap();
    assert_eq!(plan.skipped.iter().map(|it| it.count).sum::<u64>(), 3);
    assert!(plan.skipped.iter().all(|it| it.reason == SkipReason::InParts));
}

#[test]
fn more_of_the_same_clients_have_sessions_of_their_own() {
    let options = ReplayOptions { scale: 3, seed: 1, ..ReplayOptions::default() };
    let plan = planned_with(signature().to_vec(), &options).unwrap();
    let process = &plan.processes[0];
    assert_eq!((process.threads.len(), process.sessions.len(), process.keys.len()), (3, 3, 1));
    let sessions: Vec<Option<u32>> =
        process.threads.iter().map(|thread| thread.steps[0].session).collect();
    assert_eq!(sessions, [Some(0), Some(1), Some(2)]);
    let options = ReplayOptions { scale: 5_000, ..ReplayOptions::default() };
    let refused = planned_with(signature().to_vec(), &options).unwrap_err().to_string();
    assert!(refused.contains("5000 threads") && refused.contains("\nhint: "), "{refused}");
}

#[test]
fn what_follows_an_operation_that_failed_is_left_out_too() {
    let [begin, work] = signature();
    let failed = WorkloadCall { result: 0x60, ..begin };
    let lost = WorkloadCall { result: 0x91, ..work };
    let calls = [failed, lost, begin, work].to_vec();
    let plan = planned(calls).unwrap();
    assert_eq!(plan.replayed, BTreeMap::from([("C_SignInit", 1), ("C_Sign", 1)]));
    assert!(plan.skipped.iter().all(|it| it.reason == SkipReason::FailedThen));
}
