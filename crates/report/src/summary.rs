//! What was asked of a record and what came out, a line each: the first thing on a page.

use tapstone_record::{
    Change, ComparedCase, Comparison, Judgement, Knee, LimitedBy, Record, TargetKind, Trial,
    Verdict,
};
use tapstone_text::counted;

use crate::figures::{self, ms, with_interval};
use crate::sections::span::{Span, Tint};
use crate::sections::within::found_in_words;
use crate::words::quantile_name;
use crate::{verdict, words};

/// A question, its answer, and what the answer comes to.
pub(crate) struct Answer {
    pub(crate) asked: String,
    /// A figure with its interval, where there is one.
    pub(crate) answer: String,
    pub(crate) verdict: Span,
    /// The title of the section that says more; nothing where the whole record does.
    pub(crate) section: &'static str,
}

impl Answer {
    fn new(asked: impl Into<String>, answer: impl Into<String>, section: &'static str) -> Self {
        let verdict = Span::plain("");
        Self { asked: asked.into(), answer: answer.into(), verdict, section }
    }

    fn judged(self, verdict: impl Into<String>, tint: Tint) -> Self {
        Self { verdict: Span::new(verdict.into(), tint), ..self }
    }
}

/// All that was asked of a record. There is always a line.
pub(crate) fn answers(record: &Record) -> Vec<Answer> {
    let mut all = claims(record);
    all.extend(record.comparison.iter().flat_map(compared));
    all.extend(record.knee.as_ref().map(knee));
    all.extend(within(record));
    all.extend(door(record));
    all.extend(findings(record));
    all.extend(trials(record));
    all.extend(record.side_by_side.as_ref().map(|all| {
        let devices = counted(all.sides.len() as u64, "device", "devices");
        let rows = counted(all.cases.len() as u64, "operation", "operations");
        Answer::new("Which device is faster?", format!("{rows} on {devices}"), "")
    }));
    if all.is_empty() {
        all.push(results(record));
    }
    // A traced program's calls may fail as they please.
    let trouble =
        verdict::wrong(&record.results).filter(|_| record.target.kind != TargetKind::Command);
    all.splice(
        0..0,
        trouble.map(|trouble| {
            Answer::new("Did all go well?", trouble.text, "results").judged("no", trouble.tint)
        }),
    );
    all
}

const fn tint(verdict: Verdict) -> Tint {
    match verdict {
        Verdict::Met => Tint::Good,
        Verdict::Missed | Verdict::Void => Tint::Bad,
        Verdict::Undecided => Tint::Caution,
    }
}

fn claims(record: &Record) -> Vec<Answer> {
    let line = |claim: &tapstone_record::Claim| {
        let measured = claim.measured.as_ref().map_or_else(
            || "no figure".to_owned(),
            |figure| crate::sections::measured_for_claim(figure, claim),
        );
        Answer::new(format!("Does it hold: {}", claim.text), measured, "claims")
            .judged(words::verdict(claim.verdict), tint(claim.verdict))
    };
    record.claims.iter().map(line).collect()
}

fn compared(of: &Comparison) -> Vec<Answer> {
    let asked = "How does the candidate compare with the baseline?";
    let mut all = Vec::new();
    if let [row] = &of.cases[..] {
        let ratio = format!("× {}", with_interval(&row.ratio, figures::ratio));
        let asked = format!("{}: {asked}", row.operation);
        all.push(
            Answer::new(asked, ratio, "comparison")
                .judged(words::change(row.verdict), of_change(row.verdict)),
        );
    } else if !of.cases.is_empty() {
        let part = |change: Change| {
            let count = of.cases.iter().filter(|row| row.verdict == change).count();
            (count > 0).then(|| format!("{count} {}", words::change(change)))
        };
        let parts = [Change::Faster, Change::Slower, Change::Inconclusive].map(part);
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let rows = counted(of.cases.len() as u64, "comparison", "comparisons");
        all.push(Answer::new(asked, rows, "comparison").judged(parts.join(", "), Tint::Plain));
    }
    if let Some(threshold) = of.threshold {
        let by = figures::share(threshold.fail_above);
        let line = Answer::new(format!("Is anything slower by more than {by}?"), "", "comparison");
        let undecided = |row: &&ComparedCase| row.threshold == Some(Judgement::Undecided);
        let undecided = of.cases.iter().filter(undecided).count();
        all.push(match (threshold.exceeded, of.not_compared.len(), undecided) {
            (true, ..) => line.judged("EXCEEDED", Tint::Bad),
            (false, 0, 0) => line.judged("no", Tint::Good),
            (false, 0, open) => line.judged(format!("{open} UNDECIDED"), Tint::Caution),
            (false, lost, _) => line.judged(format!("VOID: {lost} not compared"), Tint::Bad),
        });
    }
    all
}

const fn of_change(change: Change) -> Tint {
    match change {
        Change::Faster => Tint::Good,
        Change::Slower => Tint::Bad,
        Change::Inconclusive => Tint::Caution,
    }
}

fn knee(knee: &Knee) -> Answer {
    let asked = format!("How fast can {} go?", knee.operation);
    let answer = knee.plateau.map_or_else(
        || "no plateau was reached".to_owned(),
        |plateau| {
            let at = knee.concurrency.map(|at| format!(", from {}", words::concurrency(at)));
            format!("{}{}", with_interval(&plateau, figures::rate), at.unwrap_or_default())
        },
    );
    let limit = knee.limit.as_ref().map_or(LimitedBy::Unknown, |limit| limit.limited_by);
    let tint = if limit == LimitedBy::Unknown { Tint::Caution } else { Tint::Plain };
    let limit = words::limited_by(limit);
    Answer::new(asked, answer, "knee").judged(format!("limited by: {limit}"), tint)
}

fn within(record: &Record) -> Option<Answer> {
    let within = record.rate_within.as_ref()?;
    let bound = format!("{} <= {}", quantile_name(within), within.bound_ns);
    let asked = format!("Highest rate of {} with {bound}?", within.operation);
    let section = "highest rate within a latency";
    Some(match (within.rate, within.at_least) {
        (Some(rate), _) => Answer::new(asked, with_interval(&rate, figures::rate), section)
            .judged("found", Tint::Good),
        (None, Some(rate)) => Answer::new(asked, format!("at least {rate}"), section)
            .judged("the end is not known", Tint::Caution),
        (None, None) => {
            Answer::new(asked, found_in_words(within), section).judged("none found", Tint::Caution)
        }
    })
}

fn door(record: &Record) -> Vec<Answer> {
    let mut all = Vec::new();
    if let Some(budget) = &record.budget {
        let whole = budget.total_with_self_check_ns.as_ref().unwrap_or(&budget.total_ns);
        let answer = match whole.high > whole.low {
            true => with_interval(whole, ms),
            false => ms(whole.estimate),
        };
        let line = |asked: String| Answer::new(asked, answer.clone(), "budget");
        all.push(match (budget.limit_ns, budget.verdict) {
            (Some(limit), Some(verdict)) => {
                line(format!("Does {} stay within {}?", budget.operation, ms(limit.0 as f64)))
                    .judged(words::verdict(verdict), tint(verdict))
            }
            _ => line(format!("How long does {} take?", budget.operation)),
        });
    }
    if let Some(what_if) = &record.what_if {
        let asked = format!("What gets it under {}?", ms(what_if.target_ns.0 as f64));
        let named = |set: &tapstone_record::WhatIfSet| match &set.waterfall[..] {
            [] => "nothing has to be changed".to_owned(),
            made => made.iter().map(|it| it.change.as_str()).collect::<Vec<_>>().join(" + "),
        };
        all.push(match what_if.sets.first() {
            Some(set) => {
                let answer = format!("{}: {}", named(set), ms(set.total_ns));
                let verdict =
                    if set.probability.is_some() { "within, on average" } else { "within" };
                Answer::new(asked, answer, "").judged(verdict, Tint::Good)
            }
            None => {
                let fastest = format!("the fastest takes {}", ms(what_if.fastest.total_ns));
                Answer::new(asked, fastest, "").judged("no set of changes", Tint::Bad)
            }
        });
    }
    if let Some(queue) = &record.queue {
        let asked = format!("How long do {:.0} people an hour wait?", queue.arrivals_per_hour);
        let mean = queue.wait_ns.mean.map(|mean| with_interval(&mean, figures::time));
        let (verdict, tint) = match queue.overloaded {
            true => ("overloaded", Tint::Bad),
            false if crate::words::too_few_people(queue).is_some() => ("undecided", Tint::Caution),
            false => ("keeps up", Tint::Plain),
        };
        let mean = mean.unwrap_or_else(|| figures::NONE.into());
        all.push(Answer::new(asked, mean, "queue").judged(verdict, tint));
    }
    all
}

fn findings(record: &Record) -> Option<Answer> {
    let first = record.findings.first()?;
    let saving = first
        .saving
        .map_or_else(String::new, |saving| format!(", {} of it avoidable", figures::span(&saving)));
    let kind = words::finding(&first.kind);
    let answer = format!("{kind} in {}: {}{saving}", first.place, first.time_ns);
    let all = counted(record.findings.len() as u64, "finding", "findings");
    Some(Answer::new("Where is time wasted?", answer, "findings").judged(all, Tint::Caution))
}

fn trials(record: &Record) -> Vec<Answer> {
    let section = if record.target.kind == TargetKind::Door { "strategies" } else { "trials" };
    let line = |trial: &Trial| {
        let answer = format!("× {}", with_interval(&trial.speedup, figures::ratio));
        let asked = format!("How much faster with {}?", trial.fix);
        let (text, tint) = match (trial.behaviour, trial.verdict) {
            (tapstone_record::Behaviour::Differs, _) => {
                ("no fix: it does something else", Tint::Bad)
            }
            (_, verdict) => (words::change(verdict), of_change(verdict)),
        };
        Answer::new(asked, answer, section).judged(text, tint)
    };
    record.trials.iter().map(line).collect()
}

/// Nothing was concluded: the figures themselves.
fn results(record: &Record) -> Answer {
    let cases = &record.results;
    let asked = match &cases[..] {
        [] => "What was measured?".to_owned(),
        [case] => format!("How fast is {}?", case.operation),
        cases => {
            format!("How long do {} take?", counted(cases.len() as u64, "operation", "operations"))
        }
    };
    let answer = verdict::results(cases).map_or_else(|| "no figure".to_owned(), |span| span.text);
    Answer::new(asked, answer.trim_end_matches('.'), "results")
}
