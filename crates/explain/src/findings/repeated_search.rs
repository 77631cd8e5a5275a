//! `repeated-search`: the same search for objects of a token, with the same answer, again and again.
//!
//! A handle stays valid as long as its object and its session are there (PKCS#11, 5.7), so a search
//! is needed once. The unit that goes is the whole of it, from C_FindObjectsInit to
//! C_FindObjectsFinal. What the program does with the answer, up to its next call, may go with it,
//! and so may the time for which other threads waited for a lock meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_measure::units::Nanos;

use super::repetitions::{FEWEST, Repetition, Repetitions};
use super::scene::{FindingPlace, Remedy, Scene};
use super::stretches::Stretches;
use super::token_calls::{changes_objects, outermost_calls, spans_from, stretch_of};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::Span;
use tapstone_events::Fix;

/// Threads that wait during searches for at least so much of their time wait for these.
const LEAST_OVERLAP: f64 = 0.5;

const CHANGE: &str = "search once, and keep the handle for as long as its session is open";

/// A session by its process, its module and its number there.
type SessionKey<'a> = (u32, &'a str, u64);

/// A search that is going on.
struct OpenSearch<'a> {
    thread: usize,
    start: Nanos,
    question: u64,
    answer: u64,
    objects: u64,
    /// Its C_FindObjectsInit, C_FindObjects and C_FindObjectsFinal so far.
    calls: Vec<Removed>,
    by: &'a str,
    layer: Owner,
}

/// What is known of a question.
#[derive(Clone, Copy)]
struct KnownAnswer {
    answer: u64,
    /// A session was closed since, or somebody logged in or out: a cache would be empty.
    is_stale: bool,
}

/// Searches that were made again through one function.
struct Repeats<'a> {
    /// All searches for what was searched for again.
    searches: u64,
    objects: BTreeSet<u64>,
    repetitions: Repetitions<'a>,
}

/// A question by its process, its module, its slot and the digest of its template.
type Question<'a> = (u32, &'a str, u64, u64);

/// All that is known of the searches of a run.
struct Searches<'s, 'a> {
    scene: &'s Scene<'a>,
    slots: HashMap<SessionKey<'a>, u64>,
    open: HashMap<SessionKey<'a>, OpenSearch<'a>>,
    known: HashMap<Question<'a>, KnownAnswer>,
    counts: HashMap<Question<'a>, u64>,
    places: BTreeMap<FindingPlace<'a>, Repeats<'a>>,
}

/// Adds repeated searches to what others have found, and takes away threads that wait for one
/// another in the same module where they do so because of the searches.
pub(super) fn with_searches(scene: &Scene<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    for (mut search, while_searching) in find(scene) {
        findings.retain(|other| {
            let is_due = other.kind == FindingKind::Serialised
                && other.module == search.module
                && overlap(other, &while_searching) >= LEAST_OVERLAP;
            if is_due {
                let seen = other.evidence.join("; ");
                search.evidence.push(format!("threads wait for one another meanwhile: {seen}"));
                search.perhaps.extend(&other.removed);
            }
            !is_due
        });
        findings.push(search);
    }
    findings
}

/// How much of its time lies in searches of any thread.
fn overlap(finding: &Finding, searching: &Stretches) -> f64 {
    let within: Nanos = finding.removed.iter().map(|it| searching.within(it.start, it.end)).sum();
    let all: Nanos = finding.removed.iter().map(|it| it.end - it.start).sum();
    within.0 as f64 / all.0.max(1) as f64
}

/// Each finding with when any thread searched in vain.
fn find(scene: &Scene<'_>) -> Vec<(Finding, Stretches)> {
    let mut searches = Searches {
        scene,
        slots: HashMap::new(),
        open: HashMap::new(),
        known: HashMap::new(),
        counts: HashMap::new(),
        places: BTreeMap::new(),
    };
    for (thread, span) in outermost_calls(scene) {
        searches.see(thread, span);
    }
    searches.reports()
}

impl<'a> Searches<'_, 'a> {
    fn see(&mut self, thread: usize, span: &'a Span) {
        let timeline = self.scene.timeline;
        let call = timeline.call(span.call);
        let process = timeline.threads[thread].process;
        let module = call.module.as_str();
        let session = (process, module, span.handle);
        match call.function {
            "C_OpenSession" if span.result == 0 => {
                self.slots.insert((process, module, span.made()), span.handle);
            }
            "C_FindObjectsInit" if span.result == 0 && span.detail != 0 => {
                let open = OpenSearch {
                    thread,
                    start: span.start,
                    question: span.detail,
                    answer: 0,
                    objects: 0,
                    calls: vec![stretch_of(thread, span)],
                    by: &call.caller,
                    layer: self.scene.layer(Some(span)),
                };
                self.open.insert(session, open);
            }
            "C_FindObjects" => match self.open.get_mut(&session) {
                Some(open) if span.result == 0 && open.thread == thread => {
                    open.answer = mixed(open.answer, u64::from(span.answer()) << 32 | span.made());
                    open.objects += span.made();
                    open.calls.push(stretch_of(thread, span));
                }
                _ => drop(self.open.remove(&session)),
            },
            "C_FindObjectsFinal" => {
                if let Some(mut open) = self.open.remove(&session).filter(|_| span.result == 0) {
                    open.calls.push(stretch_of(thread, span));
                    self.finished(session, open, call);
                }
            }
            "C_CloseSession" | "C_CloseAllSessions" | "C_Login" | "C_LoginUser" | "C_Logout" => {
                let of_module = self
                    .known
                    .iter_mut()
                    .filter(|((owner, of, ..), _)| (*owner, *of) == (process, module));
                of_module.for_each(|(_, known)| known.is_stale = true);
            }
            function if changes_objects(function) => {
                self.known.retain(|(owner, of, ..), _| (*owner, *of) != (process, module));
            }
            _ => {}
        }
    }

    fn finished(
        &mut self,
        session: SessionKey<'a>,
        search: OpenSearch<'a>,
        call: &'a tapstone_events::CalledFunction,
    ) {
        let (process, module, _) = session;
        let slot = self.slots.get(&session).copied().unwrap_or_default();
        let question = (process, module, slot, search.question);
        let count = self.counts.entry(question).or_default();
        *count += 1;
        let now = KnownAnswer { answer: search.answer, is_stale: false };
        let before = self.known.insert(question, now);
        let Some(before) = before.filter(|before| before.answer == search.answer) else { return };
        if !self.scene.counts(search.thread, search.start) {
            return;
        }
        let place = FindingPlace { function: "C_FindObjectsInit", module: &call.module };
        let repeats = self.places.entry(place).or_insert_with(|| Repeats {
            searches: 0,
            objects: BTreeSet::new(),
            repetitions: Repetitions::new(search.layer.clone()),
        });
        // With the first of its kind.
        repeats.searches += if *count == 2 { 2 } else { 1 };
        repeats.objects.insert(search.objects);
        let repetition = Repetition {
            units: unit(self.scene, &search),
            thread: search.thread,
            end: search.calls.last().map_or(search.start, |last| last.end),
            is_stale: before.is_stale,
            caller: search.by,
        };
        repeats.repetitions.add(self.scene, repetition);
    }

    fn reports(self) -> Vec<(Finding, Stretches)> {
        let scene = self.scene;
        let often = self.places.into_iter().filter(|(_, repeats)| repeats.searches >= FEWEST);
        often.filter_map(|(place, repeats)| report(scene, place, repeats)).collect()
    }
}

/// A search from its first call to its last; where the program calls something else in between,
/// only its own calls.
fn unit(scene: &Scene<'_>, search: &OpenSearch<'_>) -> Vec<Removed> {
    let thread = &scene.timeline.threads[search.thread];
    let end = search.calls.last().map_or(search.start, |last| last.end);
    let inside = spans_from(thread, search.start).take_while(|span| span.start < end);
    if inside.count() == search.calls.len() {
        vec![Removed { thread: search.thread, start: search.start, end }]
    } else {
        search.calls.clone()
    }
}

fn report(
    scene: &Scene<'_>,
    place: FindingPlace<'_>,
    repeats: Repeats<'_>,
) -> Option<(Finding, Stretches)> {
    let repetitions = repeats.repetitions;
    let time = repetitions.time();
    let objects = match (repeats.objects.first(), repeats.objects.last()) {
        (Some(few), Some(many)) if few != many => format!("{few} to {many} objects"),
        (Some(count), _) => words::counted(*count, "object"),
        _ => String::new(),
    };
    let seen = format!(
        "{} was searched {} for what had been searched for before, with the same answer each time \
         ({objects}): {} took {time}, from C_FindObjectsInit to C_FindObjectsFinal",
        place.module,
        words::times(repeats.searches),
        words::counted(repetitions.count(), "repetition"),
    );
    let remedy = if repetitions.are_stale() {
        Remedy::Change(format!("{CHANGE}, and the session and its login for the next operation"))
    } else {
        Remedy::Try(Fix::CacheFind)
    };
    let searching = repetitions.stretches();
    let finding =
        repetitions.report(scene, FindingKind::RepeatedSearch, place, vec![seen], remedy)?;
    Some((finding, searching))
}

/// A step of FNV-1a, by words.
fn mixed(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::trial;
    use crate::findings::{find as all_of, prediction};
    use crate::operation::Operations;
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    fn found(timeline: &Timeline) -> Vec<Finding> {
        all_of(timeline, &Operations::whole(timeline), [])
    }

    /// A search with that template and that object as its answer: 1 ms.
    fn search(told: &mut ThreadStory<'_>, session: u64, template: u64, object: u32) {
        told.enter("C_FindObjectsInit").given(session, template).advance(micros(700)).exit();
        told.enter("C_FindObjects").given(session, 0).advance(micros(200));
        told.finds(1, object);
        told.exit();
        told.call("C_FindObjectsFinal", session, micros(100));
    }

    fn sign(told: &mut ThreadStory<'_>, session: u64) {
        told.call("C_SignInit", session, micros(100)).call("C_Sign", session, micros(900));
    }

    #[test]
    fn a_search_before_every_signature_is_found_as_a_whole() {
        let timeline = Story::new()
            .thread(|told| {
                told.makes("C_OpenSession", 7, 1, micros(10));
                for _ in 0..10 {
                    search(told, 1, 0xABC, 5);
                    // What is done with the handle.
                    told.advance(micros(500));
                    sign(told, 1);
                }
            })
            .timeline();
        let [finding] = &found(&timeline)[..] else { panic!("{:#?}", found(&timeline)) };
        assert_eq!(finding.kind, FindingKind::RepeatedSearch);
        assert_eq!((finding.count, finding.time), (9, millis(9)));
        assert_eq!(trial(finding).as_deref(), Some("cache-find"));
        assert!(finding.evidence[0].contains("searched 10 times"), "{finding:?}");
        let operations = Operations::whole(&timeline);
        let removable = prediction::union([finding]);
        let saving = prediction::saving(&timeline, &operations, &removable);
        assert_eq!((saving.low, saving.high), (9e6, 13.5e6));
    }

    #[test]
    fn another_answer_or_a_new_object_is_a_reason_to_search() {
        let of = |tell: fn(&mut ThreadStory<'_>, u32)| {
            let mut story = Story::new();
            let timeline = story
                .thread(|told| {
                    for number in 0..10 {
                        tell(told, number);
                        sign(told, 1);
                    }
                })
                .timeline();
            found(&timeline).into_iter().filter(|it| it.kind == FindingKind::RepeatedSearch).count()
        };
        assert_eq!(of(|told, _| search(told, 1, 0xABC, 5)), 1);
        assert_eq!(of(|told, number| search(told, 1, 0xABC, number)), 0);
        assert_eq!(of(|told, number| search(told, 1, u64::from(number) + 1, 5)), 0);
        // Of a template that could not be looked through nothing is known.
        assert_eq!(of(|told, _| search(told, 1, 0, 5)), 0);
        let with_new_object = |told: &mut ThreadStory<'_>, _| {
            told.call("C_CreateObject", 1, micros(10));
            search(told, 1, 0xABC, 5);
        };
        assert_eq!(of(with_new_object), 0);
    }

    #[test]
    fn where_sessions_end_in_between_no_cache_would_help() {
        let timeline = Story::new()
            .thread(|told| {
                for session in 1..10 {
                    told.makes("C_OpenSession", 7, session, micros(10));
                    search(told, session, 0xABC, 5);
                    sign(told, session);
                    told.call("C_CloseSession", session, micros(10));
                }
            })
            .timeline();
        let all = found(&timeline);
        let search = all.iter().find(|it| it.kind == FindingKind::RepeatedSearch).unwrap();
        assert_eq!(search.trial, None);
        assert!(search.advice.as_ref().unwrap().contains("and the session"), "{search:?}");
    }

    #[test]
    fn threads_that_wait_for_searches_are_told_to_search_once() {
        let mut story = Story::new();
        story.thread(|told| {
            for _ in 0..10 {
                search(told, 1, 0xABC, 5);
            }
        });
        story.thread(|told| {
            for _ in 0..10 {
                told.enter("C_Sign").given(2, 0).leaf("pthread_mutex_lock", micros(900));
                told.advance(micros(100)).exit();
            }
        });
        let timeline = story.timeline();
        let [finding] = &found(&timeline)[..] else { panic!("{:#?}", found(&timeline)) };
        assert_eq!(finding.kind, FindingKind::RepeatedSearch);
        let told = finding.evidence.iter().any(|it| it.contains("wait for one another"));
        assert!(told && finding.trial.is_some(), "{finding:?}");
    }
}
