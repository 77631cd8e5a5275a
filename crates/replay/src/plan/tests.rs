//! What is replayed of workloads that were made up, and what never is.

use tapstone_workload::{WorkloadCall, WorkloadThread};

use super::*;
use crate::steps::{PreparedKind, StepInput};

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
    // The first call of a thread begins at its recorded moment, counted from the first of all.
    assert_eq!(due[..2], [Due::At(Nanos(0)), Due::AfterAnswer(Nanos(5))]);
    assert_eq!(due[2], Due::At(Nanos(530)));
}

/// Each is begun in a session of its own, and none goes on: nobody looks through all for what follows.
#[test]
fn a_recording_of_many_operations_that_never_go_on_is_planned() {
    let begin = |session| WorkloadCall { mechanism: Some(0x250), session, ..call("C_DigestInit") };
    let plan = planned((1..=100_000).map(begin).collect()).unwrap();
    assert_eq!(plan.processes[0].threads[0].steps.len(), 100_000);
}

/// As a pool gives its sessions out: a session of one thread needs no turns.
#[test]
fn a_session_that_several_threads_use_keeps_the_order_of_its_calls() {
    let used = |pause, session| {
        signature().map(|call| WorkloadCall { computing: Nanos(pause), session, ..call })
    };
    let thread = |start, calls: Vec<WorkloadCall>| WorkloadThread {
        start: Nanos(start),
        calls,
        ..WorkloadThread::default()
    };
    let threads = vec![
        thread(0, [used(0, 1), used(100, 1), used(0, 2)].concat()),
        thread(50, used(0, 1).to_vec()),
    ];
    let plan = plan_replay(&Workload { threads, ..Workload::default() }, &ReplayOptions::default());
    let plan = plan.unwrap();
    let interrupted = plan.processes[0].threads.iter().map(|thread| {
        let steps = thread.steps.iter().enumerate();
        steps.filter(|(_, step)| step.is_interrupted).map(|(place, _)| place).collect()
    });
    let interrupted: Vec<Vec<usize>> = interrupted.collect();
    assert_eq!(interrupted, [vec![0, 2], vec![0]]);
    let turns: Vec<Vec<Option<u32>>> = plan.processes[0]
        .threads
        .iter()
        .map(|thread| thread.steps.iter().map(|step| step.turn).collect())
        .collect();
    assert_eq!(turns[0], [Some(0), Some(1), Some(4), Some(5), None, None]);
    assert_eq!(turns[1], [Some(2), Some(3)]);
}

/// One begins, another goes on: what it was given is known to no thread.
#[test]
fn an_operation_that_another_thread_came_into_is_not_judged() {
    let digest = |function| WorkloadCall {
        mechanism: (function == "C_DigestInit").then_some(0x250),
        input_bytes: 16,
        output_bytes: 32,
        ..call(function)
    };
    let thread = |start, calls: &[WorkloadCall]| WorkloadThread {
        start: Nanos(start),
        calls: calls.to_vec(),
        ..WorkloadThread::default()
    };
    let (begin, update, last) = ("C_DigestInit", "C_DigestUpdate", "C_DigestFinal");
    let waits = WorkloadCall { computing: Nanos(100), ..digest(last) };
    let whole = [digest(begin), digest(update), digest(last)];
    let judged = |threads: Vec<WorkloadThread>| -> usize {
        let load = Workload { threads, ..Workload::default() };
        let plan = plan_replay(&load, &ReplayOptions::default()).unwrap();
        let steps = plan.processes[0].threads.iter().flat_map(|thread| &thread.steps);
        steps.filter(|step| step.is_judged).count()
    };
    let first = [digest(begin), digest(update), waits];
    assert_eq!(judged(vec![thread(0, &first), thread(50, &[digest(update)])]), 0);
    assert_eq!(judged(vec![thread(0, &whole), thread(500, &whole)]), 4, "one after the other");
}

/// As a module with a lock lets them: they can be so again.
#[test]
fn calls_of_one_session_at_the_same_time_do_not_wait_for_each_other() {
    let random = |duration| WorkloadCall {
        input_bytes: 16,
        duration: Nanos(duration),
        ..call("C_GenerateRandom")
    };
    let thread = |start, calls: &[WorkloadCall]| WorkloadThread {
        start: Nanos(start),
        calls: calls.to_vec(),
        ..WorkloadThread::default()
    };
    let opens = WorkloadCall { detail: 4, ..call("C_OpenSession") };
    let threads = vec![thread(0, &[opens, random(1_000), random(10)]), thread(100, &[random(100)])];
    let plan = plan_replay(&Workload { threads, ..Workload::default() }, &ReplayOptions::default());
    let plan = plan.unwrap();
    let turns: Vec<Option<u32>> = plan.processes[0]
        .threads
        .iter()
        .flat_map(|thread| &thread.steps)
        .map(|step| step.turn)
        .collect();
    assert_eq!(turns, [None, Some(0), Some(2), Some(0)]);
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
}

#[test]
fn parts_of_decryptions_and_verifications_are_of_one_input() {
    let begin = |function, mechanism| WorkloadCall {
        mechanism: Some(mechanism),
        object: 1,
        ..call(function)
    };
    let part = |function, input_bytes| WorkloadCall { input_bytes, ..call(function) };
    let inputs = |calls: &[WorkloadCall]| {
        let plan = planned(calls.to_vec()).unwrap();
        let process = &plan.processes[0];
        let inputs = process.threads[0].steps.iter().map(|step| step.input).collect::<Vec<_>>();
        (inputs, process.prepared.clone(), plan.skipped)
    };
    // AES-GCM: a length that is asked for takes nothing of the input.
    let asks = WorkloadCall { only_length: true, ..part("C_DecryptUpdate", 50) };
    let decrypts = [
        begin("C_DecryptInit", 0x1087),
        part("C_DecryptUpdate", 30),
        asks,
        part("C_DecryptUpdate", 50),
        call("C_DecryptFinal"),
    ];
    let (steps, prepared, skipped) = inputs(&decrypts);
    assert!(skipped.is_empty(), "{skipped:?}");
    assert_eq!((prepared.len(), prepared[0].kind), (1, PreparedKind::CipherText(80)));
    let of = |from, bytes| StepInput::Part { prepared: 0, from, bytes };
    assert_eq!(steps[1..], [of(0, 30), of(30, 50), of(30, 50), StepInput::CipherText(0)]);
    // ECDSA with SHA-256.
    let calls = [
        begin("C_VerifyInit", 0x1044),
        part("C_VerifyUpdate", 30),
        part("C_VerifyUpdate", 50),
        part("C_VerifyFinal", 64),
    ];
    let (steps, prepared, skipped) = inputs(&calls);
    assert!(skipped.is_empty(), "{skipped:?}");
    assert_eq!((prepared.len(), prepared[0].kind), (1, PreparedKind::Signature(80)));
    assert_eq!(steps[1..], [of(0, 30), of(30, 50), StepInput::Signed(0)]);
    // Its end is not there.
    let calls = [&decrypts[..2], &[decrypts[3], call("C_GetSessionInfo")]].concat();
    let (steps, _, skipped) = inputs(&calls);
    assert_eq!((steps.len(), skipped[0].reason), (1, SkipReason::InParts));
    assert_eq!(skipped.iter().map(|it| it.count).sum::<u64>(), 3);
}

#[test]
fn a_key_that_asks_for_the_pin_each_time_gets_it_and_no_other_login_is_replayed() {
    let logs_in = |detail| WorkloadCall { detail, ..call("C_Login") };
    let [begin, work] = signature();
    let calls = vec![logs_in(1), begin, logs_in(2), work, logs_in(2), begin, logs_in(2), work];
    let plan = planned(calls).unwrap();
    let process = &plan.processes[0];
    assert!(process.keys[0].always_authenticate && plan.keys[0].always_authenticate);
    let steps = &process.threads[0].steps;
    let pins = steps.iter().filter(|step| step.input == StepInput::Pin);
    assert_eq!((steps.len(), pins.count()), (7, 3));
    // The user's own, which happens once before the replay.
    let [skipped] = &plan.skipped[..] else { panic!("{:?}", plan.skipped) };
    assert_eq!((skipped.count, skipped.reason), (1, SkipReason::LoginHappensOnce));
    // A login for an operation that is not replayed.
    let plan = planned(vec![logs_in(2), begin, work]).unwrap();
    assert_eq!(plan.skipped[0].reason, SkipReason::LoginHappensOnce);
    assert!(!plan.processes[0].keys[0].always_authenticate);
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
fn clients_are_dealt_to_devices_and_open_no_session_of_another() {
    let options = ReplayOptions { scale: 5, devices: 2, seed: 1, ..ReplayOptions::default() };
    let plan = planned_with(signature().to_vec(), &options).unwrap();
    let copies = |process: &ReplayProcess| -> Vec<u32> {
        process.threads.iter().map(|thread| thread.copy).collect()
    };
    let dealt: Vec<(u32, Vec<u32>)> =
        plan.processes.iter().map(|process| (process.device, copies(process))).collect();
    assert_eq!(dealt, [(0, vec![0, 2, 4]), (1, vec![1, 3])]);
    assert_eq!(plan.processes[1].sessions, [false, true, false, true, false]);
    // The same clients begin at the same moments, wherever they go.
    let one = planned_with(signature().to_vec(), &ReplayOptions { devices: 1, ..options.clone() });
    let one = one.unwrap();
    for process in &plan.processes {
        for thread in &process.threads {
            assert_eq!(thread.steps, one.processes[0].threads[thread.copy as usize].steps);
        }
    }
    // More devices than clients: the others have nothing to do.
    let few = planned_with(signature().to_vec(), &ReplayOptions { devices: 9, ..options });
    assert_eq!(few.unwrap().processes.len(), 5);
}

/// A key derived from object 1, with which something is encrypted.
fn derivation() -> [WorkloadCall; 3] {
    let derive =
        WorkloadCall { mechanism: Some(0x1050), object: 2, detail: 1, ..call("C_DeriveKey") };
    let begin = WorkloadCall { mechanism: Some(0x1087), object: 2, ..call("C_EncryptInit") };
    let work = WorkloadCall { input_bytes: 64, output_bytes: 80, ..call("C_Encrypt") };
    [derive, begin, work]
}

#[test]
fn keys_that_calls_derive_and_unwrap_are_made_by_the_same_calls() {
    let unwrap =
        WorkloadCall { mechanism: Some(0x2109), object: 4, detail: 3, ..call("C_UnwrapKey") };
    let destroy = |object| WorkloadCall { object, ..call("C_DestroyObject") };
    let calls = [&derivation()[..], &[unwrap, destroy(2), destroy(4), destroy(9)]].concat();
    let untold = planned(calls.clone()).unwrap();
    assert!(untold.keys[0].is_to_be_told(), "no curve is guessed");
    let keys = BTreeMap::from([(1, KeySpec::named("p256").unwrap())]);
    let options = ReplayOptions { keys, scale: 2, ..ReplayOptions::default() };
    let plan = planned_with(calls, &options).unwrap();
    let process = &plan.processes[0];
    // Neither is made before: those of the keys that they are made with.
    let uses: Vec<String> = process.keys.iter().map(|key| key.uses.to_string()).collect();
    assert_eq!(uses, ["derive", "unwrap"]);
    let made: Vec<_> = plan.made.iter().map(|it| (it.function, it.spec, it.count)).collect();
    let aes = KeySpec::Aes { bits: 256 };
    assert_eq!(made, [("C_DeriveKey", aes, 1), ("C_UnwrapKey", aes, 1)]);
    let objects = |thread: usize| -> Vec<_> {
        let steps = &process.threads[thread].steps;
        steps.iter().map(|step| (step.makes.map(|it| it.place), step.object)).collect()
    };
    let first = [
        (Some(0), None),
        (None, Some(0)),
        (None, None),
        (Some(1), None),
        (None, Some(0)),
        (None, Some(1)),
    ];
    assert_eq!(objects(0), first);
    assert_eq!(objects(1)[..2], [(Some(2), None), (None, Some(2))], "each copy has its own");
    assert_eq!(process.objects, 4);
    let [skipped] = &plan.skipped[..] else { panic!("{:?}", plan.skipped) };
    assert_eq!(skipped.reason, SkipReason::WouldChangeObjects, "of what the run did not make");
}

#[test]
fn what_no_call_makes_before_its_use_is_made_before_the_replay() {
    let [derive, begin, work] = derivation();
    let keys = BTreeMap::from([(1, KeySpec::named("p256").unwrap())]);
    let made = |calls: &[WorkloadCall]| {
        let options = ReplayOptions { keys: keys.clone(), ..ReplayOptions::default() };
        let plan = planned_with(calls.to_vec(), &options).unwrap();
        (plan.processes[0].objects, plan.processes[0].keys.len())
    };
    assert_eq!(made(&[derive, begin, work]), (1, 1));
    assert_eq!(made(&[begin, work, derive]), (1, 2), "used before it is made");
    let stays = WorkloadCall { on_token: true, ..derive };
    assert_eq!(made(&[stays, begin, work]), (0, 1));
    let of_itself = WorkloadCall { detail: 2, ..derive };
    assert_eq!(made(&[derive, of_itself, begin, work]), (1, 1));
    let unknown = WorkloadCall { mechanism: Some(0x8000_0001), ..derive };
    assert_eq!(made(&[unknown, begin, work]), (0, 1));
}

/// A handle of an object that is gone may be that of another one, which nobody may use or destroy.
#[test]
fn no_thread_uses_what_another_one_may_have_ended() {
    let [derive, begin, work] = derivation();
    let keys = BTreeMap::from([(1, KeySpec::named("p256").unwrap())]);
    let objects = |threads: [&[WorkloadCall]; 2]| {
        let options = ReplayOptions { keys: keys.clone(), ..ReplayOptions::default() };
        let threads = threads
            .map(|calls| WorkloadThread { calls: calls.to_vec(), ..WorkloadThread::default() });
        let workload = Workload { threads: threads.to_vec(), ..Workload::default() };
        plan_replay(&workload, &options).map_or((0, None), |plan| {
            (plan.processes[0].objects, plan.replayed.get("C_DestroyObject").copied())
        })
    };
    let in_other = |call: WorkloadCall| WorkloadCall { session: 2, ..call };
    let [begin_there, work_there] =
        [WorkloadCall { computing: Nanos(900), ..in_other(begin) }, in_other(work)];
    let destroy = WorkloadCall { object: 2, ..call("C_DestroyObject") };
    let close = call("C_CloseSession");
    assert_eq!(objects([&[derive], &[begin_there, work_there]]), (1, None));
    assert_eq!(objects([&[derive, destroy], &[begin_there, work_there]]), (0, None));
    assert_eq!(objects([&[derive, close], &[begin_there, work_there]]), (0, None));
    assert_eq!(
        objects([&[derive], &[WorkloadCall { computing: Nanos(900), ..destroy }]]),
        (0, None)
    );
    assert_eq!(objects([&[derive, begin, work, destroy, close], &[work_there]]), (1, Some(1)));
}

/// What two calls make at one moment, or two close, would be destroyed by a handle of something else.
#[test]
fn an_object_has_one_maker_and_a_session_one_end() {
    let [derive, ..] = derivation();
    let derive = WorkloadCall { duration: Nanos::ZERO, computing: Nanos::ZERO, ..derive };
    let other = WorkloadCall { session: 2, ..derive };
    let destroy = WorkloadCall { object: 2, ..call("C_DestroyObject") };
    let [close, again] = [call("C_CloseSession"), call("C_CloseSession")];
    let keys = BTreeMap::from([(1, KeySpec::named("p256").unwrap())]);
    let options = ReplayOptions { keys, ..ReplayOptions::default() };
    let plan = planned_with(vec![derive, other, destroy, close, again], &options).unwrap();
    let counts = ["C_DeriveKey", "C_DestroyObject", "C_CloseSession"]
        .map(|name| plan.replayed.get(name).copied());
    assert_eq!(counts, [Some(1), Some(1), Some(1)]);
    let reasons: Vec<_> = plan.skipped.iter().map(|it| (it.function, it.reason)).collect();
    assert!(reasons.contains(&("C_CloseSession", SkipReason::UnknownSession)), "{reasons:?}");
    assert!(reasons.contains(&("C_DeriveKey", SkipReason::WouldChangeObjects)), "{reasons:?}");
}

/// Each would wait for the other.
#[test]
fn of_two_threads_without_a_time_none_waits_for_the_other() {
    let at_once =
        |call: WorkloadCall| WorkloadCall { computing: Nanos::ZERO, duration: Nanos::ZERO, ..call };
    let make = |object| {
        at_once(WorkloadCall {
            mechanism: Some(0x1080),
            object,
            // No function that generates has a base, whatever a recording says.
            detail: 7,
            ..call("C_GenerateKey")
        })
    };
    let uses = |object| {
        let begin = WorkloadCall { mechanism: Some(0x1087), object, ..call("C_EncryptInit") };
        at_once(begin)
    };
    let thread = |calls: [WorkloadCall; 2]| WorkloadThread {
        calls: calls.to_vec(),
        ..WorkloadThread::default()
    };
    let threads = vec![thread([uses(12), make(11)]), thread([uses(11), make(12)])];
    let plan = plan_replay(&Workload { threads, ..Workload::default() }, &ReplayOptions::default());
    let plan = plan.unwrap();
    let steps = plan.processes[0].threads.iter().flat_map(|thread| &thread.steps);
    assert!(steps.clone().all(|step| step.object.is_none()));
    assert_eq!(steps.filter(|step| step.makes.is_some()).count(), 2);
}

/// Each asks for a length only, and nobody looks through all for its end.
#[test]
fn operations_that_only_ask_for_lengths_are_planned_at_once() {
    let begin = WorkloadCall {
        mechanism: Some(0x1087),
        object: 1,
        only_length: true,
        ..call("C_DecryptInit")
    };
    let update = WorkloadCall { input_bytes: 16, ..call("C_DecryptUpdate") };
    let mut calls = vec![begin; 200_000];
    calls.push(update);
    let plan = planned([calls, signature().to_vec()].concat()).unwrap();
    assert_eq!(plan.replayed, BTreeMap::from([("C_SignInit", 1), ("C_Sign", 1)]));
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

#[test]
fn a_replay_begins_with_its_first_call_and_spreads_copies_over_the_calls_alone() {
    let threads = vec![WorkloadThread {
        start: Nanos::from_secs(1_000),
        calls: signature().to_vec(),
        ..WorkloadThread::default()
    }];
    let mut workload = Workload { threads, ..Workload::default() };
    workload.head.wall_ns = Nanos::from_secs(5_000);
    let options = ReplayOptions { scale: 2, ..ReplayOptions::default() };
    let plan = plan_replay(&workload, &options).unwrap();
    let threads = &plan.processes[0].threads;
    assert_eq!(threads[0].steps[0].due, Due::At(Nanos::ZERO));
    let Due::At(second) = threads[1].steps[0].due else { panic!("no moment") };
    assert!(second <= replayed_span(&workload), "{second:?}");
}

#[test]
fn results_and_prepared_inputs_that_fill_the_memory_are_refused() {
    let [begin, work] = signature();
    let long = WorkloadCall { output_bytes: u32::MAX, ..work };
    let refused = planned(vec![begin, work, begin, long]).unwrap_err().to_string();
    assert!(refused.contains("bytes in a result"), "{refused}");
    let begin = WorkloadCall { mechanism: Some(0x1087), object: 1, ..call("C_DecryptInit") };
    let lengths =
        (0..2_000).map(|more| WorkloadCall { input_bytes: 60_000 + more, ..call("C_Decrypt") });
    let calls = lengths.flat_map(|work| [begin, work]).collect();
    let refused = planned(calls).unwrap_err().to_string();
    assert!(refused.contains("bytes in inputs that are made before"), "{refused}");
}

#[test]
fn a_session_is_opened_once_by_whoever_opens_it_and_never_without_a_number() {
    let user = signature().to_vec();
    let opens = vec![
        call("C_OpenSession"),
        call("C_OpenSession"),
        WorkloadCall { session: 0, ..call("C_OpenSession") },
        WorkloadCall { session: 0, ..call("C_CloseSession") },
    ];
    let thread = |calls| WorkloadThread { calls, ..WorkloadThread::default() };
    let threads = vec![thread(user), thread(opens)];
    let plan = plan_replay(&Workload { threads, ..Workload::default() }, &ReplayOptions::default());
    let plan = plan.unwrap();
    assert_eq!(plan.processes[0].sessions, [false], "the other thread opens it");
    assert_eq!(plan.replayed["C_OpenSession"], 1);
    assert!(!plan.replayed.contains_key("C_CloseSession"));
    assert!(plan.skipped.iter().all(|it| it.reason == SkipReason::UnknownSession));
}

#[test]
fn a_session_that_signs_and_decrypts_at_once_has_two_keys() {
    let [sign, signed] = signature();
    let decrypt = WorkloadCall { mechanism: Some(1), object: 2, ..call("C_DecryptInit") };
    let decrypted = WorkloadCall { input_bytes: 512, output_bytes: 32, ..call("C_Decrypt") };
    let plan = planned(vec![sign, decrypt, signed, decrypted]).unwrap();
    let specs: Vec<Option<KeySpec>> = plan.keys.iter().map(|key| key.spec).collect();
    assert_eq!(specs, [Some(KeySpec::Rsa { bits: 2048 }), Some(KeySpec::Rsa { bits: 4096 })]);
}

#[test]
fn what_is_left_out_is_left_out_of_the_comparison_too() {
    let login = WorkloadCall { duration: Nanos(9_000), ..call("C_Login") };
    let [begin, work] = signature();
    let calls = vec![begin, work, login, begin, work];
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    let workload = Workload { threads, ..Workload::default() };
    let plan = plan_replay(&workload, &ReplayOptions::default()).unwrap();
    let part = crate::recorded_part(&workload, &plan.processes);
    let calls = &part.threads[0].calls;
    assert_eq!(calls.len(), 4);
    // As the replay has it: the pauses before both.
    assert_eq!(calls[2].computing, Nanos(10));
    assert_eq!(replayed_span(&part), Nanos(10 + 15 + 10 + 10 + 15));
}

#[test]
fn a_transaction_there_is_made_of_the_calls_that_are_replayed() {
    let login = WorkloadCall { duration: Nanos(9_000), ..call("C_Login") };
    let [begin, work] = signature();
    let fixed = WorkloadCall { waiting: Nanos(400), after_wait: true, ..call("C_GetSessionInfo") };
    let open = |session| WorkloadCall { session, ..call("C_OpenSession") };
    let in_session = |session: u32| {
        let calls = [open(session), login, begin, work];
        calls.map(|it| WorkloadCall { session, ..it })
    };
    let calls = [in_session(1), in_session(2)].concat();
    let threads = vec![WorkloadThread { calls: calls.clone(), ..WorkloadThread::default() }];
    let sessions = Workload { threads, ..Workload::default() };
    let lengths = |workload: &Workload| -> Vec<u64> {
        let plan = plan_replay(workload, &ReplayOptions::default()).unwrap();
        let part = crate::recorded_part(workload, &plan.processes);
        let cut = tapstone_workload::transactions(&part).list;
        cut.iter().map(|one| one.end.0 - one.start.0).collect()
    };
    // Three calls of 10 with pauses of 5 and, around the login, twice 5.
    assert_eq!(lengths(&sessions), [45, 45]);
    // What follows a wait begins when it was recorded, whatever was left out before.
    let calls = [calls, vec![fixed, begin, work]].concat();
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    let workload = Workload { threads, ..Workload::default() };
    let plan = plan_replay(&workload, &ReplayOptions::default()).unwrap();
    let part = crate::recorded_part(&workload, &plan.processes);
    let begins = |workload: &Workload| -> Vec<Nanos> {
        workload.threads[0].timed_calls().map(|(begin, _)| begin).collect()
    };
    assert_eq!(begins(&part)[6], begins(&workload)[8]);
}
