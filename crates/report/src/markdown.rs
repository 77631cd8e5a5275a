//! Records as Markdown: tables to be pasted into an issue, a merge request or a wiki.
//!
//! There is a table of claims, one of comparisons, one of devices side by side and one of results, each
//! where a record has any, and a list of what to know before believing them. The unit stands at each figure, and behind it its
//! interval, with a `?` where that is too narrow to be true.

use tapstone_record::{CaseResult, Comparison, Estimate, Record, SideBySide};

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
    text += &record.side_by_side.as_ref().map(side_by_side).unwrap_or_default();
    text += &results(&record.results);
    let doubts = record.comparison.iter().flat_map(|comparison| &comparison.warnings);
    text += &list(record.warnings.iter().chain(doubts));
    text
}

/// What to know before believing it; nothing without a line.
fn list<'a>(lines: impl Iterator<Item = &'a String>) -> String {
    let lines: String = lines.map(|line| format!("- {}\n", escaped(line))).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// A table below an empty line; nothing without rows. Columns after the first lean to the right.
fn table(head: &[impl AsRef<str>], rows: &[impl AsRef<[String]>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let titles: Vec<String> = head.iter().map(|title| title.as_ref().to_owned()).collect();
    let mut text = format!("\n{}|:---|{}\n", line(&titles), "---:|".repeat(titles.len() - 1));
    rows.iter().for_each(|row| text += &line(row.as_ref()));
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
    table(&["Claim", "Measured", "Verdict"], &record.claims.iter().map(row).collect::<Vec<_>>())
}

fn comparison(of: &Comparison) -> String {
    let row = |row: &tapstone_record::ComparedCase| {
        let print = |figure: &Estimate| {
            let print = match row.quantity {
                tapstone_record::Quantity::Throughput => figures::rate,
                _ => figures::time,
            };
            figures::with_interval(figure, print)
        };
        let name = format!("{}{}", words::row_name(row), words::provenance_marks(row));
        [
            escaped(&name),
            print(&row.baseline),
            print(&row.candidate),
            figures::with_interval(&row.ratio, figures::ratio),
            words::change(row.verdict).to_owned(),
        ]
    };
    let lost = |one: &tapstone_record::NotCompared| {
        let none = || figures::NONE.to_owned();
        let name = escaped(&words::not_compared(one));
        [name, none(), none(), none(), "not compared".to_owned()]
    };
    let lost = of.not_compared.iter().map(lost);
    let rows: Vec<_> = of.cases.iter().map(row).chain(lost).collect();
    table(&["Operation", "Baseline", "Candidate", "Ratio", "Verdict"], &rows)
}

/// A column for each device, a row for each operation that two of them have.
fn side_by_side(all: &SideBySide) -> String {
    let row = |row: &tapstone_record::SideBySideCase| {
        let print = match row.quantity {
            tapstone_record::Quantity::Throughput => figures::rate,
            _ => figures::time,
        };
        let cell = |(at, figure): (usize, &Option<Estimate>)| {
            let Some(figure) = figure else { return figures::NONE.to_owned() };
            let mark = words::provenance_mark(row.provenance.get(at).copied().flatten());
            format!("{}{mark}", figures::with_interval(figure, print))
        };
        let size = row.message_bytes.map(|bytes| format!(", {}", figures::bytes(bytes)));
        let name = escaped(&format!("{}{}", row.operation, size.unwrap_or_default()));
        [name].into_iter().chain(row.figures.iter().enumerate().map(cell)).collect()
    };
    let names = all.sides.iter().map(|side| escaped(&side.name));
    let titles: Vec<String> = ["Operation".to_owned()].into_iter().chain(names).collect();
    let rows: Vec<Vec<String>> = all.cases.iter().map(row).collect();
    table(&titles, &rows)
}

fn results(cases: &[CaseResult]) -> String {
    let row = |case: &CaseResult| {
        let latency = case.latency_ns.unwrap_or_default();
        let doubt = words::doubt(case);
        let shown = |of: Option<Estimate>, print: fn(f64) -> String| {
            of.map_or_else(
                || figures::NONE.into(),
                |it| format!("{}{doubt}", figures::with_interval(&it, print)),
            )
        };
        let time = |of| shown(of, figures::time);
        let range = case
            .latency_ns
            .map(|it| figures::range(it.min.0 as f64, it.max.0 as f64, figures::time));
        let rate = shown(words::rate_of(case), figures::rate);
        let name = format!("{}{}", case.operation, words::provenance_mark(Some(case.provenance)));
        let name = match words::trouble(case) {
            Some(trouble) => format!("{name}: {trouble}"),
            None => name,
        };
        [
            escaped(&name),
            time(latency.mean),
            time(latency.p50),
            time(latency.p99),
            range.unwrap_or_else(|| figures::NONE.into()),
            rate,
        ]
    };
    let rows: Vec<_> = cases.iter().map(row).collect();
    table(&["Operation", "Mean", "p50", "p99", "Min … Max", "Rate"], &rows)
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
