//! What all detectors have in common, and how their tests ask them.

use super::scene::Scene;
use super::*;
use crate::operation::OperationRule;

/// What one detector finds in a whole run.
pub(super) fn whole(timeline: &Timeline, detector: fn(&Scene<'_>) -> Vec<Finding>) -> Vec<Finding> {
    detector(&Scene::new(timeline, &Operations::whole(timeline)))
}

/// What it finds in operations.
pub(super) fn each(
    operation: &str,
    timeline: &Timeline,
    detector: fn(&Scene<'_>) -> Vec<Finding>,
) -> Vec<Finding> {
    let operation: OperationRule = operation.parse().unwrap();
    detector(&Scene::new(timeline, &Operations::cut(&operation, timeline, &[])))
}

/// The only finding of a trace that must have one.
pub(super) fn only(mut findings: Vec<Finding>) -> Finding {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

/// A finding's figures: per operation, count, time and share in per mille.
pub(super) fn figures(finding: &Finding) -> (f64, u64, Nanos, u64) {
    let share = (finding.share * 1e3).round() as u64;
    (finding.per_operation, finding.count, finding.time, share)
}

pub(super) fn trial(finding: &Finding) -> Option<String> {
    finding.trial.as_ref().map(Fix::to_string)
}

mod together {
    use proptest::prelude::*;

    use super::*;
    use crate::findings::stretches::Stretches;
    use crate::synthetic::{Story, ThreadStory, micros, millis};

    const READER: &str = "Virtual PCD 00 00";
    const CARD: u64 = 20;

    /// A program that wastes nothing: one session, one connection, every object read once, each
    /// signature a command to the card that takes its time.
    fn thrifty() -> Timeline {
        Story::new()
            .thread(|told| {
                told.leaf("open", micros(30)).about("/etc/module.conf");
                told.makes("SCardEstablishContext", 0, 10, micros(50));
                told.connect(10, READER, CARD, millis(1));
                told.makes("C_OpenSession", 0, 1, micros(20));
                told.enter("C_Login").given(1, 1);
                told.transmit(CARD, &[0, 0x20, 0, 0x80, 8], &[0x90, 0], millis(20)).exit();
                for object in 0..9 {
                    let command = [0, 0xCB, 0x3F, 0xFF, 3, 0x5C, 1, object, 0];
                    told.transmit(CARD, &command, &[object, 0x90, 0], millis(9));
                }
                for length in [701, 698, 702, 700, 703, 699, 701, 700, 702, 700] {
                    told.call("C_SignInit", 1, micros(20)).enter("C_Sign").given(1, 0);
                    told.counted("poll", 2, micros(1), micros(9));
                    told.leaf("pthread_mutex_lock", micros(2));
                    let command = [0, 0x87, 7, 0x9C, 8];
                    told.transmit(CARD, &command, &[0x90, 0], micros(length * 100)).exit();
                    told.advance(micros(400));
                }
                told.call("C_CloseSession", 1, micros(20));
            })
            .timeline()
    }

    #[test]
    fn where_nothing_is_wasted_nothing_is_found() {
        let timeline = thrifty();
        for operation in ["whole", "C_Sign"] {
            let operation = operation.parse().unwrap();
            let operations = Operations::cut(&operation, &timeline, &[]);
            assert_eq!(find(&timeline, &operations, []), [], "{operation}");
        }
        assert_eq!(find(&Timeline::default(), &Operations::whole(&Timeline::default()), []), []);
    }

    #[test]
    fn without_operations_there_is_no_share_of_one() {
        let timeline = Story::new()
            .thread(|told| {
                told.enter("SCardEndTransaction").leaf("usleep", millis(5)).exit();
            })
            .timeline();
        let operations = Operations::cut(&OperationRule::Call("C_Sign"), &timeline, &[]);
        assert_eq!(find(&timeline, &operations, []), []);
    }

    #[test]
    fn the_longest_comes_first_and_goes_into_a_record() {
        let timeline = Story::new()
            .thread(|told| {
                for _ in 0..3 {
                    told.enter("SCardEndTransaction").leaf("usleep", millis(2)).exit();
                }
                for _ in 0..4 {
                    told.leaf("getaddrinfo", millis(5)).about("hsm.example");
                }
                told.advance(millis(24));
            })
            .timeline();
        let operations = Operations::whole(&timeline);
        let findings = find(&timeline, &operations, []);
        let kinds: Vec<_> = findings.iter().map(|finding| &finding.kind).collect();
        assert_eq!(kinds, [&FindingKind::RepeatedLookup, &FindingKind::Sleep]);
        let saving = prediction::saving(&timeline, &operations, &prediction::union([&findings[1]]));
        let record = findings[1].record(&timeline, Some(saving));
        assert_eq!(record.place, "SCardEndTransaction");
        assert_eq!((record.count, record.time_ns, record.share.0), (3, millis(6), 0.12));
        assert_eq!(record.trial.as_deref(), Some("no-sleep:SCardEndTransaction"));
        assert_eq!(record.saving, Some(record::Range { low: 6e6, high: 6e6 }));
        let record = findings[0].record(&timeline, None);
        assert_eq!((record.trial, record.saving), (None, None));
        // Where there is no fix to try, it says what to change.
        assert!(record.advice.is_some_and(|advice| advice.starts_with("ask once")));
    }

    /// Anything that threads may do, wasteful or not.
    fn act(told: &mut ThreadStory<'_>, (what, object, time): (u8, u8, u64)) {
        let time = micros(time);
        let object = u64::from(object);
        let command = [0, 0xCB, 0x3F, 0xFF, 3, 0x5C, 1, 0x7E, [8, 20, 0][object as usize % 3]];
        match what {
            0 => told.advance(time),
            1 => told.enter("SCardEndTransaction").leaf("usleep", time).exit(),
            2 => {
                told.enter("SCardGetStatusChange").counted("gettimeofday", 999, Nanos(50), time);
                told.counted("poll", 999, Nanos(50), time).advance(time).exit()
            }
            3 => told.leaf("getpwuid", time).with(|leaf| leaf.a = object % 2),
            4 => told.transmit(CARD, &command, &[1, 0x90, 0], time),
            5 => {
                told.enter("IFDHTransmitToICC");
                for function in ["send", "send", "recv"] {
                    let time = if function == "recv" { millis(43) } else { micros(4) };
                    told.leaf(function, time).with(|leaf| (leaf.a, leaf.b) = (7, 9));
                }
                told.exit()
            }
            6 => told.enter("C_Sign").leaf("pthread_mutex_lock", time).advance(time).exit(),
            7 => told.makes("C_OpenSession", 1, object, time),
            8 => told.call("C_SignInit", object % 2, time).call("C_Sign", object % 2, millis(1)),
            _ => told.enter("C_Login").advance(time).injects(time).exit(),
        };
    }

    fn stories() -> impl Strategy<Value = Timeline> {
        let acts = prop::collection::vec((0u8..10, any::<u8>(), 1u64..30_000), 1..60);
        prop::collection::vec(acts, 1..4).prop_map(|threads| {
            let mut story = Story::new();
            for acts in threads {
                story.thread(|told| acts.into_iter().for_each(|what| act(told, what)));
            }
            story.timeline()
        })
    }

    fn total(removed: &[Removed]) -> Nanos {
        removed.iter().map(|stretch| stretch.end - stretch.start).sum()
    }

    proptest! {
        #[test]
        fn figures_hold_together(timeline in stories(), by_call in any::<bool>()) {
            let operation = if by_call { OperationRule::Call("C_Sign") } else { OperationRule::Whole };
            let operations = Operations::cut(&operation, &timeline, &[]);
            let findings = find(&timeline, &operations, []);
            for finding in &findings {
                prop_assert_eq!(finding.time, total(&finding.removed));
                prop_assert!((0.0..=1.0).contains(&finding.share), "{:?}", finding);
                prop_assert!(finding.count > 0 && finding.per_operation > 0.0);
                prop_assert_eq!(finding.trial.is_some(), finding.advice.is_none());
                prop_assert!(!finding.evidence.is_empty());
                for (number, thread) in timeline.threads.iter().enumerate() {
                    let own = finding.removed.iter().filter(|stretch| stretch.thread == number);
                    let own: Vec<_> = own.copied().collect();
                    // In order and without overlap, inside the thread's life.
                    let merged: Stretches =
                        own.iter().map(|stretch| (stretch.start, stretch.end)).collect();
                    prop_assert_eq!(merged.total(), total(&own));
                    prop_assert!(own.is_sorted() && total(&own) <= thread.wall());
                    let inside = |of: &Removed| of.start >= thread.start && of.end <= thread.end;
                    prop_assert!(own.iter().all(inside));
                }
            }
            let union = prediction::union(&findings);
            let sum: Nanos = findings.iter().map(|finding| finding.time).sum();
            prop_assert!(total(&union.surely) <= sum);
            let saving = prediction::saving(&timeline, &operations, &union);
            prop_assert!(saving.low <= saving.high);
            prop_assert!(saving.high <= timeline.wall().0 as f64);
            let alone = findings.iter().map(|finding| {
                prediction::saving(&timeline, &operations, &prediction::union([finding])).high
            });
            prop_assert!(saving.high <= alone.sum::<f64>() + 1.0);
        }
    }

    #[test]
    fn the_stories_waste_in_every_way() {
        use proptest::strategy::ValueTree;
        use proptest::test_runner::TestRunner;
        let mut runner = TestRunner::deterministic();
        let mut kinds = std::collections::BTreeSet::new();
        for _ in 0..64 {
            let timeline = stories().new_tree(&mut runner).unwrap().current();
            let findings = find(&timeline, &Operations::whole(&timeline), []);
            kinds.extend(findings.iter().map(|finding| format!("{:?}", finding.kind)));
        }
        // All but poll-quantum, which random times do not have.
        assert_eq!(kinds.len(), 7, "{kinds:?}");
    }
}
