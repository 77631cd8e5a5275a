//! What one operation is given.

use serde::{Deserialize, Serialize};

/// The input of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The data of the call: see [`InputKind`](crate::catalogue::InputKind) for its meaning. May be empty.
    pub message: Vec<u8>,
    /// The IV, or the first counter block; empty where there is none. For GCM encryption it is
    /// empty too: [`gcm_iv`](super::gcm_iv) gives a fresh one for each operation.
    pub iv: Vec<u8>,
}
