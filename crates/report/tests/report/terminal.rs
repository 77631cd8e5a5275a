//! Terminal text as people see it, at the widths of their terminals.

use tapstone_record::{Fraction, LevelRate, Phase, Record, TargetKind};
use tapstone_report::terminal::{Style, render};

use crate::support;

const NARROW: Style = Style { width: 80, colour: false, unicode: true, verbose: false };
const WIDE: Style = Style { width: 120, ..NARROW };

fn text(record: &Record, style: Style) -> String {
    let text = render(record, &style);
    assert!(!text.contains("471147"), "the command line stays in the record");
    text
}

#[test]
fn a_suite() {
    insta::assert_snapshot!("suite_80", text(&support::suite(), NARROW));
    insta::assert_snapshot!("suite_120", text(&support::suite(), WIDE));
}

#[test]
fn a_suite_in_colour() {
    let coloured = text(&support::suite(), Style { colour: true, ..WIDE });
    insta::assert_snapshot!("suite_120_colour", coloured.replace('\x1b', "^"));
}

#[test]
fn colour_says_nothing_that_words_do_not() {
    for record in [support::suite(), support::knee(), support::single()] {
        let mut coloured = text(&record, Style { colour: true, ..NARROW });
        while let Some(start) = coloured.find('\x1b') {
            let end = coloured[start..].find('m').unwrap() + start;
            coloured.replace_range(start..=end, "");
        }
        assert_eq!(coloured, text(&record, NARROW));
    }
}

#[test]
fn a_single_row_in_full() {
    insta::assert_snapshot!("single_80", text(&support::single(), NARROW));
    insta::assert_snapshot!("single_120", text(&support::single(), WIDE));
}

#[test]
fn hosts_with_what_became_of_them() {
    insta::assert_snapshot!("hosts_80", text(&support::hosts(), NARROW));
    insta::assert_snapshot!("hosts_120", text(&support::hosts(), WIDE));
}

#[test]
fn an_open_loop_on_an_emulated_token() {
    insta::assert_snapshot!("open_loop_80", text(&support::open_loop(), NARROW));
}

#[test]
fn a_mix_with_its_components_below_it() {
    insta::assert_snapshot!("mix_80", text(&support::mix(), NARROW));
}

#[test]
fn a_knee_and_claims() {
    insta::assert_snapshot!("knee_80", text(&support::knee(), NARROW));
    insta::assert_snapshot!("knee_120", text(&support::knee(), WIDE));
}

/// As an interrupted search leaves it, today and before the ends could be null.
#[test]
fn a_level_of_one_pass_has_no_interval() {
    let before = LevelRate { estimate: 1_699.0, low: Some(0.0), high: Some(f64::MAX) };
    for rate in [LevelRate::of_one_pass(1_699.0), before] {
        let mut record = support::knee();
        let last = record.knee.as_mut().unwrap().levels.last_mut().unwrap();
        last.rate = rate;
        last.passes = 1;
        let read = Record::from_json(&record.to_json().unwrap(), "knee.json").unwrap();
        assert_eq!(read, record);
        let shown = text(&record, NARROW);
        assert!(shown.contains("not known: one pass"), "{shown}");
        assert!(!shown.contains("18,446"), "{shown}");
        assert!(!crate::page::page("a", &record, None).contains("18,446"));
    }
}

#[test]
fn verbose_shows_every_row_in_full() {
    let verbose = text(&support::mix(), Style { verbose: true, ..NARROW });
    assert_eq!(verbose.matches("95 % interval").count(), 4);
}

#[test]
fn plain_ascii_for_a_terminal_that_knows_no_more() {
    let plain = text(&support::single(), Style { unicode: false, ..NARROW });
    assert!(plain.is_ascii());
    insta::assert_snapshot!("single_80_ascii", plain);
}

/// It is a part of several steps; the steps have a table of their own.
#[test]
fn the_hosts_share_at_a_door_has_a_row_of_its_own() {
    let mut record = support::suite();
    record.target.kind = TargetKind::Door;
    let mut whole = support::row("door.pki-cak", 0, 1.0, 1e9);
    whole.phases = vec![Phase::new("select".to_owned(), 1e7, Fraction(0.01))];
    let others = ["select", "host", "host [known-card]"];
    let others = others.map(|name| support::row(&format!("door.pki-cak.{name}"), 0, 1e3, 1e6));
    record.results = [vec![whole], others.to_vec()].concat();
    let shown = text(&record, WIDE);
    assert!(shown.contains("\n  door.pki-cak.host  "), "{shown}");
    assert!(shown.contains("\n  door.pki-cak.host [known-card]  "), "{shown}");
    assert!(!shown.contains("door.pki-cak.select"), "{shown}");
}

#[test]
fn hostile_labels_do_not_act() {
    let text = text(&support::hostile(), NARROW);
    let harmless = |c: char| c == '\n' || !c.is_control();
    assert!(text.chars().all(harmless) && !text.contains(['\u{202e}', '\u{200b}']));
    insta::assert_snapshot!("hostile_80", text);
}
