//! What the threshold says, and what would decide what is undecided.

use tapstone_measure::units::thousands;
use tapstone_record::{Change, Comparison, ComparisonRow, Judgement};

use super::super::page::{Page, Span, Tint};
use crate::figures;

/// Rows told one by one; more are counted.
const ADVISED: usize = 5;

pub(super) fn show(page: &mut Page, comparison: &Comparison) {
    page.blank();
    let Some(threshold) = comparison.threshold else {
        let open = |row: &&ComparisonRow| row.verdict == Change::Inconclusive;
        return advise(page, "inconclusive", comparison.rows.iter().filter(open));
    };
    let rows =
        |judgement| comparison.rows.iter().filter(move |row| row.threshold == Some(judgement));
    let limit = format!("slower by more than {}", figures::share(threshold.fail_above));
    let exceeded = rows(Judgement::Exceeded).count();
    let undecided = rows(Judgement::Undecided).count();
    let (word, text, tint) = match (exceeded, undecided) {
        (0, 0) => ("HELD", format!("no operation is {limit}"), Tint::Good),
        (0, open) => (
            "UNDECIDED",
            format!("{} may be {limit}", figures::count(open as u64, "operation", "operations")),
            Tint::Caution,
        ),
        (some, _) => (
            "EXCEEDED",
            format!(
                "{} surely {limit}",
                figures::count(some as u64, "operation is", "operations are")
            ),
            Tint::Bad,
        ),
    };
    page.hanging(&Span::new(format!("  {word:<10} "), tint), &Span::plain(text));
    advise(page, "undecided", rows(Judgement::Undecided));
}

/// How many more samples would decide.
fn advise<'a>(page: &mut Page, state: &str, rows: impl Iterator<Item = &'a ComparisonRow>) {
    let rows: Vec<&ComparisonRow> = rows.collect();
    let (advised, more) = rows.split_at(rows.len().min(ADVISED));
    for row in advised {
        let item = row.item.as_ref().map(|item| format!(" ({item})")).unwrap_or_default();
        let advice = match row.more_samples {
            Some(1) => "about 1 more sample on each measured side would decide".to_owned(),
            Some(more) => {
                let more = two_digits(more);
                format!("about {more} more samples on each measured side would decide")
            }
            None => "how many more samples would decide cannot be told".to_owned(),
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
