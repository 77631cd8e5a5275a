//! What people see of a record: text for terminals, pages and CSV, from records made up for it.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod any_record;
mod comparison;
mod csv;
mod formats;
mod page;
mod script;
mod support;
mod terminal;
mod trace;
