//! Operations that turn an input into a result in a buffer: signatures, ciphers, digests, wrapped
//! keys.

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function as Function, Rv};

use super::super::operation::{CallError, Operation, TimedCalls, call_function, check_code};
use super::super::parameters::IvSource;
use super::super::round_trip::RoundTrip;
use super::shape_work::{CallSetup, KeptResult, ShapeWork};
use crate::catalogue::{KeySpec, Parameters, Variant};
use crate::module::key_templates::KeyUsage;
use crate::module::{Session, Template};
use tapstone_pin::Pin;

/// `C_SignInit`, `C_Sign`.
pub(super) struct Sign;

impl ShapeWork for Sign {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let functions = &setup.shared.module.functions;
        Ok(Box::new(KeyedCalls {
            init: Named::present(Function::C_SignInit, functions.C_SignInit)?,
            transform: Named::present(Function::C_Sign, functions.C_Sign)?,
            key_pin: setup.key_pin.clone(),
        }))
    }

    fn message_by_token(
        &self,
        token: &RoundTrip<'_>,
        kept: &KeptResult<'_>,
    ) -> Option<Result<Vec<u8>, Pkcs11Failure>> {
        Some(token.confirm(kept.message, kept.result).map(|()| kept.message.to_vec()))
    }
}

/// `C_EncryptInit`, `C_Encrypt`.
pub(super) struct Encrypt;

impl ShapeWork for Encrypt {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let functions = &setup.shared.module.functions;
        Ok(Box::new(KeyedCalls {
            init: Named::present(Function::C_EncryptInit, functions.C_EncryptInit)?,
            transform: Named::present(Function::C_Encrypt, functions.C_Encrypt)?,
            key_pin: setup.key_pin.clone(),
        }))
    }

    fn key_usage(&self) -> KeyUsage {
        CIPHER
    }

    fn class_of_pair(&self) -> CK_OBJECT_CLASS {
        CKO_PUBLIC_KEY
    }

    fn iv_source(&self, variant: &Variant) -> IvSource {
        match variant.parameters {
            // An IV must never come twice under one key (SP 800-38D, 8.2).
            Parameters::Gcm { .. } => IvSource::WorkerCounter,
            _ => IvSource::Input,
        }
    }

    fn message_by_token(
        &self,
        token: &RoundTrip<'_>,
        kept: &KeptResult<'_>,
    ) -> Option<Result<Vec<u8>, Pkcs11Failure>> {
        Some(token.decrypt(kept.result, kept.iv))
    }
}

/// `C_DecryptInit`, `C_Decrypt`.
pub(super) struct Decrypt;

impl ShapeWork for Decrypt {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let functions = &setup.shared.module.functions;
        Ok(Box::new(KeyedCalls {
            init: Named::present(Function::C_DecryptInit, functions.C_DecryptInit)?,
            transform: Named::present(Function::C_Decrypt, functions.C_Decrypt)?,
            key_pin: setup.key_pin.clone(),
        }))
    }

    fn key_usage(&self) -> KeyUsage {
        CIPHER
    }

    fn inputs_need_key_value(&self) -> bool {
        true
    }

    fn token_can_make_inputs(&self) -> bool {
        true
    }

    /// Decrypted from what the token itself had encrypted.
    fn message_by_token(
        &self,
        _token: &RoundTrip<'_>,
        kept: &KeptResult<'_>,
    ) -> Option<Result<Vec<u8>, Pkcs11Failure>> {
        Some(Ok(kept.result.to_vec()))
    }
}

/// `C_DigestInit`, `C_Digest`.
pub(super) struct Digest;

impl ShapeWork for Digest {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let functions = &setup.shared.module.functions;
        Ok(Box::new(DigestCalls {
            init: Named::present(Function::C_DigestInit, functions.C_DigestInit)?,
            digest: Named::present(Function::C_Digest, functions.C_Digest)?,
        }))
    }
}

/// `C_WrapKey`.
pub(super) struct Wrap;

impl ShapeWork for Wrap {
    fn timed_calls(&self, _setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        Ok(Box::new(WrapCalls))
    }

    fn key_usage(&self) -> KeyUsage {
        WRAPPING
    }

    fn class_of_pair(&self) -> CK_OBJECT_CLASS {
        CKO_PUBLIC_KEY
    }

    /// The key to be wrapped.
    fn import_input(
        &self,
        session: &Session,
        _key: KeySpec,
        input: &[u8],
    ) -> Result<Option<CK_OBJECT_HANDLE>, Pkcs11Failure> {
        let template = Template::new()
            .number(CKA_CLASS, CKO_SECRET_KEY)
            .number(CKA_KEY_TYPE, CKK_AES)
            .flag(CKA_TOKEN, false)
            .flag(CKA_PRIVATE, false)
            .flag(CKA_SENSITIVE, false)
            .flag(CKA_EXTRACTABLE, true)
            .flag(CKA_ENCRYPT, true)
            .bytes(CKA_VALUE, input);
        session.create_object(template).map(Some)
    }
}

const CIPHER: KeyUsage = KeyUsage { used_half: CKA_DECRYPT, other_half: CKA_ENCRYPT };

/// What a key may do that wraps others.
pub(super) const WRAPPING: KeyUsage = KeyUsage { used_half: CKA_UNWRAP, other_half: CKA_WRAP };

/// `C_…Init` of operations under a key.
type Init = unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) -> CK_RV;

/// `C_Sign`, `C_Encrypt`, `C_Decrypt` and `C_Digest` are called alike.
type Transform = unsafe extern "C" fn(
    CK_SESSION_HANDLE,
    *mut CK_BYTE,
    CK_ULONG,
    *mut CK_BYTE,
    *mut CK_ULONG,
) -> CK_RV;

/// A function of the table that is there, with its name.
struct Named<F> {
    call: Function,
    function: F,
}

impl<F> Named<F> {
    fn present(call: Function, function: Option<F>) -> Result<Self, Pkcs11Failure> {
        let absent = Pkcs11Failure { call, code: Rv::NOT_IN_FUNCTION_LIST };
        function.map(|function| Self { call, function }).ok_or(absent)
    }
}

impl Named<Transform> {
    #[inline(always)]
    fn transform(&self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        operation.enter(self.call);
        // SAFETY: input and result are as long as their lengths say.
        check_code(self.call, unsafe {
            (self.function)(
                operation.session,
                operation.data,
                operation.data_length,
                operation.result,
                &mut operation.result_length,
            )
        })
    }
}

/// …Init, then one call with input and result.
struct KeyedCalls {
    init: Named<Init>,
    transform: Named<Transform>,
    /// The key asks for a login of its own after each …Init (CKA_ALWAYS_AUTHENTICATE).
    key_pin: Option<Pin>,
}

impl TimedCalls for KeyedCalls {
    fn answering_call(&self) -> Function {
        self.transform.call
    }

    #[inline]
    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let init = &self.init;
        operation.enter(init.call);
        // SAFETY: the mechanism holds the parameters of this operation.
        let code =
            unsafe { (init.function)(operation.session, operation.mechanism, operation.key) };
        check_code(init.call, code)?;
        if let Some(pin) = &self.key_pin {
            log_in_for_key(operation, pin)?;
        }
        self.transform.transform(operation)
    }

    fn may_leave_session_active(&self) -> bool {
        true
    }
}

fn log_in_for_key(operation: &mut Operation<'_>, pin: &Pin) -> Result<(), CallError> {
    operation.enter(Function::C_Login);
    let bytes = pin.expose();
    // SAFETY: the PIN is as long as it says and is only read.
    call_function(Function::C_Login, operation.module.functions.C_Login, |f| unsafe {
        f(
            operation.session,
            CKU_CONTEXT_SPECIFIC,
            bytes.as_ptr().cast_mut(),
            bytes.len() as CK_ULONG,
        )
    })
}

/// `C_DigestInit`: there is no key.
type KeylessInit = unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_MECHANISM) -> CK_RV;

struct DigestCalls {
    init: Named<KeylessInit>,
    digest: Named<Transform>,
}

impl TimedCalls for DigestCalls {
    fn answering_call(&self) -> Function {
        Function::C_Digest
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let init = &self.init;
        operation.enter(init.call);
        // SAFETY: the mechanism holds the parameters of this operation.
        let code = unsafe { (init.function)(operation.session, operation.mechanism) };
        check_code(init.call, code)?;
        self.digest.transform(operation)
    }

    fn may_leave_session_active(&self) -> bool {
        true
    }
}

struct WrapCalls;

impl TimedCalls for WrapCalls {
    fn answering_call(&self) -> Function {
        Function::C_WrapKey
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        operation.enter(Function::C_WrapKey);
        // SAFETY: the mechanism holds the parameters of this operation, and the result has room
        // for what its length says.
        call_function(Function::C_WrapKey, operation.module.functions.C_WrapKey, |f| unsafe {
            f(
                operation.session,
                operation.mechanism,
                operation.key,
                operation.input_object,
                operation.result,
                &mut operation.result_length,
            )
        })
    }
}
