//! Shows a record: as text for a terminal, as one page for a browser, as CSV for a spreadsheet; and as
//! Markdown, JUnit's XML, annotations of GitHub and OpenMetrics for other programs.
//!
//! A record goes in, text comes out. Nothing here measures, reads a file, or asks the system:
//! the caller knows the width of the terminal and whether it may be coloured. Each output has a
//! module of its own. They share how figures are printed and how values are worded.
//!
//! # A record as text
//!
//! [`terminal::render`] makes lines that fit the width of a [`terminal::Style`]:
//!
//! ```
//! use tapstone_record::Record;
//! use tapstone_report::terminal::{self, Style};
//!
//! # fn main() -> Result<(), tapstone_record::RecordError> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/examples/token.json");
//! let record = Record::read(path)?;
//! let style = Style { width: 80, colour: false, unicode: false, verbose: false };
//! let text = terminal::render(&record, &style);
//!
//! assert!(text.contains(&record.results[0].operation));
//! assert!(text.lines().all(|line| line.len() <= 80));
//! # Ok(())
//! # }
//! ```
//!
//! # A record as a page
//!
//! [`html::render`] makes one document of any number of records. It needs no other file and no
//! network:
//!
//! ```
//! use tapstone_record::Record;
//! use tapstone_report::html::{self, PageEntry};
//!
//! # fn main() -> Result<(), tapstone_record::RecordError> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/examples/card.json");
//! let record = Record::read(path)?;
//! let entry = PageEntry { name: "card.json", record: &record, timeline: None, note: None, again: None };
//! let page = html::render(&[entry]);
//!
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! assert!(page.contains(&record.results[0].operation));
//! # Ok(())
//! # }
//! ```
//!
//! # A record as CSV
//!
//! [`csv::render`] writes a header and one line for each result. [`door_csv`] and
//! [`comparison_csv`] have columns of their own:
//!
//! ```
//! use tapstone_record::Record;
//!
//! # fn main() -> anyhow::Result<()> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/examples/token.json");
//! let record = Record::read(path)?;
//! let text = tapstone_report::csv::render(&record)?;
//!
//! assert!(text.starts_with("operation,message_bytes,threads"));
//! assert_eq!(text.lines().count(), 1 + record.results.len());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod bins;
mod chart;
pub mod comparison_csv;
pub mod csv;
mod decisions;
pub mod device_capacity;
pub mod door_csv;
mod figures;
pub mod github;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod openmetrics;
mod sections;
mod shell;
mod style;
mod summary;
pub mod terminal;
mod text;
pub mod verdict;
mod words;
