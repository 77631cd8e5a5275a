//! Claims and what became of them, a line each.

use tapstone_record::{CaseResult, Claim, Estimate, Judged, Verdict};
use tapstone_text::{thousands, three_digits};

use super::page::Page;
use super::span::{Span, Tint};
use crate::words;

pub(super) fn add_claims(page: &mut Page, claims: &[Claim], cases: &[CaseResult]) {
    if claims.is_empty() {
        return;
    }
    page.heading_of_conclusions("claims", "");
    for claim in claims {
        let tint = match claim.verdict {
            Verdict::Met => Tint::Good,
            Verdict::Missed | Verdict::Void => Tint::Bad,
            Verdict::Undecided => Tint::Caution,
        };
        let verdict = format!("  {:<9}  ", words::verdict(claim.verdict));
        page.hanging(&Span::new(verdict, tint), &Span::plain(sentence(claim, cases)));
    }
}

fn sentence(claim: &Claim, cases: &[CaseResult]) -> String {
    // Arithmetic that ends in an interval has said what was measured.
    let measured = match &claim.measured {
        _ if claim.arithmetic.contains("interval") => None,
        None => Some("no figure".into()),
        Some(figure) => Some(measured(figure, claim)),
    };
    let arithmetic = claim.arithmetic.trim_end_matches('.');
    let arithmetic = (!arithmetic.is_empty()).then(|| arithmetic.to_owned());
    let own = cases.iter().filter(|case| case.operation == claim.operation);
    let failures = own.into_iter().find_map(words::failure_count);
    let said: Vec<String> = [measured, arithmetic, failures].into_iter().flatten().collect();
    format!("{}: {}", claim.text, said.join("; "))
}

/// `measured 4,980/s (4,932 … 5,029)`; of a point there is no interval.
pub(crate) fn measured(figure: &Estimate, claim: &Claim) -> String {
    let unit = unit(&claim.text);
    let gap = if unit.is_empty() || unit.starts_with('/') { "" } else { " " };
    let value = number(figure.estimate);
    let low = number(figure.low);
    let high = number(figure.high);
    match claim.judged {
        Judged::Interval => format!("measured {value}{gap}{unit} ({low} … {high})"),
        Judged::Point => format!("measured {value}{gap}{unit}, judged as a point"),
    }
}

/// What follows the number of a claim: its measured figure has the same unit.
fn unit(claim: &str) -> &str {
    let bound = claim.rsplit(['=', '≥', '≤']).next().unwrap_or_default();
    bound.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit() || ".,_".contains(c)).trim()
}

fn number(value: f64) -> String {
    if (999.5..1e15).contains(&value) {
        return thousands(value.round() as u64);
    }
    three_digits(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_in_the_unit_of_its_claim() {
        let units = [
            ("rsa1024.sign >= 13000/s", "/s"),
            ("rsa1024.sign≤ 77.5us", "us"),
            ("rsa1024.sign >= 6,656,000 exponentiations/s", "exponentiations/s"),
            ("nonsense", "nonsense"),
        ];
        for (claim, expected) in units {
            assert_eq!(unit(claim), expected, "{claim}");
        }
    }
}
