//! `tapstone trace --workload`: the load of a program on its token, without anything that it was
//! given.

use std::collections::BTreeMap;
use std::process::Command;

use tapstone_workload::{
    TransactionRule, Workload, WorkloadLimits, operations, read_workload, transactions,
};

use crate::fixtures;
use crate::program::{Left, Program, counts};
use crate::softhsm::Hsm;

const MODULE: &str = "libsofthsm2.so";

/// `None`, which has been said then: something is missing.
fn recorded(options: &str, more: &str) -> Option<(Left, Workload)> {
    let (searcher, hsm) = fixtures::built("searcher").zip(Hsm::new())?;
    let program = Program::new(searcher).arg(hsm.module()).args(options);
    let program = program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let left = program.traced_with(&format!("--workload load.parquet {more}")).exits(0);
    let workload = read_workload(&left.file("load.parquet"), WorkloadLimits::default()).unwrap();
    Some((left, workload))
}

fn calls_by_function(workload: &Workload) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for call in workload.threads.iter().flat_map(|thread| &thread.calls) {
        *counts.entry(call.function).or_default() += 1;
    }
    counts
}

#[test]
fn a_workload_has_every_call_of_every_thread() {
    let Some((left, workload)) = recorded("40 --threads 3", "") else { return };
    let record = left.record();
    let mut expected = counts(&record, MODULE);
    // It is called to get the others, which a replay does too.
    expected.remove("C_GetFunctionList");
    let mut seen = calls_by_function(&workload);
    seen.remove("C_GetFunctionList");
    assert_eq!(seen, expected);
    assert_eq!(seen["C_Sign"], 120);
    assert_eq!((workload.threads.len(), workload.head.module.as_str()), (3, MODULE));
    let signatures: Vec<_> =
        operations(&workload).into_iter().filter(|it| it.kind.function == "C_Sign").collect();
    assert_eq!(signatures.len(), 120);
    for signature in &signatures {
        assert_eq!((signature.kind.mechanism, signature.calls), (Some(0x251), 2));
        assert_eq!((signature.input_bytes, signature.result), (32, 0));
        assert_eq!(signature.object, signatures[0].object, "the one key");
    }
    let output = workload.threads.iter().flat_map(|thread| &thread.calls);
    let output = output.filter(|call| call.function == "C_Sign");
    assert!(output.into_iter().all(|call| call.output_bytes == 32));
}

#[test]
fn a_search_is_known_by_its_shape_and_nothing_of_it_by_name() {
    let Some((left, workload)) = recorded("5", "") else { return };
    let searches: Vec<_> = workload.threads[0]
        .calls
        .iter()
        .filter(|call| call.function == "C_FindObjectsInit")
        .collect();
    assert_eq!(searches.len(), 6);
    for search in searches {
        let names: Vec<&str> = search.shape.attributes().map(|(_, name)| name).collect();
        assert_eq!(names, ["CKA_CLASS", "CKA_LABEL"]);
        // CKO_SECRET_KEY
        assert_eq!((search.shape.class(), search.shape.count(), search.detail), (Some(4), 2, 1));
    }
    let bytes = std::fs::read(left.file("load.parquet")).unwrap();
    for secret in ["signing", "object 1", "no secret"] {
        let found = bytes.windows(secret.len()).any(|it| it == secret.as_bytes());
        assert!(!found, "{secret:?} is in the workload");
    }
}

#[test]
fn what_lies_between_waits_is_a_transaction_unless_the_user_names_one() {
    let Some((_, workload)) = recorded("20 --pause 1", "") else { return };
    let cut = transactions(&workload);
    assert_eq!(cut.rule, TransactionRule::BetweenWaits);
    assert!(cut.list.len() >= 19, "{}", cut.list.len());
    let waited: u64 = workload.threads[0].calls.iter().map(|call| call.waiting.0).sum();
    assert!(waited >= 19_000_000, "{waited} ns");
    let Some((_, named)) = recorded("20 --pause 1", "--operation C_Sign") else { return };
    let cut = transactions(&named);
    assert_eq!((cut.rule, cut.list.len()), (TransactionRule::Named("C_Sign".into()), 20));
}

#[test]
fn a_report_shows_a_workload_as_text_and_as_a_page() {
    let Some((left, _)) = recorded("20 --threads 2", "") else { return };
    let report = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        let output = command.arg("report").arg(left.file("load.parquet")).args(options);
        let output = output.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = report(&[]);
    for part in ["searcher", "C_Sign CKM_SHA256_HMAC", "2 in 1 process", "one is "] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let page = left.file("page.html");
    report(&["--output", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("C_Sign CKM_SHA256_HMAC"));
}

#[test]
fn a_broken_workload_is_refused_with_a_sentence() {
    let Some((left, _)) = recorded("5", "") else { return };
    let path = left.file("load.parquet");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tapstone")).arg("report").arg(&path).output();
    let output = output.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("no workload that can be read") && stderr.contains("hint: "),
        "{stderr}"
    );
}
