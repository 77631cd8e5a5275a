//! A session: opened for one thread, closed by itself when dropped. C_CloseAllSessions is never
//! used: it is broken in some modules, and it would end what others do.

use std::ptr;
use std::sync::Arc;

use cryptoki_sys::*;
use tapstone_names::pkcs11::Pkcs11Failure;

use super::{Module, ck};
use tapstone_pin::Pin;

/// One open session, closed when it is dropped, unless it is lent.
pub struct Session {
    /// The module that it is of.
    pub module: Arc<Module>,
    /// `CK_SESSION_HANDLE`.
    pub handle: CK_SESSION_HANDLE,
    /// It is somebody else's, who closes it.
    is_lent: bool,
}

impl Session {
    /// Opens a session; read-only on a token that takes no other.
    ///
    /// # Errors
    /// The code of C_OpenSession, or a violation where the handle is zero or that of an open session.
    pub fn open(
        module: &Arc<Module>,
        slot: CK_SLOT_ID,
        read_only: bool,
    ) -> Result<Self, Pkcs11Failure> {
        let flags =
            if read_only { CKF_SERIAL_SESSION } else { CKF_SERIAL_SESSION | CKF_RW_SESSION };
        let mut handle = CK_INVALID_HANDLE;
        // SAFETY: no callback is given; `handle` outlives the call.
        unsafe { ck!(module, C_OpenSession(slot, flags, ptr::null_mut(), None, &mut handle)) }?;
        module.take_session(handle)?;
        Ok(Self { module: Arc::clone(module), handle, is_lent: false })
    }

    /// The same session for somebody who uses it while its owner does not, and never closes it.
    pub fn lend(&self) -> Self {
        Self { module: Arc::clone(&self.module), handle: self.handle, is_lent: true }
    }

    /// Whether somebody else closes it.
    pub const fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// C_Login as user; `None`: the token asks for the PIN itself.
    ///
    /// # Errors
    /// The code of C_Login. CKR_PIN_INCORRECT has spent a try: nobody here asks again.
    pub fn login(&self, pin: Option<&Pin>) -> Result<(), Pkcs11Failure> {
        let (bytes, length) = match pin {
            Some(pin) => (pin.expose().as_ptr().cast_mut(), pin.expose().len()),
            None => (ptr::null_mut(), 0),
        };
        // SAFETY: the PIN is `length` bytes long and is only read (PKCS #11 3.2, 5.6.8).
        unsafe { ck!(&self.module, C_Login(self.handle, CKU_USER, bytes, length as CK_ULONG)) }
    }

    /// C_Login for the operation that has begun in this session, with a key that asks for it
    /// (CKA_ALWAYS_AUTHENTICATE).
    ///
    /// # Errors
    /// The code of C_Login. CKR_PIN_INCORRECT has spent a try: nobody here asks again.
    pub fn login_for_key(&self, pin: &Pin) -> Result<(), Pkcs11Failure> {
        let bytes = pin.expose().as_ptr().cast_mut();
        let length = pin.expose().len() as CK_ULONG;
        // SAFETY: the PIN is `length` bytes long and is only read (PKCS #11 3.2, 5.6.8).
        unsafe { ck!(&self.module, C_Login(self.handle, CKU_CONTEXT_SPECIFIC, bytes, length)) }
    }

    /// C_Logout: at the very end, for it destroys the private session objects of all sessions.
    ///
    /// # Errors
    /// The code of C_Logout.
    pub fn logout(&self) -> Result<(), Pkcs11Failure> {
        // SAFETY: only values are passed.
        unsafe { ck!(&self.module, C_Logout(self.handle)) }
    }

    /// C_CloseSession, once; from then on the handle is none.
    pub fn close(&mut self) {
        let handle = std::mem::replace(&mut self.handle, CK_INVALID_HANDLE);
        if handle != CK_INVALID_HANDLE && !self.is_lent {
            self.module.live_sessions.release(handle as u64);
            // A session that is gone already needs no closing.
            // SAFETY: only values are passed.
            let _ = unsafe { ck!(&self.module, C_CloseSession(handle)) };
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}
