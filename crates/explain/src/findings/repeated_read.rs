//! `repeated-read`: the same attributes of the same object are read again, or a token, a slot or a
//! mechanism is asked again what it is, with the same answer each time.
//!
//! Questions and answers are compared by digests under the run's own key. Of objects only public
//! attributes are compared; a read that asks for any other one is never called a repetition. The
//! unit that goes is the call. What the program does with the answer, up to its next call, may go
//! with it, and so may the time for which other threads waited for a lock meanwhile.
//!
//! What a read that is not compared answers (the value of a key, or of a certificate) is not known.
//! Where the same one is made again between repetitions, it may go with them.
//!
//! What is asked of tokens, slots and mechanisms of one module is one finding: a program that looks
//! for its token asks one after the other, and whoever keeps what came of it asks none again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::repetitions::{FEWEST, Repetition, Repetitions};
use super::scene::{FindingPlace, Remedy, Scene};
use super::token_calls::{changes_objects, object_of, outermost_calls, stretch_of};
use super::{Finding, FindingKind, words};
use crate::timeline::Span;
use tapstone_events::{Fix, OTHER_ATTRIBUTES, SHAPE_BITS};

const ATTRIBUTES: &str = "C_GetAttributeValue";
const KEEP_ATTRIBUTES: &str = "read the attributes once, and keep them with the handle";
const KEEP_INFORMATION: &str = "ask once, when the program starts or a slot changes, and keep the \
                                answer";

/// What was asked: process and module, function, its handle (of a read of attributes the slot of
/// the session), and what else it says.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Question<'a> {
    process: u32,
    module: &'a str,
    function: &'a str,
    handle: u64,
    detail: u64,
}

/// What is known of a question.
struct KnownAnswer {
    answer: u32,
    count: u64,
    /// Something ended since after which a cache would be empty.
    is_stale: bool,
}

/// Questions that were asked again through one function.
struct Repeats<'a> {
    questions: BTreeSet<(u64, u64)>,
    repetitions: Repetitions<'a>,
}

impl Repeats<'_> {
    /// How many questions it were.
    fn count(&self) -> u64 {
        self.questions.len() as u64
    }
}

struct Reads<'s, 'a> {
    scene: &'s Scene<'a>,
    slots: HashMap<(u32, &'a str, u64), u64>,
    known: HashMap<Question<'a>, KnownAnswer>,
    places: BTreeMap<FindingPlace<'a>, Repeats<'a>>,
    /// Reads that are not compared: process, module, slot, and object and template.
    hidden: HashSet<(u32, &'a str, u64, u64)>,
    /// Threads that have repeated a read, and only read and searched since.
    repeating: HashMap<usize, FindingPlace<'a>>,
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let mut reads = Reads {
        scene,
        slots: HashMap::new(),
        known: HashMap::new(),
        places: BTreeMap::new(),
        hidden: HashSet::new(),
        repeating: HashMap::new(),
    };
    for (thread, span) in outermost_calls(scene) {
        reads.see(thread, span);
    }
    // On average each question was asked as often.
    reads.places.retain(|_, repeats| repeats.repetitions.count() >= (FEWEST - 1) * repeats.count());
    let mut findings = Vec::new();
    let mut information: BTreeMap<&str, Vec<(FindingPlace<'_>, Repeats<'_>)>> = BTreeMap::new();
    for (place, repeats) in reads.places {
        if place.function == ATTRIBUTES {
            findings.extend(report_reads(scene, place, repeats));
        } else {
            information.entry(place.module).or_default().push((place, repeats));
        }
    }
    findings.extend(information.into_values().filter_map(|asked| report_questions(scene, asked)));
    findings
}

impl<'a> Reads<'_, 'a> {
    fn see(&mut self, thread: usize, span: &'a Span) {
        let process = self.scene.timeline.threads[thread].process;
        let call = self.scene.timeline.call(span.call);
        let module = call.module.as_str();
        let is_of =
            |question: &Question<'_>| (question.process, question.module) == (process, module);
        if call.function != ATTRIBUTES && !call.function.starts_with("C_FindObjects") {
            self.repeating.remove(&thread);
        }
        match call.function {
            "C_OpenSession" if span.result == 0 => {
                self.slots.insert((process, module, span.made()), span.handle);
            }
            "C_CloseSession" | "C_CloseAllSessions" | "C_Login" | "C_LoginUser" | "C_Logout" => {
                // An object may have another's handle now.
                self.hidden.retain(|(owner, of, ..)| (*owner, *of) != (process, module));
                let attributes = self
                    .known
                    .iter_mut()
                    .filter(|(question, _)| is_of(question) && question.function == ATTRIBUTES);
                attributes.for_each(|(_, known)| known.is_stale = true);
            }
            // A token may be another one now.
            "C_InitToken" | "C_Initialize" | "C_Finalize" | "C_WaitForSlotEvent" => {
                self.known.retain(|question, _| !is_of(question));
                self.hidden.retain(|(owner, of, ..)| (*owner, *of) != (process, module));
            }
            function if changes_objects(function) => {
                self.hidden.retain(|(owner, of, ..)| (*owner, *of) != (process, module));
                self.known
                    .retain(|question, _| !is_of(question) || question.function != ATTRIBUTES);
            }
            "C_FindObjects" => {}
            // Nothing is known of what a program reads that is not public.
            ATTRIBUTES if span.detail == 0 => self.read_hidden(thread, span, (process, module)),
            function if span.answer() != 0 && span.result == 0 => {
                let is_of_object = function == ATTRIBUTES;
                let handle = if is_of_object {
                    self.slots.get(&(process, module, span.handle)).copied().unwrap_or_default()
                } else {
                    span.handle
                };
                let question = Question { process, module, function, handle, detail: span.detail };
                self.asked(thread, span, question);
            }
            _ => {}
        }
    }

    fn read_hidden(&mut self, thread: usize, span: &Span, of: (u32, &'a str)) {
        let (process, module) = of;
        // Which object it is, and all that is asked of it, is not always known.
        let (object, shape) = (object_of(span), span.operand & ((1 << SHAPE_BITS) - 1));
        let is_known = object != 0 && shape != 0 && shape & OTHER_ATTRIBUTES == 0;
        if !is_known || span.result != 0 || !self.scene.counts(thread, span.start) {
            return;
        }
        let slot = self.slots.get(&(process, module, span.handle)).copied().unwrap_or_default();
        let is_first = self.hidden.insert((process, module, slot, span.operand));
        let place = self.repeating.get(&thread);
        let place = place.filter(|place| !is_first && place.module == module);
        if let Some(repeats) = place.and_then(|place| self.places.get_mut(place)) {
            repeats.repetitions.add_perhaps(self.scene, &stretch_of(thread, span));
        }
    }

    fn asked(&mut self, thread: usize, span: &'a Span, question: Question<'a>) {
        let known = self.known.entry(question).or_insert(KnownAnswer {
            answer: span.answer(),
            count: 0,
            is_stale: false,
        });
        let was_stale = std::mem::take(&mut known.is_stale);
        if known.answer != span.answer() {
            *known = KnownAnswer { answer: span.answer(), count: 1, is_stale: false };
            return;
        }
        known.count += 1;
        if known.count == 1 || !self.scene.counts(thread, span.start) {
            return;
        }
        let call = self.scene.timeline.call(span.call);
        let place = self.scene.place(call);
        if call.function == ATTRIBUTES {
            self.repeating.insert(thread, place);
        }
        let repeats = self.places.entry(place).or_insert_with(|| Repeats {
            questions: BTreeSet::new(),
            repetitions: Repetitions::new(self.scene.layer(Some(span))),
        });
        repeats.questions.insert((question.handle, question.detail));
        let repetition = Repetition {
            units: vec![stretch_of(thread, span)],
            thread,
            end: span.end,
            is_stale: was_stale,
            caller: &call.caller,
        };
        repeats.repetitions.add(self.scene, repetition);
    }
}

fn report_reads(
    scene: &Scene<'_>,
    place: FindingPlace<'_>,
    repeats: Repeats<'_>,
) -> Option<Finding> {
    let reads = words::counted(repeats.count(), "read");
    let repetitions = repeats.repetitions;
    let remedy = match repetitions.are_stale() {
        false => Remedy::Try(Fix::CacheAttributes),
        true => Remedy::Change(format!(
            "{KEEP_ATTRIBUTES}, and the session and its login for the next operation"
        )),
    };
    let seen = format!(
        "{reads} of public attributes of {} had {}, with the same values each time: these took {}",
        place.module,
        words::counted(repetitions.count(), "repetition"),
        repetitions.time()
    );
    repetitions.report(scene, FindingKind::RepeatedRead, place, vec![seen], remedy)
}

/// All that a module was asked again. It is found where most of the time goes, as often as there;
/// the time is that of all, so the others are counted beside the function's name.
fn report_questions(
    scene: &Scene<'_>,
    mut asked: Vec<(FindingPlace<'_>, Repeats<'_>)>,
) -> Option<Finding> {
    asked.sort_by_key(|(_, repeats)| Reverse(repeats.repetitions.time()));
    let others = asked.len().saturating_sub(1);
    let seen = asked.iter().map(|(place, repeats)| told(place.function, repeats)).collect();
    let mut asked = asked.into_iter().map(|(place, repeats)| (place, repeats.repetitions));
    let (place, first) = asked.next()?;
    let all = asked.fold(first, |all, (_, others)| all.beside(others));
    let remedy = Remedy::Change(KEEP_INFORMATION.to_owned());
    let mut finding = all.report(scene, FindingKind::RepeatedRead, place, seen, remedy)?;
    if others > 0 {
        finding.place =
            format!("{} and {}", place.function, words::counted(others as u64, "other"));
    }
    Some(finding)
}

fn told(function: &str, repeats: &Repeats<'_>) -> String {
    let questions = words::counted(repeats.count(), "question");
    let again = words::counted(repeats.repetitions.count(), "repetition");
    let time = repeats.repetitions.time();
    format!("{questions} of {function} had {again}, with the same answer: these took {time}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::prediction;
    use crate::findings::tests::{only, trial, whole};
    use crate::operation::Operations;
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    /// A read of attributes: what is asked, and what is answered.
    fn read(told: &mut ThreadStory<'_>, session: u64, question: u64, answer: u32) {
        told.enter(ATTRIBUTES).given(session, question).advance(micros(400));
        told.finds(1, answer);
        told.exit();
    }

    fn ask(told: &mut ThreadStory<'_>, function: &str, slot: u64, answer: u32) {
        ask_for(told, function, slot, answer, 400);
    }

    /// The same in so many microseconds.
    fn ask_for(told: &mut ThreadStory<'_>, function: &str, slot: u64, answer: u32, time: u64) {
        told.enter(function).given(slot, 0).advance(micros(time));
        told.finds(0, answer);
        told.exit();
    }

    fn ten(mut tell: impl FnMut(&mut ThreadStory<'_>, u32)) -> Timeline {
        Story::new()
            .thread(|told| {
                told.makes("C_OpenSession", 7, 1, micros(10));
                for number in 0..10 {
                    tell(told, number);
                    told.advance(micros(100)).call("C_Sign", 1, millis(1));
                }
            })
            .timeline()
    }

    #[test]
    fn the_same_attributes_before_every_signature_are_found_with_what_follows() {
        let timeline = ten(|told, _| read(told, 1, 0xABC, 5));
        let finding = only(whole(&timeline, find));
        assert_eq!(finding.kind, FindingKind::RepeatedRead);
        assert_eq!((finding.count, finding.time), (9, micros(9 * 400)));
        assert_eq!(trial(&finding).as_deref(), Some("cache-attributes"));
        let operations = Operations::whole(&timeline);
        let saving = prediction::saving(&timeline, &operations, &prediction::union([&finding]));
        assert_eq!((saving.low, saving.high), (3.6e6, 4.5e6));
    }

    #[test]
    fn what_a_program_did_to_ask_is_taken_to_be_as_long_as_what_follows() {
        let timeline = ten(|told, number| {
            told.advance(micros(300));
            read(told, 1, 0xABC, 5);
            told.advance(micros(if number == 9 { 700 } else { 0 }));
        });
        let finding = only(whole(&timeline, find));
        let operations = Operations::whole(&timeline);
        let saving = prediction::saving(&timeline, &operations, &prediction::union([&finding]));
        // 100 us follow eight of the nine, so that as many went before; 800 follow the last, before
        // which there are 300.
        let high = 9.0 * 400.0 + 8.0 * 200.0 + 800.0 + 300.0;
        assert_eq!((saving.low, saving.high), (3.6e6, 1e3 * high));
    }

    /// CKA_VALUE alone.
    const VALUE: u64 = 1 << 6 | 1 << 16;

    /// A read of what is not compared, of an object by a template.
    fn read_value(told: &mut ThreadStory<'_>, object: u64, shape: u64) {
        let operand = object << SHAPE_BITS | shape;
        told.enter(ATTRIBUTES).given(1, 0);
        told.last_span().operand = operand;
        told.advance(micros(200)).exit();
    }

    #[test]
    fn reads_of_values_that_are_made_again_between_repetitions_may_go_with_them() {
        let saved = |tell: fn(&mut ThreadStory<'_>, u32)| {
            let timeline = ten(|told, number| {
                read(told, 1, 0xABC, 5);
                tell(told, number);
            });
            let finding = only(whole(&timeline, find));
            let operations = Operations::whole(&timeline);
            let saving = prediction::saving(&timeline, &operations, &prediction::union([&finding]));
            let says = "are made again, too, of values that are not compared";
            (saving, finding.evidence.iter().any(|it| it.contains(says)))
        };
        // In each but the first the read, the value, and what follows.
        let (saving, is_told) = saved(|told, _| read_value(told, 9, VALUE));
        assert_eq!((saving.low, saving.high, is_told), (3.6e6, 9.0 * 700e3, true));
        let (saving, is_told) =
            saved(|told, number| read_value(told, 9 + u64::from(number), VALUE));
        assert_eq!((saving.low, is_told), (3.6e6, false), "of other objects");
        let (_, is_told) = saved(|told, _| {
            told.call("C_Sign", 1, millis(1));
            read_value(told, 9, VALUE);
        });
        assert!(!is_told, "for something else");
        for (object, shape) in [(0, VALUE), (9, 0), (9, VALUE | OTHER_ATTRIBUTES)] {
            let timeline = ten(|told, _| {
                read(told, 1, 0xABC, 5);
                read_value(told, object, shape);
            });
            let finding = only(whole(&timeline, find));
            assert!(!finding.evidence.iter().any(|it| it.contains("not compared")), "{object}");
        }
        let other_module = ten(|told, _| {
            read(told, 1, 0xABC, 5);
            told.enter_in(ATTRIBUTES, "other.so").given(1, 0);
            told.last_span().operand = 9 << SHAPE_BITS | VALUE;
            told.advance(micros(200)).exit();
        });
        let finding = only(whole(&other_module, find));
        assert!(!finding.evidence.iter().any(|it| it.contains("not compared")));
    }

    #[test]
    fn another_answer_a_change_or_a_hidden_attribute_is_no_repetition() {
        let of = |tell: fn(&mut ThreadStory<'_>, u32)| whole(&ten(tell), find).len();
        assert_eq!(of(|told, number| read(told, 1, 0xABC, number + 1)), 0);
        assert_eq!(of(|told, number| read(told, 1, u64::from(number) + 2, 5)), 0);
        // Not looked at, or asked of a module whose calls are seen without their arguments.
        assert_eq!(of(|told, _| read(told, 1, 0, 5)), 0);
        assert_eq!(of(|told, _| read(told, 1, 0xABC, 0)), 0);
        let changed = |told: &mut ThreadStory<'_>, _| {
            told.call("C_SetAttributeValue", 1, micros(10));
            read(told, 1, 0xABC, 5);
        };
        assert_eq!(of(changed), 0);
        // Two parts of a program that read the same.
        let twice = |told: &mut ThreadStory<'_>, number| {
            read(told, 1, u64::from(number / 2) + 2, 5);
        };
        assert_eq!(of(twice), 0);
    }

    #[test]
    fn where_sessions_end_in_between_no_cache_would_help() {
        let timeline = Story::new()
            .thread(|told| {
                for session in 1..10 {
                    told.makes("C_OpenSession", 7, session, micros(10));
                    read(told, session, 0xABC, 5);
                    told.call("C_CloseSession", session, micros(10));
                }
            })
            .timeline();
        let finding = only(whole(&timeline, find));
        assert_eq!(finding.trial, None);
        assert!(finding.advice.unwrap().contains("and the session"));
    }

    #[test]
    fn a_token_that_is_asked_again_what_it_is_is_found() {
        for function in ["C_GetSlotList", "C_GetTokenInfo", "C_GetMechanismInfo", "C_GetInfo"] {
            let finding = only(whole(&ten(|told, _| ask(told, function, 7, 5)), find));
            assert_eq!((finding.count, finding.trial.as_ref()), (9, None), "{function}");
            assert!(finding.advice.unwrap().starts_with("ask once"), "{function}");
        }
        // Two slots in turn are two questions, and both are asked again.
        let turns = ten(|told, number| ask(told, "C_GetTokenInfo", u64::from(number % 2), 5));
        assert_eq!(only(whole(&turns, find)).count, 8);
        let waits = ten(|told, _| {
            told.call("C_WaitForSlotEvent", 1, micros(10));
            ask(told, "C_GetSlotList", 1, 5);
        });
        assert_eq!(whole(&waits, find), []);
    }

    /// Each but one takes too little for a finding of its own.
    #[test]
    fn a_program_that_looks_for_its_token_each_time_is_one_finding() {
        let timeline = ten(|told, _| {
            ask_for(told, "C_GetSlotList", 1, 5, 4);
            told.advance(micros(60));
            ask_for(told, "C_GetTokenInfo", 7, 6, 400);
            told.advance(micros(70));
            ask_for(told, "C_GetMechanismInfo", 7, 8, 6);
        });
        let finding = only(whole(&timeline, find));
        assert_eq!((finding.place.as_str(), finding.count), ("C_GetTokenInfo and 2 others", 9));
        assert_eq!(finding.time, micros(9 * 410));
        let told = |function| finding.evidence.iter().any(|it| it.contains(function));
        assert!(told("C_GetSlotList") && told("C_GetMechanismInfo"), "{finding:?}");
        let operations = Operations::whole(&timeline);
        let saving = prediction::saving(&timeline, &operations, &prediction::union([&finding]));
        // Between them 130 us, and the 100 that follow; of what is before the first there is nothing.
        assert_eq!((saving.low, saving.high), (9.0 * 410e3, 9.0 * 640e3));
    }
}
