//! The load that a program puts on its token: what it called, in which order and with which pauses,
//! without anything that it called it with.
//!
//! - [`record_workload`] makes a [`Workload`] from the events of a traced program.
//! - [`write_workload`] and [`read_workload`] keep it as Parquet (docs/WORKLOAD.md).
//! - [`operations`] and [`transactions`] say what of it a user counts.
//!
//! Labels, ids, PINs, keys and data never get in: an object is a number, and so is a template.
//! This crate calls no module; what replays a workload is `tapstone-replay`.

#![forbid(unsafe_code)]

mod columns;
mod file;
mod model;
mod numbering;
mod operations;
mod recording;
mod seen;
mod transactions;

pub use self::file::{
    WorkloadError, WorkloadLimits, read_workload, workload_of_bytes, write_workload,
};
pub use self::model::{
    KNOWN_ATTRIBUTES, TemplateShape, Workload, WorkloadCall, WorkloadHead, WorkloadLosses,
    WorkloadThread, pkcs11_function,
};
pub use self::operations::{OperationKind, TokenOperation, operations};
pub use self::recording::record_workload;
pub use self::transactions::{
    Transaction, TransactionRule, Transactions, transactions, transactions_by,
};
