//! One operation, prepared for one thread: exactly the interface calls that it needs, into memory
//! that is there already.

use std::ptr::NonNull;
use std::sync::Arc;

use cryptoki_sys::*;
use tapstone_names::pkcs11::Violation;

use super::capture::{Capture, IV_BYTES};
use super::input::PreparedInput;
use super::kept_objects::KeptObjects;
use super::operation::{CallError, Operation, TimedCalls, ring_place};
use super::parameters::Armed;
use super::watch::CallWatch;
use crate::module::Module;

/// A key with the ring of inputs that belongs to it.
#[derive(Clone)]
pub(super) struct Keyed {
    pub(super) key: CK_OBJECT_HANDLE,
    pub(super) inputs: Arc<[PreparedInput]>,
}

/// An input of a lane's keys, which live as long as the lane.
#[derive(Clone, Copy, Default)]
pub(super) struct OfferedInput(Option<NonNull<PreparedInput>>);

// SAFETY: it goes where its lane goes, and inputs are `Sync`.
unsafe impl Send for OfferedInput {}

/// One operation of one thread.
pub(super) struct Lane {
    pub(super) module: Arc<Module>,
    pub(super) session: CK_SESSION_HANDLE,
    pub(super) worker: u32,
    pub(super) calls: Box<dyn TimedCalls>,
    pub(super) armed: Box<Armed>,
    pub(super) keys: Vec<Keyed>,
    pub(super) capture: Capture,
    pub(super) objects: KeptObjects,
    /// The input that the last operation was given: one of the keys' own.
    pub(super) offered: OfferedInput,
    /// What the last operation's call said of its result's length, not yet checked.
    pub(super) returned_length: CK_ULONG,
}

impl Lane {
    /// How many results there were that could have been kept.
    pub(super) fn eligible(&self) -> u64 {
        self.capture.eligible()
    }

    /// The key and the input of an operation.
    pub(super) fn used(&self, operation: u64) -> (CK_OBJECT_HANDLE, &PreparedInput) {
        let keyed = &self.keys[ring_place(operation, self.keys.len())];
        (keyed.key, &keyed.inputs[ring_place(operation, keyed.inputs.len())])
    }

    /// Performs one operation.
    ///
    /// # Errors
    /// The first code other than CKR_OK, with the call that gave it.
    #[inline]
    pub(super) fn perform(
        &mut self,
        operation: u64,
        watch: &mut CallWatch,
    ) -> Result<(), CallError> {
        let keyed = match &self.keys[..] {
            [one] => one,
            keys => &keys[ring_place(operation, keys.len())],
        };
        let input = &keyed.inputs[ring_place(operation, keyed.inputs.len())];
        self.offered = OfferedInput(Some(NonNull::from(input)));
        let place = self.capture.target();
        // SAFETY: `place` starts with room for an IV; it and the input live as long as the lane.
        let mechanism = unsafe { self.armed.next(self.worker, operation, input, place) };
        // SAFETY: every place is IV_BYTES plus the result's room long.
        let result = unsafe { place.add(IV_BYTES) };
        let mut operation = Operation {
            number: operation,
            module: &self.module,
            session: self.session,
            key: keyed.key,
            mechanism,
            input_object: input.object,
            data: input.bytes.as_mut_ptr(),
            data_length: input.bytes.len() as CK_ULONG,
            result,
            result_length: self.capture.result_bytes() as CK_ULONG,
            objects: &mut self.objects,
            watch,
        };
        let performed = self.calls.perform(&mut operation);
        self.returned_length = operation.result_length;
        performed?;
        operation.watch.leave();
        Ok(())
    }

    /// Looks at what an operation gave, and makes ready for the next one. Not part of its time.
    ///
    /// # Errors
    /// The error of `performed`, or what is wrong with the answer, with the call that gave it.
    #[inline]
    pub(super) fn settle(
        &mut self,
        operation: u64,
        performed: Result<(), CallError>,
    ) -> Result<(), CallError> {
        let settled = performed.and_then(|()| self.check());
        if settled.is_ok() {
            self.capture.delivered(operation, self.returned_length as usize);
        }
        self.capture.prepare();
        settled
    }

    #[inline]
    fn check(&mut self) -> Result<(), CallError> {
        let Some(input) = self.offered.0 else { return Ok(()) };
        // SAFETY: `perform` took it from the keys' inputs, which nobody changes or drops before.
        let input = unsafe { input.as_ref() };
        let checked = if input.bytes.look_unchanged() {
            self.capture.check(self.returned_length)
        } else {
            input.bytes.restore();
            Err(Violation::InputChanged)
        };
        checked.map_err(|violation| (self.calls.answering_call(), violation.code()))
    }

    /// Whether all inputs are what they were.
    pub(super) fn inputs_are_unchanged(&self) -> bool {
        self.keys
            .iter()
            .flat_map(|keyed| &keyed.inputs[..])
            .all(|input| input.bytes.are_unchanged())
    }

    /// Performs one operation that is not counted.
    ///
    /// # Errors
    /// The first code other than CKR_OK, or what is wrong with the answer, with its call.
    pub(super) fn try_once(
        &mut self,
        operation: u64,
        watch: &mut CallWatch,
    ) -> Result<(), CallError> {
        let performed = self.perform(operation, watch);
        watch.leave();
        self.settle(operation, performed)
    }
}
