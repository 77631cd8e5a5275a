//! A case from its keys to its figures, or to the reason why it has none.

use std::time::{Duration, Instant};

use tapstone_measure::order::{TurnOrder, pause_between_rounds};
use tapstone_measure::rounds::rounds_needed;
use tapstone_measure::summary::Summary;
use tapstone_record as record;

use super::gather::SampleSink;
use super::outcome::{self, CaseNotMeasured, CaseOutcome};
use super::plan::CasePlan;
use super::steering::{SearchPart, TimeLeft, TokenObserver};
use super::{TokenController, figures, verify};

/// How often a case is measured anew.
#[derive(Clone, Copy, Debug)]
pub struct RoundsPlan {
    /// At least so many rounds, [`FEWEST_ROUNDS`] or more.
    ///
    /// [`FEWEST_ROUNDS`]: tapstone_measure::rounds::FEWEST_ROUNDS
    pub fewest: usize,
    /// Half the width of the rate's interval over the rounds, as a share of the rate.
    pub precision: f64,
    /// A round that other programs disturbed is the last: a claim is void with it, whatever further
    /// rounds say.
    pub ends_when_disturbed: bool,
}

/// What came of a case that was measured in rounds.
#[derive(Debug)]
pub struct RoundsOutcome {
    /// The round that is shown: the one in which something went wrong, or else that of the median
    /// rate. Its rate and latencies are those over all rounds.
    pub shown: CaseOutcome,
    /// The figures of each round, in order.
    pub rounds: Vec<Summary>,
    /// Of each round that other programs disturbed, in which way.
    pub disturbed: Vec<String>,
}

impl RoundsOutcome {
    /// `first`: how many rounds said how many more were needed.
    fn new(mut done: Vec<CaseOutcome>, first: usize) -> Self {
        let rounds: Vec<Summary> =
            done.iter().filter_map(|outcome| outcome.summary.clone()).collect();
        let disturbed = done.iter().filter_map(disturbance).collect();
        let wrong = |outcome: &CaseOutcome| !outcome.is_clean() || outcome.summary.is_none();
        let failed = done.iter().position(wrong);
        let mut shown = done.swap_remove(failed.unwrap_or_else(|| median_of(&done)));
        // What went wrong stands beside the figures of its own round.
        let over = Summary::over_rounds(&rounds, first).filter(|_| failed.is_none());
        if let (Some(over), Some(case)) = (over, shown.cases.first_mut()) {
            case.set_rounds(&over);
            shown.summary = Some(over);
        }
        Self { shown, rounds, disturbed }
    }
}

/// The place of the outcome with the median rate.
fn median_of(done: &[CaseOutcome]) -> usize {
    let mut places: Vec<usize> = (0..done.len()).collect();
    let rate = |place: &usize| done[*place].summary.as_ref().map_or(0.0, rate_of);
    places.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    places[places.len() / 2]
}

/// What other programs did to a round.
fn disturbance(outcome: &CaseOutcome) -> Option<String> {
    let case = outcome.cases.first()?;
    let limit = case.limit.as_ref()?;
    (case.limited_by == record::LimitedBy::OtherPrograms).then(|| limit.why.clone())
}

fn rates(rounds: &[CaseOutcome]) -> Vec<f64> {
    rounds.iter().filter_map(|outcome| outcome.summary.as_ref().map(rate_of)).collect()
}

/// The round that begins after `done` of those that are wanted so far. The `fewest` say how many more.
fn round_part(done: usize, wanted: usize, fewest: usize, elapsed: Duration) -> SearchPart {
    let each = elapsed.checked_div(done as u32);
    let left = each.map(|each| each.saturating_mul((wanted - done) as u32));
    let more = if done < fewest { " or more" } else { "" };
    SearchPart {
        name: format!("round {} of {wanted}{more}", done + 1),
        left: left.map_or(TimeLeft::Unknown, TimeLeft::About),
    }
}

fn rate_of(summary: &Summary) -> f64 {
    summary.rate.estimate
}

impl TokenController {
    /// Measures a case. What goes wrong is in the outcome, beside whatever was measured before.
    pub fn measure(
        &mut self,
        plan: &CasePlan,
        observer: &mut dyn TokenObserver,
        samples: Option<&mut dyn SampleSink>,
    ) -> CaseOutcome {
        observer.stage(plan.name(), "preparing keys");
        let prepared = match self.prepare(plan, plan.hosts, plan.processes) {
            Ok(prepared) => prepared,
            Err(why) => return self.without_figures(plan, why),
        };
        let numbers = prepared.numbers();
        let outcome =
            match self.run_case(plan, &prepared, &numbers, plan.threads, observer, samples) {
                Ok(mut ran) => {
                    observer.stage(plan.name(), "verifying results");
                    let judged = verify::judge(self, plan, &prepared, &mut ran);
                    figures::outcome(self, plan, &prepared, ran, judged)
                }
                Err(why) => self.without_figures(plan, why),
            };
        let cleaned = self.finish(&prepared);
        outcome.with_trouble(cleaned.err())
    }

    /// Measures a case in rounds, each a fresh start with a warm-up and a window of its own: as many
    /// as it takes for the mean rate to be known to `precision`, a share of it, and no fewer than
    /// `fewest`. A round in which something went wrong ends them, and is the one that is shown; one
    /// that other programs disturbed ends them where the plan says so.
    ///
    /// Before each but the first there is a pause of random length: rounds that followed one another
    /// in step with a device that swings would all see it at the same place, and agree on a rate
    /// that is not its own.
    pub fn measure_rounds(
        &mut self,
        plan: &CasePlan,
        rounds: RoundsPlan,
        observer: &mut dyn TokenObserver,
        mut samples: Option<&mut dyn SampleSink>,
    ) -> RoundsOutcome {
        let mut done: Vec<CaseOutcome> = Vec::new();
        let mut wanted = rounds.fewest;
        let first = Instant::now();
        let mut order = TurnOrder::from_seed(plan.common.seed);
        while done.len() < wanted {
            let begun = Instant::now();
            observer.begin_part(&round_part(done.len(), wanted, rounds.fewest, first.elapsed()));
            let sink = samples.as_mut().map(|sink| &mut **sink as &mut dyn SampleSink);
            let outcome = self.measure(plan, observer, sink);
            let ended = !outcome.is_clean()
                || outcome.interrupted
                || outcome.summary.is_none()
                || (rounds.ends_when_disturbed && disturbance(&outcome).is_some());
            done.push(outcome);
            if ended {
                break;
            }
            if done.len() == rounds.fewest {
                wanted = wanted.max(rounds_needed(&rates(&done), rounds.precision));
            }
            if done.len() < wanted {
                let pause = order.next_pause(begun.elapsed());
                pause_between_rounds(pause, || self.workers.is_interrupted());
            }
        }
        RoundsOutcome::new(done, rounds.fewest)
    }

    fn without_figures(&mut self, plan: &CasePlan, why: CaseNotMeasured) -> CaseOutcome {
        // A process that died may have left keys; those that live have cleaned up.
        let cleaned = self.clean_up_after_the_lost();
        outcome::without(plan, why).with_trouble(cleaned.err())
    }
}
