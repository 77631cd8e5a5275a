//! Mixed load, several keys, counted cases: everything that decides which key does what.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use tapstone_record::{Outcome as Ended, StoppedBy};

use crate::support::{Tapstone, eventually, state_of};

#[test]
fn a_mix_keeps_its_shares_by_count() {
    let run = Tapstone::on(&[("SERVICE", "200us"), ("WAIT", "sleep")]);
    let run = run.args("--mix rsa1024.sign=70,rsa2048.sign=30 --no-verify");
    let record = run.args("--threads 2 --seconds 1.5").run().exits(0).record();
    let names: Vec<&str> = record.results.iter().map(|row| row.operation.as_str()).collect();
    assert_eq!(names, ["mix", "rsa1024.sign", "rsa2048.sign"]);
    let completed = |row: usize| record.results[row].completed;
    assert_eq!(completed(0), completed(1) + completed(2));
    assert!(completed(0) > 2000, "{}", completed(0));
    let share = completed(1) as f64 / completed(0) as f64;
    eprintln!("a share of {share} for 70 %");
    assert!((0.68..=0.72).contains(&share), "{share}");
    assert!(record.results.iter().all(|row| row.latency_ns.is_some()));
    assert!(record.results.iter().all(|row| row.histogram.is_some()));
}

#[test]
fn a_failure_in_a_mix_is_its_own_operations() {
    let run = Tapstone::on(&[("SERVICE", "200us"), ("FAIL", "CKR_DATA_INVALID/10")]);
    let run = run.args("--mix rsa1024.sign=50,sha256.digest=50 --no-verify --seconds 0.5");
    let results = run.run().exits(2).record().results;
    let outcomes: Vec<Ended> = results.iter().map(|row| row.status.outcome).collect();
    assert_eq!(outcomes, [Ended::Partial, Ended::Partial, Ended::Ok]);
    assert_eq!(results[0].failed, results[1].failed);
    assert!(results[2].failed.is_empty());
}

#[test]
fn each_worker_may_have_a_key_of_its_own() {
    for (keys, count) in [("shared", 1), ("per-worker", 4), ("3", 3)] {
        let run = Tapstone::on(&[("SERVICE", "200us"), ("WAIT", "sleep")]).stored();
        let run = run.args("--op rsa1024.sign --no-verify --seconds 0.2 --threads 4 --keys");
        let row = run.arg(keys).run().exits(0).row();
        assert_eq!(row.key.unwrap().count, count, "{keys}");
    }
}

#[test]
fn keys_of_processes_are_counted_together() {
    let run = Tapstone::on(&[("SERVICE", "200us"), ("WAIT", "sleep")]).stored();
    let run = run.args("--op rsa1024.sign --no-verify --seconds 0.2 --processes 2 --token-keys");
    let outcome = run.args("--threads 2 --keys per-worker").run().exits(0);
    let key = outcome.row().key.unwrap();
    assert_eq!((key.count, key.token), (4, Some(true)));
    assert_eq!(outcome.objects(), [""; 0]);
}

#[test]
fn a_counted_row_verifies_every_result() {
    for workers in ["--threads 1", "--threads 3", "--threads 2 --processes 2", "--keys 3"] {
        // The warm-up makes more results than there is room for: it is kept for those that count.
        let run = Tapstone::on(&[("MODEL", "honest")]).logged();
        let run = run.args("--op rsa1024.sign --count 41").args(workers);
        let outcome = run.run().exits(0);
        let row = outcome.row();
        assert_eq!(row.completed, 41, "{workers}");
        assert_eq!(row.stopped_by, Some(StoppedBy::Count));
        let verification = row.verification.unwrap();
        assert_eq!((verification.eligible, verification.checked, verification.wrong), (41, 41, 0));
        // The window of a counted case ends with its last operation.
        let done = outcome.log().within(row.window.unwrap()).count() as u64;
        assert!(done.abs_diff(41) <= 4, "{workers}: the module did {done} in the window");
    }
}

#[test]
fn results_within_a_window_are_verified_too() {
    let run = Tapstone::on(&[("MODEL", "honest"), ("SERVICE", "20ms"), ("WAIT", "sleep")]);
    let row = run.args("--op rsa1024.sign --seconds 2 --threads 2").run().exits(0).row();
    let verification = row.verification.unwrap();
    assert_eq!(verification.eligible, row.completed);
    assert_eq!((verification.checked, verification.wrong), (row.completed, 0));
}

#[test]
fn an_existing_key_is_used_and_left() {
    let killed = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]).stored();
    let killed = killed.args("--op rsa1024.sign --no-verify --token-keys --seconds 60").start();
    killed.wait_until_it_measures();
    let store = killed.store();
    let _directory = killed.kill_all();
    // A key that this machine knows nothing of; its own would be removed.
    std::fs::remove_dir_all(state_of(&store)).unwrap();
    let before = std::fs::read_to_string(store.join("1.object")).unwrap();
    let label = before.lines().find_map(|line| line.strip_prefix("3 ")).unwrap();
    let bytes = (0..label.len()).step_by(2).map(|at| &label[at..at + 2]);
    let bytes: Vec<u8> = bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let label = String::from_utf8(bytes).unwrap();

    let run = Tapstone::on(&[]).stored_in(&store).args("--op rsa1024.sign --no-verify");
    let row = run.args("--seconds 0.2 --key-label").arg(&label).run().exits(0).row();
    assert_eq!(row.key.unwrap().label, Some(label));
    assert_eq!(std::fs::read_to_string(store.join("1.object")).unwrap(), before);
    assert!(store.join("2.object").exists());
}

/// `rsa1024.generate --token-keys` made session keys, which many tokens make far faster.
#[test]
fn keys_that_operations_generate_go_where_token_keys_says() {
    for operation in ["rsa1024.generate", "aes128.generate"] {
        for (arguments, on_token) in [("--token-keys", true), ("", false)] {
            let run = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]).stored();
            let run = run.args("--op").arg(operation).args("--seconds 60").args(arguments).start();
            let store = run.store();
            let kept = || fs::read_dir(&store).is_ok_and(|files| files.count() > 3);
            let seen = eventually(Duration::from_secs(if on_token { 20 } else { 2 }), kept);
            assert_eq!(seen, on_token, "{operation} {arguments}");
            run.signal(Signal::INT);
            let outcome = run.wait();
            assert_eq!(outcome.objects(), [""; 0], "{operation} {arguments}");
            assert_eq!(outcome.row().new_keys_on_token, Some(on_token), "{operation}");
        }
    }
}

/// Their label and id are those by which what a killed run left is found.
#[test]
fn generated_keys_of_a_killed_run_are_found() {
    let run = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]).stored();
    let run = run.args("--op rsa1024.generate --token-keys --seconds 60").start();
    let store = run.store();
    let kept = || fs::read_dir(&store).is_ok_and(|files| files.count() > 3);
    assert!(eventually(Duration::from_secs(20), kept));
    let _directory = run.kill_all();
    let cleaning = Tapstone::on(&[]).stored_in(&store).args("--leftovers --remove");
    let removed = cleaning.without_record().run().exits(0).stdout;
    assert!(removed.contains("removed  CKO_PRIVATE_KEY"), "{removed}");
    let left = Tapstone::on(&[]).stored_in(&store).args("--leftovers").without_record().run();
    assert!(!left.stdout.contains("CKO_"), "{}", left.stdout);
}
