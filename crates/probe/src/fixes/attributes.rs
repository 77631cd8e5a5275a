//! `cache-attributes`: [`attribute_cache`](tapstone_probe_core::attribute_cache) around
//! C_GetAttributeValue and what changes objects.

use tapstone_probe_core::attribute_cache::AttributeCache;
use tapstone_probe_core::find_cache::{FindCall, find_call, is_lost};
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::names::known;
use tapstone_probe_core::reads::{
    Attribute, attribute_question, attribute_subject, public_template,
};
use tapstone_probe_core::wire::{FIX_CACHE_ATTRIBUTES, Fix};

use super::find::session_key;
use super::shared_cache::SharedCache;
use super::{FixAnswer, are_on, of_kind};
use crate::memory::memory_of;
use crate::state;

const CKR_OK: u64 = 0;

static CACHE: SharedCache<AttributeCache> = SharedCache::new();

/// The fix, when it is switched on.
fn fix_on() -> Option<&'static Fix> {
    of_kind(FIX_CACHE_ATTRIBUTES).next().filter(|_| are_on())
}

/// Looks into the cache. `None`: there is no memory for it.
fn with_cache<T>(look: impl FnOnce(&mut AttributeCache) -> T) -> Option<T> {
    // SAFETY: zeroed memory is an empty one.
    unsafe { CACHE.look(look) }
}

/// The run's key, and another one made of it: what is asked is known by two digests.
fn keys() -> [[u64; 2]; 2] {
    let [first, second] = state().header().key;
    [[first, second], [second, !first]]
}

fn may_change(function: u32) -> bool {
    use FindCall::{Close, CloseAll, Finalise, Forget};
    matches!(find_call(function), Close | CloseAll | Finalise | Forget)
}

/// Before a call: forgets, or answers.
///
/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before_call(frame: &mut Frame, function: u32) -> FixAnswer {
    let is_read = function == known::C_GET_ATTRIBUTE_VALUE;
    if !is_read && !may_change(function) {
        return FixAnswer::Call;
    }
    frame.question = 0;
    let Some(fix) = fix_on() else { return FixAnswer::Call };
    let session = session_key(frame, frame.arguments[0]);
    if !is_read {
        let _ = with_cache(|cache| cache.forget(session.module));
        return FixAnswer::Call;
    }
    let [key, other_key] = keys();
    let memory = memory_of(frame);
    // SAFETY: a call of that function, which has not begun.
    let asked = unsafe {
        [attribute_question(frame, key, &memory), attribute_subject(frame, other_key, &memory)]
    };
    // SAFETY: as above.
    let template = unsafe { public_template(frame, &memory) };
    let Some(template) = template else { return FixAnswer::Call };
    // SAFETY: as much room as the caller says.
    let known =
        with_cache(|cache| unsafe { (cache.answer(session, asked, template), cache.epoch()) });
    match known {
        Some((true, _)) => {
            fix.count_applied();
            FixAnswer::Replaced(CKR_OK)
        }
        Some((false, epoch)) => {
            // A template that was filled in says no more how much room there was.
            frame.question = asked[0];
            frame.note = epoch;
            FixAnswer::Call
        }
        None => {
            fix.count_refused();
            FixAnswer::Call
        }
    }
}

/// After a call that the function has answered: keeps, or forgets.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after_call(frame: &Frame, function: u32) {
    if fix_on().is_none() {
        return;
    }
    let session = session_key(frame, frame.arguments[0]);
    if is_lost(frame.result) || may_change(function) {
        let _ = with_cache(|cache| cache.forget(session.module));
        return;
    }
    let is_kept =
        function == known::C_GET_ATTRIBUTE_VALUE && frame.result == CKR_OK && frame.question != 0;
    if !is_kept {
        return;
    }
    let [_, other_key] = keys();
    let memory = memory_of(frame);
    // SAFETY: the function has succeeded; values that are not as long as it says are not kept.
    unsafe {
        let asked = [frame.question, attribute_subject(frame, other_key, &memory)];
        let Some(template) = public_template(frame, &memory) else { return };
        let is_there = |attribute: &Attribute| {
            attribute.value.is_null()
                || memory.holds_rest(attribute.value as u64, attribute.length as usize)
        };
        if !template.iter().all(is_there) {
            return;
        }
        let _ = with_cache(|cache| cache.keep(session, asked, template, frame.note));
    }
}
