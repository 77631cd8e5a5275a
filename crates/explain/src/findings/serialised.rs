//! `serialised`: threads that wait for one another.
//!
//! Seen in two ways: a thread waits for a lock inside a call while another one works in a call; or
//! the calls of several threads never overlap, and each begins as soon as another's ends, because
//! the program lets only one in at a time.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{FirstArgument, first_argument};
use tapstone_text::thousands;

use super::scene::{FindingPlace, Remedy, Scene, Waste, waits};
use super::stretches::Stretches;
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::{Family, Kind, Leaf, Span, Thread};

/// Once or twice, whoever held the lock was just put off the processor.
const FEWEST_WAITS: u64 = 3;
/// A lock that is free takes less; the probe does not list those.
const LOCKED: Nanos = Nanos(10_000);
/// Who waits for another thread's end goes on so soon: two wake-ups (50 µs of timer slack each).
const HAND_OVER: Nanos = Nanos(100_000);
/// As many times, it is no coincidence that one begins when another ends.
const FEWEST_HAND_OVERS: u64 = 10;
/// Calls of different threads overlap by less than that part of their time, ...
const MOST_OVERLAP: f64 = 0.01;
/// ... where ten times as much would be expected if they did not wait for one another.
const LEAST_EXPECTED: f64 = 0.1;

/// Of waits so many times as many have to say that threads share a session, or not, as do not say it.
const LEAST_KNOWN: u64 = 10;

/// Whether threads that wait for one another share a session, as far as that was seen.
#[derive(Clone, Copy, Default)]
struct Sharing {
    /// Waits for calls that all had another session.
    apart: u64,
    /// Waits for a call with the same session.
    together: u64,
    unknown: u64,
}

impl Sharing {
    /// Waits during which nobody was seen in a call (the one that held the lock had just left) are
    /// few.
    const fn is_apart(self) -> bool {
        self.together == 0 && self.apart > LEAST_KNOWN * self.unknown
    }

    const fn is_together(self) -> bool {
        self.apart == 0 && self.together > LEAST_KNOWN * self.unknown
    }

    /// What to change where threads wait inside of calls: the lock is the library's, or its
    /// session's.
    const fn inside(self) -> &'static str {
        match self {
            _ if self.is_apart() => {
                "each thread has a session of its own, and the module still lets in one call at a \
                 time: it serialises itself, so only several processes, or another module, help"
            }
            _ if self.is_together() => {
                "the threads share a session: give each its own. If they then still wait, the module \
                 serialises itself, and only several processes help"
            }
            _ => {
                "if the threads share a session, give each its own; where the lock is the library's, \
                 only several processes help"
            }
        }
    }

    /// The same where they wait before their calls: the lock is the program's.
    const fn outside(self) -> &'static str {
        if self.is_apart() {
            "each thread has a session of its own, but the program lets in one at a time: hold no \
             lock of the program during a call"
        } else {
            "give each thread a session (or a connection) of its own, and hold no lock during a call"
        }
    }

    fn note(&mut self, own: Session, others: impl Iterator<Item = Session>) {
        let mut others = others.peekable();
        let is_known = own != Session::Unknown && others.peek().is_some();
        let mut is_apart = true;
        for other in others {
            if own == other && matches!(other, Session::Of(_)) {
                self.together += 1;
                return;
            }
            is_apart &= other != Session::Unknown;
        }
        if is_known && is_apart {
            self.apart += 1;
        } else {
            self.unknown += 1;
        }
    }
}

/// What a call works in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Session {
    Of(u64),
    /// A call of PKCS#11 that is given none, as C_OpenSession.
    None,
    /// Not a call of PKCS#11.
    Unknown,
}

impl Session {
    fn of_call(scene: &Scene<'_>, span: &Span) -> Self {
        let call = scene.timeline.call(span.call);
        if first_argument(call.function) == FirstArgument::Session {
            return Self::Of(span.handle);
        }
        if call.family == Family::Pkcs11 { Self::None } else { Self::Unknown }
    }
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let mut findings = locks(scene);
    findings.extend(queues(&scene.with_gaps()));
    findings
}

/// Threads of each program that have made calls, where there are several.
fn programs<'a>(scene: &Scene<'a>) -> Vec<Vec<(usize, &'a Thread)>> {
    let mut programs: BTreeMap<u32, Vec<(usize, &Thread)>> = BTreeMap::new();
    for (number, thread) in scene.threads().filter(|(_, thread)| !thread.spans.is_empty()) {
        programs.entry(thread.process).or_default().push((number, thread));
    }
    programs.into_values().filter(|threads| threads.len() > 1).collect()
}

fn outermost(thread: &Thread) -> impl Iterator<Item = &Span> {
    thread.spans.iter().filter(|span| span.parent.is_none())
}

/// Waits for a lock inside a call that the program did not ask to wait.
fn lock_waits<'a>(
    scene: &Scene<'a>,
    thread: &'a Thread,
) -> impl Iterator<Item = (&'a Leaf, &'a Span)> {
    thread.leaves.iter().filter_map(|leaf| {
        let (around, span) = scene.around(thread, leaf)?;
        let is_wait = scene.kind(leaf) == Some(Kind::Lock)
            && leaf.end - leaf.start >= LOCKED
            && !scene.waits_on_request(thread, around);
        is_wait.then_some((leaf, span))
    })
}

/// Waits of one function for other threads.
#[derive(Default)]
struct Waited<'a> {
    count: u64,
    removed: Vec<Removed>,
    /// The functions of libc by which it waited.
    by: BTreeSet<&'a str>,
    threads: BTreeSet<usize>,
    sharing: Sharing,
}

fn locks(scene: &Scene<'_>) -> Vec<Finding> {
    let mut places: BTreeMap<FindingPlace<'_>, Waited<'_>> = BTreeMap::new();
    for threads in programs(scene) {
        // A thread that waits does not work, so the others are all that are left.
        let working = threads.iter().map(|(_, thread)| {
            let calls: Stretches = outermost(thread).map(|span| (span.start, span.end)).collect();
            let locks = thread.leaves.iter().filter(|leaf| scene.kind(leaf) == Some(Kind::Lock));
            calls.without(&locks.map(|leaf| (leaf.start, leaf.end)).collect())
        });
        let working = Stretches::any_of(&working.collect::<Vec<_>>());
        for &(number, thread) in &threads {
            for (leaf, span) in lock_waits(scene, thread) {
                let waited = working.within(leaf.start, leaf.end);
                if !scene.counts(number, leaf.start) || waited < LOCKED {
                    continue;
                }
                let of = places.entry(scene.place(scene.timeline.call(span.call))).or_default();
                of.count += 1;
                let removed = working.between(leaf.start, leaf.end);
                of.removed.extend(removed.map(|(start, end)| Removed {
                    thread: number,
                    start,
                    end,
                }));
                of.by.insert(scene.timeline.call(leaf.call).function);
                of.threads.insert(number);
                let others = threads.iter().filter(|(other, _)| *other != number);
                let at_work = others.flat_map(|(_, other)| during(other, leaf.start, leaf.end));
                of.sharing.note(
                    Session::of_call(scene, span),
                    at_work.map(|span| Session::of_call(scene, span)),
                );
            }
        }
    }
    let report = |(place, waited): (FindingPlace<'_>, Waited<'_>)| {
        let by: Vec<_> = waited.by.iter().copied().collect();
        let seen = format!(
            "in {}, {} waited {} ({}) while another thread worked in a call: {} in all",
            words::function_of(place.function, place.module),
            words::counted(waited.threads.len() as u64, "thread"),
            words::times(waited.count),
            by.join(", "),
            time(&waited.removed),
        );
        let change = waited.sharing.inside();
        report(scene, place, waited, seen, change)
    };
    places.retain(|_, waited| waited.count >= FEWEST_WAITS);
    places.into_iter().filter_map(report).collect()
}

/// Calls of a thread that were under way in a stretch of time.
fn during(thread: &Thread, start: Nanos, end: Nanos) -> impl Iterator<Item = &Span> {
    let until = thread.spans.partition_point(|span| span.start < end);
    let before = thread.spans[..until].iter().rev().filter(|span| span.parent.is_none());
    before.take_while(move |span| span.end > start)
}

fn time(removed: &[Removed]) -> Nanos {
    removed.iter().map(|wait| wait.end - wait.start).sum()
}

fn report(
    scene: &Scene<'_>,
    place: FindingPlace<'_>,
    waited: Waited<'_>,
    seen: String,
    change: &str,
) -> Option<Finding> {
    scene.report(Waste {
        kind: FindingKind::Serialised,
        place,
        layer: Owner::Lock,
        count: waited.count,
        removed: waited.removed,
        evidence: vec![seen],
        remedy: Remedy::Change(change.to_owned()),
    })
}

/// A call of a thread, with when it was last out of one.
struct Turn<'a> {
    start: Nanos,
    end: Nanos,
    thread: usize,
    function: &'a str,
    session: Session,
    /// The end of the thread's last call, or its beginning.
    free: Nanos,
}

/// Drivers are left out: a reader does one thing at a time, and its service sees to that.
fn queues(scene: &Scene<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for threads in programs(scene) {
        let mut modules: BTreeMap<&str, Vec<Turn<'_>>> = BTreeMap::new();
        for (number, thread) in threads {
            let mut free: BTreeMap<&str, Nanos> = BTreeMap::new();
            for span in outermost(thread) {
                let call = scene.timeline.call(span.call);
                if call.family == Family::Driver {
                    continue;
                }
                let start = span.start;
                let end = span.end;
                let function = call.function;
                let free = free.insert(&call.module, end).unwrap_or(thread.start);
                let session = Session::of_call(scene, span);
                let turn = Turn { start, end, thread: number, function, session, free };
                modules.entry(&call.module).or_default().push(turn);
            }
        }
        for (module, mut turns) in modules {
            turns.sort_by_key(|turn| (turn.start, turn.thread));
            findings.extend(queue(scene, module, &turns));
        }
    }
    findings
}

/// Threads that take turns in one library, if they queue for it.
fn queue(scene: &Scene<'_>, module: &str, turns: &[Turn<'_>]) -> Option<Finding> {
    let (expected, overlap) = overlaps(turns)?;
    if expected < LEAST_EXPECTED || overlap > MOST_OVERLAP {
        return None;
    }
    let busy: Stretches = turns.iter().map(|turn| (turn.start, turn.end)).collect();
    let mut idle: BTreeMap<usize, Stretches> = BTreeMap::new();
    let mut waited = Waited::default();
    let mut functions: BTreeMap<&str, Nanos> = BTreeMap::new();
    for pair in turns.windows(2) {
        let before = &pair[0];
        let turn = &pair[1];
        let takes_over = before.thread != turn.thread
            && turn.start <= before.end + HAND_OVER
            && turn.free < before.end;
        if !takes_over {
            continue;
        }
        let thread = turn.thread;
        let idle = idle
            .entry(thread)
            .or_insert_with(|| waits(scene.timeline, &scene.timeline.threads[thread]));
        let others: Stretches = busy.between(turn.free, turn.start).collect();
        // What it waited for otherwise, it did not wait for them.
        let queued = others.without(&idle.between(turn.free, turn.start).collect());
        if queued.total() < LOCKED {
            continue;
        }
        waited.count += 1;
        waited.threads.insert(thread);
        waited.sharing.note(turn.session, [before.session].into_iter());
        *functions.entry(turn.function).or_default() += queued.total();
        waited.removed.extend(queued.iter().map(|(start, end)| Removed { thread, start, end }));
    }
    let (function, _) = functions.into_iter().max_by_key(|(_, time)| *time)?;
    if waited.count < FEWEST_HAND_OVERS {
        return None;
    }
    let place = FindingPlace { function, module };
    let threads = turns.iter().map(|turn| turn.thread).collect::<BTreeSet<_>>().len() as u64;
    let seen = format!(
        "calls of {module} by {} never overlap, and {} of {} begin within {HAND_OVER} of the end \
         of another thread's: they waited for up to {}",
        words::counted(threads, "thread"),
        thousands(waited.count),
        thousands(turns.len() as u64),
        time(&waited.removed),
    );
    let change = waited.sharing.outside();
    report(scene, place, waited, seen, change)
}

/// Which part of the time in calls would overlap with another thread's if they came independently,
/// and which part does. `None` for a single thread.
fn overlaps(turns: &[Turn<'_>]) -> Option<(f64, f64)> {
    let mut threads: BTreeMap<usize, f64> = BTreeMap::new();
    let mut until = turns.first()?.start;
    let mut overlap = 0.0;
    for turn in turns {
        *threads.entry(turn.thread).or_default() += (turn.end - turn.start).0 as f64;
        overlap += (turn.end.min(until) - turn.start).0 as f64;
        until = until.max(turn.end);
    }
    let window = (until - turns.first()?.start).0 as f64;
    let all: f64 = threads.values().sum();
    if threads.len() < 2 || all <= 0.0 || window <= 0.0 {
        return None;
    }
    // Of a thread's time, the part in which another one is in a call too.
    let beside = |own: &f64| own * ((all - own) / window).min(1.0);
    let expected: f64 = threads.values().map(beside).sum();
    Some((expected / all, overlap / all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{figures, only, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    #[test]
    fn a_lock_that_another_call_holds_is_found() {
        let timeline = Story::new()
            .thread(|told| {
                for _ in 0..3 {
                    told.enter("C_Sign").advance(millis(8)).exit().advance(millis(2));
                }
            })
            .thread(|told| {
                for _ in 0..3 {
                    told.advance(millis(1)).enter("C_Sign").leaf("pthread_mutex_lock", millis(7));
                    told.advance(millis(2)).exit();
                }
            })
            .timeline();
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (3.0, 3, millis(21), 700));
        assert_eq!((finding.layer.as_str(), &finding.trial), ("lock", &None));
        let says = "in C_Sign of module.so, 1 thread waited 3 times (pthread_mutex_lock) while \
                    another thread worked in a call: 21.0 ms in all";
        assert_eq!(finding.evidence, [says]);
        assert!(finding.advice.unwrap().starts_with("the threads share a session"));
        let removed = Removed { thread: 1, start: millis(1), end: millis(8) };
        assert_eq!(finding.removed[0], removed);
    }

    #[test]
    fn a_module_that_serialises_itself_is_told_from_a_session_that_is_shared() {
        let advice = |own: u64| {
            let timeline = Story::new()
                .thread(|told| {
                    for _ in 0..3 {
                        told.enter("C_Sign").given(1, 0).advance(millis(8)).exit();
                        told.advance(millis(2));
                    }
                })
                .thread(|told| {
                    for _ in 0..3 {
                        told.advance(millis(1)).enter("C_Sign").given(own, 0);
                        told.leaf("pthread_mutex_lock", millis(7)).advance(millis(2)).exit();
                    }
                })
                .timeline();
            only(whole(&timeline, find)).advice.unwrap()
        };
        assert!(advice(2).starts_with("each thread has a session of its own, and the module"));
        assert!(advice(1).starts_with("the threads share a session: give each its own. If"));
        // Turns before the calls: the lock is the program's.
        let own = turns(4, 10, micros(20));
        let advice = only(whole(&own, find)).advice.unwrap();
        assert!(advice.contains("hold no lock of the program during a call"), "{advice}");
    }

    #[test]
    fn those_that_wait_for_another_wait_for_it_alone() {
        let waiter = |told: &mut ThreadStory<'_>| {
            told.enter("C_Sign").leaf("pthread_mutex_lock", millis(9)).exit();
        };
        let timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").advance(millis(5)).exit().advance(millis(5));
            })
            .thread(waiter)
            .thread(waiter)
            .thread(waiter)
            .timeline();
        let finding = only(whole(&timeline, find));
        // Nobody works after 5 ms.
        assert_eq!((finding.count, finding.time), (3, millis(15)));
    }

    /// Threads that take turns: in a call for a millisecond, out of it for as long as all others
    /// need and a little longer.
    fn turns(threads: u64, rounds: u64, gap: Nanos) -> Timeline {
        turns_at("C_Sign", threads, rounds, gap, None)
    }

    /// The same in another function, and what a thread does out of it.
    fn turns_at(
        function: &str,
        threads: u64,
        rounds: u64,
        gap: Nanos,
        otherwise: Option<&str>,
    ) -> Timeline {
        let mut story = Story::new();
        for thread in 0..threads {
            story.thread(|told| {
                for round in 0..rounds {
                    let start = Nanos((millis(1) + gap).0 * (round * threads + thread));
                    if let Some(wait) = otherwise {
                        let time = start - told.now();
                        told.leaf(wait, time);
                    }
                    told.until(start).call(function, thread, millis(1));
                }
            });
        }
        story.timeline()
    }

    #[test]
    fn threads_that_queue_for_one_session_are_found() {
        let timeline = turns(4, 10, micros(20));
        let finding = only(whole(&timeline, find));
        // All but the first of 40; each waits for what the three others do.
        assert_eq!(finding.count, 39);
        assert_eq!(finding.time, millis(1 + 2 + 3 + 36 * 3));
        let says = "calls of module.so by 4 threads never overlap, and 39 of 40 begin within 100 \
                    µs of the end of another thread's: they waited for up to 114 ms";
        assert_eq!(finding.evidence, [says]);
    }

    #[test]
    fn these_are_none() {
        let free = Story::new()
            .thread(|told| {
                told.call("C_Sign", 1, millis(9));
            })
            .thread(|told| {
                for _ in 0..100 {
                    told.enter("C_Sign").leaf("pthread_mutex_lock", micros(9));
                    told.advance(micros(81)).exit();
                }
            })
            .timeline();
        let twice = Story::new()
            .thread(|told| {
                told.call("C_Sign", 1, millis(20));
            })
            .thread(|told| {
                for _ in 0..2 {
                    told.enter("C_Sign").leaf("pthread_mutex_lock", millis(9)).exit();
                }
            })
            .timeline();
        let nobody_works = Story::new()
            .thread(|told| {
                told.call("C_Sign", 1, millis(1)).advance(millis(9));
            })
            .thread(|told| {
                told.advance(millis(2)).enter("C_Finalize");
                for _ in 0..5 {
                    told.leaf("pthread_join", millis(1));
                }
                told.exit();
            })
            .timeline();
        let asked_for = Story::new()
            .thread(|told| {
                told.call("C_Sign", 1, millis(9));
            })
            .thread(|told| {
                for _ in 0..3 {
                    told.enter("C_WaitForSlotEvent").leaf("pthread_cond_wait", millis(3)).exit();
                }
            })
            .timeline();
        let another_program = Story::new()
            .thread(|told| {
                told.call("C_Sign", 1, millis(9));
            })
            .process("other")
            .thread(|told| {
                for _ in 0..3 {
                    told.enter("C_Sign").leaf("pthread_mutex_lock", millis(3)).exit();
                }
            })
            .timeline();
        let at_the_same_time = Story::new()
            .thread(|told| {
                (0..40).for_each(|_| {
                    told.call("C_Sign", 1, millis(1));
                })
            })
            .thread(|told| {
                (0..40).for_each(|_| {
                    told.call("C_Sign", 2, millis(1));
                })
            })
            .timeline();
        let alone = Story::new()
            .thread(|told| {
                (0..40).for_each(|_| {
                    told.call("C_Sign", 1, millis(1));
                })
            })
            .timeline();
        let seldom = turns(2, 40, millis(20));
        let few = turns(2, 4, micros(20));
        let asleep = turns_at("C_Sign", 4, 10, micros(20), Some("usleep"));
        let of_a_reader = turns_at("IFDHICCPresence", 4, 10, micros(20), None);
        for timeline in [
            free,
            twice,
            nobody_works,
            asked_for,
            another_program,
            at_the_same_time,
            alone,
            seldom,
            few,
            asleep,
            of_a_reader,
        ] {
            assert_eq!(whole(&timeline, find), []);
        }
    }
}
