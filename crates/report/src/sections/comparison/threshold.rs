//! What the threshold says, and what would decide what is undecided.

use tapstone_record::{Change, ComparedCase, Comparison, Judgement, Pairing};
use tapstone_text::thousands;

use super::super::page::Page;
use super::super::span::{Span, Tint};
use crate::{figures, words};

/// Rows told one by one; more are counted.
const ADVISED: usize = 5;

pub(super) fn add_threshold(page: &mut Page, comparison: &Comparison) {
    page.blank();
    let Some(threshold) = comparison.threshold else {
        let open = |row: &&ComparedCase| row.verdict == Change::Inconclusive;
        let rows = comparison.cases.iter().filter(open);
        return advise(page, "inconclusive", comparison.pairing, rows);
    };
    let rows =
        |judgement| comparison.cases.iter().filter(move |row| row.threshold == Some(judgement));
    let limit = format!("slower by more than {}", figures::share(threshold.fail_above));
    let judged = comparison.cases.iter().filter(|row| row.threshold.is_some()).count();
    // A single one is named.
    let who = |judgement| match rows(judgement).next() {
        Some(row) if judged == 1 => row.operation.clone(),
        _ => tapstone_text::counted(rows(judgement).count() as u64, "operation", "operations"),
    };
    let exceeded = rows(Judgement::Exceeded);
    let undecided = rows(Judgement::Undecided);
    let lost = comparison.not_compared.len() as u64;
    let (word, text, tint) = match (exceeded.count(), undecided.count(), judged) {
        (0, ..) if lost > 0 => {
            let lost = tapstone_text::counted(lost, "operation", "operations");
            ("VOID", format!("{lost} cannot be compared"), Tint::Bad)
        }
        (0, 0, 1) => ("HELD", format!("{} is not {limit}", who(Judgement::Held)), Tint::Good),
        (0, 0, _) => ("HELD", format!("no operation is {limit}"), Tint::Good),
        (0, ..) => {
            ("UNDECIDED", format!("{} may be {limit}", who(Judgement::Undecided)), Tint::Caution)
        }
        (some, ..) => {
            let are = if some == 1 { "is" } else { "are" };
            let text = format!("{} {are} surely {limit}", who(Judgement::Exceeded));
            ("EXCEEDED", text, Tint::Bad)
        }
    };
    page.hanging(&Span::new(format!("  {word:<10} "), tint), &Span::plain(text));
    advise(page, "undecided", comparison.pairing, rows(Judgement::Undecided));
}

/// How many more samples would decide; of what was measured interleaved, how many rounds.
fn advise<'a>(
    page: &mut Page,
    state: &str,
    pairing: Pairing,
    rows: impl Iterator<Item = &'a ComparedCase>,
) {
    let (one, many, side) = match pairing {
        Pairing::Interleaved => ("round", "rounds", ""),
        Pairing::Records | Pairing::Published => ("sample", "samples", " on each measured side"),
    };
    let rows: Vec<&ComparedCase> = rows.collect();
    let (advised, more) = rows.split_at(rows.len().min(ADVISED));
    for row in advised {
        let item = row.item.as_ref().map(|item| format!(" ({item})")).unwrap_or_default();
        let advice = match row.more_samples {
            Some(1) => format!("about 1 more {one}{side} would decide"),
            Some(count) => format!("about {} more {many}{side} would decide", two_digits(count)),
            None => match row.no_number {
                Some(why) => {
                    format!("no number of {many} would decide, as {}", words::no_number(why))
                }
                None => format!("how many more {many} would decide is not known"),
            },
        };
        let text = format!("{}{item} is {state}: {advice}", row.operation);
        page.hanging(&Span::faint("  - "), &Span::faint(text));
    }
    if !more.is_empty() {
        let text = format!("{} more are {state}; JSON and CSV tell of each", more.len());
        page.hanging(&Span::faint("  - "), &Span::faint(text));
    }
}

/// Two digits: it is an estimate of an estimate.
fn two_digits(count: u64) -> String {
    let magnitude = 10u64.pow(count.checked_ilog10().unwrap_or(0).saturating_sub(1));
    thousands(count.div_ceil(magnitude).saturating_mul(magnitude))
}

#[cfg(test)]
mod tests {
    use super::two_digits;

    #[test]
    fn advice_has_two_digits() {
        let told = [0, 7, 42, 1_234, 987_654].map(two_digits);
        assert_eq!(told, ["0", "7", "42", "1,300", "990,000"]);
    }
}
