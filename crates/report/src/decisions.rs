//! What a record decides beside its claims and comparisons, for programs that want a verdict each: a
//! door's budget, changes that reach a target, a queue, fixes that were tried, a rate within a latency.
//! For people [`crate::summary`] says it.

use tapstone_record::{
    Behaviour, Budget, RateWithin, RateWithinOutcome, Record, TargetKind, Trial, Verdict,
};

use crate::figures::{self, ms};
use crate::sections::within::found_in_words;
use crate::words::quantile_name;
use crate::{verdict, words};

/// A question with its verdict. `Met` also means that there was nothing to miss.
pub(crate) struct Decision {
    /// What kind of question it is, in one word.
    pub(crate) kind: &'static str,
    /// The question, the same in every run.
    pub(crate) question: String,
    pub(crate) verdict: Verdict,
    /// What was found, as a sentence.
    pub(crate) sentence: String,
}

pub(crate) fn decisions(record: &Record) -> Vec<Decision> {
    let mut all: Vec<Decision> = record.budget.iter().filter_map(of_budget).collect();
    all.extend(record.what_if.iter().map(|what_if| {
        let found = !what_if.sets.is_empty();
        Decision {
            kind: "what-if",
            question: within(&what_if.scenario.title, what_if.target_ns.0),
            verdict: if found { Verdict::Met } else { Verdict::Missed },
            sentence: verdict::what_if(what_if).text,
        }
    }));
    all.extend(record.queue.iter().map(|queue| Decision {
        kind: "queue",
        question: format!(
            "{}, {:.0} people an hour",
            queue.scenario.title, queue.arrivals_per_hour
        ),
        verdict: if queue.overloaded { Verdict::Missed } else { Verdict::Met },
        sentence: verdict::queue(queue).text,
    }));
    all.extend(record.rate_within.iter().map(of_rate_within));
    // The strategies of a door are no fixes: each is a dialogue of its own.
    if record.target.kind != TargetKind::Door {
        all.extend(record.trials.iter().map(of_trial));
    }
    all
}

fn within(what: &str, limit_ns: u64) -> String {
    format!("{what} within {}", ms(limit_ns as f64))
}

/// `None` without a limit: nothing was asked then.
fn of_budget(budget: &Budget) -> Option<Decision> {
    let scenario = budget.scenario.as_ref().map(|scenario| scenario.title.as_str());
    Some(Decision {
        kind: "budget",
        question: within(scenario.unwrap_or(&budget.operation), budget.limit_ns?.0),
        verdict: budget.verdict?,
        sentence: verdict::budget(budget).text,
    })
}

fn of_rate_within(of: &RateWithin) -> Decision {
    let found = of.outcome == RateWithinOutcome::Rate;
    Decision {
        kind: "search",
        question: format!("{}, a rate with {} <= {}", of.operation, quantile_name(of), of.bound_ns),
        verdict: if found { Verdict::Met } else { Verdict::Undecided },
        sentence: found_in_words(of),
    }
}

/// A fix under which the program does something else is none, whatever it gains. One that changed
/// nothing says nothing.
fn of_trial(trial: &Trial) -> Decision {
    let verdict = match trial.behaviour {
        Behaviour::Differs => Verdict::Missed,
        Behaviour::NotComparable => Verdict::Undecided,
        Behaviour::Same if trial.changed == Some(0) => Verdict::Undecided,
        Behaviour::Same => Verdict::Met,
    };
    let gain = figures::with_interval(&trial.speedup, figures::ratio);
    let did = match trial.behaviour {
        Behaviour::Same => "the program did the same",
        Behaviour::Differs => "the program did something else: it is no fix",
        Behaviour::NotComparable => "whether the program did the same is not known",
    };
    let change = words::change(trial.verdict);
    let sentence = format!("{gain} times as fast, {change}, and {did}");
    Decision { kind: "trial", question: trial.fix.clone(), verdict, sentence }
}
