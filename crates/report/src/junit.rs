//! Records as JUnit's XML, which services of continuous integration show: a suite for each record, and
//! in it a test case for each claim, each comparison, each operation, and whatever else the record
//! decides: a door's budget, changes that reach a target, a queue, a fix that was tried.
//!
//! | what became of it | in the report |
//! | --- | --- |
//! | a claim is met, a threshold held or not asked for, an operation measured | passed |
//! | a claim or a target is missed, a fix changes what the program does, a threshold surely exceeded, a result wrong | `failure` |
//! | a claim is void, an operation failed, or cannot be compared with its baseline | `error` |
//! | undecided, or not offered by the device | `skipped` |

use maud::{Markup, html};
use tapstone_record::{
    CaseResult, Claim, ComparedCase, Estimate, Judgement, NotCompared, Outcome, Record, Verdict,
};

use crate::decisions::{Decision, decisions};
use crate::text::clean;
use crate::{figures, sections, verdict, words};

/// What became of a test case, with a sentence.
enum End {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}

struct Case {
    class: &'static str,
    name: String,
    seconds: Option<f64>,
    /// The figures, whatever became of it.
    figures: String,
    end: End,
}

/// All records as one document.
#[must_use]
pub fn render(records: &[&Record]) -> String {
    let suites: Vec<(&Record, Vec<Case>)> =
        records.iter().map(|record| (*record, cases(record))).collect();
    let all = || suites.iter().flat_map(|(_, cases)| cases);
    let xml = html! {
        testsuites name="tapstone" tests=(all().count())
            failures=(count(all(), is_failure)) errors=(count(all(), is_error)) {
            @for (record, cases) in &suites { "\n" (suite(record, cases)) }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", xml.into_string())
}

fn count<'a>(cases: impl Iterator<Item = &'a Case>, is: fn(&Case) -> bool) -> usize {
    cases.filter(|case| is(case)).count()
}

const fn is_failure(case: &Case) -> bool {
    matches!(case.end, End::Failure(_))
}

const fn is_error(case: &Case) -> bool {
    matches!(case.end, End::Error(_))
}

const fn is_skipped(case: &Case) -> bool {
    matches!(case.end, End::Skipped(_))
}

fn suite(record: &Record, cases: &[Case]) -> Markup {
    let emulated = record.target.emulated.as_ref();
    html! {
        testsuite name=(text(&verdict::title(record)))
            timestamp=(record.started_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
            tests=(cases.len()) failures=(count(cases.iter(), is_failure))
            errors=(count(cases.iter(), is_error)) skipped=(count(cases.iter(), is_skipped)) {
            @if let Some(emulated) = emulated {
                "\n" properties { property name="emulated" value=(text(&emulated.profile)) {} }
            }
            @for case in cases { "\n" (test_case(case)) }
            "\n"
        }
    }
}

fn test_case(case: &Case) -> Markup {
    let seconds = case.seconds.map(|seconds| format!("{seconds:.6}"));
    html! {
        testcase classname=(case.class) name=(text(&case.name)) time=[seconds] {
            @match &case.end {
                End::Passed => {},
                End::Failure(why) => failure type="missed" message=(text(why)) {},
                End::Error(why) => error type="not measured" message=(text(why)) {},
                End::Skipped(why) => skipped message=(text(why)) {},
            }
            @if !case.figures.is_empty() { system-out { (text(&case.figures)) } }
        }
    }
}

fn cases(record: &Record) -> Vec<Case> {
    let rows = record.comparison.iter().flat_map(|comparison| &comparison.cases);
    let lost = record.comparison.iter().flat_map(|comparison| &comparison.not_compared);
    let claims = record.claims.iter().map(of_claim);
    let decided = decisions(record).into_iter().map(of_decision);
    let compared = rows.map(of_row).chain(lost.map(of_not_compared));
    claims.chain(decided).chain(compared).chain(record.results.iter().map(of_result)).collect()
}

fn of_claim(claim: &Claim) -> Case {
    let why = claim.arithmetic.clone();
    let end = match claim.verdict {
        Verdict::Met => End::Passed,
        Verdict::Missed => End::Failure(why),
        Verdict::Void => End::Error(why),
        Verdict::Undecided => End::Skipped(format!("undecided: {why}")),
    };
    let measured = claim.measured.as_ref();
    let figures = measured.map(|figure| sections::measured_for_claim(figure, claim));
    Case {
        class: "claim",
        name: claim.text.clone(),
        seconds: None,
        figures: figures.unwrap_or_default(),
        end,
    }
}

fn of_decision(decision: Decision) -> Case {
    let Decision { kind: class, question: name, verdict, sentence } = decision;
    let (end, figures) = match verdict {
        Verdict::Met => (End::Passed, sentence),
        Verdict::Missed => (End::Failure(sentence), String::new()),
        Verdict::Void => (End::Error(sentence), String::new()),
        Verdict::Undecided => (End::Skipped(sentence), String::new()),
    };
    Case { class, name, seconds: None, figures, end }
}

fn of_row(row: &ComparedCase) -> Case {
    let ratio = figures::with_interval(&row.ratio, figures::ratio);
    let verdict = words::change(row.verdict);
    let marks = words::provenance_marks(row);
    let figures = format!("candidate over baseline {ratio}, {verdict}{marks}");
    let end = match row.threshold {
        Some(Judgement::Exceeded) => End::Failure(format!("the threshold is exceeded: {figures}")),
        Some(Judgement::Undecided) => End::Skipped(format!("undecided: {figures}")),
        Some(Judgement::Held) | None => End::Passed,
    };
    Case { class: "comparison", name: words::row_name(row), seconds: None, figures, end }
}

fn of_not_compared(one: &NotCompared) -> Case {
    Case {
        class: "comparison",
        name: one.operation.clone(),
        seconds: None,
        figures: String::new(),
        end: End::Error(format!("not compared: {}", one.why)),
    }
}

fn of_result(case: &CaseResult) -> Case {
    let wrong = case.verification.map_or(0, |of| of.wrong);
    let status = &case.status;
    let code = status.code.clone().or_else(|| status.step.clone()).unwrap_or_default();
    let end = match status.outcome {
        _ if wrong > 0 => End::Failure(format!("{wrong} results were wrong")),
        Outcome::Ok => End::Passed,
        Outcome::Unsupported => End::Skipped(format!("unsupported {code}")),
        Outcome::Partial | Outcome::Failed => End::Error(format!("failed {code}")),
    };
    let doubt = words::doubt(case);
    let shown = |of: Estimate, print: fn(f64) -> String| {
        format!("{}{doubt}", figures::with_interval(&of, print))
    };
    let rate = words::rate_of(case).map(|rate| shown(rate, figures::rate));
    let latency = case.latency_ns.and_then(|latency| latency.p50);
    let p50 = latency.map(|p50| format!("p50 {}", shown(p50, figures::time)));
    let said: Vec<String> = [rate, p50].into_iter().flatten().collect();
    Case {
        class: "operation",
        name: format!("{}, {}", case.operation, words::concurrency(case.concurrency)),
        seconds: case.window.map(|window| window.seconds.0),
        figures: said.join(", "),
        end,
    }
}

/// Text that XML can hold: there are characters that it cannot, however they are written.
fn text(text: &str) -> String {
    clean(text, true).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
