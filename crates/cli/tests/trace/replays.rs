//! `tapstone token --workload`: a recorded load on the token that it was recorded on. What was
//! called there is called here, and nothing that could cost a token.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use tapstone_measure::units::Nanos;
use tapstone_record::RateWithinOutcome;
use tapstone_testing::eventually;
use tapstone_workload::{
    TemplateShape, Workload, WorkloadCall, WorkloadLimits, WorkloadThread, read_workload,
    write_workload,
};

use crate::fixtures;
use crate::program::{Left, Program};
use crate::run::{Tapstone, null_module};
use crate::softhsm::Hsm;

/// A program's load, and the token that it was recorded on. `None`, which has been said then:
/// something is missing.
fn recorded(options: &str) -> Option<(Hsm, Left, Workload)> {
    let (searcher, hsm) = fixtures::built("searcher").zip(Hsm::new())?;
    let program = Program::new(searcher).arg(hsm.module()).args(options);
    let program = program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let left = program.traced_with("--workload load.parquet").exits(0);
    let workload = read_workload(&left.file("load.parquet"), WorkloadLimits::default()).unwrap();
    Some((hsm, left, workload))
}

fn replayed(hsm: &Hsm, left: &Left) -> Tapstone {
    hsm.tapstone().arg("--workload").arg(left.file("load.parquet"))
}

/// A load that was made up, as a file.
fn made_up(hsm: &Hsm, calls: Vec<WorkloadCall>) -> Tapstone {
    let path = hsm.path("made-up.parquet");
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    write_workload(&path, &Workload { threads, ..Workload::default() }).unwrap();
    hsm.tapstone().arg("--workload").arg(path)
}

fn call(function: &'static str) -> WorkloadCall {
    WorkloadCall { session: 1, duration: Nanos(1_000), ..WorkloadCall::named(function) }
}

/// A signature with a key of 2048 bits.
fn signature(key: u32) -> [WorkloadCall; 2] {
    let begin = WorkloadCall { mechanism: Some(1), object: key, ..call("C_SignInit") };
    [begin, WorkloadCall { input_bytes: 32, output_bytes: 256, ..call("C_Sign") }]
}

/// Functions that a replay makes as they were.
const SAME: [&str; 8] = [
    "C_GetSlotList",
    "C_GetTokenInfo",
    "C_OpenSession",
    "C_CloseSession",
    "C_FindObjectsInit",
    "C_FindObjects",
    "C_SignInit",
    "C_Sign",
];

/// What a thread called, up to times.
fn called(thread: &WorkloadThread) -> Vec<String> {
    let same = thread.calls.iter().filter(|call| SAME.contains(&call.function));
    let told = same.map(|call| {
        let WorkloadCall { function, mechanism, input_bytes, output_bytes, shape, result, .. } =
            *call;
        let only = call.only_length;
        format!("{function} {mechanism:?} {input_bytes} {output_bytes} {shape:?} {result} {only}")
    });
    told.collect()
}

#[test]
fn the_record_of_a_replay_equals_the_recording_up_to_times() {
    let Some((hsm, left, workload)) = recorded("25 --threads 3 --pause 1") else { return };
    let pin = hsm.write_secret("replay-pin", crate::softhsm::PIN);
    let again = Program::new(env!("CARGO_BIN_EXE_tapstone"))
        .args("token --quiet --module")
        .arg(hsm.module())
        .args("--token-label")
        .arg(hsm.label())
        .arg("--pin-file")
        .arg(pin)
        .arg("--workload")
        .arg(left.file("load.parquet"))
        .env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"))
        .traced_with("--workload again.parquet")
        .exits(0);
    let again = read_workload(&again.file("again.parquet"), WorkloadLimits::default()).unwrap();
    // The one that makes the keys is the replay's own.
    let own =
        |thread: &&WorkloadThread| thread.calls.iter().any(|call| call.function == "C_GenerateKey");
    let mut here: Vec<Vec<String>> =
        again.threads.iter().filter(|it| !own(it)).map(called).collect();
    let mut there: Vec<Vec<String>> = workload.threads.iter().map(called).collect();
    here.sort();
    there.sort();
    assert_eq!(there.len(), 3);
    assert!(here == there, "{here:#?}\n{there:#?}");
}

#[test]
fn counts_of_every_call_are_exact_and_both_sides_are_shown() {
    let Some((hsm, left, workload)) = recorded("40 --threads 2") else { return };
    let outcome = replayed(&hsm, &left).run().exits(0);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for call in workload.threads.iter().flat_map(|thread| &thread.calls) {
        *counts.entry(call.function).or_default() += 1;
    }
    assert_eq!(counts["C_Sign"], 80);
    let record = outcome.record();
    let signatures = record.results.iter().find(|case| case.operation == "C_Sign CKM_SHA256_HMAC");
    assert_eq!(signatures.unwrap().completed, 80);
    let verified = signatures.unwrap().verification.unwrap();
    assert_eq!((verified.eligible, verified.checked, verified.wrong), (80, 80, 0));
    let comparison = record.comparison.as_ref().unwrap();
    assert!(!comparison.cases.is_empty());
    for part in ["there and here", "C_Sign CKM_SHA256_HMAC", "transaction"] {
        assert!(outcome.stdout.contains(part), "{part:?} is not in\n{}", outcome.stdout);
    }
    for part in ["a generic secret of 32 bytes", "C_CreateObject", "C_Finalize"] {
        assert!(outcome.stderr.contains(part), "{part:?} is not in\n{}", outcome.stderr);
    }
    assert!(hsm.objects().is_empty(), "nothing is left");
}

/// Two threads that sign in the same session in turns, without pauses to keep them apart: calls in
/// another order would fail, and two at once end SoftHSM2.
#[test]
fn a_session_that_threads_use_in_turns_is_used_in_turns() {
    let Some(hsm) = Hsm::new() else { return };
    // Each answers at once, and waits for the other's two calls.
    let turns = |start| WorkloadThread {
        start: Nanos(start),
        calls: (0..200)
            .flat_map(|_| {
                let [begin, work] = signature(1);
                [WorkloadCall { computing: Nanos(2_000), ..begin }, work]
            })
            .collect(),
        ..WorkloadThread::default()
    };
    let path = hsm.path("turns.parquet");
    let threads = vec![turns(0), turns(2_000)];
    write_workload(&path, &Workload { threads, ..Workload::default() }).unwrap();
    for _ in 0..3 {
        let record = hsm.tapstone().arg("--workload").arg(&path).run().exits(0).record();
        let signs = record.results.iter().find(|case| case.operation == "C_Sign CKM_RSA_PKCS");
        let signs = signs.unwrap();
        assert_eq!((signs.completed, signs.failed.len()), (400, 0));
        assert_eq!(signs.verification.unwrap().wrong, 0);
    }
    assert!(hsm.objects().is_empty(), "nothing is left");
}

/// A program that begins an operation and never comes back to it.
#[test]
fn what_never_ended_is_said_and_not_counted_as_completed() {
    let Some(hsm) = Hsm::new() else { return };
    let mut calls = signature(1).to_vec();
    calls.push(WorkloadCall { session: 2, ..signature(1)[0] });
    let outcome = made_up(&hsm, calls).run().exits(0);
    let record = outcome.record();
    let signs = record.results.iter().find(|case| case.operation == "C_Sign CKM_RSA_PKCS");
    let signs = signs.unwrap();
    assert_eq!((signs.completed, signs.failed.get("never ended")), (1, Some(&1)));
    let mut report = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    let output = report.arg("report").arg(hsm.path("made-up.parquet")).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let row = shown.lines().find(|line| line.contains("C_Sign CKM_RSA_PKCS")).unwrap();
    assert!(row.ends_with("1 never ended"), "{shown}");
    assert!(hsm.objects().is_empty(), "nothing is left");
}

/// As `pkcs11-tool --list-objects` reads: objects of which a recording does not tell what they are.
#[test]
fn reads_of_objects_that_no_operation_used_are_made_of_a_stand_in() {
    let Some(hsm) = Hsm::new() else { return };
    let read = |object, shape| WorkloadCall {
        object,
        shape: TemplateShape(shape),
        ..call("C_GetAttributeValue")
    };
    // CKA_CLASS; CKA_MODULUS and two that are not told apart; lengths alone.
    let [class, modulus, lengths] = [1 << 16 | 1, 3 << 16 | 1 << 9, 1 << 40 | 1 << 16 | 1 << 4];
    let calls = vec![read(1, class), read(1, modulus), read(2, class), read(2, lengths)];
    let outcome = made_up(&hsm, calls).run().exits(0);
    let record = outcome.record();
    let reads = record.results.iter().find(|case| case.operation == "C_GetAttributeValue").unwrap();
    assert_eq!((reads.completed, reads.failed.len()), (4, 0));
    assert!(!outcome.stdout.contains("failed here"), "{}", outcome.stdout);
    let said =
        "4 C_GetAttributeValue of objects that no operation used read a small session object";
    assert!(outcome.stdout.contains(said) && outcome.stderr.contains(said), "{}", outcome.stdout);
    assert!(record.warnings.iter().any(|warning| warning.starts_with(said)));
    assert!(hsm.objects().is_empty(), "nothing is left");
}

/// Recorded on SoftHSM2, asked of it behind p11-kit's remoting: another module, and a process between.
#[test]
fn a_load_is_replayed_through_p11_kits_remoting() {
    const CLIENT: &str = "/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so";
    let Some((hsm, left, _)) = recorded("20") else { return };
    if !std::path::Path::new(CLIENT).exists() {
        return tapstone_testing::skip("p11-kit-modules");
    }
    let socket = hsm.path("p11-kit");
    let mut server = Command::new("p11-kit")
        .args(["server", "--foreground", "--provider"])
        .arg(hsm.module())
        .arg("--name")
        .arg(&socket)
        .arg(format!("pkcs11:token={}", hsm.label()))
        .env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_there = eventually(Duration::from_secs(30), || socket.exists());
    let outcome = is_there.then(|| {
        Tapstone::new("token")
            .arg("--module")
            .arg(CLIENT)
            .arg("--token-label")
            .arg(hsm.label())
            .pin(crate::softhsm::PIN)
            .env("P11_KIT_SERVER_ADDRESS", format!("unix:path={}", socket.display()))
            .arg("--workload")
            .arg(left.file("load.parquet"))
            .run()
    });
    server.kill().unwrap();
    server.wait().unwrap();
    let record = outcome.unwrap().exits(0).record();
    let signs = record.results.iter().find(|case| case.operation == "C_Sign CKM_SHA256_HMAC");
    assert_eq!(signs.unwrap().completed, 20);
    assert!(hsm.objects().is_empty(), "nothing is left");
}

/// Keys that an application derives, unwraps and generates for one operation each, and destroys.
#[test]
fn keys_that_calls_make_are_made_by_the_same_calls_and_are_gone() {
    let Some(hsm) = Hsm::new() else { return };
    let [ecdh, wrap, gcm, generate] = [0x1050, 0x2109, 0x1087, 0x1080];
    let make = |function, mechanism, object, base| WorkloadCall {
        mechanism: Some(mechanism),
        object,
        detail: base,
        ..call(function)
    };
    let mut calls = Vec::new();
    for object in (10..70).step_by(3) {
        // CKA_VALUE: as TLS takes what was agreed upon.
        let value = TemplateShape(1 << 16 | 1 << 6);
        let makes =
            [("C_DeriveKey", ecdh, 1), ("C_UnwrapKey", wrap, 2), ("C_GenerateKey", generate, 0)];
        for (object, (function, mechanism, base)) in (object..).zip(makes) {
            calls.push(make(function, mechanism, object, base));
            calls.push(WorkloadCall { mechanism: Some(gcm), object, ..call("C_EncryptInit") });
            calls.push(WorkloadCall { input_bytes: 64, output_bytes: 80, ..call("C_Encrypt") });
            calls.push(WorkloadCall { object, shape: value, ..call("C_GetAttributeValue") });
            calls.push(WorkloadCall { object, ..call("C_DestroyObject") });
        }
    }
    let untold = made_up(&hsm, calls.clone()).run().exits(2);
    assert!(untold.stderr.contains("--workload-key 1=p256"), "{}", untold.stderr);
    let outcome = made_up(&hsm, calls).args("--workload-key 1=p256").run().exits(0);
    for part in ["C_DeriveKey", "an AES key of 256 bits", "20"] {
        assert!(outcome.stderr.contains(part), "{part:?} is not in\n{}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("not replayed"), "{}", outcome.stderr);
    let record = outcome.record();
    let counts = |name: &str| {
        let case = record.results.iter().find(|case| case.operation == name).unwrap();
        (case.completed, case.failed.len())
    };
    assert_eq!(counts("C_DeriveKey CKM_ECDH1_DERIVE"), (20, 0));
    assert_eq!(counts("C_UnwrapKey CKM_AES_KEY_WRAP"), (20, 0));
    assert_eq!(counts("C_GenerateKey CKM_AES_KEY_GEN"), (20, 0));
    assert_eq!(counts("C_Encrypt CKM_AES_GCM"), (60, 0));
    assert_eq!(counts("C_DestroyObject"), (60, 0));
    assert!(hsm.objects().is_empty(), "nothing is left");
}

/// What a session does in between is no part of an operation: its IV is that of its own input.
#[test]
fn a_decryption_around_another_call_gets_its_own_iv() {
    let Some(hsm) = Hsm::new() else { return };
    let begin = WorkloadCall { mechanism: Some(0x1087), object: 1, ..call("C_DecryptInit") };
    let unwrap =
        WorkloadCall { mechanism: Some(0x2109), object: 3, detail: 2, ..call("C_UnwrapKey") };
    let work = WorkloadCall { input_bytes: 80, output_bytes: 64, ..call("C_Decrypt") };
    let record = made_up(&hsm, vec![begin, unwrap, work]).run().exits(0).record();
    let case = |name: &str| record.results.iter().find(|case| case.operation == name).unwrap();
    assert_eq!(case("C_Decrypt CKM_AES_GCM").verification.unwrap().wrong, 0);
    assert_eq!(case("C_UnwrapKey CKM_AES_KEY_WRAP").completed, 1);
}

/// Those that were refused here took longest there.
#[test]
fn what_failed_here_is_left_out_there() {
    let Some(hsm) = Hsm::new() else { return };
    let encryption = |bytes, duration| {
        let begin = WorkloadCall { mechanism: Some(0x1082), object: 1, ..call("C_EncryptInit") };
        let work = WorkloadCall { input_bytes: bytes, output_bytes: bytes, ..call("C_Encrypt") };
        [begin, WorkloadCall { duration: Nanos(duration), ..work }]
    };
    let calls = [encryption(100, 900_000), encryption(100, 900_000), encryption(16, 20_000)];
    let outcome = made_up(&hsm, calls.concat()).run().exits(2);
    let row = outcome.stdout.lines().rev().find(|line| line.contains("C_Encrypt CKM_AES_CBC"));
    let words: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(words[2..6], ["3", "1", "21.0", "µs"], "{}", outcome.stdout);
}

/// SoftHSM2 has no SHA-3: that is known before anything runs, and an error that comes at once is no
/// latency.
#[test]
fn what_a_token_lacks_is_told_before_and_has_no_latency() {
    let Some(hsm) = Hsm::new() else { return };
    let hash = |number, bytes| {
        let begin = WorkloadCall { mechanism: Some(number), ..call("C_DigestInit") };
        let work = WorkloadCall { input_bytes: 100, output_bytes: bytes, ..call("C_Digest") };
        [begin, WorkloadCall { duration: Nanos(1_000_000), ..work }]
    };
    let [sha256, sha3_256] = [0x250, 0x2b0];
    let calls = [hash(sha256, 32), hash(sha3_256, 32)].concat();
    let outcome = made_up(&hsm, calls).run().exits(2);
    let said = "the token does not list the mechanisms of these";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let row = |name: &str| {
        let mut lines = outcome.stdout.lines().rev();
        let line = lines.find(|line| line.trim().starts_with(name)).unwrap();
        line.split("  ").map(str::trim).filter(|it| !it.is_empty()).skip(1).collect::<Vec<_>>()
    };
    assert_eq!(row("C_Digest CKM_SHA256")[..2], ["1", "1"]);
    assert_eq!(row("C_Digest CKM_SHA3_256"), ["1", "0", "–", "–", "–", "–", "–"]);
    assert_eq!(row("transaction")[..2], ["2", "1"], "one of them failed");
    let record = outcome.record();
    let case = |name: &str| record.results.iter().find(|case| case.operation == name).unwrap();
    let counts = |name: &str| (case(name).completed, case(name).failed.values().sum::<u64>());
    assert_eq!(counts("C_Digest CKM_SHA3_256"), (0, 1));
    // Its C_DigestInit, and the C_Digest that nothing was begun for.
    assert_eq!(counts("transaction"), (1, 2));
    let warns = |part: &str| record.warnings.iter().any(|warning| warning.contains(part));
    assert!(warns("C_Digest CKM_SHA3_256, asked for 1 time, is of a mechanism"), "{record:?}");
}

#[test]
fn three_times_the_clients_make_three_times_the_calls() {
    let Some((hsm, left, _)) = recorded("20 --threads 2 --pause 1") else { return };
    let outcome = replayed(&hsm, &left).args("--scale 3x").run().exits(0);
    let record = outcome.record();
    let signatures = record.results.iter().find(|case| case.operation == "C_Sign CKM_SHA256_HMAC");
    assert_eq!(signatures.unwrap().completed, 3 * 40);
}

#[test]
fn keys_on_the_token_are_gone_afterwards() {
    let Some(hsm) = Hsm::new() else { return };
    let calls = (0..20).flat_map(|_| signature(1)).collect();
    made_up(&hsm, calls).args("--token-keys").run().exits(0);
    assert!(hsm.objects().is_empty());
}

#[test]
fn a_pin_change_in_the_middle_changes_no_pin_and_no_object_is_destroyed() {
    let Some(hsm) = Hsm::new() else { return };
    if hsm.pkcs11_tool("--keypairgen --key-type EC:prime256v1 --label mine --id 01").is_none() {
        return;
    }
    let before = hsm.objects();
    let mut calls: Vec<WorkloadCall> = signature(1).to_vec();
    for function in ["C_SetPIN", "C_InitPIN", "C_InitToken", "C_Logout", "C_Login"] {
        calls.push(call(function));
    }
    // Handles that objects of the user's have.
    for object in 1..20 {
        calls.push(WorkloadCall { object, ..call("C_DestroyObject") });
        calls.push(WorkloadCall { object, ..call("C_SetAttributeValue") });
    }
    calls.extend(signature(1));
    for _ in 0..2 {
        let outcome = made_up(&hsm, calls.clone()).run().exits(0);
        assert!(
            outcome.stderr.contains("it would change a PIN or the token"),
            "{}",
            outcome.stderr
        );
    }
    assert_eq!(hsm.objects(), before);
}

#[test]
fn loads_that_ask_for_too_much_are_refused_before_anything_runs() {
    let Some(hsm) = Hsm::new() else { return };
    let keys = (1..=10_001).flat_map(signature).collect();
    let refused = made_up(&hsm, keys).without_record().run().exits(2).stderr;
    assert!(refused.contains("10001 keys") && refused.contains("hint: "), "{refused}");
    let [begin, work] = signature(1);
    let long = WorkloadCall { input_bytes: u32::MAX, ..work };
    let refused = made_up(&hsm, vec![begin, long]).without_record().run().exits(2).stderr;
    assert!(refused.contains("bytes in an input") && refused.contains("hint: "), "{refused}");
    let silent = WorkloadCall { output_bytes: 0, ..work };
    let refused = made_up(&hsm, vec![begin, silent]).without_record().run().exits(2).stderr;
    assert!(refused.contains("--workload-key 1=rsa2048"), "{refused}");
    made_up(&hsm, vec![begin, silent]).args("--workload-key 1=rsa2048").run().exits(0);
}

#[test]
fn decryptions_and_verifications_get_inputs_that_are_right() {
    let Some(hsm) = Hsm::new() else { return };
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(WorkloadCall { mechanism: Some(0x1), object: 1, ..call("C_DecryptInit") });
        calls.push(WorkloadCall { input_bytes: 256, output_bytes: 48, ..call("C_Decrypt") });
        calls.push(WorkloadCall { mechanism: Some(0x40), object: 2, ..call("C_VerifyInit") });
        calls.push(WorkloadCall { input_bytes: 100, output_bytes: 256, ..call("C_Verify") });
        calls.push(WorkloadCall { mechanism: Some(0x1082), object: 3, ..call("C_EncryptInit") });
        calls.push(WorkloadCall { input_bytes: 64, output_bytes: 64, ..call("C_Encrypt") });
        calls.push(WorkloadCall { mechanism: Some(0x250), ..call("C_DigestInit") });
        calls.push(WorkloadCall { input_bytes: 64, ..call("C_DigestUpdate") });
        calls.push(WorkloadCall { output_bytes: 32, ..call("C_DigestFinal") });
    }
    let outcome = made_up(&hsm, calls).run().exits(0);
    let record = outcome.record();
    for operation in
        ["C_Decrypt CKM_RSA_PKCS", "C_Verify CKM_SHA256_RSA_PKCS", "C_Encrypt CKM_AES_CBC"]
    {
        let case = record.results.iter().find(|case| case.operation == operation);
        let case = case.unwrap_or_else(|| panic!("no {operation} in {}", outcome.stdout));
        assert_eq!((case.completed, case.failed.len()), (10, 0), "{operation}");
        let verified = case.verification.unwrap();
        assert_eq!((verified.checked, verified.wrong), (10, 0), "{operation}");
    }
}

#[test]
fn decryptions_and_verifications_in_parts_get_inputs_that_are_right() {
    let Some(hsm) = Hsm::new() else { return };
    let part = |function, input_bytes, output_bytes| WorkloadCall {
        input_bytes,
        output_bytes,
        ..call(function)
    };
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(WorkloadCall { mechanism: Some(0x1085), object: 1, ..call("C_DecryptInit") });
        calls.push(part("C_DecryptUpdate", 40, 32));
        calls.push(part("C_DecryptUpdate", 40, 32));
        calls.push(part("C_DecryptFinal", 0, 15));
        calls.push(WorkloadCall { mechanism: Some(0x40), object: 2, ..call("C_VerifyInit") });
        calls.push(part("C_VerifyUpdate", 70, 0));
        calls.push(part("C_VerifyUpdate", 30, 0));
        calls.push(part("C_VerifyFinal", 256, 0));
    }
    let outcome = made_up(&hsm, calls).run().exits(0);
    let record = outcome.record();
    for operation in ["C_Decrypt CKM_AES_CBC_PAD", "C_Verify CKM_SHA256_RSA_PKCS"] {
        let case = record.results.iter().find(|case| case.operation == operation);
        let case = case.unwrap_or_else(|| panic!("no {operation} in {}", outcome.stdout));
        assert_eq!((case.completed, case.failed.len()), (10, 0), "{operation}");
        let verified = case.verification.unwrap();
        assert_eq!((verified.checked, verified.wrong), (10, 0), "{operation}");
    }
    assert!(!outcome.stdout.contains("C_DecryptUpdate"), "left out: {}", outcome.stdout);
}

#[test]
fn a_key_that_asks_for_the_pin_at_each_operation_gets_it() {
    let Some(hsm) = Hsm::new() else { return };
    let log_in = WorkloadCall { detail: 2, ..call("C_Login") };
    let [begin, work] = signature(1);
    let verify = [
        WorkloadCall { mechanism: Some(1), object: 1, ..call("C_VerifyInit") },
        WorkloadCall { input_bytes: 32, output_bytes: 256, ..call("C_Verify") },
    ];
    let calls: Vec<_> = (0..10).flat_map(|_| [begin, log_in, work]).chain(verify).collect();
    let outcome = made_up(&hsm, calls.clone()).args("--scale 3x").run().exits(0);
    let case =
        outcome.record().results.into_iter().find(|case| case.operation.starts_with("C_Sign"));
    let case = case.unwrap();
    assert_eq!((case.completed, case.failed.len(), case.verification.unwrap().wrong), (30, 0, 0));
    // Without the logins the same token refuses to sign with such a key.
    let without: Vec<_> = [begin, log_in, work, begin, work].to_vec();
    let refused = made_up(&hsm, without).run().exits(2);
    assert!(refused.stdout.contains("CKR_USER_NOT_LOGGED_IN"), "{}", refused.stdout);
}

#[test]
fn a_signature_over_a_bare_number_is_made_below_the_modulus() {
    let Some(hsm) = Hsm::new() else { return };
    let mut calls = Vec::new();
    for bytes in 250..=256 {
        calls.push(WorkloadCall { mechanism: Some(0x3), object: 1, ..call("C_VerifyInit") });
        calls.push(WorkloadCall { input_bytes: 256, output_bytes: 256, ..call("C_Verify") });
        calls.push(WorkloadCall { mechanism: Some(0x1), object: 1, ..call("C_SignInit") });
        calls.push(WorkloadCall { input_bytes: bytes - 100, output_bytes: 256, ..call("C_Sign") });
    }
    for seed in 1..=4 {
        made_up(&hsm, calls.clone()).args(&format!("--seed {seed}")).run().exits(0);
    }
}

#[test]
fn a_token_that_signs_wrongly_is_found_out() {
    let Some(hsm) = Hsm::new() else { return };
    let path = hsm.path("signatures.parquet");
    let calls = (0..9).flat_map(|_| signature(1)).collect();
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    write_workload(&path, &Workload { threads, ..Workload::default() }).unwrap();
    let replayed = || {
        Tapstone::new("token")
            .arg("--module")
            .arg(null_module::path())
            .pin(null_module::PIN)
            .env("NULL_MODULE_MODEL", "honest")
            .arg("--workload")
            .arg(&path)
    };
    let record = replayed().run().exits(0).record();
    let signed = record.results.iter().find(|case| case.operation == "C_Sign CKM_RSA_PKCS");
    let right = signed.unwrap().verification.unwrap();
    assert_eq!((right.checked, right.wrong), (9, 0));
    let outcome = replayed().env("NULL_MODULE_WRONG", "3").run().exits(2);
    assert!(outcome.stdout.contains("3 results of this token are wrong"), "{}", outcome.stdout);
}

/// A token with one server that takes 2 ms for a signature, and a client that asks for one every 10 ms
/// at moments that it does not choose: more than five of them are never carried.
#[test]
fn how_many_times_a_load_is_carried_is_found() {
    let home = Tapstone::new("token");
    let path = home.path("load.parquet");
    let arrival = |_| {
        let [begin, work] = signature(1);
        [WorkloadCall { waiting: Nanos(9_998_000), after_wait: true, ..begin }, work]
    };
    let calls: Vec<WorkloadCall> = (0..120).flat_map(arrival).collect();
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    write_workload(&path, &Workload { threads, ..Workload::default() }).unwrap();
    let outcome = home
        .arg("--module")
        .arg(null_module::path())
        .pin(null_module::PIN)
        .arg("--workload")
        .arg(path)
        .arg("--scale-until")
        .arg("p90 <= 200ms")
        .arg("--no-verify")
        .env("NULL_MODULE_SERVICE", "2ms")
        .env("NULL_MODULE_WAIT", "sleep")
        .env("NULL_MODULE_ENGINE", "shared")
        .run()
        .exits(0);
    let record = outcome.record();
    let within = record.rate_within.as_ref().unwrap();
    assert_eq!(within.outcome, RateWithinOutcome::Rate, "{}", outcome.stdout);
    // 100 transactions a second for each client, and 500 are served.
    let rate = within.rate.unwrap();
    assert!((200.0..=500.0).contains(&rate.low), "{rate:?}\n{}", outcome.stdout);
    assert!(rate.high <= 850.0, "{rate:?}");
    assert!(within.levels.len() >= 4);
    assert!(outcome.stdout.contains("this token carries the load "), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("looks for how many times"), "{}", outcome.stderr);
}

#[test]
fn a_load_that_is_not_carried_once_and_a_bound_that_is_none_are_said() {
    let home = Tapstone::new("token");
    let path = home.path("load.parquet");
    let calls = (0..20).flat_map(|_| signature(1)).collect();
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    write_workload(&path, &Workload { threads, ..Workload::default() }).unwrap();
    let replayed = |bound: &str| {
        let token = Tapstone::new("token").arg("--module").arg(null_module::path());
        let token = token.pin(null_module::PIN).env("NULL_MODULE_SERVICE", "150ms");
        let token = token.env("NULL_MODULE_WAIT", "sleep").arg("--workload").arg(&path);
        token.arg("--no-verify").arg("--scale-until").arg(bound).run()
    };
    let outcome = replayed("p50 <= 100ms").exits(0);
    assert!(outcome.stdout.contains("does not carry the load even once"), "{}", outcome.stdout);
    assert_eq!(outcome.record().rate_within.unwrap().outcome, RateWithinOutcome::NoRate);
    let none = replayed("mean <= 5ms").exits(2);
    assert!(none.stderr.contains("the mean is not a quantile"), "{}", none.stderr);
}
