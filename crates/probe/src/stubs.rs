//! Stubs: what the linker binds to instead of a function that is watched, and what each stands for.
//!
//! There are as many as may be needed, in the text of the probe ([`trampoline`](crate::trampoline)).

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tapstone_probe_core::capture::taken_bits;
use tapstone_probe_core::functions::{FUNCTIONS, Family};
use tapstone_probe_core::names::function_number;
use tapstone_probe_core::text::text_up_to;
use tapstone_probe_core::wire::{EVENT_SLOT, Head};

use crate::file::SharedFile;
use crate::process::now;
use crate::thread::Thread;
use crate::{objects, state};

/// Stubs that there are.
pub(crate) const STUBS: usize = 4096;
const STUB_BYTES: usize = 16;
/// What a stub calls. The stubs know where `original` and `taken` are, and how long it is.
#[repr(C, align(32))]
pub(crate) struct StubSlot {
    pub(crate) original: AtomicUsize,
    /// Of a function that takes a lock: when none of these bits of the lock's first word is set, the
    /// stub goes on to the function at once.
    pub(crate) taken: AtomicU32,
    pub(crate) function: AtomicU32,
    /// Who calls, and who is called: numbers of objects.
    objects: AtomicU32,
    /// What events call it. A stub that is taken again has another.
    id: AtomicU32,
    state: AtomicU32,
}

/// An object that it is about was closed: nobody should call it any more.
const RELEASED: u32 = 1;
/// Events say what it stands for.
const DECLARED: u32 = 2;
/// It is about to stand for something else.
const CHANGES: u32 = 4;

impl StubSlot {
    /// Who calls and who is called.
    pub(crate) fn objects(&self) -> (usize, usize) {
        let both = self.objects.load(Ordering::Relaxed);
        ((both >> 16) as usize, (both & 0xFFFF) as usize)
    }

    /// What events are to call it. Before the first of them it is told what it stands for.
    #[inline(always)]
    pub(crate) fn id(&self, thread: &mut Thread) -> u32 {
        if self.state.load(Ordering::Relaxed) & DECLARED == 0 {
            self.declare(thread);
        }
        self.id.load(Ordering::Relaxed)
    }

    #[cold]
    fn declare(&self, thread: &mut Thread) {
        let (caller, definer) = self.objects();
        let module = objects::name(definer);
        let client = objects::name(caller);
        let mut bytes = [0; 256];
        let (first, rest) = bytes.split_at_mut(module.len().min(128));
        first.copy_from_slice(module.get(..first.len()).unwrap_or_default());
        let (second, _) = rest.split_at_mut(client.len().min(128));
        second.copy_from_slice(client.get(..second.len()).unwrap_or_default());
        let lengths = (first.len(), second.len());
        let function = self.function.load(Ordering::Relaxed);
        let word = u64::from(function) | (lengths.0 as u64) << 16 | (lengths.1 as u64) << 32;
        let bytes = bytes.get(..lengths.0 + lengths.1).unwrap_or_default();
        let id = self.id.load(Ordering::Relaxed);
        let head = Head::new(now(), EVENT_SLOT, id);
        if !thread.journal.write_event(&SharedFile, head, [word], bytes).is_null() {
            self.state.fetch_or(DECLARED, Ordering::Relaxed);
        }
    }

    fn is_for(&self, function: usize, address: usize, objects: u32) -> bool {
        self.original.load(Ordering::Acquire) == address
            && self.objects.load(Ordering::Relaxed) == objects
            && self.function.load(Ordering::Relaxed) == function as u32
    }

    /// Takes a stub that was released, to stand for the same again or for something else.
    fn take(&self, becomes: u32) -> bool {
        let state = self.state.load(Ordering::Acquire);
        state & (RELEASED | CHANGES) == RELEASED
            && self
                .state
                .compare_exchange(
                    state,
                    state & !RELEASED | becomes,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    fn set(&self, function: usize, address: usize, objects: u32) {
        self.function.store(function as u32, Ordering::Relaxed);
        self.taken.store(taken_bits(function as u32), Ordering::Relaxed);
        self.objects.store(objects, Ordering::Relaxed);
        self.id.store(IDS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.original.store(address, Ordering::Release);
        self.state.store(0, Ordering::Release);
    }
}

/// All zeros, so that the file of the probe does not hold them.
pub(crate) static SLOTS: [StubSlot; STUBS] = [const {
    StubSlot {
        original: AtomicUsize::new(0),
        taken: AtomicU32::new(0),
        function: AtomicU32::new(0),
        objects: AtomicU32::new(0),
        id: AtomicU32::new(0),
        state: AtomicU32::new(0),
    }
}; STUBS];
/// What each stands for, mixed: looking through these is quicker.
static KEYS: [AtomicU32; STUBS] = [const { AtomicU32::new(0) }; STUBS];
static USED: AtomicUsize = AtomicUsize::new(0);
static IDS: AtomicU32 = AtomicU32::new(0);
/// Where to look for a stub that was released: those that were released last are looked at last.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The number of a function that is watched, or listened to, by a symbol's name.
///
/// # Safety
/// `name` ends with a zero.
pub(crate) unsafe fn number_of_symbol(name: *const u8) -> Option<usize> {
    const LONGEST: usize = 40;
    // SAFETY: the name ends.
    function_number(unsafe { text_up_to(name, LONGEST) })
}

#[inline(always)]
pub(crate) fn slot(number: u32) -> &'static StubSlot {
    // SAFETY: numbers come from stubs, of which there are as many.
    unsafe { SLOTS.get_unchecked(number as usize) }
}

/// The stub for a call of that function, when it is one to watch.
pub(crate) fn watch(
    function: usize,
    address: usize,
    caller: usize,
    definer: usize,
) -> Option<usize> {
    let watched = match FUNCTIONS.get(function).map(|function| function.family) {
        // A library that calls what it exports itself is not its own client.
        Some(Family::Pkcs11 | Family::Pcsc | Family::Driver) => caller != definer,
        Some(Family::Libc(_)) | None => !objects::is_system(caller),
    };
    if watched { assign(function, address, caller, definer) } else { None }
}

/// A stub for this function, called by this object; the one that it had before.
pub(crate) fn assign(
    function: usize,
    address: usize,
    caller: usize,
    definer: usize,
) -> Option<usize> {
    if is_stub(address) {
        return Some(address);
    }
    let objects = (caller as u32) << 16 | definer as u32;
    let key = key(function, address, objects);
    let used = USED.load(Ordering::Acquire).min(STUBS);
    for (number, known) in KEYS.iter().enumerate().take(used) {
        let slot = slot(number as u32);
        if known.load(Ordering::Acquire) != key || !slot.is_for(function, address, objects) {
            continue;
        }
        let state = slot.state.load(Ordering::Acquire);
        if state & (RELEASED | CHANGES) == 0 || slot.take(0) {
            return Some(stub(number));
        }
    }
    let Some(number) = unused().or_else(released) else {
        state().header().unwatched.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    slot(number as u32).set(function, address, objects);
    KEYS[number].store(key, Ordering::Release);
    Some(stub(number))
}

fn key(function: usize, address: usize, objects: u32) -> u32 {
    let all = address as u64 ^ u64::from(objects) << 24 ^ (function as u64) << 56;
    (all.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

/// A stub that was never used.
fn unused() -> Option<usize> {
    let used = USED.load(Ordering::Relaxed);
    if used >= STUBS {
        return None;
    }
    let number = USED.fetch_add(1, Ordering::AcqRel);
    if number < STUBS { Some(number) } else { None }
}

/// A stub of an object that was closed.
fn released() -> Option<usize> {
    let start = NEXT.load(Ordering::Relaxed);
    let found = (start..start + STUBS).find(|number| slot((number % STUBS) as u32).take(CHANGES));
    let number = found? % STUBS;
    NEXT.store(number + 1, Ordering::Relaxed);
    Some(number)
}

/// An object is closed: its stubs, and those of calls to it, may stand for something else when no
/// others are left.
pub(crate) fn release(object: usize) {
    let used = USED.load(Ordering::Acquire).min(STUBS);
    for slot in SLOTS.iter().take(used) {
        let (caller, definer) = slot.objects();
        if caller == object || definer == object {
            slot.state.fetch_or(RELEASED, Ordering::AcqRel);
        }
    }
}

/// An object's number becomes another's: what was released is not for that one.
pub(crate) fn forget(object: usize) {
    let used = USED.load(Ordering::Acquire).min(STUBS);
    for slot in SLOTS.iter().take(used) {
        let (caller, definer) = slot.objects();
        if caller == object || definer == object {
            slot.objects.store(u32::MAX, Ordering::Relaxed);
        }
    }
}

fn stub(number: usize) -> usize {
    (&raw const tapstone_stubs) as usize + number * STUB_BYTES
}

fn is_stub(address: usize) -> bool {
    let start = (&raw const tapstone_stubs) as usize;
    (start..start + STUBS * STUB_BYTES).contains(&address)
}

/// The code that stands between a caller and what it calls. It keeps %rbp as its frame pointer.
pub(crate) fn own_code() -> Range<usize> {
    (&raw const tapstone_stubs) as usize..(&raw const tapstone_end) as usize
}

unsafe extern "C" {
    static tapstone_stubs: u8;
    static tapstone_end: u8;
}
