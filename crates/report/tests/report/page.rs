//! The page of a record of each kind, and a drawing of each kind of chart. A browser looks at the
//! whole of it in the command's own tests; here a change can be read.

use tapstone_measure::units::Nanos;
use tapstone_record::Record;
use tapstone_report::html::{
    PageEntry, TimelineChart, TimelineLane, TimelineLayer, TimelineSpan, render,
};

use crate::support;

/// Records that the tests of the format hold to its schema.
macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../record/tests/examples/", $name, ".json"))
    };
}

const EXAMPLES: [(&str, &str); 6] = [
    ("token", example!("token")),
    ("card", example!("card")),
    ("pcsc", example!("pcsc")),
    ("trace", example!("trace")),
    ("door", example!("door")),
    ("comparison", example!("comparison")),
];

/// Elements that begin a line of a snapshot.
const LINES: [&str; 16] = [
    "article", "dd", "details", "dt", "figure", "footer", "h1", "h2", "h3", "header", "li", "p",
    "pre", "section", "table", "tr",
];

pub(crate) fn page(name: &str, record: &Record, timeline: Option<&TimelineChart>) -> String {
    render(&[PageEntry { name, record, timeline, note: None, again: None }])
}

fn example(name: &str) -> String {
    let (_, text) = EXAMPLES.iter().find(|(it, _)| *it == name).unwrap();
    page(&format!("{name}.json"), &Record::from_json(text, name).unwrap(), None)
}

/// What is between two texts, from the first of each; nothing where they are not.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let from = page.find(begin)?;
    let length = page[from..].find(end)? + end.len();
    Some(&page[from..from + length])
}

/// Everything in the body as lines: without scripts, data and the insides of drawings.
fn outline(page: &str) -> String {
    let mut text = between(page, "<body>", "</body>").unwrap().to_owned();
    for (begin, end) in [("<script>", "</script>"), ("href=\"data:", "\""), ("<svg", "</svg>")] {
        let place = if begin == "<svg" { "(drawing)" } else { "" };
        while let Some(start) = text.find(begin) {
            let after = start + begin.len();
            let stop = after + text[after..].find(end).unwrap() + end.len();
            text.replace_range(start..stop, place);
        }
    }
    for name in LINES {
        for after in [" ", ">"] {
            text = text.replace(&format!("<{name}{after}"), &format!("\n<{name}{after}"));
        }
    }
    text.lines().filter(|line| !line.is_empty()).fold(String::new(), |all, line| all + line + "\n")
}

/// The first drawing, which is for a wide screen, of the chart with this title.
fn chart<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, from) = page
        .split_once(&format!("<figcaption>{title}"))
        .unwrap_or_else(|| panic!("no chart is called {title}"));
    between(from, "<svg class=", "</svg>").unwrap()
}

#[test]
fn a_page_of_each_kind() {
    for (name, _) in EXAMPLES {
        insta::assert_snapshot!(format!("page_{name}"), outline(&example(name)));
    }
}

#[test]
fn a_chart_of_each_kind() {
    // Lines with intervals and marks; lines on a scale of their own; columns; dots; bars with
    // intervals; bars in parts; a waterfall.
    let charts = [
        ("token", "lines", "How does the rate grow with concurrency?"),
        ("token", "percentiles", "How long do the slow ones take?"),
        ("token", "columns", "How are latencies spread?"),
        ("card", "dots", "Are the first calls different?"),
        ("comparison", "intervals", "How does the candidate compare with the baseline?"),
        ("card", "parts", "What is one command with 128 bytes"),
        ("door", "waterfall", "Where does the time go?"),
    ];
    for (kind, name, title) in charts {
        insta::assert_snapshot!(format!("chart_{name}"), chart(&example(kind), title));
    }
}

#[test]
fn a_timeline() {
    let span = |name: &str, start, length, depth, layer| TimelineSpan {
        name: name.into(),
        start: Nanos(start),
        length: Nanos(length),
        depth,
        layer,
    };
    let spans = vec![
        span("C_Sign", 100_000, 800_000, 0, TimelineLayer::Pkcs11),
        span("SCardTransmit: GET DATA", 200_000, 500_000, 1, TimelineLayer::Pcsc),
        span("poll", 300_000, 300_000, 2, TimelineLayer::Libc),
        // Too short to be seen, and still a unit long.
        span("close", 650_000, 1, 2, TimelineLayer::Libc),
    ];
    let lanes = vec![TimelineLane { name: "program 1, thread 1".into(), spans }];
    let timeline = TimelineChart { wall: Nanos(1_000_000), lanes, left_out: 7 };
    let page = page("trace.json", &support::record(), Some(&timeline));
    let section = between(&page, "<section id=\"r1-timeline\"", "</section>").unwrap();
    insta::assert_snapshot!("timeline", section.replace('<', "\n<").replace("\n</", "</").trim());
}

#[test]
fn a_hostile_record_stays_text() {
    let mut record = support::hostile();
    let evil = "</script><img src=x onerror=alert(1)>\u{202e}";
    record.target.tokens[0].label = evil.into();
    record.warnings = vec![evil.into()];
    let page = page(evil, &record, None);
    assert!(page.contains("&lt;/script&gt;&lt;img src=x"));
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(!page.contains(['\u{202e}', '\x1b', '\u{9b}']));
}
