//! The calls of a replay, as the recorded program made them: one clock reading before and one after
//! each, and nothing else in between.

use std::ptr;

use cryptoki_sys::*;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_module::Module;
use tapstone_names::pkcs11::{Pkcs11Function, Rv};
use tapstone_worker::BoardCell;
use tapstone_workload::TemplateShape;

use super::templates::MadeTemplates;
use crate::steps::{ReplayStep, StepInput};

/// Room for an attribute's value, and for the objects that a search finds.
const ATTRIBUTE_BYTES: usize = 8_192;
const MOST_ATTRIBUTES: usize = 255;
pub(super) const MOST_OBJECTS: usize = 4_096;

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) result: u64,
    /// How long the result is, how many objects there are, or the handle that was made.
    pub(super) output: u64,
}

/// What a call works on. Pointers lead to memory of the thread.
#[derive(Clone, Copy)]
pub(super) struct CallArguments {
    pub(super) session: CK_SESSION_HANDLE,
    pub(super) object: CK_OBJECT_HANDLE,
    pub(super) mechanism: *mut CK_MECHANISM,
    pub(super) input: *mut u8,
    pub(super) input_bytes: CK_ULONG,
    pub(super) signature: *mut u8,
    pub(super) signature_bytes: CK_ULONG,
    /// Null where only a length is asked for.
    pub(super) output: *mut u8,
    pub(super) room: CK_ULONG,
}

impl CallArguments {
    /// Nothing of a session's.
    pub(super) const NONE: Self = Self {
        session: CK_INVALID_HANDLE,
        object: CK_INVALID_HANDLE,
        mechanism: ptr::null_mut(),
        input: ptr::null_mut(),
        input_bytes: 0,
        signature: ptr::null_mut(),
        signature_bytes: 0,
        output: ptr::null_mut(),
        room: 0,
    };
}

/// Which attributes of a recorded shape are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedAttributes {
    /// Each that is told apart.
    AsRecorded,
    /// Those that every storage object has (PKCS#11 3.1, section 4.4), as many as were asked for.
    OfAnyObject,
}

impl AskedAttributes {
    fn are_had(self, kind: CK_ATTRIBUTE_TYPE) -> bool {
        let of_any = matches!(kind, CKA_CLASS | CKA_TOKEN | CKA_PRIVATE | CKA_LABEL);
        self == Self::AsRecorded || of_any
    }
}

/// Calls functions of a module for one thread.
pub(super) struct Caller<'a> {
    functions: &'a CK_FUNCTION_LIST_3_2,
    slot: CK_SLOT_ID,
    read_only: bool,
    place: BoardCell,
    objects: Vec<CK_OBJECT_HANDLE>,
    attributes: Vec<CK_ATTRIBUTE>,
    values: Vec<u8>,
    calls: u64,
}

/// A call that is given the same each time, with its function looked up.
#[derive(Clone, Copy)]
pub(super) struct KnownCall {
    function: KnownFunction,
    call: Pkcs11Function,
    pub(super) arguments: CallArguments,
    /// It is given pseudo-random input, which begins elsewhere each time.
    pub(super) moves_input: bool,
    /// A result that says that it is longer is not believed.
    longest: CK_ULONG,
}

/// A function that begins an operation with a key, or one that does its work.
#[derive(Clone, Copy)]
enum KnownFunction {
    Begin(unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) -> CK_RV),
    Work(
        unsafe extern "C" fn(CK_SESSION_HANDLE, *mut u8, CK_ULONG, *mut u8, *mut CK_ULONG) -> CK_RV,
    ),
}

/// Calls a function of the table. The SAFETY comment is at each use: what the pointers lead to is
/// as long as the arguments say, and outlives the call.
macro_rules! timed {
    ($caller:expr, $name:ident ( $($argument:expr),* )) => {{
        let caller: &mut Caller<'_> = $caller;
        caller.calls += 1;
        match caller.functions.$name {
            None => {
                let now = Monotonic.now();
                (now, now, Rv::NOT_IN_FUNCTION_LIST.0)
            }
            Some(function) => {
                caller.place.enter(Pkcs11Function::$name as u8, caller.calls);
                let begin = Monotonic.now();
                #[allow(
                    clippy::macro_metavars_in_unsafe,
                    reason = "arguments are values; see the macro's text"
                )]
                // SAFETY: see the macro's text.
                let result = unsafe { function($($argument),*) };
                let end = Monotonic.now();
                caller.place.leave();
                (begin, end, result as u64)
            }
        }
    }};
}

fn called((begin, end, result): (Nanos, Nanos, u64), output: u64) -> Called {
    Called { begin, end, result, output }
}

impl<'a> Caller<'a> {
    pub(super) fn new(
        module: &'a Module,
        slot: CK_SLOT_ID,
        read_only: bool,
        place: BoardCell,
    ) -> Self {
        Self {
            functions: &module.functions,
            slot,
            read_only,
            place,
            objects: vec![CK_INVALID_HANDLE; MOST_OBJECTS],
            attributes: Vec::with_capacity(MOST_ATTRIBUTES),
            values: Vec::new(),
            calls: 0,
        }
    }

    /// A call with its function. `None`: it is none of the frequent ones.
    pub(super) fn known(
        &self,
        step: &ReplayStep,
        mut arguments: CallArguments,
    ) -> Option<KnownCall> {
        use Pkcs11Function as F;
        let table = self.functions;
        let function = match step.call {
            F::C_EncryptInit => KnownFunction::Begin(table.C_EncryptInit?),
            F::C_DecryptInit => KnownFunction::Begin(table.C_DecryptInit?),
            F::C_SignInit => KnownFunction::Begin(table.C_SignInit?),
            F::C_VerifyInit => KnownFunction::Begin(table.C_VerifyInit?),
            F::C_Encrypt => KnownFunction::Work(table.C_Encrypt?),
            F::C_Decrypt => KnownFunction::Work(table.C_Decrypt?),
            F::C_Digest => KnownFunction::Work(table.C_Digest?),
            F::C_Sign => KnownFunction::Work(table.C_Sign?),
            _ => return None,
        };
        if let KnownFunction::Begin(_) = function {
            arguments.room = 0;
        }
        Some(KnownCall {
            function,
            call: step.call,
            arguments,
            moves_input: matches!(step.input, StepInput::Bytes(_)),
            longest: if step.only_length { CK_ULONG::MAX } else { step.room as CK_ULONG },
        })
    }

    /// Makes such a call.
    #[inline(always)]
    pub(super) fn call_known(&mut self, known: &KnownCall) -> Called {
        let with = &known.arguments;
        let mut length = with.room;
        self.calls += 1;
        self.place.enter(known.call as u8, self.calls);
        let begin = Monotonic.now();
        // SAFETY: what the arguments lead to is as long as they say, and outlives the call.
        let result = unsafe {
            match known.function {
                KnownFunction::Begin(begin) => begin(with.session, with.mechanism, with.object),
                KnownFunction::Work(work) => {
                    work(with.session, with.input, with.input_bytes, with.output, &mut length)
                }
            }
        };
        let end = Monotonic.now();
        self.place.leave();
        let is_believed = result != CKR_OK || length <= known.longest;
        let result = if is_believed { result } else { CKR_DEVICE_ERROR };
        Called { begin, end, result: result as u64, output: length as u64 }
    }

    /// Makes a call. `None`: it is none of those that are replayed.
    pub(super) fn call(
        &mut self,
        function: Pkcs11Function,
        with: &CallArguments,
    ) -> Option<Called> {
        use Pkcs11Function as F;
        Some(match function {
            F::C_GetInfo
            | F::C_GetSlotList
            | F::C_GetSlotInfo
            | F::C_GetTokenInfo
            | F::C_GetMechanismList
            | F::C_GetMechanismInfo => return self.ask_module(function, with),
            F::C_OpenSession | F::C_CloseSession | F::C_GetSessionInfo => {
                return self.use_session(function, with);
            }
            F::C_FindObjects | F::C_FindObjectsFinal => return self.search(function, with),
            F::C_EncryptInit
            | F::C_DecryptInit
            | F::C_DigestInit
            | F::C_SignInit
            | F::C_VerifyInit => return self.begin(function, with),
            F::C_Encrypt
            | F::C_Decrypt
            | F::C_Digest
            | F::C_Sign
            | F::C_EncryptUpdate
            | F::C_DecryptUpdate => return self.work(function, with),
            F::C_Verify => called(
                timed!(
                    self,
                    C_Verify(
                        with.session,
                        with.input,
                        with.input_bytes,
                        with.signature,
                        with.signature_bytes
                    )
                ),
                with.signature_bytes as u64,
            ),
            F::C_VerifyUpdate => {
                let went = timed!(self, C_VerifyUpdate(with.session, with.input, with.input_bytes));
                called(went, 0)
            }
            F::C_VerifyFinal => {
                let bytes = with.signature_bytes;
                let went = timed!(self, C_VerifyFinal(with.session, with.signature, bytes));
                called(went, bytes as u64)
            }
            F::C_DigestUpdate => {
                let went = timed!(self, C_DigestUpdate(with.session, with.input, with.input_bytes));
                called(went, 0)
            }
            F::C_SignUpdate => {
                let went = timed!(self, C_SignUpdate(with.session, with.input, with.input_bytes));
                called(went, 0)
            }
            F::C_Login => {
                let user = CKU_CONTEXT_SPECIFIC;
                let went = timed!(self, C_Login(with.session, user, with.input, with.input_bytes));
                called(went, 0)
            }
            F::C_SeedRandom => {
                let went = timed!(self, C_SeedRandom(with.session, with.input, with.input_bytes));
                called(went, 0)
            }
            F::C_GenerateRandom => {
                let count = with.input_bytes.min(with.room);
                let went = timed!(self, C_GenerateRandom(with.session, with.output, count));
                called(went, 0)
            }
            F::C_EncryptFinal | F::C_DecryptFinal | F::C_DigestFinal | F::C_SignFinal => {
                return self.finish(function, with);
            }
            F::C_DestroyObject => {
                called(timed!(self, C_DestroyObject(with.session, with.object)), 0)
            }
            _ => return None,
        })
    }

    fn ask_module(&mut self, function: Pkcs11Function, with: &CallArguments) -> Option<Called> {
        use Pkcs11Function as F;
        let slot = self.slot;
        let mut count: CK_ULONG = 0;
        Some(match function {
            F::C_GetInfo => {
                let mut info = CK_INFO::default();
                called(timed!(self, C_GetInfo(&mut info)), 0)
            }
            // A null list asks how many there are.
            F::C_GetSlotList => {
                let went = timed!(self, C_GetSlotList(CK_TRUE, ptr::null_mut(), &mut count));
                called(went, 0)
            }
            F::C_GetSlotInfo => {
                let mut info = CK_SLOT_INFO::default();
                called(timed!(self, C_GetSlotInfo(slot, &mut info)), 0)
            }
            F::C_GetTokenInfo => {
                let mut info = CK_TOKEN_INFO::default();
                called(timed!(self, C_GetTokenInfo(slot, &mut info)), 0)
            }
            F::C_GetMechanismList => {
                let went = timed!(self, C_GetMechanismList(slot, ptr::null_mut(), &mut count));
                called(went, 0)
            }
            F::C_GetMechanismInfo => {
                let mut info = CK_MECHANISM_INFO::default();
                // SAFETY: null, or the thread's own mechanism.
                let kind = unsafe { with.mechanism.as_ref() }.map_or(0, |it| it.mechanism);
                called(timed!(self, C_GetMechanismInfo(slot, kind, &mut info)), 0)
            }
            _ => return None,
        })
    }

    fn use_session(&mut self, function: Pkcs11Function, with: &CallArguments) -> Option<Called> {
        use Pkcs11Function as F;
        Some(match function {
            F::C_OpenSession => {
                let mut handle = CK_INVALID_HANDLE;
                let slot = self.slot;
                // As it was recorded, but for a token that takes no others.
                let wanted = with.room as CK_FLAGS & CKF_RW_SESSION;
                let flags = CKF_SERIAL_SESSION | if self.read_only { 0 } else { wanted };
                let went =
                    timed!(self, C_OpenSession(slot, flags, ptr::null_mut(), None, &mut handle));
                called(went, handle as u64)
            }
            F::C_CloseSession => called(timed!(self, C_CloseSession(with.session)), 0),
            F::C_GetSessionInfo => {
                let mut info = CK_SESSION_INFO::default();
                called(timed!(self, C_GetSessionInfo(with.session, &mut info)), 0)
            }
            _ => return None,
        })
    }

    fn search(&mut self, function: Pkcs11Function, with: &CallArguments) -> Option<Called> {
        use Pkcs11Function as F;
        Some(match function {
            F::C_FindObjects => {
                let most = with.room.min(MOST_OBJECTS as CK_ULONG);
                let mut count: CK_ULONG = 0;
                let objects = self.objects.as_mut_ptr();
                let went = timed!(self, C_FindObjects(with.session, objects, most, &mut count));
                called(went, count as u64)
            }
            F::C_FindObjectsFinal => called(timed!(self, C_FindObjectsFinal(with.session)), 0),
            _ => return None,
        })
    }

    /// Makes an object by these templates.
    pub(super) fn make(
        &mut self,
        function: Pkcs11Function,
        with: &CallArguments,
        templates: &mut MadeTemplates,
    ) -> Option<Called> {
        use Pkcs11Function as F;
        let CallArguments { session, mechanism, object, input, input_bytes, .. } = *with;
        let own = templates.own.as_mut_ptr();
        let count = templates.own.count();
        let mut made = CK_INVALID_HANDLE;
        let went = match function {
            F::C_DeriveKey => {
                timed!(self, C_DeriveKey(session, mechanism, object, own, count, &mut made))
            }
            F::C_UnwrapKey => timed!(
                self,
                C_UnwrapKey(session, mechanism, object, input, input_bytes, own, count, &mut made)
            ),
            F::C_GenerateKey => {
                timed!(self, C_GenerateKey(session, mechanism, own, count, &mut made))
            }
            F::C_GenerateKeyPair => {
                let public = templates.public.as_mut_ptr();
                let public_count = templates.public.count();
                let public_key = &mut templates.last_public;
                *public_key = CK_INVALID_HANDLE;
                timed!(
                    self,
                    C_GenerateKeyPair(
                        session,
                        mechanism,
                        public,
                        public_count,
                        own,
                        count,
                        public_key,
                        &mut made
                    )
                )
            }
            _ => return None,
        };
        Some(called(went, made as u64))
    }

    /// Begins a search with these attributes.
    pub(super) fn begin_search(
        &mut self,
        session: CK_SESSION_HANDLE,
        template: &mut [CK_ATTRIBUTE],
    ) -> Called {
        let first = template.as_mut_ptr();
        let count = template.len() as CK_ULONG;
        called(timed!(self, C_FindObjectsInit(session, first, count)), 0)
    }

    /// Asks for the attributes of a shape.
    pub(super) fn ask_attributes(
        &mut self,
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        shape: TemplateShape,
        asked: AskedAttributes,
    ) -> Called {
        let known = shape.attributes().map(|(number, _)| number as CK_ATTRIBUTE_TYPE);
        let known = known.filter(|kind| asked.are_had(*kind));
        // Instead of others, and of what is not told apart: something that every object has.
        let others = std::iter::repeat(CKA_TOKEN);
        let count = (shape.count() as usize).clamp(1, MOST_ATTRIBUTES);
        self.attributes.clear();
        let without_room = shape.asks_for_lengths();
        if !without_room {
            self.values.resize(count * ATTRIBUTE_BYTES, 0);
        }
        for (place, kind) in known.chain(others).take(count).enumerate() {
            let (value, length) = match without_room {
                true => (ptr::null_mut(), 0),
                false => {
                    let value = self.values[place * ATTRIBUTE_BYTES..].as_mut_ptr();
                    (value.cast(), ATTRIBUTE_BYTES as CK_ULONG)
                }
            };
            self.attributes.push(CK_ATTRIBUTE { type_: kind, pValue: value, ulValueLen: length });
        }
        let first = self.attributes.as_mut_ptr();
        let count = count as CK_ULONG;
        called(timed!(self, C_GetAttributeValue(session, object, first, count)), 0)
    }

    fn begin(&mut self, function: Pkcs11Function, with: &CallArguments) -> Option<Called> {
        use Pkcs11Function as F;
        let CallArguments { session, mechanism, object, .. } = *with;
        let went = match function {
            F::C_EncryptInit => timed!(self, C_EncryptInit(session, mechanism, object)),
            F::C_DecryptInit => timed!(self, C_DecryptInit(session, mechanism, object)),
            F::C_DigestInit => timed!(self, C_DigestInit(session, mechanism)),
            F::C_SignInit => timed!(self, C_SignInit(session, mechanism, object)),
            F::C_VerifyInit => timed!(self, C_VerifyInit(session, mechanism, object)),
            _ => return None,
        };
        Some(called(went, 0))
    }

    fn work(&mut self, function: Pkcs11Function, with: &CallArguments) -> Option<Called> {
        use Pkcs11Function as F;
        let CallArguments { session, input, input_bytes, output, .. } = *with;
        let mut length = with.room;
        let went = match function {
            F::C_Encrypt => {
                timed!(self, C_Encrypt(session, input, input_bytes, output, &mut length))
            }
            F::C_EncryptUpdate => {
                timed!(self, C_EncryptUpdate(session, input, input_bytes, output, &mut length))
            }
            F::C_DecryptUpdate => {
                timed!(self, C_DecryptUpdate(session, input, input_bytes, output, &mut length))
            }
            F::C_Decrypt => {
                timed!(self, C_Decrypt(session, input, input_bytes, output, &mut length))
            }
            F::C_Digest => {
                timed!(self, C_Digest(session, input, input_bytes, output, &mut length))
            }
            F::C_Sign => timed!(self, C_Sign(session, input, input_bytes, output, &mut length)),
            _ => return None,
        };
        Some(called(went, length as u64))
    }

    fn finish(&mut self, function: Pkcs11Function, with: &CallArguments) -> Option<Called> {
        use Pkcs11Function as F;
        let CallArguments { session, output, .. } = *with;
        let mut length = with.room;
        let went = match function {
            F::C_EncryptFinal => timed!(self, C_EncryptFinal(session, output, &mut length)),
            F::C_DecryptFinal => timed!(self, C_DecryptFinal(session, output, &mut length)),
            F::C_DigestFinal => timed!(self, C_DigestFinal(session, output, &mut length)),
            F::C_SignFinal => timed!(self, C_SignFinal(session, output, &mut length)),
            _ => return None,
        };
        Some(called(went, length as u64))
    }
}
