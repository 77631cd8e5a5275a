//! Whose turn it is: most runs can share the processor, some figures cannot be told then.

use std::any::Any;
use std::sync::{PoisonError, RwLock};

static PROCESSOR: RwLock<()> = RwLock::new(());

/// Held while a run goes on. A test that failed has spoilt nothing for the others.
pub(super) fn shared() -> Box<dyn Any> {
    Box::new(PROCESSOR.read().unwrap_or_else(PoisonError::into_inner))
}

/// The same, with all others ended.
pub(super) fn alone() -> Box<dyn Any> {
    Box::new(PROCESSOR.write().unwrap_or_else(PoisonError::into_inner))
}
