//! Objects that operations made and that are kept for verification.
//!
//! An operation that makes an object also destroys one, and both are part of its time. For some
//! of the objects to outlive their operation, each place starts with a stand-in: an operation
//! whose object is kept destroys what was in the place before. So every operation makes one and
//! destroys one, kept or not.

use super::capture::Reservoir;
use super::lane::Made;

/// See the module's text.
pub(super) struct KeptObjects {
    reservoir: Reservoir,
    places: Vec<Place>,
}

struct Place {
    made: Made,
    /// `None`: a stand-in, or an object that does not count.
    operation: Option<u64>,
}

impl KeptObjects {
    /// As many places as there are stand-ins.
    pub(super) fn new(stand_ins: Vec<Made>, seed: u64) -> Self {
        let places: Vec<Place> =
            stand_ins.into_iter().map(|made| Place { made, operation: None }).collect();
        Self { reservoir: Reservoir::new(places.len() as u64, seed), places }
    }

    /// Takes what an operation made; gives back what it is to destroy.
    #[inline]
    pub(super) fn exchange(&mut self, operation: u64, made: Made) -> Made {
        let leaving = match self.reservoir.place() {
            Some(place) => {
                let place = &mut self.places[place];
                place.operation = Some(operation);
                std::mem::replace(&mut place.made, made)
            }
            None => made,
        };
        self.reservoir.advance();
        leaving
    }

    /// Operations count from this one on, the last.
    pub(super) fn restart(&mut self, operation: u64, seed: u64) {
        if let Some(last) = self.places.iter().position(|p| p.operation == Some(operation)) {
            self.places.swap(0, last);
        }
        for place in &mut self.places {
            place.operation = place.operation.filter(|number| *number == operation);
        }
        self.reservoir = Reservoir::new(self.places.len() as u64, seed);
        if self.places.first().is_some_and(|place| place.operation.is_some()) {
            self.reservoir.advance();
        }
    }

    /// The last operation does not count after all.
    pub(super) fn withdraw(&mut self, operation: u64) {
        for place in &mut self.places {
            place.operation = place.operation.filter(|number| *number != operation);
        }
    }

    /// The objects that count, with their operations.
    pub(super) fn counted(&self) -> impl Iterator<Item = (u64, Made)> {
        self.places.iter().filter_map(|place| Some((place.operation?, place.made)))
    }

    /// Everything, to be destroyed at the end.
    pub(super) fn take_all(&mut self) -> Vec<Made> {
        self.places.drain(..).map(|place| place.made).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_destroys_exactly_one_object() {
        let mut kept = KeptObjects::new(vec![[1001, 0], [1002, 0]], 9);
        let mut alive: std::collections::BTreeSet<u64> = [1001, 1002].into();
        for operation in 0..500 {
            alive.insert(operation + 1);
            let leaving = kept.exchange(operation, [operation + 1, 0]);
            assert!(alive.remove(&leaving[0]));
            assert_eq!(alive.len(), 2);
        }
        let counted: Vec<_> = kept.counted().collect();
        assert_eq!(counted.len(), 2);
        assert!(counted.iter().all(|(operation, made)| made[0] == operation + 1));
    }

    #[test]
    fn a_restart_forgets_what_came_before() {
        let mut kept = KeptObjects::new(vec![[1001, 0], [1002, 0]], 9);
        kept.exchange(0, [1, 0]);
        kept.exchange(1, [2, 0]);
        kept.restart(1, 9);
        assert_eq!(kept.counted().collect::<Vec<_>>(), [(1, [2, 0])]);
        kept.exchange(2, [3, 0]);
        assert_eq!(kept.counted().count(), 2);
        kept.withdraw(2);
        assert_eq!(kept.counted().count(), 1);
    }
}
