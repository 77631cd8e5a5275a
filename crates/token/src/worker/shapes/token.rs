//! Operations on the token itself, without a key: random numbers, searches, sessions, logins.

use std::ptr;

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function as Function, Violation};

use super::super::operation::{CallError, Operation, TimedCalls, call_function, ring_place};
use super::shape_work::{CallSetup, KeptResults, ShapeWork};
use crate::catalogue::KeySpec;
use crate::module::{RawTemplate, Session, Template};
use tapstone_pin::Pin;

/// `C_GenerateRandom`.
pub(super) struct Random;

impl ShapeWork for Random {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        Ok(Box::new(RandomCalls { bytes: setup.variant.message_bytes as CK_ULONG }))
    }
}

struct RandomCalls {
    bytes: CK_ULONG,
}

impl TimedCalls for RandomCalls {
    fn answering_call(&self) -> Function {
        Function::C_GenerateRandom
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        operation.enter(Function::C_GenerateRandom);
        operation.result_length = self.bytes;
        let function = operation.module.functions.C_GenerateRandom;
        // SAFETY: the result has room for as many bytes as the operation asks for.
        call_function(Function::C_GenerateRandom, function, |f| unsafe {
            f(operation.session, operation.result, operation.result_length)
        })
    }
}

/// `C_FindObjectsInit`, `C_FindObjects`, `C_FindObjectsFinal`. Its result is a handle.
pub(super) struct FindObjects;

impl ShapeWork for FindObjects {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let searches = setup
            .inputs
            .iter()
            .map(|input| Template::new().bytes(CKA_LABEL, input.bytes.original()));
        Ok(Box::new(FindCalls { templates: searches.map(Template::into_raw).collect() }))
    }

    /// The object that is searched for.
    fn import_input(
        &self,
        session: &Session,
        _key: KeySpec,
        input: &[u8],
    ) -> Result<Option<CK_OBJECT_HANDLE>, Pkcs11Failure> {
        session.create_labelled_object(&String::from_utf8_lossy(input)).map(Some)
    }

    /// The label of the object that was found; empty where there is none.
    fn judged_result(&self, session: &Session, result: &[u8]) -> Vec<u8> {
        match <[u8; size_of::<CK_OBJECT_HANDLE>()]>::try_from(result) {
            Ok(handle) => session
                .attribute(CK_OBJECT_HANDLE::from_ne_bytes(handle), CKA_LABEL)
                .unwrap_or_default(),
            Err(_) => result.to_vec(),
        }
    }
}

/// One search for each input.
struct FindCalls {
    templates: Vec<RawTemplate>,
}

impl TimedCalls for FindCalls {
    fn answering_call(&self) -> Function {
        Function::C_FindObjects
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let wanted = ring_place(operation.number, self.templates.len());
        let template = &mut self.templates[wanted];
        let functions = &operation.module.functions;
        let session = operation.session;
        operation.enter(Function::C_FindObjectsInit);
        // SAFETY: the template is as long as it says and outlives the call.
        call_function(Function::C_FindObjectsInit, functions.C_FindObjectsInit, |f| unsafe {
            f(session, template.as_mut_ptr(), template.count())
        })?;
        let mut found = [CK_INVALID_HANDLE; 2];
        let mut count = 0;
        operation.enter(Function::C_FindObjects);
        // SAFETY: there is room for two handles: one to find, one that should not be there.
        call_function(Function::C_FindObjects, functions.C_FindObjects, |f| unsafe {
            f(session, found.as_mut_ptr(), 2, &mut count)
        })?;
        operation.enter(Function::C_FindObjectsFinal);
        // SAFETY: the session is this thread's own.
        call_function(Function::C_FindObjectsFinal, functions.C_FindObjectsFinal, |f| unsafe {
            f(session)
        })?;
        check_found(&found, count)?;
        let found = if count == 1 { found[0] } else { CK_INVALID_HANDLE };
        operation.result_length = size_of::<CK_OBJECT_HANDLE>() as CK_ULONG;
        // SAFETY: a search's result has room for a handle.
        unsafe { operation.result.cast::<CK_OBJECT_HANDLE>().write_unaligned(found) };
        Ok(())
    }

    fn may_leave_session_active(&self) -> bool {
        true
    }
}

/// Whether a search for two objects can have ended so.
fn check_found(found: &[CK_OBJECT_HANDLE; 2], count: CK_ULONG) -> Result<(), CallError> {
    let room = found.len() as u64;
    let violation = match count as u64 {
        count if count > room => Violation::BeyondRoom(Violation::numbers(count, room)),
        count if found[..count as usize].contains(&CK_INVALID_HANDLE) => Violation::InvalidHandle,
        2 if found[0] == found[1] => Violation::LiveHandle,
        _ => return Ok(()),
    };
    Err((Function::C_FindObjects, violation.code()))
}

/// `C_OpenSession`, `C_CloseSession`.
pub(super) struct OpenSession;

impl ShapeWork for OpenSession {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let read_write = if setup.shared.read_only { 0 } else { CKF_RW_SESSION };
        let slot = setup.shared.slot;
        Ok(Box::new(OpenSessionCalls { slot, flags: CKF_SERIAL_SESSION | read_write }))
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::Nothing
    }
}

struct OpenSessionCalls {
    slot: CK_SLOT_ID,
    flags: CK_FLAGS,
}

impl TimedCalls for OpenSessionCalls {
    fn answering_call(&self) -> Function {
        Function::C_OpenSession
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let functions = &operation.module.functions;
        let mut handle = CK_INVALID_HANDLE;
        operation.enter(Function::C_OpenSession);
        // SAFETY: no callback is given; `handle` outlives the call.
        call_function(Function::C_OpenSession, functions.C_OpenSession, |f| unsafe {
            f(self.slot, self.flags, ptr::null_mut(), None, &mut handle)
        })?;
        operation.module.take_session(handle).map_err(|failure| (failure.call, failure.code))?;
        operation.enter(Function::C_CloseSession);
        operation.module.live_sessions.release(handle as u64);
        // SAFETY: the handle was just opened.
        call_function(Function::C_CloseSession, functions.C_CloseSession, |f| unsafe { f(handle) })
    }
}

/// `C_Login`, `C_Logout`.
pub(super) struct Login;

impl ShapeWork for Login {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        Ok(Box::new(LoginCalls { pin: setup.shared.login.pin().cloned() }))
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::Nothing
    }

    fn logs_in(&self) -> bool {
        true
    }
}

struct LoginCalls {
    /// `None`: the token has a PIN pad of its own.
    pin: Option<Pin>,
}

impl TimedCalls for LoginCalls {
    fn answering_call(&self) -> Function {
        Function::C_Login
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let functions = &operation.module.functions;
        let session = operation.session;
        let pin = self.pin.as_ref().map(Pin::expose);
        let bytes = pin.map_or(ptr::null_mut(), |pin| pin.as_ptr().cast_mut());
        let length = pin.map_or(0, <[u8]>::len) as CK_ULONG;
        operation.enter(Function::C_Login);
        // SAFETY: the PIN is `length` bytes long and is only read.
        call_function(Function::C_Login, functions.C_Login, |f| unsafe {
            f(session, CKU_USER, bytes, length)
        })?;
        operation.enter(Function::C_Logout);
        // SAFETY: the session is this thread's own.
        call_function(Function::C_Logout, functions.C_Logout, |f| unsafe { f(session) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_no_more_than_it_asked_for_and_only_handles() {
        let found = |found, count| check_found(&found, count).map_err(|(_, code)| code.to_string());
        assert_eq!(found([0, 0], 0), Ok(()));
        assert_eq!(found([7, 0], 1), Ok(()));
        assert_eq!(found([7, 8], 2), Ok(()));
        for (handles, count, violation) in [
            ([7, 8], 3, "returned count 3 with room for 2"),
            ([7, 8], CK_ULONG::MAX, "returned count ~0UL with room for 2"),
            ([0, 0], 1, "returned CK_INVALID_HANDLE for what it made"),
            ([7, 0], 2, "returned CK_INVALID_HANDLE for what it made"),
            ([7, 7], 2, "returned a handle that is in use"),
        ] {
            assert_eq!(found(handles, count), Err(violation.to_owned()));
        }
    }
}
