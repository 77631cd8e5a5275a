//! Bytes to time, by the formulas of the standards.
#![forbid(unsafe_code)]
