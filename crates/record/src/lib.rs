//! The record of a run: all that Tapstone writes down, and all that it shows is made from.
//!
//! - [`Record`] and its parts are wire types: one field, one documented meaning, one unit. They hold
//!   figures and never compute them.
//! - [`Record::read`] and [`Record::write`] move a record between memory and a JSON file.
//!   [`SCHEMA_JSON`] is the JSON Schema that any other program may hold that file to.
//! - [`samples`] keeps every single operation as Parquet.
//!
//! Nothing here measures or asks the system anything. The caller fills in a record, with secrets
//! already removed.
//!
//! ```
//! use tapstone_record::{
//!     CaseResult, Concurrency, Environment, Load, Outcome, Record, Status, Target, TargetKind, Tool,
//! };
//!
//! let tool = Tool { name: "tapstone".into(), version: "1.0.0".into() };
//! let start = jiff::Timestamp::UNIX_EPOCH;
//! let mut record = Record::new(tool, start, Environment::default(), Target::new(TargetKind::Token));
//! let status = Status::at(Outcome::Unsupported, "C_SignInit", "CKR_MECHANISM_INVALID");
//! record.results.push(CaseResult::new("eddsa.sign", status, Concurrency::ONE, Load::CLOSED));
//!
//! let json = record.to_json()?;
//! assert!(json.contains("\"schema\": \"tapstone.record/2\""));
//! assert_eq!(Record::from_json(&json, "run.json")?, record);
//! # Ok::<(), tapstone_record::RecordError>(())
//! ```
//!
//! A record of another format is refused, with a hint:
//!
//! ```
//! use tapstone_record::Record;
//!
//! let error = Record::from_json(r#"{ "schema": "tapstone.record/9" }"#, "run.json").unwrap_err();
//! assert!(error.to_string().contains("run.json"));
//! ```
#![forbid(unsafe_code)]

mod breakdown;
mod budget;
mod case_result;
mod claim;
mod comparison;
mod cost;
mod door;
mod environment;
mod error;
mod figures;
mod file;
mod finding;
mod histogram;
mod host;
mod knee;
mod limit;
mod load;
mod record;
pub mod samples;
mod schema;
mod target;
mod trace;
mod transcribe;
mod unique_fields;
mod version_1;
mod within;

pub use breakdown::{Outage, Phase, SeriesPoint, Share, ShareKind, Subtraction};
pub use budget::{Budget, BudgetPart, PartKind, Probability, ScenarioName};
pub use case_result::{
    CaseResult, ClientCpu, Key, Mechanism, Outcome, OwnSample, SampleFindings, Status, StoppedBy,
    Verification, Verifier,
};
pub use claim::{Claim, Judged, Verdict};
pub use comparison::{
    CallChange, CallFigures, Change, ComparedCase, Comparison, Judgement, NoNumber, NotCompared,
    Pairing, Quantity, Side, SideBySide, SideBySideCase, Threshold,
};
pub use cost::Cost;
pub use door::{
    CardKindFigures, ChangedPart, ModelPrediction, Projection, Queue, QueueFormula, RemainingPart,
    SavingBasis, SharedStation, WaterfallStep, WhatIf, WhatIfChange, WhatIfSet,
};
pub use environment::{ClockPrecision, Environment, SystemLoad};
pub use error::{Position, RecordError};
pub use figures::{
    Estimate, Fraction, Interval, Latency, Provenance, Range, RateBasis, RateUnit, Seconds,
    Throughput, Variation,
};
pub use finding::{BeforeAfter, Behaviour, CallPath, CallSite, Finding, FindingKind, Trial};
pub use histogram::{EncodedHistogram, HistogramError};
pub use host::{Host, HostClock, HostState};
pub use knee::{Knee, KneeStop, Level, LevelRate, ScalabilityLaw};
pub use limit::{LimitEvidence, LimitedBy, WaitShares};
pub use load::{ClockReadings, Concurrency, Load, LoadKind, SchedulingDelay, WarmUp, Window};
pub use record::{DataFile, Imported, Record, SchemaName, Tool};
pub use schema::{SCHEMA_JSON, schema};
pub use target::{
    Card, Daemon, Emulated, Library, Module, Program, Reader, Slot, Target, TargetKind, Token,
};
pub use trace::{
    Apdu, Call, CommandTime, Layer, Origin, ProcessTime, SystemCall, TimeKind, TimePart,
    WasteSearch,
};
pub use within::{
    ArrivalKind, DeviceCapacity, GeneratorState, OfferedLevel, PredictedScale, RateWithin,
    RateWithinOutcome, RateWithinStop,
};
