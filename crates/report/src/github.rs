//! Records as annotations of GitHub Actions: a line for each claim, each comparison that is judged, each
//! operation that failed and each warning. GitHub shows them beside the run.

use tapstone_record::{Judgement, Outcome, Record, Verdict};

use crate::decisions::decisions;
use crate::text::clean;
use crate::{figures, verdict, words};

/// How an annotation is shown.
#[derive(Clone, Copy)]
enum Level {
    Notice,
    Warning,
    Error,
}

/// All annotations of all records.
#[must_use]
pub fn render(records: &[&Record]) -> String {
    records.iter().flat_map(|record| of_record(record)).collect()
}

fn of_record(record: &Record) -> Vec<String> {
    let title = verdict::title(record);
    let emulated = record.target.emulated.as_ref();
    let title = match emulated {
        Some(emulated) => format!("{title} (emulated: {})", emulated.profile),
        None => title,
    };
    let line = |(level, said): (Level, String)| annotation(level, &title, &said);
    let claims = record.claims.iter().map(|claim| {
        let level = of_verdict(claim.verdict);
        let said = words::verdict(claim.verdict);
        (level, format!("{said}: {}: {}", claim.text, claim.arithmetic))
    });
    let decided = decisions(record).into_iter().map(|decision| {
        let level = of_verdict(decision.verdict);
        (level, format!("{}: {}", decision.question, decision.sentence))
    });
    let rows = record.comparison.iter().flat_map(|comparison| &comparison.cases);
    let rows = rows.map(|row| {
        let level = match row.threshold {
            Some(Judgement::Exceeded) => Level::Error,
            Some(Judgement::Undecided) => Level::Warning,
            Some(Judgement::Held) | None => Level::Notice,
        };
        let ratio = figures::with_interval(&row.ratio, figures::ratio);
        let marks = words::provenance_marks(row);
        let change = words::change(row.verdict);
        (
            level,
            format!("{}: candidate over baseline {ratio}, {change}{marks}", words::row_name(row)),
        )
    });
    let failed = record.results.iter().filter_map(|case| {
        let failed = matches!(case.status.outcome, Outcome::Failed | Outcome::Partial);
        let wrong = case.verification.map_or(0, |of| of.wrong);
        let code = case.status.code.as_deref().unwrap_or_default();
        match (wrong, failed) {
            (0, false) => None,
            (0, true) => Some((Level::Error, format!("{} failed: {code}", case.operation))),
            _ => Some((Level::Error, format!("{}: {wrong} results were wrong", case.operation))),
        }
    });
    let lost = record.comparison.iter().flat_map(|comparison| &comparison.not_compared);
    let lost =
        lost.map(|one| (Level::Error, format!("not compared: {}", words::not_compared(one))));
    let doubts = record.comparison.iter().flat_map(|comparison| &comparison.warnings);
    let warnings = record.warnings.iter().chain(doubts);
    let warnings = warnings.map(|warning| (Level::Warning, warning.clone()));
    claims.chain(decided).chain(rows).chain(lost).chain(failed).chain(warnings).map(line).collect()
}

const fn of_verdict(verdict: Verdict) -> Level {
    match verdict {
        Verdict::Met => Level::Notice,
        Verdict::Undecided => Level::Warning,
        Verdict::Missed | Verdict::Void => Level::Error,
    }
}

fn annotation(level: Level, title: &str, said: &str) -> String {
    let level = match level {
        Level::Notice => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let data = |text: &str| clean(text, true).replace('%', "%25");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    format!("::{level} title={}::{}\n", property(title), data(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_makes_no_annotation_of_its_own() {
        let line = annotation(Level::Error, "a,b: c", "100 %\n::error::x");
        assert_eq!(line.lines().count(), 1);
        assert!(line.starts_with("::error title=a%2Cb%3A c::100 %25"), "{line}");
    }
}
