//! What is granted and what is refused, and what is left of it in the record.

use tapstone_record::{Outcome, Provenance, TargetKind};

use crate::people::{Holder, row};
use crate::support::Pcscd;

const STRATEGIES: [&str; 4] = ["no-chuid", "known-card", "overlap", "background-validation"];
const STEPS: [&str; 5] = ["select", "read-certificate", "validate", "challenge", "read-chuid"];

#[test]
fn a_card_is_measured_in_all_strategies() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let _card = holder.insert_fast(&pcscd);
    granted(&holder);
    refused(&holder);
    other_forms(&holder);
    other_mechanisms(&holder);
}

fn granted(holder: &Holder) {
    let outcome = holder.measure().args("--rounds 4 --module-time 30ms").run().exits(0);
    let record = outcome.record();
    assert_eq!(record.target.kind, TargetKind::Door);
    let mut names = vec!["door.pki-cak".to_owned()];
    names.extend(STRATEGIES.iter().map(|name| format!("door.pki-cak [{name}]")));
    names.extend(STEPS.iter().map(|name| format!("door.pki-cak.{name}")));
    names.push("door.pki-cak.host".to_owned());
    names.extend(STRATEGIES.iter().map(|name| format!("door.pki-cak.host [{name}]")));
    let found: Vec<_> = record.results.iter().map(|row| row.operation.clone()).collect();
    assert_eq!(found, names);
    for row in &record.results {
        assert_eq!((row.status.outcome, row.completed), (Outcome::Ok, 4), "{}", row.operation);
        assert_eq!(row.provenance, Provenance::Emulated);
        assert_eq!((row.latencies_ns.len(), row.seed), (4, Some(1)), "{}", row.operation);
    }
    let whole = row(&record, "door.pki-cak");
    let phases: Vec<_> = whole.phases.iter().map(|phase| phase.call.as_str()).collect();
    assert_eq!(phases, STEPS);
    for phase in &whole.phases {
        assert!(phase.p50_ns.unwrap() > 0.0 && phase.p95_ns >= phase.p50_ns, "{}", phase.call);
    }
    // The steps lie one after the other, and little is between them.
    let shares: f64 = whole.phases.iter().map(|phase| phase.share.0).sum();
    assert!((0.9..=1.000_1).contains(&shares), "{shares}");
    // The module's time is waited in full by the baseline, and is not the host's own.
    let validate = row(&record, "door.pki-cak.validate");
    assert!(validate.latencies_ns.iter().all(|time| time.0 >= 30_000_000));
    assert!(record.warnings.iter().any(|text| text.contains("another module, replayed")));
    let tried: Vec<_> = record.trials.iter().map(|trial| trial.fix.as_str()).collect();
    assert_eq!(tried, STRATEGIES);
    for trial in &record.trials {
        assert!(trial.predicted.is_some() && trial.rounds == 4, "{}", trial.fix);
        assert_eq!(trial.seed, Some(1));
    }
    let signing: Vec<_> = record
        .apdus
        .iter()
        .filter(|apdu| apdu.header.starts_with("0087"))
        .map(|apdu| (apdu.header.as_str(), apdu.status["9000"]))
        .collect();
    // Five ways in four rounds; the preparation of a known card is not among them.
    assert_eq!(signing, [("0087119E", 20)]);
    for text in ["steps · door.pki-cak", "strategies", "median", "p95", "share", "predicted"] {
        assert!(outcome.stdout.contains(text), "{text}: {}", outcome.stdout);
    }
    // The host's share has rows of its own.
    for text in ["  door.pki-cak.host  ", "  door.pki-cak.host [known-card]  "] {
        assert!(outcome.stdout.contains(text), "{text}: {}", outcome.stdout);
    }
    assert_eq!(outcome.stderr.matches("granted to ").count(), 5, "{}", outcome.stderr);
}

fn refused(holder: &Holder) {
    let other = Holder::new();
    for (run, code) in [
        (holder.measure().args("--at 2020-01-01T00:00:00Z"), "not-yet-valid"),
        (holder.measure().args("--at 2060-01-01T00:00:00Z"), "expired"),
        (crate::people::measure(&other.ca()), "untrusted"),
        (holder.measure().args("--policy 2.16.840.1.101.3.2.1.3.6"), "policy"),
    ] {
        let outcome = run.args("--rounds 2").run().exits(1);
        let record = outcome.record();
        assert_eq!(record.results.len(), 5, "no steps of nothing");
        for row in &record.results {
            assert_eq!((row.status.outcome, row.completed), (Outcome::Failed, 0));
            assert_eq!(row.status.code.as_deref(), Some(&*format!("refused: {code}")));
        }
        assert!(record.warnings.iter().any(|text| text.contains("refused: ")));
        assert_eq!(outcome.stderr.matches("refused: ").count(), 5, "{}", outcome.stderr);
    }
    // The policies that it was issued under, one of which is for tests.
    for policy in ["", "2.16.840.1.101.3.2.1.48.13", "any", "usual"] {
        let run = holder.measure().args("--rounds 1 --strategy plain --policy").args(policy);
        run.run().exits(0);
    }
}

fn other_forms(holder: &Holder) {
    let plain = || holder.measure().args("--rounds 2 --strategy plain --quiet").without_record();
    let json = plain().args("--format json").run().exits(0).stdout;
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["results"][0]["operation"], "door.pki-cak");
    assert!(value["results"][0]["phases"][0]["p95_ns"].is_number());
    let csv = plain().args("--format csv").run().exits(0).stdout;
    assert!(csv.contains("\ndoor.pki-cak.read-certificate,"), "{csv}");
}

fn other_mechanisms(holder: &Holder) {
    let outcome = holder.measure().args("--mechanism chuid --rounds 2").run().exits(0);
    let record = outcome.record();
    assert_eq!(row(&record, "door.chuid").completed, 2);
    assert!(record.apdus.iter().all(|apdu| !apdu.header.starts_with("0087")));
}
