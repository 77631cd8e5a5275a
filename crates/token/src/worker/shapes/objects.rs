//! Operations that make objects: derived and unwrapped keys, new keys and pairs, shared secrets.
//! Each operation also destroys as many objects as it makes.

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function as Function, Violation};

use super::super::operation::{CallError, Operation, TimedCalls, call_function};
use super::shape_work::{CallSetup, KeptResults, ObjectLimits, ShapeWork};
use super::transforms::WRAPPING;
use crate::catalogue::{KeySpec, Parameters};
use crate::module::key_templates::{KeyAccess, KeyUsage, private_half, public_halves, secret_key};
use crate::module::{RawTemplate, Session, Template};
use crate::protocol::{Login, NewKeys};

const SECRETS: ObjectLimits = ObjectLimits { in_window: 64, in_counted_case: 4096 };

/// Pairs are slow to make, and as many have to be made before the case starts.
const PAIRS: ObjectLimits = ObjectLimits { in_window: 4, in_counted_case: 64 };

const KEM: KeyUsage = KeyUsage { used_half: CKA_DECAPSULATE, other_half: CKA_ENCAPSULATE };

/// The length of an ML-KEM shared secret (FIPS 203, table 3).
const KEM_SECRET_BYTES: CK_ULONG = 32;

/// `C_DeriveKey`, `C_DestroyObject`.
pub(super) struct Derive;

impl ShapeWork for Derive {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let bytes = match setup.variant.parameters {
            Parameters::Ecdh { secret_bytes } => secret_bytes,
            _ => 0,
        };
        let template = made_secret(setup, CKK_GENERIC_SECRET)
            .number(CKA_VALUE_LEN, bytes as CK_ULONG)
            .into_raw();
        Ok(Box::new(DeriveCalls { template }))
    }

    fn key_usage(&self) -> KeyUsage {
        KeyUsage { used_half: CKA_DERIVE, other_half: CKA_DERIVE }
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::Objects(SECRETS)
    }
}

struct DeriveCalls {
    template: RawTemplate,
}

impl TimedCalls for DeriveCalls {
    fn answering_call(&self) -> Function {
        Function::C_DeriveKey
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let mut object = CK_INVALID_HANDLE;
        operation.enter(Function::C_DeriveKey);
        let function = operation.module.functions.C_DeriveKey;
        // SAFETY: the mechanism holds the parameters of this operation, the template is as long as
        // it says, and both outlive the call.
        call_function(Function::C_DeriveKey, function, |f| unsafe {
            f(
                operation.session,
                operation.mechanism,
                operation.key,
                self.template.as_mut_ptr(),
                self.template.count(),
                &mut object,
            )
        })?;
        keep_without_bytes(operation, Function::C_DeriveKey, object)
    }
}

/// `C_UnwrapKey`, `C_DestroyObject`.
pub(super) struct Unwrap;

impl ShapeWork for Unwrap {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let template = made_secret(setup, CKK_AES).flag(CKA_ENCRYPT, true).into_raw();
        Ok(Box::new(UnwrapCalls { template }))
    }

    fn key_usage(&self) -> KeyUsage {
        WRAPPING
    }

    fn inputs_need_key_value(&self) -> bool {
        true
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::Objects(SECRETS)
    }
}

struct UnwrapCalls {
    template: RawTemplate,
}

impl TimedCalls for UnwrapCalls {
    fn answering_call(&self) -> Function {
        Function::C_UnwrapKey
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let mut object = CK_INVALID_HANDLE;
        operation.enter(Function::C_UnwrapKey);
        let function = operation.module.functions.C_UnwrapKey;
        // SAFETY: the mechanism holds the parameters of this operation, input and template are as
        // long as they say, and all outlive the call.
        call_function(Function::C_UnwrapKey, function, |f| unsafe {
            f(
                operation.session,
                operation.mechanism,
                operation.key,
                operation.data,
                operation.data_length,
                self.template.as_mut_ptr(),
                self.template.count(),
                &mut object,
            )
        })?;
        keep_without_bytes(operation, Function::C_UnwrapKey, object)
    }
}

/// `C_GenerateKey`, `C_DestroyObject`.
pub(super) struct GenerateKey;

impl ShapeWork for GenerateKey {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let template = secret_key(setup.variant.key, self.key_usage(), access(setup));
        let template = marked(setup, template).into_raw();
        Ok(Box::new(GenerateKeyCalls { template }))
    }

    fn needs_key(&self) -> bool {
        false
    }

    fn generates_keys(&self) -> bool {
        true
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::Objects(SECRETS)
    }
}

struct GenerateKeyCalls {
    template: RawTemplate,
}

impl TimedCalls for GenerateKeyCalls {
    fn answering_call(&self) -> Function {
        Function::C_GenerateKey
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let mut object = CK_INVALID_HANDLE;
        operation.enter(Function::C_GenerateKey);
        let function = operation.module.functions.C_GenerateKey;
        // SAFETY: the template is as long as it says, and it and the mechanism outlive the call.
        call_function(Function::C_GenerateKey, function, |f| unsafe {
            f(
                operation.session,
                operation.mechanism,
                self.template.as_mut_ptr(),
                self.template.count(),
                &mut object,
            )
        })?;
        keep_without_bytes(operation, Function::C_GenerateKey, object)
    }
}

/// `C_GenerateKeyPair`, `C_DestroyObject` of both halves.
pub(super) struct GenerateKeyPair;

impl ShapeWork for GenerateKeyPair {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        let public = public_halves(setup.variant.key, self.key_usage()).swap_remove(0);
        let private = private_half(self.key_usage(), access(setup));
        Ok(Box::new(GenerateKeyPairCalls {
            public: marked(setup, public).into_raw(),
            private: marked(setup, private).into_raw(),
        }))
    }

    fn needs_key(&self) -> bool {
        false
    }

    fn generates_keys(&self) -> bool {
        true
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::Objects(PAIRS)
    }

    fn judged_attribute(&self, key: KeySpec) -> CK_ATTRIBUTE_TYPE {
        match key {
            KeySpec::Rsa { .. } => CKA_MODULUS,
            KeySpec::Ec { .. } | KeySpec::Ed25519 => CKA_EC_POINT,
            _ => CKA_VALUE,
        }
    }
}

struct GenerateKeyPairCalls {
    public: RawTemplate,
    private: RawTemplate,
}

impl TimedCalls for GenerateKeyPairCalls {
    fn answering_call(&self) -> Function {
        Function::C_GenerateKeyPair
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let mut public = CK_INVALID_HANDLE;
        let mut private = CK_INVALID_HANDLE;
        operation.enter(Function::C_GenerateKeyPair);
        let function = operation.module.functions.C_GenerateKeyPair;
        // SAFETY: both templates are as long as they say, and outlive the call with the mechanism.
        call_function(Function::C_GenerateKeyPair, function, |f| unsafe {
            f(
                operation.session,
                operation.mechanism,
                self.public.as_mut_ptr(),
                self.public.count(),
                self.private.as_mut_ptr(),
                self.private.count(),
                &mut public,
                &mut private,
            )
        })?;
        operation.result_length = 0;
        if private == CK_INVALID_HANDLE {
            return Err((Function::C_GenerateKeyPair, Violation::InvalidHandle.code()));
        }
        operation.keep_or_destroy(Function::C_GenerateKeyPair, [public, private])
    }
}

/// `C_EncapsulateKey` (PKCS #11 3.2), `C_DestroyObject`.
pub(super) struct Encapsulate;

impl ShapeWork for Encapsulate {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        Ok(Box::new(EncapsulateCalls { template: kem_secret(setup) }))
    }

    fn key_usage(&self) -> KeyUsage {
        KEM
    }

    fn class_of_pair(&self) -> CK_OBJECT_CLASS {
        CKO_PUBLIC_KEY
    }

    /// A public key whose private half only the verifier has.
    fn import_input(
        &self,
        session: &Session,
        key: KeySpec,
        input: &[u8],
    ) -> Result<Option<CK_OBJECT_HANDLE>, Pkcs11Failure> {
        let mut template = Template::new()
            .number(CKA_CLASS, CKO_PUBLIC_KEY)
            .number(CKA_KEY_TYPE, key.key_type().unwrap_or(CKK_GENERIC_SECRET))
            .flag(CKA_TOKEN, false)
            .flag(CKA_PRIVATE, false)
            .flag(CKA_ENCAPSULATE, true)
            .bytes(CKA_VALUE, input);
        if let Some(set) = key.parameter_set() {
            template = template.number(CKA_PARAMETER_SET, set);
        }
        session.create_object(template).map(Some)
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::BytesAndObjects(SECRETS)
    }
}

struct EncapsulateCalls {
    template: RawTemplate,
}

impl TimedCalls for EncapsulateCalls {
    fn answering_call(&self) -> Function {
        Function::C_EncapsulateKey
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let imported = operation.input_object;
        let public = if imported == CK_INVALID_HANDLE { operation.key } else { imported };
        let mut object = CK_INVALID_HANDLE;
        operation.enter(Function::C_EncapsulateKey);
        let function = operation.module.functions.C_EncapsulateKey;
        // SAFETY: the template is as long as it says, the result has room for what its length
        // says, and both outlive the call with the mechanism.
        call_function(Function::C_EncapsulateKey, function, |f| unsafe {
            f(
                operation.session,
                operation.mechanism,
                public,
                self.template.as_mut_ptr(),
                self.template.count(),
                operation.result,
                &mut operation.result_length,
                &mut object,
            )
        })?;
        operation.keep_or_destroy(Function::C_EncapsulateKey, [object, CK_INVALID_HANDLE])
    }
}

/// `C_DecapsulateKey` (PKCS #11 3.2), `C_DestroyObject`.
pub(super) struct Decapsulate;

impl ShapeWork for Decapsulate {
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure> {
        Ok(Box::new(DecapsulateCalls { template: kem_secret(setup) }))
    }

    fn key_usage(&self) -> KeyUsage {
        KEM
    }

    fn kept_results(&self) -> KeptResults {
        KeptResults::Objects(SECRETS)
    }
}

struct DecapsulateCalls {
    template: RawTemplate,
}

impl TimedCalls for DecapsulateCalls {
    fn answering_call(&self) -> Function {
        Function::C_DecapsulateKey
    }

    fn perform(&mut self, operation: &mut Operation<'_>) -> Result<(), CallError> {
        let mut object = CK_INVALID_HANDLE;
        operation.enter(Function::C_DecapsulateKey);
        let function = operation.module.functions.C_DecapsulateKey;
        // SAFETY: input and template are as long as they say, and outlive the call with the
        // mechanism.
        call_function(Function::C_DecapsulateKey, function, |f| unsafe {
            f(
                operation.session,
                operation.mechanism,
                operation.key,
                self.template.as_mut_ptr(),
                self.template.count(),
                operation.data,
                operation.data_length,
                &mut object,
            )
        })?;
        keep_without_bytes(operation, Function::C_DecapsulateKey, object)
    }
}

/// The object is the whole result: nothing stands in the buffer.
#[inline]
fn keep_without_bytes(
    operation: &mut Operation<'_>,
    call: Function,
    object: CK_OBJECT_HANDLE,
) -> Result<(), CallError> {
    operation.result_length = 0;
    operation.keep_or_destroy(call, [object, CK_INVALID_HANDLE])
}

/// The template of a secret key that an operation makes: a session object with the run's label.
fn made_secret(setup: &CallSetup<'_>, key_type: CK_KEY_TYPE) -> Template {
    let access = access(setup);
    Template::new()
        .flag(CKA_TOKEN, false)
        .bytes(CKA_LABEL, setup.label)
        .number(CKA_CLASS, CKO_SECRET_KEY)
        .number(CKA_KEY_TYPE, key_type)
        .flag(CKA_PRIVATE, access.private)
        .flag(CKA_SENSITIVE, !access.readable)
        .flag(CKA_EXTRACTABLE, access.readable)
}

/// A key that the operation generates. It carries the run's label; on the token also the id by
/// which what a killed run left is found.
fn marked(setup: &CallSetup<'_>, template: Template) -> Template {
    let template = template.bytes(CKA_LABEL, setup.label);
    match setup.new_keys {
        NewKeys::ForSession => template.flag(CKA_TOKEN, false),
        NewKeys::OnToken => template.flag(CKA_TOKEN, true).bytes(CKA_ID, &setup.new_key_id),
    }
}

fn kem_secret(setup: &CallSetup<'_>) -> RawTemplate {
    made_secret(setup, CKK_GENERIC_SECRET).number(CKA_VALUE_LEN, KEM_SECRET_BYTES).into_raw()
}

fn access(setup: &CallSetup<'_>) -> KeyAccess {
    KeyAccess { readable: setup.readable, private: setup.shared.login != Login::None }
}
