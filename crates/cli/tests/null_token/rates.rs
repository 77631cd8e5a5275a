//! The reported rate is what the module did between the window's moments, by its own account.

use tapstone_record::{RateBasis, ShareKind};

use crate::support::{Outcome, Tapstone};

/// The requirement: a part of the true figure.
const TOLERANCE: f64 = 0.005;

/// Measures with the module's log on, at these threads and processes.
fn measure(variables: &[(&str, &str)], workers: &str) -> Outcome {
    let run = Tapstone::on(variables).logged();
    run.args("--op rsa1024.sign --no-verify --seconds 1").args(workers).run()
}

/// Holds the record's only case against the log.
fn agrees(outcome: &Outcome) {
    let row = outcome.row();
    let window = row.window.unwrap();
    let log = outcome.log();
    let mut done = 0_u64;
    let mut failed = 0_u64;
    for noted in log.within(window) {
        *if noted.code == 0 { &mut done } else { &mut failed } += 1;
    }
    let throughput = row.throughput.unwrap();
    eprintln!(
        "{} threads, {} processes: the module did {done}, the record has {:+}; failed {failed}, {:+}",
        row.concurrency.threads,
        row.concurrency.processes,
        row.completed as i64 - done as i64,
        row.failed.values().sum::<u64>() as i64 - failed as i64,
    );
    assert_eq!(throughput.over, RateBasis::Window);
    assert!(done > 100, "{done} are too few to compare");
    close(row.completed as f64, done as f64);
    close(row.failed.values().sum::<u64>() as f64, failed as f64);
    close(throughput.estimate, done as f64 / window.seconds.0);
    close(window.seconds.0, (window.end_ns - window.start_ns).as_secs_f64());
    let counted: u64 = row.series.iter().map(|slice| slice.completed).sum();
    assert_eq!(counted, row.completed, "the slices add up");
    assert_eq!(row.histogram.unwrap().decode().unwrap().len(), row.completed);
}

fn close(reported: f64, truth: f64) {
    assert!((reported - truth).abs() <= TOLERANCE * truth, "{reported} is not {truth}");
}

#[test]
fn instant() {
    for threads in ["1", "2", "4", "16"] {
        agrees(&measure(&[], &format!("--threads {threads}")).exits(0));
    }
}

#[test]
fn slow_and_off_the_processor() {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep")];
    for threads in ["1", "2", "4", "16"] {
        agrees(&measure(&model, &format!("--threads {threads}")).exits(0));
    }
}

#[test]
fn fast_and_on_the_processor() {
    for threads in ["1", "2", "4", "16"] {
        agrees(&measure(&[("SERVICE", "20us")], &format!("--threads {threads}")).exits(0));
    }
}

#[test]
fn a_window_opens_when_the_workers_do() {
    // Many more threads than processors: whoever has to tell them waits for its turn as well.
    let run = Tapstone::on(&[("SERVICE", "20us")]).args("--op rsa1024.sign --no-verify");
    let row = run.args("--threads 64 --seconds 1").run().exits(0).row();
    let start = row.series.iter().find(|slice| slice.completed > 0).unwrap().start_ns;
    // Somebody always has the processor, and is done every 20 µs.
    assert!(start.0 < 10_000_000, "nothing was counted in the first {start:?} ns");
}

#[test]
fn one_engine_for_all_threads() {
    let model = [("SERVICE", "500us"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    for threads in ["1", "2", "4", "16"] {
        agrees(&measure(&model, &format!("--threads {threads}")).exits(0));
    }
}

#[test]
fn stalls() {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("STALL", "30ms/97")];
    for threads in ["1", "2", "4", "16"] {
        agrees(&measure(&model, &format!("--threads {threads}")).exits(0));
    }
}

#[test]
fn failures_raise_no_rate() {
    let model = [("SERVICE", "500us"), ("WAIT", "sleep"), ("FAIL", "CKR_DATA_INVALID/7")];
    for threads in ["1", "2", "4", "16"] {
        let outcome = measure(&model, &format!("--threads {threads}")).exits(2);
        agrees(&outcome);
        let row = outcome.row();
        let failed = row.failed["CKR_DATA_INVALID"] as f64;
        // One of seven fails.
        assert!((failed / row.completed as f64 - 1.0 / 6.0).abs() < 0.01, "{failed}");
        assert!(row.warnings.iter().any(|text| text.contains("operations failed")));
    }
}

#[test]
fn the_clock_read_once_an_operation() {
    agrees(&measure(&[("SERVICE", "100us")], "--chained-clock --threads 2").exits(0));
}

#[test]
fn two_processes_of_two_threads() {
    for model in [&[][..], &[("SERVICE", "1ms"), ("WAIT", "sleep")]] {
        let outcome = measure(model, "--processes 2 --threads 2").exits(0);
        agrees(&outcome);
        let row = outcome.row();
        let shares = row.shares.iter().filter(|share| share.kind == ShareKind::Process);
        let completed: Vec<u64> = shares.map(|share| share.completed).collect();
        assert_eq!(completed.len(), 2);
        assert_eq!(completed.iter().sum::<u64>(), row.completed);
    }
}

#[test]
fn two_tokens_at_once() {
    let run = Tapstone::on(&[("SLOTS", "2"), ("SERVICE", "1ms"), ("WAIT", "sleep")]).logged();
    let outcome = run
        .args("--op rsa1024.sign --no-verify --seconds 1")
        .args("--token-label null --token-label null-2")
        .run()
        .exits(0);
    agrees(&outcome);
    let tokens = outcome.row().shares.into_iter().filter(|share| share.kind == ShareKind::Token);
    let names: Vec<String> = tokens.map(|share| share.name).collect();
    assert_eq!(names, ["null", "null-2"]);
}
