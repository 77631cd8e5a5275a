//! `--phases`, and company for the keys and sessions that are measured.

use tapstone_record::CaseResult;

use crate::support::{Hsm, assert_all_verified};

#[test]
fn the_calls_of_an_operation_are_its_phases() {
    let Some(hsm) = Hsm::new() else { return };
    let operations = [
        ("rsa2048.sign", &["C_SignInit", "C_Sign"][..]),
        ("aes256-gcm.decrypt", &["C_DecryptInit", "C_Decrypt"]),
        ("sha256.digest", &["C_DigestInit", "C_Digest"]),
        ("ecdh-p256.derive", &["C_DeriveKey", "C_DestroyObject"]),
        ("find", &["C_FindObjectsInit", "C_FindObjects", "C_FindObjectsFinal"]),
        ("session", &["C_OpenSession", "C_CloseSession"]),
        ("random", &["C_GenerateRandom"]),
    ];
    for (operation, calls) in operations {
        let run = hsm.tapstone().args("--phases --count 100 --op").arg(operation);
        let row = run.run().exits(0).row();
        let named: Vec<&str> = row.phases.iter().map(|phase| phase.call.as_str()).collect();
        assert_eq!(named, calls, "{operation}");
        assert_phases_fit(&row);
    }
}

/// Their shares are the whole, and their times lie within the operation's.
fn assert_phases_fit(row: &CaseResult) {
    let shares: f64 = row.phases.iter().map(|phase| phase.share.0).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{}: {shares}", row.operation);
    let sum: f64 = row.phases.iter().map(|phase| phase.mean_ns).sum();
    let mean = row.latency_ns.unwrap().mean.unwrap().estimate;
    assert!(sum > 0.0 && sum <= mean, "{}: {sum} of {mean} ns", row.operation);
}

#[test]
fn without_phases_there_are_none() {
    let Some(hsm) = Hsm::new() else { return };
    let row = hsm.tapstone().args("--op rsa2048.sign --count 8").run().exits(0).row();
    assert_eq!(row.phases, []);
}

/// SoftHSM2 walks through all objects in a search: with twenty times as many it takes longer.
#[test]
fn more_objects_slow_a_search_down() {
    let Some(hsm) = Hsm::new() else { return };
    let mean = |objects: &str| {
        let run = hsm.tapstone().args("--op find --count 50 --key-count").arg(objects);
        run.run().exits(0).row().latency_ns.unwrap().mean.unwrap().estimate
    };
    let few = mean("0");
    let many = mean("1900");
    assert!(many > 3.0 * few, "{few} ns among 100, {many} ns among 2,000");
    assert!(hsm.objects().is_empty(), "they were session objects");
}

#[test]
fn idle_sessions_and_objects_do_not_disturb_results() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--op ecdsa-p256.sign --threads 2 --count 60");
    let row = run.args("--key-count 100 --idle-sessions 100").run().exits(0).row();
    assert_all_verified(&row);
    assert_eq!(row.key.unwrap().count, 1, "objects besides are not keys of the row");
}
