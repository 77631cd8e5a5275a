//! pkcs11-tool on a virtual PIV card behind the real pcscd.

use std::collections::BTreeSet;
use std::fs;

use tapstone_record::{Change, FindingKind};
use tapstone_testing::{figures, hold};
use tapstone_vcard::piv::{CardData, Recipe};

use crate::support::{Card, NoPcscd, Pcscd, Slot, Tapstone, Waiting, answers, undisturbed};
use crate::{PREDICTED, as_predicted, finding, fixtures, record, run, trial, turn};

const COMMAND: [&str; 2] = ["pkcs11-tool", "--list-objects"];

/// What libpcsclite once did at the end of each transaction, put into the one of today.
#[test]
fn an_old_defect_is_recreated_and_seen() {
    let _turn = turn();
    let Some(pcscd) = Pcscd::start() else { return };
    let _card = Card::insert(&pcscd, Slot::First, &["piv"]);
    let delay = "--fix delay:SCardEndTransaction=1ms..10ms";
    let traced = record(&run("trace", delay, &[], &COMMAND).exits(0));
    let ends = traced.calls.iter().find(|call| call.function == "SCardEndTransaction").unwrap();
    let injected = traced.findings.iter().find(|finding| {
        finding.kind == FindingKind::Sleep && finding.evidence[0].contains("injected")
    });
    let injected = injected.unwrap_or_else(|| panic!("{:#?}", traced.findings));
    assert_eq!((injected.place.as_str(), injected.count), ("SCardEndTransaction", ends.count));
    // It lies inside the calls, each of which takes that long and no longer.
    assert!(injected.time_ns.0 >= ends.count * 1_000_000, "{injected:?}");
    assert!(injected.time_ns <= ends.total_ns, "{injected:?} {ends:?}");
    // The whole program is slower by what was put into it.
    let command = |fix: &str| {
        let tapstone = env!("CARGO_BIN_EXE_tapstone");
        format!("{tapstone} trace --quiet {fix} -- {}", COMMAND.join(" "))
    };
    let compared = || {
        let run = Tapstone::new("ab").args("--rounds 20 --output record.json").without_record();
        let record = record(&run.arg(command("")).arg(command(delay)).run().exits(0));
        record.comparison.unwrap().cases[0].clone()
    };
    undisturbed(0.5, PREDICTED, compared, |change| {
        hold(change.verdict == Change::Slower, format_args!("{change:?}"))
    });
}

/// A library that really sleeps 1 to 10 ms there, and forwards the rest to the installed one.
#[test]
fn a_sleep_in_the_library_is_found_and_its_removal_brings_what_was_predicted() {
    let _turn = turn();
    let Some((library, pcscd)) = fixtures::built("slow-pcsc").zip(Pcscd::start()) else { return };
    let _card = Card::insert(&pcscd, Slot::First, &["piv"]);
    let variables = [("LD_LIBRARY_PATH", library.to_str().unwrap())];
    let traced = record(&run("trace", "", &variables, &COMMAND).exits(0));
    let sleep = finding(&traced.findings, "no-sleep:SCardEndTransaction");
    // The stand-in and the library behind it have one each, under the same name.
    let ends = traced.calls.iter().find(|call| call.function == "SCardEndTransaction").unwrap();
    assert_eq!(ends.count, 2 * sleep.count);
    assert!(sleep.time_ns.0 >= sleep.count * 1_000_000, "{sleep:?}");
    let trial = || trial("no-sleep", "--rounds 20", &variables, &COMMAND);
    undisturbed(0.5, PREDICTED, trial, as_predicted);
}

/// The socket between pcscd and its reader driver, with Nagle's algorithm on one side and late
/// acknowledgements on the other.
#[test]
fn a_late_acknowledgement_is_found_in_the_driver_and_tried() {
    let _turn = turn();
    let Some(nobody) = NoPcscd::take_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let card_data = folder.path().join("card");
    CardData::open_or_generate(&card_data, &Recipe::default()).unwrap();
    let arguments = ["piv", "--delayed-ack", "--card-data", card_data.to_str().unwrap()];
    let _card = Waiting::start(&nobody, &arguments);
    // A selection, and the discovery object four times.
    let select = "00A404000BA000000308000010000100";
    let read = "00CB3FFF035C017E00";
    let mut command = vec!["opensc-tool", "--card-driver", "default"];
    for apdu in [select, read, read, read, read] {
        command.extend(["--send-apdu", apdu]);
    }
    let daemon = ["--with-daemon", "pcscd --foreground"];
    let with_daemon = |verb: &str, options: &str| {
        let run = Tapstone::new(verb).args(options).arg(daemon[0]).arg(daemon[1]);
        let run = run.args("--output record.json --").without_record();
        record(&command.iter().fold(run, |run, word| run.arg(word)).run().exits(0))
    };
    let traced = with_daemon("trace", "");
    let late = finding(&traced.findings, "tcp-nodelay");
    assert_eq!((late.kind, late.layer.starts_with("driver")), (FindingKind::DelayedAck, true));
    let each = late.time_ns.0 as f64 / late.count as f64;
    assert!((38e6..50e6).contains(&each), "{each} ns each");
    let tried = with_daemon("trial", "--fix tcp-nodelay --rounds 20").trials.remove(0);
    assert_eq!(
        (tried.verdict, tried.behaviour),
        (Change::Faster, tapstone_record::Behaviour::Same)
    );
    assert!(tried.speedup.estimate > 5.0, "{tried:?}");
}

/// It belongs to others, and the probe cannot be put into it.
#[test]
fn a_daemon_that_runs_already_is_left_alone() {
    let _turn = turn();
    let Some(_pcscd) = Pcscd::start() else { return };
    for (verb, options) in [("trace", ""), ("trial", "--fix no-sleep")] {
        let run = Tapstone::new(verb).args(options).arg("--with-daemon").arg("pcscd --foreground");
        let said = run.args("-- true").without_record().run().exits(2).stderr;
        assert!(said.contains("a pcscd runs already") && said.contains("hint: "), "{said}");
        assert!(answers(), "{verb}");
    }
}

/// The client library of pcsc-lite 1.9.9 spins in SCardGetStatusChange.
#[test]
fn a_busy_wait_is_found_and_tried() {
    let _turn = turn();
    let Some(pcscd) = Pcscd::start() else { return };
    let _card = Card::insert(&pcscd, Slot::First, &["piv"]);
    let traced = run("trace", "", &[], &COMMAND).exits(0);
    let spin = finding(&record(&traced).findings, "no-busy-wait:SCardGetStatusChange");
    assert!(spin.count > 0, "{spin:?}");
    figures(|| {
        let tried = trial("no-busy-wait", "--rounds 20", &[], &COMMAND);
        hold(tried.verdict == Change::Faster, format_args!("{tried:?}"))
    });
}

/// OpenSC reads the first bytes of each object to learn its length, and the same objects again.
#[test]
fn length_probes_and_repeated_reads_are_found_and_tried() {
    let _turn = turn();
    let Some(pcscd) = Pcscd::start() else { return };
    let profile = fixtures::source("slow-apdu.toml");
    let _card = Card::insert(&pcscd, Slot::First, &[profile]);
    let traced = run("trace", "", &[], &COMMAND).exits(0);
    let findings = record(&traced).findings;
    let probes = finding(&findings, "whole-read");
    let repeats = finding(&findings, "cache-apdu");
    assert_eq!((probes.count, repeats.count), (9, 6), "{findings:#?}");
    // Of 41 commands at 30 ms; nine of them are saved, and then six.
    for (fix, speedup) in [("whole-read", 1.2), ("cache-apdu", 1.1)] {
        let trial = || trial(fix, "--rounds 4", &[], &COMMAND);
        undisturbed(0.5, PREDICTED, trial, |tried| {
            hold(tried.speedup.estimate > speedup, format_args!("{tried:?}"))
        });
    }
}

/// What a trace found, each with what it brings; the best first.
#[test]
fn the_findings_of_a_trace_are_tried_and_ranked() {
    let _turn = turn();
    let Some(pcscd) = Pcscd::start() else { return };
    // So slow that its answers are not lost in the program's own time.
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("3-ms.toml");
    let slow = fs::read_to_string(fixtures::source("slow-apdu.toml")).unwrap();
    fs::write(&profile, slow.replace("ms = 30", "ms = 3")).unwrap();
    let _card = Card::insert(&pcscd, Slot::First, &[profile.to_str().unwrap()]);
    let traced = run("trace", "", &[], &COMMAND).exits(0);
    let findings = record(&traced).findings;
    let named: BTreeSet<String> = findings.into_iter().filter_map(|it| it.trial).collect();
    assert!(named.len() > 1, "{named:?}");
    let from = format!("--rounds 10 --from {}", traced.record_path().display());
    let trials = record(&run("trial", &from, &[], &COMMAND).exits(0)).trials;
    assert_eq!(trials.iter().map(|trial| trial.fix.clone()).collect::<BTreeSet<_>>(), named);
    assert!(trials.iter().any(|trial| trial.predicted.is_some()), "{trials:#?}");
    assert!(trials.is_sorted_by(|one, other| one.speedup.estimate >= other.speedup.estimate));
}
