//! `cache-attributes`: what was read of an object's public attributes is given again, until
//! something could have changed it.
//!
//! Kept are whole calls of C_GetAttributeValue that succeeded, by module, session, object,
//! attributes and the room for each of them. So a call that asks for lengths, or that has less room
//! than another one, is a question of its own: its first answer is the module's, and one that is
//! not CKR_OK always is. Only public attributes are looked at
//! ([`is_public_attribute`](crate::reads::is_public_attribute)); a call that asks for any other one
//! goes to the module as a whole. All of a module's answers are forgotten where those of
//! `cache-find` are.

use crate::find_cache::SessionKey;
use crate::reads::Attribute;

/// Answers that are kept.
const ANSWERS: usize = 512;
/// Attributes of an answer, at most.
const ATTRIBUTES: usize = 24;
/// Bytes of all values of an answer, at most: a certificate's subject and an RSA modulus fit.
const BYTES: usize = 2048;

/// What is asked: two digests, so that no two questions are taken for one another.
pub type Question = [u64; 2];

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Asked {
    /// 0: nobody.
    module: u64,
    session: u64,
    question: Question,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Values {
    count: usize,
    lengths: [u64; ATTRIBUTES],
    bytes: [u8; BYTES],
}

/// All that is kept in a process. Zeroed memory is an empty one.
#[repr(C)]
pub struct AttributeCache {
    /// Apart from the values, since all of it is looked through.
    asked: [Asked; ANSWERS],
    values: [Values; ANSWERS],
    /// Raised whenever something is forgotten: what was asked before is not kept.
    epoch: u64,
    next: usize,
}

impl core::fmt::Debug for AttributeCache {
    /// Without values.
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.debug_struct("AttributeCache").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl AttributeCache {
    /// The objects of a module may be others now.
    pub fn forget(&mut self, module: u64) {
        self.epoch = self.epoch.wrapping_add(1);
        let its = self.asked.iter_mut().filter(|asked| asked.module == module);
        its.for_each(|asked| asked.module = 0);
    }

    /// Raised whenever something is forgotten.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Writes the answer that was given before to the same question. False: there is none.
    ///
    /// # Safety
    /// Values of the template are null or have room for as many bytes as their lengths say.
    pub unsafe fn answer(
        &self,
        session: SessionKey,
        question: Question,
        template: &mut [Attribute],
    ) -> bool {
        let Some(values) = self.place(session, question).and_then(|at| self.values.get(at)) else {
            return false;
        };
        let lengths = values.lengths.get(..values.count).unwrap_or_default();
        let fits = |(attribute, length): (&Attribute, &u64)| {
            attribute.value.is_null() || *length <= attribute.length
        };
        if lengths.len() != template.len() || !template.iter().zip(lengths).all(fits) {
            return false;
        }
        let mut from = values.bytes.as_slice();
        for (attribute, length) in template.iter_mut().zip(lengths) {
            attribute.length = *length;
            if attribute.value.is_null() {
                continue;
            }
            let Some((value, rest)) = from.split_at_checked(*length as usize) else { return false };
            // SAFETY: there is room for as many, and these are not the cache's own bytes.
            unsafe {
                core::ptr::copy_nonoverlapping(value.as_ptr(), attribute.value, value.len());
            }
            from = rest;
        }
        true
    }

    /// Keeps what the module has answered, unless something was forgotten since it was asked, or it
    /// is too long.
    ///
    /// # Safety
    /// Values of the template are null or have as many bytes as their lengths say.
    pub unsafe fn keep(
        &mut self,
        session: SessionKey,
        question: Question,
        template: &[Attribute],
        epoch: u64,
    ) {
        if epoch != self.epoch || template.len() > ATTRIBUTES {
            return;
        }
        let at = self.place(session, question).unwrap_or(self.next % ANSWERS);
        let Some((asked, values)) = self.asked.get_mut(at).zip(self.values.get_mut(at)) else {
            return;
        };
        // Nobody's until it is whole.
        asked.module = 0;
        let mut to = values.bytes.as_mut_slice();
        for (attribute, length) in template.iter().zip(&mut values.lengths) {
            *length = attribute.length;
            if attribute.value.is_null() {
                continue;
            }
            let Some((value, rest)) = to.split_at_mut_checked(attribute.length as usize) else {
                return;
            };
            // SAFETY: the caller's promise.
            unsafe {
                core::ptr::copy_nonoverlapping(attribute.value, value.as_mut_ptr(), value.len());
            }
            to = rest;
        }
        values.count = template.len();
        *asked = Asked { module: session.module, session: session.handle, question };
        if at == self.next % ANSWERS {
            self.next = self.next.wrapping_add(1);
        }
    }

    fn place(&self, session: SessionKey, question: Question) -> Option<usize> {
        let wanted = Asked { module: session.module, session: session.handle, question };
        self.asked.iter().position(|asked| *asked == wanted)
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc_zeroed};
    use std::boxed::Box;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    const ONE: SessionKey = SessionKey { module: 1, handle: 10 };
    const QUESTION: Question = [7, 8];

    fn cache() -> Box<AttributeCache> {
        // SAFETY: zeroed memory is an empty one, as the probe maps it.
        unsafe { Box::from_raw(alloc_zeroed(Layout::new::<AttributeCache>()).cast()) }
    }

    fn attribute(value: &mut Vec<u8>) -> Attribute {
        Attribute { kind: 3, value: value.as_mut_ptr(), length: value.len() as u64 }
    }

    fn keep(cache: &mut AttributeCache, session: SessionKey, question: Question, value: &[u8]) {
        let mut value = value.to_vec();
        let epoch = cache.epoch();
        let template = [attribute(&mut value)];
        // SAFETY: the value is as long as it says.
        unsafe { cache.keep(session, question, &template, epoch) }
    }

    /// What is given to a question that has so much room.
    fn given(
        cache: &AttributeCache,
        session: SessionKey,
        question: Question,
        room: usize,
    ) -> Option<Vec<u8>> {
        let mut value = vec![0; room];
        let mut template = [attribute(&mut value)];
        // SAFETY: as much room as it says.
        let is_answered = unsafe { cache.answer(session, question, &mut template) };
        value.truncate(template[0].length as usize);
        is_answered.then_some(value)
    }

    #[test]
    fn the_same_question_has_the_same_answer() {
        let mut cache = cache();
        assert_eq!(given(&cache, ONE, QUESTION, 8), None);
        keep(&mut cache, ONE, QUESTION, b"label");
        assert_eq!(given(&cache, ONE, QUESTION, 8).as_deref(), Some(&b"label"[..]));
        keep(&mut cache, ONE, QUESTION, b"other");
        assert_eq!(given(&cache, ONE, QUESTION, 8).as_deref(), Some(&b"other"[..]));
        let of_another = SessionKey { module: 1, handle: 11 };
        let elsewhere = SessionKey { module: 2, handle: 10 };
        for (session, question) in [(ONE, [7, 9]), (of_another, QUESTION), (elsewhere, QUESTION)] {
            assert_eq!(given(&cache, session, question, 8), None);
        }
    }

    #[test]
    fn no_more_is_written_than_there_is_room_for() {
        let mut cache = cache();
        keep(&mut cache, ONE, QUESTION, b"label");
        assert_eq!(given(&cache, ONE, QUESTION, 4), None);
        assert_eq!(given(&cache, ONE, QUESTION, 5).as_deref(), Some(&b"label"[..]));
        // A template of another length under the same digest.
        let mut value = vec![0; 8];
        let mut two = [attribute(&mut value); 2];
        // SAFETY: as much room as it says.
        assert!(!unsafe { cache.answer(ONE, QUESTION, &mut two) });
    }

    #[test]
    fn lengths_alone_are_an_answer_too() {
        let mut cache = cache();
        let length = Attribute { kind: 3, value: core::ptr::null_mut(), length: 256 };
        // SAFETY: no value.
        unsafe { cache.keep(ONE, QUESTION, &[length], 0) };
        let mut asked = [Attribute { length: 0, ..length }];
        // SAFETY: no value.
        assert!(unsafe { cache.answer(ONE, QUESTION, &mut asked) });
        assert_eq!(asked[0].length, 256);
    }

    #[test]
    fn what_is_too_long_or_may_have_changed_is_not_kept() {
        let mut cache = cache();
        keep(&mut cache, ONE, QUESTION, &[1; BYTES + 1]);
        assert_eq!(given(&cache, ONE, QUESTION, BYTES + 1), None);
        let mut values = vec![0; 1];
        let many = [attribute(&mut values); ATTRIBUTES + 1];
        // SAFETY: each is as long as it says.
        unsafe { cache.keep(ONE, QUESTION, &many, 0) };
        assert_eq!(cache.place(ONE, QUESTION), None);
        keep(&mut cache, ONE, QUESTION, b"label");
        cache.forget(2);
        assert!(given(&cache, ONE, QUESTION, 8).is_some());
        cache.forget(1);
        assert_eq!(given(&cache, ONE, QUESTION, 8), None);
        // Asked before something was forgotten, answered afterwards.
        let before = cache.epoch();
        cache.forget(1);
        // SAFETY: as long as it says.
        unsafe { cache.keep(ONE, QUESTION, &[attribute(&mut values)], before) };
        assert_eq!(given(&cache, ONE, QUESTION, 8), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut cache = cache();
        for number in 0..=ANSWERS as u64 {
            keep(&mut cache, ONE, [number + 1, 0], b"label");
        }
        assert_eq!(given(&cache, ONE, [1, 0], 8), None);
        assert!(given(&cache, ONE, [2, 0], 8).is_some());
    }

    #[test]
    fn whatever_is_forgotten_raises_the_epoch() {
        let mut cache = cache();
        assert_eq!(cache.epoch(), 0);
        cache.forget(1);
        cache.forget(2);
        assert_eq!(cache.epoch(), 2);
    }

    #[test]
    fn its_debug_form_has_no_values() {
        let mut cache = cache();
        keep(&mut cache, ONE, QUESTION, b"value");
        assert_eq!(std::format!("{cache:?}"), "AttributeCache { epoch: 0, .. }");
    }
}
