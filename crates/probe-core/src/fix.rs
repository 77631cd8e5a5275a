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

    /// Whether it is about what the program does itself, outside of calls.
    pub fn is_about_program(&self) -> bool {
        const PROGRAM: &[u8] = b"program\0";
        self.function.starts_with(PROGRAM)
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

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc_zeroed};
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;
    use crate::names::known;
    use crate::wire::{FIX_DELAY, FIX_MEMOISE, FIX_NO_SLEEP};

    fn header() -> Box<Header> {
        // SAFETY: numbers alone, of which all may be zero.
        unsafe { Box::from_raw(alloc_zeroed(Layout::new::<Header>()).cast()) }
    }

    #[test]
    fn fixes_of_a_kind_are_those_that_were_asked_for() {
        let mut header = header();
        for (at, kind) in [FIX_DELAY, FIX_MEMOISE, FIX_DELAY, FIX_DELAY].into_iter().enumerate() {
            header.fixes[at].kind = kind;
            header.fixes[at].low_ns = at as u64;
        }
        header.fix_count = 3;
        let of = |kind| header.fixes_of_kind(kind).map(|fix| fix.low_ns).collect::<Vec<_>>();
        assert_eq!(of(FIX_DELAY), [0, 2], "the fourth was not asked for");
        assert_eq!(of(FIX_MEMOISE), [1]);
        assert_eq!(of(FIX_NO_SLEEP), [0; 0]);
    }

    #[test]
    fn a_count_beyond_the_table_is_that_of_the_table() {
        let mut header = header();
        header.fix_count = u32::MAX;
        assert_eq!(header.fixes_of_kind(0).count(), FIXES);
    }

    #[test]
    fn fixes_act_while_they_are_on() {
        let header = header();
        assert!(!header.fixes_are_on());
        header.on.store(1, Ordering::Relaxed);
        assert!(header.fixes_are_on());
    }

    #[test]
    fn a_fix_is_about_its_function_or_any() {
        let mut header = header();
        let fix = &mut header.fixes[0];
        for function in [known::C_LOGIN, known::C_LOGIN_USER] {
            assert!(fix.is_about(function), "without a name it is about any");
        }
        assert!(!fix.is_about(FUNCTIONS.len() as u32), "there is no such function");
        fix.function[..7].copy_from_slice(b"C_Login");
        assert!(fix.is_about(known::C_LOGIN));
        assert!(!fix.is_about(known::C_LOGIN_USER) && !fix.is_about(known::C_LOGOUT));
        assert!(!fix.is_about(u32::MAX));
        assert!(!fix.is_about_program());
        fix.function[..8].copy_from_slice(b"program\0");
        assert!(fix.is_about_program() && !fix.is_about(known::C_LOGIN));
        // The name of one is the beginning of the other's.
        fix.function[..11].copy_from_slice(b"C_LoginUser");
        assert!(fix.is_about(known::C_LOGIN_USER) && !fix.is_about(known::C_LOGIN));
    }

    #[test]
    fn what_was_changed_and_what_was_not_are_counted_apart() {
        let header = header();
        let fix = &header.fixes[0];
        fix.count_applied();
        fix.count_applied();
        fix.count_refused();
        let counts = [&fix.applied, &fix.refused].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [2, 1]);
    }
}
