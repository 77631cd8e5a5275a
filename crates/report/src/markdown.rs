//! Records as Markdown: tables to be pasted into an issue, a merge request or a wiki.
//!
//! There is a table of claims, one of comparisons and one of results, each where a record has any. The
//! unit stands at each figure, and behind it its interval.

use tapstone_record::{CaseResult, Comparison, Estimate, Record};

use crate::text::clean;
use crate::{figures, sections, verdict, words};

/// All records, each below a heading.
#[must_use]
pub fn render(records: &[&Record]) -> String {
    records.iter().map(|record| of_record(record)).collect::<Vec<_>>().join("\n")
}

fn of_record(record: &Record) -> String {
    let when = record.started_at.strftime("%Y-%m-%d %H:%M UTC");
    let mut text = format!("### {}\n\n{when}", escaped(&verdict::title(record)));
    if let Some(emulated) = &record.target.emulated {
        text += &format!(", **emulated: {}**", escaped(&emulated.profile));
    }
    text.push('\n');
    text += &claims(record);
    text += &record.comparison.as_ref().map(comparison).unwrap_or_default();
    text += &results(&record.results);
    text
}

/// A table below an empty line; nothing without rows. Columns after the first lean to the right.
fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("\n{}|:---|{}\n", line(&head.map(str::to_owned)), "---:|".repeat(N - 1));
    rows.iter().for_each(|row| text += &line(row));
    text
}

fn claims(record: &Record) -> String {
    let row = |claim: &tapstone_record::Claim| {
        let measured = claim
            .measured
            .as_ref()
            .map(|figure| sections::measured_for_claim(figure, claim))
            .unwrap_or_default();
        [escaped(&claim.text), escaped(&measured), words::verdict(claim.verdict).to_owned()]
    };
    table(["Claim", "Measured", "Verdict"], &record.claims.iter().map(row).collect::<Vec<_>>())
}

fn comparison(of: &Comparison) -> String {
    let row = |row: &tapstone_record::ComparisonRow| {
        let print = |figure: &Estimate| {
            let print = match row.quantity {
                tapstone_record::Quantity::Throughput => figures::rate,
                _ => figures::time,
            };
            figures::with_interval(figure, print)
        };
        let item = row.item.as_deref().map(|item| format!(", {item}")).unwrap_or_default();
        let name = format!("{}{item}{}", row.operation, words::provenance_marks(row));
        [
            escaped(&name),
            print(&row.baseline),
            print(&row.candidate),
            figures::with_interval(&row.ratio, figures::ratio),
            words::change(row.verdict).to_owned(),
        ]
    };
    let rows: Vec<_> = of.rows.iter().map(row).collect();
    table(["Operation", "Baseline", "Candidate", "Ratio", "Verdict"], &rows)
}

fn results(cases: &[CaseResult]) -> String {
    let row = |case: &CaseResult| {
        let latency = case.latency_ns.unwrap_or_default();
        let time = |of: Option<Estimate>| {
            of.map_or_else(|| figures::NONE.into(), |it| figures::with_interval(&it, figures::time))
        };
        let range = case
            .latency_ns
            .map(|it| figures::range(it.min.0 as f64, it.max.0 as f64, figures::time));
        let rate = words::rate_of(case).map(|it| figures::with_interval(&it, figures::rate));
        let name = match words::trouble(case) {
            Some(trouble) => format!("{}: {trouble}", case.operation),
            None => case.operation.clone(),
        };
        [
            escaped(&name),
            time(latency.mean),
            time(latency.p50),
            time(latency.p99),
            range.unwrap_or_else(|| figures::NONE.into()),
            rate.unwrap_or_else(|| figures::NONE.into()),
        ]
    };
    let rows: Vec<_> = cases.iter().map(row).collect();
    table(["Operation", "Mean", "p50", "p99", "Min … Max", "Rate"], &rows)
}

/// Text in which nothing means anything to Markdown, HTML in it neither.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for c in clean(text, true).chars() {
        match c {
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '&' => all.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '!' | '@' => {
                all.push('\\');
                all.push(c);
            }
            _ => all.push(c),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        assert_eq!(escaped("a|b <img> `x`\n"), "a\\|b &lt;img&gt; \\`x\\`\u{fffd}");
    }
}
