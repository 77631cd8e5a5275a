//! pkcs11-tool on a virtual PIV card behind the real pcscd.

use tapstone_record::Change;

use crate::support::{Card, Pcscd, Slot};
use crate::{finding, fixtures, record, run, trial, turn};

const COMMAND: [&str; 2] = ["pkcs11-tool", "--list-objects"];

/// The client library of pcsc-lite 1.9.9 spins in SCardGetStatusChange.
#[test]
fn a_busy_wait_is_found_and_tried() {
    let _turn = turn();
    let Some(pcscd) = Pcscd::start() else { return };
    let _card = Card::insert(&pcscd, Slot::First, &["piv"]);
    let traced = run("trace", "", &[], &COMMAND).exits(0);
    let spin = finding(&record(&traced).findings, "no-busy-wait:SCardGetStatusChange");
    assert!(spin.count > 0, "{spin:?}");
    let tried = trial("no-busy-wait", "--rounds 20", &[], &COMMAND);
    assert_eq!(tried.verdict, Change::Faster, "{tried:?}");
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
    let (probes, repeats) = (finding(&findings, "whole-read"), finding(&findings, "cache-apdu"));
    assert_eq!((probes.count, repeats.count), (9, 6), "{findings:#?}");
    // Of 41 commands at 30 ms; nine of them are saved, and then six.
    let whole = trial("whole-read", "--rounds 4", &[], &COMMAND);
    assert!(whole.speedup.estimate > 1.2, "{whole:?}");
    let cached = trial("cache-apdu", "--rounds 4", &[], &COMMAND);
    assert!(cached.speedup.estimate > 1.1, "{cached:?}");
}
