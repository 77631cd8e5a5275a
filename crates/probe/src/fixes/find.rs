//! `cache-find`: [`find_cache`](tapstone_probe_core::find_cache) around C_FindObjects and what
//! changes objects.

use tapstone_probe_core::capture::template_digest;
use tapstone_probe_core::find_cache::{Begun, FindCache, FindCall, SessionKey, find_call, is_lost};
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::wire::{FIX_CACHE_FIND, Fix};

use super::shared_cache::SharedCache;
use super::{FixAnswer, are_on, of_kind};
use crate::memory::memory_of;
use crate::state;
use crate::stubs::slot;

const CKR_OK: u64 = 0;
const CKR_ARGUMENTS_BAD: u64 = 7;

static CACHE: SharedCache<FindCache> = SharedCache::new();

/// The fix, when it is switched on.
fn fix_on() -> Option<&'static Fix> {
    of_kind(FIX_CACHE_FIND).next().filter(|_| are_on())
}

/// Looks into the cache. `None`: there is no memory for it.
fn with_cache<T>(look: impl FnOnce(&mut FindCache) -> T) -> Option<T> {
    // SAFETY: zeroed memory is an empty one.
    unsafe { CACHE.look(look) }
}

/// The same, for what has no answer.
fn update(change: impl FnOnce(&mut FindCache)) {
    let _ = with_cache(change);
}

pub(super) fn session_key(frame: &Frame, handle: u64) -> SessionKey {
    let (_, definer) = slot(frame.slot as u32).objects();
    SessionKey { module: definer as u64 + 1, handle }
}

/// Two digests of a template under the run's key; `None` where it could not be looked through.
///
/// # Safety
/// The frame is a call of C_FindObjectsInit.
unsafe fn question(frame: &Frame) -> Option<[u64; 2]> {
    let [_, template, count, ..] = frame.arguments;
    let [first, second] = state().header().key;
    let memory = memory_of(frame);
    // SAFETY: the caller's promise.
    let digests = [[first, second], [second, !first]]
        .map(|key| unsafe { template_digest(template, count, key, &memory) });
    (!digests.contains(&0)).then_some(digests)
}

/// Before a call: forgets, or answers.
///
/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before_call(frame: &mut Frame, function: u32) -> FixAnswer {
    let call = find_call(function);
    if call == FindCall::Other {
        return FixAnswer::Call;
    }
    let Some(fix) = fix_on() else { return FixAnswer::Call };
    let [first, second, third, fourth, ..] = frame.arguments;
    let key = session_key(frame, first);
    match call {
        FindCall::Begin => {
            // SAFETY: a call of that function.
            let Some(question) = (unsafe { question(frame) }) else { return FixAnswer::Call };
            match with_cache(|cache| cache.before_begin(key, question)) {
                Some(Begun::Answered(code)) => {
                    fix.count_applied();
                    FixAnswer::Replaced(code)
                }
                Some(Begun::Call) => FixAnswer::Call,
                Some(Begun::Unknown) | None => {
                    fix.count_refused();
                    FixAnswer::Call
                }
            }
        }
        FindCall::Next if with_cache(|cache| cache.is_served(key)) == Some(true) => {
            let count = fourth as *mut u64;
            if second == 0 || count.is_null() {
                return FixAnswer::Replaced(CKR_ARGUMENTS_BAD);
            }
            // SAFETY: room for as many handles as the caller says.
            let to = unsafe { core::slice::from_raw_parts_mut(second as *mut u64, third as usize) };
            let given = with_cache(|cache| cache.next_objects(key, to)).unwrap_or_default();
            // SAFETY: where the caller wants the number of them.
            unsafe { *count = given as u64 };
            FixAnswer::Replaced(CKR_OK)
        }
        FindCall::End if with_cache(|cache| cache.before_end(key)) == Some(true) => {
            FixAnswer::Replaced(CKR_OK)
        }
        FindCall::Cancel => {
            update(|cache| cache.broken_off(key, true));
            FixAnswer::Call
        }
        FindCall::Forget => {
            update(|cache| cache.forget(key.module));
            FixAnswer::Call
        }
        FindCall::Close => {
            update(|cache| cache.closed(key));
            FixAnswer::Call
        }
        FindCall::CloseAll => {
            update(|cache| cache.all_closed(key.module, Some(first)));
            FixAnswer::Call
        }
        FindCall::Finalise => {
            update(|cache| cache.all_closed(key.module, None));
            FixAnswer::Call
        }
        FindCall::Open | FindCall::Next | FindCall::End | FindCall::Other => FixAnswer::Call,
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
    let [first, second, third, fourth, fifth, _] = frame.arguments;
    let key = session_key(frame, first);
    let went_well = frame.result == CKR_OK;
    if is_lost(frame.result) {
        update(|cache| cache.forget(key.module));
    }
    match find_call(function) {
        FindCall::Open if went_well && fifth != 0 => {
            // SAFETY: where the function has just written the session.
            let session = session_key(frame, unsafe { *(fifth as *const u64) });
            update(|cache| cache.opened(session, first, second));
        }
        FindCall::Begin if went_well => {
            // SAFETY: a call of that function.
            let question = unsafe { question(frame) };
            update(|cache| cache.after_begin(key, question));
        }
        FindCall::Next if went_well && second != 0 && fourth != 0 => {
            // SAFETY: the function has just written so many, of at most as many as were asked for.
            let found = unsafe {
                let count = (*(fourth as *const u64)).min(third) as usize;
                core::slice::from_raw_parts(second as *const u64, count)
            };
            update(|cache| cache.after_next(key, found, third));
        }
        FindCall::Next => update(|cache| cache.broken_off(key, false)),
        FindCall::End if went_well => update(|cache| cache.after_end(key)),
        FindCall::End => update(|cache| cache.broken_off(key, true)),
        // A search of another thread may have begun in the meantime.
        FindCall::Forget => update(|cache| cache.forget(key.module)),
        _ => {}
    }
}
