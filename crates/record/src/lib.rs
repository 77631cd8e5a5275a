//! The record of a run: what Tapstone writes down, and all that it shows is made from.
//!
//! - [`Record`] and its parts are wire types: one field, one documented meaning, one unit. They
//!   hold figures and never compute them.
//! - [`Record::read`] and [`Record::write`] move it between memory and a JSON file, and
//!   [`SCHEMA_JSON`] is what any other program may hold that file to.
//! - [`samples`] keeps every single operation as Parquet, for those who want more than figures.
//!
//! Nothing here measures, and nothing here asks the system anything: the caller fills in a
//! record, with secrets already removed.
#![forbid(unsafe_code)]

mod breakdown;
mod budget;
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
mod load;
mod record;
mod row;
pub mod samples;
mod schema;
mod target;
mod trace;
mod transcribe;

pub use breakdown::{Outage, Phase, SeriesPoint, Share, ShareKind, Subtraction};
pub use budget::{Budget, BudgetPart, Chance, PartKind, ScenarioName};
pub use claim::{Claim, Judged, Verdict};
pub use comparison::{
    CallChange, CallFigures, Change, Comparison, ComparisonRow, Judgement, Pairing, Quantity, Side,
    SideBySide, SideBySideRow, Threshold,
};
pub use cost::Cost;
pub use door::{Projection, Queue, QueueFormula, WaterfallStep, WhatIf, WhatIfChange, WhatIfSet};
pub use environment::{ClockPrecision, Environment, SystemLoad};
pub use error::RecordError;
pub use figures::{
    Estimate, Fraction, Interval, Latency, Provenance, Range, RateBasis, RateUnit, Seconds,
    Throughput,
};
pub use file::write_file;
pub use finding::{BeforeAfter, Behaviour, Finding, FindingKind, Trial};
pub use histogram::{EncodedHistogram, HistogramError};
pub use host::{Host, HostClock, HostState};
pub use knee::{Knee, KneeStop, Level, ScalabilityLaw};
pub use load::{ClockReadings, Concurrency, Lateness, Load, LoadKind, WarmUp, Window};
pub use record::{DataFile, Imported, Record, SchemaName, Tool};
pub use row::{
    ClientCpu, Key, LimitedBy, Mechanism, Outcome, Row, Status, StoppedBy, Verification, Verifier,
};
pub use schema::{SCHEMA_JSON, schema};
pub use target::{
    Card, Daemon, Emulated, Library, Module, Program, Reader, Slot, Target, TargetKind, Token,
};
pub use trace::{Apdu, Call, CommandTime, Layer, Origin, SystemCall};
