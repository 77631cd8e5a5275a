//! What a trial does not repeat: a PIN that was refused, and what writes, unless it is allowed.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::softhsm::{Hsm, PIN};
use crate::support::{Card, Outcome, Pcscd, Slot};
use crate::{fixtures, run, turn};

const WRONG: &str = "26840915";

/// A trial of a shell command that notes each run in a file, and always ends well: the exit code is
/// not what stops it.
fn trial_of(hsm: Option<&Hsm>, options: &str, command: &str) -> (Outcome, usize) {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let text = format!("echo run >> {}; {command}; true", runs.display());
    let conf = hsm.map(|hsm| hsm.path("softhsm2.conf"));
    let variables = conf.as_ref().map(|path| ("SOFTHSM2_CONF", path.to_str().unwrap()));
    let variables: Vec<_> = variables.into_iter().collect();
    let options = format!("--fix no-sleep --rounds 5 {options}");
    let outcome = run("trial", &options, &variables, &["sh", "-c", &text]);
    let noted = fs::read_to_string(runs).unwrap_or_default();
    (outcome, noted.lines().count())
}

fn tool(hsm: &Hsm, arguments: &str) -> String {
    format!("pkcs11-tool --module {} {arguments} > /dev/null 2>&1", hsm.module().display())
}

#[test]
fn a_login_that_is_refused_is_the_last() {
    let _turn = turn();
    let Some(hsm) = Hsm::new() else { return };
    let login = tool(&hsm, &format!("--login --pin {WRONG} --list-objects"));
    let (outcome, runs) = trial_of(Some(&hsm), "", &login);
    let outcome = outcome.exits(2);
    assert_eq!(runs, 1);
    let said = outcome.stderr;
    assert!(said.contains("C_Login returned CKR_PIN_INCORRECT"), "{said}");
    assert!(!said.contains(WRONG) && outcome.stdout.is_empty(), "{said}");
}

/// Three wrong PINs would block the card.
#[test]
fn a_card_loses_one_try_and_no_more() {
    let _turn = turn();
    let Some(pcscd) = Pcscd::start() else { return };
    let _card = Card::insert(&pcscd, Slot::First, &["piv"]);
    let tries = || {
        let select = "00A404000BA000000308000010000100";
        let words = ["--card-driver", "default", "--send-apdu", select, "--send-apdu", "00200080"];
        let output = Command::new("opensc-tool").args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().rfind(|line| line.starts_with("Received")).unwrap().to_owned()
    };
    assert!(tries().contains("SW1=0x63, SW2=0xC3"), "{}", tries());
    let command = format!("pkcs11-tool --login --pin {WRONG} --list-objects > /dev/null 2>&1");
    let (outcome, runs) = trial_of(None, "", &command);
    let said = outcome.exits(2).stderr;
    assert_eq!(runs, 1);
    assert!(said.contains("C_Login returned") || said.contains("63C2"), "{said}");
    assert!(tries().contains("SW1=0x63, SW2=0xC2"), "{}", tries());
}

#[test]
fn what_writes_is_repeated_only_with_leave() {
    let _turn = turn();
    let Some(hsm) = Hsm::new() else { return };
    let makes = tool(&hsm, &format!("--login --pin {PIN} --keygen --key-type AES:16 --label it"));
    let (outcome, runs) = trial_of(Some(&hsm), "", &makes);
    let said = outcome.exits(2).stderr;
    assert_eq!(runs, 1);
    assert!(said.contains("C_GenerateKey") && said.contains("--allow-writes"), "{said}");
    let (outcome, runs) = trial_of(Some(&hsm), "--allow-writes", &makes);
    outcome.exits(0);
    // Five rounds and a warm-up of three series.
    assert!(runs >= 15, "{runs}");
}

/// Programs without the probe could do anything, and so could those whose events were lost.
#[test]
fn what_cannot_be_seen_is_not_repeated() {
    let _turn = turn();
    let Some((hsm, client)) = Hsm::new().zip(fixtures::built("client")) else { return };
    let makes = tool(&hsm, &format!("--login --pin {PIN} --keygen --key-type AES:16 --label it"));
    let conf = hsm.path("softhsm2.conf");
    let hidden = format!("env -i SOFTHSM2_CONF={} /bin/sh -c '{makes}'", conf.display());
    let (outcome, runs) = trial_of(Some(&hsm), "", &hidden);
    let said = outcome.exits(2).stderr;
    assert_eq!(runs, 1);
    assert!(said.contains("sh was started without the variables of the probe"), "{said}");
    assert!(said.contains("--allow-writes"), "{said}");

    let many = format!("{} {} --digest 5000", client.display(), hsm.module().display());
    let wrong = tool(&hsm, &format!("--login --pin {WRONG} --list-objects"));
    for options in ["--events-size 128k", "--events-size 128k --allow-writes"] {
        let (outcome, runs) = trial_of(Some(&hsm), options, &format!("{many}; {wrong}"));
        let said = outcome.exits(2).stderr;
        assert_eq!(runs, 1, "{options}");
        assert!(said.contains("had to be dropped (the file of events was full"), "{said}");
    }

    let unknown = fixtures::built("trouble").zip(fixtures::built("stand-in-newer"));
    if let Some((program, newer)) = unknown {
        let command = format!("{} {} digest 1", program.display(), newer.display());
        let (outcome, runs) = trial_of(None, "--allow-writes", &command);
        let said = outcome.exits(2).stderr;
        assert_eq!(runs, 1);
        assert!(said.contains("1 function could not be watched"), "{said}");
    }

    if let Some(alone) = fixtures::built("static-client") {
        let folder = alone.parent().unwrap();
        let name = alone.file_name().unwrap();
        let relative = format!("cd {} && ./{}", folder.display(), name.display());
        for (command, says) in [
            (alone.to_str().unwrap(), "static-client is linked statically"),
            (&relative, "./static-client was started"),
        ] {
            let (outcome, runs) = trial_of(None, "", command);
            let said = outcome.exits(2).stderr;
            assert_eq!(runs, 1);
            assert!(said.contains(says), "{said}");
        }
    }
}

/// What a program says when it fails is for whoever sits there, and not for a record that is kept.
#[test]
fn a_round_that_fails_is_told_and_its_output_is_not_kept() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let runs = runs.display();
    // Not in the warm-up, nor in the first two rounds.
    let text = format!("echo x >> {runs}; echo PIN $WORD >&2; [ $(wc -l < {runs}) -le 9 ]");
    let variables = [("WORD", PIN)];
    let outcome = run("trial", "--fix no-sleep --rounds 5", &variables, &["sh", "-c", &text]);
    let outcome = outcome.exits(2);
    let record = fs::read_to_string(outcome.record_path()).unwrap();
    assert!(record.contains("ended with exit code 1") && !record.contains(PIN), "{record}");
    assert!(outcome.stderr.contains(&format!("PIN {PIN}")), "{}", outcome.stderr);
}

/// A daemonised child goes on counting calls while what it counted is read.
#[test]
fn a_child_that_goes_on_counting_calls_ends_the_trial() {
    let _turn = turn();
    let Some(program) = fixtures::built("trouble") else { return };
    let module = fixtures::built("stand-in").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let variables = [("TMPDIR", folder.path().to_str().unwrap())];
    let command = [program.to_str().unwrap(), module.to_str().unwrap(), "daemon", "20000"];
    let begun = Instant::now();
    let options = "--fix no-sleep --rounds 2 --events-size 256k";
    let said = run("trial", options, &variables, &command).exits(2).stderr;
    // The child ends by itself after five seconds.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(said.contains("calls after the first") && said.contains("are only counted"), "{said}");
    assert!(said.contains("the command left processes behind ("), "{said}");
    assert_eq!((said.matches("error: ").count(), said.matches("\nhint: ").count()), (1, 1));
    assert!(said.lines().last().is_some_and(|line| line.starts_with("hint: ")), "{said}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
