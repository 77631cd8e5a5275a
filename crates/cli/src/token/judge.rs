//! Claims against what was measured.

use tapstone_measure::claim::{Bound, Claim, ClaimVerdict, KeyBits};
use tapstone_record as record;
use tapstone_token::controller::{CaseOutcome, CasePlan};

/// A claim with its text as the user wrote it.
pub(super) struct Asked<'a> {
    pub(super) text: &'a str,
    pub(super) claim: &'a Claim,
}

/// What becomes of a claim about a case, measured or not.
pub(super) fn judge(
    asked: &Asked<'_>,
    case: &CasePlan,
    outcome: &CaseOutcome,
) -> anyhow::Result<record::Claim> {
    let bits = case.lanes.first().and_then(|lane| lane.variant.key_bits()).map(KeyBits);
    let target = asked.claim.target(bits)?;
    let figure = outcome.summary.as_ref().and_then(|summary| target.demand.figure(summary));
    let judgement = target.demand.judge(figure);
    let verdict = match judgement.verdict {
        ClaimVerdict::Met => record::Verdict::Met,
        ClaimVerdict::Missed => record::Verdict::Missed,
        ClaimVerdict::Undecided => record::Verdict::Undecided,
    };
    let arithmetic = match asked.claim.bound {
        // Claimed in the unit that is measured: nothing to convert.
        Bound::Operations(_) | Bound::Latency(..) => judgement.text,
        _ => format!("{}; {}", target.arithmetic, judgement.text),
    };
    let reasons = void_reasons(outcome);
    let (verdict, arithmetic) = match &reasons[..] {
        [] => (verdict, arithmetic),
        reasons => (record::Verdict::Void, format!("void, because {}", reasons.join(", and "))),
    };
    Ok(record::Claim {
        text: asked.text.to_owned(),
        operation: asked.claim.case.clone(),
        verdict,
        measured: figure.map(Into::into),
        arithmetic,
        judged: record::Judged::Interval,
    })
}

/// Why nothing may be concluded from a case's figures.
fn void_reasons(outcome: &CaseOutcome) -> Vec<String> {
    let mut reasons = Vec::new();
    let whole = outcome.cases.first();
    let wrong: u64 =
        outcome.cases.iter().filter_map(|case| case.verification).map(|it| it.wrong).sum();
    if wrong > 0 {
        reasons.push(format!("{wrong} results were wrong"));
    }
    match whole.map(|case| case.status.outcome) {
        Some(record::Outcome::Ok) => {}
        Some(record::Outcome::Partial) => {
            reasons.push("operations failed or workers dropped out".into());
        }
        _ => reasons.push("the case could not be measured".into()),
    }
    if outcome.interrupted {
        reasons.push("the run was interrupted".into());
    }
    if outcome.summary.as_ref().is_some_and(|summary| !summary.reliable) {
        reasons.push("the interval is unreliable: its batches depend on one another".into());
    }
    let disturbed =
        |case: &&record::CaseResult| case.limited_by == record::LimitedBy::OtherPrograms;
    if let Some(limit) = whole.filter(disturbed).and_then(|case| case.limit.as_ref()) {
        reasons.push(limit.why.clone());
    }
    reasons
}
