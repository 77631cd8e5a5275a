//! A device that is lost and comes back.

use tapstone_record::{Outcome as Ended, StoppedBy};
use tapstone_testing::{figures, hold};

use crate::support::{Outcome, Tapstone};

/// Lost for 300 ms after some operations of a millisecond, in the middle of the window.
fn lose(arguments: &str) -> Outcome {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("LOST", "800+300ms")];
    let run = Tapstone::on(&model).stored();
    run.args("--op rsa1024.sign --no-verify --seconds 3").args(arguments).run()
}

#[test]
fn with_reconnect_the_run_goes_on_and_the_outage_is_told() {
    figures(|| {
        let outcome = lose("--reconnect").exits(2);
        let row = outcome.row();
        assert_eq!(row.status.outcome, Ended::Partial);
        assert_eq!(row.failed, [("CKR_DEVICE_REMOVED".to_owned(), 1)].into());
        assert_eq!(row.stopped_by, Some(StoppedBy::Time));
        let [gap] = &row.outages[..] else { panic!("{:?}", row.outages) };
        eprintln!("an outage of {:?} ns, {:?}", gap.length_ns, gap.code);
        assert_eq!(gap.code, "CKR_DEVICE_REMOVED");
        assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
        // 800 before it and as many as fit into more than a second and a half after it.
        hold(row.completed > 1600, row.completed)?;
        // It is looked for every 50 ms.
        let length = gap.length_ns.0 / 1_000_000;
        let start = gap.start_ns.0 / 1_000_000;
        hold((290..500).contains(&length), format_args!("{length} ms"))?;
        hold((200..1500).contains(&start), format_args!("{start} ms into the window"))
    });
}

#[test]
fn all_threads_come_back() {
    let outcome = lose("--reconnect --threads 4").exits(2);
    let row = outcome.row();
    assert_eq!(row.outages.len(), 4, "{:?}", row.outages);
    assert!(row.completed > 4000, "{}", row.completed);
    assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
}

#[test]
fn the_pin_is_not_tried_more_often_than_sessions_are_reopened() {
    // Whoever is the first of four to come back logs in; a token would count wrong PINs here.
    assert_eq!(lose("--reconnect --threads 4").wrong_pins(), None);
}

#[test]
fn without_reconnect_the_row_ends_and_keys_that_are_left_are_told() {
    let outcome = lose("--max-failures 5 --token-keys").exits(2);
    let row = outcome.row();
    assert_eq!(row.status.outcome, Ended::Partial);
    assert_eq!(row.stopped_by, Some(StoppedBy::Failures));
    assert!((400..=800).contains(&row.completed), "{}", row.completed);
    // The device is gone, and with it the way to remove them.
    let told = outcome.stderr.contains("the run's own keys could not be removed");
    assert_eq!(told, !outcome.objects().is_empty(), "{}", outcome.stderr);
    let store = outcome.path("store");
    let removal = Tapstone::on(&[]).stored_in(&store).args("--leftovers --remove");
    removal.without_record().run().exits(0);
    assert_eq!(outcome.objects(), [""; 0]);
}

/// The new main session has the handle of the old one, and must outlive it.
#[test]
fn keys_are_removed_by_a_session_that_has_the_handle_of_a_lost_one() {
    let model = [("LOST", "200+0ns"), ("HANDLES", "again"), ("SERVICE", "1ms"), ("WAIT", "sleep")];
    let run = Tapstone::on(&model).stored().args("--op rsa1024.sign --no-verify --token-keys");
    let outcome = run.args("--max-failures 1 --count 1000").run().exits(2);
    assert!(!outcome.stderr.contains("could not be removed"), "{}", outcome.stderr);
    assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
}
