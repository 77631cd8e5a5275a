//! Logging in as what is measured, with a wrong PIN, and not at all.

use tapstone_record::Outcome;

use crate::support::{Hsm, PIN, assert_all_verified};

const ALONE: &str = "error: login is measured alone, with one thread in a process: a login belongs \
                     to the whole process\nhint: use --processes";

/// Of `--processes` nothing is asked here: SoftHSM2 fails some of the logins of two processes.
#[test]
fn login_is_measured_alone() {
    let Some(hsm) = Hsm::new() else { return };
    let row = hsm.tapstone().args("--op login --count 20").run().exits(0).row();
    assert_eq!((row.completed, row.verification), (20, None));

    hsm.tapstone().args("--op login --threads 2 --count 20").run().refuses(ALONE);
    hsm.tapstone().args("--mix login=1,random=1 --count 20").run().refuses(ALONE);
}

#[test]
fn after_login_was_measured_the_next_row_is_still_logged_in() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--token-keys --op login --op rsa2048.sign --count 20");
    let rows = run.run().exits(0).record().results;
    assert_eq!(rows.len(), 2);
    assert_all_verified(&rows[1]);
    assert!(hsm.objects().is_empty());
}

#[test]
fn a_wrong_pin_is_tried_once_and_then_only_if_the_user_is_sure() {
    let Some(hsm) = Hsm::new() else { return };
    let wrong = hsm.write_secret("wrong-pin", "falsch-2810");
    let run = || hsm.on("hsm").args("--op random --count 4 --pin-file");
    run().arg(wrong).run().refuses(
        "error: token \"hsm\": C_Login: CKR_PIN_INCORRECT\n\
         hint: the PIN was tried once and is wrong; nothing else was tried",
    );
    // Now SoftHSM2 shows CKF_USER_PIN_COUNT_LOW.
    run().arg(hsm.path("pin")).run().refuses(
        "error: token \"hsm\": a wrong PIN was given since the last login\n\
         hint: if you are sure of the PIN, say --accept-low-count",
    );
    run().arg(hsm.path("pin")).arg("--accept-low-count").run().exits(0);
    run().arg(hsm.path("pin")).run().exits(0);
}

#[test]
fn the_pin_can_come_from_the_environment() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.on("hsm").args("--pin-env PIN_OF_THE_TESTS --op rsa2048.sign --count 8");
    let outcome = run.env("PIN_OF_THE_TESTS", PIN).run().exits(0);
    assert_eq!(outcome.stderr, "");
    assert!(outcome.record().command.iter().any(|argument| argument == "PIN_OF_THE_TESTS"));
}

/// SoftHSM2 lets anybody make public session objects.
#[test]
fn without_a_pin_public_session_keys_are_used() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.on("hsm").args("--op rsa2048.sign --op aes256-gcm.encrypt --op random --op find");
    let outcome = run.args("--op session --count 8").run().exits(0);
    assert_eq!(outcome.stderr, "");
    for row in outcome.record().results {
        if row.operation == "session" {
            assert_eq!(row.verification, None);
        } else {
            assert_all_verified(&row);
        }
        assert!(row.key.is_none_or(|key| key.token == Some(false)), "{}", row.operation);
    }
}

#[test]
fn without_a_pin_a_private_key_is_not_found_and_the_hint_says_why() {
    let Some(hsm) = Hsm::new() else { return };
    let made = hsm.pkcs11_tool("--keypairgen --key-type rsa:2048 --label user-key --id 01");
    let Some(()) = made else { return };
    let run = hsm.on("hsm").args("--key-label user-key --op rsa2048.sign --count 8");
    let outcome = run.run().exits(2);
    assert!(outcome.stderr.contains("is the PIN given"), "{}", outcome.stderr);
    assert_eq!(outcome.row().status.outcome, Outcome::Failed);
}

#[test]
fn without_a_pin_login_cannot_be_measured_and_the_error_says_why() {
    let Some(hsm) = Hsm::new() else { return };
    let outcome = hsm.on("hsm").args("--op login --count 8").run().exits(2);
    assert!(outcome.stderr.contains("--pin-file"), "it names what to give: {:?}", outcome.stderr);
}
