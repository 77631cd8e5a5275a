//! What was seen as the cases of a record: every strategy, every step of the first one, the host's
//! own time, and what the strategies gained beside what was predicted.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_card::controller::{CardStop, CaseDescription, case_results};
use tapstone_card::protocol::{Fault, Sample};
use tapstone_measure::compare;
use tapstone_measure::interval::Estimate;
use tapstone_measure::units::Nanos;
use tapstone_piv::{AuthenticationMechanism, DialogueLog, DialogueStep, Strategy};
use tapstone_record as record;

use crate::model::{Model, Parts, predicted, start_of_chuid};
use crate::protocol::Authentication;
use crate::rounds::{DoorRound, DoorRun};

/// What the door decided, ordered by how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Every card was granted.
    Granted,
    /// At least one card was refused.
    Refused,
    /// There was no decision, or the user ended the run.
    None,
}

/// The decisions of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The worst of them.
    pub worst: Decision,
    /// One sentence for each decision of each mechanism, for people.
    pub lines: Vec<String>,
}

impl DoorRun {
    fn authentications(&self, place: usize) -> impl Iterator<Item = &Authentication> {
        self.rounds.iter().filter_map(move |round| round.0[place].as_ref())
    }

    /// Only those that were granted have times that mean something.
    fn granted(&self, place: usize) -> Vec<&Authentication> {
        self.authentications(place).filter(|ran| is_granted(ran)).collect()
    }
}

fn is_granted(ran: &Authentication) -> bool {
    matches!(ran.dialogue.outcome, Ok(Ok(_)))
}

/// Everything that the run has brought, even if it did not end well.
pub fn fill_record(record: &mut record::Record, run: &DoorRun) -> Decided {
    let first = run.granted(0);
    let logs: Vec<&DialogueLog> = first.iter().map(|ran| &ran.dialogue.log).collect();
    let steps = steps(&logs);
    record.results = made(run, &steps);
    let model = Model::fitted(&logs);
    let ways = run.mechanisms.len();
    for (place, case) in record.results.iter_mut().take(ways).enumerate() {
        case.phases = whole(&run.granted(place));
    }
    for (step, case) in steps.iter().zip(&mut record.results[ways..]) {
        case.phases = apart(&logs, *step, model.as_ref());
    }
    // Steps of a card that was never granted would be cases without anything.
    record.results.retain(|case| case.completed > 0 || !case.failed.is_empty());
    record.results.iter_mut().for_each(|case| case.seed = Some(run.seed));
    if let Some(model) = &model {
        record.costs.push(model.cost(&case_name(run.mechanisms[0]), &logs));
    }
    record.apdus = apdus(run);
    for place in 1..ways {
        record.trials.extend(trial(run, place, model.as_ref()));
    }
    if run.interrupted {
        record.warnings.push("the run was interrupted: some cases have fewer rounds".into());
    }
    decide(record, run)
}

/// The steps in their order.
fn steps(logs: &[&DialogueLog]) -> Vec<DialogueStep> {
    let mut steps = Vec::new();
    for (step, _) in logs.first().iter().flat_map(|log| &log.steps) {
        if !steps.contains(step) {
            steps.push(*step);
        }
    }
    steps
}

/// A case for each way, for each step of the first one, and for the host in each way.
fn made(run: &DoorRun, steps: &[DialogueStep]) -> Vec<record::CaseResult> {
    let ways = run.mechanisms.len();
    let first = case_name(run.mechanisms[0]);
    let mut names: Vec<String> = run.mechanisms.iter().map(|one| case_name(*one)).collect();
    names.extend(steps.iter().map(|step| format!("{first}.{step}")));
    names.extend(run.mechanisms.iter().map(|one| host_name(*one)));
    let mut samples = Vec::new();
    for (number, round) in (0_u64..).zip(&run.rounds) {
        for (place, ran) in round.0.iter().enumerate() {
            let Some(ran) = ran else { continue };
            let mut put = |lane: usize, latency: Nanos, fault: Option<Fault>| {
                samples.push(Sample {
                    lane: lane as u16,
                    number,
                    start: ran.start,
                    latency,
                    fault,
                    exchanges: Vec::new(),
                    output: Vec::new(),
                });
            };
            put(place, ran.latency, fault(ran));
            if !is_granted(ran) {
                continue;
            }
            put(ways + steps.len() + place, host(ran), None);
            if place > 0 {
                continue;
            }
            for (lane, step) in (ways..).zip(steps) {
                if let Some(time) = ran.dialogue.log.step(*step) {
                    put(lane, time, None);
                }
            }
        }
    }
    samples.sort_by_key(|sample| sample.start);
    let ran = tapstone_card::controller::CardRun {
        samples: vec![samples],
        ready: vec![None],
        done: vec![None],
        lost: None,
        interrupted: run.interrupted,
        precise: false,
    };
    let plan = |operation| CaseDescription { operation, ..CaseDescription::default() };
    case_results(&ran, &names.into_iter().map(plan).collect::<Vec<_>>(), CardStop::Count)
}

/// All that is not the card, the way to it, or the wait for a slower module.
fn host(ran: &Authentication) -> Nanos {
    ran.latency - ran.dialogue.log.card() - ran.dialogue.log.replayed
}

fn fault(ran: &Authentication) -> Option<Fault> {
    match &ran.dialogue.outcome {
        Ok(Ok(_)) => None,
        Ok(Err(refusal)) => Some(Fault::Decision {
            code: format!("refused: {}", refusal.code()),
            why: refusal.to_string(),
        }),
        Err(lost) => Some(Fault::Decision { code: lost.code.clone(), why: lost.to_string() }),
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

fn phase(call: &str, mean_ns: f64, all: f64) -> record::Phase {
    let share = record::Fraction(mean_ns / all.max(1.0));
    record::Phase::new(call.to_owned(), mean_ns, share)
}

/// One of the times that were seen: so many of a hundred do not exceed it (nearest rank).
fn quantile(times: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// A whole dialogue by its steps; with `overlap` they are more than the whole.
fn whole(ran: &[&Authentication]) -> Vec<record::Phase> {
    let logs: Vec<&DialogueLog> = ran.iter().map(|ran| &ran.dialogue.log).collect();
    let all = mean(ran.iter().map(|ran| ran.latency.0 as f64));
    let one = |step: DialogueStep| {
        let times: Vec<f64> =
            logs.iter().map(|log| log.step(step).unwrap_or_default().0 as f64).collect();
        record::Phase {
            p50_ns: quantile(&times, 50.0),
            p95_ns: quantile(&times, 95.0),
            ..phase(step.name(), mean(times.iter().copied()), all)
        }
    };
    steps(&logs).into_iter().map(one).collect()
}

/// A step by what it is made of.
fn apart(logs: &[&DialogueLog], step: DialogueStep, model: Option<&Model>) -> Vec<record::Phase> {
    let time = |log: &&DialogueLog| log.step(step).unwrap_or_default().0 as f64;
    let in_card = |log: &&DialogueLog| match step {
        DialogueStep::Connect => time(log),
        _ => log.exchanges.iter().filter(|one| one.step == step).map(|one| one.time.0 as f64).sum(),
    };
    let all = mean(logs.iter().map(time));
    let card = mean(logs.iter().map(in_card));
    let mut phases = Vec::new();
    match model.filter(|_| card > 0.0 && step != DialogueStep::Connect) {
        Some(model) => {
            let parts: Vec<Parts> = logs.iter().map(|log| model.step(log, step)).collect();
            let part = |name, of: fn(&Parts) -> f64| phase(name, mean(parts.iter().map(of)), all);
            phases.push(part("commands", |parts| parts.commands));
            phases.push(part("transfer", |parts| parts.transfer));
            phases.push(part("processing", |parts| parts.processing));
        }
        None if card > 0.0 => phases.push(phase("card", card, all)),
        None => {}
    }
    phases.push(phase("host", (all - card).max(0.0), all));
    if step == DialogueStep::ReadChuid {
        // A known card gives no more than that.
        let start = mean(logs.iter().map(|log| start_of_chuid(log, model)));
        phases.push(phase("start", start, all));
    }
    phases
}

/// Every command, summed up by name and header.
fn apdus(run: &DoorRun) -> Vec<record::Apdu> {
    let mut all: BTreeMap<(DialogueStep, [u8; 4]), record::Apdu> = BTreeMap::new();
    let ran = (0..run.mechanisms.len()).flat_map(|place| run.authentications(place));
    for exchange in ran.flat_map(|ran| &ran.dialogue.log.exchanges) {
        let new = || {
            let object = object(exchange.step).map(str::to_owned);
            record::Apdu::new(
                command(exchange.header[1]),
                object,
                hex::encode_upper(exchange.header),
            )
        };
        let apdu = all.entry((exchange.step, exchange.header)).or_insert_with(new);
        apdu.add(exchange.time, exchange.sent, exchange.received);
        apdu.add_status(exchange.status);
    }
    all.into_values().collect()
}

fn command(ins: u8) -> &'static str {
    match ins {
        0x20 => "VERIFY",
        0x87 => "GENERAL AUTHENTICATE",
        0xA4 => "SELECT",
        0xC0 => "GET RESPONSE",
        _ => "GET DATA",
    }
}

fn object(step: DialogueStep) -> Option<&'static str> {
    match step {
        DialogueStep::ReadCertificate => Some("certificate"),
        DialogueStep::ReadChuid => Some("CHUID"),
        DialogueStep::Challenge => Some("challenge"),
        DialogueStep::Connect
        | DialogueStep::Select
        | DialogueStep::Pin
        | DialogueStep::Validate => None,
    }
}

/// A strategy against the baseline, over the rounds in which both granted the same one.
fn trial(run: &DoorRun, place: usize, model: Option<&Model>) -> Option<record::Trial> {
    let AuthenticationMechanism::PkiCak(strategy) = run.mechanisms[place] else { return None };
    let granted: Vec<_> =
        run.rounds.iter().filter_map(|round| both_granted(round, place)).collect();
    let pairs: Vec<_> = granted.iter().copied().filter(is_of_one_holder).collect();
    let times = |(plain, way): &PairOfRound<'_>| compare::PairedTimes {
        before: plain.latency,
        after: way.latency,
    };
    let comparison = compare::compare_means(&pairs.iter().map(times).collect::<Vec<_>>())?;
    // What each plain dialogue would have taken, as a mean like every other figure here.
    let left: Vec<f64> = pairs
        .iter()
        .map(|(plain, _)| plain.latency.0 as f64 - predicted(strategy, &plain.dialogue.log, model))
        .collect();
    let left = Estimate::mean_of(&left)?;
    let compare::MeanComparison { before, after, speedup, verdict } = comparison;
    let off = left.estimate / after.estimate - 1.0;
    let mut notes = vec![
        format!("predicted {}, which is {:+.1} % off", time(left.estimate), off * 100.0),
        strategy.condition().to_owned(),
    ];
    notes.extend(holders_note(&granted, pairs.len()));
    Some(record::Trial {
        processor_ns: None,
        user_ns: None,
        system_ns: None,
        fix: strategy.name().to_owned(),
        before_ns: before.into(),
        after_ns: after.into(),
        speedup: speedup.into(),
        predicted: Some(record::Range {
            low: before.estimate - left.high,
            high: before.estimate - left.low,
        }),
        rounds: pairs.len() as u32,
        seed: Some(run.seed),
        verdict: verdict.into(),
        changed: None,
        unobserved_ns: None,
        // Only those that granted the same one are compared.
        behaviour: record::Behaviour::Same,
        unstable_places: 0,
        differences: Vec::new(),
        notes,
    })
}

/// The baseline's authentication of a round, and a strategy's.
type PairOfRound<'a> = (&'a Authentication, &'a Authentication);

fn both_granted(round: &DoorRound, place: usize) -> Option<PairOfRound<'_>> {
    let [plain, way] =
        [0, place].map(|place| round.0[place].as_ref().filter(|ran| is_granted(ran)));
    plain.zip(way)
}

/// Of two that were granted: whether it was the same one.
fn is_of_one_holder((plain, way): &PairOfRound<'_>) -> bool {
    plain.dialogue.outcome == way.dialogue.outcome
}

/// More than one card was at the door: that some were quicker is then not the strategy's doing.
fn holders_note(granted: &[PairOfRound<'_>], compared: usize) -> Option<String> {
    let all = granted.iter().flat_map(|(plain, way)| [plain, way]);
    let holder = |ran: &&Authentication| match &ran.dialogue.outcome {
        Ok(Ok(identity)) => Some(identity.to_string()),
        _ => None,
    };
    let holders: BTreeSet<String> = all.filter_map(holder).collect();
    (holders.len() > 1).then(|| {
        format!(
            "{} identities were granted ({}): of {} rounds, {compared} granted the same one both \
             times, and only those are compared",
            holders.len(),
            holders.into_iter().collect::<Vec<_>>().join(", "),
            granted.len(),
        )
    })
}

fn time(nanos: f64) -> String {
    Nanos(nanos.max(0.0) as u64).to_string()
}

/// The decisions; the record gets them too.
fn decide(record: &mut record::Record, run: &DoorRun) -> Decided {
    let mut worst = Decision::Granted;
    let mut lines = Vec::new();
    for (place, mechanism) in run.mechanisms.iter().enumerate() {
        let mut told: BTreeMap<String, u64> = BTreeMap::new();
        for ran in run.authentications(place) {
            let (text, worth) = match &ran.dialogue.outcome {
                Ok(Ok(identity)) => (format!("granted to {identity}"), Decision::Granted),
                Ok(Err(refusal)) => (format!("refused: {refusal}"), Decision::Refused),
                Err(lost) => (format!("no decision: {lost}"), Decision::None),
            };
            worst = worst.max(worth);
            *told.entry(text).or_default() += 1;
        }
        let all: u64 = told.values().sum();
        if all == 0 {
            worst = Decision::None;
        }
        let name = case_name(*mechanism);
        for (text, count) in &told {
            let often = if *count == all { String::new() } else { format!(" ({count} of {all})") };
            let line = format!("{name}: {text}{often}");
            if !text.starts_with("granted") {
                record.warnings.push(line.clone());
            }
            lines.push(line);
        }
        let decision = told.into_keys().collect::<Vec<_>>().join("; ");
        if let Some(case) = record.results.iter_mut().find(|case| case.operation == name) {
            let name = match mechanism {
                AuthenticationMechanism::PkiCak(_) => "PKI-CAK",
                AuthenticationMechanism::Chuid => "CHUID",
                AuthenticationMechanism::PkiAuth | AuthenticationMechanism::Contact => "PKI-AUTH",
            };
            let parameters = Some(decision);
            case.mechanism =
                Some(record::Mechanism { name: name.to_owned(), parameters, hardware: None });
        }
    }
    for note in unchecked(run).into_iter().chain(fetched(run)) {
        record.warnings.push(note.clone());
        lines.push(note);
    }
    if run.interrupted {
        worst = Decision::None;
    }
    Decided { worst, lines }
}

/// Who was granted although nothing fresh says whether a certificate was revoked.
fn unchecked(run: &DoorRun) -> BTreeSet<String> {
    let granted = (0..run.mechanisms.len()).flat_map(|place| run.granted(place));
    granted
        .flat_map(|ran| &ran.dialogue.log.unchecked)
        .map(|why| format!("granted without knowing whether it was revoked: {why}"))
        .collect()
}

/// What was asked of others to find a path.
fn fetched(run: &DoorRun) -> BTreeSet<String> {
    let all = (0..run.mechanisms.len()).flat_map(|place| run.authentications(place));
    all.flat_map(|ran| ran.dialogue.log.fetched.iter().cloned()).collect()
}

/// What cases are called.
fn case_name(mechanism: AuthenticationMechanism) -> String {
    match mechanism {
        AuthenticationMechanism::PkiCak(Strategy::Plain) => "door.pki-cak".to_owned(),
        AuthenticationMechanism::PkiCak(strategy) => format!("door.pki-cak [{strategy}]"),
        AuthenticationMechanism::Chuid => "door.chuid".to_owned(),
        AuthenticationMechanism::PkiAuth => "door.pki-auth".to_owned(),
        AuthenticationMechanism::Contact => "door.contact".to_owned(),
    }
}

/// What the cases of the host's share are called.
fn host_name(mechanism: AuthenticationMechanism) -> String {
    match mechanism {
        AuthenticationMechanism::PkiCak(Strategy::Plain) => "door.pki-cak.host".to_owned(),
        AuthenticationMechanism::PkiCak(strategy) => format!("door.pki-cak.host [{strategy}]"),
        other => format!("{}.host", case_name(other)),
    }
}

#[cfg(test)]
mod tests {
    use tapstone_piv::{CardIdentity, Dialogue};

    use super::*;

    const WAY: AuthenticationMechanism = AuthenticationMechanism::PkiCak(Strategy::Overlap);

    fn granted(holder: u8, millis: u64) -> Option<Authentication> {
        let identity = CardIdentity { fasc_n: None, uuid: Some([holder; 16]) };
        let log = DialogueLog::default();
        let dialogue = Dialogue { outcome: Ok(Ok(identity)), fell_back: false, log };
        let latency = Nanos::from_millis(millis);
        Some(Authentication { start: Nanos::ZERO, latency, dialogue, gave_up: false })
    }

    fn trial_of(rounds: &[[u8; 2]]) -> Option<record::Trial> {
        let plain = AuthenticationMechanism::PkiCak(Strategy::Plain);
        let round = |(number, [one, other]): (usize, &[u8; 2])| {
            let millis = 1000 + number as u64;
            DoorRound(vec![granted(*one, millis), granted(*other, millis / 2)])
        };
        let rounds = rounds.iter().enumerate().map(round).collect();
        let run = DoorRun { mechanisms: vec![plain, WAY], rounds, seed: 1, interrupted: false };
        trial(&run, 1, None)
    }

    /// Cards were changed during the run.
    #[test]
    fn only_rounds_that_granted_the_same_one_are_compared() {
        let one = trial_of(&[[1, 1]; 20]).unwrap();
        assert_eq!((one.rounds, one.notes.len()), (20, 2));
        let mut rounds = vec![[1, 1]; 12];
        rounds.extend([[1, 2], [2, 1], [2, 2], [2, 2]]);
        let two = trial_of(&rounds).unwrap();
        assert_eq!(two.rounds, 14);
        let note = two.notes.last().unwrap();
        assert!(note.starts_with("2 identities were granted (01010101-"), "{note}");
        assert!(note.contains("of 16 rounds, 14 granted the same one"), "{note}");
        assert!(trial_of(&[[1, 2]; 20]).is_none(), "nothing is left to compare");
    }
}
