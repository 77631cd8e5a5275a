//! Ctrl-C: what was measured is written, what was made is removed.

use std::time::Duration;

use rustix::process::{Signal, test_kill_process};
use tapstone_record::StoppedBy;
use tapstone_testing::{figures, hold};

use crate::run::null_module::objects;
use crate::support::{Running, Tapstone, eventually};

#[test]
fn an_interrupted_run_writes_its_record_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        figures(|| {
            let run = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]).stored();
            let run = run.args("--op rsa1024.sign --op rsa2048.sign --no-verify --token-keys");
            let run = run.args("--seconds 60").start();
            run.wait_until_it_measures();
            run.signal(signal);
            let outcome = run.wait().exits(2);
            let row = outcome.row();
            assert_eq!(row.stopped_by, Some(StoppedBy::Interrupted));
            assert!(row.window.unwrap().seconds.0 < 30.0);
            let told = outcome.record().warnings.iter().any(|text| text.contains("interrupted"));
            assert!(told, "{:?}", outcome.record().warnings);
            assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
            hold(row.completed > 50, format_args!("{} in half a second", row.completed))
        });
    }
}

#[test]
fn a_module_that_hangs_does_not_hold_up_an_interrupt() {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("HANG", "C_Sign/300")];
    let run = Tapstone::on(&model).stored();
    let run = run.args("--op rsa1024.sign --no-verify --token-keys --seconds 60").start();
    run.wait_until_it_measures();
    run.signal(Signal::INT);
    let outcome = run.wait().exits(2);
    assert_eq!(outcome.row().stopped_by, Some(StoppedBy::Interrupted));
    assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
}

/// Making a key takes longer than a call may go on after an interrupt: who is killed in it leaves
/// the key on the token.
#[test]
fn a_key_that_is_being_made_is_waited_for_and_removed() {
    let run = making_a_key_for("7s");
    run.signal(Signal::INT);
    let outcome = run.wait().exits(2);
    assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
}

/// The worker has nobody to tell that the key is there.
#[test]
fn a_key_that_is_being_made_is_removed_when_the_controller_is_killed() {
    let run = making_a_key_for("1s");
    let workers = run.workers();
    let store = run.path("store");
    let _directory = run.kill();
    let gone = || workers.iter().all(|worker| test_kill_process(*worker).is_err());
    assert!(eventually(Duration::from_secs(30), gone));
    assert_eq!(objects(&store), [""; 0]);
}

/// timeout(1) sends a signal to its program and then to the whole group.
#[test]
fn two_signals_at_once_are_one_wish() {
    let run = making_a_key_for("1s");
    run.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(20));
    run.signal(Signal::INT);
    let outcome = run.wait().exits(2);
    assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
    assert!(outcome.record_path().exists(), "{}", outcome.stderr);
}

/// A run whose worker is in a C_GenerateKeyPair that takes so long.
fn making_a_key_for(time: &str) -> Running {
    let slow = format!("C_GenerateKeyPair+{time}");
    let run = Tapstone::on(&[("SLOW", &slow)]).stored().args("--op rsa1024.sign --token-keys");
    let run = run.args("--no-verify --seconds 60").start();
    assert!(eventually(Duration::from_secs(60), || run
        .said()
        .contains("C_GenerateKeyPair is slow")));
    run
}
