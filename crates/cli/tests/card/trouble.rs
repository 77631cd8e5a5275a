//! Cards that go away, fall silent or talk nonsense in mid-run: it is said what happened, what was
//! measured until then is kept, and pcscd serves the next.

use tapstone_record::{CaseResult, Outcome};

use crate::support::{COUNTS, Card, Pcscd, Played, Says, Slot, Tapstone, bench_profile};

/// A card in the first reader with this profile.
fn insert<'a>(pcscd: &'a Pcscd, profile: &str) -> Card<'a> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.toml");
    std::fs::write(&file, profile).unwrap();
    Card::insert(pcscd, Slot::First, &[file])
}

#[test]
fn trouble() {
    let Some(pcscd) = Pcscd::start() else { return };
    pulled_out(&pcscd);
    removed_in_a_command(&pcscd);
    mute(&pcscd);
    garbage(&pcscd);
    a_wrong_status_word(&pcscd);
    onlookers(&pcscd);
    // After all of that the service is as good as new.
    let _card = Card::bench(&pcscd);
    let outcome = Tapstone::suite(COUNTS).args("--rounds 3").run().exits(0);
    assert_eq!(outcome.row().completed, 3);
}

/// The case of a run that ended early, with what it had until then.
#[track_caller]
fn partial(outcome: &crate::support::Outcome) -> CaseResult {
    let row = outcome.row();
    assert_eq!(row.status.outcome, Outcome::Partial, "{:?}", row.status);
    assert!(row.latency_ns.is_some() && row.latencies_ns.len() as u64 == row.completed);
    // What was kept is verified like the rest.
    let verification = row.verification.unwrap();
    assert_eq!((verification.checked, verification.wrong), (row.completed, 0));
    row
}

#[track_caller]
fn one_error(outcome: &crate::support::Outcome, words: &str) {
    let stderr = &outcome.stderr;
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
    assert!(stderr.contains(words), "{words}: {stderr}");
    assert!(stderr.contains("\nhint: "), "{stderr}");
}

fn pulled_out(pcscd: &Pcscd) {
    let mut card = insert(pcscd, &bench_profile(""));
    let run = Tapstone::suite(COUNTS).args("--rounds 100000").start();
    run.wait_until_it_measures();
    card.pull();
    let outcome = run.wait().exits(2);
    one_error(&outcome, "VERSION: SCardTransmit: SCARD_");
    let row = partial(&outcome);
    assert!(row.completed >= 2, "{}", row.completed);
    let code = row.status.code.unwrap();
    assert!(code.starts_with("SCARD_"), "{code}");
    assert!(outcome.stdout.contains("emulated: test"), "{}", outcome.stdout);
}

/// Those who look at a run see how far it is, and at last its record.
fn onlookers(pcscd: &Pcscd) {
    let _card = insert(pcscd, &bench_profile(""));
    let run = Tapstone::suite(COUNTS).args("--rounds 150 --live live").start();
    let told = run.live_lines();
    let outcome = run.wait().exits(0);
    let figures = told.iter().filter(|line| line.starts_with("{\"figures\":")).count();
    assert!(figures > 2, "{told:?}");
    assert!(told.last().unwrap().starts_with("{\"record\":"), "{told:?}");
    assert_eq!(outcome.row().completed, 150);
}

fn removed_in_a_command(pcscd: &Pcscd) {
    let fault = "\n[[fault]]\nkind = \"removed\"\nat = 40\nfrom = \"assumed\"\n";
    let _card = insert(pcscd, &bench_profile(fault));
    let outcome = Tapstone::suite(COUNTS).args("--rounds 100").run().exits(2);
    one_error(&outcome, "VERSION: SCardTransmit: SCARD_");
    let row = partial(&outcome);
    // Without the questions before: what the card plays, SELECT, and one operation as a trial.
    assert!((30..40).contains(&row.completed), "{}", row.completed);
    assert_eq!(row.failed.values().sum::<u64>(), 1, "{:?}", row.failed);
}

fn mute(pcscd: &Pcscd) {
    let fault = "\n[[fault]]\nkind = \"mute\"\nat = 60\n\
                 closes_after = { s = 6, from = \"assumed\" }\nfrom = \"assumed\"\n";
    let _card = insert(pcscd, &bench_profile(fault));
    let outcome = Tapstone::suite(COUNTS).args("--rounds 100 --timeout 1s").run().exits(2);
    one_error(&outcome, "no answer within 1s during SCardTransmit");
    let row = partial(&outcome);
    assert_eq!(row.status.step.as_deref(), Some("SCardTransmit"));
    assert_eq!(row.status.code.as_deref(), Some("timeout"));
    // Samples leave the worker every 50 ms, and a command takes 20.
    assert!((50..60).contains(&row.completed), "{}", row.completed);
}

fn garbage(pcscd: &Pcscd) {
    let _card = Played::garbage(pcscd, Says(&[0x90]));
    let outcome = Tapstone::suite(COUNTS).args("--rounds 3").run();
    insta::assert_snapshot!("garbage", outcome.refusal());
}

/// A command that fails once does not end the run, and is in no figure.
fn a_wrong_status_word(pcscd: &Pcscd) {
    let fault = "\n[[fault]]\nkind = \"wrong_status\"\nat = 20\nstatus = \"6F00\"\n\
                 from = \"assumed\"\n";
    let _card = insert(pcscd, &bench_profile(fault));
    let outcome = Tapstone::suite(COUNTS).args("--rounds 30").run().exits(2);
    let row = partial(&outcome);
    assert_eq!(row.completed, 29);
    assert_eq!(row.failed.get("6F00"), Some(&1), "{:?}", row.failed);
    assert!(outcome.stdout.contains("6F00"), "{}", outcome.stdout);
}
