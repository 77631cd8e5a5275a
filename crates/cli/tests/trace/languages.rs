//! Programs in other languages, which reach libraries in other ways.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use crate::fixtures;
use crate::program::{Program, call, counts};
use crate::softhsm::Hsm;
use crate::support::skip;

const SOFTHSM: &str = "libsofthsm2.so";
const PCSC: &str = "libpcsclite.so.1";

/// Whether a program can be started; says so when it cannot.
fn has(program: &str) -> bool {
    match Command::new(program).arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(program);
            false
        }
        _ => true,
    }
}

fn on_softhsm(program: Program, hsm: &Hsm) -> Program {
    let program = program.arg(hsm.module()).arg("37");
    program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"))
}

/// rustc calls other libraries through the global offset table, which nobody asks an auditor about.
#[test]
fn rust_calls_without_a_procedure_linkage_table() {
    let Some((client, hsm)) = fixtures::built("rust-client").zip(Hsm::new()) else { return };
    let record = on_softhsm(Program::new(client), &hsm).unchanged().exits(0).whole();
    let counts = counts(&record, SOFTHSM);
    assert_eq!((counts["C_Initialize"], counts["C_OpenSession"]), (1, 1));
    assert_eq!((counts["C_DigestInit"], counts["C_Digest"], counts["C_Finalize"]), (37, 37, 1));
}

#[test]
fn python_calls_by_ctypes() {
    let Some(hsm) = has("python3").then(Hsm::new).flatten() else { return };
    let client = Program::new("python3").arg(fixtures::source("ctypes_client.py"));
    let record = on_softhsm(client, &hsm).unchanged().exits(0).whole();
    let counts = counts(&record, SOFTHSM);
    assert_eq!((counts["C_DigestInit"], counts["C_Digest"], counts["C_Finalize"]), (37, 37, 1));
}

#[test]
fn java_calls_by_its_provider() {
    let Some(classes) = fixtures::built("sun-client").filter(|_| has("java")) else { return };
    let Some(hsm) = Hsm::new() else { return };
    let client = Program::new("java").arg("-cp").arg(classes).arg("SunClient");
    let record = on_softhsm(client, &hsm).unchanged().exits(0).whole();
    let counts = counts(&record, SOFTHSM);
    let digests = ["C_DigestInit", "C_DigestUpdate", "C_DigestFinal"].map(|name| counts[name]);
    assert_eq!((counts["C_Initialize"], digests), (1, [37; 3]));
}

/// A program on a stand-in of libpcsclite that needs no daemon.
fn on_pollster(program: impl AsRef<Path>, arguments: &str) -> Option<Program> {
    let program = Program::new(program.as_ref()).args(arguments);
    Some(program.env("LD_LIBRARY_PATH", fixtures::built("pollster")?))
}

#[test]
fn programs_are_seen_that_are_linked_with_the_library() {
    let Some(client) = fixtures::built("linked-pcsc") else { return };
    for (arguments, function, times) in [
        ("37 --call SCardBeginTransaction", "SCardEndTransaction", 37),
        ("37 --call SCardStatus", "SCardStatus", 37),
        // And SELECT once.
        ("37 --call SCardTransmit", "SCardTransmit", 38),
        // SELECT and GET DATA.
        ("37", "SCardTransmit", 74),
    ] {
        let Some(program) = on_pollster(&client, arguments) else { return };
        let record = program.unchanged().exits(0).whole();
        let counts = counts(&record, PCSC);
        assert_eq!(counts[function], times, "{arguments}: {counts:?}");
        assert_eq!((counts["SCardEstablishContext"], counts["SCardConnect"]), (1, 1));
    }
}

#[test]
fn rust_programs_are_seen_that_are_linked_with_the_library() {
    let Some(program) = fixtures::built("rust-pcsc").and_then(|rust| on_pollster(rust, "37"))
    else {
        return;
    };
    let record = program.unchanged().exits(0).whole();
    let change = call(&record, PCSC, "SCardGetStatusChange");
    // The first look sees a change.
    assert_eq!((change.count, &change.failed), (37, &[("SCARD_E_TIMEOUT".to_owned(), 36)].into()));
}
