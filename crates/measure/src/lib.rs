//! How Tapstone measures: the clock, the units, the measuring loop, the window that it fills,
//! and the statistics that turn a window into a figure with an interval and a verdict.
//!
//! Nothing here knows what is measured. There is no I/O apart from reading the clock and
//! sleeping, so everything runs on a virtual clock in tests.
#![forbid(unsafe_code)]

pub mod bucket;
pub mod clock;
pub mod gate;
pub mod looper;
pub mod pace;
pub mod recorder;
pub mod series;
pub mod slice;
pub mod units;
