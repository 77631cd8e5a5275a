//! Sessions of a replay: one thread may use what another has opened, and waits for it, and for its
//! turn where several use it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cryptoki_sys::*;
use tapstone_module::{Session, ck};
use tapstone_names::pkcs11::Pkcs11Failure;

use super::handles::{SharedHandles, wait_until_found};
use super::{ReplaySite, ReplayTrouble};

/// The sessions of a process, by their places.
pub(super) struct SharedSessions {
    pub(super) handles: SharedHandles,
    /// Of each that several threads use, how many of its calls are made.
    turns: Vec<AtomicU32>,
    module: std::sync::Arc<tapstone_module::Module>,
}

impl SharedSessions {
    /// Opens those that were open before the first call.
    pub(super) fn open(site: &ReplaySite<'_>, before: &[bool]) -> Result<Self, ReplayTrouble> {
        let handles = SharedHandles::new(before.len());
        let turns = before.iter().map(|_| AtomicU32::new(0)).collect();
        let module = std::sync::Arc::clone(site.module);
        let sessions = Self { handles, turns, module };
        for (place, _) in before.iter().enumerate().filter(|(_, is_open)| **is_open) {
            let mut session = Session::open(site.module, site.slot, site.read_only)?;
            // It is closed with the others, when all threads are done.
            let handle = std::mem::replace(&mut session.handle, CK_INVALID_HANDLE);
            sessions.handles.set(place as u32, handle);
        }
        Ok(sessions)
    }

    /// Waits until so many calls of that session are made; false where somebody wants to end. However
    /// long that takes: all that a thread waits for began before, and is made or given up.
    pub(super) fn wait_for_turn(&self, session: u32, turn: u32, stop: &AtomicBool) -> bool {
        let Some(made) = self.turns.get(session as usize) else { return false };
        wait_until_found(stop, None, || (made.load(Ordering::Acquire) >= turn).then_some(()))
            .is_some()
    }

    /// A call of that session is made, or never will be.
    pub(super) fn end_turn(&self, session: u32) {
        if let Some(made) = self.turns.get(session as usize) {
            made.fetch_add(1, Ordering::AcqRel);
        }
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
