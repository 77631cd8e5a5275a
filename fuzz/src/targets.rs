//! All targets, one a file.

pub mod apdu;
pub mod certificate;
pub mod chuid;
pub mod crl;
pub mod events;
pub mod host_frames;
pub mod jcalgtest;
pub mod module_answers;
pub mod ocsp;
pub mod panel_log;
pub mod record;
pub mod toml_files;
pub mod vpcd;
pub mod watched_events;
pub mod worker_frames;
pub mod workload;

use tapstone_record::Tool;

use crate::FuzzTarget;

/// All of them, in the order of tables.
pub const TARGETS: [&FuzzTarget; 16] = [
    &record::TARGET,
    &events::TARGET,
    &watched_events::TARGET,
    &workload::TARGET,
    &apdu::TARGET,
    &certificate::TARGET,
    &chuid::TARGET,
    &crl::TARGET,
    &ocsp::TARGET,
    &vpcd::TARGET,
    &jcalgtest::TARGET,
    &panel_log::TARGET,
    &toml_files::TARGET,
    &host_frames::TARGET,
    &worker_frames::TARGET,
    &module_answers::TARGET,
];

/// Who writes the records that targets make.
fn tool() -> Tool {
    Tool { name: "tapstone-fuzz".into(), version: env!("CARGO_PKG_VERSION").into() }
}
