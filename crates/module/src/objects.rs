//! Objects: made, found, read and destroyed.

use std::collections::BTreeSet;
use std::ptr;

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv, Violation};

use super::{Session, Template, ck};
use tapstone_token_operations::catalogue::MAX_MESSAGE_BYTES;

impl Session {
    /// Creates a small public session object that only has a label.
    ///
    /// # Errors
    /// As [`Session::create_object`].
    pub fn create_labelled_object(&self, label: &str) -> Result<CK_OBJECT_HANDLE, Pkcs11Failure> {
        let template = Template::new()
            .number(CKA_CLASS, CKO_DATA)
            .flag(CKA_TOKEN, false)
            .flag(CKA_PRIVATE, false)
            .bytes(CKA_LABEL, label.as_bytes())
            .bytes(CKA_VALUE, label.as_bytes());
        self.create_object(template)
    }

    /// Makes a secret key (C_GenerateKey) and gives its handle.
    ///
    /// # Errors
    /// The code of the call, or a violation where the handle is zero or that of a live
    /// object.
    pub fn generate_key(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        template: Template,
    ) -> Result<CK_OBJECT_HANDLE, Pkcs11Failure> {
        let mut mechanism = bare(mechanism);
        let mut raw = template.into_raw();
        let mut key = CK_INVALID_HANDLE;
        // SAFETY: the template is as long as it says; all outlive the call.
        unsafe {
            ck!(
                &self.module,
                C_GenerateKey(self.handle, &mut mechanism, raw.as_mut_ptr(), raw.count(), &mut key)
            )
        }?;
        self.made(Pkcs11Function::C_GenerateKey, key)
    }

    /// C_GenerateKeyPair: the public key, then the private.
    ///
    /// # Errors
    /// The code of the call, or a violation where a handle is zero or that of a live object.
    pub fn generate_key_pair(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        public: Template,
        private: Template,
    ) -> Result<(CK_OBJECT_HANDLE, CK_OBJECT_HANDLE), Pkcs11Failure> {
        let mut mechanism = bare(mechanism);
        let mut public = public.into_raw();
        let mut private = private.into_raw();
        let mut public_key = CK_INVALID_HANDLE;
        let mut private_key = CK_INVALID_HANDLE;
        // SAFETY: the templates are as long as they say; all outlive the call.
        unsafe {
            ck!(
                &self.module,
                C_GenerateKeyPair(
                    self.handle,
                    &mut mechanism,
                    public.as_mut_ptr(),
                    public.count(),
                    private.as_mut_ptr(),
                    private.count(),
                    &mut public_key,
                    &mut private_key,
                )
            )
        }?;
        let call = Pkcs11Function::C_GenerateKeyPair;
        Ok((self.made(call, public_key)?, self.made(call, private_key)?))
    }

    /// Makes an object of given values (C_CreateObject) and gives its handle.
    ///
    /// # Errors
    /// The code of the call, or a violation where the handle is zero or that of a live
    /// object.
    pub fn create_object(&self, template: Template) -> Result<CK_OBJECT_HANDLE, Pkcs11Failure> {
        let mut raw = template.into_raw();
        let mut object = CK_INVALID_HANDLE;
        // SAFETY: the template is as long as it says; all outlive the call.
        unsafe {
            ck!(
                &self.module,
                C_CreateObject(self.handle, raw.as_mut_ptr(), raw.count(), &mut object)
            )
        }?;
        self.made(Pkcs11Function::C_CreateObject, object)
    }

    /// A handle for a new object, which no other live one has.
    fn made(
        &self,
        call: Pkcs11Function,
        object: CK_OBJECT_HANDLE,
    ) -> Result<CK_OBJECT_HANDLE, Pkcs11Failure> {
        if object == CK_INVALID_HANDLE {
            return Err(self.module.broken(call, Violation::InvalidHandle));
        }
        if !self.module.live_objects.claim(object as u64) {
            return Err(self.module.broken(call, Violation::LiveHandle));
        }
        Ok(object)
    }

    /// C_DestroyObject. The caller knows that the object is Tapstone's own.
    ///
    /// # Errors
    /// The code of the call. The handle is free either way.
    pub fn destroy_object(&self, object: CK_OBJECT_HANDLE) -> Result<(), Pkcs11Failure> {
        self.module.live_objects.release(object as u64);
        // SAFETY: only values are passed.
        unsafe { ck!(&self.module, C_DestroyObject(self.handle, object)) }
    }

    /// The objects that match a template, at most `limit` of them.
    ///
    /// # Errors
    /// The code of a call of the search, or a violation: more handles than there was room for, zero, or
    /// one twice.
    pub fn find_objects(
        &self,
        template: Template,
        limit: usize,
    ) -> Result<Vec<CK_OBJECT_HANDLE>, Pkcs11Failure> {
        let mut raw = template.into_raw();
        // SAFETY: the template is as long as it says and outlives the call.
        unsafe {
            ck!(&self.module, C_FindObjectsInit(self.handle, raw.as_mut_ptr(), raw.count()))
        }?;
        let found = self.find_next(limit);
        // The search must end whatever came of it, or the session is of no more use.
        // SAFETY: only values are passed.
        let ended = unsafe { ck!(&self.module, C_FindObjectsFinal(self.handle)) };
        let found = found?;
        ended?;
        Ok(found)
    }

    fn find_next(&self, limit: usize) -> Result<Vec<CK_OBJECT_HANDLE>, Pkcs11Failure> {
        let mut found = Vec::new();
        let mut known = BTreeSet::new();
        let mut batch = [CK_INVALID_HANDLE; 64];
        while found.len() < limit {
            let room = batch.len().min(limit - found.len()) as CK_ULONG;
            let mut count = 0;
            // SAFETY: `batch` has room for `room` handles; all outlive the call.
            unsafe {
                ck!(&self.module, C_FindObjects(self.handle, batch.as_mut_ptr(), room, &mut count))
            }?;
            if count == 0 {
                break;
            }
            if count > room {
                let numbers = Violation::numbers(count as u64, room as u64);
                let violation = Violation::BeyondRoom(numbers);
                return Err(self.module.broken(Pkcs11Function::C_FindObjects, violation));
            }
            let handles = &batch[..count as usize];
            if handles.contains(&CK_INVALID_HANDLE) {
                return Err(self
                    .module
                    .broken(Pkcs11Function::C_FindObjects, Violation::InvalidHandle));
            }
            // A search that starts over would never end.
            if handles.iter().any(|handle| !known.insert(*handle)) {
                return Err(self
                    .module
                    .broken(Pkcs11Function::C_FindObjects, Violation::LiveHandle));
            }
            found.extend_from_slice(handles);
        }
        Ok(found)
    }

    /// The bytes of one attribute of an object (C_GetAttributeValue).
    ///
    /// # Errors
    /// The code of the call, CKR_ATTRIBUTE_SENSITIVE where the value is withheld, or a violation where
    /// its length cannot be.
    pub fn attribute(
        &self,
        object: CK_OBJECT_HANDLE,
        attribute: CK_ATTRIBUTE_TYPE,
    ) -> Result<Vec<u8>, Pkcs11Failure> {
        let mut raw = CK_ATTRIBUTE { type_: attribute, pValue: ptr::null_mut(), ulValueLen: 0 };
        // SAFETY: a null value asks for the length (PKCS #11 3.2, 5.7.5); `raw` outlives the call.
        unsafe { ck!(&self.module, C_GetAttributeValue(self.handle, object, &mut raw, 1)) }?;
        if raw.ulValueLen == CK_UNAVAILABLE_INFORMATION {
            let code = Rv(CKR_ATTRIBUTE_SENSITIVE);
            return Err(Pkcs11Failure { call: Pkcs11Function::C_GetAttributeValue, code });
        }
        let room = raw.ulValueLen as u64;
        if room > MAX_ATTRIBUTE_BYTES {
            let numbers = Violation::numbers(room, MAX_ATTRIBUTE_BYTES);
            let violation = Violation::WrongLength(numbers);
            return Err(self.module.broken(Pkcs11Function::C_GetAttributeValue, violation));
        }
        let mut value = vec![0; room as usize];
        raw.pValue = value.as_mut_ptr().cast();
        // SAFETY: `value` has room for the length that the module named.
        unsafe { ck!(&self.module, C_GetAttributeValue(self.handle, object, &mut raw, 1)) }?;
        if raw.ulValueLen as u64 > room {
            let violation =
                Violation::BeyondBuffer(Violation::numbers(raw.ulValueLen as u64, room));
            return Err(self.module.broken(Pkcs11Function::C_GetAttributeValue, violation));
        }
        value.truncate(raw.ulValueLen as usize);
        Ok(value)
    }

    /// A `CK_BBOOL` attribute; `None` where the token does not tell.
    pub fn flag(&self, object: CK_OBJECT_HANDLE, attribute: CK_ATTRIBUTE_TYPE) -> Option<bool> {
        self.attribute(object, attribute).ok()?.first().map(|byte| *byte != 0)
    }
}

/// No attribute that is read here is longer: public keys, labels, ids, and values as long as the
/// longest message.
const MAX_ATTRIBUTE_BYTES: u64 = 2 * MAX_MESSAGE_BYTES as u64;

/// A mechanism without parameters.
pub(crate) fn bare(mechanism: CK_MECHANISM_TYPE) -> CK_MECHANISM {
    CK_MECHANISM { mechanism, pParameter: ptr::null_mut(), ulParameterLen: 0 }
}
