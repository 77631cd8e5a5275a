//! Several doors and the controller behind them, event by event.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use crate::crowd::{Crowd, HOUR_MS};
use crate::path::AuthenticationPath;
use crate::people::People;
use crate::random::RandomStream;
use crate::scenario::Scenario;
use crate::tally::{QueueTally, ServedPerson};
use crate::visit::Visit;

/// The streams of random numbers: what one person does must not move another's arrival.
const ARRIVALS: u64 = 2;
const VISITS: u64 = 3;
const KINDS: u64 = 4;
const DOORS: u64 = 5;

/// Doors, each with a queue of its own, and one controller.
pub(crate) struct DoorBank<'a> {
    people: &'a People,
    /// The ways to authenticate by the card that is held, with the part of people who hold one up
    /// to this kind.
    kinds: Vec<(f64, &'a AuthenticationPath)>,
    crowd: Crowd,
    doors: Vec<Door>,
    /// When the controller has answered all that it was asked.
    controller_free: f64,
    events: BinaryHeap<Reverse<Event>>,
    arrivals: RandomStream,
    visits: RandomStream,
    kind_choices: RandomStream,
    door_choices: RandomStream,
}

#[derive(Default)]
struct Door {
    waiting: VecDeque<Person>,
    in_use: bool,
}

/// Who comes, and when.
struct Person {
    number: u64,
    came: f64,
}

/// Something that happens at a door.
struct Event {
    at: f64,
    /// Of two at the same moment, the one that was foreseen first.
    order: u64,
    door: usize,
    what: Happening,
}

enum Happening {
    /// The door asks the controller.
    Asks(ServedPerson),
    /// The person is through, or gives up.
    Leaves(ServedPerson),
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.order.cmp(&other.order))
    }
}

impl<'a> DoorBank<'a> {
    pub(crate) fn new(scenario: &'a Scenario, crowd: &Crowd) -> Self {
        let mut up_to = 0.0;
        let kind = |kind: &'a crate::people::CardKind| {
            up_to += kind.share;
            (up_to, &kind.path)
        };
        let mut kinds: Vec<(f64, &AuthenticationPath)> =
            scenario.people.cards.iter().map(kind).collect();
        if kinds.is_empty() {
            kinds.push((1.0, &scenario.path));
        }
        let stream = |number| RandomStream::new(crowd.seed, number);
        Self {
            people: &scenario.people,
            kinds,
            crowd: *crowd,
            doors: (0..scenario.people.doors).map(|_| Door::default()).collect(),
            controller_free: 0.0,
            events: BinaryHeap::new(),
            arrivals: stream(ARRIVALS),
            visits: stream(VISITS),
            kind_choices: stream(KINDS),
            door_choices: stream(DOORS),
        }
    }

    /// Everybody comes and is served, or leaves.
    pub(crate) fn serve_all(mut self, tally: &mut QueueTally<'_>) {
        let between = HOUR_MS / self.crowd.per_hour;
        let mut now = 0.0;
        let mut order = 0;
        for number in 0..self.crowd.people {
            now += between * self.arrivals.exponential();
            self.until(now, &mut order, tally);
            tally.arrives(number, now);
            let door = self.choose_door();
            self.doors[door].waiting.push_back(Person { number, came: now });
            if !self.doors[door].in_use {
                self.next_turn(door, now, &mut order, tally);
            }
        }
        self.until(f64::INFINITY, &mut order, tally);
    }

    fn choose_door(&mut self) -> usize {
        match self.doors.len() {
            1 => 0,
            doors => (self.door_choices.unit() * doors as f64) as usize,
        }
    }

    /// All that happens before this moment, or at it.
    fn until(&mut self, moment: f64, order: &mut u64, tally: &mut QueueTally<'_>) {
        while self.events.peek().is_some_and(|Reverse(event)| event.at <= moment) {
            let Some(Reverse(Event { at, door, what, .. })) = self.events.pop() else { return };
            match what {
                Happening::Asks(person) => self.ask(person, at, door, order),
                Happening::Leaves(person) => {
                    tally.count(&person);
                    self.next_turn(door, at, order, tally);
                }
            }
        }
    }

    /// The next one's turn at a door that is free. Who has no patience left goes.
    fn next_turn(&mut self, door: usize, now: f64, order: &mut u64, tally: &mut QueueTally<'_>) {
        self.doors[door].in_use = false;
        while let Some(Person { number, came }) = self.doors[door].waiting.pop_front() {
            let patience = self.people.patience.as_ref().map(|it| it.draw(&mut self.visits).0);
            if patience.is_some_and(|patience| patience < now - came) {
                tally.leaves_the_queue(number);
                continue;
            }
            let (kind, path) = self.choose_kind();
            let visit = Visit::take(self.people, path, &mut self.visits);
            let asks = now + visit.time.0 - visit.after.0 - visit.shared.0;
            let leaves = now + visit.time.0;
            let has_question = visit.shared.0 > 0.0;
            let person = ServedPerson {
                number,
                kind,
                came,
                start: now,
                left: leaves,
                asked_wait: 0.0,
                visit,
            };
            self.doors[door].in_use = true;
            // A door alone never waits for its controller.
            let (at, what) = if has_question && self.doors.len() > 1 {
                (asks, Happening::Asks(person))
            } else {
                (leaves, Happening::Leaves(person))
            };
            self.foresee(at, door, what, order);
            return;
        }
    }

    /// The controller answers in the order in which it is asked.
    fn ask(&mut self, mut person: ServedPerson, now: f64, door: usize, order: &mut u64) {
        let begins = now.max(self.controller_free);
        self.controller_free = begins + person.visit.shared.0;
        person.asked_wait = begins - now;
        person.left += person.asked_wait;
        self.foresee(person.left, door, Happening::Leaves(person), order);
    }

    fn foresee(&mut self, at: f64, door: usize, what: Happening, order: &mut u64) {
        *order += 1;
        self.events.push(Reverse(Event { at, order: *order, door, what }));
    }

    fn choose_kind(&mut self) -> (usize, &'a AuthenticationPath) {
        let drawn = match self.kinds.len() {
            1 => 0.0,
            _ => self.kind_choices.unit(),
        };
        let last = self.kinds.len() - 1;
        let at = self.kinds.iter().position(|(up_to, _)| drawn < *up_to).unwrap_or(last);
        (at, self.kinds[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::TimeDistribution;
    use crate::millis::Millis;
    use crate::people::CardKind;

    const CROWD: Crowd = Crowd { people: 10, per_hour: 3600.0, seed: 1 };

    /// 200 ms until the controller is asked, 1 s for its answer, and 300 ms to pass.
    fn scenario(doors: u32) -> Scenario {
        let text = "title = 'x'\ntarget_ms = 1500\n\
                    [[component]]\nkind = 'controller'\nfrom = 'assumed'\ntime_ms = 1000\n";
        let mut scenario = Scenario::read(text, "test").unwrap();
        scenario.people.tap = TimeDistribution::Fixed(Millis(200.0));
        scenario.people.pass = TimeDistribution::Fixed(Millis(300.0));
        scenario.people.doors = doors;
        scenario
    }

    /// What happens next: when, and whether somebody leaves, with the wait for the controller.
    fn next(bank: &DoorBank<'_>) -> (f64, Option<[f64; 2]>) {
        let Reverse(event) = bank.events.peek().unwrap();
        match &event.what {
            Happening::Asks(_) => (event.at, None),
            Happening::Leaves(person) => (event.at, Some([person.left, person.asked_wait])),
        }
    }

    #[test]
    fn a_door_asks_before_it_opens_and_waits_while_the_controller_is_busy() {
        let scenario = scenario(2);
        let mut bank = DoorBank::new(&scenario, &CROWD);
        let mut tally = QueueTally::new(&CROWD, 0, &scenario);
        let mut order = 0;
        bank.controller_free = 5_500.0;
        bank.doors[1].waiting.push_back(Person { number: 0, came: 4_000.0 });
        bank.next_turn(1, 5_000.0, &mut order, &mut tally);
        assert!(bank.doors[1].in_use && !bank.doors[0].in_use);
        assert_eq!(next(&bank), (5_200.0, None));
        bank.until(5_199.0, &mut order, &mut tally);
        assert_eq!(next(&bank), (5_200.0, None), "it is not yet asked");
        bank.until(5_200.0, &mut order, &mut tally);
        assert_eq!(next(&bank), (6_800.0, Some([6_800.0, 300.0])), "300 ms after it might have");
        assert_eq!(bank.controller_free, 6_500.0);
        bank.until(6_800.0, &mut order, &mut tally);
        assert!(bank.events.is_empty() && !bank.doors[1].in_use);
    }

    #[test]
    fn a_controller_that_is_free_answers_at_once_and_a_door_alone_has_its_own() {
        let shared = scenario(2);
        let mut bank = DoorBank::new(&shared, &CROWD);
        let mut tally = QueueTally::new(&CROWD, 0, &shared);
        let mut order = 0;
        bank.controller_free = 5_000.0;
        bank.doors[0].waiting.push_back(Person { number: 0, came: 5_000.0 });
        bank.next_turn(0, 5_000.0, &mut order, &mut tally);
        bank.until(5_200.0, &mut order, &mut tally);
        assert_eq!(next(&bank), (6_500.0, Some([6_500.0, 0.0])));
        assert_eq!(bank.controller_free, 6_200.0);
        let alone = scenario(1);
        let mut bank = DoorBank::new(&alone, &CROWD);
        bank.doors[0].waiting.push_back(Person { number: 0, came: 5_000.0 });
        bank.next_turn(0, 5_000.0, &mut order, &mut tally);
        assert_eq!(next(&bank), (6_500.0, Some([6_500.0, 0.0])));
    }

    #[test]
    fn who_has_waited_as_long_as_the_patience_stays_and_longer_leaves() {
        let mut scenario = scenario(1);
        scenario.people.patience = Some(TimeDistribution::Fixed(Millis(1_000.0)));
        let mut bank = DoorBank::new(&scenario, &CROWD);
        let mut tally = QueueTally::new(&CROWD, 0, &scenario);
        for (number, came) in [(0, 3_000.0), (1, 3_999.0), (2, 4_000.0), (3, 4_500.0)] {
            bank.doors[0].waiting.push_back(Person { number, came });
        }
        let mut order = 0;
        bank.next_turn(0, 5_000.0, &mut order, &mut tally);
        let Some(Reverse(Event { what: Happening::Leaves(person), .. })) = bank.events.peek()
        else {
            panic!("nobody's turn")
        };
        assert_eq!((person.number, person.came, person.start), (2, 4_000.0, 5_000.0));
        assert_eq!(bank.doors[0].waiting.len(), 1);
    }

    #[test]
    fn of_two_at_one_moment_the_one_foreseen_first_is_first() {
        let event = |at, order| Event {
            at,
            order,
            door: 0,
            what: Happening::Leaves(ServedPerson {
                number: 0,
                kind: 0,
                came: 0.0,
                start: 0.0,
                left: at,
                asked_wait: 0.0,
                visit: Visit {
                    time: Millis::ZERO,
                    shared: Millis::ZERO,
                    after: Millis::ZERO,
                    passed: true,
                    readings: 1,
                    removed: 0,
                },
            }),
        };
        assert!(event(1.0, 2) < event(2.0, 1) && event(1.0, 1) < event(1.0, 2));
        assert!(event(1.0, 1) == event(1.0, 1) && event(1.0, 1) != event(1.0, 2));
    }

    /// A quarter of the people hold the first card: of 4,000 choices 1,000, ± 27 at one standard
    /// deviation.
    #[test]
    fn cards_are_chosen_by_their_shares() {
        let mut scenario = scenario(1);
        for (name, share) in [("a", 0.25), ("b", 0.25), ("c", 0.5)] {
            let path = scenario.path.clone();
            scenario.people.cards.push(CardKind { name: name.into(), share, path });
        }
        let mut bank = DoorBank::new(&scenario, &CROWD);
        let mut counts = [0i32; 3];
        for _ in 0..4_000 {
            counts[bank.choose_kind().0] += 1;
        }
        for (count, expected) in counts.into_iter().zip([1_000, 1_000, 2_000]) {
            assert!((count - expected).abs() < 150, "{counts:?}");
        }
    }
}
