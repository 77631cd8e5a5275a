//! One operation, prepared for one thread: exactly the interface calls that it needs, into memory
//! that is there already.

use std::ptr;
use std::sync::Arc;

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Function as Call, Rv};

use super::capture::{Capture, IV_BYTES};
use super::kept_objects::KeptObjects;
use super::parameters::Armed;
use super::watch::Watch;
use crate::module::{Module, RawTemplate};
use crate::pin::Pin;

/// An input as the calls take it. Nothing here tells the right answer.
pub(super) struct Prepared {
    pub(super) bytes: Vec<u8>,
    pub(super) iv: Vec<u8>,
    /// The object that this input became, where it had to be imported first.
    pub(super) object: CK_OBJECT_HANDLE,
}

/// A key with the ring of inputs that belongs to it.
#[derive(Clone)]
pub(super) struct Keyed {
    pub(super) key: CK_OBJECT_HANDLE,
    pub(super) inputs: Arc<[Prepared]>,
}

/// What an operation calls. The pointers were found non-null when it was tried.
pub(super) enum Steps {
    /// …Init, then one call with input and output.
    Keyed {
        init: (
            Call,
            unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) -> CK_RV,
        ),
        run: (Call, Transform),
        /// The key asks for a login of its own after each …Init (CKA_ALWAYS_AUTHENTICATE).
        login: Option<Pin>,
    },
    Digest {
        init: unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_MECHANISM) -> CK_RV,
        run: Transform,
    },
    Random {
        bytes: usize,
    },
    Wrap,
    /// Calls that leave an object behind, which the same operation destroys.
    Make {
        how: Make,
        template: RawTemplate,
        private: RawTemplate,
    },
    /// One search for each input.
    Find {
        templates: Vec<RawTemplate>,
    },
    OpenSession {
        slot: CK_SLOT_ID,
        flags: CK_FLAGS,
    },
    Login {
        pin: Option<Pin>,
    },
}

/// C_Sign, C_Encrypt, C_Decrypt and C_Digest are called alike.
pub(super) type Transform = unsafe extern "C" fn(
    CK_SESSION_HANDLE,
    *mut CK_BYTE,
    CK_ULONG,
    *mut CK_BYTE,
    *mut CK_ULONG,
) -> CK_RV;

/// How an operation makes its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Derive,
    Unwrap,
    GenerateKey,
    GenerateKeyPair,
    Encapsulate,
    Decapsulate,
}

/// One operation of one thread.
pub(super) struct Lane {
    pub(super) module: Arc<Module>,
    pub(super) session: CK_SESSION_HANDLE,
    pub(super) worker: u32,
    pub(super) steps: Steps,
    pub(super) armed: Box<Armed>,
    pub(super) keys: Vec<Keyed>,
    pub(super) capture: Capture,
    pub(super) objects: KeptObjects,
}

impl Lane {
    /// How many results there were that could have been kept.
    pub(super) fn eligible(&self) -> u64 {
        self.capture.eligible()
    }

    /// The key and the input of an operation.
    pub(super) fn used(&self, operation: u64) -> (CK_OBJECT_HANDLE, &Prepared) {
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
        watch: &mut Watch,
    ) -> Result<(), (Call, CK_RV)> {
        let keyed = match &self.keys[..] {
            [one] => one,
            keys => &keys[ring_place(operation, keys.len())],
        };
        let input = &keyed.inputs[ring_place(operation, keyed.inputs.len())];
        let place = self.capture.target();
        // SAFETY: `place` starts with room for an IV; it and the input live as long as the lane.
        let mechanism =
            unsafe { self.armed.next(self.worker, operation, &input.bytes, &input.iv, place) };
        // SAFETY: every place is IV_BYTES plus the result's room long.
        let result = unsafe { place.add(IV_BYTES) };
        let mut length = self.capture.result_bytes() as CK_ULONG;
        let data = input.bytes.as_ptr().cast_mut();
        let data_length = input.bytes.len() as CK_ULONG;
        let session = self.session;

        match &mut self.steps {
            Steps::Keyed { init, run, login } => {
                watch.enter(init.0, operation);
                // SAFETY: the mechanism's parameters are armed for this operation.
                check(init.0, unsafe { init.1(session, mechanism, keyed.key) })?;
                if let Some(pin) = login {
                    login_for_key(&self.module, session, pin, operation, watch)?;
                }
                watch.enter(run.0, operation);
                // SAFETY: input and result are as long as the lengths say.
                check(run.0, unsafe { run.1(session, data, data_length, result, &mut length) })?;
            }
            Steps::Digest { init, run } => {
                watch.enter(Call::C_DigestInit, operation);
                // SAFETY: as above.
                check(Call::C_DigestInit, unsafe { init(session, mechanism) })?;
                watch.enter(Call::C_Digest, operation);
                // SAFETY: as above.
                check(Call::C_Digest, unsafe {
                    run(session, data, data_length, result, &mut length)
                })?;
            }
            Steps::Random { bytes } => {
                watch.enter(Call::C_GenerateRandom, operation);
                length = *bytes as CK_ULONG;
                // SAFETY: the result has room for `bytes`, its capacity.
                call(Call::C_GenerateRandom, self.module.functions.C_GenerateRandom, |f| unsafe {
                    f(session, result, length)
                })?;
            }
            Steps::Wrap => {
                watch.enter(Call::C_WrapKey, operation);
                // SAFETY: as above; the input is a key that was imported for this.
                call(Call::C_WrapKey, self.module.functions.C_WrapKey, |f| unsafe {
                    f(session, mechanism, keyed.key, input.object, result, &mut length)
                })?;
            }
            Steps::Make { how, template, private } => {
                let made = Maker {
                    module: &self.module,
                    session,
                    mechanism,
                    key: keyed.key,
                    input,
                    result,
                    length: &mut length,
                }
                .make(*how, template, private, operation, watch)?;
                let leaving = self.objects.exchange(operation, made);
                destroy(&self.module, session, leaving, operation, watch)?;
            }
            Steps::Find { templates } => {
                let wanted = ring_place(operation, templates.len());
                let found = find(&self.module, session, &mut templates[wanted], operation, watch)?;
                length = size_of::<CK_OBJECT_HANDLE>() as CK_ULONG;
                // SAFETY: a search's result has room for a handle.
                unsafe { result.cast::<CK_OBJECT_HANDLE>().write_unaligned(found) };
            }
            Steps::OpenSession { slot, flags } => {
                open_and_close(&self.module, *slot, *flags, operation, watch)?;
            }
            Steps::Login { pin } => {
                log_in_and_out(&self.module, session, pin.as_ref(), operation, watch)?;
            }
        }
        watch.leave();
        self.capture.delivered(operation, length as usize);
        Ok(())
    }
}

/// Operation `n` takes entry `n` modulo the length of the ring; a division only where it must be.
#[inline]
fn ring_place(operation: u64, length: usize) -> usize {
    if length.is_power_of_two() {
        operation as usize & (length - 1)
    } else {
        (operation % length as u64) as usize
    }
}

#[inline]
fn check(call: Call, code: CK_RV) -> Result<(), (Call, CK_RV)> {
    if code == CKR_OK { Ok(()) } else { Err((call, code)) }
}

/// Calls a function of the table, which may lack it.
#[inline]
fn call<F>(
    name: Call,
    function: Option<F>,
    how: impl FnOnce(F) -> CK_RV,
) -> Result<(), (Call, CK_RV)> {
    check(name, function.map_or(CKR_FUNCTION_NOT_SUPPORTED, how))
}

fn login_for_key(
    module: &Module,
    session: CK_SESSION_HANDLE,
    pin: &Pin,
    operation: u64,
    watch: &mut Watch,
) -> Result<(), (Call, CK_RV)> {
    watch.enter(Call::C_Login, operation);
    let (bytes, length) = (pin.expose().as_ptr().cast_mut(), pin.expose().len() as CK_ULONG);
    // SAFETY: the PIN is `length` bytes long and is only read.
    call(Call::C_Login, module.functions.C_Login, |f| unsafe {
        f(session, CKU_CONTEXT_SPECIFIC, bytes, length)
    })
}

fn open_and_close(
    module: &Module,
    slot: CK_SLOT_ID,
    flags: CK_FLAGS,
    operation: u64,
    watch: &mut Watch,
) -> Result<(), (Call, CK_RV)> {
    let mut handle = CK_INVALID_HANDLE;
    watch.enter(Call::C_OpenSession, operation);
    // SAFETY: no callback is given; `handle` outlives the call.
    call(Call::C_OpenSession, module.functions.C_OpenSession, |f| unsafe {
        f(slot, flags, ptr::null_mut(), None, &mut handle)
    })?;
    watch.enter(Call::C_CloseSession, operation);
    // SAFETY: the handle was just opened.
    call(Call::C_CloseSession, module.functions.C_CloseSession, |f| unsafe { f(handle) })
}

fn log_in_and_out(
    module: &Module,
    session: CK_SESSION_HANDLE,
    pin: Option<&Pin>,
    operation: u64,
    watch: &mut Watch,
) -> Result<(), (Call, CK_RV)> {
    let (bytes, length) = match pin {
        Some(pin) => (pin.expose().as_ptr().cast_mut(), pin.expose().len() as CK_ULONG),
        None => (ptr::null_mut(), 0),
    };
    watch.enter(Call::C_Login, operation);
    // SAFETY: the PIN is `length` bytes long and is only read.
    call(Call::C_Login, module.functions.C_Login, |f| unsafe {
        f(session, CKU_USER, bytes, length)
    })?;
    watch.enter(Call::C_Logout, operation);
    // SAFETY: the session is this thread's own.
    call(Call::C_Logout, module.functions.C_Logout, |f| unsafe { f(session) })
}

fn find(
    module: &Module,
    session: CK_SESSION_HANDLE,
    template: &mut RawTemplate,
    operation: u64,
    watch: &mut Watch,
) -> Result<CK_OBJECT_HANDLE, (Call, CK_RV)> {
    let raw = template;
    watch.enter(Call::C_FindObjectsInit, operation);
    // SAFETY: the template is as long as it says and outlives the call.
    call(Call::C_FindObjectsInit, module.functions.C_FindObjectsInit, |f| unsafe {
        f(session, raw.as_mut_ptr(), raw.len())
    })?;
    let (mut found, mut count) = ([CK_INVALID_HANDLE; 2], 0);
    watch.enter(Call::C_FindObjects, operation);
    // SAFETY: there is room for two handles: one to find, one that should not be there.
    call(Call::C_FindObjects, module.functions.C_FindObjects, |f| unsafe {
        f(session, found.as_mut_ptr(), 2, &mut count)
    })?;
    watch.enter(Call::C_FindObjectsFinal, operation);
    // SAFETY: the session is this thread's own.
    call(Call::C_FindObjectsFinal, module.functions.C_FindObjectsFinal, |f| unsafe { f(session) })?;
    Ok(if count == 1 { found[0] } else { CK_INVALID_HANDLE })
}

/// Objects that an operation made: a key, or both halves of a pair.
pub(super) type Made = [CK_OBJECT_HANDLE; 2];

/// C_DestroyObject of what an operation leaves behind.
pub(super) fn destroy(
    module: &Module,
    session: CK_SESSION_HANDLE,
    objects: Made,
    operation: u64,
    watch: &mut Watch,
) -> Result<(), (Call, CK_RV)> {
    for object in objects.into_iter().filter(|object| *object != CK_INVALID_HANDLE) {
        watch.enter(Call::C_DestroyObject, operation);
        // SAFETY: the object was made by this thread's own operation.
        call(Call::C_DestroyObject, module.functions.C_DestroyObject, |f| unsafe {
            f(session, object)
        })?;
    }
    Ok(())
}

/// What the calls that make an object are given.
struct Maker<'a> {
    module: &'a Module,
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
    input: &'a Prepared,
    result: *mut u8,
    length: &'a mut CK_ULONG,
}

impl Maker<'_> {
    fn make(
        self,
        how: Make,
        template: &mut RawTemplate,
        private: &mut RawTemplate,
        operation: u64,
        watch: &mut Watch,
    ) -> Result<Made, (Call, CK_RV)> {
        let Self { module, session, mechanism, key, input, result, length } = self;
        let functions = &module.functions;
        let raw = template;
        let (mut object, mut second) = (CK_INVALID_HANDLE, CK_INVALID_HANDLE);
        let (data, data_length) = (input.bytes.as_ptr().cast_mut(), input.bytes.len() as CK_ULONG);
        let name = how.call();
        watch.enter(name, operation);
        // All calls: the mechanism is armed for this operation, templates, input
        // and result are as long as they say, and all outlive the call.
        match how {
            // SAFETY: as said above.
            Make::Derive => call(name, functions.C_DeriveKey, |f| unsafe {
                f(session, mechanism, key, raw.as_mut_ptr(), raw.len(), &mut object)
            }),
            // SAFETY: as said above.
            Make::Unwrap => call(name, functions.C_UnwrapKey, |f| unsafe {
                f(
                    session,
                    mechanism,
                    key,
                    data,
                    data_length,
                    raw.as_mut_ptr(),
                    raw.len(),
                    &mut object,
                )
            }),
            // SAFETY: as said above.
            Make::GenerateKey => call(name, functions.C_GenerateKey, |f| unsafe {
                f(session, mechanism, raw.as_mut_ptr(), raw.len(), &mut object)
            }),
            // SAFETY: as said above.
            Make::GenerateKeyPair => call(name, functions.C_GenerateKeyPair, |f| unsafe {
                f(
                    session,
                    mechanism,
                    raw.as_mut_ptr(),
                    raw.len(),
                    private.as_mut_ptr(),
                    private.len(),
                    &mut object,
                    &mut second,
                )
            }),
            // SAFETY: as said above.
            Make::Encapsulate => call(name, functions.C_EncapsulateKey, |f| unsafe {
                f(
                    session,
                    mechanism,
                    if input.object == CK_INVALID_HANDLE { key } else { input.object },
                    raw.as_mut_ptr(),
                    raw.len(),
                    result,
                    length,
                    &mut object,
                )
            }),
            // SAFETY: as said above.
            Make::Decapsulate => call(name, functions.C_DecapsulateKey, |f| unsafe {
                f(
                    session,
                    mechanism,
                    key,
                    raw.as_mut_ptr(),
                    raw.len(),
                    data,
                    data_length,
                    &mut object,
                )
            }),
        }?;
        if how != Make::Encapsulate {
            *length = 0;
        }
        Ok([object, second])
    }
}

impl Make {
    /// The call that makes the object.
    pub(super) fn call(self) -> Call {
        match self {
            Self::Derive => Call::C_DeriveKey,
            Self::Unwrap => Call::C_UnwrapKey,
            Self::GenerateKey => Call::C_GenerateKey,
            Self::GenerateKeyPair => Call::C_GenerateKeyPair,
            Self::Encapsulate => Call::C_EncapsulateKey,
            Self::Decapsulate => Call::C_DecapsulateKey,
        }
    }
}

/// For messages: a code with the call that gave it.
pub(super) fn failure((call, code): (Call, CK_RV)) -> tapstone_names::pkcs11::Pkcs11Failure {
    tapstone_names::pkcs11::Pkcs11Failure { call, code: Rv(code as u64) }
}
