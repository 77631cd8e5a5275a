//! What comes out of two commands.

use tapstone_record::{Change, Judgement, Pairing, Quantity, StoppedBy, TargetKind};

use crate::support::{Folder, compared, comparison, row};

#[test]
fn four_times_the_work_is_slower() {
    let folder = Folder::new();
    let a = folder.work("a", 8_000);
    let b = folder.work("b", 32_000);
    let outcome = folder.ab(&["--format", "json", "--output", "out.json", "--", &a, &b]).exits(0);
    let record = outcome.record();
    let written = std::fs::read_to_string(folder.path("out.json")).unwrap();
    assert_eq!(tapstone_record::Record::from_json(&written, "out.json").unwrap(), record);
    for operation in ["command.wall", "command.cpu"] {
        let row = compared(&record, operation);
        assert_eq!(row.verdict, Change::Slower, "{row:?}");
        assert!(row.ratio.low > 1.0 && row.ratio.low <= row.ratio.estimate, "{row:?}");
        assert_eq!((row.rounds, row.threshold, row.more_samples), (Some(20), None, None));
        assert!(row.baseline.estimate < row.candidate.estimate);
    }
    assert_eq!(compared(&record, "command.wall").quantity, Quantity::WallTime);
    assert_eq!(compared(&record, "command.cpu").quantity, Quantity::CpuTime);
    let back = folder.ab(&["--format", "json", "--", &b, &a]).exits(0).record();
    assert_eq!(compared(&back, "command.cpu").verdict, Change::Faster);
    assert_eq!(compared(&back, "command.wall").verdict, Change::Faster);
}

#[test]
fn the_record_has_every_run_of_both_sides() {
    let folder = Folder::new();
    let a = folder.work("a", 1_000);
    let b = folder.work("b", 1_000);
    let arguments =
        ["--format", "json", "--name", "old", "--name", "new", "--warm-up-rounds", "2", "--"];
    let record = folder.ab(&[&arguments[..], &[&a, &b]].concat()).exits(0).record();
    assert_eq!(record.target.kind, TargetKind::Command);
    let program = record.target.program.as_ref().unwrap();
    assert!(program.path.ends_with("/b") && program.sha256.len() == 64, "{program:?}");
    let of = comparison(&record);
    assert_eq!(of.pairing, Pairing::Interleaved);
    assert_eq!((of.baseline.name.as_str(), of.baseline.source.as_str()), ("old", "./a"));
    assert_eq!((of.candidate.name.as_str(), of.candidate.source.as_str()), ("new", "./b"));
    for side in ["baseline", "candidate"] {
        let value = |part: &str| row(&record, &format!("command.{part}[{side}]")).clone();
        let wall = value("wall");
        let cpu = value("cpu");
        let user = value("user");
        let system = value("system");
        for row in [&wall, &cpu, &user, &system] {
            assert_eq!((row.latencies_ns.len(), row.completed), (20, 20));
            assert_eq!(row.stopped_by, Some(StoppedBy::Count));
            assert_eq!(row.warm_up.as_ref().unwrap().operations, 2);
        }
        for (cpu, parts) in
            cpu.latencies_ns.iter().zip(user.latencies_ns.iter().zip(&system.latencies_ns))
        {
            assert_eq!(*cpu, *parts.0 + *parts.1);
        }
        let sum: u64 = wall.latencies_ns.iter().map(|value| value.0).sum();
        let mean = wall.latency_ns.unwrap().mean.unwrap();
        let window = wall.window.unwrap();
        assert!((mean.estimate - sum as f64 / 20.0).abs() < 1.0);
        assert!(window.seconds.0 >= sum as f64 / 1e9, "the other side ran meanwhile");
    }
    assert!(record.results.iter().all(|case| case.seed == Some(1)));
    // In turns, each round in an order of its own, the two of warm-up too.
    let log = folder.log().concat();
    assert_eq!(log.len(), 44);
    let rounds: Vec<&[u8]> = log.as_bytes().chunks(2).collect();
    let first_is_a = rounds.iter().filter(|round| **round == b"ab").count();
    assert!(rounds.iter().all(|round| [b"ab", b"ba"].contains(&&[round[0], round[1]])), "{log}");
    // Of 22 throws of a coin.
    assert!((3..=19).contains(&first_is_a), "{log}");
}

#[test]
fn a_seed_decides_the_order() {
    let order = |seed: &str| {
        let folder = Folder::new();
        let a = folder.work("a", 10);
        let b = folder.work("b", 10);
        folder.ab(&["--seed", seed, "--rounds", "8", "--", &a, &b]).exits(0);
        folder.log().concat()
    };
    assert_eq!(order("5"), order("5"));
    assert_ne!(order("5"), order("6"));
}

#[test]
fn a_command_is_not_told_from_itself() {
    let folder = Folder::new();
    let same = folder.work("same", 2_000);
    let record = folder.ab(&["--format", "json", "--", &same, &same]).exits(0).record();
    for operation in ["command.wall", "command.cpu"] {
        // One comparison in twenty is wrong by chance, but never by much.
        let ratio = compared(&record, operation).ratio;
        assert!(ratio.low < 1.5 && ratio.high > 0.67, "{operation}: {ratio:?}");
    }
}

#[test]
fn a_threshold_acts_on_the_interval_of_the_wall_time() {
    let folder = Folder::new();
    let a = folder.work("a", 8_000);
    let b = folder.work("b", 32_000);
    for (sides, rounds, code, word) in [
        ([&a, &b], "20", 1, "EXCEEDED   command.wall is surely slower by more than 5.0 %"),
        ([&b, &a], "20", 0, "HELD       command.wall is not slower by more than 5.0 %"),
        ([&a, &b], "4", 0, "UNDECIDED  command.wall may be slower by more than 5.0 %"),
    ] {
        let arguments = ["--fail-above", "5%", "--rounds", rounds, "--", sides[0], sides[1]];
        let outcome = folder.ab(&arguments).exits(code);
        assert!(outcome.stdout.contains(word), "{}", outcome.stdout);
    }
}

#[test]
fn fewer_rounds_give_figures_and_no_verdict() {
    let folder = Folder::new();
    let a = folder.work("a", 2_000);
    let b = folder.work("b", 32_000);
    let arguments = ["--rounds", "5", "--fail-above", "5%", "--format", "json", "--", &a, &b];
    let record = folder.ab(&arguments).exits(0).record();
    let wall = compared(&record, "command.wall");
    assert_eq!((wall.verdict, wall.rounds), (Change::Inconclusive, Some(5)));
    assert_eq!(wall.threshold, Some(Judgement::Undecided));
    assert!(wall.more_samples.is_some_and(|more| more >= 15), "{wall:?}");
    assert!(wall.ratio.estimate > 1.0);
    assert!(record.warnings.iter().any(|text| text.contains("at least 20")), "{record:?}");
}

#[test]
fn each_run_is_prepared_and_that_is_outside_its_time() {
    let folder = Folder::new();
    let a = folder.work("a", 100);
    let b = folder.work("b", 100);
    let prepare = folder.work("p", 50_000);
    let arguments =
        ["--prepare", &prepare, "--rounds", "3", "--warm-up-rounds", "0", "--format", "json"];
    let record = folder.ab(&[&arguments[..], &["--", &a, &b]].concat()).exits(0).record();
    let log = folder.log().concat();
    assert!(log.len() == 12 && log.bytes().step_by(2).all(|run| run == b'p'), "{log}");
    assert_eq!(log.matches('a').count(), 3, "{log}");
    // The work of preparing would show: it is 500 times as much.
    let cpu = compared(&record, "command.cpu");
    let alone = folder.ab(&["--rounds", "3", "--format", "json", "--", &prepare, &a]).record();
    assert!(cpu.baseline.estimate * 3.0 < compared(&alone, "command.cpu").baseline.estimate);
}

#[test]
fn a_shell_runs_what_only_a_shell_can() {
    let folder = Folder::new();
    let arguments = ["--shell", "--rounds", "2", "--format", "json", "--"];
    let commands = ["echo a b | wc -w >> log", "X=3; test $X = 3"];
    let record = folder.ab(&[&arguments[..], &commands].concat()).exits(0).record();
    assert_eq!(comparison(&record).baseline.source, "echo … … … … -w … …");
    assert_eq!(record.target.program.unwrap().path, "/bin/sh");
    assert_eq!(folder.log(), ["2", "2", "2"]);
}

#[test]
fn output_is_shown_when_asked_for_and_never_among_the_data() {
    let folder = Folder::new();
    let talk = folder.script("talk", "echo to-output; echo to-error >&2; cat");
    let arguments =
        ["--rounds", "2", "--warm-up-rounds", "0", "--format", "csv", "--", &talk, &talk];
    let quiet = folder.ab(&arguments).exits(0);
    assert_eq!(quiet.stderr, "");
    let shown = folder.ab(&[&["--show-output"], &arguments[..]].concat()).exits(0);
    for told in ["to-output", "to-error"] {
        assert_eq!(shown.stderr.matches(told).count(), 4, "{}", shown.stderr);
    }
    for outcome in [quiet, shown] {
        assert!(outcome.stdout.starts_with("operation,"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("\ncommand.wall,") && !outcome.stdout.contains("to-"));
    }
}
