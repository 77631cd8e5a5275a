//! What a record comes to, in a sentence or two: the first thing on a page.

use tapstone_record::{
    Behaviour, Budget, CaseResult, Change, ComparedCase, Comparison, Estimate, Finding, Judgement,
    Outcome, Queue, RateWithinOutcome, Record, TargetKind, Verdict, WhatIf,
};
use tapstone_text::counted;

use crate::figures::{self, ms, with_interval};
use crate::sections::span::{Span, Tint};
use crate::sections::trace::nothing_found;
use crate::sections::within::found_in_words;
use crate::text::clean;
use crate::words;

/// What was measured, as a title.
pub(crate) fn title(record: &Record) -> String {
    let target = &record.target;
    let named = |what: &str, name: &str| match name.trim() {
        "" => what.to_owned(),
        name => format!("{what} {name}"),
    };
    if let Some(comparison) = &record.comparison {
        return compared_title(comparison);
    }
    if let Some(all) = &record.side_by_side {
        return counted(all.sides.len() as u64, "device", "devices side by side");
    }
    let scenario = record.budget.as_ref().and_then(|budget| budget.scenario.as_ref());
    let scenario = scenario.or(record.what_if.as_ref().map(|what_if| &what_if.scenario));
    if let Some(scenario) = scenario.or(record.queue.as_ref().map(|queue| &queue.scenario)) {
        return named("Door:", &scenario.title);
    }
    let emulated = target.emulated.as_ref().map(|profile| profile.profile.as_str());
    let name = |card: &'_ tapstone_record::Card| match (&card.name, emulated) {
        (Some(name), _) => name.clone(),
        (None, Some(profile)) => format!("emulated by profile {profile}"),
        (None, None) => card.atr.clone(),
    };
    let card = target.card.as_ref().map(name).unwrap_or_default();
    match target.kind {
        TargetKind::Token => {
            named("Token", target.tokens.first().map_or("", |token| token.label.as_str()))
        }
        TargetKind::Card => named("Card", &card),
        TargetKind::Pcsc => {
            named("PC/SC on", target.reader.as_ref().map_or("", |reader| reader.name.as_str()))
        }
        TargetKind::Door => named("A card at a door,", &card),
        TargetKind::Command => {
            let path = target.program.as_ref().map_or("", |program| program.path.as_str());
            named("Program", path.rsplit('/').next().unwrap_or(path))
        }
    }
}

/// Sides are called by their files without folder and ending; two of one name, or without one, by
/// what was compared.
fn compared_title(of: &Comparison) -> String {
    let short = |name: &str| {
        let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
        file.strip_suffix(".json").unwrap_or(file).trim().to_owned()
    };
    let candidate = short(&of.candidate.name);
    let baseline = short(&of.baseline.name);
    if candidate.is_empty() || baseline.is_empty() || candidate == baseline {
        let what = match &of.cases[..] {
            [only] => only.operation.clone(),
            rows => counted(rows.len() as u64, "operation", "operations"),
        };
        return format!("Two runs compared: {what}");
    }
    format!("{candidate} against {baseline}")
}

/// What the record says, sentence by sentence.
#[must_use]
pub fn sentences(record: &Record) -> Vec<String> {
    verdict_spans(record).into_iter().map(|span| clean(&span.text, true)).collect()
}

/// What the record says, most important first, with the weight of each sentence.
pub(crate) fn verdict_spans(record: &Record) -> Vec<Span> {
    let mut said = claims(record);
    if let Some(comparison) = &record.comparison {
        said.extend(compared(comparison));
    }
    said.extend(knee(record));
    said.extend(rate_within(record));
    said.extend(door(record));
    said.extend(record.findings.first().map(|first| found(first, record.findings.len())));
    match record.target.kind {
        TargetKind::Door => said.extend(strategies(record)),
        _ => said.extend(tried(record)),
    }
    if said.is_empty() && record.search.is_some() && record.command_time.is_some() {
        let (tint, nothing) = nothing_found(record);
        said.push(Span::new(nothing, tint));
    }
    if said.is_empty() {
        said.extend(results(&record.results));
    }
    // A traced program's calls may fail as they please.
    if record.target.kind != TargetKind::Command {
        said.splice(0..0, wrong(&record.results));
    }
    said
}

/// A card in the ways that were tried.
fn strategies(record: &Record) -> Option<Span> {
    let fastest = record
        .trials
        .iter()
        .min_by(|one, other| one.after_ns.estimate.total_cmp(&other.after_ns.estimate))?;
    let whole = with_interval(&fastest.before_ns, figures::time);
    let least = with_interval(&fastest.after_ns, figures::time);
    let times = figures::ratio(fastest.speedup.estimate);
    let text =
        format!("{whole} by the baseline; {least} by {}, {times} times as fast.", fastest.fix);
    Some(Span::plain(text))
}

/// What must be known before any figure.
pub(crate) fn wrong(cases: &[CaseResult]) -> Option<Span> {
    // What a device does not offer is no trouble: the table says so.
    let supported = |case: &&CaseResult| case.status.outcome != Outcome::Unsupported;
    let troubled =
        cases.iter().filter(supported).filter(|case| words::trouble(case).is_some()).count() as u64;
    let wrong = cases
        .iter()
        .filter_map(|case| case.verification)
        .fold(0u64, |sum, it| sum.saturating_add(it.wrong));
    if wrong > 0 {
        let text = format!("{} were WRONG.", counted(wrong, "result", "results"));
        return Some(Span::new(text, Tint::Bad));
    }
    let text = format!(
        "{} of {} did not go well.",
        troubled,
        counted(cases.len() as u64, "operation", "operations")
    );
    (troubled > 0).then(|| Span::new(text, Tint::Caution))
}

fn claims(record: &Record) -> Vec<Span> {
    let sentence = |claim: &tapstone_record::Claim| {
        let text = format!("{}: {}", words::verdict(claim.verdict), claim.text);
        let tint = match claim.verdict {
            Verdict::Met => Tint::Good,
            Verdict::Missed | Verdict::Void => Tint::Bad,
            Verdict::Undecided => Tint::Caution,
        };
        Span::new(text, tint)
    };
    record.claims.iter().map(sentence).collect()
}

fn knee(record: &Record) -> Option<Span> {
    let knee = record.knee.as_ref()?;
    let Some(plateau) = &knee.plateau else {
        let limit = knee.limit.as_ref().map(|limit| format!(": {}", limit.why));
        let text =
            format!("{}: no plateau was reached{}.", knee.operation, limit.unwrap_or_default());
        return Some(Span::new(text, Tint::Caution));
    };
    let plateau = with_interval(plateau, figures::rate);
    let text = match knee.concurrency {
        Some(at) => format!(
            "{} peaks at {plateau}; {} give 95 % of that.",
            knee.operation,
            words::concurrency(at)
        ),
        None => format!("{} peaks at {plateau}.", knee.operation),
    };
    Some(Span::plain(text))
}

fn rate_within(record: &Record) -> Option<Span> {
    let within = record.rate_within.as_ref()?;
    let text = format!("{}: {}", within.operation, found_in_words(within));
    Some(match within.outcome {
        RateWithinOutcome::Rate => Span::plain(text),
        _ => Span::new(text, Tint::Caution),
    })
}

fn compared(of: &Comparison) -> Vec<Span> {
    let verdicts = |change| of.cases.iter().filter(|row| row.verdict == change).count();
    let mut said = Vec::new();
    if let [case] = &of.cases[..] {
        let ratio = with_interval(&case.ratio, figures::ratio);
        let text = format!(
            "{}: candidate over baseline {ratio}, {}{}.",
            case.operation,
            words::change(case.verdict),
            words::provenance_marks(case)
        );
        said.push(Span::plain(text));
    } else if !of.cases.is_empty() {
        let parts = [Change::Faster, Change::Slower, Change::Inconclusive]
            .map(|change| format!("{} {}", verdicts(change), words::change(change)));
        let all = counted(of.cases.len() as u64, "comparison", "comparisons");
        said.push(Span::plain(format!("Of {all}: {}.", parts.join(", "))));
    }
    if let Some(threshold) = of.threshold {
        let by = figures::share(threshold.fail_above);
        let undecided = |row: &&ComparedCase| row.threshold == Some(Judgement::Undecided);
        let undecided = of.cases.iter().filter(undecided).count();
        let (text, tint) = match (threshold.exceeded, undecided) {
            (true, _) => {
                (format!("Slower by more than {by}: the threshold is EXCEEDED."), Tint::Bad)
            }
            (false, 0) => (format!("Nothing is slower by more than {by}."), Tint::Good),
            (false, _) => (
                format!(
                    "Nothing is surely slower by more than {by}; {undecided} of {} undecided.",
                    of.cases.len()
                ),
                Tint::Caution,
            ),
        };
        said.push(Span::new(text, tint));
    }
    if !of.not_compared.is_empty() {
        let lost = counted(of.not_compared.len() as u64, "operation", "operations");
        let text = format!("{lost} CANNOT be compared: of these nothing is known.");
        said.push(Span::new(text, Tint::Bad));
    }
    said
}

fn door(record: &Record) -> Vec<Span> {
    let mut said: Vec<Span> = record.budget.iter().map(budget).collect();
    said.extend(record.what_if.as_ref().map(what_if));
    said.extend(record.queue.as_ref().map(queue));
    said
}

/// What one authentication takes, against its target if there is one.
pub(crate) fn budget(budget: &Budget) -> Span {
    let whole = budget.total_with_self_check_ns.as_ref().unwrap_or(&budget.total_ns).estimate;
    let (Some(limit), Some(verdict)) = (budget.limit_ns, budget.verdict) else {
        return Span::plain(format!("{} in all.", ms(whole)));
    };
    let limit = limit.0 as f64;
    let off = ms((whole - limit).abs());
    let (how, tint) = match verdict {
        Verdict::Met => (format!("{off} to spare"), Tint::Good),
        Verdict::Missed => (format!("{off} too long"), Tint::Bad),
        Verdict::Undecided | Verdict::Void => ("not known".into(), Tint::Caution),
    };
    let word = words::verdict(verdict);
    let text = format!("{} against a target of {}: {word}, {how}.", ms(whole), ms(limit));
    Span::new(text, tint)
}

/// The fewest changes that reach the target, or how near the fastest come.
pub(crate) fn what_if(what_if: &WhatIf) -> Span {
    let base = ms(what_if.base_ns);
    let target = ms(what_if.target_ns.0 as f64);
    let Some(set) = what_if.sets.first() else {
        let fastest = ms(what_if.fastest.total_ns);
        let text = format!("No set of changes reaches {target}: the fastest takes {fastest}.");
        return Span::new(text, Tint::Bad);
    };
    if set.waterfall.is_empty() {
        return Span::new(format!("{base} as it is: within {target}."), Tint::Good);
    }
    let changes: Vec<&str> = set.waterfall.iter().map(|it| it.change.as_str()).collect();
    let total = ms(set.total_ns);
    let changes = changes.join(" + ");
    let within = words::within(set, &target);
    Span::new(format!("{base} becomes {total} with {changes}: {within}."), Tint::Good)
}

/// How long people wait, or that no time describes it.
pub(crate) fn queue(queue: &Queue) -> Span {
    if let Some(text) = words::unbounded_queue(queue) {
        return Span::new(text, Tint::Bad);
    }
    let mean = queue
        .wait_ns
        .mean
        .map_or_else(|| figures::NONE.into(), |mean| with_interval(&mean, figures::time));
    let text = format!(
        "{:.0} people an hour wait {mean} on average; the door's utilisation is {}.",
        queue.arrivals_per_hour,
        figures::share(queue.utilisation)
    );
    if let Some(doubt) = words::too_few_people(queue) {
        return Span::new(format!("Undecided: {doubt}"), Tint::Caution);
    }
    Span::new(text, if queue.overloaded { Tint::Bad } else { Tint::Plain })
}

fn found(first: &Finding, all: usize) -> Span {
    let saving = first.saving.map_or(String::new(), |saving| {
        format!("; removing it saves {}, as predicted", figures::span(&saving))
    });
    let more = match all {
        1 => String::new(),
        all => format!(" The largest of {all} findings."),
    };
    let kind = words::finding(&first.kind);
    let text = format!("{kind} in {}: {}{saving}.{more}", first.place, first.time_ns);
    Span::new(text, Tint::Caution)
}

fn tried(record: &Record) -> Vec<Span> {
    let sentence = |trial: &tapstone_record::Trial| {
        let Estimate { estimate, low, high } = trial.speedup;
        let same = match trial.behaviour {
            Behaviour::Same => ", and the program did the same",
            Behaviour::Differs => ", but the program did something else: it is no fix",
            Behaviour::NotComparable => "",
        };
        let times = figures::ratio(estimate);
        let tint = tint(trial.verdict, trial.behaviour);
        let low = figures::ratio(low);
        let high = figures::ratio(high);
        let text = format!("{}: {times} times as fast ({low} … {high}){same}.", trial.fix);
        Span::new(text, tint)
    };
    record.trials.iter().map(sentence).collect()
}

fn tint(verdict: Change, behaviour: Behaviour) -> Tint {
    match (verdict, behaviour) {
        (_, Behaviour::Differs) => Tint::Bad,
        (Change::Faster, _) => Tint::Good,
        (Change::Slower, _) => Tint::Caution,
        (Change::Inconclusive, _) => Tint::Plain,
    }
}

/// Nothing was concluded: the only figure, or how many there are and which is the longest.
pub(crate) fn results(cases: &[CaseResult]) -> Option<Span> {
    let median =
        |case: &CaseResult| case.latency_ns.and_then(|latency| latency.p50.or(latency.mean));
    if let [case] = cases {
        let rate = words::rate_of(case).map(|rate| with_interval(&rate, figures::rate));
        let median = median(case).map(|it| format!("median {}", with_interval(&it, figures::time)));
        let offered = case.load.rate_per_second;
        let offered = offered.map(|rate| format!("{} offered", figures::rate(rate.0)));
        let parts: Vec<String> = [offered, rate, median].into_iter().flatten().collect();
        let said = !parts.is_empty();
        return said.then(|| Span::plain(format!("{}: {}.", case.operation, parts.join(", "))));
    }
    let known = cases.iter().filter_map(|case| Some((case, median(case)?)));
    let longest = known.max_by(|(_, one), (_, other)| one.estimate.total_cmp(&other.estimate));
    let (case, median) = longest?;
    let all = counted(cases.len() as u64, "operation", "operations");
    let median = with_interval(&median, figures::time);
    Some(Span::plain(format!("{all}; the longest is {}, median {median}.", case.operation)))
}
