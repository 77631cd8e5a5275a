//! Comparisons on a terminal and as CSV.

use tapstone_record::*;
use tapstone_report::comparison_csv;
use tapstone_report::terminal::{Style, render, render_reference};

use crate::support::{around, record};

const STYLE: Style = Style { width: 100, colour: false, unicode: true, verbose: false };

fn row(operation: &str, quantity: Quantity, baseline: f64, candidate: f64) -> ComparedCase {
    let ratio = around(candidate / baseline, 0.02);
    let verdict = match (quantity, ratio.low > 1.0, ratio.high < 1.0) {
        (_, false, false) => Change::Inconclusive,
        (Quantity::Throughput, true, _) | (Quantity::Latency, _, true) => Change::Faster,
        _ => Change::Slower,
    };
    ComparedCase {
        operation: operation.into(),
        item: None,
        message_bytes: Some(32),
        concurrency: Some(Concurrency::ONE),
        quantity,
        baseline: around(baseline, 0.01),
        baseline_provenance: Some(Provenance::Measured),
        candidate: around(candidate, 0.01),
        candidate_provenance: Some(Provenance::Measured),
        ratio,
        rounds: None,
        variation: Some(Variation::Window),
        verdict,
        threshold: None,
        more_samples: None,
        no_number: None,
    }
}

fn side(name: &str, source: &str) -> Side {
    Side { name: name.into(), source: source.into(), sha256: None, emulated: None, made_by: None }
}

fn with(comparison: Comparison) -> Record {
    let mut record = record();
    record.comparison = Some(comparison);
    record
}

fn two_records() -> Record {
    let mut slower = row("rsa2048.sign", Quantity::Throughput, 800.0, 700.0);
    slower.threshold = Some(Judgement::Exceeded);
    let mut open = row("ecdsa-p256.sign", Quantity::Latency, 1.0e6, 1.01e6);
    open.threshold = Some(Judgement::Undecided);
    open.more_samples = Some(12_345);
    let mut faster = row("sha256.digest", Quantity::Throughput, 1000.0, 2000.0);
    faster.threshold = Some(Judgement::Held);
    with(Comparison {
        pairing: Pairing::Records,
        baseline: side("hsm-a", "old.json"),
        candidate: side("hsm-a", "new.json"),
        cases: vec![slower, open, faster],
        calls: Vec::new(),
        threshold: Some(Threshold { fail_above: Fraction(0.05), exceeded: true }),
        only_in_baseline: vec!["aes256-gcm.encrypt".into()],
        not_compared: Vec::new(),
        only_in_candidate: vec![],
        warnings: vec!["the kernel differs: 6.11 and 6.12".into()],
    })
}

/// A measured card beside four published ones, with names that would act on a terminal.
fn cards() -> Record {
    let mut rows = Vec::new();
    for (operation, measured) in [("card.simple_apdu", 28.0e6), ("card.vm_perf", 1.85e9)] {
        let published = [0.18, 0.22, 0.36, 1.0].map(|part| measured * part);
        for (card, published) in
            ["JCOP41", "JCOP41 b", "\u{1b}[2Jsim", "<b>JCOP31"].iter().zip(published)
        {
            let mut row = row(operation, Quantity::Latency, published, measured);
            row.item = Some((*card).into());
            row.baseline_provenance = Some(Provenance::Published);
            row.candidate_provenance = Some(Provenance::Emulated);
            rows.push(row);
        }
    }
    let mut candidate = side("my \u{202e}card", "card.json");
    candidate.emulated = Some("jcop31\u{7}".into());
    let mut record = with(Comparison {
        pairing: Pairing::Published,
        baseline: side("jcop-cards", "a blog post"),
        candidate,
        cases: rows,
        calls: Vec::new(),
        threshold: None,
        only_in_baseline: (0..12).map(|number| format!("card.other_{number}")).collect(),
        not_compared: Vec::new(),
        only_in_candidate: vec!["card.\u{1b}]0;title\u{7}".into()],
        warnings: vec!["a \r\nwarning \u{9b}31m".into()],
    });
    record.target.emulated = Some(Emulated { profile: "jcop31".into(), sha256: "00".repeat(32) });
    record
}

/// Two commands in turns, with the rows of each side that `tapstone ab` also writes.
fn in_turns(rounds: u32) -> Record {
    let row = |operation: &str, quantity, baseline: f64, candidate: f64, arm: f64| {
        let ratio = around(candidate / baseline, arm);
        let verdict = match ratio {
            _ if rounds < 20 => Change::Inconclusive,
            ratio if ratio.low > 1.0 => Change::Slower,
            ratio if ratio.high < 1.0 => Change::Faster,
            _ => Change::Inconclusive,
        };
        ComparedCase {
            message_bytes: None,
            concurrency: None,
            ratio,
            verdict,
            rounds: Some(rounds),
            variation: Some(Variation::Rounds),
            more_samples: (verdict == Change::Inconclusive).then_some(42),
            no_number: None,
            ..row(operation, quantity, baseline, candidate)
        }
    };
    let mut rows = vec![
        row("command.wall", Quantity::WallTime, 1.204e9, 6.52e8, 0.07),
        row("command.cpu", Quantity::CpuTime, 5.8e8, 3.32e8, 0.04),
        row("command.user", Quantity::CpuTime, 5.41e8, 2.98e8, 0.05),
        row("command.system", Quantity::CpuTime, 3.84e7, 3.4e7, 0.32),
    ];
    rows[0].threshold = Some(if rounds < 20 { Judgement::Undecided } else { Judgement::Held });
    rows[0].baseline = around(1.204e9, 0.2);
    let results = rows.iter().flat_map(|row| {
        ["baseline", "candidate"].map(|side| {
            let name = format!("{}[{side}]", row.operation);
            let mut row = CaseResult::new(name, Status::OK, Concurrency::ONE, Load::CLOSED);
            row.latency_ns = Some(Latency { mean: Some(around(1e9, 0.1)), ..Latency::default() });
            row
        })
    });
    let results = results.collect();
    let mut record = with(Comparison {
        pairing: Pairing::Interleaved,
        baseline: side("old", "sha256sum file"),
        candidate: side("new", "openssl dgst -sha256 file"),
        cases: rows,
        calls: Vec::new(),
        threshold: Some(Threshold { fail_above: Fraction(0.05), exceeded: false }),
        only_in_baseline: vec![],
        not_compared: Vec::new(),
        only_in_candidate: vec![],
        warnings: vec![],
    });
    record.results = results;
    record.target = Target::new(TargetKind::Command);
    record.target.program =
        Some(Program { path: "/usr/bin/openssl".into(), sha256: "00".repeat(32) });
    record
}

#[test]
fn two_commands_in_turns() {
    insta::assert_snapshot!("comparison_in_turns", render(&in_turns(20), &STYLE));
    let narrow = Style { width: 70, unicode: false, ..STYLE };
    insta::assert_snapshot!("comparison_in_turns_narrow", render(&in_turns(12), &narrow));
    let all = render(&in_turns(20), &Style { verbose: true, ..STYLE });
    assert!(all.contains("command.wall[candidate]"), "shown when asked for: {all}");
    let csv = comparison_csv::render(in_turns(20).comparison.as_ref().unwrap()).unwrap();
    assert!(
        csv.contains("command.cpu,,,,,,cpu-time,") && csv.contains(",20,,between rounds\n"),
        "{csv}"
    );
}

/// One row has one ratio: the chart shows that of the table, for rates as for times.
#[test]
fn the_chart_shows_the_ratio_of_the_table() {
    let record = two_records();
    let text = render(&record, &STYLE);
    let page = crate::page::page("two.json", &record, None);
    for (ratio, verdict) in [("0.875", "slower"), ("1.010", "inconclusive"), ("2.00", "faster")] {
        assert!(text.contains(ratio), "{ratio}\n{text}");
        assert!(page.contains(&format!("× {ratio} {verdict}")), "× {ratio} {verdict}\n{page}");
    }
    assert!(page.contains("threshold +5.0 %") && page.contains("threshold -5.0 %"), "{page}");
}

#[test]
fn what_no_number_decides_is_said() {
    for (why, says) in [
        (NoNumber::OnTheLimit, "no number of samples would decide, as the estimate lies on"),
        (NoNumber::Unreliable, "no number of samples would decide, as its samples depend"),
    ] {
        let mut record = two_records();
        let row = &mut record.comparison.as_mut().unwrap().cases[1];
        row.more_samples = None;
        row.no_number = Some(why);
        let text = render(&record, &Style { width: 200, ..STYLE });
        assert!(text.contains(says), "{says}\n{text}");
    }
}

#[test]
fn two_records_and_a_threshold() {
    insta::assert_snapshot!("comparison_records", render(&two_records(), &STYLE));
}

#[test]
fn a_card_beside_published_ones() {
    insta::assert_snapshot!("comparison_cards", render(&cards(), &STYLE));
    let narrow = Style { width: 60, unicode: false, ..STYLE };
    insta::assert_snapshot!("comparison_cards_narrow", render(&cards(), &narrow));
}

#[test]
fn nothing_acts_on_the_terminal_and_no_line_is_too_wide() {
    for width in [20, 60, 100] {
        for record in [cards(), two_records(), in_turns(20)] {
            let text = render(&record, &Style { width, ..STYLE });
            let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(acts), "{text}");
            let wide = |line: &str| unicode_width::UnicodeWidthStr::width(line) > width;
            assert!(!text.lines().any(wide), "{width}: {text}");
        }
    }
}

#[test]
fn as_csv() {
    let record = two_records();
    let text = comparison_csv::render(record.comparison.as_ref().unwrap()).unwrap();
    insta::assert_snapshot!("comparison_csv", text);
}

#[test]
fn a_reference_alone() {
    for name in tapstone_reference::names() {
        let text = render_reference(&tapstone_reference::load(name).unwrap(), &STYLE);
        insta::assert_snapshot!(format!("reference_{name}"), text);
    }
}

/// On the first screen of a page, too.
#[test]
fn a_threshold_is_no_good_news_where_something_is_open_or_lost() {
    let mut record = two_records();
    let comparison = record.comparison.as_mut().unwrap();
    comparison.threshold = Some(Threshold { fail_above: Fraction(0.05), exceeded: false });
    comparison.cases.iter_mut().for_each(|row| row.threshold = Some(Judgement::Held));
    let shown = |record: &Record| crate::page::page("a", record, None);
    assert!(shown(&record).contains(">no</span>"), "{}", shown(&record));
    record.comparison.as_mut().unwrap().cases[0].threshold = Some(Judgement::Undecided);
    assert!(shown(&record).contains("1 UNDECIDED"), "{}", shown(&record));
    let lost = NotCompared { operation: "x".into(), why: "failed".into() };
    record.comparison.as_mut().unwrap().not_compared.push(lost);
    assert!(shown(&record).contains("VOID: 1 not compared"), "{}", shown(&record));
}
