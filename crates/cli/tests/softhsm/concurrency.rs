//! Several threads in several processes: one rate, whose parts add up.

use tapstone_record::{CaseResult, Concurrency, ShareKind};

use crate::support::{Hsm, assert_all_verified};

#[test]
fn a_count_is_shared_by_threads_and_processes() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--op rsa2048.sign --threads 2 --processes 2 --count 102");
    let row = run.run().exits(0).row();
    assert_eq!(row.concurrency, Concurrency { threads: 2, processes: 2, hosts: 1 });
    assert_eq!(row.completed, 102);
    assert_all_verified(&row);
    assert_shares_add_up(&row, ShareKind::Process, &["process 1", "process 2"]);
    // 26, 26, 25 and 25.
    let shares: Vec<u64> = row.shares.iter().map(|share| share.completed).collect();
    assert_eq!(shares, [52, 50]);
    assert_eq!(row.key.unwrap().count, 2, "one in each process");
}

#[test]
fn a_window_is_shared_by_threads_and_processes() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--op ecdsa-p256.sign --threads 2 --processes 2 --seconds 0.5");
    let row = run.run().exits(0).row();
    assert_shares_add_up(&row, ShareKind::Process, &["process 1", "process 2"]);
    let verification = row.verification.unwrap();
    assert_eq!((verification.eligible, verification.wrong), (row.completed, 0));
    // There is room for all, and time for most: one more window.
    assert!(verification.checked > 100, "{verification:?}");

    let window = row.window.unwrap().seconds.0;
    let throughput = row.throughput.unwrap();
    let whole: f64 = row.shares.iter().map(|share| share.rate.0).sum();
    assert!((throughput.estimate - row.completed as f64 / window).abs() < 1e-6, "{throughput:?}");
    assert!((throughput.estimate - whole).abs() < 1e-6, "{throughput:?} and {whole} of the shares");
}

#[test]
fn each_thread_can_have_a_key_of_its_own() {
    let Some(hsm) = Hsm::new() else { return };
    for (keys, count) in [("shared", 1), ("per-worker", 3), ("5", 5)] {
        let run = hsm.tapstone().args("--op ecdsa-p256.sign --threads 3 --count 60 --keys");
        let row = run.arg(keys).run().exits(0).row();
        assert_eq!(row.key.as_ref().unwrap().count, count, "--keys {keys}");
        assert_all_verified(&row);
    }
}

/// Shares of this kind go by these names, and their sum is the row.
pub(crate) fn assert_shares_add_up(row: &CaseResult, kind: ShareKind, names: &[&str]) {
    let shares: Vec<_> = row.shares.iter().filter(|share| share.kind == kind).collect();
    let named: Vec<&str> = shares.iter().map(|share| share.name.as_str()).collect();
    assert_eq!(named, names);
    assert_eq!(shares.iter().map(|share| share.completed).sum::<u64>(), row.completed);
    let parts: f64 = shares.iter().map(|share| share.share.0).sum();
    assert!((parts - 1.0).abs() < 1e-9, "{parts}");
    assert!(shares.iter().all(|share| share.completed > 0), "{shares:?}");
}
