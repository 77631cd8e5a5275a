//! Signals for the program, and calls that it makes in its handlers.

use std::time::Duration;

use rustix::process::Signal;

use crate::program::{Program, call, counts};
use crate::support::eventually;
use crate::{said, trouble};

const MODULE: &str = "stand-in.so";

/// A program that counts signals, traced, once it listens.
fn counting(count: usize) -> Option<crate::program::Running> {
    let running = trouble("signals", count)?.start_traced("");
    let listens = eventually(Duration::from_secs(30), || running.stdout() == "ready\n");
    assert!(listens, "{}", running.stdout());
    Some(running)
}

/// The terminal sends it to the whole group in the foreground: nobody passes it on.
#[test]
fn ctrl_c_reaches_the_program_once() {
    let Some(running) = counting(1) else { return };
    running.signal_group(Signal::INT);
    let left = running.wait().exits(0);
    assert_eq!(left.stdout, "ready\n1 SIGINT, 0 SIGTERM\n2 digests\n");
    assert_eq!(counts(&left.whole(), MODULE)["C_Digest"], 2);
}

/// Whoever ends `tapstone` means the program.
#[test]
fn a_request_to_end_is_passed_on_once() {
    let Some(running) = counting(1) else { return };
    running.signal(Signal::TERM);
    let left = running.wait().exits(0);
    assert_eq!(left.stdout, "ready\n0 SIGINT, 1 SIGTERM\n2 digests\n");
    assert_eq!(counts(&left.whole(), MODULE)["C_Digest"], 2);
}

/// Whoever interrupts `tapstone` alone means the program, which has not heard of it.
#[test]
fn an_interrupt_of_tapstone_alone_is_passed_on_once() {
    let Some(running) = counting(1) else { return };
    running.signal(Signal::INT);
    let left = running.wait().exits(0);
    assert_eq!(left.stdout, "ready\n1 SIGINT, 0 SIGTERM\n2 digests\n");
    assert_eq!(counts(&left.whole(), MODULE)["C_Digest"], 2);
}

/// With system calls observed, another process is between the two.
#[test]
fn what_ends_tapstone_alone_ends_the_program() {
    let script = "for signal in HUP QUIT; do trap \"echo $signal; exit 3\" $signal; done; \
                  echo ready; while :; do sleep 0.05; done";
    for (signal, name) in [(Signal::HUP, "HUP"), (Signal::QUIT, "QUIT")] {
        for options in ["", "--syscalls=openat"] {
            let running = Program::shell(script).start_traced(options);
            assert!(eventually(Duration::from_secs(30), || running.stdout() == "ready\n"));
            running.signal(signal);
            let left = running.wait().exits(3);
            assert_eq!(left.stdout, format!("ready\n{name}\n"), "{options}");
        }
    }
}

/// What a program did before it was killed is there.
#[test]
fn an_interrupted_program_leaves_what_was_seen() {
    let Some(program) = trouble("hang", 5) else { return };
    let running = program.start_traced("");
    let listens = eventually(Duration::from_secs(30), || running.stdout() == "ready\n");
    assert!(listens, "{}", running.stdout());
    running.signal_group(Signal::INT);
    let left = running.wait().exits(130);
    let record = left.whole();
    assert_eq!(counts(&record, MODULE)["C_Digest"], 5);
    // It was in C_Sign, which sleeps.
    let sign = call(&record, MODULE, "C_Sign");
    assert_eq!(sign.failed.get("never returned"), Some(&1), "{sign:?}");
    assert!(sign.count >= 1);
}

/// A handler that comes while the probe writes cannot be written: that is counted.
fn all_calls_are_seen_or_counted(what: &str) {
    let Some(program) = trouble(what, 100_000) else { return };
    let left = program.traced().exits(0);
    let record = left.record();
    let seen = counts(&record, MODULE)["C_Digest"];
    let dropped = record.dropped.unwrap();
    assert_eq!(seen + dropped, said(&left.stdout), "{what}: {dropped} dropped");
    assert!(seen >= 100_000, "{what}: {dropped} dropped");
    let told = record.warnings.iter().any(|warning| warning.contains("in a signal handler"));
    assert_eq!(told, dropped > 0, "{:?}", record.warnings);
    assert!(program.bare().exits(0).stdout.ends_with(" digests\n"));
}

#[test]
fn calls_in_signal_handlers_are_seen() {
    all_calls_are_seen_or_counted("handler");
}

#[test]
fn calls_in_signal_handlers_on_another_stack_are_seen() {
    all_calls_are_seen_or_counted("apart");
}

/// As nohup(1) leaves it.
#[test]
fn what_was_ignored_stays_so() {
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let kills = format!("kill -{signal} $$; echo survived");
        for options in ["", "--syscalls=openat"] {
            let traced = format!(
                "trap '' {signal}; exec {} trace --quiet {options} -- sh -c '{kills}'",
                env!("CARGO_BIN_EXE_tapstone")
            );
            let left = Program::shell(&traced).bare().exits(0);
            assert_eq!(left.stdout, "survived\n", "{signal} {options}: {}", left.stderr);
        }
    }
}

/// A shell counts what it traps.
#[test]
fn a_shell_traps_ctrl_c_once() {
    // A second one would come while it still sleeps.
    let script = "trap 'echo trapped; is_over=1' INT; echo ready; \
                  while [ -z \"$is_over\" ]; do sleep 0.05; done; sleep 0.2; echo done";
    let running = Program::shell(script).start_traced("");
    assert!(eventually(Duration::from_secs(30), || running.stdout() == "ready\n"));
    running.signal_group(Signal::INT);
    assert_eq!(running.wait().exits(0).stdout, "ready\ntrapped\ndone\n");
}
