//! How Tapstone measures: the clock, the units, the measuring loop, the window that it fills,
//! and the statistics that turn a window into a figure with an interval and a verdict.
//!
//! Nothing here knows what is measured. There is no I/O apart from reading the clock and
//! sleeping, so everything runs on a virtual clock in tests.
#![forbid(unsafe_code)]

pub mod batch;
pub mod bucket;
pub mod claim;
pub mod clock;
pub mod compare;
pub mod gate;
pub mod interval;
pub mod knee;
pub mod linear;
pub mod loop_overhead;
pub mod looper;
pub mod pace;
mod quantile;
mod ratio;
pub mod recorder;
pub mod series;
pub mod slice;
pub mod summary;
pub mod trend;
pub mod units;
pub mod usl;
