//! The token against itself, where nobody else has the key: a cipher text that it opens again, a
//! code that it confirms. Outside the timed section, and marked as the token's own word.

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure as Failure, Rv};

use super::capture::IV_BYTES;
use super::parameters::Armed;
use crate::catalogue::{Shape, Variant};
use crate::module::{Session, ck};

/// One key of the token that does the opposite of what is measured.
pub(super) struct RoundTrip<'a> {
    pub(super) session: &'a Session,
    pub(super) variant: &'a Variant,
    pub(super) key: CK_OBJECT_HANDLE,
}

impl RoundTrip<'_> {
    /// The cipher text of a message, for decryption under a key that software does not know.
    pub(super) fn seal(&self, message: &[u8], iv: &[u8]) -> Result<Vec<u8>, Failure> {
        self.transform(Shape::Encrypt, message, iv)
    }

    /// The message that a result belongs to: the plain text of a cipher text, or `message` itself
    /// if the token confirms the code over it; empty if the token says no. `None`: it may not tell.
    pub(super) fn message_of(&self, result: &[u8], iv: &[u8], message: &[u8]) -> Option<Vec<u8>> {
        let answer = match self.variant.shape {
            Shape::Encrypt => self.transform(Shape::Decrypt, result, iv),
            Shape::Sign => self.confirms(message, result).map(|()| message.to_vec()),
            // Decrypted from what the token itself had sealed.
            Shape::Decrypt => Ok(result.to_vec()),
            _ => return None,
        };
        match answer {
            Ok(message) => Some(message),
            Err(failure) if may_not_tell(failure.code) => None,
            Err(_) => Some(Vec::new()),
        }
    }

    fn transform(&self, how: Shape, data: &[u8], iv: &[u8]) -> Result<Vec<u8>, Failure> {
        // As a decryption, so that the IV is the one given and not the worker's counter.
        let variant = Variant { shape: Shape::Decrypt, ..self.variant.clone() };
        let mut armed = Armed::new(&variant);
        let mut place = [0; IV_BYTES];
        // SAFETY: `place` has room for an IV; all three outlive the use of the mechanism below.
        let mechanism = unsafe { armed.next(0, 0, data, iv, place.as_mut_ptr()) };
        let (session, key) = (self.session.handle, self.key);
        let mut result = vec![0; data.len() + variant.output_capacity_bytes()];
        let mut length = result.len() as CK_ULONG;
        let (bytes, count) = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
        // The mechanism is armed; data and result are as long as the lengths say.
        if how == Shape::Encrypt {
            ck!(&self.session.module, C_EncryptInit(session, mechanism, key))?;
            ck!(
                &self.session.module,
                C_Encrypt(session, bytes, count, result.as_mut_ptr(), &mut length)
            )?;
        } else {
            ck!(&self.session.module, C_DecryptInit(session, mechanism, key))?;
            ck!(
                &self.session.module,
                C_Decrypt(session, bytes, count, result.as_mut_ptr(), &mut length)
            )?;
        }
        result.truncate(length as usize);
        Ok(result)
    }

    fn confirms(&self, message: &[u8], code: &[u8]) -> Result<(), Failure> {
        let mut armed = Armed::new(self.variant);
        let mut place = [0; IV_BYTES];
        // SAFETY: as above.
        let mechanism = unsafe { armed.next(0, 0, message, &[], place.as_mut_ptr()) };
        let (module, session) = (&self.session.module, self.session.handle);
        let (bytes, count) = (message.as_ptr().cast_mut(), message.len() as CK_ULONG);
        // The mechanism is armed; message and code are only read, within their lengths.
        ck!(module, C_VerifyInit(session, mechanism, self.key))?;
        ck!(
            module,
            C_Verify(session, bytes, count, code.as_ptr().cast_mut(), code.len() as CK_ULONG)
        )
    }
}

/// The key, or the token as it is now, does not do the opposite operation.
fn may_not_tell(code: Rv) -> bool {
    code.is_lost()
        || matches!(
            code.0 as CK_RV,
            CKR_KEY_FUNCTION_NOT_PERMITTED
                | CKR_KEY_TYPE_INCONSISTENT
                | CKR_MECHANISM_INVALID
                | CKR_FUNCTION_NOT_SUPPORTED
        )
}
