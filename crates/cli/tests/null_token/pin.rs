//! The PIN: tried once, never when a token could lock itself, and seen by nobody.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

use crate::support::{PIN, Tapstone, eventually};

/// Long enough not to turn up by chance, and wrong.
const WRONG: &str = "correct horse battery staple";

fn short(run: Tapstone) -> Tapstone {
    run.args("--op rsa1024.sign --no-verify --seconds 0.2")
}

#[test]
fn a_wrong_pin_is_tried_once() {
    for processes in ["1", "3"] {
        let run = Tapstone::without_pin(&[]).stored().pin(WRONG.as_bytes());
        let outcome = short(run).args("--processes").arg(processes).run().exits(2);
        assert_eq!(outcome.wrong_pins(), Some(1), "with {processes} processes");
        assert!(outcome.stderr.contains("C_Login: CKR_PIN_INCORRECT"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn the_right_pin_serves_all_processes() {
    let outcome = short(Tapstone::on(&[]).stored()).args("--processes 3").run().exits(0);
    assert_eq!(outcome.wrong_pins(), None);
}

#[test]
fn a_wrong_pin_that_somebody_else_gave_is_noticed() {
    let run = short(Tapstone::on(&[]).stored());
    let store = run.path("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("slot-0.pin-failures"), "1").unwrap();
    let outcome = run.run().exits(2);
    assert_eq!(outcome.wrong_pins(), Some(1));
}

#[test]
fn a_token_that_could_lock_itself_is_left_alone() {
    for (flag, words) in [
        ("final-try", "one wrong PIN more would lock it"),
        ("locked", "the PIN is locked"),
        ("count-low", "--accept-low-count"),
    ] {
        let outcome = short(Tapstone::on(&[("FLAGS", flag)]).stored()).run().exits(2);
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
        assert_eq!(outcome.wrong_pins(), None, "{flag}: a try is noted, right or wrong");
    }
}

#[test]
fn a_count_that_is_low_can_be_accepted_and_a_final_try_cannot() {
    let run = |flag| short(Tapstone::on(&[("FLAGS", flag)]).stored()).args("--accept-low-count");
    assert_eq!(run("count-low").run().exits(0).wrong_pins(), Some(0), "the right PIN forgives");
    assert_eq!(run("final-try").run().exits(2).wrong_pins(), None);
}

#[test]
fn a_token_with_a_pin_pad_asks_for_the_pin_itself() {
    let run = Tapstone::without_pin(&[("FLAGS", "protected-auth")]).stored();
    let outcome = short(run).args("--token-keys").run().exits(0);
    let asked = outcome.stderr.contains("enter the PIN of token \"null\" on the token's own pad");
    assert!(asked, "{}", outcome.stderr);
    assert_eq!(outcome.row().key.unwrap().token, Some(true), "logged in: a token key was made");
}

#[test]
fn any_bytes_reach_the_token() {
    // The module has one PIN; that another is refused by it, and counted, shows that it came.
    let pin = b"operator-name:a pass\xffphrase of 40 bytes.";
    assert_eq!(pin.len(), 40);
    let outcome = short(Tapstone::without_pin(&[]).stored().pin(pin)).run().exits(2);
    assert!(outcome.stderr.contains("CKR_PIN_INCORRECT"), "{}", outcome.stderr);
    assert_eq!(outcome.wrong_pins(), Some(1));
}

#[test]
fn an_empty_pin_is_no_try() {
    let outcome = short(Tapstone::without_pin(&[]).stored().pin(b"\n")).run().exits(2);
    assert!(outcome.stderr.contains("the PIN is empty"), "{}", outcome.stderr);
    assert_eq!(outcome.wrong_pins(), None);
}

/// What every user of the machine, or every process of this user, can read of a process.
fn shown(process: Pid) -> String {
    let read = |file| fs::read(format!("/proc/{}/{file}", process.as_raw_nonzero())).unwrap();
    String::from_utf8_lossy(&[read("cmdline"), b" ".to_vec(), read("environ")].concat())
        .into_owned()
}

#[test]
fn nobody_sees_the_pin_of_a_file() {
    // The module hangs with the PIN in its hands, so that there is time to look.
    let run = Tapstone::without_pin(&[("HANG", "C_Login")]).pin(WRONG.as_bytes());
    let run = short(run).args("--timeout 2s").start();
    assert!(eventually(Duration::from_secs(10), || run.workers().len() == 1));
    std::thread::sleep(Duration::from_millis(500));
    for process in [run.workers(), vec![run.pid()]].concat() {
        assert!(!shown(process).contains(WRONG), "{}", shown(process));
    }
    let outcome = run.wait().exits(2);
    assert!(outcome.stderr.contains("during C_Login"), "{}", outcome.stderr);
    assert!(!(outcome.stdout + &outcome.stderr).contains(WRONG));
}

#[test]
fn workers_do_not_inherit_the_pin_of_a_variable() {
    let run = Tapstone::without_pin(&[("HANG", "C_Login")]).env("THE_PIN", WRONG);
    let run = short(run).args("--pin-env THE_PIN --timeout 2s").start();
    assert!(eventually(Duration::from_secs(10), || run.workers().len() == 1));
    std::thread::sleep(Duration::from_millis(500));
    for worker in run.workers() {
        assert!(!shown(worker).contains(WRONG), "{}", shown(worker));
    }
    let outcome = run.wait().exits(2);
    assert!(outcome.stderr.contains("during C_Login"), "{}", outcome.stderr);
    assert!(!(outcome.stdout + &outcome.stderr).contains(WRONG));
}

#[test]
fn a_record_holds_the_name_of_the_variable_and_not_the_pin() {
    let run = Tapstone::without_pin(&[]).env("THE_PIN", PIN);
    let outcome = short(run).args("--pin-env THE_PIN --format json").run().exits(0);
    let command = outcome.record().command;
    assert!(command.iter().any(|argument| argument == "THE_PIN"));
    assert!(!command.iter().any(|argument| argument.contains(PIN)), "{command:?}");
}
