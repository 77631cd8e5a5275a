//! How long sleeping calls take is worth something; how long others take is not.

use tapstone_command::run::Exit;
use tapstone_measure::units::Nanos;

use crate::support::{calls, file_of_its_own, observed, of_fixture};

#[test]
fn a_sleep_takes_at_least_as_long_as_was_asked_for() {
    let (seen, outcome) = observed(&of_fixture(&["sleep", "50"]), "default");
    assert_eq!(outcome.exit, Exit::Code(0));
    let sleeps: Vec<_> = calls(&seen, "clock_nanosleep").collect();
    let [sleep] = &sleeps[..] else { panic!("{sleeps:?}") };
    assert!(sleep.end - sleep.start >= Nanos::from_millis(50), "{sleep:?}");
    assert!(seen.slept(sleep));
    assert!(seen.ended - seen.started >= Nanos::from_millis(50));
}

#[test]
fn calls_that_cannot_sleep_never_slept_and_their_cost_is_measured() {
    let (_directory, path) = file_of_its_own();
    let (seen, _) = observed(&of_fixture(&["opens", "500", &path]), "openat,close");
    assert!(seen.calls.iter().all(|call| !seen.slept(&call)));
    let cost = seen.stop_cost;
    assert!(cost.calls >= 1000, "{cost:?}");
    assert!(cost.work > Nanos::ZERO && cost.round_trip > Nanos::ZERO, "{cost:?}");
    // The calls themselves were stopped for no longer than the program ran.
    let stopped = Nanos(cost.work.0 * cost.calls);
    assert!(stopped <= seen.ended - seen.started, "{stopped} of {}", seen.ended - seen.started);
    assert!(seen.user + seen.system > Nanos::ZERO);
}
