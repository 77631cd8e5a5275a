//! `keep-login` and `keep-session`: what a program gives up stays, for as long as nobody can tell.
//!
//! A login is kept over C_Logout, and answers the next C_Login of the same user with the same PIN, of
//! which two digests under the run's key are compared; a session is kept over C_CloseSession, and is
//! the answer to the next C_OpenSession of its slot and kind. Before any call that could notice, what
//! was kept is really given up ([`Keeping::First`]). So a wrong PIN reaches the module as it would
//! without, and spends as many tries.
//!
//! Not kept is what the standard ties to it (PKCS#11 v2.40, 5.6): the login of a security officer, or
//! by a PIN pad; one while an operation is active, or while a session is open in which objects were
//! made, since a logout or an end destroys them; a session that reports to the program (Notify). A
//! login for one operation (CKU_CONTEXT_SPECIFIC) always passes.

use core::hash::Hasher;

use crate::find_cache::{SessionKey, is_lost};
use crate::names::known;

/// Sessions of a process at a time, those that are kept included.
const SESSIONS: usize = 256;
/// Tokens of a process with a login at a time.
const LOGINS: usize = 16;
/// Modules that give something up at a time: one, or a proxy and the modules behind it.
const MODULES: usize = 8;

const CKR_OK: u64 = 0;
const CKR_SIGNATURE_INVALID: u64 = 0xC0;
const CKR_SIGNATURE_LEN_RANGE: u64 = 0xC1;
const CKU_SO: u64 = 0;
const CKU_USER: u64 = 1;
const CKU_CONTEXT_SPECIFIC: u64 = 2;

/// What may be kept now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptThings {
    /// `keep-login`.
    pub login: bool,
    /// `keep-session`.
    pub session: bool,
}

/// A call of a PKCS#11 module.
#[derive(Clone, Copy, Debug)]
pub struct KeptCall {
    /// The function's number.
    pub function: u32,
    /// A number of its module, from 1.
    pub module: u64,
    /// The first six arguments.
    pub arguments: [u64; 6],
    /// Of C_Login: digests of its user and PIN under the run's key; `None` without a PIN.
    pub pin: Option<[u64; 2]>,
    /// The function's address in the module.
    pub address: usize,
}

/// Two digests of C_Login's user and PIN, of which nothing else is kept. `None`: there is no PIN, or
/// none of a length that a PIN has.
///
/// # Safety
/// `pin` is null or has so many bytes.
pub unsafe fn pin_digests(
    user: u64,
    pin: u64,
    length: u64,
    keys: [[u64; 2]; 2],
) -> Option<[u64; 2]> {
    const LONGEST_PIN: u64 = 256;
    if pin == 0 || length == 0 || length > LONGEST_PIN {
        return None;
    }
    // SAFETY: the caller's promise.
    let pin = unsafe { core::slice::from_raw_parts(pin as *const u8, length as usize) };
    Some(keys.map(|[first, second]| {
        #[allow(deprecated, reason = "SipHash-2-4 with a key, which has no other name in core")]
        let mut digest = core::hash::SipHasher::new_with_keys(first, second);
        digest.write_u64(user);
        digest.write_u64(length);
        digest.write(pin);
        digest.finish()
    }))
}

/// One of the two fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepFix {
    /// `keep-login`.
    Login,
    /// `keep-session`.
    Session,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// The module is to answer.
    Call,
    /// The same, since that one could not keep what it gives up.
    Refused(KeepFix),
    /// It is answered with this return code.
    Code(u64, KeepFix),
    /// C_OpenSession is answered with this session.
    Session(u64),
    /// This is to be called first, and [`SessionKeeper::given_up`] told of it; then the question is to
    /// be asked again.
    First(RealCall),
    /// Another thread gives something up at the moment: the question is to be asked again.
    Wait,
}

/// A C_Logout or C_CloseSession of the module itself, each of which takes a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealCall {
    /// Of the function, in the module.
    pub address: usize,
    /// Its argument.
    pub session: u64,
}

/// What a call has to do with sessions and logins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// It could not tell: it has no session, and asks for nothing that a session changes.
    Harmless,
    Initialise,
    Finalise,
    Open,
    Close,
    CloseAll,
    Login,
    Logout,
    /// About a token: it counts sessions, or needs that there are none.
    Token,
    /// C_WaitForSlotEvent, of all slots.
    Slots,
    /// Anything else, with a session.
    Notices,
}

const fn meaning(function: u32) -> Meaning {
    match function {
        known::C_GET_INFO
        | known::C_GET_FUNCTION_LIST
        | known::C_GET_INTERFACE_LIST
        | known::C_GET_INTERFACE
        | known::C_GET_SLOT_LIST
        | known::C_GET_MECHANISM_LIST
        | known::C_GET_MECHANISM_INFO => Meaning::Harmless,
        known::C_INITIALIZE => Meaning::Initialise,
        known::C_FINALIZE => Meaning::Finalise,
        known::C_OPEN_SESSION => Meaning::Open,
        known::C_CLOSE_SESSION => Meaning::Close,
        known::C_CLOSE_ALL_SESSIONS => Meaning::CloseAll,
        known::C_LOGIN => Meaning::Login,
        known::C_LOGOUT => Meaning::Logout,
        known::C_GET_SLOT_INFO | known::C_GET_TOKEN_INFO | known::C_INIT_TOKEN => Meaning::Token,
        known::C_WAIT_FOR_SLOT_EVENT => Meaning::Slots,
        _ => Meaning::Notices,
    }
}

/// What a call that went well does to the operations of its session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// One begins, of that kind.
    Begins(u32),
    /// One ends, if there was room for what it gives: the argument that says where that goes.
    Ends(u32, Option<usize>),
    /// What cannot be followed, or makes an object that ends with the session.
    Spoils,
    Nothing,
}

const fn work(function: u32) -> Work {
    const ENCRYPT: u32 = 1;
    const DECRYPT: u32 = 2;
    const DIGEST: u32 = 4;
    const SIGN: u32 = 8;
    const SIGN_RECOVER: u32 = 16;
    const VERIFY: u32 = 32;
    const VERIFY_RECOVER: u32 = 64;
    const SEARCH: u32 = 128;
    match function {
        known::C_ENCRYPT_INIT => Work::Begins(ENCRYPT),
        known::C_DECRYPT_INIT => Work::Begins(DECRYPT),
        known::C_DIGEST_INIT => Work::Begins(DIGEST),
        known::C_SIGN_INIT => Work::Begins(SIGN),
        known::C_SIGN_RECOVER_INIT => Work::Begins(SIGN_RECOVER),
        known::C_VERIFY_INIT => Work::Begins(VERIFY),
        known::C_VERIFY_RECOVER_INIT => Work::Begins(VERIFY_RECOVER),
        known::C_FIND_OBJECTS_INIT => Work::Begins(SEARCH),
        known::C_ENCRYPT => Work::Ends(ENCRYPT, Some(3)),
        known::C_ENCRYPT_FINAL => Work::Ends(ENCRYPT, Some(1)),
        known::C_DECRYPT => Work::Ends(DECRYPT, Some(3)),
        known::C_DECRYPT_FINAL => Work::Ends(DECRYPT, Some(1)),
        known::C_DIGEST => Work::Ends(DIGEST, Some(3)),
        known::C_DIGEST_FINAL => Work::Ends(DIGEST, Some(1)),
        known::C_SIGN => Work::Ends(SIGN, Some(3)),
        known::C_SIGN_FINAL => Work::Ends(SIGN, Some(1)),
        known::C_SIGN_RECOVER => Work::Ends(SIGN_RECOVER, Some(3)),
        known::C_VERIFY | known::C_VERIFY_FINAL => Work::Ends(VERIFY, None),
        known::C_VERIFY_RECOVER => Work::Ends(VERIFY_RECOVER, Some(3)),
        known::C_FIND_OBJECTS_FINAL => Work::Ends(SEARCH, None),
        known::C_CREATE_OBJECT
        | known::C_COPY_OBJECT
        | known::C_GENERATE_KEY
        | known::C_GENERATE_KEY_PAIR
        | known::C_UNWRAP_KEY
        | known::C_DERIVE_KEY
        | known::C_SET_OPERATION_STATE => Work::Spoils,
        // Of version 3: operations by messages, keys that are encapsulated, calls that go on.
        known::C_SESSION_CANCEL.. => Work::Spoils,
        _ => Work::Nothing,
    }
}

const OPEN: u32 = 1;
/// The program has closed it.
const KEPT: u32 = 2;

#[derive(Clone, Copy)]
#[repr(C)]
struct Session {
    /// 0: nobody's.
    module: u64,
    handle: u64,
    slot: u64,
    /// CKF_RW_SESSION and the like.
    kind: u64,
    state: u32,
    /// Operations that are active, by kind.
    active: u32,
    /// Nothing that is given up here is kept.
    spoiled: u32,
    /// C_CloseSession of the module, of one that is kept.
    close: usize,
}

/// The program has logged in.
const LOGGED_IN: u32 = 1;
/// The program has logged out.
const LOGIN_KEPT: u32 = 2;

#[derive(Clone, Copy)]
#[repr(C)]
struct Login {
    /// 0: nobody's.
    module: u64,
    slot: u64,
    state: u32,
    /// Whether there is a digest, of a user whose login may be kept.
    is_known: u32,
    pin: [u64; 2],
    /// C_Logout of the module, once it was called.
    logout: usize,
}

/// All that is known in a process. Zeroed memory is one of a process without sessions.
#[repr(C)]
pub struct SessionKeeper {
    sessions: [Session; SESSIONS],
    logins: [Login; LOGINS],
    /// Modules of which a real call goes on; 0: none.
    giving_up: [u64; MODULES],
    /// More is there than is known: nothing more is kept.
    overflown: u32,
}

impl core::fmt::Debug for SessionKeeper {
    /// Without digests.
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.debug_struct("SessionKeeper").field("overflown", &self.overflown).finish_non_exhaustive()
    }
}

impl SessionKeeper {
    /// What becomes of a call that is about to be made.
    pub fn before(&mut self, call: &KeptCall, wanted: KeptThings) -> Keeping {
        if self.giving_up.contains(&call.module) {
            return Keeping::Wait;
        }
        let answer = match self.unwanted(call.module, wanted) {
            Some(real) => Keeping::First(real),
            None => self.answer(call, wanted),
        };
        if let Keeping::First(_) = answer
            && let Some(free) = self.giving_up.iter_mut().find(|it| **it == 0)
        {
            *free = call.module;
        }
        answer
    }

    /// A real call of a module is over. Where it failed, nothing more is kept.
    pub fn given_up(&mut self, module: u64, result: u64) {
        if let Some(place) = self.giving_up.iter_mut().find(|it| **it == module) {
            *place = 0;
        }
        if result != CKR_OK {
            self.overflown = 1;
        }
    }

    fn answer(&mut self, call: &KeptCall, wanted: KeptThings) -> Keeping {
        let meaning = meaning(call.function);
        let [first, ..] = call.arguments;
        let session = match meaning {
            Meaning::Close | Meaning::Login | Meaning::Logout | Meaning::Notices => {
                self.session(SessionKey { module: call.module, handle: first })
            }
            _ => None,
        };
        // What the program has closed is not there for it: the module says so itself.
        if let Some(Session { state: KEPT, slot, .. }) = session
            && let Some(real) = self.give_up_session(call.module, slot)
        {
            return Keeping::First(real);
        }
        match meaning {
            Meaning::Harmless | Meaning::Initialise | Meaning::Finalise | Meaning::CloseAll => {
                Keeping::Call
            }
            Meaning::Open => self.before_open(call, wanted),
            Meaning::Close => self.before_close(call, session, wanted),
            Meaning::Login => self.before_login(call, session),
            Meaning::Logout => self.before_logout(call, session, wanted),
            Meaning::Token => self
                .give_up_login(call.module, Some(first))
                .or_else(|| self.give_up_session(call.module, first))
                .map_or(Keeping::Call, Keeping::First),
            Meaning::Slots => self.noticed(call.module, None),
            Meaning::Notices => self.noticed(call.module, session),
        }
    }

    /// A call that the module has answered.
    pub fn after(&mut self, call: &KeptCall, result: u64) {
        if is_lost(result) {
            self.doubt(call.module);
        }
        let [first, second, third, fourth, ..] = call.arguments;
        let key = SessionKey { module: call.module, handle: first };
        match (meaning(call.function), result) {
            (Meaning::Initialise | Meaning::Finalise, CKR_OK) => self.end_all(call.module, None),
            (Meaning::CloseAll, CKR_OK) => self.end_all(call.module, Some(first)),
            (Meaning::Close, CKR_OK) => self.closed(key),
            (Meaning::Login, CKR_OK) if second != CKU_CONTEXT_SPECIFIC => {
                self.logged_in(key, call.pin.filter(|_| second == CKU_USER));
            }
            (Meaning::Logout, CKR_OK) => {
                if let Some(session) = self.session(key) {
                    self.logged_out(call.module, session.slot);
                }
            }
            _ => {}
        }
        // Another user's, by name; and what is done with a PIN makes digests of it old.
        if matches!(call.function, known::C_LOGIN_USER | known::C_INIT_PIN | known::C_SET_PIN) {
            self.doubt(call.module);
            if result == CKR_OK && call.function == known::C_LOGIN_USER {
                self.logged_in(key, None);
            }
        }
        let Some(session) = self.session_mut(key) else { return };
        let is_room = |at: usize| [first, second, third, fourth][at] != 0;
        let is_verdict = matches!(result, CKR_SIGNATURE_INVALID | CKR_SIGNATURE_LEN_RANGE);
        match work(call.function) {
            Work::Begins(kind) if result == CKR_OK => session.active |= kind,
            Work::Ends(kind, Some(at)) if result == CKR_OK && is_room(at) => {
                session.active &= !kind;
            }
            Work::Ends(kind, None) if result == CKR_OK || is_verdict => session.active &= !kind,
            Work::Spoils if result == CKR_OK => session.spoiled = 1,
            _ => {}
        }
    }

    /// C_OpenSession has made a session of that slot and kind, which reports to the program or not.
    pub fn opened(&mut self, key: SessionKey, slot: u64, kind: u64, reports: bool) {
        let place = self.place(key).or_else(|| self.sessions.iter().position(|it| it.module == 0));
        match place.and_then(|at| self.sessions.get_mut(at)) {
            Some(session) => {
                *session = Session {
                    module: key.module,
                    handle: key.handle,
                    slot,
                    kind,
                    state: OPEN,
                    active: 0,
                    spoiled: u32::from(reports),
                    close: 0,
                };
            }
            None => self.overflown = 1,
        }
    }

    /// Takes the digests away.
    pub fn wipe(&mut self) {
        for login in &mut self.logins {
            login.pin = [0; 2];
            login.is_known = 0;
        }
    }

    /// Something that is kept of a module although its fix is switched off.
    fn unwanted(&mut self, module: u64, wanted: KeptThings) -> Option<RealCall> {
        let login = if wanted.login { None } else { self.give_up_login(module, None) };
        login.or_else(|| {
            let is_kept = |it: &&Session| it.module == module && it.state == KEPT;
            let kept = if wanted.session { None } else { self.sessions.iter().find(is_kept) };
            let slot = kept?.slot;
            self.give_up_session(module, slot)
        })
    }

    fn before_open(&mut self, call: &KeptCall, wanted: KeptThings) -> Keeping {
        let [slot, kind, _, notify, to, _] = call.arguments;
        let is_it = |it: &&mut Session| {
            it.module == call.module
                && it.slot == slot
                && it.kind == kind
                && it.state == KEPT
                && it.spoiled == 0
        };
        if wanted.session
            && notify == 0
            && to != 0
            && let Some(session) = self.sessions.iter_mut().find(is_it)
        {
            session.state = OPEN;
            return Keeping::Session(session.handle);
        }
        // A token has room for so many sessions: those that are kept take none of it.
        self.give_up_session(call.module, slot).map_or(Keeping::Call, Keeping::First)
    }

    fn before_close(
        &mut self,
        call: &KeptCall,
        session: Option<Session>,
        wanted: KeptThings,
    ) -> Keeping {
        let Some(session) = session else { return self.noticed(call.module, None) };
        let is_last = !self.sessions.iter().any(|it| {
            it.module == session.module
                && it.slot == session.slot
                && it.handle != session.handle
                && it.state == OPEN
        });
        let login = self.login(session.module, session.slot);
        let is_logged_in = login.is_some_and(|login| login.state == LOGGED_IN);
        // The end of the last session is a logout too (PKCS#11 v2.40, 5.6).
        let ends_login = is_last && is_logged_in;
        let may_stay = wanted.session
            && self.overflown == 0
            && session.spoiled == 0
            && session.active == 0
            && (!ends_login || wanted.login && login.is_some_and(Login::may_be_kept));
        if may_stay {
            let key = SessionKey { module: session.module, handle: session.handle };
            if let Some(session) = self.session_mut(key) {
                session.state = KEPT;
                session.close = call.address;
            }
            if ends_login && let Some(login) = self.login_mut(session.module, session.slot) {
                login.state = LOGIN_KEPT;
            }
            return Keeping::Code(CKR_OK, KeepFix::Session);
        }
        let other = if is_last { self.give_up_session(session.module, session.slot) } else { None };
        match other {
            Some(real) => Keeping::First(real),
            None if wanted.session => Keeping::Refused(KeepFix::Session),
            None => Keeping::Call,
        }
    }

    fn before_login(&mut self, call: &KeptCall, session: Option<Session>) -> Keeping {
        let Some(session) = session else { return self.noticed(call.module, None) };
        let (module, slot, user) = (session.module, session.slot, call.arguments[1]);
        if let Some(login) = self.login_mut(module, slot).filter(|it| it.state == LOGIN_KEPT) {
            let is_same = user == CKU_USER
                && login.is_known != 0
                && call.pin.is_some_and(|pin| pin == login.pin);
            if is_same {
                login.state = LOGGED_IN;
                return Keeping::Code(CKR_OK, KeepFix::Login);
            }
        }
        // A security officer logs in only where no session is open for reading alone.
        let session = if user == CKU_SO { self.give_up_session(module, slot) } else { None };
        session
            .or_else(|| self.give_up_login(module, Some(slot)))
            .map_or(Keeping::Call, Keeping::First)
    }

    fn before_logout(
        &mut self,
        call: &KeptCall,
        session: Option<Session>,
        wanted: KeptThings,
    ) -> Keeping {
        let Some(session) = session else { return self.noticed(call.module, None) };
        let is_busy = self.sessions.iter().any(|it| {
            it.module == session.module
                && it.slot == session.slot
                && (it.spoiled != 0 || it.active != 0)
        });
        let is_overflown = self.overflown != 0;
        let Some(login) = self.login_mut(session.module, session.slot) else {
            return Keeping::Call;
        };
        if login.state == LOGIN_KEPT {
            return self.noticed(call.module, Some(session));
        }
        login.logout = call.address;
        if !wanted.login {
            return Keeping::Call;
        }
        if is_busy || is_overflown || !login.may_be_kept() {
            return Keeping::Refused(KeepFix::Login);
        }
        login.state = LOGIN_KEPT;
        Keeping::Code(CKR_OK, KeepFix::Login)
    }

    /// A call that could tell whether somebody is logged in.
    fn noticed(&mut self, module: u64, session: Option<Session>) -> Keeping {
        let slot = session.map(|session| session.slot);
        self.give_up_login(module, slot).map_or(Keeping::Call, Keeping::First)
    }

    /// A login that is kept on a slot, or on any, is to end.
    fn give_up_login(&mut self, module: u64, slot: Option<u64>) -> Option<RealCall> {
        let is_it = |it: &&mut Login| {
            it.module == module && it.state == LOGIN_KEPT && slot.is_none_or(|slot| slot == it.slot)
        };
        let login = self.logins.iter_mut().find(is_it)?;
        let Login { slot, logout, .. } = *login;
        *login = Login::NONE;
        let session = self.sessions.iter().find(|it| it.module == module && it.slot == slot)?;
        Some(RealCall { address: logout, session: session.handle })
    }

    /// A session that is kept on a slot is to end.
    fn give_up_session(&mut self, module: u64, slot: u64) -> Option<RealCall> {
        let is_it = |it: &&Session| it.module == module && it.slot == slot && it.state == KEPT;
        let Session { handle, close, .. } = *self.sessions.iter().find(is_it)?;
        self.closed(SessionKey { module, handle });
        Some(RealCall { address: close, session: handle })
    }

    fn closed(&mut self, key: SessionKey) {
        let Some(session) = self.session_mut(key) else { return };
        let slot = session.slot;
        session.module = 0;
        if !self.sessions.iter().any(|it| it.module == key.module && it.slot == slot) {
            self.logged_out(key.module, slot);
        }
    }

    /// All sessions of a module have ended, or those of a slot.
    fn end_all(&mut self, module: u64, slot: Option<u64>) {
        let is_meant = |it: u64| slot.is_none_or(|slot| slot == it);
        for session in &mut self.sessions {
            if session.module == module && is_meant(session.slot) {
                session.module = 0;
            }
        }
        for login in &mut self.logins {
            if login.module == module && is_meant(login.slot) {
                *login = Login::NONE;
            }
        }
    }

    fn logged_in(&mut self, key: SessionKey, pin: Option<[u64; 2]>) {
        let slot = self.session(key).map(|session| session.slot);
        let free = |logins: &[Login; LOGINS]| logins.iter().position(|it| it.module == 0);
        let place = slot.and_then(|slot| {
            let same = |it: &Login| it.module == key.module && it.slot == slot;
            self.logins.iter().position(same).or_else(|| free(&self.logins))
        });
        match place.and_then(|at| self.logins.get_mut(at)).zip(slot) {
            Some((login, slot)) => {
                *login = Login {
                    module: key.module,
                    slot,
                    state: LOGGED_IN,
                    is_known: u32::from(pin.is_some()),
                    pin: pin.unwrap_or_default(),
                    logout: login.logout,
                };
            }
            None => self.overflown = 1,
        }
    }

    fn logged_out(&mut self, module: u64, slot: u64) {
        if let Some(login) = self.login_mut(module, slot) {
            *login = Login::NONE;
        }
    }

    /// A device, a session or a login of a module may be gone: nothing that is there now is kept.
    fn doubt(&mut self, module: u64) {
        for login in self.logins.iter_mut().filter(|it| it.module == module) {
            login.is_known = 0;
            login.pin = [0; 2];
        }
        for session in self.sessions.iter_mut().filter(|it| it.module == module) {
            session.spoiled = 1;
        }
    }

    fn login(&self, module: u64, slot: u64) -> Option<&Login> {
        self.logins.iter().find(|it| it.module == module && it.slot == slot)
    }

    fn login_mut(&mut self, module: u64, slot: u64) -> Option<&mut Login> {
        self.logins.iter_mut().find(|it| it.module == module && it.slot == slot)
    }

    fn place(&self, key: SessionKey) -> Option<usize> {
        self.sessions.iter().position(|it| it.module == key.module && it.handle == key.handle)
    }

    fn session(&self, key: SessionKey) -> Option<Session> {
        self.sessions.get(self.place(key)?).copied()
    }

    fn session_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        let at = self.place(key)?;
        self.sessions.get_mut(at)
    }
}

impl Login {
    const NONE: Self = Self { module: 0, slot: 0, state: 0, is_known: 0, pin: [0; 2], logout: 0 };

    /// Of a user whose PIN is known by its digest, where the way to end it is known.
    fn may_be_kept(&self) -> bool {
        self.is_known != 0 && self.logout != 0
    }
}

#[cfg(test)]
mod tests;
