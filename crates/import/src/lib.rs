//! Records from the result files of other programs.
//!
//! What others measured becomes rows that can be compared with, marked as published. Nothing is
//! made better than it was: what a file does not say stays unknown, what cannot be read is counted
//! and named by its line, and a difference that may be negative never becomes a time.
#![forbid(unsafe_code)]

pub mod jcalgtest;
pub mod panel_log;

mod error;

pub use error::ImportError;

use tapstone_record::Record;

/// What was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The record.
    pub record: Record,
    /// Lines that could not be read, and are not in the record.
    pub skipped: Vec<SkippedLine>,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedLine {
    /// Its number in the file, from 1.
    pub line: u64,
    /// Why, as part of a sentence.
    pub why: String,
}
