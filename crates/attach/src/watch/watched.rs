//! What came of watching.

use tapstone_events::Program;
use tapstone_measure::units::Nanos;

use super::{Watch, counted};
use crate::calibration::{ProbeCost, RESERVED};
use crate::counted::{CountedCall, FunctionTimes};
use crate::error::AttachError;
use crate::functions::WatchedFunction;
use crate::kernel::CallTally;
use crate::layout::{RESULT_UNSEEN, Totals};
use crate::source::AttachedEvents;

/// What came of it.
#[derive(Debug)]
pub struct Watched {
    /// The calls one by one, where that was wanted.
    pub events: Option<AttachedEvents>,
    /// The calls by process, thread, function and result, where they were not.
    pub counts: Vec<CountedCall>,
    /// How long they took, by function.
    pub times: Vec<FunctionTimes>,
    /// What the kernel has counted.
    pub totals: Totals,
    /// Programs that were watched.
    pub programs: Vec<Program>,
    /// When it began, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// When it ended, on CLOCK_MONOTONIC.
    pub ended: Nanos,
    /// How long it took to set the probes.
    pub attach_time: Nanos,
    /// How long it took to take them away.
    pub detach_time: Nanos,
    /// What the probes add to a call, which was subtracted.
    pub cost: ProbeCost,
    /// Of some modules only the beginnings of calls were seen: how long these took is not known.
    pub has_unseen_returns: bool,
    /// What to know of it.
    pub warnings: Vec<String>,
}

impl Watch {
    /// All that the kernel has counted, and what was kept.
    pub(super) fn finish(
        mut self,
        ended: Nanos,
        detach_time: Nanos,
    ) -> Result<Watched, AttachError> {
        let totals = self.kernel.totals()?.since(self.before);
        let counts = self.counts()?;
        for counted in &counts {
            let called = self.functions.iter_mut().filter(|it| it.is(counted));
            called.for_each(|function| function.is_called = true);
        }
        let warnings = self.warnings(totals);
        let events = match self.spool.take() {
            None => None,
            Some(spool) => Some(AttachedEvents {
                has_load: self.plan.with_load,
                ..AttachedEvents::new(
                    spool.finish()?,
                    self.functions,
                    self.programs.clone(),
                    self.code,
                    (self.started, ended),
                    totals.lost,
                    self.cost,
                )
            }),
        };
        Ok(Watched {
            events,
            counts,
            times: self.times,
            totals,
            programs: self.programs,
            started: self.started,
            ended,
            attach_time: self.attach_time,
            detach_time,
            cost: self.cost,
            has_unseen_returns: self.has_unseen_returns,
            warnings,
        })
    }

    fn counts(&self) -> Result<Vec<CountedCall>, AttachError> {
        let tallies = self.kernel.tallies()?.into_iter();
        let counted = tallies.filter_map(|tally| self.counted_call(tally)).collect();
        Ok(counted)
    }

    fn counted_call(&self, tally: CallTally) -> Option<CountedCall> {
        let function =
            self.functions.get((tally.function as usize).checked_sub(RESERVED.into())?)?;
        let cost = self.cost.of(function.is_stepped).0 * tally.count;
        Some(CountedCall {
            process: tally.process,
            thread: tally.thread,
            module: function.module.clone(),
            function: function.name,
            family: function.family,
            result: (tally.result != RESULT_UNSEEN).then_some(tally.result),
            count: tally.count,
            time: Nanos(tally.total_ns.saturating_sub(cost)),
        })
    }

    fn warnings(&self, totals: Totals) -> Vec<String> {
        let cost = self.cost;
        let mut warnings = vec![format!(
            "watched from outside: a call costs the program 1 to 3 µs more, of which {} ns (or {} ns \
             where the kernel has to step through the first instruction) lie inside a call's own time \
             and were subtracted, as measured at the start on two empty functions; a mapping \
             [uprobes] of 4 KiB stays in each process",
            cost.carried_out.0, cost.stepped.0,
        )];
        warnings.extend(self.notes.iter().cloned());
        warnings.extend(self.functions.iter().filter_map(WatchedFunction::group));
        let open = totals.begun.saturating_sub(totals.ended);
        for (count, what) in [
            (totals.at_attach, "under way when watching began: not counted"),
            (open, "not over when watching ended, or left in another way: not counted"),
            (totals.lost, "lost on the way, for want of room"),
            (totals.crowded, "not counted, for want of room"),
        ] {
            if count > 0 {
                warnings.push(format!("{} {what}", calls(count)));
            }
        }
        if totals.not_compared > 0 {
            warnings.push(format!(
                "{} not compared with others: its template has more than 16 attributes or one of \
                 more than 128 bytes, its answer more than 256 objects, or the kernel found them in \
                 no memory yet",
                match totals.not_compared {
                    1 => "1 search was".to_owned(),
                    count => format!("{count} searches were"),
                },
            ));
        }
        if totals.not_read > 0 {
            warnings.push(format!(
                "{} not be read, for more than 16 attributes or because the kernel found it in no \
                 memory yet: what it asks for is not known, and what it makes is taken to stay on \
                 the token",
                match totals.not_read {
                    1 => "1 template could".to_owned(),
                    count => format!("{count} templates could"),
                },
            ));
        }
        if totals.notes_lost > 0 {
            let notes = counted(totals.notes_lost, "note", "notes");
            warnings.push(format!("{notes} of waits or processes were lost on the way"));
        }
        if let Some(spool) = self.spool.as_ref().filter(|spool| spool.dropped > 0) {
            let dropped = counted(spool.dropped, "event", "events");
            warnings.push(format!("{dropped} had no room: --events-size allows more"));
        }
        warnings
    }
}

fn calls(count: u64) -> String {
    match count {
        1 => "1 call was".to_owned(),
        count => format!("{count} calls were"),
    }
}
