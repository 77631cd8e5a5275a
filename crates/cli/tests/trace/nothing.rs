//! What is said where no waste was found: what was looked for, what was not seen, and where the
//! time went. It is never more than the same report shows.

use std::process::Command;

use tapstone_record::{FindingKind, Record, TimeKind};
use tapstone_testing::private_environment;

use crate::fixtures;
use crate::program::Program;
use crate::softhsm::Hsm;

/// What a trace says to a person.
fn report(program: &Program) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    let output = command.args(["trace", "--"]).args(program.all_words()).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// What the process in front did most.
#[track_caller]
fn mostly(record: &Record) -> (String, TimeKind, f64) {
    let process = &record.processes[0];
    let part = process.parts.first().unwrap_or_else(|| panic!("{process:?}"));
    (process.program.clone(), part.kind.clone(), part.share.0)
}

#[test]
fn a_program_that_sleeps_is_told_that_it_slept() {
    let sleep = Program::new("sleep").arg("0.2");
    let record = sleep.unchanged().exits(0).whole();
    assert_eq!(record.findings, []);
    let (program, kind, share) = mostly(&record);
    assert_eq!((program.as_str(), kind), ("sleep", TimeKind::Sleeping));
    assert!(share > 0.5, "{:?}", record.processes);
    let said = report(&sleep);
    for text in ["Found nothing of what was looked for", "sought", "sleeping 2"] {
        assert!(said.contains(text), "{said}");
    }
    assert!(!said.contains("no sleep"), "{said}");
}

/// The shell waits for the loop and does nothing: the loop is what the report is about.
#[test]
fn the_process_that_worked_stands_in_front() {
    let shell = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true";
    let program = Program::shell(shell);
    let record = program.unchanged().exits(0).whole();
    let [worker, waiter] = &record.processes[..] else { panic!("{:?}", record.processes) };
    let share = |of: &tapstone_record::ProcessTime, kind: TimeKind| {
        of.parts.iter().find(|part| part.kind == kind).map_or(0.0, |part| part.share.0)
    };
    assert!(share(waiter, TimeKind::Children) > 0.5, "{:?}", record.processes);
    assert!(share(worker, TimeKind::Children) < 0.1, "{:?}", record.processes);
    let front = &record.layers[0];
    let waits = record.layers.iter().find(|layer| layer.layer == "children").unwrap();
    assert!(waits.process == waiter.process && waits.share.0 > 0.5, "{:?}", record.layers);
    assert_ne!(front.process, waiter.process, "{:?}", record.layers);
}

/// By execle(3), which takes any number of arguments, with an environment that holds no probe.
#[test]
fn a_program_with_an_environment_of_its_own_is_named_as_unseen() {
    let Some(environment) = fixtures::built("environment") else { return };
    let own = Program::new(&environment).arg("own");
    let record = own.unchanged().exits(0).record();
    let unseen = &record.search.as_ref().unwrap().unseen;
    assert!(unseen.iter().any(|it| it.starts_with("/bin/sleep was started")), "{unseen:?}");
    let said = report(&own);
    assert!(said.contains("unseen  /bin/sleep was started without"), "{said}");
    assert!(!said.contains("Found nothing of what"), "{said}");
    // All of its arguments arrive.
    let left = Program::new(&environment).arg("mine").unchanged().exits(0);
    assert_eq!(left.stdout, "1 2 3 4 5 6 7 8 9 10\n");
    assert_eq!(left.record().search.unwrap().unseen, [""; 0]);
}

#[test]
fn pauses_between_signatures_are_found() {
    let Some((searcher, hsm)) = fixtures::built("searcher").zip(Hsm::new()) else { return };
    let program = Program::new(searcher).arg(hsm.module()).args("40 --keep --pause 5");
    let program = program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let record = program.unchanged().exits(0).whole();
    let finding = record.findings.iter().find(|it| it.kind == FindingKind::Sleep);
    let finding = finding.unwrap_or_else(|| panic!("{:#?}", record.findings));
    assert_eq!((finding.layer.as_str(), finding.count), ("program", 40));
    assert!(finding.time_ns.0 >= 200_000_000, "{finding:?}");
    assert_eq!(finding.trial.as_deref(), Some("no-sleep:program"));
}

/// Those that the finding names, and no other: libraries' and what was slept before any call.
#[test]
fn pauses_of_the_program_are_left_out_on_request() {
    let Some((searcher, hsm)) = fixtures::built("searcher").zip(Hsm::new()) else { return };
    let module = hsm.module().display().to_string();
    let slept = |program: Program, fix: &str| {
        let program = program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
        let record = program.traced_with(&format!("--fix {fix}")).exits(0).record();
        let said = format!("the fix {fix} ");
        let warning = record.warnings.iter().find(|it| it.starts_with(&said));
        warning.unwrap_or_else(|| panic!("{:#?}", record.warnings))[said.len()..].to_owned()
    };
    let pausing = || Program::new(&searcher).arg(&module).args("40 --keep --pause 5");
    assert_eq!(slept(pausing(), "no-sleep:program"), "was on and changed 40 calls");
    let never = "never applied: nothing that it changes was called";
    assert_eq!(slept(pausing(), "no-sleep"), never);
    let sleeps = Program::new("/bin/sleep").arg("0.1");
    assert_eq!(slept(sleeps, "no-sleep:program"), never);
}

#[test]
fn a_loop_that_asks_without_waiting_is_found() {
    let loop_of_polls = "import select, time\nend = time.monotonic() + 0.3\npoll = select.poll()\n\
                         while time.monotonic() < end: poll.poll(0)";
    if Command::new("/usr/bin/python3").arg("--version").output().is_err() {
        return tapstone_testing::skip("python3");
    }
    let program = Program::new("/usr/bin/python3").arg("-c").arg(loop_of_polls);
    let record = program.unchanged().exits(0).whole();
    let [finding] = &record.findings[..] else { panic!("{:#?}", record.findings) };
    assert_eq!((&finding.kind, finding.place.as_str()), (&FindingKind::BusyWait, "poll"));
    assert_eq!((finding.layer.as_str(), finding.saving), ("program", None));
    assert_eq!(finding.trial.as_deref(), Some("no-busy-wait:program"));
    // It may wait for a millisecond each time: a few hundred questions are left.
    let waiting = program.traced_with("--fix no-busy-wait:program").exits(0).record();
    let asked = |record: &Record| {
        let polls = record.calls.iter().filter(|call| call.function == "poll");
        polls.map(|call| call.count).sum::<u64>()
    };
    assert!(asked(&waiting) * 5 < asked(&record), "{} of {}", asked(&waiting), asked(&record));
}
