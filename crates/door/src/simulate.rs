//! A queue of people at one door: they arrive at random, wait, hold a card, and pass.
//!
//! First come, first served. Arrivals are a Poisson process. A person's service ends when that one
//! has passed or given up. Where nobody leaves the queue this is M/G/1, of which the mean wait is
//! known (Pollaczek and Khinchine), and M/D/1 where all service times are equal.

use tapstone_record::{Fraction, Latency, Queue, QueueFormula};
use thiserror::Error;

use crate::budget::named;
use crate::millis::Millis;
use crate::people::People;
use crate::probability::wilson;
use crate::queue::{WaitBatches, latency};
use crate::random::RandomStream;
use crate::scenario::Scenario;

/// How many people arrive, at which rate, and the seed of their random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowd {
    people: u64,
    per_hour: f64,
    seed: u64,
}

/// A crowd that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimulateError {
    /// Too few for figures, or too many for memory.
    #[error("{0} people cannot be simulated\nhint: from 100 to 10,000,000")]
    People(u64),
    /// Nobody, or more than any door.
    #[error("{0} people per hour do not come to a door\nhint: --people 500/h")]
    Rate(f64),
}

impl Crowd {
    /// So many people, so many an hour.
    ///
    /// # Errors
    /// When they are too few or too many.
    pub fn new(people: u64, per_hour: f64, seed: u64) -> Result<Self, SimulateError> {
        if !(100..=10_000_000).contains(&people) {
            return Err(SimulateError::People(people));
        }
        if !(per_hour.is_finite() && per_hour > 0.0 && per_hour <= 1e6) {
            return Err(SimulateError::Rate(per_hour));
        }
        Ok(Self { people, per_hour, seed })
    }
}

const HOUR_MS: f64 = 3.6e6;
const MINUTE_MS: f64 = 6e4;
/// The part of the people who come while the queue settles: it starts empty, which it seldom is.
const SETTLING: u64 = 20;
/// Relative error of sums of up to ten million equal times.
const ROUNDING: f64 = 1e-6;
/// The streams of random numbers: what one person does must not move another's arrival.
const ARRIVALS: u64 = 2;
const VISITS: u64 = 3;

/// Lets people come; `name` is what the scenario was called by.
#[must_use]
pub fn simulate(scenario: &Scenario, name: &str, crowd: &Crowd) -> Queue {
    let settling = crowd.people / SETTLING;
    let mut tally = QueueTally::new(crowd, settling);
    let mut arrivals = RandomStream::new(crowd.seed, ARRIVALS);
    let mut random = RandomStream::new(crowd.seed, VISITS);
    let between = HOUR_MS / crowd.per_hour;
    let mut now = 0.0_f64;
    let mut free = 0.0_f64;
    for person in 0..crowd.people {
        now += between * arrivals.exponential();
        if person == settling {
            tally.opens = now;
        }
        let counts = person >= settling;
        let start = now.max(free);
        let patience = scenario.people.patience.as_ref().map(|it| it.draw(&mut random).0);
        if patience.is_some_and(|patience| patience < start - now) {
            if counts {
                tally.left_the_queue += 1;
            }
            continue;
        }
        let visit = Visit::take(scenario, &mut random);
        free = start + visit.time.0;
        if counts {
            tally.count(now, start, free, &visit);
        }
    }
    tally.figures(scenario, name)
}

/// One person's service at the door.
struct Visit {
    time: Millis,
    passed: bool,
    readings: u32,
    removed: u32,
}

impl Visit {
    fn take(scenario: &Scenario, random: &mut RandomStream) -> Self {
        let People { tap, hold, again, read_failure, attempts, pass, .. } = &scenario.people;
        let mut visit = Self { time: tap.draw(random), passed: false, readings: 0, removed: 0 };
        while visit.readings < *attempts && !visit.passed {
            if visit.readings > 0 {
                visit.time = visit.time + again.draw(random);
            }
            visit.readings += 1;
            let drawn = scenario.path.draw(random);
            let held = hold.as_ref().map(|hold| hold.draw(random));
            if let Some(held) = held.filter(|held| *held < drawn.card_needed) {
                visit.removed += 1;
                visit.time = visit.time + held;
            } else if *read_failure > 0.0 && random.unit() < *read_failure {
                visit.time = visit.time + drawn.card_needed;
            } else {
                visit.passed = true;
                visit.time = visit.time + drawn.total + pass.draw(random);
            }
        }
        visit
    }
}

/// What is counted once the queue has settled.
struct QueueTally<'a> {
    crowd: &'a Crowd,
    settling: u64,
    /// When the counting starts, and when the last one left the door.
    opens: f64,
    closes: f64,
    waits: Vec<f64>,
    times_in_system: Vec<f64>,
    /// Sum of the service times, in ms; `squares` is the sum of their squares.
    service_times: f64,
    squares: f64,
    shortest: f64,
    longest: f64,
    passed: u64,
    passed_at: Vec<f64>,
    gave_up_at_door: u64,
    left_the_queue: u64,
    readings: u64,
    removed: u64,
}

impl<'a> QueueTally<'a> {
    fn new(crowd: &'a Crowd, settling: u64) -> Self {
        let room = (crowd.people - settling) as usize;
        Self {
            crowd,
            settling,
            opens: 0.0,
            closes: 0.0,
            waits: Vec::with_capacity(room),
            times_in_system: Vec::with_capacity(room),
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
        }
    }

    fn count(&mut self, came: f64, start: f64, left: f64, visit: &Visit) {
        self.waits.push(start - came);
        self.service_times += visit.time.0;
        self.squares += visit.time.0 * visit.time.0;
        self.shortest = self.shortest.min(visit.time.0);
        self.longest = self.longest.max(visit.time.0);
        self.readings += u64::from(visit.readings);
        self.removed += u64::from(visit.removed);
        self.closes = self.closes.max(left);
        if visit.passed {
            self.passed += 1;
            self.passed_at.push(left);
            self.times_in_system.push(left - came);
        } else {
            self.gave_up_at_door += 1;
        }
    }

    fn figures(self, scenario: &Scenario, name: &str) -> Queue {
        let counted = self.crowd.people - self.settling;
        let served = self.waits.len().max(1) as f64;
        let mean_service = self.service_times / served;
        let waits = WaitBatches::from_values(&self.waits);
        let load = self.crowd.per_hour / HOUR_MS * mean_service;
        let leaves = scenario.people.patience.is_some();
        let overloaded = load >= 1.0 - self.load_uncertainty(mean_service, served);
        let formula =
            (!leaves && !overloaded).then(|| self.formula(mean_service, load, served, &waits));
        // A queue that grows without bound has no mean wait: it would be a figure of how many
        // people were simulated.
        let is_bounded = leaves || !overloaded;
        let passing = self.passed as f64 / served;
        let span = self.closes - self.opens;
        Queue {
            scenario: named(scenario, name),
            people: self.crowd.people,
            settling: self.settling,
            arrivals_per_hour: self.crowd.per_hour,
            seed: self.crowd.seed,
            capacity_per_minute: passing * MINUTE_MS / mean_service,
            passed_per_minute: crate::queue::rate(&self.passed_at, self.opens, MINUTE_MS),
            utilisation: Fraction((self.service_times / span).clamp(0.0, 1.0)),
            overloaded,
            wait_ns: if is_bounded { latency(&self.waits, &waits) } else { Latency::default() },
            whole_ns: if self.times_in_system.is_empty() || !is_bounded {
                Latency::default()
            } else {
                latency(&self.times_in_system, &WaitBatches::from_values(&self.times_in_system))
            },
            gave_up: wilson(self.gave_up_at_door + self.left_the_queue, counted),
            left_queue: leaves.then(|| wilson(self.left_the_queue, counted)),
            removed_early: wilson(self.removed, self.readings),
            readings_per_person: self.readings as f64 / served,
            formula,
        }
    }

    /// By how much the offered load may be off: three standard errors of the simulated mean service
    /// time. Sums of equal service times differ from multiples of them in the last digits, so that
    /// a load of exactly 1 may come out below it.
    fn load_uncertainty(&self, mean_service: f64, served: f64) -> f64 {
        let variance = (self.squares / served - mean_service * mean_service).max(0.0);
        let standard_error = (variance / served).sqrt();
        (3.0 * self.crowd.per_hour / HOUR_MS * standard_error).max(ROUNDING)
    }

    /// Pollaczek and Khinchine: the mean wait is λ E\[S²\] / (2 (1 - ρ)).
    fn formula(
        &self,
        mean_service: f64,
        load: f64,
        served: f64,
        waits: &WaitBatches,
    ) -> QueueFormula {
        // Sums of equal service times differ from multiples of them in the last digits.
        let same = self.longest - self.shortest <= 1e-6 * self.longest;
        let square = if same { mean_service * mean_service } else { self.squares / served };
        let arrivals = self.crowd.per_hour / HOUR_MS;
        let wait = Millis(arrivals * square / (2.0 * (1.0 - load)));
        let error = waits.standard_error();
        let off = if error > 0.0 { (waits.mean() - wait.0) / error } else { 0.0 };
        QueueFormula {
            name: if same { "M/D/1" } else { "M/G/1" }.into(),
            mean_wait_ns: wait.nanos(),
            standard_errors: off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::TimeDistribution;

    fn door(turn_ms: f64) -> Scenario {
        let mut scenario = Scenario::shipped("hid-rsa2048").unwrap();
        let rest = turn_ms - scenario.path.total_with_self_check().0;
        scenario.people.tap = TimeDistribution::Fixed(Millis::ZERO);
        scenario.people.pass = TimeDistribution::Fixed(Millis(rest));
        scenario
    }

    /// Arrivals at which the door is in use so much of the time.
    fn crowd(people: u64, load: f64, turn_ms: f64, seed: u64) -> Crowd {
        Crowd::new(people, load * HOUR_MS / turn_ms, seed).unwrap()
    }

    #[test]
    fn equal_turns_wait_as_m_d_1_says() {
        for load in [0.3, 0.6, 0.9] {
            let mut off = Vec::new();
            for seed in 1..=6 {
                let queue = simulate(&door(6000.0), "x", &crowd(40_000, load, 6000.0, seed));
                let formula = queue.formula.unwrap();
                assert_eq!(formula.name, "M/D/1");
                let expected = load * 6000.0 / (2.0 * (1.0 - load));
                assert!((formula.mean_wait_ns / 1e6 - expected).abs() < 0.01, "{formula:?}");
                assert!((queue.utilisation.0 - load).abs() < 0.03, "{}", queue.utilisation.0);
                off.push(formula.standard_errors);
            }
            // Six runs: none is far off, and they do not lean to one side together.
            assert!(off.iter().all(|off| off.abs() < 4.0), "load {load}: {off:?}");
            let together = off.iter().sum::<f64>() / (off.len() as f64).sqrt();
            assert!(together.abs() < 4.0, "load {load}: {off:?}");
        }
    }

    #[test]
    fn turns_with_a_spread_wait_as_m_g_1_says() {
        let scenario = Scenario::shipped("osdp-ip-rsa2048").unwrap();
        let queue = simulate(&scenario, "x", &Crowd::new(60_000, 500.0, 3).unwrap());
        let formula = queue.formula.unwrap();
        assert_eq!(formula.name, "M/G/1");
        assert!(formula.standard_errors.abs() < 4.0, "{formula:?}");
        assert!(queue.removed_early.estimate > 0.0 && queue.readings_per_person > 1.0);
    }

    #[test]
    fn the_same_seed_gives_the_same_day_and_another_seed_another() {
        let scenario = Scenario::shipped("osdp-ip-p256").unwrap();
        let day = |seed| simulate(&scenario, "x", &Crowd::new(5_000, 400.0, seed).unwrap());
        assert_eq!(day(7), day(7));
        assert_ne!(day(7).wait_ns, day(8).wait_ns);
    }

    #[test]
    fn an_overloaded_door_says_so_and_promises_no_formula() {
        let queue = simulate(&door(6000.0), "x", &crowd(2_000, 1.5, 6000.0, 1));
        assert!(queue.overloaded && queue.formula.is_none());
        assert!((queue.capacity_per_minute - 10.0).abs() < 1e-6);
    }

    #[test]
    fn a_queue_that_grows_without_bound_has_no_waiting_time() {
        for load in [1.0, 1.000_001, 1.5, 20.0] {
            for seed in 1..=5 {
                let queue = simulate(&door(6000.0), "x", &crowd(2_000, load, 6000.0, seed));
                assert!(queue.overloaded, "{load}");
                assert_eq!(queue.wait_ns, Latency::default(), "{load}");
                assert_eq!(queue.whole_ns, Latency::default(), "{load}");
            }
        }
        let below = simulate(&door(6000.0), "x", &crowd(2_000, 0.999, 6000.0, 1));
        assert!(!below.overloaded && below.left_queue.is_none() && below.wait_ns.mean.is_some());
    }

    #[test]
    fn as_many_as_can_pass_are_too_many_where_service_times_vary() {
        let scenario = Scenario::shipped("osdp-ip-rsa2048").unwrap();
        // Readings that fail change the mean service time, so it comes from a long simulation.
        let long = simulate(&scenario, "x", &Crowd::new(400_000, 60.0, 99).unwrap());
        let service_ns = long.whole_ns.mean.unwrap().estimate - long.wait_ns.mean.unwrap().estimate;
        let capacity = 3.6e12 / service_ns;
        for seed in 1..=20 {
            let queue = simulate(&scenario, "x", &Crowd::new(5_000, capacity, seed).unwrap());
            assert!(queue.overloaded && queue.formula.is_none(), "seed {seed}");
            let queue =
                simulate(&scenario, "x", &Crowd::new(5_000, 0.97 * capacity, seed).unwrap());
            assert!(!queue.overloaded, "seed {seed}");
        }
    }

    #[test]
    fn who_takes_the_card_away_too_early_starts_over_and_gives_up() {
        let mut scenario = door(6000.0);
        // The card is needed for 2364 ms, and never held so long.
        scenario.people.hold = Some(TimeDistribution::Fixed(Millis(2000.0)));
        let queue = simulate(&scenario, "x", &Crowd::new(1_000, 60.0, 1).unwrap());
        assert_eq!(queue.gave_up.estimate, 1.0);
        assert_eq!(queue.removed_early.estimate, 1.0);
        assert_eq!(queue.readings_per_person, 3.0);
        assert_eq!(queue.capacity_per_minute, 0.0);
        // A little longer, and all pass at once.
        scenario.people.hold = Some(TimeDistribution::Fixed(Millis(2400.0)));
        let queue = simulate(&scenario, "x", &Crowd::new(1_000, 60.0, 1).unwrap());
        assert_eq!((queue.gave_up.estimate, queue.readings_per_person), (0.0, 1.0));
    }

    #[test]
    fn the_impatient_leave_a_long_queue() {
        let mut scenario = door(6000.0);
        scenario.people.patience = Some(TimeDistribution::Fixed(Millis(30_000.0)));
        let queue = simulate(&scenario, "x", &crowd(5_000, 1.5, 6000.0, 1));
        assert!(queue.gave_up.estimate > 0.2, "{:?}", queue.gave_up);
        assert!(queue.overloaded, "more come than can pass, although the queue stays short");
        assert!(queue.formula.is_none());
        assert_eq!(queue.left_queue, Some(queue.gave_up));
        assert!(queue.wait_ns.max.0 <= 30_000_000_000);
        // The door serves 2 of 3 who come; who waits, waits almost as long as anybody would.
        assert!((queue.gave_up.estimate - 1.0 / 3.0).abs() < 0.05, "{:?}", queue.gave_up);
        assert!(queue.wait_ns.max.0 > 25_000_000_000, "{:?}", queue.wait_ns.max);
        assert!((queue.passed_per_minute.estimate - 10.0).abs() < 0.5, "{queue:?}");
    }

    #[test]
    fn the_patient_stay() {
        let mut scenario = door(6000.0);
        scenario.people.patience = Some(TimeDistribution::Fixed(Millis(3.6e6)));
        let queue = simulate(&scenario, "x", &crowd(5_000, 0.5, 6000.0, 1));
        assert_eq!(queue.gave_up.estimate, 0.0);
    }

    /// Erlang's loss formula for one server, which holds for any service time: ρ / (1 + ρ).
    #[test]
    fn who_never_waits_leaves_as_often_as_the_door_is_in_use() {
        let mut scenario = door(6000.0);
        scenario.people.patience = Some(TimeDistribution::Fixed(Millis::ZERO));
        let queue = simulate(&scenario, "x", &crowd(40_000, 0.5, 6000.0, 1));
        assert!((queue.gave_up.estimate - 0.5 / 1.5).abs() < 0.01, "{:?}", queue.gave_up);
        assert_eq!(queue.wait_ns.max.0, 0);
        assert!((queue.utilisation.0 - 0.5 / 1.5).abs() < 0.01, "{:?}", queue.utilisation);
    }

    /// A scenario in which every time is a single figure.
    fn fixed() -> Scenario {
        let mut scenario = door(6000.0);
        scenario.people.tap = TimeDistribution::Fixed(Millis(300.0));
        scenario.people.again = TimeDistribution::Fixed(Millis(1000.0));
        scenario.people.pass = TimeDistribution::Fixed(Millis(1500.0));
        scenario.people.attempts = 3;
        scenario
    }

    fn visit(scenario: &Scenario) -> Visit {
        Visit::take(scenario, &mut RandomStream::new(1, VISITS))
    }

    fn assert_time(visit: &Visit, expected_ms: f64) {
        assert!((visit.time.0 - expected_ms).abs() < 1e-6, "{} {expected_ms}", visit.time.0);
    }

    #[test]
    fn a_visit_that_succeeds_is_tap_authentication_and_passing() {
        let scenario = fixed();
        let visit = visit(&scenario);
        assert_eq!((visit.passed, visit.readings, visit.removed), (true, 1, 0));
        assert_time(&visit, 300.0 + scenario.path.total_with_self_check().0 + 1500.0);
    }

    #[test]
    fn cards_that_are_removed_cost_the_time_for_which_they_were_held() {
        let mut scenario = fixed();
        scenario.people.hold = Some(TimeDistribution::Fixed(Millis(2000.0)));
        let visit = visit(&scenario);
        assert_eq!((visit.passed, visit.readings, visit.removed), (false, 3, 3));
        assert_time(&visit, 300.0 + 3.0 * 2000.0 + 2.0 * 1000.0);
    }

    #[test]
    fn a_card_that_is_held_exactly_as_long_as_it_is_needed_is_read() {
        let mut scenario = fixed();
        let drawn = scenario.path.draw(&mut RandomStream::new(1, VISITS));
        scenario.people.hold = Some(TimeDistribution::Fixed(drawn.card_needed));
        assert!(visit(&scenario).passed);
    }

    #[test]
    fn readings_that_fail_cost_the_time_for_which_the_card_is_needed() {
        let mut scenario = fixed();
        scenario.people.read_failure = 1.0 - 1e-9;
        let needed = scenario.path.draw(&mut RandomStream::new(1, VISITS)).card_needed.0;
        let visit = visit(&scenario);
        assert_eq!((visit.passed, visit.readings, visit.removed), (false, 3, 0));
        assert_time(&visit, 300.0 + 3.0 * needed + 2.0 * 1000.0);
    }

    #[test]
    fn readings_fail_as_often_as_is_said() {
        let mut scenario = fixed();
        scenario.people.read_failure = 0.2;
        let queue = simulate(&scenario, "x", &Crowd::new(20_000, 60.0, 1).unwrap());
        // 1 + 0.2 + 0.04 readings, and three in vain 1 time in 125.
        assert!((queue.readings_per_person - 1.24).abs() < 0.01, "{}", queue.readings_per_person);
        assert!((queue.gave_up.estimate - 0.008).abs() < 0.002, "{:?}", queue.gave_up);
    }

    #[test]
    fn figures_are_of_those_who_came_after_the_queue_had_settled() {
        let queue = simulate(&fixed(), "x", &Crowd::new(1_000, 60.0, 1).unwrap());
        assert_eq!((queue.people, queue.settling), (1_000, 50));
        assert_eq!((queue.arrivals_per_hour, queue.seed), (60.0, 1));
        assert!((queue.passed_per_minute.estimate - 1.0).abs() < 0.1, "{queue:?}");
        // Everybody's time in the system is a wait and a visit.
        let time = visit(&fixed()).time.nanos();
        let between = queue.whole_ns.mean.unwrap().estimate - queue.wait_ns.mean.unwrap().estimate;
        assert!((between / time - 1.0).abs() < 1e-6, "{between} {time}");
        assert!((queue.capacity_per_minute - 6e10 / time).abs() < 1e-6);
    }

    #[test]
    fn crowds_that_cannot_be_simulated_are_refused() {
        assert_eq!(Crowd::new(99, 1.0, 1), Err(SimulateError::People(99)));
        assert_eq!(Crowd::new(10_000_001, 1.0, 1), Err(SimulateError::People(10_000_001)));
        for per_hour in [0.0, -1.0, 1e6 + 1.0, f64::INFINITY] {
            assert_eq!(Crowd::new(100, per_hour, 1), Err(SimulateError::Rate(per_hour)));
        }
        assert!(Crowd::new(100, f64::NAN, 1).is_err());
        assert!(Crowd::new(100, 1e-3, 1).is_ok() && Crowd::new(10_000_000, 1e6, 1).is_ok());
    }
}
