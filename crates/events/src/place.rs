//! Places in lists, of which a timeline keeps some for each of millions of calls.

use std::fmt;
use std::num::NonZeroU32;

/// A place in a list of fewer than 2^32 - 1 things. An optional one takes four bytes as well.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(NonZeroU32);

impl Place {
    /// # Panics
    /// For `u32::MAX`.
    #[must_use]
    pub const fn new(place: u32) -> Self {
        match NonZeroU32::new(place.wrapping_add(1)) {
            Some(and_one) => Self(and_one),
            None => panic!("a list of fewer things"),
        }
    }

    /// The place as a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get() - 1
    }

    /// The place as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.get() as usize
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_place_takes_no_more_room() {
        assert_eq!(size_of::<Option<Place>>(), 4);
        for place in [0, 1, u32::MAX - 1] {
            assert_eq!(Place::new(place).get(), place);
        }
        assert!(Place::new(3) < Place::new(4));
        assert_eq!(format!("{:?}", Some(Place::new(7))), "Some(7)");
    }
}
