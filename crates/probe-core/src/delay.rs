//! How long a call is delayed by the fix `delay`.

/// Marsaglia's xorshift64 ("Xorshift RNGs", 2003), with the shifts 13, 7 and 17. `state` is never
/// zero, or stays zero for ever.
pub fn next_random(state: &mut u64) -> u64 {
    let mut value = *state;
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    *state = value;
    value
}

/// A delay in nanoseconds from `low` to `high`, both included and evenly spread; `low` where `high`
/// is less.
pub fn delay_nanos(random: u64, low: u64, high: u64) -> u64 {
    match high.saturating_sub(low).checked_add(1) {
        Some(spread) => low + random % spread,
        // Every value there is.
        None => random,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_marsaglias() {
        // Each step by hand: 1 ^ 1 << 13 = 0x2001; ^ >> 7 = 0x2041; ^ << 17 = 0x40822041.
        let mut state = 1;
        assert_eq!(next_random(&mut state), 0x4082_2041);
        assert_eq!(state, 0x4082_2041);
        assert_ne!(next_random(&mut state), 0x4082_2041);
    }

    #[test]
    fn a_delay_reaches_both_ends_and_nothing_else() {
        let delays: std::vec::Vec<u64> = (0..8).map(|random| delay_nanos(random, 5, 8)).collect();
        assert_eq!(delays, [5, 6, 7, 8, 5, 6, 7, 8]);
    }

    #[test]
    fn limits_that_are_equal_or_crossed_give_the_lower() {
        assert_eq!(delay_nanos(12_345, 7, 7), 7);
        assert_eq!(delay_nanos(12_345, 7, 3), 7);
    }

    #[test]
    fn the_widest_range_overflows_nothing() {
        assert_eq!(delay_nanos(u64::MAX, 0, u64::MAX), u64::MAX);
        assert_eq!(delay_nanos(9, 0, u64::MAX), 9);
    }

    /// The seed of the paper, and what its three lines of C give of it.
    #[test]
    fn the_generator_starts_as_its_paper_does() {
        let mut state = 88_172_645_463_325_252;
        assert_eq!(next_random(&mut state), 8_748_534_153_485_358_512);
    }
}
