//! A model of an authentication at a door: where its time goes, what would make it faster, and what
//! that means for a queue of people.
//!
//! A [`Scenario`] is read from TOML: components, the links between them, and what they send. Nothing
//! here measures, reads a file or asks the system anything. The same seed gives the same figures.
//!
//! [`budget()`] adds up the parts and holds the total against the scenario's target:
//!
//! ```
//! use tapstone_door::{Scenario, budget};
//! use tapstone_record::Verdict;
//!
//! let scenario = Scenario::shipped("hid-rsa2048")?;
//! let budget = budget(&scenario, "hid-rsa2048", 1);
//! assert_eq!(budget.verdict, Some(Verdict::Missed), "about 4 s against a target of 1.5 s");
//! assert!(budget.parts.iter().any(|part| part.component == "card-reader"));
//! # Ok::<(), tapstone_door::UnknownScenario>(())
//! ```
//!
//! [`what_if()`] looks for the smallest sets of changes that reach the target:
//!
//! ```
//! use tapstone_door::{Scenario, WhatIfQuestion, what_if};
//!
//! let scenario = Scenario::shipped("hid-rsa2048")?;
//! let question = WhatIfQuestion { target: None, without: Vec::new(), sets: 3, seed: 1 };
//! let (answer, _notes) = what_if(&scenario, "hid-rsa2048", &question).unwrap();
//! for set in &answer.sets {
//!     assert!(set.total_ns <= answer.target_ns.0 as f64);
//! }
//! # Ok::<(), tapstone_door::UnknownScenario>(())
//! ```
//!
//! [`simulate()`] lets people arrive at random (an M/G/1 queue where nobody leaves it):
//!
//! ```
//! use tapstone_door::{Crowd, Scenario, simulate};
//!
//! let scenario = Scenario::shipped("osdp-ip-p256")?;
//! let quiet = simulate(&scenario, "p256", &Crowd::new(5_000, 100.0, 1).unwrap());
//! let busy = simulate(&scenario, "p256", &Crowd::new(5_000, 600.0, 1).unwrap());
//! let mean_wait = |queue: &tapstone_record::Queue| queue.wait_ns.mean.unwrap().estimate;
//! assert!(mean_wait(&quiet) < mean_wait(&busy));
//! # Ok::<(), tapstone_door::UnknownScenario>(())
//! ```
#![forbid(unsafe_code)]

mod bank;
mod budget;
mod card;
mod change;
mod content;
mod crowd;
mod distribution;
mod message;
mod millis;
mod path;
mod people;
mod probability;
mod queue;
mod random;
mod resend;
mod scenario;
mod simulate;
mod tally;
mod visit;
mod what_if;

pub use budget::budget;
pub use card::{CardError, with_card};
pub use change::{ChangeKind, PathChange};
pub use content::{CardContent, CertificateBytes, KeyKind, LengthFields};
pub use crowd::{Crowd, SimulateError};
pub use distribution::{Quantile, TimeDistribution};
pub use millis::Millis;
pub use path::{AuthenticationPath, LinkEnd, Message, PathPart, Role, StepTime};
pub use people::{CardKind, People};
pub use scenario::{ChangesError, SHIPPED, Scenario, UnknownScenario};
pub use simulate::simulate;
pub use what_if::{WhatIfQuestion, what_if};
