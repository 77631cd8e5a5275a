//! Whose turn it is: most runs can share the processor, some figures cannot be told then.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static PROCESSOR: RwLock<()> = RwLock::new(());

/// Held while a run goes on. A test that failed has spoilt nothing for the others.
pub(super) enum Turn {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

impl Turn {
    pub(super) fn shared() -> Self {
        Self::Shared { _guard: PROCESSOR.read().unwrap_or_else(PoisonError::into_inner) }
    }

    pub(super) fn alone() -> Self {
        Self::Alone { _guard: PROCESSOR.write().unwrap_or_else(PoisonError::into_inner) }
    }
}
