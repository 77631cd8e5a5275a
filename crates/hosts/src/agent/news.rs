//! What the thread that carries out a plan tells its agent.

use tapstone_token::controller::TokenMeasureError;

use crate::wire::FromAgent;

/// News of one run.
pub(crate) enum News {
    /// A message to be sent to the coordinator.
    Message(FromAgent),
    /// All workers are gone; what may be left on the token, if something is.
    Ended(Option<TokenMeasureError>),
}
