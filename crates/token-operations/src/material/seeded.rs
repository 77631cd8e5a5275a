//! Pseudo-random bytes from a recorded seed, so that a run can be repeated byte for byte.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// What the bytes are for. Each purpose has its own stream of the seed, so that a change in one
/// leaves the others as they were.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Inputs = 1,
    Order = 2,
    Draw = 3,
}

/// A stream of pseudo-random bytes. ChaCha12 is portable: the same seed gives the same bytes on
/// every machine and in every version of the tool.
#[derive(Debug)]
pub(super) struct Seeded {
    generator: ChaCha12Rng,
    last: Vec<u8>,
}

impl Seeded {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut generator = ChaCha12Rng::seed_from_u64(seed);
        generator.set_stream(purpose as u64);
        Self { generator, last: Vec::new() }
    }

    /// Bytes that are neither all zero nor the same as the last ones: caches and zero detection
    /// would make a token look fast. Only short lengths are ever drawn twice.
    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        while length > 0 && (bytes.iter().all(|byte| *byte == 0) || bytes == self.last) {
            self.generator.fill_bytes(&mut bytes);
        }
        self.last.clone_from(&bytes);
        bytes
    }

    /// The generator, for padding that draws its own random bytes.
    pub(super) fn generator(&mut self) -> &mut ChaCha12Rng {
        &mut self.generator
    }

    /// The numbers below `count` in a random order (Fisher and Yates).
    pub(super) fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            order.swap(place, self.below(place + 1));
        }
        order
    }

    /// A number below `bound` (Lemire's multiplication; its bias of bound / 2^64 is far below
    /// anything that a sample could show).
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.generator.next_u64()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_bytes_are_never_zero_and_never_twice_the_same() {
        let mut seeded = Seeded::new(1, Purpose::Inputs);
        let bytes: Vec<u8> = (0..2000).flat_map(|_| seeded.bytes(1)).collect();
        assert!(bytes.iter().all(|byte| *byte != 0));
        assert!(bytes.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_seed_gives_these_bytes_for_ever() {
        let draw = |seed, purpose| hex::encode(Seeded::new(seed, purpose).bytes(8));
        assert_eq!(draw(42, Purpose::Inputs), draw(42, Purpose::Inputs));
        assert_ne!(draw(42, Purpose::Inputs), draw(43, Purpose::Inputs));
        assert_ne!(draw(42, Purpose::Inputs), draw(42, Purpose::Order));
        assert_eq!(draw(42, Purpose::Inputs), "61ec4fdeb47bec48");
    }

    #[test]
    fn an_order_holds_every_number_once() {
        let mut order = Seeded::new(7, Purpose::Order).order(1000);
        assert_ne!(order[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..1000));
    }
}
