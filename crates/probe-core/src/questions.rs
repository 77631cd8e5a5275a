//! What of calls that are only counted was asked again: a search by the same template, a read of the
//! same attributes, what a module says of itself, its slots, tokens and mechanisms.
//!
//! A thread keeps the last questions that it asked, each at a place that its digest gives it: another
//! one may take that, so that not all is known that was asked again. None is kept past a call after
//! which a session, an object or a token may be another one.

use crate::capture::template_digest;
use crate::find_cache::{FindCall, find_call};
use crate::frame::Frame;
use crate::names::known;
use crate::program_memory::ProgramMemory;
use crate::reads::{asks_for_length, attribute_question};

/// Questions that a thread keeps, at most.
const KEPT: usize = 256;

/// The questions that a thread asked last, by digest. Zeroed memory knows none.
#[repr(C)]
#[derive(Debug)]
pub struct Questions {
    /// Since when they hold.
    era: u64,
    kept: [u64; KEPT],
}

/// Whether calls of a function may ask such a thing.
#[inline(always)]
pub fn may_ask(function: u32) -> bool {
    matches!(
        function,
        known::C_FIND_OBJECTS_INIT
            | known::C_GET_ATTRIBUTE_VALUE
            | known::C_GET_INFO
            | known::C_GET_SLOT_INFO
            | known::C_GET_TOKEN_INFO
            | known::C_GET_MECHANISM_INFO
            | known::C_GET_SLOT_LIST
            | known::C_GET_MECHANISM_LIST
    )
}

/// Whether the same question may have another answer after a call of this function.
#[inline(always)]
pub fn may_change_answers(function: u32) -> bool {
    match find_call(function) {
        FindCall::Close | FindCall::CloseAll | FindCall::Finalise | FindCall::Forget => true,
        // A session has the handle of another one only after that was closed.
        FindCall::Open
        | FindCall::Begin
        | FindCall::Next
        | FindCall::End
        | FindCall::Cancel
        | FindCall::Other => false,
    }
}

/// What a call through this stub asks, as a digest that is never 0; 0: nothing that is known.
///
/// # Safety
/// The frame is a call of its function, which has not returned.
pub unsafe fn question_of(stub: u32, frame: &Frame, key: [u64; 2], memory: &ProgramMemory) -> u64 {
    let [first, second, third, ..] = frame.arguments;
    let asked = match frame.function {
        // SAFETY: the caller's promise.
        known::C_FIND_OBJECTS_INIT => unsafe { template_digest(second, third, key, memory) },
        // SAFETY: the caller's promise.
        known::C_GET_ATTRIBUTE_VALUE => unsafe { attribute_question(frame, key, memory) },
        // To ask how long a list is before it is asked for is what the standard says.
        function if !may_ask(function) || asks_for_length(function, frame) => 0,
        known::C_GET_MECHANISM_INFO => second.max(1),
        _ => 1,
    };
    // The only argument of C_GetInfo is where the answer goes.
    let of = if frame.function == known::C_GET_INFO { 0 } else { first };
    match asked {
        0 => 0,
        asked => [of, asked].into_iter().fold(u64::from(stub) + 1, mixed).max(1),
    }
}

/// Whether an answer belongs to a question: what a search finds is told by another call.
pub fn is_answered(function: u32) -> bool {
    function != known::C_FIND_OBJECTS_INIT
}

/// A question together with its answer; 0: with an answer of which nothing is known.
pub fn with_answer(question: u64, answer: u64) -> u64 {
    if answer == 0 { 0 } else { mixed(question, answer).max(1) }
}

/// Two words as one (the finaliser of SplitMix64, Steele and others 2014).
fn mixed(one: u64, other: u64) -> u64 {
    let mut word = one.rotate_left(29) ^ other;
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

impl Questions {
    /// No question was asked yet.
    pub const fn new() -> Self {
        Self { era: 0, kept: [0; KEPT] }
    }

    /// Keeps a question; says whether it was kept already. Those of another era are forgotten.
    pub fn is_asked_again(&mut self, question: u64, era: u64) -> bool {
        if self.era != era {
            *self = Self { era, ..Self::new() };
        }
        let kept = &mut self.kept[question as usize % KEPT];
        question != 0 && core::mem::replace(kept, question) == question
    }
}

impl Default for Questions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call with these arguments, the second of which may be a template of one attribute, the label
    /// that is given.
    fn asks(stub: u32, function: u32, arguments: [u64; 6]) -> u64 {
        let frame = Frame::new(function, arguments);
        let memory = ProgramMemory::of_call(&frame, |_| true);
        // SAFETY: what the arguments point to is there.
        unsafe { question_of(stub, &frame, [1, 2], &memory) }
    }

    /// CK_ATTRIBUTE: CKA_LABEL.
    fn template(label: &[u8]) -> [u64; 3] {
        [3, label.as_ptr().expose_provenance() as u64, label.len() as u64]
    }

    #[test]
    fn a_search_is_by_a_template_in_a_session_of_a_module() {
        let of = |stub, session, label: &[u8]| {
            let template = template(label);
            let at = template.as_ptr().expose_provenance() as u64;
            asks(stub, known::C_FIND_OBJECTS_INIT, [session, at, 1, 0, 0, 0])
        };
        let first = of(5, 1, b"key");
        assert!(first != 0 && first == of(5, 1, b"key"));
        // A proxy's session or another slot's, another template, another module.
        for other in [of(5, 2, b"key"), of(5, 1, b"kez"), of(6, 1, b"key")] {
            assert_ne!(other, first);
        }
        // Of a template that is too long to be looked at nothing is known.
        let too_long = [3, 0, 1 << 20];
        let at = too_long.as_ptr().expose_provenance() as u64;
        assert_eq!(asks(5, known::C_FIND_OBJECTS_INIT, [1, at, 1, 0, 0, 0]), 0);
    }

    #[test]
    fn what_is_asked_of_slots_tokens_and_mechanisms_is_told_apart() {
        for (function, place) in [
            (known::C_GET_TOKEN_INFO, 0),
            (known::C_GET_SLOT_INFO, 0),
            (known::C_GET_MECHANISM_INFO, 0),
            (known::C_GET_MECHANISM_INFO, 1),
            (known::C_GET_MECHANISM_LIST, 0),
        ] {
            let mut arguments = [3, 4, 5, 0, 0, 0];
            let before = asks(1, function, arguments);
            arguments[place] += 7;
            assert!(before != 0 && before != asks(1, function, arguments), "{function} {place}");
        }
        let of_info = |to| asks(1, known::C_GET_INFO, [to, 0, 0, 0, 0, 0]);
        assert!(of_info(1000) == of_info(2000), "where the answer goes is no question");
        let length_alone = [1, 0, 64, 0, 0, 0];
        assert_eq!(asks(1, known::C_GET_SLOT_LIST, length_alone), 0);
        assert_eq!(asks(1, known::C_SIGN, [1, 2, 3, 4, 5, 6]), 0);
    }

    #[test]
    fn answers_belong_to_questions() {
        assert_eq!(with_answer(7, 0), 0);
        assert_ne!(with_answer(7, 1), with_answer(7, 2));
        assert!(!is_answered(known::C_FIND_OBJECTS_INIT) && is_answered(known::C_GET_TOKEN_INFO));
        let change = [known::C_LOGIN, known::C_CREATE_OBJECT, known::C_CLOSE_SESSION];
        assert!(change.into_iter().all(may_change_answers));
        let keep = [known::C_SIGN, known::C_FIND_OBJECTS_INIT, known::C_GET_TOKEN_INFO];
        assert!(!keep.into_iter().any(may_change_answers));
    }

    #[test]
    fn what_was_asked_is_known_until_another_question_has_its_place() {
        let mut questions = Questions::new();
        let all = [5, 6, 5, 0, 0, 5 + KEPT as u64, 5, 5, 6];
        let again = all.map(|question| questions.is_asked_again(question, 1));
        assert_eq!(again, [false, false, true, false, false, false, false, true, true]);
        assert!(!questions.is_asked_again(5, 2), "another thread, or after a change");
        assert!(questions.is_asked_again(5, 2));
    }
}
