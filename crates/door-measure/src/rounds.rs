//! All rounds of a measurement: in each, every mechanism or strategy has its turn on the same card.

use std::time::Instant;

use tapstone_measure::order::{TurnOrder, pause_between_rounds};
use tapstone_piv::{AuthenticationMechanism, Time};

use crate::controller::DoorController;
use crate::error::DoorMeasureError;
use crate::observer::DoorObserver;
use crate::protocol::Authentication;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct DoorPlan {
    /// What takes turns, the baseline first.
    pub mechanisms: Vec<AuthenticationMechanism>,
    /// How many rounds there are.
    pub rounds: u64,
    /// Decides the order within each round, and the pauses between rounds.
    pub seed: u64,
    /// The time of validation; `None`: now.
    pub at: Option<Time>,
}

/// One authentication of each kind; `None` of one that did not take place.
#[derive(Clone, Debug)]
pub struct DoorRound(pub(crate) Vec<Option<Authentication>>);

/// All that was seen.
#[derive(Clone, Debug)]
pub struct DoorRun {
    /// What took turns, the baseline first.
    pub mechanisms: Vec<AuthenticationMechanism>,
    /// The rounds, in order; the last may have been cut short.
    pub rounds: Vec<DoorRound>,
    /// What decided the order within each round, and the pauses between rounds.
    pub seed: u64,
    /// The user ended it.
    pub interrupted: bool,
}

impl DoorController {
    /// All rounds, in each of which the mechanisms take turns in an order of its own.
    ///
    /// # Errors
    /// No worker can be started or made ready.
    pub fn measure(
        &mut self,
        plan: &DoorPlan,
        observer: &mut dyn DoorObserver,
    ) -> Result<DoorRun, DoorMeasureError> {
        let mechanisms = &plan.mechanisms;
        let mut run = DoorRun {
            mechanisms: mechanisms.clone(),
            rounds: Vec::new(),
            seed: plan.seed,
            interrupted: false,
        };
        let mut order = TurnOrder::from_seed(plan.seed);
        for number in 1..=plan.rounds {
            observer.round(number, plan.rounds);
            let begun = Instant::now();
            let mut round: Vec<Option<Authentication>> = vec![None; mechanisms.len()];
            for place in order.next_order(mechanisms.len()) {
                match self.authenticate(mechanisms[place], plan.at, observer)? {
                    Some(ran) => round[place] = Some(ran),
                    None => run.interrupted = true,
                }
                if run.interrupted {
                    break;
                }
            }
            let gone = round.iter().flatten().any(|ran| ran.gave_up);
            run.rounds.push(DoorRound(round));
            if run.interrupted || gone {
                break;
            }
            if number < plan.rounds {
                let pause = order.next_pause(begun.elapsed());
                pause_between_rounds(pause, || self.is_interrupted());
            }
        }
        Ok(run)
    }
}
