//! Where the rate stops growing, on modules of which that is known.

use tapstone_record::{Knee, KneeStop};
use tapstone_testing::{figures, hold};

use crate::support::{Outcome, Tapstone};

fn find(variables: &[(&str, &str)], limits: &str) -> Outcome {
    let run = Tapstone::on(variables).args("--op rsa1024.sign --no-verify --find-limit");
    run.args(limits).quietly().run()
}

fn knee(outcome: &Outcome) -> Knee {
    let knee = outcome.record().knee.unwrap();
    for level in &knee.levels {
        let (threads, processes) = (level.threads, level.processes);
        eprintln!("{threads} threads, {processes} processes: {:.0}/s", level.rate.estimate);
        assert!(level.rate.low <= level.rate.estimate && level.rate.estimate <= level.rate.high);
    }
    eprintln!("{:?} at {:?}", knee.stopped_by, knee.smallest_at_95_percent);
    knee
}

#[test]
fn one_engine_is_busy_with_one_thread() {
    // Long enough that the timer's slack, in which an engine for one thread idles, is little.
    let model = [("SERVICE", "20ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    figures(|| {
        let knee = knee(&find(&model, "--seconds 0.8 --max-processes 1").exits(0));
        let at = knee.smallest_at_95_percent.unwrap();
        let expected = (at.threads, at.processes) == (1, 1) && knee.stopped_by == KneeStop::Plateau;
        hold(expected, format_args!("{:?} at {at:?}", knee.stopped_by))?;
        let plateau = knee.plateau.unwrap().estimate;
        hold((45.0..=50.5).contains(&plateau), plateau)
    });
}

#[test]
fn without_an_engine_the_rate_grows_to_the_last_thread_allowed() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep")];
    figures(|| {
        let knee = knee(&find(&model, "--seconds 0.3 --max-threads 8 --max-processes 1").exits(0));
        assert!(knee.levels.iter().all(|level| level.passes >= 5));
        let at = knee.smallest_at_95_percent.unwrap();
        let expected = (at.threads, at.processes) == (8, 1) && knee.stopped_by == KneeStop::Limit;
        hold(expected, format_args!("{:?} at {at:?}", knee.stopped_by))?;
        let rate =
            |threads| knee.levels.iter().find(|level| level.threads == threads).unwrap().rate;
        [(1, 2), (2, 4), (4, 8)].into_iter().try_for_each(|(fewer, more)| {
            let ratio = rate(more).estimate / rate(fewer).estimate;
            hold((1.7..=2.1).contains(&ratio), format_args!("{fewer} to {more}: {ratio}"))
        })
    });
}

#[test]
fn a_token_that_is_out_of_sessions_ends_the_search() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("SESSIONS", "4")];
    let knee = knee(&find(&model, "--seconds 0.3 --max-processes 1").exits(0));
    assert_eq!(knee.stopped_by, KneeStop::SessionCount);
    // One session is the lab's own, which holds the login and the keys: three are left.
    assert!(knee.levels.iter().all(|level| level.threads <= 3), "{:?}", knee.levels);
    assert!(knee.levels.iter().any(|level| level.threads == 2));
}

#[test]
fn processes_are_tried_after_threads() {
    // One engine in each process: threads bring nothing, processes do.
    let model = [("SERVICE", "10ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    figures(|| {
        let outcome = find(&model, "--seconds 0.4 --max-threads 4 --max-processes 4").exits(0);
        let knee = knee(&outcome);
        let at = knee.smallest_at_95_percent.unwrap();
        hold((at.threads, at.processes) == (1, 4), format_args!("{at:?}"))?;
        let plateau = knee.plateau.unwrap().estimate;
        hold((340.0..=404.0).contains(&plateau), plateau)?;
        hold(outcome.row().concurrency.processes == 4, "not the row of four processes")
    });
}

#[test]
fn a_search_ends_when_its_time_is_up() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep")];
    let knee = knee(&find(&model, "--seconds 0.3 --max-time 4").exits(0));
    assert_eq!(knee.stopped_by, KneeStop::Time);
}
