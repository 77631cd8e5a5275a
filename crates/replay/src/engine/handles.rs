//! Handles that one thread of a replay makes and others use, who wait for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cryptoki_sys::CK_ULONG;

/// Nobody has made it yet. No module gives out this handle (CK_INVALID_HANDLE).
const NOT_MADE: u64 = 0;
/// It is gone, or nobody waits for it any more.
const NEVER: u64 = u64::MAX;
/// Longer nobody waits for what another thread is to make: a recording can be broken.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// And so long once somebody has waited in vain.
const LATER_WAIT: Duration = Duration::from_millis(10);
const LOOK: Duration = Duration::from_micros(50);
/// So often somebody looks before sleeping: some 10 µs.
const LOOKS_AWAKE: u32 = 300;

/// What `look` finds as soon as it finds anything; `None` once that moment is over, or somebody wants to
/// end.
pub(super) fn wait_until_found<T>(
    stop: &AtomicBool,
    until: Option<Instant>,
    look: impl Fn() -> Option<T>,
) -> Option<T> {
    // Another thread's call can be over sooner than a sleep.
    for _ in 0..LOOKS_AWAKE {
        let found = look();
        if found.is_some() {
            return found;
        }
        std::hint::spin_loop();
    }
    while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
        let found = look();
        if found.is_some() {
            return found;
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// Handles of sessions or objects, by their places.
pub(super) struct SharedHandles {
    handles: Vec<AtomicU64>,
    /// Somebody waited in vain: others do not wait as long.
    has_failed: AtomicBool,
}

impl SharedHandles {
    /// For so many sessions or objects, none of which is made yet.
    pub(super) fn new(count: usize) -> Self {
        let handles = (0..count).map(|_| AtomicU64::new(NOT_MADE)).collect();
        Self { handles, has_failed: AtomicBool::new(false) }
    }

    /// The thing at that place was made, and has this handle.
    pub(super) fn set(&self, place: u32, handle: CK_ULONG) {
        if let Some(known) = self.handles.get(place as usize) {
            known.store(handle as u64, Ordering::Release);
        }
    }

    /// Waits until the thing at that place is made or gone, or until nobody waits for it any more.
    pub(super) fn wait_for(&self, place: u32, stop: &AtomicBool) {
        let Some(known) = self.handles.get(place as usize) else { return };
        let patience = match self.has_failed.load(Ordering::Relaxed) {
            true => LATER_WAIT,
            false => LONGEST_WAIT,
        };
        let is_made = || (known.load(Ordering::Acquire) != NOT_MADE).then_some(());
        if wait_until_found(stop, Some(Instant::now() + patience), is_made).is_none() {
            self.has_failed.store(true, Ordering::Relaxed);
            let order = Ordering::AcqRel;
            known.compare_exchange(NOT_MADE, NEVER, order, Ordering::Acquire).ok();
        }
    }

    /// The handle as it is now, if it is there.
    pub(super) fn now(&self, place: u32) -> Option<CK_ULONG> {
        let handle = self.handles.get(place as usize)?.load(Ordering::Acquire);
        (!matches!(handle, NOT_MADE | NEVER)).then_some(handle as CK_ULONG)
    }

    /// The handle as it is now, for a call that ends what it is of: from now on it is gone, and a
    /// second call gets none. `None`: it is not there.
    pub(super) fn take(&self, place: u32) -> Option<CK_ULONG> {
        let known = self.handles.get(place as usize)?;
        let handle = known.swap(NEVER, Ordering::AcqRel);
        (!matches!(handle, NOT_MADE | NEVER)).then_some(handle as CK_ULONG)
    }

    /// It is gone: nothing is called on its handle any more, which may be another's.
    pub(super) fn forget(&self, place: u32) {
        self.set(place, NEVER as CK_ULONG);
    }

    /// The handles of all that was made and is not gone.
    pub(super) fn living(&self) -> impl Iterator<Item = CK_ULONG> {
        let handles = self.handles.iter().map(|handle| handle.load(Ordering::Acquire));
        handles.filter(|handle| !matches!(*handle, NOT_MADE | NEVER)).map(|it| it as CK_ULONG)
    }
}
