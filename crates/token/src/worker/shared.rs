//! What all threads of a worker process share: the module, the slot and the login.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use cryptoki_sys::*;
use tapstone_key_journal::KeyJournal;
use tapstone_names::pkcs11::{Pkcs11Failure, Rv};

use crate::module::{Module, Session};
use crate::protocol::{Login, OwnKey, Trouble};

/// What all threads of a worker process share.
pub(super) struct Shared {
    pub(super) module: Arc<Module>,
    pub(super) slot: CK_SLOT_ID,
    pub(super) read_only: bool,
    pub(super) login: Login,
    /// The token has refused the PIN that it accepted before: nobody tries again.
    pub(super) pin_refused: AtomicBool,
    /// The keys that are on the token.
    pub(super) journal: Mutex<KeyJournal>,
}

impl Shared {
    /// Notes a key before it is made on the token.
    pub(super) fn note(&self, label: &str, id: &[u8]) -> Result<(), Trouble> {
        let key = OwnKey { label: label.to_owned(), id: hexadecimal(id) };
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.note(key).map_err(|why| Trouble::NotNoted { why })
    }

    /// All keys of this process are gone from the token.
    pub(super) fn forget_keys(&self) {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).forget_all();
    }

    /// Logs in after the device was lost, with the PIN that it accepted before: never again once
    /// it has refused it.
    pub(super) fn login_again(&self, session: &Session) -> Result<(), Pkcs11Failure> {
        if self.login == Login::None || self.pin_refused.load(Relaxed) {
            return Ok(());
        }
        match session.login(self.login.pin()) {
            // Another thread of this process was first.
            Err(Pkcs11Failure { code, .. }) if code == ALREADY_LOGGED_IN => Ok(()),
            Err(failure) => {
                self.pin_refused.fetch_or(failure.code.is_pin(), Relaxed);
                Err(failure)
            }
            Ok(()) => Ok(()),
        }
    }
}

const ALREADY_LOGGED_IN: Rv = Rv(CKR_USER_ALREADY_LOGGED_IN as u64);

/// Two digits for each byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
