//! Records for other programs. Whether their parsers take it is held in the command's own tests.

use tapstone_record::{
    Behaviour, Concurrency, Fraction, Provenance, Quantity, Record, Side, SideBySide,
    SideBySideCase,
};
use tapstone_report::terminal::{Style, render};
use tapstone_report::{github, junit, markdown, openmetrics};

use crate::support;

const TOKEN: &str = include_str!("../../../record/tests/examples/token.json");
const DOOR: &str = include_str!("../../../record/tests/examples/door.json");
const TRACE: &str = include_str!("../../../record/tests/examples/trace.json");
const COMPARISON: &str = include_str!("../../../record/tests/examples/comparison.json");

fn example(text: &str) -> Record {
    Record::from_json(text, "example.json").unwrap()
}

#[test]
fn a_record_in_each_format() {
    let token = example(TOKEN);
    let comparison = example(COMPARISON);
    let records = [&token, &comparison];
    insta::assert_snapshot!("format_markdown", markdown::render(&records));
    insta::assert_snapshot!("format_junit", junit::render(&records));
    insta::assert_snapshot!("format_github", github::render(&records));
    insta::assert_snapshot!("format_openmetrics", openmetrics::render(&records));
}

/// A figure that somebody published is not taken for one that was measured, whoever reads it.
#[test]
fn published_figures_are_marked_in_tables_and_on_the_page() {
    let mut record = example(TOKEN);
    assert!(!crate::page::page("a", &record, None).contains(">published<"));
    for case in &mut record.results {
        case.provenance = Provenance::Published;
    }
    let text = markdown::render(&[&record]);
    assert_eq!(text.matches(" (published)").count(), record.results.len(), "{text}");
    // Among the answers, and above the figures.
    let page = crate::page::page("a", &record, None);
    assert_eq!(page.matches(">published<").count(), 2, "{page}");
}

#[test]
fn a_device_beside_others_is_marked_where_its_figures_were_published() {
    let mut record = example(TOKEN);
    let side = |name: &str| Side {
        name: name.into(),
        source: format!("{name}.json"),
        sha256: None,
        emulated: None,
        made_by: None,
    };
    let row = SideBySideCase {
        operation: "rsa2048.sign".into(),
        message_bytes: None,
        concurrency: Concurrency::ONE,
        quantity: Quantity::Latency,
        figures: vec![Some(support::around(1e6, 0.01)); 3],
        excess: vec![Some(Fraction(0.0)); 3],
        provenance: vec![Some(Provenance::Measured), Some(Provenance::Published), None],
    };
    let sides = ["mine", "theirs", "old"].map(side).to_vec();
    record.side_by_side = Some(SideBySide { sides, cases: vec![row] });
    let style = Style { width: 100, unicode: true, colour: false, verbose: false };
    let shown = render(&record, &style);
    for line in ["A  mine · mine.json", "B  theirs · published · theirs.json", "C  old · old.json"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let markdown = markdown::render(&[&record]);
    let row =
        "| rsa2048.sign | 1.00 ms (± 1.0 %) | 1.00 ms (± 1.0 %) (published) | 1.00 ms (± 1.0 %) |";
    for line in ["| Operation | mine | theirs | old |", row] {
        assert!(markdown.contains(line), "{line}: {markdown}");
    }
}

/// What makes the command's exit code is a test case and an annotation too.
#[test]
fn what_a_record_answers_is_judged_in_each_format() {
    let mut door = example(DOOR);
    let queue = door.queue.as_mut().unwrap();
    queue.overloaded = true;
    let what_if = door.what_if.as_mut().unwrap();
    what_if.sets.clear();
    let mut trace = example(TRACE);
    let trial = trace.trials.first_mut().unwrap();
    trial.behaviour = Behaviour::Differs;
    let fix = trial.fix.clone();
    let records = [&door, &trace];
    let junit = junit::render(&records);
    let github = github::render(&records);
    for (kind, said) in [
        ("what-if", "No set of changes reaches"),
        ("queue", "people an hour"),
        ("trial", "the program did something else"),
    ] {
        let case = junit.lines().find(|line| line.contains(&format!("classname=\"{kind}\"")));
        let case = case.unwrap_or_else(|| panic!("{kind}: {junit}"));
        assert!(case.contains("<failure") && case.contains(said), "{case}");
        let mut told = github.lines().filter(|line| line.starts_with("::error "));
        assert!(told.any(|line| line.contains(said)), "{said}: {github}");
    }
    assert!(junit.contains("classname=\"budget\""), "{junit}");
    assert!(junit.contains(&format!("name=\"{fix}\"")), "{junit}");
}

#[test]
fn a_hostile_record_stays_text_in_each_format() {
    let mut record = support::hostile();
    let evil = "</testcase>\"]]>\n::error::x\n# EOF\n|<img>\u{202e}\u{ffff}";
    record.target.tokens[0].label = evil.into();
    record.warnings = vec![evil.into()];
    let records = [&record];
    let all = [
        markdown::render(&records),
        junit::render(&records),
        github::render(&records),
        openmetrics::render(&records),
    ];
    for text in &all {
        assert!(!text.contains(['\u{202e}', '\x1b', '\u{9b}']), "{text}");
    }
    let [markdown, junit, github, metrics] = &all;
    // In the other two it is no more than text.
    assert!(!markdown.contains("<img>") && !junit.contains("<img>"), "{markdown}{junit}");
    // XML has no way to write it.
    assert!(!junit.contains('\u{ffff}'), "{junit}");
    assert_eq!(junit.matches("</testsuite>").count(), 1);
    assert!(github.lines().all(|line| line.starts_with("::")), "{github}");
    assert!(!github.lines().any(|line| line.starts_with("::error::x")), "{github}");
    assert_eq!(metrics.lines().filter(|line| *line == "# EOF").count(), 1);
}
