//! Cases measured in rounds, and what a comparison of two such runs knows.

use std::process::Command;

use tapstone_record::Variation;

use crate::support::{Outcome, Tapstone};

fn measured(rounds: &str) -> Outcome {
    let run = Tapstone::on(&[("SERVICE", "2ms"), ("WAIT", "sleep")]).args("--no-verify");
    run.args("--op rsa1024.sign --seconds 0.1 --precision 50%").args(rounds).run().exits(0)
}

#[test]
fn intervals_hold_what_differs_between_rounds() {
    let case = measured("--rounds 6").row();
    let interval = case.interval.as_ref().unwrap();
    assert_eq!((interval.n, interval.variation), (6, Some(Variation::Rounds)), "{interval:?}");
    assert!(interval.method.contains("6 rounds"), "{interval:?}");
    let rate = case.throughput.unwrap();
    // One operation more or less in a tenth of a second is what a round can tell apart.
    assert!(rate.high - rate.low >= 20.0 - 1e-6, "{rate:?}");
    assert!(case.latency_ns.unwrap().mean.is_some());
    let once = measured("");
    assert_eq!(once.row().interval.unwrap().variation, Some(Variation::Window));
}

#[test]
fn a_comparison_says_which_variation_its_intervals_hold() {
    let [one, other, single] = ["--rounds 5", "--rounds 5", ""].map(measured);
    let compared = |baseline: &Outcome, candidate: &Outcome| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        command.arg("compare").args([baseline.record_path(), candidate.record_path()]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let rounds = compared(&one, &other);
    assert!(rounds.contains("hold the variation between rounds"), "{rounds}");
    let window = compared(&single, &other);
    assert!(window.contains("what differs from run to run is not in them"), "{window}");
}

#[test]
fn a_search_without_a_claim_has_nothing_to_repeat() {
    let run = Tapstone::on(&[]).args("--op rsa1024.sign --find-limit --rounds 5");
    let stderr = run.without_record().run().exits(2).stderr;
    assert!(stderr.contains("--rounds") && stderr.contains("hint: "), "{stderr}");
}
