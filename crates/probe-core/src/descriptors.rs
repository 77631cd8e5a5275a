//! A set of file descriptors that several threads may change.

use core::sync::atomic::{AtomicU64, Ordering};

/// Descriptors of the first `WORDS * 64`; larger ones are never in it.
#[derive(Debug)]
pub struct DescriptorSet<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> DescriptorSet<WORDS> {
    /// A set with nothing in it.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// Whether the set has room for this descriptor.
    pub fn holds(&self, descriptor: u64) -> bool {
        descriptor < WORDS as u64 * 64
    }

    /// Whether the descriptor is in the set.
    #[inline]
    pub fn contains(&self, descriptor: u64) -> bool {
        let word = self.0.get((descriptor / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & bit(descriptor) != 0)
    }

    /// Puts the descriptor into the set, if there is room for it.
    pub fn insert(&self, descriptor: u64) {
        if let Some(word) = self.0.get((descriptor / 64) as usize) {
            word.fetch_or(bit(descriptor), Ordering::Relaxed);
        }
    }

    /// Takes the descriptor out of the set.
    pub fn remove(&self, descriptor: u64) {
        if let Some(word) = self.0.get((descriptor / 64) as usize) {
            word.fetch_and(!bit(descriptor), Ordering::Relaxed);
        }
    }
}

impl<const WORDS: usize> Default for DescriptorSet<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

fn bit(descriptor: u64) -> u64 {
    1 << (descriptor % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_descriptor_is_in_the_set_by_itself() {
        let set = DescriptorSet::<2>::new();
        for descriptor in [0, 1, 63, 64, 127] {
            set.insert(descriptor);
            for other in 0..128 {
                assert_eq!(set.contains(other), other == descriptor, "{other} of {descriptor}");
            }
            set.remove(descriptor);
            assert!(!set.contains(descriptor));
        }
    }

    #[test]
    fn what_is_inserted_stays_when_others_go() {
        let set = DescriptorSet::<1>::default();
        set.insert(3);
        set.insert(4);
        set.insert(3);
        set.remove(4);
        set.remove(4);
        assert!(set.contains(3));
        assert!(!set.contains(4));
    }

    #[test]
    fn descriptors_past_the_end_are_never_in_it() {
        let set = DescriptorSet::<1>::new();
        assert!(set.holds(63));
        for descriptor in [64, 65, u64::MAX] {
            assert!(!set.holds(descriptor));
            set.insert(descriptor);
            assert!(!set.contains(descriptor));
            set.remove(descriptor);
        }
        assert!(!set.contains(0));
    }
}
