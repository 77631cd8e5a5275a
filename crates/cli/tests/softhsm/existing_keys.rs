//! The user's own keys: used, verified, and never changed.

use tapstone_record::Outcome;

use crate::support::{Hsm, assert_all_verified};

const RSA: &str = "--keypairgen --key-type rsa:2048 --label user-key --id";
const EC: &str = "--keypairgen --key-type EC:prime256v1 --label ec-key --id";

/// A token with a key pair `user-key`, id 01.
fn with_a_key() -> Option<Hsm> {
    let hsm = Hsm::new()?;
    hsm.pkcs11_tool(&format!("{RSA} 01"))?;
    assert_eq!(hsm.objects().len(), 2);
    Some(hsm)
}

#[test]
fn a_key_is_used_verified_and_untouched() {
    let Some(hsm) = with_a_key() else { return };
    let before = hsm.objects();
    for (choice, label) in [("--key-label user-key", Some("user-key")), ("--key-id 01", None)] {
        for operation in ["rsa2048.sign", "rsa2048.sign.pss", "rsa2048.decrypt.oaep"] {
            let run = hsm.tapstone().args(choice).args("--count 20 --threads 2 --op");
            let row = run.arg(operation).run().exits(0).row();
            assert_all_verified(&row);
            let key = row.key.unwrap();
            assert_eq!((key.token, key.sensitive), (Some(true), Some(true)));
            assert_eq!(key.label.as_deref(), label);
        }
    }
    assert!(hsm.objects() == before, "every attribute is as it was");
}

#[test]
fn a_key_that_looks_like_tapstones_own_is_no_leftover() {
    let Some(hsm) = Hsm::new() else { return };
    let made = hsm.pkcs11_tool("--keypairgen --key-type rsa:2048 --label tapstone-mine --id 01");
    let Some(()) = made else { return };
    let before = hsm.objects();
    let left = hsm.tapstone().args("--leftovers --remove").without_record().run().exits(0);
    assert_eq!(left.stdout, "no leftovers\n");
    assert!(hsm.objects() == before);
}

#[test]
fn of_two_keys_with_one_label_the_id_tells_which() {
    let Some(hsm) = with_a_key() else { return };
    let Some(()) = hsm.pkcs11_tool(&format!("{RSA} 03")) else { return };
    let run = || hsm.tapstone().args("--key-label user-key --op rsa2048.sign --count 20");
    let outcome = run().run().exits(2);
    let stderr = &outcome.stderr;
    assert!(stderr.contains("2 keys") && stderr.contains("\"user-key\""), "{stderr}");
    assert!(stderr.contains("hint: choose one by --key-id"), "{stderr}");
    assert!(stderr.contains("01") && stderr.contains("03"), "both ids are named: {stderr}");
    let code = outcome.row().status.code.unwrap();
    assert!(!code.contains("no such key"), "there are two: {code}");

    assert_all_verified(&run().args("--key-id 03").run().exits(0).row());
}

#[test]
fn a_key_that_is_not_there_is_an_error_that_names_it() {
    let Some(hsm) = with_a_key() else { return };
    for (choice, wanted) in [("--key-label nope", "label \"nope\""), ("--key-id 99", "id 99")] {
        let outcome = hsm.tapstone().args(choice).args("--op rsa2048.sign --count 8").run();
        let outcome = outcome.exits(2);
        assert!(outcome.stderr.contains(wanted), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("\nhint: "), "{}", outcome.stderr);
        let status = outcome.row().status;
        assert_eq!(status.outcome, Outcome::Failed);
        assert_eq!(status.code.as_deref(), Some("no such key"));
    }
}

#[test]
fn a_key_of_another_type_is_refused() {
    let Some(hsm) = with_a_key() else { return };
    let Some(()) = hsm.pkcs11_tool(&format!("{EC} 02")) else { return };
    let choices = ["--key-label ec-key --op rsa2048.sign", "--key-id 01 --op ecdsa-p256.sign"];
    for choice in choices {
        let outcome = hsm.tapstone().args(choice).args("--count 8").run().exits(2);
        assert!(outcome.stderr.contains("of the operation's type"), "{}", outcome.stderr);
        assert_eq!(outcome.row().status.outcome, Outcome::Failed);
    }
}

#[test]
fn a_key_of_another_length_is_refused_in_words() {
    let Some(hsm) = with_a_key() else { return };
    for (operation, bits) in [("rsa1024.sign", 1024), ("rsa4096.sign", 4096)] {
        let run = hsm.tapstone().args("--key-label user-key --count 8 --op").arg(operation);
        let outcome = run.run().exits(2);
        let stderr = &outcome.stderr;
        let expected = format!("is not an RSA key of {bits} bits\nhint: ");
        assert!(stderr.contains(&expected), "{stderr}");
        assert!(!stderr.contains('{'), "no names of Rust types: {stderr}");
        assert_eq!(outcome.row().status.outcome, Outcome::Failed);
    }
}

/// A P-256 signature is no figure of P-384.
#[test]
fn a_key_on_another_curve_is_refused() {
    let Some(hsm) = Hsm::new() else { return };
    let Some(()) = hsm.pkcs11_tool(&format!("{EC} 02")) else { return };
    let run = |operation| hsm.tapstone().args("--key-id 02 --count 8 --op").arg(operation).run();
    assert_all_verified(&run("ecdsa-p256.sign").exits(0).row());
    for operation in ["ecdsa-p384.sign", "ecdh-p521.derive"] {
        let row = run(operation).exits(2).row();
        assert_ne!(row.status.outcome, Outcome::Ok, "{operation}");
        assert!(row.throughput.is_none(), "{operation}");
    }
}
