//! What was measured of a card, in the place of what a scenario says of it.

use tapstone_measure::units::Nanos;
use tapstone_record::{CaseResult, Estimate, Latency, Outcome, Provenance, Record};
use thiserror::Error;

use crate::distribution::{Quantile, TimeDistribution};
use crate::millis::Millis;
use crate::path::{CHUID_START, PathPart, Role, StepFilter, StepTime, step};
use crate::scenario::Scenario;

/// StepFilter in which a card takes part. `validate` is the host's, and stays with the module.
const CARDS: [&str; 4] = [step::SELECT, step::READ_CERTIFICATE, step::CHALLENGE, step::READ_CHUID];

/// The phase of reading the CHUID in which its start is read.
const START: &str = "start";

/// The measured card cannot take the place of the scenario's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CardError {
    /// The scenario has none.
    #[error("the scenario has no card\nhint: [[component]] with kind = \"card\" is one")]
    NoCard,
    /// The record has no case of it.
    #[error(
        "{file} has no times of {operation}: it holds {there}\nhint: `tapstone door measure \
         --output run.json` writes cases named {operation} and {operation}.select, \
         .read-certificate, .challenge, .read-chuid"
    )]
    NoTimes {
        /// The record's file, as the user named it.
        file: String,
        /// What was looked for.
        operation: String,
        /// What it holds instead.
        there: String,
    },
}

/// The scenario with the measured card in it: each step that the record has takes the place of the
/// same step of the card *and* of its link, since a measured step has both in it. The notes of the
/// scenario say what was used and what was not.
///
/// # Errors
/// When the scenario has no card, or the record no such times.
pub fn with_card(
    mut scenario: Scenario,
    record: &Record,
    file: &str,
) -> Result<Scenario, CardError> {
    let emulated = record.target.emulated.is_some();
    let case = |operation: &str| {
        let mut cases = record.results.iter();
        let case = cases.find(|case| case.operation == operation && is_measured(case))?;
        Some((case, distribution(case)?))
    };
    let named = |step: &str| format!("{}.{step}", scenario.operation);
    let mut used: Vec<(&str, TimeDistribution)> = CARDS
        .into_iter()
        .filter_map(|step| case(&named(step)).map(|(_, time)| (step, time)))
        .collect();
    let whole = used.is_empty();
    if whole {
        let time = case(&scenario.operation).map(|(_, time)| time);
        used.push((step::OTHER, time.ok_or_else(|| no_times(&scenario, record, file))?));
    }
    if let Some((chuid, _)) = case(&named(step::READ_CHUID)) {
        let start = chuid.phases.iter().find(|phase| phase.call == START);
        scenario.path.chuid_start = start.map_or(CHUID_START, |phase| phase.share.0);
    }
    let steps: Vec<&str> = used.iter().map(|(step, _)| *step).collect();
    let replaced = if whole { StepFilter::All } else { StepFilter::Only(&steps) };
    let is_link = |part: &&mut PathPart| part.role.is_card_link();
    for link in scenario.path.parts.iter_mut().filter(is_link) {
        link.scale(replaced, 0.0);
    }
    let card = scenario.path.parts.iter_mut().find(|part| part.role == Role::Card);
    let card = card.ok_or(CardError::NoCard)?;
    card.scale(replaced, 0.0);
    let kept = card.mean();
    card.pieces.extend(used.into_iter().map(|(step, time)| StepTime::for_step(step, time)));
    // What the scenario still says of it makes the sum no better than that.
    if kept == Millis::ZERO {
        card.provenance = if emulated { Provenance::Emulated } else { Provenance::Measured };
        card.source = Some(file.to_owned());
    } else {
        card.provenance = Provenance::Derived;
    }
    // What the source expects, it expects with the card that it measured.
    scenario.projections.clear();
    scenario.notes.extend(notes(&scenario.operation, &steps, whole, kept, file));
    Ok(scenario)
}

fn is_measured(case: &CaseResult) -> bool {
    matches!(case.status.outcome, Outcome::Ok | Outcome::Partial) && case.latency_ns.is_some()
}

/// The values themselves where the record has them, else its quantiles, else its mean.
fn distribution(case: &CaseResult) -> Option<TimeDistribution> {
    let millis = |value: &Nanos| Millis::from(*value);
    if !case.latencies_ns.is_empty() {
        return TimeDistribution::empirical(case.latencies_ns.iter().map(millis).collect());
    }
    let latency = case.latency_ns.as_ref()?;
    let Latency { mean, p50, p90, p95, p99, min, max, .. } = latency;
    let ms = |estimate: &Estimate| Millis(estimate.estimate / 1e6);
    let middle = p50.as_ref().or(mean.as_ref()).map(ms)?;
    if p50.is_none() || min == max {
        return Some(TimeDistribution::Fixed(middle));
    }
    let mut points = vec![Quantile { part: 0.0, time: Millis::from(*min) }];
    for (part, time) in [(0.5, p50), (0.9, p90), (0.95, p95), (0.99, p99)] {
        // Buckets of a histogram may put a quantile a little beyond its neighbours.
        let last = points.last().map_or(Millis::ZERO, |point| point.time);
        let time = time.as_ref().map(ms).filter(|time| *time >= last);
        points.extend(time.map(|time| Quantile { part, time }));
    }
    let last = points.last().map_or(Millis::ZERO, |point| point.time);
    points.push(Quantile { part: 1.0, time: Millis(Millis::from(*max).0.max(last.0)) });
    Some(TimeDistribution::Quantiles(points))
}

fn notes(operation: &str, steps: &[&str], whole: bool, kept: Millis, file: &str) -> Vec<String> {
    if whole {
        return vec![format!(
            "card and its link are {operation} of {file}: it has no times of single steps, so what \
             the measuring host took is in it"
        )];
    }
    let mut notes = vec![format!(
        "card and its link are measured: {} of {file}; what is on the way to the card is in the \
         card's time",
        steps.join(", ")
    )];
    if kept > Millis::ZERO {
        notes.push(format!("the rest of the card's time, {:.1} ms, is the scenario's", kept.0));
    }
    notes
}

fn no_times(scenario: &Scenario, record: &Record, file: &str) -> CardError {
    let mut there: Vec<&str> =
        record.results.iter().map(|case| case.operation.as_str()).take(4).collect();
    if record.results.len() > there.len() {
        there.push("…");
    }
    let there = if there.is_empty() { "no results".into() } else { there.join(", ") };
    CardError::NoTimes { file: file.to_owned(), operation: scenario.operation.clone(), there }
}

#[cfg(test)]
mod tests {
    use tapstone_record::{Concurrency, Emulated, Load, Status};

    use super::*;

    const FILE: &str = "run.json";

    /// A card that signs for 600 ms and reads for 400, behind a reader.
    fn scenario() -> Scenario {
        let text = "title = 'x'\ntarget_ms = 1500\n\
                    [[component]]\nkind = 'card'\nfrom = 'assumed'\ntime_ms = 1000\n\
                    steps = { challenge = 0.6, read-certificate = 0.4 }\n\
                    [[component]]\nkind = 'reader'\n\
                    [[link]]\nbetween = ['card', 'reader']\nfrom = 'assumed'\ntime_ms = 100\n\
                    by = { kind = 'contactless', kbit_per_second = 106 }\n\
                    [[link.message]]\nstep = 'challenge'\n\
                    command_bytes = 10\nresponse_bytes = 10\n\
                    [[link.message]]\nstep = 'read-certificate'\n\
                    command_bytes = 10\nresponse_bytes = 10\n";
        Scenario::read(text, "test").unwrap()
    }

    fn case(operation: &str, values: &[u64]) -> CaseResult {
        let mut case = CaseResult::new(operation, Status::OK, Concurrency::ONE, Load::CLOSED);
        case.latencies_ns = values.iter().map(|ms| Nanos::from_millis(*ms)).collect();
        case.latency_ns = Some(Latency::default());
        case
    }

    fn record(cases: Vec<CaseResult>) -> Record {
        let text = r#"{"schema": "tapstone.record/2", "tool": {"name": "x", "version": "1"},
            "command": [], "started_at": "2026-01-15T09:30:00Z", "environment": {"load": {}},
            "target": {"kind": "door"}, "results": []}"#;
        let mut record = Record::from_json(text, "test").unwrap();
        record.results = cases;
        record
    }

    fn part(scenario: &Scenario, role: fn(&PathPart) -> bool) -> &PathPart {
        scenario.path.parts.iter().find(|part| role(part)).unwrap()
    }

    fn card(scenario: &Scenario) -> &PathPart {
        part(scenario, |part| part.role == Role::Card)
    }

    fn link(scenario: &Scenario) -> &PathPart {
        part(scenario, |part| part.role.is_card_link())
    }

    #[test]
    fn measured_steps_take_the_place_of_the_card_and_of_its_link() {
        let scenario = scenario();
        let step = |step: &str, ms| case(&format!("{}.{step}", scenario.operation), &[ms]);
        let both = record(vec![step(step::CHALLENGE, 500), step(step::READ_CERTIFICATE, 200)]);
        let with = with_card(scenario.clone(), &both, FILE).unwrap();
        assert_eq!((card(&with).mean(), link(&with).mean()), (Millis(700.0), Millis::ZERO));
        assert_eq!(card(&with).provenance, Provenance::Measured);
        assert_eq!(card(&with).source.as_deref(), Some(FILE));
        assert!(with.notes.iter().all(|note| !note.contains("the rest of the card's time")));
        // The other step stays as it was, and makes the sum no better than that.
        let one = record(vec![step(step::CHALLENGE, 500)]);
        let with = with_card(scenario.clone(), &one, FILE).unwrap();
        assert_eq!((card(&with).mean(), link(&with).mean()), (Millis(900.0), Millis(50.0)));
        assert_eq!(card(&with).provenance, Provenance::Derived);
        let rest = "the rest of the card's time, 400.0 ms, is the scenario's";
        assert!(with.notes.iter().any(|note| note == rest), "{:?}", with.notes);
    }

    #[test]
    fn a_record_without_steps_is_taken_as_a_whole() {
        let scenario = scenario();
        let mut whole = record(vec![case(&scenario.operation, &[750])]);
        whole.target.emulated = Some(Emulated { profile: "plain".into(), sha256: "00".into() });
        let with = with_card(scenario, &whole, FILE).unwrap();
        assert_eq!((card(&with).mean(), link(&with).mean()), (Millis(750.0), Millis::ZERO));
        assert_eq!(card(&with).provenance, Provenance::Emulated);
        assert!(with.notes.iter().any(|note| note.contains("no times of single steps")));
    }

    #[test]
    fn a_record_of_something_else_is_refused_with_what_it_holds() {
        let refused = |cases| with_card(scenario(), &record(cases), FILE).unwrap_err().to_string();
        let names = |count: usize| ["a", "b", "c", "d", "e"][..count].iter();
        let cases = |count| names(count).map(|name| case(name, &[1])).collect::<Vec<_>>();
        assert!(refused(cases(0)).contains("it holds no results\nhint: "), "{}", refused(cases(0)));
        assert!(refused(cases(4)).contains("it holds a, b, c, d\n"), "{}", refused(cases(4)));
        assert!(refused(cases(5)).contains("it holds a, b, c, d, …\n"), "{}", refused(cases(5)));
        // A case that failed, or has no times, is no measurement.
        let operation = scenario().operation;
        let mut failed = case(&operation, &[1]);
        failed.status = Status::at(Outcome::Failed, "select", "6A82");
        let mut untimed = case(&operation, &[]);
        untimed.latency_ns = None;
        assert!(refused(vec![failed, untimed]).contains("has no times of"));
    }

    #[test]
    fn what_is_known_of_a_time_becomes_a_distribution() {
        let at = |ms: f64| Some(Estimate { estimate: ms * 1e6, low: 0.0, high: 0.0 });
        let known = |latency: Latency| {
            let mut case = case("x", &[]);
            case.latency_ns = Some(latency);
            distribution(&case)
        };
        let min = Nanos::from_millis(1);
        let max = Nanos::from_millis(9);
        let mean = Latency { mean: at(3.0), min, max, ..Latency::default() };
        assert_eq!(known(mean), Some(TimeDistribution::Fixed(Millis(3.0))));
        let same = Latency { p50: at(9.0), min: max, max, ..Latency::default() };
        assert_eq!(known(same), Some(TimeDistribution::Fixed(Millis(9.0))));
        assert_eq!(known(Latency::default()), None);
        // A p95 below the p90, as the buckets of a histogram may give it, is left out.
        let all = Latency { p50: at(4.0), p90: at(8.0), p95: at(7.9), min, max, ..mean };
        let points = [(0.0, 1.0), (0.5, 4.0), (0.9, 8.0), (1.0, 9.0)]
            .map(|(part, ms)| Quantile { part, time: Millis(ms) });
        assert_eq!(known(all), Some(TimeDistribution::Quantiles(points.to_vec())));
        // The values themselves are better.
        let values = distribution(&case("x", &[7]));
        assert_eq!(values, Some(TimeDistribution::Fixed(Millis(7.0))));
    }
}
