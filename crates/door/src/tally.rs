//! What is counted of a simulated queue once it has settled, and the figures that it makes.

use tapstone_record::{CardKindFigures, Fraction, Latency, Queue, QueueFormula, SharedStation};

use crate::budget::named;
use crate::crowd::{Crowd, HOUR_MS};
use crate::distribution::TimeDistribution;
use crate::millis::Millis;
use crate::people::People;
use crate::probability::wilson;
use crate::queue::{self, WaitBatches, latency};
use crate::scenario::Scenario;
use crate::visit::Visit;

const MINUTE_MS: f64 = 6e4;
/// Relative error of sums of up to ten million equal times.
const ROUNDING: f64 = 1e-6;

/// A run has to be so many times as long as a queue takes to forget how it started, or the batches of
/// its waits are still one story. Shorter runs held theory less often than 95 % intervals should
/// (docs/evidence.md).
const RELAXATIONS: f64 = 60.0;

/// One person who came to a turn: when, for how long, and what came of it. Times are in ms.
pub(crate) struct ServedPerson {
    pub(crate) number: u64,
    /// Which of the kinds of card.
    pub(crate) kind: usize,
    pub(crate) came: f64,
    pub(crate) start: f64,
    pub(crate) left: f64,
    /// How long the door waited for the controller.
    pub(crate) asked_wait: f64,
    pub(crate) visit: Visit,
}

/// What is counted once the queue has settled.
pub(crate) struct QueueTally<'a> {
    crowd: &'a Crowd,
    settling: u64,
    doors: f64,
    /// When the counting starts.
    opens: f64,
    waits: Vec<f64>,
    times_in_system: Vec<f64>,
    readings_of_each: Vec<f64>,
    /// When doors were in use, and the controller; also by those who came before the counting.
    in_use: Vec<(f64, f64)>,
    controller_in_use: Vec<(f64, f64)>,
    controller_waits: Vec<f64>,
    /// Sum of the service times, in ms; `squares` is the sum of their squares.
    service_times: f64,
    squares: f64,
    shortest: f64,
    longest: f64,
    passed: u64,
    /// When people passed; also those who came before the counting.
    passed_at: Vec<f64>,
    gave_up_at_door: u64,
    left_the_queue: u64,
    readings: u64,
    removed: u64,
    kinds: Vec<KindTally>,
}

/// The people with one kind of card.
#[derive(Clone, Default)]
struct KindTally {
    people: u64,
    passed: u64,
    times_in_system: Vec<f64>,
}

impl<'a> QueueTally<'a> {
    pub(crate) fn new(crowd: &'a Crowd, settling: u64, scenario: &Scenario) -> Self {
        let room = (crowd.people - settling) as usize;
        Self {
            crowd,
            settling,
            doors: f64::from(scenario.people.doors),
            opens: 0.0,
            waits: Vec::with_capacity(room),
            times_in_system: Vec::with_capacity(room),
            readings_of_each: Vec::with_capacity(room),
            in_use: Vec::with_capacity(room),
            controller_in_use: Vec::new(),
            controller_waits: Vec::new(),
            service_times: 0.0,
            squares: 0.0,
            shortest: f64::INFINITY,
            longest: 0.0,
            passed: 0,
            passed_at: Vec::with_capacity(room),
            gave_up_at_door: 0,
            left_the_queue: 0,
            readings: 0,
            removed: 0,
            kinds: vec![KindTally::default(); scenario.people.cards.len().max(1)],
        }
    }

    pub(crate) fn arrives(&mut self, number: u64, now: f64) {
        if number == self.settling {
            self.opens = now;
        }
    }

    pub(crate) fn leaves_the_queue(&mut self, number: u64) {
        self.left_the_queue += u64::from(number >= self.settling);
    }

    pub(crate) fn count(&mut self, person: &ServedPerson) {
        let ServedPerson { kind, came, start, left, asked_wait, visit, .. } = person;
        self.in_use.push((*start, *left));
        if visit.shared.0 > 0.0 {
            let answered = left - visit.after.0;
            self.controller_in_use.push((answered - visit.shared.0, answered));
        }
        if visit.passed {
            self.passed_at.push(*left);
        }
        if person.number < self.settling {
            return;
        }
        let service = visit.time.0 + asked_wait;
        self.waits.push(start - came);
        self.service_times += service;
        self.squares += service * service;
        self.shortest = self.shortest.min(service);
        self.longest = self.longest.max(service);
        self.readings += u64::from(visit.readings);
        self.readings_of_each.push(f64::from(visit.readings));
        self.removed += u64::from(visit.removed);
        if visit.shared.0 > 0.0 {
            self.controller_waits.push(*asked_wait);
        }
        let kind = &mut self.kinds[*kind];
        kind.people += 1;
        if visit.passed {
            self.passed += 1;
            self.times_in_system.push(left - came);
            kind.passed += 1;
            kind.times_in_system.push(left - came);
        } else {
            self.gave_up_at_door += 1;
        }
    }

    pub(crate) fn figures(self, scenario: &Scenario, name: &str) -> Queue {
        let counted = self.crowd.people - self.settling;
        let served = self.waits.len().max(1) as f64;
        let mean_service = self.service_times / served;
        let waits = WaitBatches::from_values(&self.waits);
        let load = self.arrivals_at_a_door() * mean_service;
        let leaves = scenario.people.patience.is_some();
        let overloaded = load >= 1.0 - self.load_uncertainty(mean_service, served);
        let is_alone = self.controller_waits.iter().all(|wait| *wait <= 0.0);
        let has_formula = !leaves && !overloaded && is_alone;
        let formula = has_formula
            .then(|| self.formula(&scenario.people, scenario, mean_service, load, served, &waits));
        // A queue that grows without bound has no mean wait: it would be a figure of how many
        // people were simulated.
        let is_bounded = leaves || !overloaded;
        let passing = self.passed as f64 / served;
        let utilisation = queue::busy_share(&self.in_use, self.opens, self.doors);
        let times = |values: &[f64]| match values {
            [] => Latency::default(),
            _ if !is_bounded => Latency::default(),
            values => latency(values, &WaitBatches::from_values(values)),
        };
        Queue {
            scenario: named(scenario, name),
            arrivals: self.crowd.people,
            warm_up_arrivals: self.settling,
            arrivals_per_hour: self.crowd.per_hour,
            seed: self.crowd.seed,
            doors: scenario.people.doors,
            capacity_per_minute: self.capacity(passing, mean_service),
            throughput_per_minute: queue::rate(&self.passed_at, self.opens, MINUTE_MS),
            utilisation: Fraction(utilisation.estimate),
            utilisation_interval: Some(utilisation),
            overloaded,
            wait_ns: if is_bounded { latency(&self.waits, &waits) } else { Latency::default() },
            time_in_system_ns: times(&self.times_in_system),
            gave_up: wilson(self.gave_up_at_door + self.left_the_queue, counted),
            left_queue: leaves.then(|| wilson(self.left_the_queue, counted)),
            removed_early: wilson(self.removed, self.readings),
            attempts_per_person: self.readings as f64 / served,
            attempts_interval: Some(queue::mean(&self.readings_of_each)),
            controller: (self.doors > 1.0 && !self.controller_waits.is_empty()).then(|| {
                SharedStation {
                    utilisation: queue::busy_share(&self.controller_in_use, self.opens, 1.0),
                    wait_ns: times(&self.controller_waits),
                }
            }),
            cards: self.card_kinds(&scenario.people, counted, &times),
            formula,
            arrivals_needed: (!leaves && !overloaded)
                .then(|| self.people_needed(mean_service, served, load)),
        }
    }

    fn card_kinds(
        &self,
        people: &People,
        counted: u64,
        times: &impl Fn(&[f64]) -> Latency,
    ) -> Vec<CardKindFigures> {
        let figures = |(kind, tally): (&crate::people::CardKind, &KindTally)| CardKindFigures {
            name: kind.name.clone(),
            share: wilson(tally.people, counted),
            authentication_ns: kind.path.total_with_self_check().nanos(),
            time_in_system_ns: times(&tally.times_in_system),
            gave_up: wilson(tally.people - tally.passed, tally.people),
        };
        people.cards.iter().zip(&self.kinds).map(figures).collect()
    }

    /// How many people come to each door in a millisecond.
    fn arrivals_at_a_door(&self) -> f64 {
        self.crowd.per_hour / HOUR_MS / self.doors
    }

    /// What all doors can pass, or their controller can answer.
    fn capacity(&self, passing: f64, mean_service: f64) -> f64 {
        let at_doors = passing * MINUTE_MS / mean_service * self.doors;
        let asked: f64 = self.controller_in_use.iter().map(|(from, to)| to - from).sum();
        let answered = self.controller_in_use.len() as f64 * MINUTE_MS / asked;
        if self.doors > 1.0 && answered.is_finite() { at_doors.min(answered) } else { at_doors }
    }

    /// By how much the offered load may be off: three standard errors of the simulated mean service
    /// time. Sums of equal service times differ from multiples of them in the last digits, so that
    /// a load of exactly 1 may come out below it.
    fn load_uncertainty(&self, mean_service: f64, served: f64) -> f64 {
        let variance = (self.squares / served - mean_service * mean_service).max(0.0);
        let standard_error = (variance / served).sqrt();
        (3.0 * self.arrivals_at_a_door() * standard_error).max(ROUNDING)
    }

    /// How many people it takes for their waits to tell the mean. A queue with random arrivals
    /// forgets its start in (1 + c²) E\[S\] / 2.8 (1 - √ρ)², c being the coefficient of variation of
    /// the turns (Odoni and Roth, Operations Research 31, 1983).
    fn people_needed(&self, mean_service: f64, served: f64, load: f64) -> u64 {
        let square = self.squares / served;
        let turns = square / (mean_service * mean_service) / (2.8 * (1.0 - load.sqrt()).powi(2));
        let needed = RELAXATIONS * turns * load * self.doors;
        // Two digits of it are known at best.
        let unit = 10f64.powf(needed.max(10.0).log10().floor() - 1.0);
        ((needed / unit).ceil() * unit) as u64
    }

    /// Pollaczek and Khinchine: the mean wait is λ E\[S²\] / (2 (1 - ρ)).
    fn formula(
        &self,
        people: &People,
        scenario: &Scenario,
        mean_service: f64,
        load: f64,
        served: f64,
        waits: &WaitBatches,
    ) -> QueueFormula {
        // Sums of equal service times differ from multiples of them in the last digits.
        let same = self.longest - self.shortest <= 1e-6 * self.longest;
        let square = if same { mean_service * mean_service } else { self.squares / served };
        let wait = Millis(self.arrivals_at_a_door() * square / (2.0 * (1.0 - load)));
        let error = waits.standard_error();
        let off = if error > 0.0 { (waits.mean() - wait.0) / error } else { 0.0 };
        let name = match same {
            true => "M/D/1",
            false if is_exponential(people, scenario) => "M/M/1",
            false => "M/G/1",
        };
        let all_pass = self.gave_up_at_door == 0;
        QueueFormula {
            name: name.into(),
            mean_wait_ns: wait.nanos(),
            mean_time_in_system_ns: all_pass.then(|| (wait + Millis(mean_service)).nanos()),
            utilisation: Some(Fraction(load)),
            standard_errors: off,
        }
    }
}

/// Whether a turn is one exponential time and nothing beside it.
fn is_exponential(people: &People, scenario: &Scenario) -> bool {
    let nothing = |time: &TimeDistribution| time.is_fixed() && time.mean() == Millis::ZERO;
    let exponential =
        |time: &TimeDistribution| matches!(time, TimeDistribution::Exponential { .. });
    people.cards.is_empty()
        && people.hold.is_none()
        && people.read_failure <= 0.0
        && scenario.path.is_fixed()
        && scenario.path.total_with_self_check() == Millis::ZERO
        && ((nothing(&people.tap) && exponential(&people.pass))
            || (exponential(&people.tap) && nothing(&people.pass)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Role;

    fn bare() -> Scenario {
        let text = "title = 'x'\ntarget_ms = 1500\n\
                    [[component]]\nkind = 'card'\nfrom = 'assumed'\ntime_ms = 0\n";
        let mut scenario = Scenario::read(text, "test").unwrap();
        scenario.people.tap = TimeDistribution::Fixed(Millis::ZERO);
        scenario
    }

    /// One thousandth of a person in a millisecond, of which two come before the counting.
    const CROWD: Crowd = Crowd { people: 6, per_hour: 3600.0, seed: 1 };

    fn person(number: u64, [came, start, left]: [f64; 3], readings: [u32; 2]) -> ServedPerson {
        let visit = Visit {
            time: Millis(left - start),
            shared: Millis::ZERO,
            after: Millis::ZERO,
            passed: true,
            readings: readings[0],
            removed: readings[1],
        };
        ServedPerson { number, kind: 0, came, start, left, asked_wait: 0.0, visit }
    }

    fn counted<'a>(scenario: &Scenario, people: &[ServedPerson]) -> QueueTally<'a> {
        let mut tally = QueueTally::new(&CROWD, 2, scenario);
        for person in people {
            tally.arrives(person.number, person.came);
            tally.count(person);
        }
        tally
    }

    /// Service times of 400, 600, 200 and 400 ms, after two people who do not count.
    fn four() -> Vec<ServedPerson> {
        let mut people = vec![
            person(0, [0.0, 0.0, 100.0], [9, 9]),
            person(1, [50.0, 100.0, 900.0], [9, 9]),
            person(2, [1_000.0, 1_000.0, 1_400.0], [1, 0]),
            person(3, [1_200.0, 1_400.0, 2_000.0], [2, 1]),
            person(4, [1_900.0, 2_000.0, 2_200.0], [3, 2]),
            person(5, [3_000.0, 3_000.0, 3_400.0], [1, 0]),
        ];
        people[4].visit.passed = false;
        people
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-4 * other.abs()
    }

    #[test]
    fn figures_of_four_people_are_those_by_hand() {
        let scenario = bare();
        let queue = counted(&scenario, &four()).figures(&scenario, "x");
        assert_eq!((queue.wait_ns.min.0, queue.wait_ns.max.0), (0, 200_000_000));
        assert_eq!(
            (queue.time_in_system_ns.min.0, queue.time_in_system_ns.max.0),
            (400_000_000, 800_000_000)
        );
        // (0 + 200 + 100 + 0) / 4; of those who passed (400 + 800 + 400) / 3.
        assert!(close(queue.wait_ns.mean.unwrap().estimate, 75e6));
        assert!(close(queue.time_in_system_ns.mean.unwrap().estimate, 1_600e6 / 3.0));
        assert_eq!(queue.gave_up, wilson(1, 4));
        assert_eq!(queue.removed_early, wilson(3, 7));
        assert_eq!(queue.attempts_per_person, 1.75);
        assert!(close(queue.attempts_interval.unwrap().estimate, 1.75));
        // 1,600 of 2,400 ms in use; three pass in them.
        assert!(close(queue.utilisation.0, 2.0 / 3.0));
        assert!(close(queue.throughput_per_minute.estimate, 75.0));
        // Three of four pass, each in 400 ms.
        assert!(close(queue.capacity_per_minute, 112.5));
        // E[S²] = 180,000 ms², a load of 0.4: 1.125 / (2.8 (1 - √0.4)²) of 60 · 0.4, rounded up.
        assert_eq!(queue.arrivals_needed, Some(72));
        assert!(!queue.overloaded && queue.left_queue.is_none() && queue.controller.is_none());
        let formula = queue.formula.unwrap();
        assert_eq!((&formula.name[..], formula.mean_time_in_system_ns), ("M/G/1", None));
        // λ E[S²] / (2 (1 - ρ)) = 180 / 1.2 ms, 75 more than was seen, at an error of √(27,500/12).
        assert!(close(formula.mean_wait_ns, 150e6), "{formula:?}");
        assert!(close(formula.utilisation.unwrap().0, 0.4), "{formula:?}");
        assert!(close(formula.standard_errors, -75.0 / (27_500.0f64 / 12.0).sqrt()), "{formula:?}");
    }

    #[test]
    fn where_all_pass_the_formula_knows_the_time_in_system() {
        let scenario = bare();
        let mut people = four();
        people[4].visit.passed = true;
        let queue = counted(&scenario, &people).figures(&scenario, "x");
        assert!(close(queue.formula.unwrap().mean_time_in_system_ns.unwrap(), 550e6));
        assert_eq!(queue.gave_up, wilson(0, 4));
    }

    #[test]
    fn who_leaves_the_queue_after_it_has_settled_is_counted() {
        let mut scenario = bare();
        scenario.people.patience = Some(TimeDistribution::Fixed(Millis(1_000.0)));
        let people = four();
        let mut tally = counted(&scenario, &people[..4]);
        for number in [1, 2, 5] {
            tally.leaves_the_queue(number);
        }
        let queue = tally.figures(&scenario, "x");
        assert_eq!(queue.left_queue, Some(wilson(2, 4)));
        assert_eq!(queue.gave_up, wilson(2, 4));
        assert!(queue.formula.is_none() && queue.arrivals_needed.is_none());
        assert!(queue.wait_ns.mean.is_some(), "a queue that people leave does not grow for ever");
    }

    #[test]
    fn doors_pass_no_more_than_their_controller_answers() {
        let mut scenario = bare();
        let mut people = four();
        for person in &mut people {
            person.visit.passed = true;
            person.visit.shared = Millis(150.0);
            person.visit.after = Millis(20.0);
            person.visit.time = Millis(person.left - person.start - 10.0);
            person.asked_wait = 10.0;
        }
        let alone = counted(&scenario, &people).figures(&scenario, "x");
        assert!(alone.controller.is_none(), "one door has a controller of its own");
        assert!(close(alone.capacity_per_minute, 150.0));
        assert!(alone.formula.is_none(), "it was waited for");
        scenario.people.doors = 2;
        let two = counted(&scenario, &people).figures(&scenario, "x");
        assert!(close(two.capacity_per_minute, 300.0), "two doors of 400 ms");
        assert!(close(two.utilisation.0, 1.0 / 3.0));
        let controller = two.controller.unwrap();
        // 4 · 150 of 2,380 ms: the last answer is 20 ms before the last one leaves.
        assert!(close(controller.utilisation.estimate, 600.0 / 2_380.0), "{controller:?}");
        assert!(close(controller.wait_ns.mean.unwrap().estimate, 10e6), "{controller:?}");
        scenario.people.doors = 4;
        let four = counted(&scenario, &people).figures(&scenario, "x");
        assert!(close(four.capacity_per_minute, 400.0), "one answer in 150 ms");
    }

    #[test]
    fn only_one_exponential_time_is_m_m_1() {
        let ms = TimeDistribution::Fixed(Millis(1.0));
        let exponential = TimeDistribution::Exponential { mean: Millis(6.0) };
        let is = |change: &dyn Fn(&mut Scenario)| {
            let mut scenario = bare();
            scenario.people.pass = exponential.clone();
            change(&mut scenario);
            is_exponential(&scenario.people, &scenario)
        };
        assert!(is(&|_| ()));
        assert!(is(&|it| std::mem::swap(&mut it.people.tap, &mut it.people.pass)));
        assert!(!is(&|it| it.people.tap = ms.clone()));
        assert!(!is(&|it| it.people.pass = ms.clone()));
        assert!(!is(&|it| it.people.tap = exponential.clone()), "the sum of two is another");
        assert!(!is(&|it| {
            it.people.tap = exponential.clone();
            it.people.pass = ms.clone();
        }));
        assert!(!is(&|it| it.people.hold = Some(ms.clone())));
        assert!(!is(&|it| it.people.read_failure = 0.1));
        assert!(!is(&|it| it.path.parts[0].pieces[0].time = ms.clone()));
        assert!(!is(&|it| it.path.parts[0].pieces[0].time = exponential.clone()));
        assert!(!is(&|it| {
            let path = it.path.clone();
            it.people.cards = vec![crate::people::CardKind { name: "x".into(), share: 1.0, path }];
        }));
        assert_eq!(bare().path.parts[0].role, Role::Card);
    }
}
