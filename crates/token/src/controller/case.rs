//! A case from its keys to its figures, or to the reason why it has none.

use tapstone_measure::looper::WarmUpResult;
use tapstone_names::pkcs11::Pkcs11Failure;

use super::error::{Lost, TokenMeasureError};
use super::gather::{Gathered, SampleSink};
use super::plan::CasePlan;
use super::steering::TokenObserver;
use super::{CaseOutcome, HostClock, TokenController, figures, verify};

/// A case that ran.
pub(super) struct RanCase {
    pub(super) gathered: Gathered,
    pub(super) warm_ups: Vec<WarmUpResult>,
    /// Which of the prepared processes took part.
    pub(super) took_part: Vec<usize>,
    pub(super) threads: u32,
    /// The processors that the controller itself used on average meanwhile.
    pub(super) own_cores: f64,
    /// The rate was known well enough before the time was up.
    pub(super) precise: bool,
    /// Ended the case early.
    pub(super) lost: Option<Lost>,
    /// Lost when nobody measured any more: the figures hold, and samples or verification may lack.
    pub(super) lost_afterwards: Option<Lost>,
    /// With hosts: their clocks, as they were known over the whole case.
    pub(super) clocks: Vec<HostClock>,
    pub(super) interrupted: bool,
}

impl RanCase {
    /// Who was lost, at whatever time.
    pub(super) fn any_lost(&self) -> Option<&Lost> {
        self.lost.as_ref().or(self.lost_afterwards.as_ref())
    }
}

/// Why a case has no figures.
pub(super) enum CaseNotMeasured {
    /// A call of the trial, or before it, failed: the token cannot do this, or not this way.
    Refused(Pkcs11Failure),
    /// Everything else.
    Error(TokenMeasureError),
}

impl From<TokenMeasureError> for CaseNotMeasured {
    fn from(error: TokenMeasureError) -> Self {
        Self::Error(error)
    }
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

    fn without_figures(&mut self, plan: &CasePlan, why: CaseNotMeasured) -> CaseOutcome {
        // A process that died may have left keys; those that live have cleaned up.
        let cleaned = self.clean_up_after_the_lost();
        figures::without(plan, why).with_trouble(cleaned.err())
    }
}
