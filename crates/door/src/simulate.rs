//! People at doors: they arrive at random, wait, hold a card, and pass.
//!
//! First come, first served, at each door. Arrivals are a Poisson process; of several doors each
//! person takes one at random. A person's service ends when that one has passed or given up. All
//! doors share one controller, which answers one request after the other. Where nobody leaves the
//! queue and nobody waits for the controller, each door is M/G/1, of which the mean wait is known
//! (Pollaczek and Khinchine), M/D/1 where all service times are equal, and M/M/1 where they are
//! exponential.

use tapstone_record::Queue;

use crate::bank::DoorBank;
use crate::crowd::Crowd;
use crate::scenario::Scenario;
use crate::tally::QueueTally;

/// The part of the people who come while the queue settles: it starts empty, which it seldom is.
const SETTLING: u64 = 20;

/// Lets people come; `name` is what the scenario was called by.
#[must_use]
pub fn simulate(scenario: &Scenario, name: &str, crowd: &Crowd) -> Queue {
    let settling = crowd.people / SETTLING;
    let mut tally = QueueTally::new(crowd, settling, scenario);
    DoorBank::new(scenario, crowd).serve_all(&mut tally);
    tally.figures(scenario, name)
}

#[cfg(test)]
mod tests {
    use tapstone_record::Latency;

    use super::*;
    use crate::crowd::HOUR_MS;
    use crate::distribution::TimeDistribution;
    use crate::millis::Millis;
    use crate::people::CardKind;
    use crate::random::RandomStream;
    use crate::visit::Visit;

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
        assert!(queue.removed_early.estimate > 0.0 && queue.attempts_per_person > 1.0);
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
                assert_eq!(queue.time_in_system_ns, Latency::default(), "{load}");
            }
        }
        let below = simulate(&door(6000.0), "x", &crowd(2_000, 0.999, 6000.0, 1));
        assert!(!below.overloaded && below.left_queue.is_none() && below.wait_ns.mean.is_some());
    }

    /// While those pass who came before the counting began, the door is in use all the same.
    #[test]
    fn an_overloaded_door_is_in_use_all_the_time() {
        for load in [1.2, 8.0] {
            let queue = simulate(&door(6e3), "x", &crowd(20_000, load, 6e3, 1));
            assert!(queue.overloaded);
            assert!(queue.utilisation.0 > 0.9999, "{load}: {:?}", queue.utilisation);
            assert!(queue.utilisation_interval.unwrap().low > 0.999, "{queue:?}");
            let passed = queue.throughput_per_minute;
            assert!((passed.estimate - 10.0).abs() < 0.01, "{load}: {passed:?}");
        }
    }

    #[test]
    fn as_many_as_can_pass_are_too_many_where_service_times_vary() {
        let scenario = Scenario::shipped("osdp-ip-rsa2048").unwrap();
        // Readings that fail change the mean service time, so it comes from a long simulation.
        let long = simulate(&scenario, "x", &Crowd::new(400_000, 60.0, 99).unwrap());
        let service_ns =
            long.time_in_system_ns.mean.unwrap().estimate - long.wait_ns.mean.unwrap().estimate;
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
        assert_eq!(queue.attempts_per_person, 3.0);
        assert_eq!(queue.capacity_per_minute, 0.0);
        // A little longer, and all pass at once.
        scenario.people.hold = Some(TimeDistribution::Fixed(Millis(2400.0)));
        let queue = simulate(&scenario, "x", &Crowd::new(1_000, 60.0, 1).unwrap());
        assert_eq!((queue.gave_up.estimate, queue.attempts_per_person), (0.0, 1.0));
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
        assert!((queue.throughput_per_minute.estimate - 10.0).abs() < 0.5, "{queue:?}");
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
        Visit::take(&scenario.people, &scenario.path, &mut RandomStream::new(1, 3))
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
        let drawn = scenario.path.draw(&mut RandomStream::new(1, 3));
        scenario.people.hold = Some(TimeDistribution::Fixed(drawn.card_needed));
        assert!(visit(&scenario).passed);
    }

    #[test]
    fn readings_that_fail_cost_the_time_for_which_the_card_is_needed() {
        let mut scenario = fixed();
        scenario.people.read_failure = 1.0 - 1e-9;
        let needed = scenario.path.draw(&mut RandomStream::new(1, 3)).card_needed.0;
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
        assert!((queue.attempts_per_person - 1.24).abs() < 0.01, "{}", queue.attempts_per_person);
        assert!((queue.gave_up.estimate - 0.008).abs() < 0.002, "{:?}", queue.gave_up);
    }

    #[test]
    fn figures_are_of_those_who_came_after_the_queue_had_settled() {
        let queue = simulate(&fixed(), "x", &Crowd::new(1_000, 60.0, 1).unwrap());
        assert_eq!((queue.arrivals, queue.warm_up_arrivals), (1_000, 50));
        assert_eq!((queue.arrivals_per_hour, queue.seed), (60.0, 1));
        assert!((queue.throughput_per_minute.estimate - 1.0).abs() < 0.1, "{queue:?}");
        // Everybody's time in the system is a wait and a visit.
        let time = visit(&fixed()).time.nanos();
        let between =
            queue.time_in_system_ns.mean.unwrap().estimate - queue.wait_ns.mean.unwrap().estimate;
        assert!((between / time - 1.0).abs() < 1e-6, "{between} {time}");
        assert!((queue.capacity_per_minute - 6e10 / time).abs() < 1e-6);
    }

    /// A door at which nothing takes time but passing.
    fn bare(pass: TimeDistribution) -> Scenario {
        let text = "title = 'x'\ntarget_ms = 1500\n\
                    [[component]]\nkind = 'card'\nfrom = 'assumed'\ntime_ms = 0\n";
        let mut scenario = Scenario::read(text, "test").unwrap();
        scenario.people.tap = TimeDistribution::Fixed(Millis::ZERO);
        scenario.people.pass = pass;
        scenario
    }

    /// How many of some seeds have the theory within the interval of the simulation: of the mean
    /// wait, the time in system and the utilisation. `square` is E[S²] over E[S]², 6 s long.
    fn held(pass: TimeDistribution, square: f64, name: &str, load: f64) -> [usize; 3] {
        let scenario = bare(pass);
        let wait = load * 6e9 * square / (2.0 * (1.0 - load));
        let mut held = [0; 3];
        for seed in 1..=SEEDS as u64 {
            let queue = simulate(&scenario, "x", &crowd(20_000, load, 6000.0, seed));
            assert_eq!(queue.formula.unwrap().name, name);
            let means =
                [queue.wait_ns.mean, queue.time_in_system_ns.mean, queue.utilisation_interval];
            for (at, truth) in [wait, wait + 6e9, load].into_iter().enumerate() {
                let interval = means[at].unwrap();
                held[at] += usize::from((interval.low..=interval.high).contains(&truth));
            }
        }
        held
    }

    const SEEDS: usize = 20;

    /// Of twenty 95 % intervals nineteen hold the truth; fewer than fifteen would be one chance in
    /// three hundred.
    #[test]
    fn waiting_time_in_system_and_utilisation_hold_what_theory_says() {
        let s6 = Millis(6000.0);
        for load in [0.3, 0.7] {
            for (pass, square, name) in [
                (TimeDistribution::Exponential { mean: s6 }, 2.0, "M/M/1"),
                (TimeDistribution::Fixed(s6), 1.0, "M/D/1"),
                // E[S²] of an even spread from 0 to 2 is 4/3.
                (
                    TimeDistribution::Uniform { low: Millis::ZERO, high: s6 * 2.0 },
                    4.0 / 3.0,
                    "M/G/1",
                ),
            ] {
                let held = held(pass, square, name, load);
                assert!(held.iter().all(|held| *held >= 15), "{name} at {load}: {held:?}");
            }
        }
    }

    /// Near the capacity a queue takes so long to settle that the intervals of a short run do not
    /// hold the theory: such a run says how many people it would take.
    #[test]
    fn too_few_people_for_a_full_queue_are_said_to_be_too_few() {
        let needed = |load| {
            let fixed = TimeDistribution::Fixed(Millis(6000.0));
            simulate(&bare(fixed), "x", &crowd(20_000, load, 6000.0, 1)).arrivals_needed
        };
        assert_eq!([0.7, 0.9, 0.99].map(needed), [Some(570), Some(7_400), Some(850_000)]);
        assert_eq!(needed(1.0), None);
        // What is not flagged holds the theory as often as an interval of 95 % should.
        let turn = TimeDistribution::Exponential { mean: Millis(6000.0) };
        let held = held(turn, 2.0, "M/M/1", 0.9);
        assert!(held.iter().all(|held| *held >= 15), "{held:?}");
    }

    #[test]
    fn doors_that_share_nothing_are_so_many_single_ones() {
        let mut scenario = bare(TimeDistribution::Exponential { mean: Millis(6000.0) });
        scenario.people.doors = 4;
        let queue = simulate(&scenario, "x", &crowd(80_000, 4.0 * 0.6, 6000.0, 1));
        assert_eq!((queue.doors, queue.controller.is_none()), (4, true));
        let formula = queue.formula.clone().unwrap();
        assert!(formula.standard_errors.abs() < 4.0, "{formula:?}");
        assert!((queue.utilisation.0 - 0.6).abs() < 0.02, "{}", queue.utilisation.0);
        assert!((formula.mean_wait_ns / 9e9 - 1.0).abs() < 0.05, "{formula:?}");
    }

    /// Doors whose people take no time but at the controller are one queue before it: what
    /// the doors wait there and people wait at the doors is together that of M/D/1.
    #[test]
    fn doors_wait_for_their_controller() {
        let text = "title = 'x'\ntarget_ms = 1500\n\
                    [[component]]\nkind = 'controller'\nfrom = 'assumed'\ntime_ms = 1000\n";
        let mut scenario = Scenario::read(text, "test").unwrap();
        scenario.people.tap = TimeDistribution::Fixed(Millis::ZERO);
        scenario.people.pass = TimeDistribution::Fixed(Millis::ZERO);
        // So many doors that hardly anybody meets another one there.
        scenario.people.doors = 1000;
        let queue = simulate(&scenario, "x", &crowd(40_000, 0.6, 1000.0, 1));
        let controller = queue.controller.clone().unwrap();
        let wait = controller.wait_ns.mean.unwrap();
        let expected = 0.6 * 1e9 / (2.0 * 0.4);
        assert!((wait.estimate / expected - 1.0).abs() < 0.08, "{wait:?} for {expected}");
        assert!((controller.utilisation.estimate - 0.6).abs() < 0.02, "{controller:?}");
        assert!(queue.formula.is_none(), "no formula knows what doors share");
        let answered = queue.capacity_per_minute;
        assert!((answered - 60.0).abs() < 1e-6, "one answer a second: {answered}");
    }

    #[test]
    fn a_controller_that_is_asked_too_much_overloads_its_doors() {
        let text = "title = 'x'\ntarget_ms = 1500\n\
                    [[component]]\nkind = 'controller'\nfrom = 'assumed'\ntime_ms = 1000\n";
        let mut scenario = Scenario::read(text, "test").unwrap();
        scenario.people.doors = 4;
        let queue = simulate(&scenario, "x", &crowd(20_000, 1.2, 1000.0, 1));
        assert!(queue.overloaded && queue.wait_ns == Latency::default(), "{queue:?}");
        assert_eq!(queue.controller.unwrap().wait_ns, Latency::default());
    }

    #[test]
    fn kinds_of_card_take_their_own_time() {
        let mut scenario = fixed();
        let half = |name: &str, path: &crate::AuthenticationPath| CardKind {
            name: name.into(),
            share: 0.5,
            path: path.clone(),
        };
        let quick = Scenario::shipped("hid-p256").unwrap().path;
        scenario.people.cards = vec![half("old", &scenario.path), half("new", &quick)];
        let queue = simulate(&scenario, "x", &Crowd::new(20_000, 60.0, 1).unwrap());
        let [old, new] = &queue.cards[..] else { panic!("{:?}", queue.cards) };
        assert!((old.share.estimate - 0.5).abs() < 0.02, "{old:?}");
        let faster = old.authentication_ns - new.authentication_ns;
        assert!((faster - 1080e6).abs() < 1.0, "{faster}");
        let mean =
            |of: &tapstone_record::CardKindFigures| of.time_in_system_ns.mean.unwrap().estimate;
        assert!((mean(old) - mean(new) - faster).abs() < 300e6, "{old:?} {new:?}");
    }
}
