//! What a fix keeps for all threads of a process, who look into it one at a time.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::process::process;
use crate::sys;

/// Memory of a process that is made when it is first looked into.
pub(super) struct SharedCache<T> {
    at: AtomicPtr<T>,
    /// The process whose it is: one that was forked off has its own.
    owner: AtomicU32,
    /// The process of which a thread looks into it at the moment.
    turn: AtomicU32,
}

impl<T> SharedCache<T> {
    pub(super) const fn new() -> Self {
        Self {
            at: AtomicPtr::new(ptr::null_mut()),
            owner: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    /// Looks into it, one thread at a time. `None`: there is no memory for it.
    ///
    /// # Safety
    /// Zeroed memory is a `T`, and `look` does not look into this one again.
    pub(super) unsafe fn look<R>(&self, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        let me = process();
        loop {
            // Whoever had it in a process from which this one was forked off is not here.
            let turn = self.turn.load(Ordering::Relaxed);
            let is_free = turn != me
                && self
                    .turn
                    .compare_exchange(turn, me, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok();
            if is_free {
                break;
            }
            sys::give_way();
        }
        if self.owner.load(Ordering::Relaxed) != me {
            // Memory of before a fork is left alone: another one is made.
            self.at.store(sys::memory(size_of::<T>()).cast(), Ordering::Relaxed);
            self.owner.store(me, Ordering::Relaxed);
        }
        // SAFETY: null, or mapped for good, zeroed, and this thread's turn.
        let looked = unsafe { self.at.load(Ordering::Relaxed).as_mut() }.map(look);
        self.turn.store(0, Ordering::Release);
        looked
    }
}
