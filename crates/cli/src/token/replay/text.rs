//! A replay in words: what is mapped to what, before anything runs; there and here, afterwards.

use std::collections::BTreeMap;
use std::fmt::Write;

use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::Rv;
use tapstone_replay::{Due, KeyCertainty, MappedKey, ReplayPlan, VerifiedWork, replayed_span};
use tapstone_text::{counted, thousands, three_digits};
use tapstone_token::controller::ReplayOutcome;
use tapstone_workload::{
    OperationKind, TransactionRule, Workload, operations, transactions, transactions_by,
};

use crate::workload::{aligned, duration_text, kind_name};

/// A replay that is over.
pub(super) struct Replay<'a> {
    pub(super) workload: &'a Workload,
    pub(super) plan: &'a ReplayPlan,
    pub(super) outcome: &'a ReplayOutcome,
    /// The part of the recording that is replayed.
    pub(super) recorded: &'a Workload,
    /// What was measured, as a workload.
    pub(super) measured: &'a Workload,
    /// How far results were judged.
    pub(super) verified: BTreeMap<OperationKind, VerifiedWork>,
}

/// Keys and what is left out.
pub(super) fn plan_text(plan: &ReplayPlan) -> String {
    let mut text = String::new();
    if !plan.keys.is_empty() {
        text.push_str("keys of the recording, and what is made for them\n");
        let heading = ["key", "made", "used to", "known", "operations"].map(str::to_owned);
        let rows = plan.keys.iter().map(key_row);
        text.push_str(&aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()));
    }
    if !plan.made.is_empty() {
        text.push_str("keys that calls of the recording make, made here by the same calls\n");
        let heading = ["function", "made", "known", "keys"].map(str::to_owned);
        let rows = plan.made.iter().map(|made| {
            let known = certainty_text(made.certainty).to_owned();
            [made.function.to_owned(), made.spec.to_string(), known, thousands(made.count)]
        });
        text.push_str(&aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()));
    }
    if plan.stand_in_reads > 0 {
        let _ = writeln!(text, "{}", stand_in_text(plan.stand_in_reads));
    }
    if !plan.skipped.is_empty() {
        text.push_str("not replayed\n");
        let heading = ["function", "calls", "why"].map(str::to_owned);
        let rows = plan.skipped.iter().map(|skipped| {
            [skipped.function.to_owned(), thousands(skipped.count), skipped.reason.to_string()]
        });
        text.push_str(&aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()));
    }
    text
}

/// Operations whose mechanism the token does not list.
pub(super) fn unlisted_text(unlisted: &BTreeMap<OperationKind, u64>) -> String {
    let heading = ["operation", "count"].map(str::to_owned);
    let rows = unlisted.iter().map(|(kind, count)| [kind_name(kind), thousands(*count)]);
    let table = aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>());
    format!("the token does not list the mechanisms of these; they are tried all the same\n{table}")
}

/// One of them, for a record.
pub(super) fn unlisted_sentence((kind, count): (&OperationKind, &u64)) -> String {
    let times = counted(*count, "time", "times");
    let name = kind_name(kind);
    format!("{name}, asked for {times}, is of a mechanism that the token does not list")
}

/// What is read instead of objects that a recording does not tell the kind of.
pub(super) fn stand_in_text(reads: u64) -> String {
    format!(
        "{} of objects that no operation used read a small session object instead: as many \
         attributes, of those that every object has. Their times are not like for like",
        counted(reads, "C_GetAttributeValue", "C_GetAttributeValue")
    )
}

const fn certainty_text(certainty: KeyCertainty) -> &'static str {
    match certainty {
        KeyCertainty::Told => "told",
        KeyCertainty::Seen => "by what it made",
        KeyCertainty::Assumed => "assumed",
        KeyCertainty::Unknown => "not known",
    }
}

fn key_row(key: &MappedKey) -> [String; 5] {
    let known = certainty_text(key.certainty);
    let always = if key.always_authenticate { ", without the login before each use" } else { "" };
    [
        key.object.to_string(),
        key.spec.map_or_else(|| "nothing".to_owned(), |spec| spec.to_string()),
        format!("{}{always}", key.uses),
        known.to_owned(),
        thousands(key.operations),
    ]
}

/// This application, there and here.
pub(super) fn replay_text(replay: &Replay<'_>) -> String {
    let mut text = String::new();
    let made: usize = replay.outcome.threads.iter().flatten().map(|it| it.times.len()).sum();
    let threads: usize = replay.plan.processes.iter().map(|process| process.threads.len()).sum();
    let processes = replay.plan.processes.len() as u64;
    let _ = writeln!(text, "replay · {} calls", thousands(made as u64));
    let _ = writeln!(
        text,
        "  load        {} in {}",
        counted(threads as u64, "thread", "threads"),
        counted(processes, "process", "processes")
    );
    let recorded = replayed_span(replay.recorded);
    let _ = writeln!(
        text,
        "  time        {} here, {} there, from the first call to the last",
        duration_text(replayed_span(replay.measured)),
        duration_text(recorded)
    );
    let _ = writeln!(text, "  schedule    {}", schedule_text(replay));
    let _ = writeln!(text, "  verified    {}", verified_text(&replay.verified));
    let rule = transactions(replay.recorded).rule;
    let _ = writeln!(text, "  transaction {rule}");
    text.push_str("there and here\n");
    text.push_str(&there_and_here(replay));
    for (kind, found) in replay.verified.iter().filter(|(_, found)| found.wrong > 0) {
        let wrong = counted(found.wrong, "result", "results");
        let _ = writeln!(text, "  ! {}: {wrong} of this token are wrong", kind_name(kind));
    }
    for (function, code, count) in replay.differing() {
        let count = counted(count, "time", "times");
        let _ = writeln!(text, "  ! {function} failed here with {code}, {count}, and not there");
    }
    match replay.not_called() {
        0 => {}
        count => {
            let calls = counted(count, "call was", "calls were");
            let _ = writeln!(
                text,
                "  ! {calls} not made here: the session or the object for it was not there"
            );
        }
    }
    let found = replay.other_counts();
    if found > 0 {
        let searches = counted(found, "search", "searches");
        let _ = writeln!(text, "  ! {searches} found another number of objects here than there");
    }
    if replay.plan.stand_in_reads > 0 {
        let _ = writeln!(text, "  ! {}", stand_in_text(replay.plan.stand_in_reads));
    }
    if let Some(cut_short) = cut_short_text(&replay.verified) {
        let _ = writeln!(text, "  ! {cut_short}");
    }
    if replay.outcome.interrupted {
        text.push_str("  ! the replay was interrupted: calls are missing here\n");
    }
    text
}

/// How many results were judged, and what came of it.
fn verified_text(verified: &BTreeMap<OperationKind, VerifiedWork>) -> String {
    let sum = |of: fn(&VerifiedWork) -> u64| verified.values().map(of).sum::<u64>();
    let eligible = sum(|found| found.eligible);
    if eligible == 0 {
        return "nothing: software cannot judge these results, or was not asked to".to_owned();
    }
    let checked = sum(|found| found.checked);
    let wrong = match (checked, sum(|found| found.wrong)) {
        (0, _) => "so that nothing is known of them".to_owned(),
        (_, 0) => "all of those right".to_owned(),
        (_, wrong) => format!("{} wrong", thousands(wrong)),
    };
    let is_sample =
        (1..eligible).contains(&checked) && !verified.values().any(|it| it.is_cut_short);
    format!(
        "{} of {} results that software can judge{}, {wrong}",
        thousands(checked),
        thousands(eligible),
        if is_sample { ", drawn at random" } else { "" }
    )
}

/// What follows where not all results that were drawn were judged in the time for it.
pub(super) fn cut_short_text(verified: &BTreeMap<OperationKind, VerifiedWork>) -> Option<String> {
    let is_cut_short = verified.values().any(|found| found.is_cut_short);
    is_cut_short.then(|| {
        "not all results that were drawn were judged, for want of time or room or because of an \
         interruption: nothing follows for those that were not"
            .to_owned()
    })
}

/// How late calls were whose moments are fixed.
fn schedule_text(replay: &Replay<'_>) -> String {
    let mut late: Vec<u64> = Vec::new();
    for (process, threads) in replay.plan.processes.iter().zip(&replay.outcome.threads) {
        for (planned, went) in process.threads.iter().zip(threads) {
            let both = planned.steps.iter().zip(&went.times);
            let fixed = both.filter(|(step, _)| matches!(step.due, Due::At(_)));
            late.extend(fixed.map(|(_, time)| (time.late - time.waited).0));
        }
    }
    late.sort_unstable();
    format!(
        "delay of calls at recorded moments: p50 {}, p99 {}, longest {}",
        duration_text(quantile(&late, 0.50)),
        duration_text(quantile(&late, 0.99)),
        duration_text(Nanos(late.last().copied().unwrap_or_default())),
    )
}

/// One of sorted values.
pub(super) fn quantile(sorted: &[u64], share: f64) -> Nanos {
    let place = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    Nanos(sorted.get(place).copied().unwrap_or_default())
}

/// By operation and by transaction: counts, and latencies beside each other.
fn there_and_here(replay: &Replay<'_>) -> String {
    let rule = transactions(replay.recorded).rule;
    let there = latencies(replay.recorded, &rule);
    let here = latencies(replay.measured, &rule);
    let heading =
        ["operation", "there", "here", "p50 there", "p50 here", "ratio", "p99 there", "p99 here"];
    let mut rows = vec![heading.map(str::to_owned)];
    for (name, (count, recorded)) in &there {
        let nothing = (0, Vec::new());
        let (_, measured) = here.get(name).unwrap_or(&nothing);
        let time = |sorted: &[u64], share: f64| match sorted {
            [] => "–".to_owned(),
            _ => duration_text(quantile(sorted, share)),
        };
        // Fewer than ten operations beyond a quantile tell nothing of it.
        let tail = |sorted: &[u64]| match sorted.len() {
            0..1_000 => "–".to_owned(),
            _ => time(sorted, 0.99),
        };
        let ratio = match (quantile(recorded, 0.5).0, quantile(measured, 0.5).0) {
            (0, _) | (_, 0) => "–".to_owned(),
            (there, here) => format!("×{}", three_digits(here as f64 / there as f64)),
        };
        rows.push([
            name.clone(),
            thousands(*count),
            thousands(measured.len() as u64),
            time(recorded, 0.5),
            time(measured, 0.5),
            ratio,
            tail(recorded),
            tail(measured),
        ]);
    }
    aligned(&rows)
}

/// By kind of operation, and of transactions, how many came to their end and the sorted latencies of those
/// that did not fail here anew: on neither side, because an error comes at once and others may take another
/// time.
fn latencies(workload: &Workload, rule: &TransactionRule) -> BTreeMap<String, (u64, Vec<u64>)> {
    let mut all: BTreeMap<String, (u64, Vec<u64>)> = BTreeMap::new();
    let mut add = |name: String, time: Nanos, fails_anew: bool| {
        let (count, times) = all.entry(name).or_default();
        *count += 1;
        times.extend((!fails_anew).then_some(time.0));
    };
    for operation in operations(workload).into_iter().filter(|it| it.is_ended) {
        add(kind_name(&operation.kind), operation.in_calls, operation.fails_anew);
    }
    for it in transactions_by(rule, workload).into_iter().filter(|it| it.is_ended) {
        add("transaction".to_owned(), it.end - it.start, it.fails_anew);
    }
    all.values_mut().for_each(|(_, times)| times.sort_unstable());
    all
}

impl Replay<'_> {
    /// Calls that failed here and not there: function, code, how many.
    pub(super) fn differing(&self) -> impl Iterator<Item = (&'static str, Rv, u64)> {
        let mut counts: BTreeMap<(&'static str, u64), u64> = BTreeMap::new();
        self.each_call(|call, time| {
            if time.is_called && time.fails_anew(call) {
                *counts.entry((call.function, time.result)).or_default() += 1;
            }
        });
        counts.into_iter().map(|((function, code), count)| (function, Rv(code), count))
    }

    /// Calls that were not made, because their session or object was not there.
    pub(super) fn not_called(&self) -> u64 {
        let mut count = 0;
        self.each_call(|_, time| count += u64::from(!time.is_called));
        count
    }

    /// Searches that found more or fewer objects.
    fn other_counts(&self) -> u64 {
        let mut count = 0;
        self.each_call(|call, time| {
            let differs = time.output != call.output_bytes && time.result == call.result;
            count += u64::from(call.function == "C_FindObjects" && differs);
        });
        count
    }

    /// Each call that was made, beside the recorded one.
    fn each_call(
        &self,
        mut take: impl FnMut(&tapstone_workload::WorkloadCall, &tapstone_replay::ReplayedCall),
    ) {
        for (process, threads) in self.plan.processes.iter().zip(&self.outcome.threads) {
            for (planned, went) in process.threads.iter().zip(threads) {
                let origin = &self.workload.threads[planned.origin as usize];
                for (step, time) in planned.steps.iter().zip(&went.times) {
                    take(&origin.calls[step.origin as usize], time);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_nobody_checked_are_not_called_right() {
        let said_of = |found| {
            let kind = OperationKind { function: "C_Sign", mechanism: None };
            verified_text(&BTreeMap::from([(kind, found)]))
        };
        let found = |eligible, checked, wrong| VerifiedWork {
            eligible,
            checked,
            wrong,
            is_cut_short: false,
        };
        let said = |eligible, checked, wrong| said_of(found(eligible, checked, wrong));
        assert!(said(5, 3, 0).contains("at random") && !said(5, 5, 0).contains("at random"));
        let cut_short = VerifiedWork { is_cut_short: true, ..found(5, 3, 0) };
        assert!(!said_of(cut_short).contains("at random"));
        let warned = |found| {
            let kind = OperationKind { function: "C_Sign", mechanism: None };
            cut_short_text(&BTreeMap::from([(kind, found)])).is_some()
        };
        assert!(warned(cut_short) && !warned(found(5, 3, 0)));
        assert!(said(0, 0, 0).starts_with("nothing"));
        assert!(said(5, 0, 0).contains("0 of 5") && !said(5, 0, 0).contains("right"));
        assert!(said(5, 3, 0).contains("3 of 5") && said(5, 3, 0).ends_with("all of those right"));
        assert!(said(5, 3, 1).ends_with("1 wrong"));
    }
}
