//! Single calls, and programs of random calls of a model of a module: nobody can tell whether
//! sessions and logins were kept.

use std::alloc::{Layout, alloc_zeroed};
use std::boxed::Box;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const MODULE: u64 = 1;
const LOGOUT: usize = 0x1000;
const CLOSE: usize = 0x2000;
const BOTH: KeptThings = KeptThings { login: true, session: true };
const LOGIN: KeptThings = KeptThings { login: true, session: false };
const SESSION: KeptThings = KeptThings { login: false, session: true };
const NEITHER: KeptThings = KeptThings { login: false, session: false };

const CKR_PIN_INCORRECT: u64 = 0xA0;
const CKR_SESSION_HANDLE_INVALID: u64 = 0xB3;
const CKR_USER_NOT_LOGGED_IN: u64 = 0x101;
const CKR_OPERATION_ACTIVE: u64 = 0x90;
const CKR_OPERATION_NOT_INITIALIZED: u64 = 0x91;
const CKR_USER_ALREADY_LOGGED_IN: u64 = 0x100;
const CKF_RW_SESSION: u64 = 2;

fn keeper() -> Box<SessionKeeper> {
    // SAFETY: zeroed memory is one without sessions, as the probe maps it.
    unsafe { Box::from_raw(alloc_zeroed(Layout::new::<SessionKeeper>()).cast()) }
}

fn call(function: u32, arguments: [u64; 4]) -> KeptCall {
    let [first, second, third, fourth] = arguments;
    let pin = function == known::C_LOGIN && third != 0;
    KeptCall {
        function,
        module: MODULE,
        arguments: [first, second, third, fourth, 1, 0],
        // In the place of a digest: the PIN's number.
        pin: pin.then_some([third, second]),
        address: match function {
            known::C_LOGOUT => LOGOUT,
            known::C_CLOSE_SESSION => CLOSE,
            _ => 0,
        },
    }
}

/// A module with one token, whose PIN is 7, and which forgets what the standard says.
#[derive(Clone, Debug, Default)]
struct Model {
    /// Handles, with the kind, and whether a signature is active.
    sessions: Vec<(u64, u64, bool)>,
    /// Private objects of sessions: their session.
    objects: Vec<u64>,
    next: u64,
    user: bool,
    tries: u32,
    logins: u32,
    opened: u32,
}

const PIN: u64 = 7;

impl Model {
    fn session(&mut self, handle: u64) -> Option<&mut (u64, u64, bool)> {
        self.sessions.iter_mut().find(|(it, ..)| *it == handle)
    }

    fn logout(&mut self) {
        self.user = false;
        self.objects.clear();
        self.sessions.iter_mut().for_each(|session| session.2 = false);
    }

    /// What a call returns, and what it gives.
    fn answer(&mut self, function: u32, arguments: [u64; 4]) -> (u64, u64) {
        let [handle, second, third, fourth] = arguments;
        if function == known::C_OPEN_SESSION {
            self.next += 1;
            self.opened += 1;
            self.sessions.push((self.next, second, false));
            return (CKR_OK, self.next);
        }
        if function == known::C_GET_TOKEN_INFO {
            return (CKR_OK, self.sessions.len() as u64);
        }
        let user = self.user;
        let Some(session) = self.session(handle) else { return (CKR_SESSION_HANDLE_INVALID, 0) };
        match function {
            known::C_CLOSE_SESSION => {
                self.sessions.retain(|(it, ..)| *it != handle);
                self.objects.retain(|it| *it != handle);
                if self.sessions.is_empty() {
                    self.logout();
                }
                (CKR_OK, 0)
            }
            known::C_LOGIN if second == CKU_CONTEXT_SPECIFIC => {
                (if session.2 { CKR_OK } else { CKR_OPERATION_NOT_INITIALIZED }, 0)
            }
            known::C_LOGIN if user => (CKR_USER_ALREADY_LOGGED_IN, 0),
            known::C_LOGIN if third != PIN => {
                self.tries += 1;
                (CKR_PIN_INCORRECT, 0)
            }
            known::C_LOGIN => {
                self.user = true;
                self.logins += 1;
                self.tries = 0;
                (CKR_OK, 0)
            }
            known::C_LOGOUT if !user => (CKR_USER_NOT_LOGGED_IN, 0),
            known::C_LOGOUT => {
                self.logout();
                (CKR_OK, 0)
            }
            known::C_GET_SESSION_INFO => (CKR_OK, u64::from(user) + session.1),
            known::C_SIGN_INIT if session.2 => (CKR_OPERATION_ACTIVE, 0),
            known::C_SIGN_INIT if !user => (CKR_USER_NOT_LOGGED_IN, 0),
            known::C_SIGN_INIT => {
                session.2 = true;
                (CKR_OK, 0)
            }
            known::C_SIGN if !session.2 => (CKR_OPERATION_NOT_INITIALIZED, 0),
            known::C_SIGN => {
                // Without room it only tells the length.
                session.2 = fourth == 0;
                (CKR_OK, 0)
            }
            known::C_GENERATE_KEY if !user => (CKR_USER_NOT_LOGGED_IN, 0),
            known::C_GENERATE_KEY => {
                self.objects.push(handle);
                (CKR_OK, 0)
            }
            known::C_FIND_OBJECTS => (CKR_OK, self.objects.len() as u64),
            _ => unreachable!("the model has no such function"),
        }
    }
}

/// A program that knows sessions by its own numbers.
struct Program {
    model: Model,
    keeper: Option<(Box<SessionKeeper>, KeptThings)>,
    /// Its sessions, and whether each is open.
    sessions: Vec<(u64, bool)>,
}

impl Program {
    fn new(wanted: Option<KeptThings>) -> Self {
        let keeper = wanted.map(|wanted| (keeper(), wanted));
        Self { model: Model::default(), keeper, sessions: Vec::new() }
    }

    /// A call of the module, by way of the keeper.
    fn call(&mut self, function: u32, arguments: [u64; 4]) -> (u64, u64) {
        let Some((keeper, wanted)) = &mut self.keeper else {
            return self.model.answer(function, arguments);
        };
        let call = call(function, arguments);
        loop {
            match keeper.before(&call, *wanted) {
                Keeping::First(real) => {
                    let function = if real.address == LOGOUT {
                        known::C_LOGOUT
                    } else {
                        known::C_CLOSE_SESSION
                    };
                    let (result, _) = self.model.answer(function, [real.session, 0, 0, 0]);
                    assert_eq!(result, CKR_OK, "what is given up was there: {real:?}");
                    assert_eq!(keeper.before(&call, *wanted), Keeping::Wait);
                    keeper.given_up(MODULE, result);
                }
                Keeping::Wait => unreachable!("one thread"),
                Keeping::Code(result, _) => {
                    return (result, 0);
                }
                Keeping::Session(handle) => {
                    return (CKR_OK, handle);
                }
                Keeping::Call | Keeping::Refused(_) => break,
            }
        }
        let (result, given) = self.model.answer(function, arguments);
        keeper.after(&call, result);
        if function == known::C_OPEN_SESSION && result == CKR_OK {
            let key = SessionKey { module: MODULE, handle: given };
            keeper.opened(key, arguments[0], arguments[1], false);
        }
        (result, given)
    }

    /// Which of its sessions a step is about, and its handle.
    fn session(&self, number: u8) -> (usize, u64) {
        let place = usize::from(number) % self.sessions.len().max(1);
        (place, self.sessions.get(place).map_or(u64::MAX, |session| session.0))
    }

    /// A handle that was given up, and is another session's by now: some modules give a number
    /// again, the model does not.
    fn is_anothers(&self, (_, number, _): Step) -> bool {
        let (place, handle) = self.session(number);
        let is_open = self.sessions.get(place).is_some_and(|session| session.1);
        !is_open && self.sessions.contains(&(handle, true))
    }

    /// What the program sees of a step.
    fn step(&mut self, step: Step) -> (u64, u64) {
        let (function, number, arguments) = step;
        if function == known::C_OPEN_SESSION {
            let kind = 4 | if number % 2 == 0 { 0 } else { CKF_RW_SESSION };
            let (result, handle) = self.call(function, [0, kind, 0, 0]);
            self.sessions.push((handle, true));
            return (result, 0);
        }
        if function == known::C_GET_TOKEN_INFO {
            return self.call(function, [0; 4]);
        }
        let (place, handle) = self.session(number);
        let [second, third, fourth] = arguments;
        let answer = self.call(function, [handle, second, third, fourth]);
        if function == known::C_CLOSE_SESSION
            && answer.0 == CKR_OK
            && let Some(session) = self.sessions.get_mut(place)
        {
            session.1 = false;
        }
        answer
    }
}

/// A function, which of the program's sessions, and the other arguments.
type Step = (u32, u8, [u64; 3]);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // The security officer is another matter: the model has none.
    let user = prop_oneof![6 => Just(CKU_USER), 1 => Just(CKU_CONTEXT_SPECIFIC)];
    let pin = prop_oneof![6 => Just(PIN), 1 => Just(PIN + 1)];
    let login = (user, pin).prop_map(|(user, pin)| (known::C_LOGIN, [user, pin, 0]));
    let plain = |function: u32| Just((function, [0; 3]));
    let step = prop_oneof![
        6 => login,
        6 => plain(known::C_LOGOUT),
        2 => plain(known::C_OPEN_SESSION),
        2 => plain(known::C_CLOSE_SESSION),
        1 => plain(known::C_GET_SESSION_INFO),
        1 => plain(known::C_GET_TOKEN_INFO),
        3 => plain(known::C_SIGN_INIT),
        3 => (0..2_u64).prop_map(|room| (known::C_SIGN, [0, 0, room])),
        1 => plain(known::C_GENERATE_KEY),
        1 => plain(known::C_FIND_OBJECTS),
    ];
    prop::collection::vec(
        (step, 0..3_u8).prop_map(|((function, words), session)| (function, session, words)),
        1..80,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn nobody_can_tell(steps in steps(), which in 0..3_usize) {
        let wanted = [LOGIN, SESSION, BOTH][which];
        let mut with = Program::new(Some(wanted));
        let mut without = Program::new(None);
        for (at, step) in steps.iter().enumerate() {
            if with.is_anothers(*step) {
                continue;
            }
            prop_assert_eq!(with.step(*step), without.step(*step), "step {} of {:?}", at, steps);
            prop_assert_eq!(with.model.tries, without.model.tries, "step {} of {:?}", at, steps);
        }
        prop_assert!(with.model.logins <= without.model.logins);
        // Switched off, it gives up what it keeps.
        if let Some((_, wanted)) = &mut with.keeper {
            *wanted = NEITHER;
        }
        let step = (known::C_GET_TOKEN_INFO, 0, [0; 3]);
        prop_assert_eq!(with.step(step), without.step(step));
        prop_assert_eq!(with.model.user, without.model.user);
        prop_assert_eq!(with.model.objects.len(), without.model.objects.len());
    }
}

/// Opens, logs in, signs, logs out and closes, so many times.
fn signs_each_time(program: &mut Program, times: usize, closes: bool) {
    for time in 0..times {
        let number = if closes { time as u8 } else { 0 };
        if closes || time == 0 {
            program.step((known::C_OPEN_SESSION, 0, [0; 3]));
        }
        for (function, words) in [
            (known::C_LOGIN, [CKU_USER, PIN, 0]),
            (known::C_SIGN_INIT, [0; 3]),
            (known::C_SIGN, [0, 0, 1]),
            (known::C_LOGOUT, [0; 3]),
        ] {
            assert_eq!(program.step((function, number, words)).0, CKR_OK);
        }
        if closes {
            assert_eq!(program.step((known::C_CLOSE_SESSION, number, [0; 3])).0, CKR_OK);
        }
    }
}

#[test]
fn one_login_and_one_session_are_enough() {
    for (wanted, closes, logins, opened) in
        [(LOGIN, false, 1, 1), (BOTH, true, 1, 1), (SESSION, true, 20, 1), (LOGIN, true, 20, 20)]
    {
        let mut program = Program::new(Some(wanted));
        signs_each_time(&mut program, 20, closes);
        assert_eq!((program.model.logins, program.model.opened), (logins, opened), "{wanted:?}");
    }
}

/// The end of the last session is a logout, whether it is kept or not.
#[test]
fn the_end_of_the_last_session_logs_out() {
    let login = (known::C_LOGIN, [CKU_USER, PIN, 0]);
    for makes_an_object in [false, true] {
        let mut program = Program::new(Some(BOTH));
        let mut step = |(function, words): (u32, [u64; 3]), session| {
            assert_eq!(program.step((function, session, words)).0, CKR_OK, "{function}");
        };
        let open = (known::C_OPEN_SESSION, [0; 3]);
        let close = (known::C_CLOSE_SESSION, [0; 3]);
        step(open, 0);
        step(login, 0);
        step((known::C_LOGOUT, [0; 3]), 0);
        step(login, 0);
        step(open, 0);
        if makes_an_object {
            step((known::C_GENERATE_KEY, [0; 3]), 1);
        }
        step(close, 0);
        step(close, 1);
        step(open, 0);
        step(login, 2);
        let logins = if makes_an_object { 2 } else { 1 };
        assert_eq!(program.model.logins, logins);
    }
}

#[test]
fn a_wrong_pin_after_a_logout_that_was_kept_reaches_the_module() {
    let mut program = Program::new(Some(BOTH));
    signs_each_time(&mut program, 2, false);
    assert!(program.model.user, "the login is kept");
    let wrong = program.step((known::C_LOGIN, 0, [CKU_USER, PIN + 1, 0]));
    assert_eq!((wrong.0, program.model.tries, program.model.user), (CKR_PIN_INCORRECT, 1, false));
    // Without a PIN, as with a PIN pad.
    assert_eq!(program.step((known::C_LOGIN, 0, [CKU_USER, PIN, 0])).0, CKR_OK);
    assert_eq!(program.step((known::C_LOGOUT, 0, [0; 3])).0, CKR_OK);
    assert_eq!(program.step((known::C_LOGIN, 0, [CKU_USER, 0, 0])).0, CKR_PIN_INCORRECT);
}

#[test]
fn a_digest_tells_users_pins_and_keys_apart() {
    const KEYS: [[u64; 2]; 2] = [[1, 2], [3, 4]];
    // SAFETY: as many bytes.
    let digests = |user, pin: &[u8]| unsafe {
        pin_digests(user, pin.as_ptr() as u64, pin.len() as u64, KEYS)
    };
    let one = digests(CKU_USER, b"1234");
    assert_eq!(one, digests(CKU_USER, &[49, 50, 51, 52]));
    assert_ne!(one, digests(CKU_USER, b"1235"));
    assert_ne!(one, digests(CKU_USER, b"12345"));
    assert_ne!(one, digests(CKU_SO, b"1234"));
    assert_ne!(one.unwrap()[0], one.unwrap()[1]);
    for none in [digests(CKU_USER, b""), digests(CKU_USER, &[b'1'; 257])] {
        assert_eq!(none, None);
    }
    // SAFETY: null.
    assert_eq!(unsafe { pin_digests(CKU_USER, 0, 4, KEYS) }, None);
}

#[test]
fn digests_are_gone_when_they_are_wiped_and_when_the_module_ends() {
    let is_there = |program: &Program| {
        let (keeper, _) = program.keeper.as_ref().unwrap();
        keeper.logins.iter().any(|login| login.pin != [0; 2])
    };
    for ends in [
        |keeper: &mut SessionKeeper| keeper.wipe(),
        |keeper: &mut SessionKeeper| {
            keeper.after(&call(known::C_FINALIZE, [0; 4]), CKR_OK);
        },
    ] {
        let mut program = Program::new(Some(BOTH));
        signs_each_time(&mut program, 2, false);
        assert!(is_there(&program));
        ends(&mut program.keeper.as_mut().unwrap().0);
        assert!(!is_there(&program));
    }
}

#[test]
fn a_login_of_which_it_may_be_doubted_is_made_again() {
    for code in [0x32, CKR_USER_NOT_LOGGED_IN] {
        let mut program = Program::new(Some(LOGIN));
        signs_each_time(&mut program, 2, false);
        let (keeper, _) = program.keeper.as_mut().unwrap();
        keeper.after(&call(known::C_GET_SLOT_LIST, [0; 4]), code);
        assert_eq!(program.step((known::C_LOGIN, 0, [CKU_USER, PIN, 0])).0, CKR_OK);
        assert_eq!(program.model.logins, 2, "{code:#x}");
    }
}

/// A wait for slots has flags where others have a session.
#[test]
fn flags_are_no_session() {
    let mut program = Program::new(Some(SESSION));
    program.step((known::C_OPEN_SESSION, 0, [0; 3]));
    program.step((known::C_CLOSE_SESSION, 0, [0; 3]));
    let handle = program.sessions[0].0;
    let (keeper, wanted) = program.keeper.as_mut().unwrap();
    let waits = call(known::C_WAIT_FOR_SLOT_EVENT, [handle, 0, 0, 0]);
    assert_eq!(keeper.before(&waits, *wanted), Keeping::Call);
    let asks = call(known::C_GET_SESSION_INFO, [handle, 0, 0, 0]);
    let first = Keeping::First(RealCall { address: CLOSE, session: handle });
    assert_eq!(keeper.before(&asks, *wanted), first);
}

#[test]
fn more_sessions_than_it_knows_end_the_keeping() {
    let mut keeper = keeper();
    for handle in 1..=SESSIONS as u64 + 1 {
        keeper.opened(SessionKey { module: MODULE, handle }, 0, 4, false);
    }
    let close = |handle| call(known::C_CLOSE_SESSION, [handle, 0, 0, 0]);
    assert_eq!(keeper.before(&close(1), SESSION), Keeping::Refused(KeepFix::Session));
    assert_eq!(keeper.before(&close(1), NEITHER), Keeping::Call);
}

#[test]
fn a_session_that_reports_to_the_program_ends() {
    let mut keeper = keeper();
    let key = SessionKey { module: MODULE, handle: 5 };
    keeper.opened(key, 0, 4, true);
    let close = call(known::C_CLOSE_SESSION, [5, 0, 0, 0]);
    assert_eq!(keeper.before(&close, SESSION), Keeping::Refused(KeepFix::Session));
    keeper.after(&close, CKR_OK);
    // One that is to report is not answered with one that does not.
    keeper.opened(key, 0, 4, false);
    assert_eq!(keeper.before(&close, SESSION), Keeping::Code(CKR_OK, KeepFix::Session));
    let mut open = call(known::C_OPEN_SESSION, [0, 4, 0, 99]);
    let first = Keeping::First(RealCall { address: CLOSE, session: 5 });
    assert_eq!(keeper.before(&open, SESSION), first);
    let other = KeptCall { module: MODULE + 1, ..open };
    assert_eq!(keeper.before(&other, SESSION), Keeping::Call, "a module waits for itself alone");
    keeper.given_up(MODULE, CKR_OK);
    open.arguments[3] = 0;
    assert_eq!(keeper.before(&open, SESSION), Keeping::Call, "it was given up");
}

#[test]
fn what_could_not_be_given_up_ends_the_keeping() {
    let mut keeper = keeper();
    keeper.opened(SessionKey { module: MODULE, handle: 5 }, 0, 4, false);
    keeper.given_up(MODULE, CKR_SESSION_HANDLE_INVALID);
    let close = call(known::C_CLOSE_SESSION, [5, 0, 0, 0]);
    assert_eq!(keeper.before(&close, SESSION), Keeping::Refused(KeepFix::Session));
}
