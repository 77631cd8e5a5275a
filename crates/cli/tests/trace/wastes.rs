//! Waste in real programs that is found without being told of, and none where there is none. The
//! tests of `tapstone trial` have more: what they try, they find first.

use std::path::Path;

use tapstone_record::{Finding, FindingKind, Record};

use crate::fixtures;
use crate::program::Program;
use crate::secrets::OPENSC;
use crate::softhsm::{Hsm, PIN};
use crate::support::{Card, Pcscd, Slot, skip};

#[track_caller]
fn found(record: &Record, kind: &FindingKind) -> Finding {
    let finding = record.findings.iter().find(|finding| finding.kind == *kind);
    finding.unwrap_or_else(|| panic!("no {kind:?} in {:#?}", record.findings)).clone()
}

/// The client on a token with a key pair. `None`, which has been said then: something is missing.
fn client(options: &str) -> Option<(Program, Hsm)> {
    let (client, hsm) = fixtures::built("client").zip(Hsm::new())?;
    let client = Program::new(client).arg(hsm.module()).args(options);
    Some((client.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf")), hsm))
}

#[test]
fn a_client_that_wastes_nothing() {
    let Some((client, hsm)) = client("--digest 3000 --bytes 4096") else { return };
    let record = client.unchanged().exits(0).whole();
    assert_eq!(record.findings, []);
    // And says so, where it reports.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tapstone"))
        .args(["trace", "--"])
        .args(client.all_words())
        .env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"))
        .output()
        .unwrap();
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(report.contains("Found nothing"), "{report}");
}

#[test]
fn a_session_for_each_operation() {
    let Some((client, _hsm)) = client("--digest 30000 --sessions-per-op") else { return };
    let churn = found(&client.unchanged().exits(0).record(), &FindingKind::SessionChurn);
    assert_eq!(
        (churn.place.as_str(), churn.trial.as_deref()),
        ("C_OpenSession", Some("keep-session"))
    );
    assert!(churn.count >= 29_999, "{churn:?}");
    assert!(churn.advice.is_some_and(|advice| advice.contains("keep the session")));
}

#[test]
fn threads_that_share_one_session() {
    let options = format!("--sign 1000 --rsa --threads 4 --serialised --pin {PIN}");
    let Some((client, _hsm)) = client(&options) else { return };
    let turns = found(&client.traced().exits(0).record(), &FindingKind::Serialised);
    assert!(turns.evidence[0].contains("by 4 threads never overlap"), "{turns:?}");
    assert!(turns.advice.is_some(), "{turns:?}");
}

/// OpenSC's module lets in one call at a time, also where each thread has a session of its own.
#[test]
fn a_module_that_serialises_itself_is_told_from_a_program_that_does() {
    if !Path::new(OPENSC).exists() {
        return skip("OpenSC's module (Debian: opensc-pkcs11)");
    }
    let (Some(client), Some(pcscd)) = (fixtures::built("client"), Pcscd::start()) else { return };
    let _card = Card::insert(&pcscd, Slot::First, &["piv"]);
    let client = Program::new(client).arg(OPENSC).args("--digest 100 --bytes 1000000 --threads 4");
    let turns = found(&client.traced().exits(0).record(), &FindingKind::Serialised);
    // Which of the threads wait is chance: one may never find another inside.
    assert!(turns.evidence[0].contains("of opensc-pkcs11.so, "), "{turns:?}");
    let waited = |count: u32| turns.evidence[0].contains(&format!("{count} threads waited "));
    assert!((2..=4).any(waited), "{turns:?}");
    let advice = turns.advice.unwrap();
    let says =
        "each thread has a session of its own, and the module still lets in one call at a time";
    assert!(advice.starts_with(says), "{advice}");
}

/// A library that looks at a flag every 10 ms.
#[test]
fn waits_that_are_multiples_of_an_interval() {
    let (Some(client), Some(library)) =
        (fixtures::built("linked-pcsc"), fixtures::built("pollster"))
    else {
        return;
    };
    let client = Program::new(client).args("30 --call SCardStatus");
    let record = client.env("LD_LIBRARY_PATH", library).traced().exits(0).record();
    let quantum = found(&record, &FindingKind::PollQuantum);
    assert_eq!(quantum.place, "SCardStatus");
    assert!(quantum.evidence[0].contains("multiple of 10.0 ms"), "{quantum:?}");
}
