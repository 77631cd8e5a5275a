//! From what was gathered to the cases of a record.

use std::collections::BTreeMap;

use tapstone_measure::attribution::{Attribution, attribute_case};
use tapstone_measure::looper::LoopEnd;
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::{FEW_PER_WORKER, Summary};
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_names::pkcs11::Rv;
use tapstone_record as record;
use tapstone_record::{Fraction, Seconds};

use super::TokenController;
use super::case_figures::CaseFigures;
use super::describe::{concurrency, describe_variant, load};
use super::error::TokenMeasureError;
use super::evidence::limit_record;
use super::host_figures::used_cores;
use super::judged::Judged;
use super::outcome::{CaseOutcome, step_of};
use super::plan::{CasePlan, CaseStop, KeysPlan, LoadPlan};
use super::prepare::{Prepared, new_keys};
use super::ran_case::RanCase;
use super::warnings;
use crate::catalogue::Shape;
use crate::protocol::NewKeys;

/// A case that ran.
pub(super) fn outcome(
    controller: &TokenController,
    plan: &CasePlan,
    prepared: &Prepared,
    ran: RanCase,
    judged: Vec<Judged>,
) -> CaseOutcome {
    let maker = CaseFigures { controller, plan, prepared, ran: &ran };
    let mut cases = Vec::new();
    let mut first_summary = None;
    if plan.lanes.len() > 1 {
        let (case, summary) = maker.case_result(None, Some(Judged::sum(&judged)));
        first_summary = Some(summary);
        cases.push(case);
    }
    for (lane, judged) in judged.into_iter().enumerate() {
        let (case, summary) = maker.case_result(Some(lane), Some(judged));
        first_summary.get_or_insert(summary);
        cases.push(case);
    }
    let interrupted = ran.interrupted;
    let hosts = maker.host_parts();
    let lost = ran.any_lost().map(|lost| controller.lost(lost.clone()));
    let refuted = ran
        .refuted
        .iter()
        .map(|refuted| TokenMeasureError::Refuted { host: refuted.host.clone(), why: refuted.why });
    let trouble = lost.into_iter().chain(refuted).collect();
    CaseOutcome { cases, summary: first_summary, trouble, interrupted, hosts }
}

impl CaseFigures<'_> {
    /// The case of one lane, or of all together.
    fn case_result(
        &self,
        lane: Option<usize>,
        judged: Option<Judged>,
    ) -> (record::CaseResult, Summary) {
        let gathered = &self.ran.gathered;
        let mut series = match lane {
            Some(lane) => gathered.lanes[lane].clone(),
            None => gathered.combined(),
        };
        let window = gathered.window();
        series.extend_to(window);
        let total = series.total();
        let summary = gathered.summary(&series, lane, self.workers(), self.plan.common.clock_step);
        let name = match lane {
            Some(lane) => self.plan.lanes[lane].variant.name.as_str(),
            None => self.plan.name(),
        };
        let status = self.status(lane, &total);
        let mut case =
            record::CaseResult::new(name, status, concurrency(self.plan), load(self.plan));
        if let Some(lane) = lane {
            let ready = self.prepared.ready.first().and_then(|lanes| lanes.get(lane));
            describe_variant(&mut case, &self.plan.lanes[lane].variant, ready);
            case.key = self.key(lane);
            case.new_keys_on_token = self.new_keys_on_token(lane);
        }
        case.seed = Some(self.plan.common.seed);
        case.clock_readings = match self.plan.load {
            LoadPlan::Chained => record::ClockReadings::Chained,
            _ => record::ClockReadings::Two,
        };
        case.window = Some(record::Window {
            start_ns: gathered.opened,
            end_ns: gathered.closed,
            seconds: Seconds(window.as_secs_f64()),
        });
        case.completed = total.completed;
        case.failed = self.failures(lane);
        self.add_figures(&mut case, &summary, &total);
        case.series = record::SeriesPoint::all(&series);
        case.shares = self.shares(lane, window);
        case.warm_up = self.warm_up(&summary);
        case.verification = judged.and_then(|judged| self.verification(judged, &total));
        case.outages = self.outages();
        case.phases = self.phases(&total);
        case.stopped_by = Some(self.stopped_by());
        if lane.is_none() || self.plan.lanes.len() == 1 {
            self.add_client(&mut case, &total, window);
            self.add_schedule(&mut case, &total, window);
        }
        case.warnings = warnings::case_warnings(&case, self.plan, self.ran, &series, &summary);
        case.warnings.extend(warnings::broken_outside(&self.ran.broken_outside(lane)));
        case.warnings.extend(self.host_warnings());
        (case, summary)
    }

    fn status(&self, lane: Option<usize>, total: &Slice) -> record::Status {
        if let Some(lost) = self.ran.any_lost() {
            let outcome = match total.completed {
                0 => record::Outcome::Failed,
                _ => record::Outcome::Partial,
            };
            return record::Status::at(outcome, step_of(lost), lost.code());
        }
        if let Some(refuted) = self.ran.refuted.first() {
            let outcome = record::Outcome::Partial;
            return record::Status::at(outcome, "verification", refuted.code());
        }
        let threads = || self.done().flat_map(|done| &done.threads);
        let gave_up = threads().any(|thread| matches!(thread.ended, LoopEnd::GaveUp(_)));
        let failed = gave_up || !self.failures(lane).is_empty();
        // A module that answers what cannot be is not to be trusted, whenever it did.
        let outside = self.ran.broken_outside(lane).first().map(|broken| broken.first);
        if !failed && outside.is_none() {
            return if_measured(lane.is_some() && self.plan.lanes.len() > 1, total);
        }
        let outcome =
            if total.completed == 0 { record::Outcome::Failed } else { record::Outcome::Partial };
        let last = || threads().find_map(|thread| thread.last_failure);
        match if failed { last() } else { outside } {
            Some(failure) => {
                record::Status::at(outcome, failure.call.name(), failure.code.to_string())
            }
            None => record::Status { outcome, step: None, code: None },
        }
    }

    fn failures(&self, lane: Option<usize>) -> BTreeMap<String, u64> {
        let lanes = lane.map_or(0..self.plan.lanes.len(), |lane| lane..lane + 1);
        let mut failures = BTreeMap::new();
        for (code, count) in lanes.flat_map(|lane| self.ran.gathered.failures(lane)) {
            *failures.entry(Rv(code).to_string()).or_default() += count;
        }
        failures
    }

    /// Of an operation that generates keys: whether they are kept on the token.
    fn new_keys_on_token(&self, lane: usize) -> Option<bool> {
        let shape = self.plan.lanes[lane].variant.shape;
        let generates = matches!(shape, Shape::GenerateKey | Shape::GenerateKeyPair);
        generates.then(|| new_keys(self.plan) == NewKeys::OnToken)
    }

    fn key(&self, lane: usize) -> Option<record::Key> {
        let parts = self.ran.took_part.iter().map(|part| &self.prepared.ready[*part]);
        let keys: Vec<_> = parts.flat_map(|lanes| &lanes[lane].keys).collect();
        let first = keys.first()?;
        let label = match &self.plan.keys {
            KeysPlan::Existing { label, .. } => label.clone(),
            KeysPlan::Own { .. } => None,
        };
        Some(record::Key {
            token: Some(first.on_token),
            sensitive: first.sensitive,
            extractable: first.extractable,
            count: keys.len() as u32,
            label,
        })
    }

    fn add_figures(&self, case: &mut record::CaseResult, summary: &Summary, total: &Slice) {
        let few = summary.n < FEW_PER_WORKER * u64::from(self.workers());
        let over = if few { record::RateBasis::FirstToLast } else { record::RateBasis::Window };
        case.set_figures(summary, total);
        if self.ran.gathered.window() > Nanos::ZERO {
            case.throughput = Some(record::Throughput::operations(summary.rate, over));
        }
    }

    fn shares(&self, lane: Option<usize>, window: Nanos) -> Vec<record::Share> {
        let numbers = self.prepared.numbers();
        let completed = |place: usize| -> u64 {
            let lanes = &self.ran.gathered.shares[place];
            match lane {
                Some(lane) => lanes[lane].total().completed,
                None => lanes.iter().map(|lane| lane.total().completed).sum(),
            }
        };
        let all: u64 = (0..self.ran.took_part.len()).map(completed).sum();
        let share = |kind, name: String, completed: u64| record::Share {
            client_utilisation: None,
            mean_ns: None,
            longest_ns: None,
            kind,
            name,
            completed,
            rate: PerSecond(completed as f64 / window.as_secs_f64().max(1e-9)),
            share: Fraction(completed as f64 / all.max(1) as f64),
        };
        let mut shares = Vec::new();
        if let Some(hosts) = self.controller.hosts() {
            for (host, name) in hosts.names().into_iter().enumerate() {
                let places = self.places_of(host);
                if !places.is_empty() {
                    let sum = places.iter().copied().map(completed).sum();
                    shares.push(record::Share {
                        client_utilisation: self.utilisation_of(host).map(Fraction),
                        ..share(record::ShareKind::Host, name, sum)
                    });
                }
            }
        } else if self.prepared.processes.len() > 1 {
            for (token, processes) in self.prepared.processes.iter().enumerate() {
                let of_token = self.ran.took_part.iter().enumerate();
                let sum = of_token
                    .filter(|(_, part)| processes.contains(&numbers[**part]))
                    .map(|(place, _)| completed(place))
                    .sum();
                let label = self.controller.targets[token].token.label.clone();
                shares.push(share(record::ShareKind::Token, label, sum));
            }
        }
        // One process on each host is that host.
        let alone = self.controller.hosts().is_some() && self.plan.processes == 1;
        if self.ran.took_part.len() > 1 && !alone {
            for place in 0..self.ran.took_part.len() {
                let name = format!("process {}", place + 1);
                shares.push(share(record::ShareKind::Process, name, completed(place)));
            }
        }
        shares
    }

    fn warm_up(&self, summary: &Summary) -> Option<record::WarmUp> {
        let first = self.ran.warm_ups.first()?;
        let length = self.ran.warm_ups.iter().map(|thread| thread.length).max()?;
        let operations = self.ran.warm_ups.iter().map(|thread| thread.operations).sum();
        Some(record::WarmUp::from_calls(operations, length, &first.first, summary))
    }

    fn verification(&self, judged: Judged, total: &Slice) -> Option<record::Verification> {
        // What was kept of operations that a partial window cut off is no part of the row.
        let checked = judged.checked.min(total.completed);
        let wrong = judged.wrong.min(checked);
        let by = judged.by?;
        let verification = record::Verification::new(total.completed, checked, wrong, by);
        let own = judged.own;
        let own_sample = (own.drawn > 0).then(|| {
            let found = record::SampleFindings {
                checked: own.checked,
                wrong: own.wrong,
                unproven: own.unproven,
            };
            record::OwnSample::new(own.kept.min(total.completed), own.drawn, found)
        });
        Some(record::Verification { own_sample, ..verification })
    }

    fn outages(&self) -> Vec<record::Outage> {
        let opened = self.ran.gathered.opened;
        let closed = self.ran.gathered.closed;
        let threads = self.done().flat_map(|done| &done.threads);
        let outages = threads.flat_map(|thread| &thread.outages).map(|outage| record::Outage {
            start_ns: outage.start - opened,
            length_ns: outage.length.unwrap_or(closed - outage.start),
            code: outage.failure.code.to_string(),
        });
        let mut outages: Vec<_> = outages.collect();
        outages.sort_by_key(|outage| outage.start_ns);
        outages
    }

    fn phases(&self, total: &Slice) -> Vec<record::Phase> {
        let mut sums: Vec<(tapstone_names::pkcs11::Pkcs11Function, u64, Nanos)> = Vec::new();
        let threads = self.done().flat_map(|done| &done.threads);
        for (call, count, time) in threads.flat_map(|thread| &thread.phases) {
            match sums.iter_mut().find(|(name, ..)| name == call) {
                Some((_, n, sum)) => {
                    *n += count;
                    *sum += *time;
                }
                None => sums.push((*call, *count, *time)),
            }
        }
        let all: Nanos = sums.iter().map(|(.., sum)| *sum).sum();
        let phase = |(call, _, sum): (tapstone_names::pkcs11::Pkcs11Function, u64, Nanos)| {
            let mean = sum.0 as f64 / total.completed.max(1) as f64;
            let share = Fraction(sum.0 as f64 / all.0.max(1) as f64);
            record::Phase::new(call.to_string(), mean, share)
        };
        sums.into_iter().map(phase).collect()
    }

    fn stopped_by(&self) -> record::StoppedBy {
        let mut threads = self.done().flat_map(|done| &done.threads).peekable();
        let failed = self.ran.lost.is_some()
            || threads.peek().is_some()
                && threads.all(|thread| matches!(thread.ended, LoopEnd::GaveUp(_)));
        match self.plan.stop {
            _ if self.ran.interrupted => record::StoppedBy::Interrupted,
            _ if failed => record::StoppedBy::Failures,
            _ if self.ran.precise => record::StoppedBy::Precision,
            CaseStop::Count(_) => record::StoppedBy::Count,
            _ => record::StoppedBy::Time,
        }
    }

    /// Processor time, busy share, and what limits the rate.
    fn add_client(&self, case: &mut record::CaseResult, total: &Slice, window: Nanos) {
        let workers = f64::from(self.workers());
        let user = self.done().map(|done| done.user.as_secs_f64()).sum();
        let system = self.done().map(|done| done.system.as_secs_f64()).sum();
        let utilisation = used_cores(self.done()) / self.usable_cores();
        case.client_cpu = Some(record::ClientCpu {
            user_seconds: Seconds(user),
            system_seconds: Seconds(system),
            utilisation: Fraction(utilisation),
        });
        let closed = !matches!(self.plan.load, LoadPlan::Open { .. });
        if closed && window > Nanos::ZERO {
            case.busy_share =
                Some(Fraction(total.busy.as_secs_f64() / (workers * window.as_secs_f64())));
        }
        if self.done().next().is_some() {
            let evidence = self.evidence();
            let attribution = if closed {
                attribute_case(&evidence)
            } else {
                Attribution::unknown("an open loop offers a rate and looks for no limit")
            };
            let limit = limit_record(attribution, &evidence);
            case.limited_by = limit.limited_by;
            case.limit = Some(limit);
        }
    }

    /// What an open loop offered, and how well it kept to its schedule.
    fn add_schedule(&self, case: &mut record::CaseResult, total: &Slice, window: Nanos) {
        let LoadPlan::Open { rate, .. } = self.plan.load else { return };
        case.offered_rate = Some(rate);
        case.achieved_rate = Some(PerSecond(
            (total.completed + total.failed) as f64 / window.as_secs_f64().max(1e-9),
        ));
        let late = self.ran.gathered.lateness.total();
        let mean = (late.completed > 0)
            .then(|| Nanos((late.latency_sum / u128::from(late.completed.max(1))) as u64));
        case.scheduling_delay_ns = Some(record::SchedulingDelay {
            mean,
            p50: late.quantile(0.5),
            p90: late.quantile(0.9),
            p95: late.quantile(0.95),
            p99: late.quantile(0.99),
            p99_9: late.quantile(0.999),
            max: late.max,
        });
    }
}

/// Where nothing failed: a case in which no operation completed has no figures all the same. A rare
/// operation of a mix may have had no turn.
fn if_measured(of_mix: bool, total: &Slice) -> record::Status {
    if total.completed == 0 && !of_mix {
        let code = "no operation completed in the window";
        return record::Status::at(record::Outcome::Failed, "window", code);
    }
    record::Status::OK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_without_an_operation_is_not_ok() {
        let none = Slice::empty();
        assert_eq!(if_measured(false, &none).outcome, record::Outcome::Failed);
        assert_eq!(if_measured(true, &none), record::Status::OK);
        let some = Slice { completed: 1, ..none };
        assert_eq!(if_measured(false, &some), record::Status::OK);
    }
}
