//! A recorded load on another token.
//!
//! - [`plan_replay`] says what of a workload is replayed, with which keys, and what is left out and
//!   why. It calls nothing: all of it can be told before anything runs.
//! - [`prepare_replay`] makes the keys and inputs of one process, in the process that has loaded the
//!   module; [`PreparedReplay::start`] runs its threads.
//! - [`measured_workload`] makes a workload of what was measured, so that there and here are read by
//!   the same code.
//! - [`find_scale`] looks for the number of times that a load keeps a latency.
//! - [`fit_device`] finds a queue that explains replays, and [`CapacityQuestion`] says what so many
//!   such devices carry.
//! - [`verify_replay`] judges the results, in a process that does not load the module.
//!
//! Never replayed: logins, logouts, changes of PINs and tokens, whatever makes objects on a token, and
//! whatever changes or destroys objects that the replay's own calls did not make. The keys that a
//! replay uses are its own.

#![allow(clippy::unnecessary_cast, reason = "CK_ULONG has 32 bits on some platforms")]

mod capacity;
mod engine;
mod inputs;
mod lacking;
mod measured;
mod mechanisms;
mod plan;
mod scale_limit;
mod steady;
mod steps;
mod verified;

pub use self::capacity::{
    CapacityQuestion, DeviceFit, DeviceModel, MOST_UTILISATION, MeasuredReplay, NoDeviceModel,
    PredictedCapacity, PredictedLoad, fit_device,
};
pub use self::engine::{PreparedReplay, ReplaySite, ReplayTrouble, RunningReplay, prepare_replay};
pub use self::lacking::unlisted_operations;
pub use self::measured::{
    KeptResult, ReplayedCall, ReplayedThread, mark_failures, measured_workload, planned_workload,
    recorded_part,
};
pub use self::plan::{
    KeyCertainty, MadeKeys, MappedKey, PlanError, ReplayOptions, ReplayPlan, SkipReason, Skipped,
    most_scale, plan_replay, replayed_span,
};
pub use self::scale_limit::{
    ScaleLevel, ScaleLimit, ScaleSearch, ScaleVerdict, find_scale, judge_level, transactions_level,
};
pub use self::steady::{MissingTransactions, SteadyLoad, SteadyPart};
pub use self::steps::{
    Due, KeyOrder, KeyUses, MadeObject, MechanismUse, PreparedInput, PreparedKind,
    ReplayParameters, ReplayProcess, ReplayStep, ReplayThread, StepInput,
};
pub use self::verified::{ReplayEvidence, VerifiedWork, verify_replay};
