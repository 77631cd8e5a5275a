//! Programs that make more calls than the file of events has room for: those beyond are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tapstone_explain::reading::read_timeline;
use tapstone_measure::units::Nanos;
use tapstone_observe::kept::read_kept;
use tapstone_record::Record;
use tapstone_text::thousands;
use tapstone_workload::{WorkloadLimits, read_workload};

use crate::clients::{PROXY, client};
use crate::fixtures;
use crate::kept::read;
use crate::program::{Program, call, counts};
use crate::softhsm::Hsm;
use crate::support::skip;
use crate::trouble;

const MODULE: &str = "stand-in.so";

/// A file of four chunks: three for events, one for sums.
#[test]
fn calls_that_find_no_space_in_the_file_are_all_counted() {
    let Some(program) = trouble("digest", 20_000) else { return };
    let bare = program.bare();
    let left = program.traced_with("--events-size 256k").exits(0);
    assert_eq!((&left.stdout, &left.stderr), (&bare.stdout, &bare.stderr));
    let record = left.record();
    assert_eq!((counts(&record, MODULE)["C_Digest"], record.dropped), (20_000, Some(0)));
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    let summed: u64 = warning.split(' ').next().unwrap().parse().unwrap();
    assert!((1_000..20_000).contains(&summed), "{warning}");
    assert!(warning.contains("are only counted") && warning.contains("--events-size"), "{warning}");
    // Nobody looked for waste in them, and what followed those that were listed is nobody's time.
    assert_eq!(&record.search.as_ref().unwrap().unseen, &record.warnings);
    let listed: Nanos = record.layers.iter().map(|layer| layer.time_ns).sum();
    assert!(listed < record.command_time.unwrap().wall_ns, "{listed}");
    let digests = call(&record, MODULE, "C_Digest");
    assert!(digests.total_ns > Nanos::ZERO && digests.self_ns <= digests.total_ns);
    let cases = record.results.iter().filter(|case| case.operation.starts_with("C_Digest"));
    assert_eq!(cases.map(|case| case.completed).sum::<u64>(), digests.count - summed);
}

/// Counts and failures of each function.
fn calls(record: &Record) -> BTreeMap<String, (u64, BTreeMap<String, u64>)> {
    let calls = record.calls.iter().filter(|call| !call.module.starts_with("libc"));
    calls.map(|it| (it.function.clone(), (it.count, it.failed.clone()))).collect()
}

#[track_caller]
fn counted_as_listed(program: &Program, size: &str) {
    let listed = program.traced().exits(0).whole();
    let summed = program.traced_with(&format!("--events-size {size}")).exits(0).record();
    assert!(summed.warnings.iter().any(|it| it.contains("only counted")), "{:?}", summed.warnings);
    assert_eq!((calls(&summed), summed.dropped), (calls(&listed), Some(0)));
}

#[test]
fn calls_that_are_left_or_fail_are_counted_as_they_are_listed() {
    for what in ["jump", "errno"] {
        let Some(program) = trouble(what, 5_000) else { return };
        counted_as_listed(&program, "256k");
    }
}

#[test]
fn calls_of_threads_and_children_are_counted_as_they_are_listed() {
    for (options, size) in [
        ("--digest 20000 --threads 4", "4M"),
        ("--digest 20000 --fork", "512k"),
        ("--digest 20000 --exec", "512k"),
    ] {
        let Some((program, _hsm)) = client(options) else { return };
        counted_as_listed(&program, size);
    }
}

/// What is left by longjmp(3), or never returns, has begun.
#[test]
fn a_call_that_never_returned_is_counted_and_told() {
    let Some(program) = trouble("hang", 20_000) else { return };
    let killed = Program::new("timeout").args("-s KILL 2");
    let killed = program.all_words().iter().fold(killed, Program::arg);
    let record = killed.traced_with("--events-size 256k").exits(137).record();
    let never =
        |call: &str| self::call(&record, MODULE, call).failed.get("never returned").copied();
    assert_eq!(never("C_Sign"), Some(1), "{:?}", record.calls);
    assert!(call(&record, MODULE, "C_Digest").count >= 20_000);
    let Some(program) = trouble("alarm", 2_000) else { return };
    let sleeps = |options: &str| {
        let record = program.traced_with(options).exits(0).record();
        let sleeps = record.calls.iter().filter(|call| call.function == "nanosleep");
        assert_eq!(record.dropped, Some(0));
        sleeps.map(|call| call.count).sum::<u64>()
    };
    // A signal may come before its sleep begins, in either run; all sleeps that were counted are
    // left by longjmp(3), and were half of them.
    let [listed, counted] = ["", "--events-size 256k"].map(sleeps);
    assert!(10 * counted >= 9 * listed, "{counted} and {listed}");
}

/// Figures per operation are of those that were listed, or there are none.
#[test]
fn counted_calls_belong_to_no_operation() {
    let Some(program) = trouble("digest", 20_000) else { return };
    let each = |options: &str| {
        let record = program.traced_with(options).exits(0).record();
        call(&record, MODULE, "C_Digest").per_operation
    };
    assert_eq!(each("--operation C_Digest"), Some(1.0));
    assert_eq!(each("--operation C_Digest --events-size 256k"), None);
}

/// What a case says is of calls that were listed, and a mean of those whose time is known.
#[test]
fn figures_of_listed_calls_are_not_said_of_all() {
    let Some(program) = trouble("errno", 5_000) else { return };
    let record = program.traced_with("--events-size 256k").exits(0).record();
    let all = call(&record, MODULE, "C_Digest");
    let case = record.results.iter().find(|case| case.operation == all.operation()).unwrap();
    let listed = case.completed + case.failed.values().sum::<u64>();
    assert!(listed < all.count, "{listed} of {}", all.count);
    let says = format!("of the first {} of {} calls", thousands(listed), thousands(all.count));
    assert!(case.warnings[0].starts_with(&says), "{:?}", case.warnings);

    // A call that longjmp(3) left has no end.
    let Some(program) = trouble("jump", 5_000) else { return };
    let of = |options: &str| {
        let record = program.traced_with(options).exits(0).record();
        call(&record, MODULE, "C_Sign")
    };
    let [listed, counted] = ["", "--events-size 256k"].map(of);
    assert_eq!((listed.count, listed.timed), (counted.count, None));
    assert!(counted.timed.is_some_and(|timed| timed < counted.count), "{counted:?}");
}

/// Most of these calls are only counted. At least half of any times are no longer than twice their
/// mean, and 99 of 100 no longer than a hundred times that.
#[test]
fn how_long_counted_calls_took_is_known() {
    let Some(program) = trouble("digest", 300_000) else { return };
    let record = program.traced_with("--events-size 2M").exits(0).record();
    let summed: u64 = record.warnings[0].split(' ').next().unwrap().parse().unwrap();
    assert!(summed > 200_000, "{:?}", record.warnings);
    let digests = call(&record, MODULE, "C_Digest");
    let mean = digests.total_ns.0 as f64 / digests.count as f64;
    let times = [digests.p50_ns.unwrap(), digests.p99_ns.unwrap()].map(|time| time.0 as f64);
    assert!(times[0] <= times[1], "{digests:?}");
    let longer = 1.07;
    assert!(times[0] <= 2.0 * mean * longer && times[1] <= 100.0 * mean * longer, "{digests:?}");
    // Half of them took as long as half of those that are listed, in another run of the machine.
    let listed = call(&program.traced().exits(0).whole(), MODULE, "C_Digest").p50_ns.unwrap();
    let ratio = times[0] / listed.0 as f64;
    assert!((0.2..5.0).contains(&ratio), "{listed} listed, {digests:?} counted");
    // Where there is no room for times, those of the first calls are not said of all.
    let record = program.traced_with("--events-size 256k").exits(0).record();
    let digests = call(&record, MODULE, "C_Digest");
    assert_eq!((digests.count, digests.p50_ns, digests.p99_ns), (300_000, None, None));
}

/// How a long run ends is on its timeline, however many calls were only counted.
#[test]
fn the_last_calls_are_known_one_by_one() {
    let Some((program, _hsm)) = client("--digest 60000") else { return };
    let left = program.traced_with("--events-size 4M --events events").exits(0);
    let timeline = read_timeline(&read_kept(&left.file("events")).unwrap().recording).unwrap();
    let last = &timeline.last_calls;
    assert!((1_000..20_000).contains(&last.len()), "{}", last.len());
    let names = last.iter().rev().map(|call| timeline.call(call.function).function);
    // What the program does after its digests, backwards.
    let ending: Vec<_> = names.take_while(|name| *name != "C_Digest").collect();
    assert!(ending.contains(&"C_Finalize") && ending.len() < 10, "{ending:?}");
    assert!(last.is_sorted_by_key(|call| call.start));
    assert!(last[0].start > timeline.listed_until());
    assert!(last.iter().all(|call| call.end >= call.start && call.end <= timeline.ended));
    // By who made them.
    let Some((threads, _hsm)) = client("--digest 200000 --threads 4") else { return };
    let left = threads.traced_with("--events-size 16M --events events").exits(0);
    let timeline = read_timeline(&read_kept(&left.file("events")).unwrap().recording).unwrap();
    let ids: BTreeSet<u32> = timeline.last_calls.iter().map(|call| call.thread).collect();
    let known: BTreeSet<u32> = timeline.threads.iter().map(|thread| thread.id).collect();
    assert!(ids.len() >= 2 && ids.is_subset(&known), "{ids:?} of {known:?}");
    // A run that is listed has all of them where they belong.
    let left = program.traced_with("--events events").exits(0);
    let timeline = read_timeline(&read_kept(&left.file("events")).unwrap().recording).unwrap();
    assert_eq!(timeline.last_calls, []);
}

/// What waste there is in calls that are only counted: a digest of what they asked is kept.
#[test]
fn counted_calls_that_ask_again_are_told() {
    let Some((searcher, hsm)) = fixtures::built("searcher").zip(Hsm::new()) else { return };
    let traced = |options: &str| {
        let program = Program::new(&searcher).arg(hsm.module()).args(options);
        let program = program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
        program.traced_with("--events-size 2M").exits(0).record()
    };
    let told = |record: &Record, what: &str| {
        let says = format!("{what} [libsofthsm2.so] asked ");
        let unseen = &record.search.as_ref().unwrap().unseen;
        record.warnings.iter().any(|it| it.starts_with(&says))
            && unseen.iter().any(|it| it.starts_with(&says))
    };
    let record = traced("8000 --keep --read 8");
    let reads = call(&record, "libsofthsm2.so", "C_GetAttributeValue");
    let again = reads.asked_again.unwrap();
    assert!(again * 2 > reads.count && again < reads.count, "{reads:?}");
    assert!(reads.asked_again_ns.unwrap() < reads.total_ns, "{reads:?}");
    assert!(told(&record, "C_GetAttributeValue"), "{:?}", record.warnings);
    let signs = call(&record, "libsofthsm2.so", "C_Sign");
    assert_eq!((signs.asked_again, signs.asked_again_ns), (None, None));

    let record = traced("8000");
    let searches = call(&record, "libsofthsm2.so", "C_FindObjectsInit");
    assert!(searches.asked_again.is_some_and(|again| again * 4 > searches.count), "{searches:?}");
    assert!(told(&record, "C_FindObjectsInit"), "{:?}", record.warnings);

    // Nothing is asked in these.
    let Some(program) = trouble("digest", 100_000) else { return };
    let record = program.traced_with("--events-size 2M").exits(0).record();
    assert!(record.calls.iter().all(|call| call.asked_again.is_none()), "{:?}", record.calls);
}

/// What a proxy passes on to the module behind it is asked once.
#[test]
fn a_proxys_questions_are_not_asked_twice() {
    if !Path::new(PROXY).exists() {
        return skip("p11-kit-proxy.so (Debian: libp11-kit0)");
    }
    let Some((searcher, hsm)) = fixtures::built("searcher").zip(Hsm::new()) else { return };
    let program = Program::new(&searcher).arg(PROXY).args("6000 --keep --read 8");
    let program = program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let program = program.env("PCSCLITE_CSOCK_NAME", "/nowhere");
    let record = program.traced_with("--events-size 4M").exits(0).record();
    let [proxy, behind] = ["p11-kit-proxy.so", "libsofthsm2.so"]
        .map(|module| call(&record, module, "C_GetAttributeValue"));
    assert_eq!(proxy.count, behind.count);
    assert!(proxy.asked_again.is_some_and(|again| again * 2 > proxy.count), "{proxy:?}");
    assert_eq!(behind.asked_again, None, "{behind:?}");
}

/// A load of which only a part was listed says how much is missing.
#[test]
fn a_workload_says_what_was_only_counted() {
    let Some(program) = trouble("digest", 20_000) else { return };
    let left = program.traced_with("--events-size 256k --workload load").exits(0);
    let summed: u64 = left.record().warnings[0].split(' ').next().unwrap().parse().unwrap();
    let load = read_workload(&left.file("load"), WorkloadLimits::default()).unwrap();
    assert_eq!(load.head.losses.dropped, 2 * summed);
    assert!(load.head.wall_ns < left.record().command_time.unwrap().wall_ns);
}

/// What a daemonised child does after the command is not the command's, listed or counted.
#[test]
fn calls_after_the_end_of_the_command_are_not_counted() {
    let Some(program) = trouble("daemon", 20_000) else { return };
    let record = program.traced_with("--events-size 256k").exits(0).record();
    let digests = call(&record, MODULE, "C_Digest");
    assert!(digests.count >= 20_000, "{digests:?}");
    let wall = record.command_time.unwrap().wall_ns;
    assert!(digests.total_ns <= wall, "{} of {wall}", digests.total_ns);
    let behind = "the command left processes behind";
    assert!(record.warnings.iter().any(|it| it.starts_with(behind)), "{:?}", record.warnings);
}

/// The times of calls inside calls are not counted twice.
#[test]
fn own_times_of_counted_calls_add_up_to_no_more_than_the_run() {
    let Some((program, _hsm)) = client("--digest 20000 --sessions-per-op") else { return };
    let record = program.traced_with("--events-size 256k").exits(0).record();
    let own: Nanos = record.calls.iter().map(|call| call.self_ns).sum();
    let wall = record.command_time.unwrap().wall_ns;
    assert!(own > Nanos::ZERO && own <= wall, "{own} of {wall}");
}

/// A waste is found in what was listed, and predicts nothing of the rest.
#[test]
fn waste_beside_calls_that_were_counted_has_no_prediction() {
    let Some((program, _hsm)) = client("--digest 20000 --sessions-per-op") else { return };
    let record = program.traced_with("--events-size 2M").exits(0).record();
    let [finding, ..] = &record.findings[..] else { panic!("{:?}", record.findings) };
    assert!(finding.saving.is_none(), "{finding:?}");
    assert!(finding.evidence[0].contains("in the first"), "{finding:?}");
    assert!(finding.evidence.iter().any(|it| it.contains("is not known")), "{finding:?}");
}

/// What was counted is kept too.
#[test]
fn sums_are_read_again() {
    let Some(program) = trouble("digest", 20_000) else { return };
    let left = program.traced_with("--events-size 256k --events events").exits(0);
    let record = left.record();
    let again = read(&left.file("events")).1.unwrap();
    assert_eq!((&again.calls, &again.warnings), (&record.calls, &record.warnings));
}
