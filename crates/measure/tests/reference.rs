//! The published figures of `reference/hsm-speed.toml`, judged by the code that judges a run.

use serde::Deserialize;
use tapstone_measure::claim::{Claim, ClaimVerdict, Demand, KeyBits};
use tapstone_measure::units::PerSecond;

#[derive(Deserialize)]
struct Reference {
    sca6000: Card,
}

#[derive(Deserialize)]
struct Card {
    claim: Published,
    one_card_many_threads_per_second: f64,
    three_cards_per_second: f64,
    records: Records,
}

#[derive(Deserialize)]
struct Published {
    key_bits: u32,
    per_second: f64,
}

#[derive(Deserialize)]
struct Records {
    count: f64,
    minutes_less_than: f64,
}

fn card() -> Card {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../reference/hsm-speed.toml");
    let text = std::fs::read_to_string(path).expect(path);
    toml::from_str::<Reference>(&text).expect(path).sca6000
}

#[test]
fn one_card_meets_its_claim_in_either_unit() {
    let card = card();
    let claims = [
        format!("rsa1024.sign >= {}/s", card.claim.per_second),
        format!("rsa1024.sign >= {} exponentiations/s", card.claim.per_second * 512.0),
    ];
    for claim in claims {
        let claim: Claim = claim.parse().expect("the published claim");
        let target = claim.target(Some(KeyBits(card.claim.key_bits))).expect("an RSA key");
        let judged = target.demand.judge_point(card.one_card_many_threads_per_second);
        assert_eq!(judged.verdict, ClaimVerdict::Met);
        assert_eq!(
            judged.text,
            "met, judged as a point: 13,200/s is 101.5 % of the claimed 13,000/s"
        );
    }
}

#[test]
fn three_cards_are_measured_against_three_claims_and_three_single_cards() {
    let card = card();
    let judged = |single: f64| {
        Demand::Rate(PerSecond(3.0 * single)).judge_point(card.three_cards_per_second)
    };
    let claims = judged(card.claim.per_second);
    assert_eq!(claims.verdict, ClaimVerdict::Met);
    assert!(claims.text.contains("39,353/s is 100.9 % of"), "{}", claims.text);
    let singles = judged(card.one_card_many_threads_per_second);
    assert_eq!(singles.verdict, ClaimVerdict::Missed);
    assert!(singles.text.contains("39,353/s is 99.4 % of"), "{}", singles.text);
}

#[test]
fn seven_million_signatures_take_under_three_minutes() {
    let card = card();
    let needed = PerSecond(card.records.count / (60.0 * card.records.minutes_less_than));
    let judged = Demand::Rate(needed).judge_point(card.three_cards_per_second);
    assert_eq!(judged.verdict, ClaimVerdict::Met, "{}", judged.text);
}
