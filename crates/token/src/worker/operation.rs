//! One operation as a thread performs it: the calls that its shape needs, and the memory that they
//! read and write. Nothing here allocates or locks.

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};

use super::kept_objects::{KeptObjects, MadeObjects};
use super::watch::Watch;
use crate::module::Module;

/// An input as the calls take it. Nothing here tells the right answer.
pub(super) struct PreparedInput {
    pub(super) bytes: Vec<u8>,
    pub(super) iv: Vec<u8>,
    /// The object that this input became, where it had to be imported first.
    pub(super) object: CK_OBJECT_HANDLE,
}

/// The call that ended an operation, with its code.
pub(super) type CallError = (Pkcs11Function, CK_RV);

/// The calls of one operation, prepared for one thread: each shape has its own.
pub(super) trait TimedCalls: Send {
    /// Makes exactly the calls that the operation needs. It runs inside the timed section.
    ///
    /// # Errors
    /// The first code other than CKR_OK, with the call that gave it.
    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError>;

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
    pub(super) watch: &'a mut Watch,
}

impl Operation<'_> {
    /// Announces the next call.
    #[inline]
    pub(super) fn enter(&mut self, call: Pkcs11Function) {
        self.watch.enter(call, self.number);
    }

    /// Takes what the operation made, and destroys as many objects: its own, or those that it
    /// replaces among the kept ones.
    #[inline]
    pub(super) fn keep_or_destroy(&mut self, made: MadeObjects) -> Result<(), CallError> {
        let leaving = self.objects.exchange(self.number, made);
        for object in leaving.into_iter().filter(|object| *object != CK_INVALID_HANDLE) {
            self.enter(Pkcs11Function::C_DestroyObject);
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
    if code == CKR_OK { Ok(()) } else { Err((call, code)) }
}

/// Calls a function of the table, which may lack it.
#[inline]
pub(super) fn call_function<F>(
    call: Pkcs11Function,
    function: Option<F>,
    arguments: impl FnOnce(F) -> CK_RV,
) -> Result<(), CallError> {
    check_code(call, function.map_or(Rv::NOT_IN_FUNCTION_LIST.0 as CK_RV, arguments))
}

/// For messages: a code with the call that gave it.
pub(super) fn as_failure((call, code): CallError) -> Pkcs11Failure {
    Pkcs11Failure { call, code: Rv(code as u64) }
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
