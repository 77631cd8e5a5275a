//! Sessions of a replay: one thread may use what another has opened, and waits for it.

use cryptoki_sys::*;
use tapstone_module::{Session, ck};
use tapstone_names::pkcs11::Pkcs11Failure;

use super::handles::SharedHandles;
use super::{ReplaySite, ReplayTrouble};

/// The sessions of a process, by their places.
pub(super) struct SharedSessions {
    pub(super) handles: SharedHandles,
    module: std::sync::Arc<tapstone_module::Module>,
}

impl SharedSessions {
    /// Opens those that were open before the first call.
    pub(super) fn open(site: &ReplaySite<'_>, before: &[bool]) -> Result<Self, ReplayTrouble> {
        let handles = SharedHandles::new(before.len());
        let sessions = Self { handles, module: std::sync::Arc::clone(site.module) };
        for (place, _) in before.iter().enumerate().filter(|(_, is_open)| **is_open) {
            let mut session = Session::open(site.module, site.slot, site.read_only)?;
            // It is closed with the others, when all threads are done.
            let handle = std::mem::replace(&mut session.handle, CK_INVALID_HANDLE);
            sessions.handles.set(place as u32, handle);
        }
        Ok(sessions)
    }
}

impl Drop for SharedSessions {
    /// What the recording left open, or what was stopped in the middle.
    fn drop(&mut self) {
        for handle in self.handles.living() {
            self.module.live_sessions.release(handle as u64);
            // A session that is gone already needs no closing.
            // SAFETY: only values are passed.
            let _: Result<(), Pkcs11Failure> = unsafe { ck!(&self.module, C_CloseSession(handle)) };
        }
    }
}
