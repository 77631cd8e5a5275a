//! One result: one operation, under one load, with everything needed to believe it or not.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::{Nanos, PerSecond};

use crate::breakdown::{Outage, Phase, SeriesPoint, Share, Subtraction};
use crate::figures::{Fraction, Interval, Latency, Provenance, Seconds, Throughput};
use crate::histogram::EncodedHistogram;
use crate::limit::{LimitEvidence, LimitedBy};
use crate::load::{ClockReadings, Concurrency, Load, SchedulingDelay, WarmUp, Window};

/// One operation under one load.
///
/// Lists are always there, if empty. Figures are absent when nothing was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Which operation, as one documented variant: `rsa2048.sign`, `pcsc.end_transaction`.
    pub operation: String,
    /// Whether it could be measured, and where it failed if not.
    pub status: Status,
    /// Where the figures of this case came from.
    #[serde(default)]
    pub provenance: Provenance,
    /// The mechanism of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// The key that it ran with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// Of an operation that generates keys: they are kept on the token (CKA_TOKEN), not only for
    /// the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_keys_on_token: Option<bool>,
    /// The length of the input, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// The seed of what is drawn: inputs, the order of what takes turns, pauses between rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many workers shared the work.
    pub concurrency: Concurrency,
    /// What made a worker start its next operation.
    pub load: Load,
    /// Open loop: the operations per second that were to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub offered_rate: Option<PerSecond>,
    /// Open loop: the operations per second that did start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub achieved_rate: Option<PerSecond>,
    /// Open loop: how late the generator itself was, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_delay_ns: Option<SchedulingDelay>,
    /// How the clock was read around an operation.
    #[serde(default)]
    pub clock_readings: ClockReadings,
    /// The stretch of time that the figures are taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// What ran before the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Operations that ended well in the window. Only these count in the figures.
    pub completed: u64,
    /// Operations that failed in the window, by return code.
    #[serde(default)]
    pub failed: BTreeMap<String, u64>,
    /// Operations completed per second, all workers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// How long one operation took, in nanoseconds; in an open loop from its intended start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latency>,
    /// How the intervals of this case were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Time inside calls over workers times window: 1 when a closed loop kept every worker busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<Fraction>,
    /// All latencies of the window, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogram>,
    /// The latencies one by one, in nanoseconds and in order, where there are at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<u64>")]
    pub latencies_ns: Vec<Nanos>,
    /// The window in slices, in order.
    #[serde(default)]
    pub series: Vec<SeriesPoint>,
    /// The calls that the operation consists of, in order.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// What the figures were subtracted from, where they are differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtraction: Option<Subtraction>,
    /// Who did how much of the work.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// Stretches in which nothing completed.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Whether the results were right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Processor time that the client itself used in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu: Option<ClientCpu>,
    /// What limits the rate.
    #[serde(default)]
    pub limited_by: LimitedBy,
    /// Why that is said, and what was seen of the threads and their machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitEvidence>,
    /// Why the case ended when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
    /// What a reader of this case should know, as sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl CaseResult {
    /// A case without figures: what an operation that cannot be measured leaves behind.
    #[must_use]
    pub fn new(
        operation: impl Into<String>,
        status: Status,
        concurrency: Concurrency,
        load: Load,
    ) -> Self {
        Self {
            operation: operation.into(),
            status,
            provenance: Provenance::default(),
            mechanism: None,
            key: None,
            new_keys_on_token: None,
            message_bytes: None,
            seed: None,
            concurrency,
            load,
            offered_rate: None,
            achieved_rate: None,
            scheduling_delay_ns: None,
            clock_readings: ClockReadings::default(),
            window: None,
            warm_up: None,
            completed: 0,
            failed: BTreeMap::new(),
            throughput: None,
            latency_ns: None,
            interval: None,
            busy_share: None,
            histogram: None,
            latencies_ns: Vec::new(),
            series: Vec::new(),
            phases: Vec::new(),
            subtraction: None,
            shares: Vec::new(),
            outages: Vec::new(),
            verification: None,
            client_cpu: None,
            limited_by: LimitedBy::default(),
            limit: None,
            stopped_by: None,
            warnings: Vec::new(),
        }
    }
}

/// Whether an operation could be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// How the case ended; the figures are whole only after `ok`.
    pub outcome: Outcome,
    /// The call or step that failed, for example `C_GenerateKeyPair`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its return code by name, for example `CKR_MECHANISM_INVALID`, or a status word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl Status {
    /// The status of a case in which everything went well.
    pub const OK: Self = Self { outcome: Outcome::Ok, step: None, code: None };

    /// Something did not, in this step and with this return code.
    #[must_use]
    pub fn at(outcome: Outcome, step: impl Into<String>, code: impl Into<String>) -> Self {
        Self { outcome, step: Some(step.into()), code: Some(code.into()) }
    }
}

/// How the measurement of an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Measured, without a failure.
    Ok,
    /// The target does not offer it.
    Unsupported,
    /// Measured, but some operations failed or some workers dropped out.
    Partial,
    /// Could not be measured.
    Failed,
}

/// The cryptographic mechanism of an operation (PKCS#11 v3.1, section 6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mechanism {
    /// Its name as its specification spells it, for example `CKM_RSA_PKCS`.
    pub name: String,
    /// Its parameters in words, for example `SHA-256, MGF1 SHA-256, salt 32 bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// Whether the token says that hardware does it (CKF_HW); null when it does not say.
    pub hardware: Option<bool>,
}

/// The key that an operation ran with. Null where the token does not tell an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Key {
    /// Kept on the token (CKA_TOKEN), not only for the session.
    pub token: Option<bool>,
    /// Never leaves the token in the clear (CKA_SENSITIVE).
    pub sensitive: Option<bool>,
    /// May leave the token wrapped, or in the clear if not sensitive (CKA_EXTRACTABLE).
    pub extractable: Option<bool>,
    /// How many different keys the workers used.
    pub count: u32,
    /// Its label (CKA_LABEL), when the user named an existing key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Whether the results were right. One wrong result fails the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Results that could have been checked.
    pub eligible: u64,
    /// Results that were checked.
    pub checked: u64,
    /// Results that were wrong.
    pub wrong: u64,
    /// Who checked the results: software here, an agent, or the token itself.
    pub by: Verifier,
    /// The largest share of wrong results among all that were eligible which this leaves possible,
    /// at a confidence of 95 %. Absent where nothing was checked, or something was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_wrong_share: Option<Fraction>,
    /// With agents: a sample that the coordinator drew and judged itself. Absent where it could draw
    /// nothing: from what is encrypted or derived with a secret key, whose value no agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_sample: Option<OwnSample>,
}

/// A coordinator's own sample of results that agents kept. It is drawn after each has committed
/// itself to all that it kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnSample {
    /// Results that agents kept, and committed themselves to.
    pub kept: u64,
    /// Results that the coordinator drew of them.
    pub drawn: u64,
    /// Results of these that the coordinator judged.
    pub checked: u64,
    /// Results that it found wrong.
    pub wrong: u64,
    /// Results that were not shown, or not as they had been committed to. One makes the case partial.
    pub unproven: u64,
    /// The largest share of wrong results among those kept which this leaves possible, at a
    /// confidence of 95 %. Absent where nothing was checked, or something was wrong or unproven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_wrong_share: Option<Fraction>,
}

impl OwnSample {
    /// What was found of a sample.
    #[must_use]
    pub fn new(kept: u64, drawn: u64, found: SampleFindings) -> Self {
        let SampleFindings { checked, wrong, unproven } = found;
        let sound = wrong == 0 && unproven == 0 && checked > 0;
        let largest_wrong_share = sound.then(|| largest_wrong_share(kept, checked));
        Self { kept, drawn, checked, wrong, unproven, largest_wrong_share }
    }
}

/// What a coordinator found of what it drew, in results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleFindings {
    /// How many it judged.
    pub checked: u64,
    /// How many of these were wrong.
    pub wrong: u64,
    /// How many were not shown as they had been committed to.
    pub unproven: u64,
}

/// The largest share of wrong results that a random sample without any leaves possible, at 95 %.
fn largest_wrong_share(eligible: u64, checked: u64) -> Fraction {
    // With a share s wrong, n results are all right with a probability of (1 - s)^n.
    let possible = 1.0 - 0.05f64.powf(1.0 / checked as f64);
    Fraction(if checked >= eligible { 0.0 } else { possible })
}

impl Verification {
    /// What was found of a sample that was drawn at random.
    #[must_use]
    pub fn new(eligible: u64, checked: u64, wrong: u64, by: Verifier) -> Self {
        let sound = wrong == 0 && checked > 0;
        let largest_wrong_share = sound.then(|| largest_wrong_share(eligible, checked));
        Self { eligible, checked, wrong, by, largest_wrong_share, own_sample: None }
    }

    /// An agent did not show what it had committed itself to.
    #[must_use]
    pub fn is_unproven(&self) -> bool {
        self.own_sample.is_some_and(|sample| sample.unproven > 0)
    }
}

/// Who checked the results.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verifier {
    /// Software that the device has no part in.
    Software,
    /// The same software on the machine of an agent, which is taken at its word.
    Agent,
    /// The token itself, by a round trip: it could be wrong in the same way twice.
    Token,
}

/// Processor time that the client itself used in the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCpu {
    /// In user mode, in seconds, all workers together.
    pub user_seconds: Seconds,
    /// In the kernel, in seconds, all workers together.
    pub system_seconds: Seconds,
    /// Both, over the seconds of processor that the client could have had: the smallest of
    /// workers, cores and quota, times the window.
    pub utilisation: Fraction,
}

/// Why a case ended when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// The interval of its rate was narrow enough.
    Precision,
    /// Its time was up.
    Time,
    /// It had done the number of operations asked for.
    Count,
    /// The user, or a signal, ended the run.
    Interrupted,
    /// Too much failed to go on.
    Failures,
}
