//! Claims against what was measured.

use tapstone_measure::claim::{Bound, Claim, ClaimVerdict, Demand, KeyBits};
use tapstone_measure::interval::Estimate;
use tapstone_measure::summary::Summary;
use tapstone_record as record;
use tapstone_token::controller::{CaseOutcome, CasePlan, RoundsOutcome};

/// A claim with its text as the user wrote it.
pub(super) struct AskedClaim<'a> {
    pub(super) text: &'a str,
    pub(super) claim: &'a Claim,
}

/// What a claim is held against.
pub(super) struct Evidence<'a> {
    /// The case as the record has it: one of the rounds, or the best level of a search.
    pub(super) shown: &'a CaseOutcome,
    /// The rounds of the case, or of that level; `None` where a search found nothing to repeat.
    pub(super) rounds: Option<&'a RoundsOutcome>,
    /// The concurrency is the best that a search has found, and not the user's.
    pub(super) searched: bool,
}

impl Evidence<'_> {
    fn summaries(&self) -> &[Summary] {
        self.rounds.map_or(&[], |rounds| &rounds.rounds)
    }

    /// The figure of each round; none where one had too few operations for it.
    fn figures(&self, demand: Demand) -> Vec<f64> {
        let figure = |round: &Summary| demand.figure_in_round(round);
        self.summaries().iter().map(figure).collect::<Option<_>>().unwrap_or_default()
    }

    fn measured(&self, demand: Demand) -> Option<Estimate> {
        demand.figure(self.rounds?.shown.summary.as_ref()?)
    }

    /// The rate was still growing when the search ended, so that missing a rate says nothing.
    fn may_grow(&self, demand: Demand) -> bool {
        let ended_early = |case: &record::CaseResult| {
            use record::LimitedBy::{Interruption, SearchCap, Unknown};
            matches!(case.limited_by, SearchCap | Interruption | Unknown)
        };
        let about_rate = matches!(demand, Demand::Rate(_));
        self.searched && about_rate && self.shown.cases.iter().any(ended_early)
    }
}

/// What becomes of a claim about a case, measured or not.
pub(super) fn judge(
    asked: &AskedClaim<'_>,
    case: &CasePlan,
    evidence: &Evidence<'_>,
) -> anyhow::Result<record::Claim> {
    let bits = case.lanes.first().and_then(|lane| lane.variant.key_bits()).map(KeyBits);
    let target = asked.claim.target(bits)?;
    let figure = evidence.measured(target.demand);
    let rounds = evidence.figures(target.demand);
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
    let mut reasons = Vec::new();
    let mut outcomes = vec![evidence.shown];
    outcomes.extend(evidence.rounds.map(|rounds| &rounds.shown));
    let cases = || outcomes.iter().flat_map(|outcome| &outcome.cases);
    let wrong: u64 = cases().filter_map(|case| case.verification).map(|it| it.wrong).sum();
    if wrong > 0 {
        reasons.push(format!("{wrong} results were wrong"));
    }
    let status = |outcome| move |case: &record::CaseResult| case.status.outcome == outcome;
    if cases().any(status(record::Outcome::Partial)) {
        reasons.push("operations failed or workers dropped out".into());
    } else if !cases().all(status(record::Outcome::Ok)) || evidence.summaries().is_empty() {
        reasons.push("the case could not be measured".into());
    }
    if outcomes.iter().any(|outcome| outcome.interrupted) {
        reasons.push("the run was interrupted".into());
    }
    let Some(rounds) = evidence.rounds else { return reasons };
    match rounds.disturbed.first() {
        // It ends the rounds: those before are too few for an interval, which goes without saying.
        Some(why) => {
            let round = rounds.rounds.len();
            reasons.push(format!(
                "other programs disturbed round {round}, and no more were made: {why}"
            ));
        }
        None if rounds.shown.summary.as_ref().is_some_and(|over| !over.reliable) => {
            reasons.push("the interval over the rounds is unreliable".into());
        }
        None => {}
    }
    reasons
}
