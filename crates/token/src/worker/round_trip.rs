//! The token against itself, where nobody else has the key: a cipher text that it opens again, a
//! code that it confirms. Outside the timed section, and marked as the token's own word.

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv, Violation};

use super::capture::IV_BYTES;
use super::input::{OfferedBytes, PreparedInput};
use super::parameters::{Armed, IvSource};
use crate::catalogue::Variant;
use crate::module::{Session, ck};

/// One key of the token that does the opposite of what is measured.
pub(super) struct RoundTrip<'a> {
    pub(super) session: &'a Session,
    pub(super) variant: &'a Variant,
    pub(super) key: CK_OBJECT_HANDLE,
}

impl RoundTrip<'_> {
    /// The cipher text of a message, for decryption under a key that software does not know.
    ///
    /// # Errors
    /// The failure of C_EncryptInit or C_Encrypt.
    pub(super) fn encrypt(&self, message: &[u8], iv: &[u8]) -> Result<Vec<u8>, Pkcs11Failure> {
        let module = &self.session.module;
        let session = self.session.handle;
        let mut armed = Armed::new(self.variant, IvSource::Input);
        let mut place = [0; IV_BYTES];
        let input = offered(message, iv);
        // SAFETY: `place` has room for an IV; both outlive the use of the mechanism below.
        let mechanism = unsafe { armed.next(0, 0, &input, place.as_mut_ptr()) };
        let mut result = vec![0; message.len() + self.variant.output_capacity_bytes()];
        let mut length = result.len() as CK_ULONG;
        let bytes = input.bytes.as_mut_ptr();
        let count = message.len() as CK_ULONG;
        // SAFETY: the mechanism is armed; message and result are as long as the lengths say.
        unsafe { ck!(module, C_EncryptInit(session, mechanism, self.key)) }?;
        // SAFETY: as above.
        unsafe { ck!(module, C_Encrypt(session, bytes, count, result.as_mut_ptr(), &mut length)) }?;
        cut_to_length(Pkcs11Function::C_Encrypt, result, length)
    }

    /// The message of a cipher text.
    ///
    /// # Errors
    /// The failure of C_DecryptInit or C_Decrypt.
    pub(super) fn decrypt(&self, text: &[u8], iv: &[u8]) -> Result<Vec<u8>, Pkcs11Failure> {
        let module = &self.session.module;
        let session = self.session.handle;
        let mut armed = Armed::new(self.variant, IvSource::Input);
        let mut place = [0; IV_BYTES];
        let input = offered(text, iv);
        // SAFETY: `place` has room for an IV; both outlive the use of the mechanism below.
        let mechanism = unsafe { armed.next(0, 0, &input, place.as_mut_ptr()) };
        let mut result = vec![0; text.len() + self.variant.output_capacity_bytes()];
        let mut length = result.len() as CK_ULONG;
        let bytes = input.bytes.as_mut_ptr();
        let count = text.len() as CK_ULONG;
        // SAFETY: the mechanism is armed; text and result are as long as the lengths say.
        unsafe { ck!(module, C_DecryptInit(session, mechanism, self.key)) }?;
        // SAFETY: as above.
        unsafe { ck!(module, C_Decrypt(session, bytes, count, result.as_mut_ptr(), &mut length)) }?;
        cut_to_length(Pkcs11Function::C_Decrypt, result, length)
    }

    /// Whether the token confirms the signature or code over a message.
    ///
    /// # Errors
    /// The failure of C_VerifyInit or C_Verify: CKR_SIGNATURE_INVALID, where it does not.
    pub(super) fn confirm(&self, message: &[u8], code: &[u8]) -> Result<(), Pkcs11Failure> {
        let mut armed = Armed::new(self.variant, IvSource::Input);
        let mut place = [0; IV_BYTES];
        let input = offered(message, &[]);
        // SAFETY: as above.
        let mechanism = unsafe { armed.next(0, 0, &input, place.as_mut_ptr()) };
        let module = &self.session.module;
        let session = self.session.handle;
        let bytes = input.bytes.as_mut_ptr();
        let count = message.len() as CK_ULONG;
        // SAFETY: the mechanism is armed; message and code are only read, within their lengths.
        unsafe { ck!(module, C_VerifyInit(session, mechanism, self.key)) }?;
        // SAFETY: as above.
        unsafe {
            ck!(
                module,
                C_Verify(session, bytes, count, code.as_ptr().cast_mut(), code.len() as CK_ULONG)
            )
        }
    }
}

fn offered(bytes: &[u8], iv: &[u8]) -> PreparedInput {
    let bytes = OfferedBytes::new(bytes.to_vec());
    PreparedInput { bytes, iv: iv.to_vec(), object: CK_INVALID_HANDLE }
}

/// A buffer as long as the module says, which is no longer than it was.
fn cut_to_length(
    call: Pkcs11Function,
    mut buffer: Vec<u8>,
    length: CK_ULONG,
) -> Result<Vec<u8>, Pkcs11Failure> {
    if length as u64 > buffer.len() as u64 {
        let numbers = Violation::numbers(length as u64, buffer.len() as u64);
        return Err(Pkcs11Failure { call, code: Violation::BeyondBuffer(numbers).code() });
    }
    buffer.truncate(length as usize);
    Ok(buffer)
}

/// The key, or the token as it is now, does not do the opposite operation.
pub(super) fn may_not_tell(code: Rv) -> bool {
    code.is_lost()
        || code == Rv::NOT_IN_FUNCTION_LIST
        || matches!(
            code.0 as CK_RV,
            CKR_KEY_FUNCTION_NOT_PERMITTED
                | CKR_KEY_TYPE_INCONSISTENT
                | CKR_MECHANISM_INVALID
                | CKR_FUNCTION_NOT_SUPPORTED
        )
}
