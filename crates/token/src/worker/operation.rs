//! One operation as a thread performs it: the calls that its shape needs, and the memory that they
//! read and write. Nothing here allocates or locks.

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv, Violation};

use super::kept_objects::{KeptObjects, MadeObjects};
use super::watch::CallWatch;
use crate::module::Module;

/// The call that ended an operation, with its code or what is wrong with its answer.
pub(super) type CallError = (Pkcs11Function, Rv);

/// The calls of one operation, prepared for one thread: each shape has its own.
pub(super) trait TimedCalls: Send {
    /// Makes exactly the calls that the operation needs. It runs inside the timed section.
    ///
    /// # Errors
    /// The first code other than CKR_OK, with the call that gave it.
    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError>;

    /// The call whose answer the result is.
    fn answering_call(&self) -> Pkcs11Function;

    /// Whether a failure may leave the session with an active operation (PKCS #11 3.1, 5.1.5).
    fn may_leave_session_active(&self) -> bool {
        false
    }
}

/// What the calls of one operation are given.
///
/// For as long as it lives: `mechanism` holds the parameters of this operation; `data` points to
/// `data_length` bytes, which are only read; `result` has room for `result_length` bytes until a
/// call shortens it.
pub(super) struct Operation<'a> {
    pub(super) number: u64,
    pub(super) module: &'a Module,
    pub(super) session: CK_SESSION_HANDLE,
    pub(super) key: CK_OBJECT_HANDLE,
    pub(super) mechanism: *mut CK_MECHANISM,
    /// The object that the input became; `CK_INVALID_HANDLE`: it is none.
    pub(super) input_object: CK_OBJECT_HANDLE,
    pub(super) data: *mut CK_BYTE,
    pub(super) data_length: CK_ULONG,
    pub(super) result: *mut CK_BYTE,
    pub(super) result_length: CK_ULONG,
    pub(super) objects: &'a mut KeptObjects,
    pub(super) watch: &'a mut CallWatch,
}

impl Operation<'_> {
    /// Announces the next call.
    #[inline]
    pub(super) fn enter(&mut self, call: Pkcs11Function) {
        self.watch.enter(call, self.number);
    }

    /// Takes what a call made, and destroys as many objects: its own, or those that it replaces
    /// among the kept ones. What is in use already is not this operation's to destroy.
    #[inline]
    pub(super) fn keep_or_destroy(
        &mut self,
        call: Pkcs11Function,
        made: MadeObjects,
    ) -> Result<(), CallError> {
        let broken = |violation: Violation| Err((call, violation.code()));
        if made[0] == CK_INVALID_HANDLE {
            return broken(Violation::InvalidHandle);
        }
        for object in made.into_iter().filter(|object| *object != CK_INVALID_HANDLE) {
            let given = object == self.key || object == self.input_object;
            if given || !self.module.live_objects.claim(object as u64) {
                return broken(Violation::LiveHandle);
            }
        }
        let leaving = self.objects.exchange(self.number, made);
        for object in leaving.into_iter().filter(|object| *object != CK_INVALID_HANDLE) {
            self.enter(Pkcs11Function::C_DestroyObject);
            self.module.live_objects.release(object as u64);
            let function = self.module.functions.C_DestroyObject;
            // SAFETY: the object was made by this thread's own operation.
            call_function(Pkcs11Function::C_DestroyObject, function, |f| unsafe {
                f(self.session, object)
            })?;
        }
        Ok(())
    }
}

/// CKR_OK, or the code with its call.
#[inline]
pub(super) fn check_code(call: Pkcs11Function, code: CK_RV) -> Result<(), CallError> {
    if code == CKR_OK { Ok(()) } else { Err((call, Rv::from_module(code as u64))) }
}

/// Calls a function of the table, which may lack it.
#[inline]
pub(super) fn call_function<F>(
    call: Pkcs11Function,
    function: Option<F>,
    arguments: impl FnOnce(F) -> CK_RV,
) -> Result<(), CallError> {
    match function {
        Some(function) => check_code(call, arguments(function)),
        None => Err((call, Rv::NOT_IN_FUNCTION_LIST)),
    }
}

/// For messages: a code with the call that gave it.
pub(super) fn as_failure((call, code): CallError) -> Pkcs11Failure {
    Pkcs11Failure { call, code }
}

/// Operation `n` takes entry `n` modulo the length of the ring; a division only where it must be.
#[inline]
pub(super) fn ring_place(operation: u64, length: usize) -> usize {
    if length.is_power_of_two() {
        operation as usize & (length - 1)
    } else {
        (operation % length as u64) as usize
    }
}
