//! Where the rate stops growing, on modules of which that is known.

use std::time::Duration;

use rustix::process::Signal;
use tapstone_record::{Knee, KneeStop, LimitedBy, Status};
use tapstone_testing::{figures, hold, undisturbed};

use crate::support::{Outcome, Tapstone};

fn find(variables: &[(&str, &str)], limits: &str) -> Outcome {
    let run = Tapstone::on(variables).args("--op rsa1024.sign --no-verify --find-limit");
    run.args(limits).quietly().run()
}

fn knee(outcome: &Outcome) -> Knee {
    let knee = outcome.record().knee.unwrap();
    for level in &knee.levels {
        let threads = level.threads;
        let processes = level.processes;
        eprintln!("{threads} threads, {processes} processes: {:.0}/s", level.rate.estimate);
        let rate = level.rate;
        assert_eq!(level.passes == 1, (rate.low, rate.high) == (None, None), "{level:?}");
        assert!(rate.low.is_none_or(|low| low <= rate.estimate), "{level:?}");
        assert!(rate.high.is_none_or(|high| high >= rate.estimate), "{level:?}");
    }
    eprintln!("{:?} at {:?}", knee.stopped_by, knee.concurrency);
    eprintln!("{:?}", knee.limit);
    knee
}

fn limited_by(knee: &Knee) -> LimitedBy {
    knee.limit.as_ref().unwrap().limited_by
}

#[test]
fn one_engine_is_busy_with_one_thread() {
    // Long enough that the timer's slack, in which an engine for one thread idles, is little.
    let model = [("SERVICE", "20ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    figures(|| {
        let knee = knee(&find(&model, "--seconds 0.8 --max-processes 1").exits(0));
        assert_ne!(limited_by(&knee), LimitedBy::Device, "another process was not tried");
        let expected = knee.stopped_by == KneeStop::Plateau;
        hold(expected, format_args!("{:?}", knee.stopped_by))?;
        let at = knee.concurrency.unwrap();
        hold((at.threads, at.processes) == (1, 1), format_args!("{at:?}"))?;
        let plateau = knee.plateau.unwrap().estimate;
        hold((45.0..=50.5).contains(&plateau), plateau)
    });
}

#[test]
fn one_engine_for_all_processes_is_the_device() {
    let home = tempfile::tempdir().unwrap();
    let engine = home.path().join("engine");
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("ENGINE_FILE", engine.to_str().unwrap())];
    figures(|| {
        let outcome = find(&model, "--seconds 0.2 --max-processes 2").exits(0);
        let knee = knee(&outcome);
        hold(limited_by(&knee) == LimitedBy::Device, format_args!("{:?}", knee.limit))?;
        assert_eq!(knee.process_limit, None);
        assert_eq!(outcome.row().limited_by, LimitedBy::Device);
        let evidence = outcome.row().limit.unwrap();
        hold(evidence.waits.unwrap().sleep.0 > 0.8, format_args!("{:?}", evidence.waits))?;
        hold(evidence.running_share.unwrap().0 < 0.2, format_args!("{evidence:?}"))
    });
}

#[test]
fn without_an_engine_the_rate_grows_to_the_last_thread_allowed() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep")];
    let search = || {
        let outcome = find(&model, "--seconds 0.3 --max-threads 8 --max-processes 1").exits(0);
        let knee = knee(&outcome);
        assert!(knee.levels.iter().all(|level| level.passes >= 5));
        assert_ne!(limited_by(&knee), LimitedBy::Device);
        assert_eq!(knee.stopped_by, KneeStop::Limit);
        assert_eq!((knee.concurrency, knee.plateau), (None, None), "no knee was seen");
        assert_eq!(outcome.row().concurrency.threads, 8);
        knee
    };
    search();
    // Other programs are named first where they are what keeps the rate from growing.
    undisturbed(0.5, 0.2, search, |knee| {
        let limit = knee.limit.as_ref().unwrap();
        hold(limit.limited_by == LimitedBy::SearchCap, format_args!("{limit:?}"))?;
        assert!(limit.why.contains("--max-threads"));
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
    // One session is the controller's own, which holds the login and the keys: three are left.
    assert!(knee.levels.iter().all(|level| level.threads <= 3), "{:?}", knee.levels);
    assert!(knee.levels.iter().any(|level| level.threads == 2));
    assert_ne!(limited_by(&knee), LimitedBy::Device);
}

/// With room for one session there is none for a measuring thread beside the one that holds the login
/// and the keys.
#[test]
fn a_token_of_one_session_is_measured_with_that_one() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("SESSIONS", "1"), ("MODEL", "honest")];
    let row = Tapstone::on(&model).args("--op rsa2048.sign --count 20").run().exits(0).row();
    assert_eq!(row.status, Status::OK);
    let verification = row.verification.unwrap();
    assert!(verification.checked == 20 && verification.wrong == 0, "{verification:?}");
}

#[test]
fn a_token_of_one_session_says_what_stopped_the_search() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("SESSIONS", "1")];
    let found = find(&model, "--seconds 0.2 --max-processes 1").exits(0);
    let knee = knee(&found);
    assert_eq!(knee.stopped_by, KneeStop::SessionCount);
    assert!(knee.levels.iter().all(|level| level.threads == 1), "{:?}", knee.levels);
    assert_ne!(limited_by(&knee), LimitedBy::Device);
    assert!(knee.limit.unwrap().why.contains("CKR_SESSION_COUNT"));
}

/// Two threads cannot share it: one error, and nothing is left behind.
#[test]
fn a_token_of_one_session_has_none_for_two_threads() {
    let model = [("SESSIONS", "1")];
    let run = Tapstone::on(&model).args("--op rsa2048.sign --threads 2 --seconds 0.2");
    let status = run.run().exits(2).row().status;
    let code = status.code.unwrap_or_default();
    assert_eq!(code, "CKR_SESSION_COUNT");
}

#[test]
fn processes_are_tried_after_threads() {
    // One engine in each process: threads bring nothing, processes do.
    let model = [("SERVICE", "10ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    figures(|| {
        let outcome = find(&model, "--seconds 0.4 --max-threads 8 --max-processes 4").exits(0);
        let knee = knee(&outcome);
        assert_ne!(limited_by(&knee), LimitedBy::Device);
        hold(limited_by(&knee) == LimitedBy::SearchCap, format_args!("{:?}", knee.limit))?;
        let one_process = knee.process_limit.map(|limit| limit.limited_by);
        let connection = one_process == Some(LimitedBy::ProcessConnection);
        hold(connection, format_args!("{one_process:?}"))?;
        let case = outcome.row();
        hold(case.concurrency.processes == 4, "not the case of four processes")?;
        let rate = case.throughput.unwrap().estimate;
        // Four engines of 100/s; of each, one completion more can fall into the window's 0.4 s.
        hold((340.0..=410.0).contains(&rate), rate)
    });
}

#[test]
fn a_lock_of_the_library_is_told_from_a_connection() {
    let model = [("SERVICE", "10ms"), ("WAIT", "sleep"), ("LOCK", "sleep")];
    figures(|| {
        let limits = "--seconds 0.2 --max-threads 8 --max-processes 2";
        let knee = knee(&find(&model, limits).exits(0));
        assert_ne!(limited_by(&knee), LimitedBy::Device);
        let one_process = knee.process_limit.map(|limit| limit.limited_by);
        hold(one_process == Some(LimitedBy::ProcessLock), format_args!("{one_process:?}"))
    });
}

#[test]
fn a_search_ends_when_its_time_is_up() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep")];
    let knee = knee(&find(&model, "--seconds 0.3 --max-time 4").exits(0));
    assert_eq!(knee.stopped_by, KneeStop::Time);
    assert_ne!(limited_by(&knee), LimitedBy::Device);
}

#[test]
fn a_search_goes_on_after_a_failure_and_names_no_limit() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("FAIL", "CKR_FUNCTION_FAILED/100")];
    let knee = knee(&find(&model, "--seconds 0.2 --max-threads 4 --max-processes 1").exits(2));
    assert_eq!(knee.stopped_by, KneeStop::Limit);
    assert!(knee.levels.iter().any(|level| level.threads == 4), "{:?}", knee.levels);
    let limit = knee.limit.unwrap();
    assert_eq!(limit.limited_by, LimitedBy::Unknown);
    assert!(limit.why.contains("operations failed"), "{limit:?}");
}

#[test]
fn an_interrupted_search_names_no_limit() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    let run = Tapstone::on(&model).stored().args("--op rsa1024.sign --no-verify --find-limit");
    let run = run.args("--seconds 0.5 --token-keys").start();
    run.wait_until_it_measures();
    // Some passes over the first levels.
    std::thread::sleep(Duration::from_secs(4));
    run.signal(Signal::INT);
    let outcome = run.wait().exits(2);
    assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
    let knee = knee(&outcome);
    assert_eq!(knee.stopped_by, KneeStop::Interrupted);
    assert_eq!((knee.concurrency, knee.plateau), (None, None));
    assert_eq!(limited_by(&knee), LimitedBy::Interruption);
    assert!(outcome.row().limited_by != LimitedBy::Device);
}

#[test]
fn one_level_never_names_the_device() {
    let run = Tapstone::on(&[("SERVICE", "2ms"), ("WAIT", "sleep"), ("ENGINE", "shared")]);
    let row = run.args("--op rsa1024.sign --no-verify --threads 4 --seconds 0.3").run().row();
    assert_ne!(row.limited_by, LimitedBy::Device);
    assert!(!row.limit.unwrap().why.is_empty());
}
