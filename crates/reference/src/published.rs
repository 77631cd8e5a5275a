//! Every file is read and shown, and the arithmetic of each source comes to what the source says.

use tapstone_record::{Provenance, Seconds};

use super::*;

/// Rounded to so many decimals.
fn rounded(value: f64, decimals: i32) -> f64 {
    (value * 10f64.powi(decimals)).round() / 10f64.powi(decimals)
}

fn least_and_most(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().reduce(f64::min).unwrap();
    let most = values.iter().copied().reduce(f64::max).unwrap();
    (least, most)
}

#[test]
fn every_name_loads_and_says_where_it_is_from() {
    for name in names() {
        let reference = load(name).unwrap();
        assert_eq!(reference.name, name);
        assert_eq!(reference.provenance, Provenance::Published);
        assert!(!reference.source.is_empty());
    }
}

#[test]
fn every_reference_can_be_compared_with_and_concludes_something() {
    for name in names() {
        let reference = load(name).unwrap();
        let figures: Vec<PublishedFigure> =
            reference.items().into_iter().flat_map(|item| item.figures).collect();
        assert!(!figures.is_empty() && !reference.conclusions().is_empty(), "{name}");
        for figure in figures {
            assert!(figure.value.in_unit_of_quantity() > 0.0, "{name}: {figure:?}");
            assert_ne!(figure.provenance, Provenance::Measured);
        }
    }
}

#[test]
fn an_unknown_name_is_told_the_known_ones() {
    let text = load("hsm-slow").unwrap_err().to_string();
    assert!(text.contains("\"hsm-slow\""), "{text}");
    assert!(text.ends_with(&format!("hint: known references are {}", names().join(", "))));
}

#[test]
fn every_file_of_the_folder_is_a_reference() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../reference");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .unwrap()
                .strip_suffix(".toml")
                .map(str::to_owned)
        })
        .collect();
    files.sort();
    assert_eq!(files, names());
}

/// hsm-speed: the conclusions follow from the figures.
#[test]
fn three_cards_keep_the_promise_of_the_data_sheet() {
    let hsm = load("hsm-speed").unwrap();
    let number = |expression| hsm.number(expression).unwrap();
    let claimed = number("sca6000.claim.per_second / sca6000.claim.cards");
    let many = number("sca6000.one_card_many_threads_per_second");
    assert!(many >= claimed, "a card keeps its data sheet's promise");
    assert!(number("sca6000.three_cards_per_second / 3") >= claimed, "and so does each of three");

    let seconds = number("sca6000.records.count / sca6000.three_cards_per_second");
    assert!(seconds < 60.0 * number("sca6000.records.minutes_less_than"));
    assert_eq!(seconds.round(), 178.0);

    let speedup = many / number("sca6000.one_thread_per_second");
    assert_eq!(speedup, 8.25, "one thread waits, and leaves the card idle");
}

/// jcop-cards: the numbers of the three JCOP41 cards in the file; JCOP31 is number 3.
const JCOP41: [usize; 3] = [0, 1, 2];

fn ratios(card: usize, to: usize) -> Vec<f64> {
    let expression = format!("card.{card}.seconds.* / card.{to}.seconds.*");
    load("jcop-cards").unwrap().numbers(&expression).unwrap()
}

#[test]
fn the_file_of_jcop_cards_has_three_jcop41_and_one_jcop31() {
    let names: Vec<String> =
        load("jcop-cards").unwrap().items().into_iter().map(|item| item.name).collect();
    assert_eq!(names.len(), 4);
    assert_eq!(names[0], "NXP JCOP41 v2.2/72k");
    assert!(JCOP41.into_iter().all(|card| names[card].contains("JCOP41")));
    assert_eq!(names[3], "NXP JCOP31 v2.2");
}

#[test]
fn revisions_of_one_chip_differ_more_than_the_post_says() {
    let (least, most) = least_and_most(&[ratios(1, 0), ratios(2, 0)].concat());
    assert_eq!((rounded(least, 2), rounded(most, 2)), (1.03, 3.28), "post: 1.5-2");
}

#[test]
fn jcop31_is_slower_by_more_than_the_post_says() {
    let (least, most) = least_and_most(&ratios(3, 0));
    assert_eq!((rounded(least, 1), rounded(most, 1)), (2.0, 10.7), "post: 2-4");
}

#[test]
fn rsa_against_3des_at_the_long_size() {
    let cards = load("jcop-cards").unwrap();
    let ratio = |card: usize| {
        let seconds = format!("card.{card}.seconds.devchip_decrypt");
        cards.number(&format!("{seconds}_rsa_long / {seconds}_3des_long")).unwrap()
    };
    let (least, most) = least_and_most(&JCOP41.map(ratio));
    assert_eq!((rounded(least, 1), rounded(most, 1)), (4.9, 9.2), "post: 4-8");
    assert_eq!(rounded(ratio(3), 1), 3.1, "post: 3");
}

/// The post's own order: what is called v2.2 is the fastest in every operation.
#[test]
fn the_first_card_is_the_fastest_in_everything() {
    for card in 1..4 {
        let ratios = ratios(card, 0);
        assert_eq!(ratios.len(), 11);
        assert!(ratios.into_iter().all(|ratio| ratio > 1.0), "card {card}");
    }
}

/// pcsc-lite: from the rounded means, within three percent.
#[test]
fn the_speedup_of_the_call_follows_from_the_rounded_means() {
    let pcsc = load("pcsc-lite").unwrap();
    let says = pcsc.number("end_transaction.speedup").unwrap();
    let computed =
        pcsc.number("end_transaction.before_mean_s / end_transaction.after_mean_s").unwrap();
    assert_eq!(says, 647.0);
    assert_eq!(computed.round(), 632.0);
    assert!((computed / says - 1.0).abs() < 0.03);
}

#[test]
fn the_speedup_of_whole_programs_is_the_sources() {
    let pcsc = load("pcsc-lite").unwrap();
    for (card, says) in [("gpk8000", 1.02), ("yubikey5", 3.26)] {
        let number = |expression: String| pcsc.number(&expression).unwrap();
        assert_eq!(number(format!("list_objects.{card}.speedup")), says);
        let computed =
            number(format!("list_objects.{card}.before_s / list_objects.{card}.after_s"));
        assert_eq!(rounded(computed, 2), says);
    }
}

#[test]
fn a_round_of_a_program_is_a_part_of_its_loop() {
    let items = load("pcsc-lite").unwrap().items();
    let value = |item: usize, figure: usize| items[item].figures[figure].value;
    assert_eq!(value(0, 1), PublishedValue::WallSeconds(Seconds(2.334)));
    assert_eq!(value(1, 2), PublishedValue::WallSeconds(Seconds(0.0302)));
    assert_eq!(items[1].figures[2].provenance, Provenance::Derived);
}

/// piv-door.
#[test]
fn the_parts_add_up_to_the_whole() {
    let door = load("piv-door").unwrap();
    let sums = ["rsa2048.transfer_ms.*", "rsa2048.processing_ms.*", "rsa2048.*.*"]
        .map(|parts| door.number(&format!("sum({parts})")).unwrap());
    assert_eq!(sums, [1011.0, 2667.0, 3678.0]);
    let with_self_check =
        door.number("sum(rsa2048.*.*) + extra_ms.card_crypto_self_check").unwrap();
    assert_eq!((with_self_check / 1e3).round(), 4.0, "the source: about 4 s");
}

#[test]
fn four_contact_cards_exceed_the_fastest_as_the_source_says() {
    let door = load("piv-door").unwrap();
    assert_eq!(door.number("min(contact_cards_ms.*)").unwrap(), 1291.0);
    let excess = door.numbers("100 * (contact_cards_ms.* / contact_cards_ms.card_1 - 1)").unwrap();
    let percent: Vec<f64> = excess.into_iter().map(f64::round).collect();
    assert_eq!(percent, [0.0, 94.0, 54.0, 66.0, 66.0]);
}

#[test]
fn the_projections_follow_from_one_another() {
    let door = load("piv-door").unwrap();
    let number = |expression| door.number(expression).unwrap();
    let kept = number("sum(rsa2048.*.*) - what_if_ms.ecc_saving");
    let expected = number("what_if_ms.ecc_total_expected");
    assert!((kept - expected).abs() < 350.0, "{kept}: about 2900 ms");
    let left = expected
        - number("what_if_ms.authentication_in_controller_saving")
        - number("what_if_ms.still_to_find");
    assert_eq!(left, number("target_ms.transaction_max"));
}

/// ppp-protocol-lookup.
#[test]
fn the_overhead_saved_is_user_and_system_time_together_and_nothing_else() {
    let ppp = load("ppp-protocol-lookup").unwrap();
    let number = |expression: &str| ppp.number(expression).unwrap();
    assert_eq!(number("transfer.before.wall"), 120.31);
    assert_eq!(number("transfer.after.wall"), 86.06);
    assert_eq!(number("transfer.claims.overall_overhead_saved_percent"), 38.0);
    // In tenths of a percent.
    let permille = |part: f64| (1000.0 * part).round();
    let processor = number(
        "1 - (transfer.after.user_s + transfer.after.system_s) \
           / (transfer.before.user_s + transfer.before.system_s)",
    );
    assert_eq!(permille(processor), 377.0, "5.226 to 3.255 s");
    let others = ["user_s", "system_s", "wall", "cpu_percent"]
        .map(|part| number(&format!("1 - transfer.after.{part} / transfer.before.{part}")));
    assert_eq!(others.map(permille), [262.0, 512.0, 285.0, 140.0]);
    let claimed = |part: f64| (100.0 * part).round() == 38.0;
    assert!(claimed(processor) && !others.into_iter().any(claimed));
}

#[test]
fn the_conclusions_say_which_figures_give_it() {
    let conclusions = load("ppp-protocol-lookup").unwrap().conclusions();
    let overall = conclusions.iter().find(|it| it.says == "38 % less").unwrap();
    assert!(overall.computed.starts_with("37.7 % less user and system time together"));
}
