//! A row from its keys to its figures, or to the reason why it has none.

use tapstone_measure::looper::WarmUpResult;
use tapstone_names::pkcs11::Pkcs11Failure as Failure;

use super::error::{LabError, Lost};
use super::gather::{Gathered, SampleSink};
use super::plan::RowPlan;
use super::steering::Observer;
use super::{HostClock, Lab, RowOutcome, figures, verify};

/// A row that ran.
pub(super) struct Ran {
    pub(super) gathered: Gathered,
    pub(super) warm_ups: Vec<WarmUpResult>,
    /// Which of the prepared processes took part.
    pub(super) took_part: Vec<usize>,
    pub(super) threads: u32,
    /// The rate was known well enough before the time was up.
    pub(super) precise: bool,
    /// Ended the row early.
    pub(super) lost: Option<Lost>,
    /// Lost when nobody measured any more: the figures hold, and samples or verification may lack.
    pub(super) lost_afterwards: Option<Lost>,
    /// With hosts: their clocks, as they were known over the whole row.
    pub(super) clocks: Vec<HostClock>,
    pub(super) interrupted: bool,
}

impl Ran {
    /// Who was lost, at whatever time.
    pub(super) fn any_lost(&self) -> Option<&Lost> {
        self.lost.as_ref().or(self.lost_afterwards.as_ref())
    }
}

/// Why a row has no figures.
pub(super) enum NoRow {
    /// A call of the trial, or before it, failed: the token cannot do this, or not this way.
    Refused(Failure),
    /// Everything else.
    Error(LabError),
}

impl From<LabError> for NoRow {
    fn from(error: LabError) -> Self {
        Self::Error(error)
    }
}

impl Lab {
    /// Measures a row. What goes wrong is in the outcome, beside whatever was measured before.
    pub fn measure(
        &mut self,
        plan: &RowPlan,
        observer: &mut dyn Observer,
        samples: Option<&mut dyn SampleSink>,
    ) -> RowOutcome {
        observer.stage(plan.name(), "preparing keys");
        let prepared = match self.prepare(plan, plan.hosts, plan.processes) {
            Ok(prepared) => prepared,
            Err(why) => return self.without_figures(plan, why),
        };
        let numbers = prepared.numbers();
        let outcome = match self.run(plan, &prepared, &numbers, plan.threads, observer, samples) {
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

    fn without_figures(&mut self, plan: &RowPlan, why: NoRow) -> RowOutcome {
        // A process that died may have left keys; those that live have cleaned up.
        let cleaned = self.replace_the_dead();
        figures::without(plan, why).with_trouble(cleaned.err())
    }
}
