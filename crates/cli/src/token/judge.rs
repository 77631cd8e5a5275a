//! Claims against what was measured.

use tapstone_measure::claim::{Bound, Claim, ClaimVerdict, KeyBits};
use tapstone_measure::summary::Summary;
use tapstone_record as record;
use tapstone_token::controller::CasePlan;

/// A claim with its text as the user wrote it.
pub(super) struct Asked<'a> {
    pub(super) text: &'a str,
    pub(super) claim: &'a Claim,
}

/// What becomes of a claim about a case, measured or not.
pub(super) fn judge(
    asked: &Asked<'_>,
    row: &CasePlan,
    summary: Option<&Summary>,
) -> anyhow::Result<record::Claim> {
    let bits = row.lanes.first().and_then(|lane| lane.variant.key_bits()).map(KeyBits);
    let target = asked.claim.target(bits)?;
    let figure = summary.and_then(|summary| target.demand.figure(summary));
    let judgement = target.demand.judge(figure);
    Ok(record::Claim {
        text: asked.text.to_owned(),
        operation: asked.claim.case.clone(),
        verdict: match judgement.verdict {
            ClaimVerdict::Met => record::Verdict::Met,
            ClaimVerdict::Missed => record::Verdict::Missed,
            ClaimVerdict::Undecided => record::Verdict::Undecided,
        },
        measured: figure.map(Into::into),
        arithmetic: match asked.claim.bound {
            // Claimed in the unit that is measured: nothing to convert.
            Bound::Operations(_) | Bound::Latency(..) => judgement.text,
            _ => format!("{}; {}", target.arithmetic, judgement.text),
        },
        judged: record::Judged::Interval,
    })
}
