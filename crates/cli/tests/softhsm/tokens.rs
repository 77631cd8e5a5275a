//! Which token is meant, and several at once.

use tapstone_record::ShareKind;

use crate::concurrency::assert_shares_add_up;
use crate::support::{Hsm, assert_all_verified};

#[test]
fn two_tokens_are_measured_at_once() {
    let Some(hsm) = Hsm::new() else { return };
    let Some(()) = hsm.add_token("second") else { return };
    let run = hsm.tapstone().args("--token-label second --op rsa2048.sign --threads 2 --count 80");
    let outcome = run.run().exits(0);
    let labels: Vec<String> =
        outcome.record().target.tokens.into_iter().map(|token| token.label).collect();
    assert_eq!(labels, ["hsm", "second"]);
    let row = outcome.row();
    assert_eq!(row.completed, 80);
    assert_all_verified(&row);
    assert_shares_add_up(&row, ShareKind::Token, &["hsm", "second"]);
    assert_shares_add_up(&row, ShareKind::Process, &["process 1", "process 2"]);
    for share in row.shares {
        assert_eq!((share.completed, share.share.0), (40, 0.5), "{}", share.name);
    }
}

#[test]
fn the_rate_of_two_tokens_is_the_sum_of_both() {
    let Some(hsm) = Hsm::new() else { return };
    let Some(()) = hsm.add_token("second") else { return };
    let run = hsm.tapstone().args("--token-label second --op ecdsa-p256.sign --seconds 0.5");
    let row = run.run().exits(0).row();
    assert_shares_add_up(&row, ShareKind::Token, &["hsm", "second"]);
    let of_tokens = row.shares.iter().filter(|share| share.kind == ShareKind::Token);
    let sum: f64 = of_tokens.map(|share| share.rate.0).sum();
    let whole = row.throughput.unwrap().estimate;
    assert!((whole - sum).abs() < 1e-6, "{whole}, and {sum} of the tokens");
}

#[test]
fn the_only_initialised_token_needs_no_name() {
    let Some(hsm) = Hsm::new() else { return };
    let run = || hsm.anywhere().arg("--pin-file").arg(hsm.path("pin"));
    let outcome = run().args("--op random --count 4").run().exits(0);
    assert_eq!(outcome.record().target.tokens[0].label, "hsm");

    let Some(()) = hsm.add_token("second") else { return };
    let outcome = run().args("--op random --count 4").run().exits(2);
    assert!(outcome.stderr.contains("2 tokens fit: "), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\"second\" in slot"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: choose one by --"), "{}", outcome.stderr);
}

#[test]
fn an_unknown_label_is_answered_with_those_that_there_are() {
    let Some(hsm) = Hsm::new() else { return };
    let outcome = hsm.on("another").args("--op random --count 4").run().exits(2);
    let stderr = outcome.stderr;
    assert!(stderr.contains("no token with label \"another\"\nhint: there is: "), "{stderr}");
    assert!(stderr.contains("\"hsm\" in slot "), "{stderr}");
}

#[test]
fn a_token_that_is_not_initialised_is_left_so() {
    let Some(hsm) = Hsm::new() else { return };
    // SoftHSM2 numbers the empty token that it offers after those in use.
    hsm.anywhere().args("--slot 1 --op random --count 4").run().refuses(
        "error: slot 1: the token is not initialised\n\
         hint: initialise it with its vendor's tool; Tapstone never does",
    );
}
