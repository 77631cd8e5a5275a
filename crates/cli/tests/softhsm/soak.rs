//! An endurance run in small: the course of the window is in the record.

use tapstone_measure::units::Nanos;
use tapstone_record::StoppedBy;

use crate::support::Hsm;

#[test]
fn the_series_covers_the_window_and_drift_is_told_only_where_it_is() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--op rsa2048.sign --duration 3s --verbose");
    let outcome = run.run().exits(0);
    let row = outcome.row();
    assert_eq!(row.stopped_by, Some(StoppedBy::Time));
    let window = row.window.unwrap();
    let length = window.end_ns - window.start_ns;
    assert!((2.9..3.1).contains(&window.seconds.0), "{window:?}");

    let mut reached = Nanos::ZERO;
    for slice in &row.series {
        assert_eq!(slice.start_ns, reached, "slices follow one another");
        reached = slice.end_ns.unwrap();
    }
    assert_eq!(reached, length);
    assert!(row.series.len() >= 60, "{} slices", row.series.len());
    assert_eq!(row.series.iter().map(|slice| slice.completed).sum::<u64>(), row.completed);
    let silent = row.series.iter().filter(|slice| slice.completed == 0).count();
    assert!(silent < row.series.len() / 2, "{silent} slices in which nothing ended");

    // Words may be broken over lines.
    let text = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let warned = row.warnings.iter().any(|warning| warning.contains("last fifth"));
    assert_eq!(text.contains("last fifth"), warned, "{}", outcome.stdout);
}
