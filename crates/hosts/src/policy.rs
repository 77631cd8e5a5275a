//! What an agent lets a coordinator do on a target: its configuration says so, and nobody else.
//!
//! An enrolled coordinator may make keys of its own and use them, within limits. Everything beyond
//! is refused, with the line of the configuration that would allow it.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_measure::units::Nanos;
use tapstone_token::catalogue::Shape;
use tapstone_token::protocol::{CaseRun, Job, KeyPlan, Pace, Task};

use crate::config::TargetConfig;
use crate::limits::{KeyOperation, Limits};

/// The policy of one target, and what of it the present run has used up.
#[derive(Debug)]
pub(crate) struct Policy {
    target: String,
    limits: Limits,
    existing_keys: BTreeSet<String>,
    key_operations: BTreeMap<String, BTreeSet<KeyOperation>>,
    /// The case of each worker, by the coordinator's number.
    cases: BTreeMap<u32, CaseLoad>,
}

/// What a worker's case asks for.
#[derive(Clone, Copy, Debug, Default)]
struct CaseLoad {
    threads: u64,
    rate: f64,
    operations: u64,
}

/// Memory for results that are kept for verification, for each process.
const KEEP_BYTES: u64 = 256 << 20;

/// Keys, objects and sessions that a case may ask a token for, each.
const OBJECTS: u32 = 100_000;

/// The longest message of an operation.
const MESSAGE_BYTES: usize = 64 << 20;

/// Lanes of a mix.
const LANES: usize = 64;

impl Policy {
    pub(crate) fn new(target: &str, config: &TargetConfig) -> Self {
        Self {
            target: target.to_owned(),
            limits: config.limits,
            existing_keys: config.existing_keys.clone(),
            key_operations: config.key_operations.clone(),
            cases: BTreeMap::new(),
        }
    }

    /// How long a case may take.
    pub(crate) const fn longest_case(&self) -> Nanos {
        Nanos::from_secs(self.limits.seconds as u64)
    }

    /// Why one more worker process is refused.
    pub(crate) fn refusal_of_process(&self, there: usize) -> Option<String> {
        let asked = there as u64 + 1;
        self.above(asked, u64::from(self.limits.processes), "processes")
    }

    /// Why a worker's task is refused; `None`: it is not.
    pub(crate) fn refusal(&mut self, worker: u32, task: &Task) -> Option<String> {
        match task {
            Task::Prepare(job) => self.refusal_of_job(job),
            Task::Run(run) => self.refusal_of_run(worker, run),
            // What a key signs is made here, and never comes from elsewhere.
            Task::Inputs(_) => Some(format!(
                "target {}: inputs are made by the agent, and not taken from a coordinator",
                self.target
            )),
            _ => None,
        }
    }

    /// Whether a worker's case has not ended. It takes no other until then.
    pub(crate) fn has_case(&self, worker: u32) -> bool {
        self.cases.contains_key(&worker)
    }

    /// A worker's case has ended, or the worker is gone.
    pub(crate) fn forget(&mut self, worker: u32) {
        self.cases.remove(&worker);
    }

    fn refusal_of_job(&self, job: &Job) -> Option<String> {
        let objects = u64::from(job.extra_objects.max(job.idle_sessions));
        let lanes = self.above_fixed(job.lanes.len() as u64, LANES as u64, "operations in a mix");
        let objects = self.above_fixed(objects, u64::from(OBJECTS), "objects or sessions");
        lanes.or(objects).or_else(|| {
            job.lanes.iter().find_map(|lane| {
                let variant = &lane.variant;
                let bytes = variant.message_bytes as u64;
                let long = self.above_fixed(bytes, MESSAGE_BYTES as u64, "bytes in a message");
                long.or_else(|| match &lane.keys {
                    KeyPlan::Own { count, .. } => {
                        self.above_fixed(u64::from(*count), u64::from(OBJECTS), "keys")
                    }
                    KeyPlan::Existing { label, .. } => {
                        self.refusal_of_key(label.as_deref(), variant.shape)
                    }
                })
            })
        })
    }

    fn refusal_of_key(&self, label: Option<&str>, shape: Shape) -> Option<String> {
        let Some(label) = label else {
            return Some(format!(
                "target {}: existing keys are used by their label only, not by an id alone\n\
                 hint: --key-label names the key, and the agent's configuration allows it",
                self.target
            ));
        };
        if !self.existing_keys.contains(label) {
            let mut allowed = self.existing_keys.clone();
            allowed.insert(label.to_owned());
            let line = format!("existing-keys = {}", list(&allowed));
            return Some(self.not_allowed(&format!("the existing key {label:?}"), &line));
        }
        let operation = match shape {
            Shape::Decrypt => KeyOperation::Decrypt,
            Shape::Unwrap => KeyOperation::Unwrap,
            Shape::Wrap => KeyOperation::Wrap,
            Shape::Derive => KeyOperation::Derive,
            Shape::Decapsulate => KeyOperation::Decapsulate,
            _ => return None,
        };
        let allowed = self.key_operations.get(label).cloned().unwrap_or_default();
        if allowed.contains(&operation) {
            return None;
        }
        let names = allowed.iter().copied().chain([operation]).map(|it| it.name().to_owned());
        let line = format!("key-operations.{label:?} = {}", list(&names.collect()));
        Some(self.not_allowed(&format!("to {} with the key {label:?}", operation.name()), &line))
    }

    fn refusal_of_run(&mut self, worker: u32, run: &CaseRun) -> Option<String> {
        let rate = match run.pace {
            Pace::Closed | Pace::Chained => 0.0,
            Pace::Constant(rate) | Pace::Poisson(rate) if rate.0.is_finite() && rate.0 > 0.0 => {
                rate.0
            }
            Pace::Constant(rate) | Pace::Poisson(rate) => {
                let target = &self.target;
                return Some(format!(
                    "target {target}: {} operations a second are no rate",
                    rate.0
                ));
            }
        };
        let operations = run.counts.iter().flatten().fold(0u64, |sum, n| sum.saturating_add(*n));
        let load = CaseLoad { threads: u64::from(run.threads), rate, operations };
        self.cases.insert(worker, load);
        let threads = self.cases.values().map(|case| case.threads).sum();
        let operations =
            self.cases.values().fold(0u64, |sum, case| sum.saturating_add(case.operations));
        let rate: f64 = self.cases.values().map(|case| case.rate).sum();
        let seconds = run.warm_up.0.div_ceil(1_000_000_000);
        let refused = self
            .above(threads, u64::from(self.limits.threads), "threads")
            .or_else(|| self.above(operations, self.limits.operations, "operations"))
            .or_else(|| self.above(seconds, u64::from(self.limits.seconds), "seconds"))
            .or_else(|| self.above(rate.ceil() as u64, u64::from(self.limits.rate), "rate"))
            .or_else(|| self.above_fixed(run.keep_bytes, KEEP_BYTES, "bytes of kept results"));
        if refused.is_some() {
            self.cases.remove(&worker);
        }
        refused
    }

    /// Why a window is refused that lasts from one moment to another, on this machine's clock.
    pub(crate) fn refusal_of_window(&self, now: Nanos, task: &Task) -> Option<String> {
        let latest = match task {
            Task::Start { at } => *at,
            Task::Open { at, closes } => closes.unwrap_or(*at).max(*at),
            Task::Close { at } => *at,
            _ => return None,
        };
        let seconds = (latest - now).0.div_ceil(1_000_000_000);
        self.above(seconds, u64::from(self.limits.seconds), "seconds")
    }

    fn above(&self, asked: u64, most: u64, what: &str) -> Option<String> {
        (asked > most).then(|| {
            let line = format!("limits.{what} = {asked}");
            self.not_allowed(&format!("{asked} {what}, {most} at most"), &line)
        })
    }

    fn above_fixed(&self, asked: u64, most: u64, what: &str) -> Option<String> {
        (asked > most).then(|| {
            format!(
                "target {}: {asked} {what} are more than any agent allows ({most})",
                self.target
            )
        })
    }

    fn not_allowed(&self, what: &str, line: &str) -> String {
        format!(
            "target {}: its agent does not allow {what}\n\
             hint: this line under [targets.{}] of the agent's configuration would: {line}",
            self.target, self.target
        )
    }
}

/// As TOML writes it.
fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("[{}]", names.join(", "))
}

#[cfg(test)]
mod tests {
    use tapstone_measure::recorder::SliceGrid;
    use tapstone_measure::units::PerSecond;

    use super::*;

    fn policy() -> Policy {
        Policy::new("hsm-a", &toml::from_str("module = 'm.so'").unwrap())
    }

    fn run_task(pace: Pace) -> Task {
        Task::Run(Box::new(CaseRun {
            threads: 200,
            pace,
            first: 0,
            counts: None,
            grid: SliceGrid::default(),
            warm_up: Nanos::ZERO,
            keep_bytes: 0,
            seed: 0,
            mix: Vec::new(),
            samples: false,
            phases: false,
            max_failures: 1,
            reconnect: false,
        }))
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for rate in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            for pace in [Pace::Constant(PerSecond(rate)), Pace::Poisson(PerSecond(rate))] {
                let mut policy = policy();
                let refused = policy.refusal(0, &run_task(pace)).unwrap();
                assert!(refused.contains("hsm-a") && refused.contains("no rate"), "{refused}");
                assert!(!policy.has_case(0));
            }
        }
        assert_eq!(policy().refusal(0, &run_task(Pace::Constant(PerSecond(100.0)))), None);
    }

    #[test]
    fn load_is_counted_until_its_case_ends() {
        let mut policy = policy();
        assert_eq!(policy.refusal(0, &run_task(Pace::Closed)), None);
        assert!(
            policy.refusal(1, &run_task(Pace::Closed)).unwrap().contains("limits.threads = 400")
        );
        assert!(policy.has_case(0) && !policy.has_case(1));
        policy.forget(0);
        assert_eq!(policy.refusal(1, &run_task(Pace::Closed)), None);
    }
}
