//! Claims against what was measured.

use tapstone_measure::claim::{Bound, Claim, ClaimVerdict, Demand, KeyBits};
use tapstone_measure::interval::Estimate;
use tapstone_measure::rounds::over_rounds;
use tapstone_measure::summary::Summary;
use tapstone_record as record;
use tapstone_token::controller::{CaseOutcome, CasePlan, RoundsOutcome};

/// A claim with its text as the user wrote it.
pub(super) struct Asked<'a> {
    pub(super) text: &'a str,
    pub(super) claim: &'a Claim,
}

/// What a claim is held against.
pub(super) enum Evidence<'a> {
    /// The search for the limit, whose levels were measured in passes.
    Search(&'a CaseOutcome),
    /// Rounds of one case.
    Rounds(&'a RoundsOutcome),
}

impl Evidence<'_> {
    fn shown(&self) -> &CaseOutcome {
        match self {
            Self::Search(outcome) => outcome,
            Self::Rounds(rounds) => &rounds.shown,
        }
    }

    fn summaries(&self) -> &[Summary] {
        match self {
            Self::Search(outcome) => outcome.summary.as_slice(),
            Self::Rounds(rounds) => &rounds.summaries,
        }
    }

    fn figure(&self, demand: Demand) -> Option<Estimate> {
        match self {
            Self::Search(outcome) => demand.figure(outcome.summary.as_ref()?),
            Self::Rounds(rounds) => over_rounds(&self.rounds(demand)?, rounds.first),
        }
    }

    /// The figure of each round; `None` where one had too few operations for it.
    fn rounds(&self, demand: Demand) -> Option<Vec<f64>> {
        let Self::Rounds(rounds) = self else { return Some(Vec::new()) };
        let figure = |summary: &Summary| Some(demand.figure(summary)?.estimate);
        rounds.summaries.iter().map(figure).collect()
    }

    /// The rate was still growing when the search ended, so that missing a rate says nothing.
    fn may_grow(&self, demand: Demand) -> bool {
        let cases = &self.shown().cases;
        let unknown = |case: &record::CaseResult| {
            use record::LimitedBy::{Interruption, SearchCap, Unknown};
            matches!(case.limited_by, SearchCap | Interruption | Unknown)
        };
        matches!((self, demand), (Self::Search(_), Demand::Rate(_))) && cases.iter().any(unknown)
    }
}

/// What becomes of a claim about a case, measured or not.
pub(super) fn judge(
    asked: &Asked<'_>,
    case: &CasePlan,
    evidence: &Evidence<'_>,
) -> anyhow::Result<record::Claim> {
    let bits = case.lanes.first().and_then(|lane| lane.variant.key_bits()).map(KeyBits);
    let target = asked.claim.target(bits)?;
    let figure = evidence.figure(target.demand);
    let rounds = evidence.rounds(target.demand).unwrap_or_default();
    let mut judgement = target.demand.judge(figure);
    if judgement.verdict == ClaimVerdict::Missed && evidence.may_grow(target.demand) {
        judgement.verdict = ClaimVerdict::Undecided;
        judgement.text = format!("undecided, for more was not excluded; {}", judgement.text);
    }
    if !rounds.is_empty() {
        judgement.text = format!("{} over {} rounds", judgement.text, rounds.len());
    }
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
    let reasons = void_reasons(evidence);
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
        rounds,
    })
}

/// Why nothing may be concluded from a case's figures.
fn void_reasons(evidence: &Evidence<'_>) -> Vec<String> {
    let outcome = evidence.shown();
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
    if evidence.summaries().iter().any(|summary| !summary.reliable) {
        reasons.push("an interval is unreliable: its batches depend on one another".into());
    }
    let disturbed =
        |case: &&record::CaseResult| case.limited_by == record::LimitedBy::OtherPrograms;
    if let Some(limit) = whole.filter(disturbed).and_then(|case| case.limit.as_ref()) {
        reasons.push(limit.why.clone());
    }
    reasons
}
