//! Ctrl-C: what was measured is written, what was made is removed.

use rustix::process::Signal;
use tapstone_record::StoppedBy;
use tapstone_testing::{figures, hold};

use crate::support::Tapstone;

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
