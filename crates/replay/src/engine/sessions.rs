//! Sessions of a replay: one thread may use what another has opened, and waits for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cryptoki_sys::*;
use tapstone_module::{Session, ck};
use tapstone_names::pkcs11::Pkcs11Failure;

use super::{ReplaySite, ReplayTrouble};

/// Nobody has opened it yet. No module gives out this handle (CK_INVALID_HANDLE).
const NOT_OPEN: u64 = 0;
/// It was closed, or nobody waits for it any more.
const NEVER: u64 = u64::MAX;
/// Longer nobody waits for a session that another thread is to open: a recording can be broken.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_micros(50);

/// The handles of all sessions of a process, by their places.
pub(super) struct SharedSessions {
    handles: Vec<AtomicU64>,
    module: std::sync::Arc<tapstone_module::Module>,
}

impl SharedSessions {
    /// Opens those that were open before the first call.
    pub(super) fn open(site: &ReplaySite<'_>, before: &[bool]) -> Result<Self, ReplayTrouble> {
        let handles = before.iter().map(|_| AtomicU64::new(NOT_OPEN)).collect();
        let sessions = Self { handles, module: std::sync::Arc::clone(site.module) };
        for (place, _) in before.iter().enumerate().filter(|(_, is_open)| **is_open) {
            let mut session = Session::open(site.module, site.slot, site.read_only)?;
            // It is closed with the others, when all threads are done.
            let handle = std::mem::replace(&mut session.handle, CK_INVALID_HANDLE);
            sessions.set(place as u32, handle);
        }
        Ok(sessions)
    }

    /// A session was opened.
    pub(super) fn set(&self, place: u32, handle: CK_SESSION_HANDLE) {
        if let Some(known) = self.handles.get(place as usize) {
            known.store(handle as u64, Ordering::Release);
        }
    }

    /// The handle of a session, once it is open; `None` where that never happens.
    pub(super) fn handle(&self, place: u32, stop: &AtomicBool) -> Option<CK_SESSION_HANDLE> {
        let known = self.handles.get(place as usize)?;
        let until = Instant::now() + LONGEST_WAIT;
        loop {
            match known.load(Ordering::Acquire) {
                NEVER => return None,
                NOT_OPEN => {}
                handle => return Some(handle as CK_SESSION_HANDLE),
            }
            if Instant::now() >= until || stop.load(Ordering::Relaxed) {
                let order = Ordering::AcqRel;
                known.compare_exchange(NOT_OPEN, NEVER, order, Ordering::Acquire).ok();
                return None;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// A session was closed: nothing is called on its handle any more, which may be another's.
    pub(super) fn forget(&self, place: u32) {
        self.set(place, NEVER as CK_SESSION_HANDLE);
    }
}

impl Drop for SharedSessions {
    /// What the recording left open, or what was stopped in the middle.
    fn drop(&mut self) {
        for handle in &self.handles {
            let handle = handle.load(Ordering::Acquire);
            if handle != NOT_OPEN && handle != NEVER {
                self.module.live_sessions.release(handle);
                // A session that is gone already needs no closing.
                // SAFETY: only values are passed.
                let _: Result<(), Pkcs11Failure> =
                    unsafe { ck!(&self.module, C_CloseSession(handle as CK_SESSION_HANDLE)) };
            }
        }
    }
}
