//! A trial in the record's words.

use tapstone_measure::compare::{self, PairedRound};
use tapstone_measure::interval::Estimate;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record as record;

use super::{Trial, Tried};
use crate::behaviour;
use tapstone_command::run::Finished;
use tapstone_events::Fix;
use tapstone_explain::findings::prediction::{self, Prediction, Saving};
use tapstone_explain::findings::{self, Finding};
use tapstone_explain::operation::Operations;
use tapstone_explain::tables;
use tapstone_explain::timeline::Timeline;

impl Trial<'_> {
    /// Its fixes, as `--fix` takes them.
    #[must_use]
    pub fn name(&self) -> String {
        let fixes: Vec<String> = self.fixes.iter().map(ToString::to_string).collect();
        fixes.join(" + ")
    }
}

impl Tried {
    /// What was tried, and what it brought; `None` of fewer than two rounds.
    #[must_use]
    pub fn record(&self, trial: &Trial<'_>) -> Option<record::Trial> {
        let comparison = compare::compare_rounds(&paired(&self.off, &self.on));
        let changed = self.applied.iter().map(|it| it.changed).sum();
        Some(record::Trial {
            fix: trial.name(),
            before_ns: mean(&self.off, |run| run.wall)?,
            after_ns: mean(&self.on, |run| run.wall)?,
            unobserved_ns: mean(&self.bare, |run| run.wall),
            processor_ns: self.times(Finished::processor),
            user_ns: self.times(|run| run.user).filter(|_| self.are_told_apart()),
            system_ns: self.times(|run| run.system).filter(|_| self.are_told_apart()),
            speedup: comparison.ratio?.into(),
            predicted: self.predicted(&trial.fixes),
            rounds: self.off.len() as u32,
            seed: Some(trial.seed),
            verdict: match changed {
                0 => record::Change::Inconclusive,
                _ => comparison.verdict.into(),
            },
            changed: Some(changed),
            behaviour: match self.judgement.verdict {
                behaviour::BehaviourVerdict::Same => record::Behaviour::Same,
                behaviour::BehaviourVerdict::Differs => record::Behaviour::Differs,
                behaviour::BehaviourVerdict::NotComparable => record::Behaviour::NotComparable,
            },
            unstable_places: self.judgement.masked,
            differences: self.judgement.differences.clone(),
            notes: self.notes(trial),
        })
    }

    fn times(&self, of: impl Fn(&Finished) -> Nanos) -> Option<record::BeforeAfter> {
        let before = mean(&self.off, &of)?;
        let after = mean(&self.on, &of)?;
        Some(record::BeforeAfter { before, after })
    }

    /// Whether most runs met clock ticks, by which the kernel tells user from system time.
    fn are_told_apart(&self) -> bool {
        let met = |run: &&Finished| run.user > Nanos::ZERO && run.system > Nanos::ZERO;
        [&self.off, &self.on].iter().all(|runs| runs.iter().filter(met).count() * 2 > runs.len())
    }

    /// What the findings of the untouched rounds promise of these fixes together, if there are
    /// enough rounds.
    fn predicted(&self, fixes: &[Fix]) -> Option<record::Range> {
        let meant = |finding: &&Finding| {
            finding.trial.as_ref().is_some_and(|trial| fixes.iter().any(|fix| fix.does(trial)))
        };
        let saving = |timeline: &Timeline| {
            let operations = Operations::whole(timeline);
            let findings = findings::find(timeline, &operations, []);
            let removable = prediction::union(findings.iter().filter(meant));
            prediction::saving(timeline, &operations, &removable)
        };
        let savings: Vec<Saving> = self.timelines.iter().map(saving).collect();
        let prediction = Prediction::over(&savings);
        let Saving { low, high } = prediction.filter(|it| it.rounds >= prediction::ROUNDS)?.saving;
        (high > 0.0).then_some(record::Range { low, high })
    }

    fn notes(&self, trial: &Trial<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        let runs = self.on.len().max(1) as f64;
        for (fix, applied) in trial.fixes.iter().zip(&self.applied) {
            notes.push(match applied.changed {
                0 => format!("{fix} never applied: the program makes no call that it changes"),
                calls => format!("{fix} changed {:.1} calls a run", calls as f64 / runs),
            });
            if applied.refused > 0 {
                let calls = applied.refused as f64 / runs;
                notes.push(format!("{calls:.1} calls a run went past {fix}"));
            }
            notes.extend(fix.caution().map(str::to_owned));
        }
        notes
    }

    /// A case for each of the three series, with every run.
    #[must_use]
    pub fn cases(&self, name: &str) -> Vec<record::CaseResult> {
        let case = |what: &str, runs: &[Finished]| {
            let runs: Vec<_> = runs.iter().map(|run| (run.started + run.wall, run.wall)).collect();
            tables::command_case(&format!("command, {what}"), &runs)
        };
        vec![
            case("untouched", &self.bare),
            case(&format!("probe, without {name}"), &self.off),
            case(&format!("probe, with {name}"), &self.on),
        ]
    }
}

fn paired(off: &[Finished], on: &[Finished]) -> Vec<PairedRound> {
    let rate = |run: &Finished| PerSecond(1.0 / run.wall.as_secs_f64());
    off.iter().zip(on).map(|(off, on)| PairedRound { a: rate(off), b: rate(on) }).collect()
}

/// The mean of single runs, by Student's t.
fn mean(runs: &[Finished], of: impl Fn(&Finished) -> Nanos) -> Option<record::Estimate> {
    let times: Vec<f64> = runs.iter().map(|run| of(run).0 as f64).collect();
    Estimate::mean_of(&times).map(Into::into)
}
