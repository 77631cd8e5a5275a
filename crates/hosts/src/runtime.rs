//! What drives the connections of one coordinator or agent.

use tokio::runtime::{self, Runtime};

use crate::error::HostsError;

/// A runtime of one thread, which must not disturb the measuring threads.
pub(crate) fn runtime() -> Result<Runtime, HostsError> {
    runtime::Builder::new_current_thread().enable_all().build().map_err(HostsError::Start)
}
