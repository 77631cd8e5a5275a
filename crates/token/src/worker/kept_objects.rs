//! Objects that operations made and that are kept for verification.
//!
//! An operation that makes an object also destroys one, and both are part of its time. For some
//! of the objects to outlive their operation, each place starts with a stand-in: an operation
//! whose object is kept destroys what was in the place before. So every operation makes one and
//! destroys one, kept or not.

use cryptoki_sys::{CK_INVALID_HANDLE, CK_OBJECT_HANDLE};

use super::capture::Reservoir;

/// The objects that one thread keeps, one a place.
pub(super) struct KeptObjects {
    reservoir: Reservoir,
    places: Vec<KeptPlace>,
    /// What the last operation made: it may turn out to be the first that counts, or one that does
    /// not, so its place is taken only by the next operation.
    last: KeptPlace,
    last_goes_to: Option<usize>,
}

struct KeptPlace {
    made: MadeObjects,
    /// `None`: a stand-in, or an object that does not count.
    operation: Option<u64>,
}

/// Objects that an operation made: a key, or both halves of a pair.
pub(super) type MadeObjects = [CK_OBJECT_HANDLE; 2];

/// What an operation made that made none.
pub(super) const NO_OBJECTS: MadeObjects = [CK_INVALID_HANDLE; 2];

const NOTHING: KeptPlace = KeptPlace { made: NO_OBJECTS, operation: None };

impl KeptObjects {
    /// One place less than there are stand-ins; none at all without.
    pub(super) fn new(stand_ins: Vec<MadeObjects>, seed: u64) -> Self {
        let stand_in = |made| KeptPlace { made, operation: None };
        let mut places: Vec<KeptPlace> = stand_ins.into_iter().map(stand_in).collect();
        let last = places.pop().unwrap_or(NOTHING);
        let reservoir = Reservoir::new(places.len() as u64, seed);
        Self { reservoir, places, last, last_goes_to: None }
    }

    /// Takes what an operation made; gives back what it is to destroy.
    #[inline]
    pub(super) fn exchange(&mut self, operation: u64, made: MadeObjects) -> MadeObjects {
        if self.places.is_empty() {
            return made;
        }
        let this = KeptPlace { made, operation: Some(operation) };
        let before = std::mem::replace(&mut self.last, this);
        let place = std::mem::replace(&mut self.last_goes_to, self.reservoir.offer());
        match place {
            Some(place) => std::mem::replace(&mut self.places[place], before).made,
            None => before.made,
        }
    }

    /// Operations count from this one on, the last.
    pub(super) fn restart(&mut self, operation: u64, seed: u64) {
        for place in &mut self.places {
            place.operation = None;
        }
        self.reservoir = Reservoir::new(self.places.len() as u64, seed);
        self.last_goes_to = None;
        if self.last.operation == Some(operation) {
            self.last_goes_to = self.reservoir.offer();
        }
    }

    /// The last operation does not count after all.
    pub(super) fn withdraw(&mut self, operation: u64) {
        if self.last.operation == Some(operation) {
            self.last.operation = None;
        }
    }

    /// The objects that count, with their operations.
    pub(super) fn counted(&self) -> impl Iterator<Item = (u64, MadeObjects)> {
        let replaced = self.last_goes_to.filter(|_| self.last.operation.is_some());
        let kept = self.places.iter().enumerate().filter(move |(at, _)| replaced != Some(*at));
        let last = replaced.map(|_| &self.last);
        let all = kept.map(|(_, place)| place).chain(last);
        all.filter_map(|place| Some((place.operation?, place.made)))
    }

    /// Everything that is live.
    pub(super) fn all(&self) -> impl Iterator<Item = MadeObjects> {
        self.places.iter().map(|place| place.made).chain([self.last.made])
    }

    /// Everything, to be destroyed at the end.
    pub(super) fn take_all(&mut self) -> Vec<MadeObjects> {
        let last = std::mem::replace(&mut self.last, NOTHING);
        self.places.drain(..).map(|place| place.made).chain([last.made]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_destroys_exactly_one_object() {
        let mut kept = KeptObjects::new(vec![[1001, 0], [1002, 0], [1003, 0]], 9);
        let mut alive: std::collections::BTreeSet<u64> = [1001, 1002, 1003].into();
        for operation in 0..500 {
            alive.insert(operation + 1);
            let leaving = kept.exchange(operation, [operation + 1, 0]);
            assert!(alive.remove(&leaving[0]));
            assert_eq!(alive.len(), 3);
        }
        let counted: Vec<_> = kept.counted().collect();
        assert_eq!(counted.len(), 2);
        assert!(counted.iter().all(|(operation, made)| made[0] == operation + 1));
        assert!(counted.iter().all(|(_, made)| alive.contains(&made[0])));
    }

    #[test]
    fn a_restart_forgets_what_came_before_but_not_the_last() {
        let mut kept = KeptObjects::new(vec![[1001, 0], [1002, 0], [1003, 0]], 9);
        (0..100).for_each(|operation| {
            kept.exchange(operation, [operation + 1, 0]);
        });
        kept.restart(99, 9);
        assert_eq!(kept.counted().collect::<Vec<_>>(), [(99, [100, 0])]);
        kept.exchange(100, [101, 0]);
        assert_eq!(kept.counted().count(), 2);
        kept.exchange(101, [102, 0]);
        kept.withdraw(101);
        assert_eq!(kept.counted().count(), 2);
    }

    #[test]
    fn without_places_an_operation_destroys_its_own() {
        let mut kept = KeptObjects::new(Vec::new(), 9);
        assert_eq!(kept.exchange(0, [7, 8]), [7, 8]);
        assert_eq!(kept.counted().count(), 0);
    }
}
