//! No PIN is anywhere: not in the events, not in the record, not in what is said.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::fixtures;
use crate::program::{Left, Program, counts};
use crate::softhsm::{Hsm, PIN};
use crate::support::{Card, Pcscd, Slot, skip};

pub(crate) const OPENSC: &str = "/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so";
/// Everything that a trace writes.
const FILES: [&str; 4] = ["record.json", "events", "trace.pftrace", "stacks"];
const OPTIONS: &str = "--data --events events --perfetto trace.pftrace --folded stacks";

#[track_caller]
fn is_nowhere(secret: &str, left: &Left) {
    let secret = secret.as_bytes();
    for name in FILES {
        let bytes = fs::read(left.file(name)).unwrap();
        assert!(bytes.len() > 100, "{name} has {} bytes", bytes.len());
        let found = bytes.windows(secret.len()).any(|window| window == secret);
        assert!(!found, "the PIN is in {name}");
    }
    for text in [&left.stdout, &left.stderr] {
        assert!(!text.as_bytes().windows(secret.len()).any(|window| window == secret), "{text}");
    }
}

#[test]
fn the_pin_of_a_login_is_nowhere() {
    let Some((client, hsm)) = fixtures::built("client").zip(Hsm::new()) else { return };
    let client = Program::new(client).arg(hsm.module()).args("--sign 3 --rsa --pin").arg(PIN);
    let client = client.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let left = client.traced_with(OPTIONS).exits(0);
    let record = left.whole();
    assert_eq!(counts(&record, "libsofthsm2.so")["C_Login"], 1);
    is_nowhere(PIN, &left);
}

/// A virtual PIV card with this PIN.
fn card<'a>(pcscd: &'a Pcscd, folder: &Path, pin: &str) -> Card<'a> {
    let arguments = ["piv".as_ref(), "--card-data".as_ref(), folder.as_os_str()];
    // Made once, so that the PIN can be put beside its keys.
    drop(Card::insert(pcscd, Slot::First, &arguments));
    fs::write(folder.join("pin"), pin).unwrap();
    Card::insert(pcscd, Slot::First, &arguments)
}

#[test]
fn the_pin_that_a_card_is_sent_is_nowhere() {
    const PIN: &str = "84615937";
    if !Path::new(OPENSC).exists() || Command::new("pkcs11-tool").arg("--help").output().is_err() {
        return skip("pkcs11-tool and OpenSC's module (Debian: opensc, opensc-pkcs11)");
    }
    let Some(pcscd) = Pcscd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let _card = card(&pcscd, &folder.path().join("card"), PIN);
    let tool = Program::new("pkcs11-tool").args("--module").arg(OPENSC);
    let tool = tool.arg("--slot-description").arg(Slot::First.reader());
    let tool = tool.args("--login --list-objects --pin").arg(PIN);
    let left = tool.traced_with(OPTIONS).exits(0);
    let record = left.whole();
    assert_eq!(counts(&record, "opensc-pkcs11.so")["C_Login"], 1);
    // VERIFY went to the card, and its name is in the record; what it carried is not.
    let verify = record.apdus.iter().any(|apdu| format!("{apdu:?}").contains("VERIFY"));
    assert!(verify, "{:?}", record.apdus);
    is_nowhere(PIN, &left);
    // The interface of version 3 of a real module.
    let Some(client) = fixtures::built("client") else { return };
    let client = Program::new(client).arg(OPENSC).args("--interface --digest 37");
    let record = client.unchanged().exits(0).whole();
    let counts = counts(&record, "opensc-pkcs11.so");
    assert_eq!((counts["C_GetInterface"], counts["C_Digest"]), (1, 37));
}

/// Seven ordinary forms of a secret on a command line, and none that a rule could know.
#[test]
fn no_argument_of_the_program_is_in_the_record() {
    let arguments = [
        "--token",
        "hunter2",
        "-u",
        "user:hunter2",
        "-H",
        "Authorization: Bearer hunter2",
        "https://u:hunter2@h",
        "-phunter2",
        "X=hunter2",
        "--pin=hunter2",
        "sh -c 'tool hunter2'",
    ];
    let program = arguments.iter().fold(Program::new("true"), Program::arg);
    let left = program.traced_with("").exits(0);
    let record = fs::read_to_string(left.file("record.json")).unwrap();
    for text in [&record, &left.stdout, &left.stderr] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    let command = left.record().command;
    let kept = command.rsplit(|word| word == "--").next().unwrap();
    let shown = ["true", "--token", "…", "-u", "…", "-H", "…", "…", "-p…", "…", "--pin=…", "…"];
    assert_eq!(kept, shown);

    let whole = program.traced_with("--record-command").exits(0).record().command;
    assert_eq!(whole[whole.len() - arguments.len()..], arguments);
}
