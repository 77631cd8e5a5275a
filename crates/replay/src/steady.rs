//! The transactions of a steady replay: those that were meant to begin while all clients are there.

use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_workload::{Transaction, TransactionRule, Workload, transactions, transactions_by};

use crate::measured::planned_workload;
use crate::plan::replayed_span;
use crate::steps::ReplayProcess;

/// What steady replays of one recording are cut by.
#[derive(Clone, Debug)]
pub struct SteadyLoad<'a> {
    /// The recording.
    pub workload: &'a Workload,
    /// From its first call to the end of its last: all clients are there from one such time after
    /// the start to two.
    pub span: Nanos,
    rule: TransactionRule,
    transactions: usize,
}

/// Which transactions of a plan begin while all clients are there.
#[derive(Clone, Debug)]
pub struct SteadyPart {
    rule: TransactionRule,
    planned: usize,
    /// In the order in which they are meant to begin.
    places: Vec<usize>,
}

/// Calls of a replay are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{made} transactions came of {planned} that were planned: calls are missing\nhint: replay it \
     with --scale, which shows what failed"
)]
pub struct MissingTransactions {
    made: usize,
    planned: usize,
}

impl<'a> SteadyLoad<'a> {
    /// Of a recording and the part of it that is replayed.
    #[must_use]
    pub fn new(workload: &'a Workload, recorded: &Workload) -> Self {
        let cut = transactions(recorded);
        let span = replayed_span(workload);
        Self { workload, span, rule: cut.rule, transactions: cut.list.len() }
    }

    /// Which transactions of a plan begin while all clients are there.
    #[must_use]
    pub fn steady_part(&self, processes: &[ReplayProcess]) -> SteadyPart {
        let planned = transactions_by(&self.rule, &planned_workload(self.workload, processes));
        let starts = planned.iter().enumerate().filter(|(_, one)| one.is_ended);
        let mut steady: Vec<(Nanos, usize)> = starts
            .map(|(place, one)| (one.start, place))
            .filter(|(start, _)| self.is_steady(*start))
            .collect();
        steady.sort_by_key(|(start, _)| *start);
        let places = steady.into_iter().map(|(_, place)| place).collect();
        SteadyPart { rule: self.rule.clone(), planned: planned.len(), places }
    }

    /// Whether all clients are there at that moment.
    fn is_steady(&self, moment: Nanos) -> bool {
        (self.span.0..self.span.0.saturating_mul(2)).contains(&moment.0)
    }

    /// At how many transactions a second they are meant to come.
    #[must_use]
    pub fn rate(&self, scale: u32) -> PerSecond {
        PerSecond(self.transactions as f64 * f64::from(scale) / self.span.as_secs_f64())
    }
}

impl SteadyPart {
    /// The transactions of a replay that were meant to begin while all clients are there, in that
    /// order: as many for each client as were recorded, however late they came.
    ///
    /// # Errors
    /// Calls are missing.
    pub fn transactions(
        &self,
        measured: &Workload,
    ) -> Result<Vec<Transaction>, MissingTransactions> {
        let made = transactions_by(&self.rule, measured);
        if made.len() != self.planned {
            return Err(MissingTransactions { made: made.len(), planned: self.planned });
        }
        Ok(self.places.iter().map(|place| made[*place]).collect())
    }
}
