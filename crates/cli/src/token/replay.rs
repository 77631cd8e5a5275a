//! `tapstone token --workload`: a recorded load, replayed on this token.

mod capacity;
mod scale;
mod text;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use jiff::Timestamp;
use tapstone_compare::{NamedRecord, compare_records};
use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_record as record;
use tapstone_record::Record;
use tapstone_replay::{
    MappedKey, ReplayOptions, ReplayPlan, VerifiedWork, mark_failures, measured_workload,
    most_scale, plan_replay, recorded_part, replayed_span, unlisted_operations, verify_replay,
};
use tapstone_token::controller::ReplayOutcome;
use tapstone_workload::{OperationKind, Workload, WorkloadLimits, read_workload};

use self::text::{Replay, plan_text, replay_text, unlisted_sentence, unlisted_text};
use super::arguments::Arguments;
use super::{leftovers, target};
use crate::exit::Exit;
use crate::machine_load::{LoadWatch, OwnLoadWatch};
use crate::print::say;
use crate::progress::ProgressLine;
use crate::workload::{add_results, duration_text, kind_name, workload_record};
use crate::{command_line, environment, interrupt};

pub(super) fn replay_workload(arguments: &Arguments, file: &Path) -> anyhow::Result<Exit> {
    let workload = read_workload(file, WorkloadLimits::default())?;
    let tokens = &arguments.target;
    let named = tokens.token_label.len() + tokens.token_serial.len() + tokens.slot.len();
    let mut options = ReplayOptions {
        scale: arguments.recorded.scale.unwrap_or(1),
        devices: named.max(1) as u32,
        steady: false,
        on_token: arguments.keys.token_keys,
        keys: arguments.recorded.workload_key.iter().copied().collect(),
        seed: arguments.load.seed,
    };
    let plan = plan_replay(&workload, &options)?;
    refuse_untold(&plan.keys)?;
    arguments.output.shared.check()?;
    if !arguments.output.shared.quiet {
        say!("{}", plan_text(&plan).trim_end());
        match arguments.recorded.scale_until {
            None => {
                let time = duration_text(replayed_span(&workload));
                say!("the replay takes about {time}, as the recorded run did");
            }
            Some(bound) => {
                say!("{}", scale::announcement(&workload, &plan, bound, options.devices));
            }
        }
    }
    let interrupt = interrupt::flag_on_signals()?;
    let mut record = empty_record();
    let mut controller = target::open(arguments, Arc::clone(&interrupt))?;
    options.devices = controller.targets.len() as u32;
    leftovers::remove_keys_of_dead_runs(&mut controller)?;
    record.target = target::describe(&controller, None);
    let machine = LoadWatch::start();
    let recorded = recorded_part(&workload, &plan.processes);
    let judging = (!arguments.keys.no_verify).then_some(&*interrupt);
    let tokens = (0..controller.targets.len()).map(|token| controller.mechanisms(token));
    let unlisted = unlisted_operations(&recorded, &tokens.collect::<Result<Vec<_>, _>>()?);
    if !arguments.output.shared.quiet && !unlisted.is_empty() {
        say!("{}", unlisted_text(&unlisted).trim_end());
    }
    let mut one_replay = |options: &ReplayOptions| -> anyhow::Result<Went> {
        let plan = plan_replay(&workload, options)?;
        let line =
            ProgressLine::timed(arguments.output.shared.quiet, &replaying(&workload, options));
        let own_load = OwnLoadWatch::start();
        let outcome = controller.replay(&plan.processes);
        let own_share = own_load.share();
        line.end();
        let outcome = outcome?;
        Ok(Went { own_share, ..Went::new(&workload, plan, outcome) })
    };
    let replayed = match arguments.recorded.scale_until {
        None => one_replay(&options).map(|went| (went, None)),
        Some(bound) => {
            let quiet = arguments.output.shared.quiet;
            let search =
                scale::Search { workload: &workload, recorded: &recorded, bound, judging, quiet };
            search.run(&options, most_scale(&plan, options.devices), &mut one_replay)
        }
    };
    controller.close();
    let (went, found) = replayed?;
    machine.add_to(&mut record.environment.load);
    let mut recorded = recorded;
    let Went { plan: made, outcome, .. } = &went;
    mark_failures(&mut recorded, &plan.processes, &made.processes, &outcome.threads, &workload);
    let replay = went.replay(&workload, &recorded, judging);
    describe(&mut record, &replay, file);
    record.warnings.extend(unlisted.iter().map(unlisted_sentence));
    for trouble in &went.outcome.trouble {
        say!("error: {trouble}");
    }
    let mut text = replay_text(&replay);
    if let Some(found) = found {
        text.push_str(&found.text());
        let why =
            found.no_capacity.map(|why| format!("how many devices carry more is not known: {why}"));
        record.warnings.extend(why);
        record.rate_within = Some(found.within);
    }
    arguments.output.shared.put_shown(&record, |output| match output.format {
        crate::output::Format::Text => Ok(text),
        _ => output.shown(&record, &crate::output::style(output.verbose)),
    })?;
    Ok(if interrupt.load(Relaxed) { Exit::NotMeasured } else { exit(&replay) })
}

/// `of about 30 s: replaying 3x`, behind the time since it began.
fn replaying(workload: &Workload, options: &ReplayOptions) -> String {
    let span = replayed_span(workload);
    let scale = if options.scale > 1 { format!(" {}x", options.scale) } else { String::new() };
    match options.steady {
        true => format!("replaying{scale}"),
        false => format!("of about {}: replaying{scale}", duration_text(span)),
    }
}

/// A key whose kind nobody knows is told by the user, or its operations are not replayed: that is
/// his to say.
fn refuse_untold(keys: &[MappedKey]) -> anyhow::Result<()> {
    let untold = || keys.iter().filter(|key| key.is_to_be_told());
    let Some(first) = untold().next() else { return Ok(()) };
    let numbers: Vec<String> = untold().map(|key| key.object.to_string()).collect();
    // Derived is from keys on a curve.
    let example = if first.uses.derive { "p256" } else { "rsa2048" };
    anyhow::bail!(
        "the recording does not tell what kind of key these are: {}\nhint: --workload-key \
         {}={example} tells it; kinds are rsa2048, p256, p384, p521, ed25519, aes128, hmac-sha256 and \
         the like",
        numbers.join(", "),
        first.object
    )
}

/// A replay that is over.
struct Went {
    plan: ReplayPlan,
    outcome: ReplayOutcome,
    measured: Workload,
    /// What the replay itself took of this machine's processors.
    own_share: Option<record::Fraction>,
}

impl Went {
    fn new(workload: &Workload, plan: ReplayPlan, outcome: ReplayOutcome) -> Self {
        let measured = measured_workload(workload, &plan.processes, &outcome.threads);
        Self { plan, outcome, measured, own_share: None }
    }

    /// Beside what was recorded, with its results judged where that is wanted, until somebody wants
    /// to end.
    fn replay<'a>(
        &'a self,
        workload: &'a Workload,
        recorded: &'a Workload,
        judging: Option<&AtomicBool>,
    ) -> Replay<'a> {
        let Self { plan, outcome, measured, .. } = self;
        let verified = judging.map(|stop| verify(plan, outcome, stop)).unwrap_or_default();
        Replay { workload, plan, outcome, recorded, measured, verified }
    }
}

fn empty_record() -> Record {
    let environment = environment::observe(Precision::measure(&Monotonic));
    let nothing = record::Target::new(record::TargetKind::Token);
    let tool =
        record::Tool { name: "tapstone".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let mut record = Record::new(tool, Timestamp::now(), environment, nothing);
    // No secret is ever an argument.
    record.command = command_line::words();
    record
}

/// What was measured, beside what was recorded.
fn describe(record: &mut Record, replay: &Replay<'_>, file: &Path) {
    add_results(record, replay.measured);
    let name = file.display().to_string();
    record.warnings.push(format!(
        "replayed from {name}: {} of {} calls",
        replay.made(),
        calls_of(replay.workload)
    ));
    for skipped in &replay.plan.skipped {
        let tapstone_replay::Skipped { function, reason, count } = skipped;
        record.warnings.push(format!("{function}, {count} times, is not replayed: {reason}"));
    }
    if replay.plan.stand_in_reads > 0 {
        record.warnings.push(text::stand_in_text(replay.plan.stand_in_reads));
    }
    record.warnings.extend(text::cut_short_text(&replay.verified));
    for case in &mut record.results {
        let found = replay.verified.iter().find(|(kind, _)| kind_name(kind) == case.operation);
        case.verification = found.and_then(|(_, found)| verification(*found));
    }
    let recorded = workload_record(replay.recorded);
    let there = NamedRecord { record: &recorded, path: &name, sha256: "" };
    let here = NamedRecord { record, path: "this replay", sha256: "" };
    let comparison = compare_records(there, here, None);
    record.comparison = comparison.ok();
}

/// Judges the results after the token is closed.
fn verify(
    plan: &ReplayPlan,
    outcome: &ReplayOutcome,
    stop: &AtomicBool,
) -> BTreeMap<OperationKind, VerifiedWork> {
    /// Longer nobody waits for it; what is left is told as not checked.
    const LONGEST: Duration = Duration::from_secs(60);
    // Who ended the replay wants what there is of it to be judged.
    let nobody = AtomicBool::new(false);
    let stop = if outcome.interrupted { &nobody } else { stop };
    verify_replay(&plan.processes, &outcome.evidence, &outcome.threads, LONGEST, stop)
}

/// `None`: nothing of it was judged.
fn verification(found: VerifiedWork) -> Option<record::Verification> {
    let VerifiedWork { eligible, checked, wrong, is_cut_short } = found;
    let found = record::Verification::new(eligible, checked, wrong, record::Verifier::Software);
    // Of what is no random sample nothing follows for the rest.
    let largest_wrong_share = found.largest_wrong_share.filter(|_| !is_cut_short);
    (checked > 0).then_some(record::Verification { largest_wrong_share, ..found })
}

fn calls_of(workload: &Workload) -> usize {
    workload.threads.iter().map(|thread| thread.calls.len()).sum()
}

/// Calls that failed where the recorded ones did not, and what was lost, are no measurement.
fn exit(replay: &Replay<'_>) -> Exit {
    let ReplayOutcome { interrupted, trouble, .. } = replay.outcome;
    let has_failed = replay.new_failures() > 0 || replay.wrong_results() > 0;
    if *interrupted || !trouble.is_empty() || has_failed { Exit::NotMeasured } else { Exit::Done }
}

impl Replay<'_> {
    /// Calls that were made.
    fn made(&self) -> usize {
        self.outcome.threads.iter().flatten().map(|thread| thread.times.len()).sum()
    }

    /// Results that are not what they must be.
    fn wrong_results(&self) -> u64 {
        self.verified.values().map(|found| found.wrong).sum()
    }

    /// Calls that failed here and went well there.
    fn new_failures(&self) -> u64 {
        self.differing().map(|(_, _, count)| count).sum::<u64>() + self.not_called()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_random_sample_bounds_what_may_be_wrong() {
        let found = VerifiedWork { eligible: 9_000, checked: 1_000, wrong: 0, is_cut_short: false };
        let share = |found| verification(found).unwrap().largest_wrong_share;
        assert!((share(found).unwrap().0 - 0.00299).abs() < 1e-5);
        assert_eq!(share(VerifiedWork { is_cut_short: true, ..found }), None);
    }
}
