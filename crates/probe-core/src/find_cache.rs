//! `cache-find`: what a search for objects found is given again, until something could have changed
//! it.
//!
//! Kept are complete enumerations that found something, by module, slot, kind of session and
//! template, of which only two digests under the run's key are kept. All of a module's are forgotten
//! when objects are made, changed or destroyed, at a login, a logout, a new PIN or token, at the end
//! of any session, at a slot's event, and when a call fails in a way that says that a device, a
//! session or a handle is gone. What another process changes is not noticed, which whoever tries
//! this fix is told.
//!
//! A search that is answered from here behaves as the module's own would: one at a time in a
//! session, as many handles at a time as were asked for, and of what was there when it began.

use crate::names::known;

/// Sessions of a process at a time.
const SESSIONS: usize = 256;
/// Answers that are kept.
const ANSWERS: usize = 64;
/// Handles of an answer, at most.
const HANDLES: usize = 64;

const CKR_OK: u64 = 0;
const CKR_OPERATION_ACTIVE: u64 = 0x90;

/// What a call means for what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindCall {
    /// C_OpenSession: what a session is, is known from here.
    Open,
    /// C_CloseSession.
    Close,
    /// C_CloseAllSessions, of a slot.
    CloseAll,
    /// C_Initialize and C_Finalize: no session is left.
    Finalise,
    /// C_FindObjectsInit.
    Begin,
    /// C_FindObjects.
    Next,
    /// C_FindObjectsFinal.
    End,
    /// C_SessionCancel: it may end a search.
    Cancel,
    /// Objects may be others afterwards.
    Forget,
    /// A call that changes no object.
    Other,
}

/// What a call of a PKCS#11 function means, by its number.
pub fn find_call(function: u32) -> FindCall {
    match function {
        known::C_OPEN_SESSION => FindCall::Open,
        known::C_CLOSE_SESSION => FindCall::Close,
        known::C_CLOSE_ALL_SESSIONS => FindCall::CloseAll,
        known::C_INITIALIZE | known::C_FINALIZE => FindCall::Finalise,
        known::C_FIND_OBJECTS_INIT => FindCall::Begin,
        known::C_FIND_OBJECTS => FindCall::Next,
        known::C_FIND_OBJECTS_FINAL => FindCall::End,
        known::C_SESSION_CANCEL => FindCall::Cancel,
        known::C_CREATE_OBJECT
        | known::C_COPY_OBJECT
        | known::C_DESTROY_OBJECT
        | known::C_SET_ATTRIBUTE_VALUE
        | known::C_GENERATE_KEY..=known::C_DERIVE_KEY
        | known::C_UNWRAP_KEY_AUTHENTICATED
        | known::C_ENCAPSULATE_KEY
        | known::C_DECAPSULATE_KEY
        | known::C_INIT_TOKEN
        | known::C_INIT_PIN
        | known::C_SET_PIN
        | known::C_LOGIN
        | known::C_LOGIN_USER
        | known::C_LOGOUT
        | known::C_WAIT_FOR_SLOT_EVENT => FindCall::Forget,
        _ => FindCall::Other,
    }
}

/// Whether a return code says that a device, a session or a handle is not what it was.
pub fn is_lost(code: u64) -> bool {
    const LOST: [u64; 16] = [
        0x05,  // CKR_GENERAL_ERROR
        0x06,  // CKR_FUNCTION_FAILED
        0x30,  // CKR_DEVICE_ERROR
        0x31,  // CKR_DEVICE_MEMORY
        0x32,  // CKR_DEVICE_REMOVED
        0x60,  // CKR_KEY_HANDLE_INVALID
        0x82,  // CKR_OBJECT_HANDLE_INVALID
        0xB0,  // CKR_SESSION_CLOSED
        0xB3,  // CKR_SESSION_HANDLE_INVALID
        0xE0,  // CKR_TOKEN_NOT_PRESENT
        0xE1,  // CKR_TOKEN_NOT_RECOGNIZED
        0x101, // CKR_USER_NOT_LOGGED_IN
        0x113, // CKR_WRAPPING_KEY_HANDLE_INVALID
        0xF0,  // CKR_UNWRAPPING_KEY_HANDLE_INVALID
        0x190, // CKR_CRYPTOKI_NOT_INITIALIZED
        0x03,  // CKR_SLOT_ID_INVALID
    ];
    LOST.contains(&code)
}

/// A session as its program knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionKey {
    /// A number of its module, from 1.
    pub module: u64,
    /// Its handle (CK_SESSION_HANDLE).
    pub handle: u64,
}

/// What becomes of the beginning of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The module is to answer.
    Call,
    /// The same, but for want of room, or because the session was opened unseen.
    Unknown,
    /// It is answered, with this return code.
    Answered(u64),
}

const NO_SEARCH: u32 = 0;
/// The module searches, and what it finds is listened to.
const LISTENED: u32 = 1;
/// The module searches, and nothing of it is kept.
const IGNORED: u32 = 2;
/// It is answered from here.
const SERVED: u32 = 3;

#[derive(Clone, Copy)]
#[repr(C)]
struct Session {
    /// 0: nobody's.
    module: u64,
    handle: u64,
    slot: u64,
    kind: u64,
    search: u32,
    /// An answer was shorter than what was asked for: nothing is left.
    complete: u32,
    question: [u64; 2],
    epoch: u64,
    count: usize,
    position: usize,
    handles: [u64; HANDLES],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Answer {
    /// 0: none.
    module: u64,
    slot: u64,
    kind: u64,
    question: [u64; 2],
    count: usize,
    handles: [u64; HANDLES],
}

/// All that is kept in a process. Zeroed memory is an empty one.
#[repr(C)]
pub struct FindCache {
    sessions: [Session; SESSIONS],
    answers: [Answer; ANSWERS],
    /// Raised whenever something is forgotten: a search that began before is not kept.
    epoch: u64,
    next: usize,
}

impl core::fmt::Debug for FindCache {
    /// Without handles.
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.debug_struct("FindCache").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl FindCache {
    /// A session was opened, of that kind (CKF_RW_SESSION and the like).
    pub fn opened(&mut self, key: SessionKey, slot: u64, kind: u64) {
        let at = self.place(key).or_else(|| self.sessions.iter().position(|it| it.module == 0));
        if let Some(session) = at.and_then(|at| self.sessions.get_mut(at)) {
            session.module = key.module;
            session.handle = key.handle;
            session.slot = slot;
            session.kind = kind;
            session.search = NO_SEARCH;
        }
    }

    /// A session ends, and its objects with it.
    pub fn closed(&mut self, key: SessionKey) {
        self.forget(key.module);
        if let Some(session) = self.session(key) {
            session.module = 0;
        }
    }

    /// All sessions of a module end, or those of a slot.
    pub fn all_closed(&mut self, module: u64, slot: Option<u64>) {
        self.forget(module);
        let ends =
            |it: &&mut Session| it.module == module && slot.is_none_or(|slot| slot == it.slot);
        self.sessions.iter_mut().filter(ends).for_each(|it| it.module = 0);
    }

    /// Objects of a module may be others now.
    pub fn forget(&mut self, module: u64) {
        self.epoch = self.epoch.wrapping_add(1);
        let its = self.answers.iter_mut().filter(|answer| answer.module == module);
        its.for_each(|answer| answer.module = 0);
    }

    /// C_FindObjectsInit is about to be called, with a template of that digest.
    pub fn before_begin(&mut self, key: SessionKey, question: [u64; 2]) -> Begun {
        let Some(at) = self.place(key) else { return Begun::Unknown };
        let Some(session) = self.sessions.get_mut(at) else { return Begun::Unknown };
        match session.search {
            SERVED => return Begun::Answered(CKR_OPERATION_ACTIVE),
            NO_SEARCH => {}
            _ => return Begun::Call,
        }
        let is_it = |answer: &&Answer| {
            answer.module == key.module
                && answer.slot == session.slot
                && answer.kind == session.kind
                && answer.question == question
        };
        let Some(answer) = self.answers.iter().find(is_it) else { return Begun::Call };
        session.search = SERVED;
        session.count = answer.count;
        session.position = 0;
        session.handles = answer.handles;
        Begun::Answered(CKR_OK)
    }

    /// The module has begun a search. `None`: of a template that nothing is known of.
    pub fn after_begin(&mut self, key: SessionKey, question: Option<[u64; 2]>) {
        let epoch = self.epoch;
        if let Some(session) = self.session(key) {
            session.search = if question.is_some() { LISTENED } else { IGNORED };
            session.question = question.unwrap_or_default();
            session.epoch = epoch;
            session.count = 0;
            session.complete = 0;
        }
    }

    /// Whether the session's search is answered from here.
    pub fn is_served(&mut self, key: SessionKey) -> bool {
        self.session(key).is_some_and(|session| session.search == SERVED)
    }

    /// The next handles of a search that is answered from here: how many.
    pub fn next_objects(&mut self, key: SessionKey, to: &mut [u64]) -> usize {
        let Some(session) = self.session(key) else { return 0 };
        let left = session.handles.get(session.position..session.count).unwrap_or_default();
        let count = left.len().min(to.len());
        for (to, handle) in to.iter_mut().zip(left) {
            *to = *handle;
        }
        session.position += count;
        count
    }

    /// The module has found objects, of at most so many.
    pub fn after_next(&mut self, key: SessionKey, found: &[u64], most: u64) {
        let Some(session) = self.session(key).filter(|it| it.search == LISTENED) else { return };
        let end = session.count + found.len();
        let Some(to) = session.handles.get_mut(session.count..end) else {
            session.search = IGNORED;
            return;
        };
        for (to, handle) in to.iter_mut().zip(found) {
            *to = *handle;
        }
        session.count = end;
        session.complete |= u32::from((found.len() as u64) < most);
    }

    /// A search that is answered from here ends. False: the module's does, if there is one.
    pub fn before_end(&mut self, key: SessionKey) -> bool {
        let Some(session) = self.session(key) else { return false };
        let is_served = session.search == SERVED;
        if is_served {
            session.search = NO_SEARCH;
        }
        is_served
    }

    /// The module has ended a search.
    pub fn after_end(&mut self, key: SessionKey) {
        let epoch = self.epoch;
        let Some(at) = self.place(key) else { return };
        let Some(session) = self.sessions.get_mut(at) else { return };
        let is_whole = session.search == LISTENED
            && session.complete != 0
            && session.count > 0
            && session.epoch == epoch;
        session.search = NO_SEARCH;
        if is_whole {
            let place = self.next % ANSWERS;
            self.next = self.next.wrapping_add(1);
            if let Some(answer) = self.answers.get_mut(place) {
                answer.module = session.module;
                answer.slot = session.slot;
                answer.kind = session.kind;
                answer.question = session.question;
                answer.count = session.count;
                answer.handles = session.handles;
            }
        }
    }

    /// A call of a search failed, or it was cancelled: nothing of it is kept.
    pub fn broken_off(&mut self, key: SessionKey, is_over: bool) {
        if let Some(session) = self.session(key) {
            session.search = if is_over { NO_SEARCH } else { IGNORED };
        }
    }

    fn place(&self, key: SessionKey) -> Option<usize> {
        self.sessions.iter().position(|it| it.module == key.module && it.handle == key.handle)
    }

    fn session(&mut self, key: SessionKey) -> Option<&mut Session> {
        let at = self.place(key)?;
        self.sessions.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc_zeroed};
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;

    const ONE: SessionKey = SessionKey { module: 1, handle: 10 };
    const OTHER: SessionKey = SessionKey { module: 1, handle: 11 };
    const QUESTION: [u64; 2] = [7, 8];
    const ACTIVE: Begun = Begun::Answered(CKR_OPERATION_ACTIVE);
    const ANSWERED: Begun = Begun::Answered(CKR_OK);

    fn cache() -> Box<FindCache> {
        // SAFETY: zeroed memory is an empty one, as the probe maps it.
        let mut cache: Box<FindCache> =
            unsafe { Box::from_raw(alloc_zeroed(Layout::new::<FindCache>()).cast()) };
        cache.opened(ONE, 0, 4);
        cache.opened(OTHER, 0, 4);
        cache
    }

    /// The module's own search, which finds these, of at most so many at a time.
    fn search(cache: &mut FindCache, found: &[u64], most: u64) {
        assert_eq!(cache.before_begin(ONE, QUESTION), Begun::Call);
        cache.after_begin(ONE, Some(QUESTION));
        cache.after_next(ONE, found, most);
        assert!(!cache.before_end(ONE));
        cache.after_end(ONE);
    }

    fn given(cache: &mut FindCache, key: SessionKey, most: usize) -> Vec<u64> {
        let mut to = std::vec![0; most];
        let count = cache.next_objects(key, &mut to);
        to.truncate(count);
        to
    }

    #[test]
    fn a_complete_answer_is_given_again_to_sessions_of_its_kind() {
        let mut cache = cache();
        search(&mut cache, &[1, 2, 3], 10);
        assert_eq!(cache.before_begin(OTHER, QUESTION), ANSWERED);
        assert_eq!(cache.before_begin(OTHER, QUESTION), ACTIVE);
        assert_eq!(given(&mut cache, OTHER, 2), [1, 2]);
        assert_eq!(given(&mut cache, OTHER, 2), [3]);
        assert_eq!(given(&mut cache, OTHER, 2), [0; 0]);
        assert!(cache.before_end(OTHER) && !cache.before_end(OTHER));
        assert_eq!(cache.before_begin(OTHER, [7, 9]), Begun::Call);
        let writes = SessionKey { module: 1, handle: 12 };
        cache.opened(writes, 0, 6);
        assert_eq!(cache.before_begin(writes, QUESTION), Begun::Call);
        let elsewhere = SessionKey { module: 1, handle: 13 };
        cache.opened(elsewhere, 1, 4);
        assert_eq!(cache.before_begin(elsewhere, QUESTION), Begun::Call);
        let of_another = SessionKey { module: 2, handle: 10 };
        assert_eq!(cache.before_begin(of_another, QUESTION), Begun::Unknown);
    }

    #[test]
    fn what_is_not_whole_is_not_kept() {
        // There may be more; there is none; there are too many.
        let many: Vec<u64> = (0..=HANDLES as u64).collect();
        for (found, most) in [(&[1, 2][..], 2), (&[], 10), (&many[..], 1000)] {
            let mut cache = cache();
            search(&mut cache, found, most);
            assert_eq!(cache.before_begin(ONE, QUESTION), Begun::Call, "{found:?}");
        }
        let mut cache = cache();
        cache.after_begin(ONE, None);
        cache.after_next(ONE, &[1], 10);
        cache.after_end(ONE);
        assert_eq!(cache.before_begin(ONE, [0; 2]), Begun::Call);
    }

    #[test]
    fn whatever_may_change_objects_makes_it_forget() {
        type Change = fn(&mut FindCache);
        let changes: [Change; 4] = [
            |cache| cache.forget(1),
            |cache| cache.closed(OTHER),
            |cache| cache.all_closed(1, Some(3)),
            |cache| {
                cache.all_closed(1, None);
                cache.opened(ONE, 0, 4);
            },
        ];
        for change in changes {
            let mut cache = cache();
            search(&mut cache, &[1], 10);
            change(&mut cache);
            assert_eq!(cache.before_begin(ONE, QUESTION), Begun::Call);
        }
        // While the module searches, or between two of its answers.
        let mut cache = cache();
        cache.after_begin(ONE, Some(QUESTION));
        cache.after_next(ONE, &[1], 10);
        cache.forget(1);
        cache.after_end(ONE);
        assert_eq!(cache.before_begin(ONE, QUESTION), Begun::Call);
        // A search that has begun goes on as it began.
        search(&mut cache, &[1, 2], 10);
        assert_eq!(cache.before_begin(ONE, QUESTION), ANSWERED);
        cache.forget(1);
        assert_eq!(given(&mut cache, ONE, 10), [1, 2]);
    }

    #[test]
    fn each_function_that_changes_objects_is_known() {
        let of =
            |name: &str| find_call(crate::names::function_number(name.as_bytes()).unwrap() as u32);
        for name in [
            "C_CreateObject",
            "C_CopyObject",
            "C_DestroyObject",
            "C_SetAttributeValue",
            "C_GenerateKey",
            "C_GenerateKeyPair",
            "C_WrapKey",
            "C_UnwrapKey",
            "C_DeriveKey",
            "C_EncapsulateKey",
            "C_DecapsulateKey",
            "C_UnwrapKeyAuthenticated",
            "C_InitToken",
            "C_InitPIN",
            "C_SetPIN",
            "C_Login",
            "C_LoginUser",
            "C_Logout",
            "C_WaitForSlotEvent",
        ] {
            assert_eq!(of(name), FindCall::Forget, "{name}");
        }
        assert_eq!(of("C_Finalize"), FindCall::Finalise);
        assert_eq!(of("C_CloseSession"), FindCall::Close);
        assert_eq!(of("C_CloseAllSessions"), FindCall::CloseAll);
        for name in ["C_Sign", "C_SignInit", "C_GetAttributeValue", "SCardTransmit", "poll"] {
            assert_eq!(of(name), FindCall::Other, "{name}");
        }
        assert!(is_lost(0x32) && !is_lost(0) && !is_lost(0x150));
    }

    #[test]
    fn each_function_of_sessions_and_searches_is_known() {
        for (function, call) in [
            (known::C_OPEN_SESSION, FindCall::Open),
            (known::C_CLOSE_SESSION, FindCall::Close),
            (known::C_CLOSE_ALL_SESSIONS, FindCall::CloseAll),
            (known::C_INITIALIZE, FindCall::Finalise),
            (known::C_FIND_OBJECTS_INIT, FindCall::Begin),
            (known::C_FIND_OBJECTS, FindCall::Next),
            (known::C_FIND_OBJECTS_FINAL, FindCall::End),
            (known::C_SESSION_CANCEL, FindCall::Cancel),
        ] {
            assert_eq!(find_call(function), call, "{function}");
        }
    }

    #[test]
    fn only_a_search_that_is_answered_from_here_is_served() {
        let mut cache = cache();
        assert!(!cache.is_served(ONE));
        search(&mut cache, &[1], 10);
        assert!(!cache.is_served(ONE));
        assert_eq!(cache.before_begin(ONE, QUESTION), ANSWERED);
        assert!(cache.is_served(ONE) && !cache.is_served(OTHER));
        cache.before_end(ONE);
        assert!(!cache.is_served(ONE));
        cache.after_begin(ONE, Some(QUESTION));
        assert!(!cache.is_served(ONE), "the module searches");
    }

    #[test]
    fn sessions_of_another_slot_or_module_stay() {
        let mut cache = cache();
        let elsewhere = SessionKey { module: 1, handle: 12 };
        let of_another = SessionKey { module: 2, handle: 10 };
        cache.opened(elsewhere, 1, 4);
        cache.opened(of_another, 0, 4);
        cache.all_closed(1, Some(0));
        assert_eq!(cache.before_begin(ONE, QUESTION), Begun::Unknown);
        assert_eq!(cache.before_begin(OTHER, QUESTION), Begun::Unknown);
        assert_eq!(cache.before_begin(elsewhere, QUESTION), Begun::Call);
        assert_eq!(cache.before_begin(of_another, QUESTION), Begun::Call);
        cache.all_closed(1, None);
        assert_eq!(cache.before_begin(elsewhere, QUESTION), Begun::Unknown);
        assert_eq!(cache.before_begin(of_another, QUESTION), Begun::Call);
    }

    #[test]
    fn as_many_answers_are_kept_as_there_is_room_for_and_then_the_first_goes() {
        let mut cache = cache();
        let search = |cache: &mut FindCache, number: u64| {
            cache.after_begin(ONE, Some([number, 0]));
            cache.after_next(ONE, &[number], 10);
            cache.after_end(ONE);
        };
        let is_kept = |cache: &mut FindCache, number: u64| {
            let is_kept = cache.before_begin(ONE, [number, 0]) == ANSWERED;
            assert!(!is_kept || given(cache, ONE, 10) == [number]);
            cache.before_end(ONE);
            is_kept
        };
        let most = ANSWERS as u64;
        (0..most).for_each(|number| search(&mut cache, number));
        assert!((0..most).all(|number| is_kept(&mut cache, number)));
        search(&mut cache, most);
        assert!(!is_kept(&mut cache, 0));
        assert!((1..=most).all(|number| is_kept(&mut cache, number)));
    }

    #[test]
    fn nothing_of_a_search_that_fails_is_kept() {
        // It is over, or goes on: either way its answers are not those of a whole search.
        for is_over in [true, false] {
            let mut cache = cache();
            cache.after_begin(ONE, Some(QUESTION));
            cache.after_next(ONE, &[1], 10);
            cache.broken_off(ONE, is_over);
            cache.after_next(ONE, &[2], 10);
            cache.after_end(ONE);
            assert_eq!(cache.before_begin(ONE, QUESTION), Begun::Call, "{is_over}");
        }
        // After one that is over the next is answered; beside one that goes on it is the module's.
        for (is_over, next) in [(true, ANSWERED), (false, Begun::Call)] {
            let mut cache = cache();
            search(&mut cache, &[1], 10);
            cache.after_begin(ONE, Some(QUESTION));
            cache.broken_off(ONE, is_over);
            assert_eq!(cache.before_begin(ONE, QUESTION), next);
        }
    }

    #[test]
    fn its_debug_form_has_no_handles() {
        assert_eq!(std::format!("{:?}", cache()), "FindCache { epoch: 0, .. }");
    }
}
