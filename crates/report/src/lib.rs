//! What a record looks like to people: text for a terminal, and CSV for a spreadsheet.
//!
//! A record goes in, text comes out. Nothing here measures, reads a file, or asks the system:
//! the caller knows the width of the terminal and whether it may be coloured. Each output has a
//! file of its own; what they share is how figures are printed and how values are worded.
#![forbid(unsafe_code)]

mod bins;
mod chart;
pub mod comparison_csv;
pub mod csv;
pub mod door_csv;
mod figures;
pub mod html;
mod sections;
mod style;
pub mod terminal;
mod text;
pub mod verdict;
mod words;
