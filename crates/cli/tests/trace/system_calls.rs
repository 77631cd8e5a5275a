//! System calls beside the probe's calls: which, on what, and who wanted them.

use std::time::Duration;

use rustix::process::Signal;
use tapstone_record::{FindingKind, Record};

use crate::fixtures;
use crate::program::{Program, counts};
use crate::softhsm::Hsm;
use crate::support::{eventually, skip};
use crate::trouble;

const PACKETS: u64 = 300;

fn packet_filter() -> Option<Program> {
    Some(Program::new(fixtures::built("packet-filter")?).arg(PACKETS.to_string()))
}

/// How often a system call was made on an object, and by which function for which.
fn made<'a>(record: &'a Record, call: &str, object: &str) -> Vec<(u64, &'a str, Option<&'a str>)> {
    let calls = record.system_calls.iter();
    let same = calls.filter(|it| it.call == call && it.object.as_deref() == Some(object));
    same.filter_map(|it| {
        let origin = it.origin.as_ref()?;
        Some((it.count, origin.function.as_str(), origin.caller.as_deref()))
    })
    .collect()
}

/// The published case: nothing but the system calls shows what the lookup does.
#[test]
fn a_lookup_is_named_with_its_file_and_its_caller() {
    let Some(filter) = packet_filter() else { return };
    let record = filter.traced_with("--syscalls --perfetto trace.pftrace").exits(0).record();
    for call in ["openat", "read", "close"] {
        let wanted = [(PACKETS, "getprotobynumber", Some("filter_check"))];
        assert_eq!(made(&record, call, "/etc/protocols"), wanted, "{call}");
    }
    let finding = record.findings.iter().find(|it| it.kind == FindingKind::RepeatedLookup).unwrap();
    assert_eq!(finding.trial.as_deref(), Some("memoise:getprotobynumber"));
    let evidence = finding.evidence.join("\n");
    let says = format!(
        "/etc/protocols was opened {PACKETS} times by getprotobynumber of libc.so.6, called by \
         filter_check"
    );
    assert!(evidence.contains(&says), "{evidence}");
    // Almost all of its time is the tracer's.
    assert!(evidence.contains("stopped for the tracer"), "{evidence}");
    assert_eq!(finding.saving, None);
    let [cost] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    assert!(cost.contains("system calls were stopped at"), "{cost}");
}

/// The probe opens and maps files of its own, and is one that the dynamic linker opens.
#[test]
fn the_probes_own_calls_are_not_the_programs() {
    let Some((client, hsm)) = fixtures::built("client").zip(Hsm::new()) else { return };
    let client = Program::new(client).arg(hsm.module()).args("--digest 37 --fork");
    let client = client.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let bare = client.bare().exits(0);
    let set = "--syscalls=openat,read,newfstatat,close,mmap,write";
    let left = client.traced_with(set).exits(0);
    assert_eq!((&left.stdout, &left.stderr), (&bare.stdout, &bare.stderr));
    let record = left.record();
    assert_eq!(counts(&record, "libsofthsm2.so")["C_Digest"], 37);
    assert!(record.system_calls.iter().any(|call| call.call == "openat"));
    for call in &record.system_calls {
        let object = call.object.as_deref().unwrap_or_default();
        assert!(
            !object.ends_with("/events") && !object.ends_with("/tapstone-probe.so"),
            "{call:?}"
        );
        assert!(call.stack.iter().all(|frame| !frame.contains("tapstone-probe.so")), "{call:?}");
    }
}

#[test]
fn an_operation_can_be_what_lies_between_two_returns() {
    let Some(filter) = packet_filter() else { return };
    // It is observed without being asked for.
    let record = filter.traced_with("--operation syscall:sendto").exits(0).record();
    assert!(record.system_calls.iter().all(|call| call.call == "sendto"));
    let sent: u64 = record.system_calls.iter().map(|call| call.count).sum();
    let row = record.results.iter().find(|row| row.operation == "operation syscall:sendto");
    // Each of the two processes that send has one less than it has returns.
    assert_eq!(row.unwrap().completed, sent - 2);
    let lookups = record.calls.iter().find(|call| call.function == "getprotobynumber").unwrap();
    assert!(lookups.per_operation.is_some_and(|each| each > 0.1), "{lookups:?}");
}

#[test]
fn an_operation_that_never_was_is_said() {
    let program = Program::shell("true");
    for operation in ["syscall:sendto", "C_Sign"] {
        let record = program.traced_with(&format!("--operation {operation}")).exits(0).record();
        let says = format!("{operation} was not called");
        assert!(record.warnings.iter().any(|it| it.starts_with(&says)), "{:?}", record.warnings);
    }
}

#[test]
fn what_is_no_system_call_is_one_error() {
    let program = Program::shell("true");
    for (options, says) in [
        ("--syscalls=opennat", "did you mean openat"),
        ("--syscalls=read,-read", "no system call is chosen"),
        ("--operation syscall:raed", "did you mean syscall:read?"),
    ] {
        let left = program.traced_with(options).exits(2);
        assert!(left.stderr.contains(says), "{}", left.stderr);
        assert!(!left.file("record.json").exists());
    }
}

#[test]
fn ctrl_c_reaches_a_stopped_program_once() {
    let Some(program) = trouble("signals", 1) else { return };
    let running = program.start_traced("--syscalls");
    assert!(eventually(Duration::from_secs(30), || running.stdout() == "ready\n"));
    running.signal_group(Signal::INT);
    let left = running.wait().exits(0);
    assert_eq!(left.stdout, "ready\n1 SIGINT, 0 SIGTERM\n2 digests\n");
    assert_eq!(counts(&left.record(), "stand-in.so")["C_Digest"], 2);
}

#[test]
fn exit_codes_and_output_are_passed_on() {
    for (text, code) in [("echo out; echo err >&2; exit 3", 3), ("kill -KILL $$", 137)] {
        let program = Program::shell(text);
        let bare = program.bare().exits(code);
        let left = program.traced_with("--syscalls").exits(code);
        assert_eq!((&left.stdout, &left.stderr), (&bare.stdout, &bare.stderr), "{text}");
    }
}

/// Under ptrace such a program runs without its privileges.
#[test]
fn a_setuid_program_loses_its_privileges_and_that_is_said() {
    let su = std::path::Path::new("/usr/bin/su");
    if !rustix::process::geteuid().is_root() || !su.exists() {
        return skip("root, or su (Debian: util-linux)");
    }
    let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let script = format!("{nobody} /usr/bin/su --version > /dev/null");
    let record = Program::shell(&script).traced_with("--syscalls").exits(0).record();
    let said = record.warnings.iter().any(|it| it.contains("su") && it.contains("privilege"));
    assert!(said, "{:?}", record.warnings);
}
