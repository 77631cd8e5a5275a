//! What cannot be measured as it was asked for: one clear error, advice, and nothing else.

use std::fs;

use crate::support::Tapstone;

/// Exit code 2, nothing on standard output, one error with these words and with advice.
#[track_caller]
fn refused(run: Tapstone, words: &str) {
    let outcome = run.without_record().run().exits(2);
    let stderr = &outcome.stderr;
    assert_eq!(outcome.stdout, "");
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
    assert!(stderr.contains(words), "{stderr}");
    // What is wrong with one option is told by the parser of options, which points to the help.
    let advice = ["hint: ", "For more information, try '--help'."];
    assert!(advice.iter().any(|advice| stderr.contains(advice)), "{stderr}");
}

fn sign() -> Tapstone {
    Tapstone::on(&[]).args("--op rsa1024.sign --seconds 0.1")
}

#[test]
fn no_module() {
    refused(Tapstone::bare(), "--module <PATH>");
}

#[test]
fn a_module_that_is_not_there() {
    refused(
        Tapstone::bare().args("--module /no/such/module.so"),
        "/no/such/module.so: no such module",
    );
}

#[test]
fn a_file_that_is_no_library() {
    let run = Tapstone::bare();
    let path = run.path("text.so");
    fs::write(&path, "not a library").unwrap();
    refused(run.arg("--module").arg(&path), &path.display().to_string());
}

#[test]
fn a_library_without_pkcs11() {
    refused(Tapstone::bare().args("--module libm.so.6"), "libm.so.6");
}

#[test]
fn a_module_that_cannot_be_initialised() {
    refused(sign().env("NULL_MODULE_NO_SUCH_VARIABLE", "1"), "C_Initialize");
}

#[test]
fn a_token_that_is_not_there() {
    refused(sign().args("--token-label nil"), "no token with label \"nil\"");
}

#[test]
fn several_tokens_where_one_is_meant() {
    refused(sign().env("NULL_MODULE_SLOTS", "2"), "2 tokens");
}

#[test]
fn a_token_that_is_not_initialised() {
    refused(
        sign().args("--slot 0").env("NULL_MODULE_FLAGS", "uninitialised"),
        "slot 0: the token is not initialised",
    );
    refused(sign().env("NULL_MODULE_FLAGS", "uninitialised"), "no token that is initialised");
}

#[test]
fn an_operation_that_does_not_exist() {
    refused(Tapstone::on(&[]).args("--op rsa1024.sing"), "the nearest are rsa1024.sign");
}

#[test]
fn no_threads() {
    refused(sign().args("--threads 0"), "--threads <N>");
}

#[test]
fn a_negative_rate() {
    refused(sign().args("--rate -5"), "--rate <PER-SECOND>");
}

#[test]
fn options_that_exclude_each_other() {
    refused(sign().args("--count 10"), "--count <N>");
}

#[test]
fn an_output_that_cannot_be_written() {
    refused(sign().args("--output /no/such/folder/record.json"), "/no/such/folder/record.json");
}

#[test]
fn samples_that_cannot_be_written() {
    refused(sign().args("--samples /no/such/folder/samples.parquet"), "/no/such/folder/samples");
}

#[test]
fn a_pin_file_that_cannot_be_read() {
    let run = Tapstone::without_pin(&[]).args("--op rsa1024.sign --pin-file /no/such/pin");
    refused(run, "--pin-file /no/such/pin: No such file or directory");
}

#[test]
fn a_suite_that_is_not_there() {
    refused(Tapstone::on(&[]).args("--suite /no/such/suite.toml"), "/no/such/suite.toml");
}

/// It was read until memory was gone.
#[test]
fn a_suite_without_an_end() {
    refused(Tapstone::on(&[]).args("--suite /dev/zero"), "it has more than 4 MiB");
}

#[test]
fn a_malformed_suite() {
    let run = Tapstone::on(&[]);
    let path = run.path("suite.toml");
    fs::write(&path, "name = \"broken\"\n[[case]]\noperatoin = \"rsa1024.sign\"\n").unwrap();
    refused(run.arg("--suite").arg(&path), "operatoin");
}

#[test]
fn a_malformed_claim() {
    refused(Tapstone::on(&[]).arg("--claim").arg("rsa1024.sign => many"), "rsa1024.sign => many");
}

#[test]
fn fewer_operations_than_workers() {
    let run = Tapstone::on(&[]).args("--op rsa1024.sign --count 3 --threads 4");
    refused(run, "--count 3 is less than one operation for each worker");
}

#[test]
fn a_mix_of_one() {
    refused(Tapstone::on(&[]).args("--mix rsa1024.sign=70"), "--mix needs at least two operations");
}

#[test]
fn a_mix_without_weights() {
    refused(Tapstone::on(&[]).args("--mix rsa1024.sign,random"), "write NAME=WEIGHT");
}

#[test]
fn no_keys() {
    refused(sign().args("--keys 0"), "--keys 0");
}

#[test]
fn login_by_two_threads() {
    refused(Tapstone::on(&[]).args("--op login --threads 2"), "login is measured alone");
}

#[test]
fn a_key_that_is_not_there() {
    // The run begins and has a record: the case failed.
    let outcome = sign().args("--key-label none").run().exits(2);
    assert!(outcome.stderr.contains("label \"none\""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    assert_eq!(outcome.row().completed, 0);
}

#[test]
fn an_operation_that_the_token_lacks() {
    let outcome = Tapstone::on(&[]).args("--op ecdsa-p256.sign --seconds 0.1").run().exits(2);
    assert_eq!(outcome.row().status.outcome, tapstone_record::Outcome::Unsupported);
}

#[test]
fn nothing_is_left_of_an_output_that_was_only_tried() {
    let run = sign();
    let output = run.path("record.json");
    let outcome =
        run.args("--token-label nil").arg("--output").arg(&output).without_record().run().exits(2);
    assert!(!output.exists());
    assert_eq!(outcome.stdout, "");
}
