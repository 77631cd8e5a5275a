//! What every fix of a trial has: the function that it is about, and two counters.

use core::sync::atomic::Ordering;

use crate::functions::FUNCTIONS;
use crate::wire::{FIXES, Fix, Header};

impl Header {
    /// The fixes of a kind, one of `FIX_…`, whether they are switched on or not.
    pub fn fixes_of_kind(&self, kind: u32) -> impl Iterator<Item = &Fix> {
        let count = (self.fix_count as usize).min(FIXES);
        self.fixes.iter().take(count).filter(move |fix| fix.kind == kind)
    }

    /// Whether fixes act now.
    #[inline(always)]
    pub fn fixes_are_on(&self) -> bool {
        self.on.load(Ordering::Relaxed) != 0
    }
}

impl Fix {
    /// Whether it is about that function (its number), or about any that exists.
    pub fn is_about(&self, function: u32) -> bool {
        let Some(function) = FUNCTIONS.get(function as usize) else { return false };
        let name = function.name.as_bytes();
        self.function[0] == 0
            || (self.function.starts_with(name) && self.function.get(name.len()) == Some(&0))
    }

    /// Counts a call that was changed. Writing about each would cost more than some of them.
    pub fn count_applied(&self) {
        self.applied.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that it could not change.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}
