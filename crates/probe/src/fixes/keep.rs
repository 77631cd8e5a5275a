//! `keep-login` and `keep-session`:
//! [`session_keeper`](tapstone_probe_core::session_keeper) around all calls of PKCS#11.

use core::sync::atomic::Ordering;

use tapstone_probe_core::find_cache::SessionKey;
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::names::known;
use tapstone_probe_core::session_keeper::{
    KeepFix, Keeping, KeptCall, KeptThings, RealCall, SessionKeeper, pin_digests,
};
use tapstone_probe_core::wire::{FIX_KEEP_LOGIN, FIX_KEEP_SESSION, Fix};

use super::find::session_key;
use super::shared_cache::SharedCache;
use super::{FixAnswer, are_on, of_kind};
use crate::memory::memory_of;
use crate::state;
use crate::stubs::slot;
use crate::sys;
use crate::thread::Thread;

const CKR_OK: u64 = 0;
/// A module's call that is left by an exception never says that it is over.
const MOST_WAITS: u32 = 1 << 20;

static KEEPER: SharedCache<SessionKeeper> = SharedCache::new();

fn fix(kind: KeepFix) -> Option<&'static Fix> {
    of_kind(match kind {
        KeepFix::Login => FIX_KEEP_LOGIN,
        KeepFix::Session => FIX_KEEP_SESSION,
    })
    .next()
}

fn count(kind: KeepFix, what: fn(&Fix)) {
    if let Some(fix) = fix(kind) {
        what(fix);
    }
}

/// What is wanted now; `None` where neither fix was asked for.
fn wanted() -> Option<KeptThings> {
    let [login, session] = [KeepFix::Login, KeepFix::Session].map(|it| fix(it).is_some());
    let is_on = are_on();
    (login || session).then_some(KeptThings { login: login && is_on, session: session && is_on })
}

/// Looks at what is kept. `None`: there is no memory for it.
fn with_keeper<T>(look: impl FnOnce(&mut SessionKeeper) -> T) -> Option<T> {
    // SAFETY: zeroed memory is one of a process without sessions.
    unsafe { KEEPER.look(look) }
}

/// # Safety
/// The frame is a call of that function.
unsafe fn kept_call(frame: &Frame, function: u32) -> KeptCall {
    let [first, second, third, fourth, ..] = frame.arguments;
    let SessionKey { module, .. } = session_key(frame, first);
    let [one, other] = state().header().key;
    let keys = [[one, other], [other, !one]];
    let is_login = function == known::C_LOGIN;
    let is_there = is_login && memory_of(frame).holds(third, fourth as usize);
    // SAFETY: a PIN of as many bytes as the caller says.
    let pin = if is_there { unsafe { pin_digests(second, third, fourth, keys) } } else { None };
    let address = slot(frame.slot as u32).original.load(Ordering::Relaxed);
    KeptCall { function, module, arguments: frame.arguments, pin, address }
}

/// Before a call: answers, or gives up what the call could notice.
///
/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before_call(
    thread: &mut Thread,
    frame: &mut Frame,
    function: u32,
) -> FixAnswer {
    let Some(wanted) = wanted() else { return FixAnswer::Call };
    // SAFETY: as above.
    let call = unsafe { kept_call(frame, function) };
    let mut waits = 0;
    loop {
        match with_keeper(|keeper| keeper.before(&call, wanted)) {
            Some(Keeping::First(real)) => {
                // SAFETY: the keeper has it from a call of that function.
                let result = unsafe { call_really(thread, frame, real) };
                let _ = with_keeper(|keeper| keeper.given_up(call.module, result));
            }
            Some(Keeping::Wait) if waits < MOST_WAITS => {
                waits += 1;
                sys::give_way();
            }
            Some(Keeping::Code(code, kind)) => {
                count(kind, Fix::count_applied);
                return FixAnswer::Replaced(code);
            }
            Some(Keeping::Session(handle)) => {
                count(KeepFix::Session, Fix::count_applied);
                // SAFETY: where the function would have written the session.
                unsafe { *(frame.arguments[4] as *mut u64) = handle };
                return FixAnswer::Replaced(CKR_OK);
            }
            Some(Keeping::Refused(kind)) => {
                count(kind, Fix::count_refused);
                return FixAnswer::Call;
            }
            Some(Keeping::Call | Keeping::Wait) | None => return FixAnswer::Call,
        }
    }
}

/// A C_Logout or C_CloseSession of the module. What it calls is observed as what any call calls is.
///
/// # Safety
/// The address is that of such a function.
unsafe fn call_really(thread: &mut Thread, frame: &Frame, real: RealCall) -> u64 {
    // SAFETY: CK_RV of a CK_SESSION_HANDLE (PKCS#11 v2.40, 5.6).
    let function: unsafe extern "C" fn(u64) -> u64 = unsafe { core::mem::transmute(real.address) };
    thread.leave();
    // SAFETY: as above.
    let result = unsafe { function(real.session) };
    thread.go_on(frame.place());
    result
}

/// After a call that the function has answered.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after_call(frame: &Frame, function: u32) {
    if wanted().is_none() {
        return;
    }
    // SAFETY: as above.
    let call = unsafe { kept_call(frame, function) };
    let [slot, kind, _, notify, to, _] = frame.arguments;
    let opened = function == known::C_OPEN_SESSION && frame.result == CKR_OK && to != 0;
    let _ = with_keeper(|keeper| {
        keeper.after(&call, frame.result);
        if opened {
            // SAFETY: where the function has just written the session.
            let handle = unsafe { *(to as *const u64) };
            keeper.opened(SessionKey { module: call.module, handle }, slot, kind, notify != 0);
        }
    });
}

/// The process ends: digests go now, whatever becomes of its memory.
pub(super) fn wipe() {
    if wanted().is_some() {
        let _ = with_keeper(SessionKeeper::wipe);
    }
}
