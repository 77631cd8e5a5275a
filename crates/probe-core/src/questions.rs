//! What of calls that are only counted was asked again: a search by the same template, a read of the
//! same attributes, a token's or mechanism's information, a command to a card that only reads.
//!
//! A thread keeps the last questions that it asked, each under the place that its digest gives it. So
//! some that were asked before are taken for new ones, and none that are new for others.

use crate::capture::Beginning;
use crate::names::known;
use crate::reads::ASKS_FOR_LENGTH;

/// Questions that a thread keeps, at most.
const KEPT: usize = 256;

/// The questions that a thread asked last, by digest. Zeroed memory knows none.
#[repr(C)]
#[derive(Debug)]
pub struct Questions([u64; KEPT]);

/// Whether calls of a function may ask such a thing.
#[inline(always)]
pub fn may_ask(function: u32) -> bool {
    matches!(
        function,
        known::C_FIND_OBJECTS_INIT
            | known::C_GET_ATTRIBUTE_VALUE
            | known::SCARD_TRANSMIT
            | known::IFDH_TRANSMIT
            | known::C_GET_INFO
            | known::C_GET_SLOT_INFO
            | known::C_GET_TOKEN_INFO
            | known::C_GET_MECHANISM_INFO
            | known::C_GET_SLOT_LIST
            | known::C_GET_MECHANISM_LIST
    )
}

/// What a call asks, as a digest that is never 0; 0: nothing that is asked again for nothing.
pub fn question_of(function: u32, beginning: &Beginning) -> u64 {
    let [first, second, third] = beginning.words;
    let words = match function {
        // In whatever session.
        known::C_FIND_OBJECTS_INIT => [second, third],
        known::C_GET_ATTRIBUTE_VALUE if second != 0 => [second, 0],
        known::SCARD_TRANSMIT | known::IFDH_TRANSMIT if second != 0 => [first, second],
        known::C_GET_INFO | known::C_GET_SLOT_INFO | known::C_GET_TOKEN_INFO => [first, 0],
        known::C_GET_MECHANISM_INFO => [first, second],
        // To ask how long a list is before it is asked for is what the standard says.
        known::C_GET_SLOT_LIST | known::C_GET_MECHANISM_LIST if second != ASKS_FOR_LENGTH => {
            [first, 0]
        }
        _ => return 0,
    };
    words.into_iter().fold(u64::from(function) + 1, mixed).max(1)
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
    /// None.
    pub const fn new() -> Self {
        Self([0; KEPT])
    }

    /// Keeps a question; says whether it was kept already.
    pub fn is_asked_again(&mut self, question: u64) -> bool {
        let kept = &mut self.0[question as usize % KEPT];
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

    fn asks(function: u32, words: [u64; 3]) -> u64 {
        question_of(function, &Beginning { words, bytes: &[], flags: 0 })
    }

    #[test]
    fn the_same_is_asked_in_any_session_and_of_one_object_slot_or_card() {
        let find = known::C_FIND_OBJECTS_INIT;
        assert_eq!(asks(find, [1, 77, 5]), asks(find, [2, 77, 5]));
        assert_ne!(asks(find, [1, 77, 5]), asks(find, [1, 78, 5]));
        let read = known::C_GET_ATTRIBUTE_VALUE;
        assert_eq!(asks(read, [1, 77, 5]), asks(read, [2, 77, 6]));
        for (function, differs) in [
            (known::C_GET_TOKEN_INFO, 0),
            (known::C_GET_SLOT_INFO, 0),
            (known::C_GET_MECHANISM_INFO, 0),
            (known::C_GET_MECHANISM_INFO, 1),
            (known::C_GET_MECHANISM_LIST, 0),
            (known::SCARD_TRANSMIT, 0),
            (known::SCARD_TRANSMIT, 1),
        ] {
            let mut words = [3, 4, 0];
            let before = asks(function, words);
            words[differs] += 7;
            assert!(before != 0 && before != asks(function, words), "{function} {differs}");
        }
        assert_ne!(asks(known::C_GET_TOKEN_INFO, [3; 3]), asks(known::C_GET_SLOT_INFO, [3; 3]));
    }

    #[test]
    fn what_is_no_question_or_says_nothing_is_none() {
        assert_eq!(asks(known::C_SIGN, [1, 2, 3]), 0);
        assert_eq!(asks(known::C_GET_ATTRIBUTE_VALUE, [1, 0, 3]), 0, "of what may be a secret");
        assert_eq!(asks(known::SCARD_TRANSMIT, [1, 0, 3]), 0, "which may write");
        assert_eq!(asks(known::C_GET_SLOT_LIST, [1, ASKS_FOR_LENGTH, 0]), 0);
        assert_eq!(with_answer(7, 0), 0);
        assert_ne!(with_answer(7, 1), with_answer(7, 2));
        assert!(!is_answered(known::C_FIND_OBJECTS_INIT) && is_answered(known::C_GET_TOKEN_INFO));
    }

    #[test]
    fn what_was_asked_is_known_until_another_question_has_its_place() {
        let mut questions = Questions::new();
        let again =
            [5, 6, 5, 0, 0, 5 + KEPT as u64, 5, 5, 6].map(|it| questions.is_asked_again(it));
        assert_eq!(again, [false, false, true, false, false, false, false, true, true]);
    }
}
