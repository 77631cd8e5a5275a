//! What a thread is calling, for those who watch it, and where an operation's time goes when that
//! was asked for.

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

use tapstone_worker::BoardCell;

use tapstone_names::pkcs11::Pkcs11Function;

/// What one thread announces of its calls, for the controller's board.
pub(super) struct CallWatch {
    place: BoardCell,
    phases: Option<Phases>,
}

/// Time by call, from one announcement to the next.
#[derive(Default)]
struct Phases {
    current: Option<(Pkcs11Function, Nanos)>,
    /// Few: an operation makes at most four different calls.
    sums: Vec<(Pkcs11Function, u64, Nanos)>,
}

impl CallWatch {
    pub(super) fn new(place: BoardCell, phases: bool) -> Self {
        let phases = phases.then(|| Phases { current: None, sums: Vec::with_capacity(8) });
        Self { place, phases }
    }

    /// A call is entered; the one before has returned.
    #[inline]
    pub(super) fn enter(&mut self, call: Pkcs11Function, operation: u64) {
        self.place.enter(call as u8, operation);
        if let Some(phases) = &mut self.phases {
            phases.turn(Some(call));
        }
    }

    /// The last call has returned.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.place.leave();
        if let Some(phases) = &mut self.phases {
            phases.turn(None);
        }
    }

    /// What was counted so far is not part of the window.
    pub(super) fn restart(&mut self) {
        if let Some(phases) = &mut self.phases {
            *phases = Phases { current: None, sums: Vec::with_capacity(8) };
        }
    }

    /// Calls with their number and total time.
    pub(super) fn phases(&self) -> Vec<(Pkcs11Function, u64, Nanos)> {
        self.phases.as_ref().map(|phases| phases.sums.clone()).unwrap_or_default()
    }
}

impl Phases {
    fn turn(&mut self, next: Option<Pkcs11Function>) {
        let now = Monotonic.now();
        if let Some((call, since)) = self.current {
            match self.sums.iter_mut().find(|(name, ..)| *name == call) {
                Some((_, count, sum)) => {
                    *count += 1;
                    *sum += now - since;
                }
                None => self.sums.push((call, 1, now - since)),
            }
        }
        self.current = next.map(|call| (call, now));
    }
}
