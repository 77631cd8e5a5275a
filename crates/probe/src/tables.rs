//! PKCS#11 function lists: a client asks for the list once and calls through it, past the linker.
//!
//! The client gets a copy of the list whose functions are stubs. There is one copy for each list,
//! so a client that compares lists finds them equal. The copy of a module that was closed serves
//! another one.

use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::functions::{PKCS11_V2, PKCS11_V3_0, PKCS11_V3_2};
use tapstone_probe_core::text::text_up_to;

use crate::stubs::{self, StubSlot};
use crate::{state, sys};

/// CK_FUNCTION_LIST, as far as the longest goes.
#[repr(C)]
struct List {
    version: [u8; 2],
    functions: [usize; PKCS11_V3_2],
}

/// CK_INTERFACE (PKCS#11 v3.0, 3.7).
#[repr(C)]
#[derive(Clone, Copy)]
struct Interface {
    name: *const c_char,
    list: *const List,
    flags: u64,
}

/// A list that was copied.
struct Known {
    original: AtomicUsize,
    copy: AtomicUsize,
    /// The number of the object that it is of; [`CLOSED`].
    definer: AtomicU32,
}

const LISTS: usize = 64;
const INTERFACES: usize = 64;
/// The module is there no more.
const CLOSED: u32 = u32::MAX;

static KNOWN: [Known; LISTS] = [const {
    Known {
        original: AtomicUsize::new(0),
        copy: AtomicUsize::new(0),
        definer: AtomicU32::new(CLOSED),
    }
}; LISTS];
static INTERFACE_COPIES: AtomicUsize = AtomicUsize::new(0);
/// The process that copies at the moment.
static TURN: AtomicU32 = AtomicU32::new(0);

/// Numbers in [`FUNCTIONS`]: places in the list.
const GET_FUNCTION_LIST: u32 = 3;
const GET_INTERFACE_LIST: u32 = 68;
const GET_INTERFACE: u32 = 69;

/// Whether a function hands out function lists.
#[inline(always)]
pub(crate) fn hands_out_a_list(function: u32) -> bool {
    matches!(function, GET_FUNCTION_LIST | GET_INTERFACE_LIST | GET_INTERFACE)
}

/// Puts copies in the place of the lists that a function has just handed out.
///
/// # Safety
/// The arguments of a call that has succeeded.
pub(crate) unsafe fn replace(frame: &Frame, slot: &StubSlot) {
    if !take_turn() {
        state().header().unwatched.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let (_, definer) = slot.objects();
    // SAFETY: the caller's promise, and nobody else copies now.
    unsafe { replace_lists(frame, definer) };
    TURN.store(0, Ordering::Release);
}

/// Waits until nobody else copies. False in a signal handler that interrupted that.
fn take_turn() -> bool {
    const MOST_SPINS: u32 = 1 << 20;
    let process = sys::process();
    for _ in 0..MOST_SPINS {
        // Whoever had it in a process from which this one was forked off is not here.
        let turn = TURN.load(Ordering::Relaxed);
        let free = turn != process
            && TURN.compare_exchange(turn, process, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if free {
            return true;
        }
        core::hint::spin_loop();
    }
    false
}

/// # Safety
/// What PKCS#11 says of these functions' arguments.
unsafe fn replace_lists(frame: &Frame, definer: usize) {
    let [first, second, third, ..] = frame.arguments;
    // SAFETY: the caller's promise.
    unsafe {
        match frame.function {
            GET_FUNCTION_LIST => {
                let list = first as *mut *const List;
                if !list.is_null() && !(*list).is_null() {
                    *list = copy_list(*list, definer);
                }
            }
            GET_INTERFACE => {
                let interface = third as *mut *const Interface;
                if !interface.is_null() && !(*interface).is_null() {
                    *interface = copy_interface(*interface, definer);
                }
            }
            GET_INTERFACE_LIST => {
                let interfaces = first as *mut Interface;
                let count = second as *const u64;
                if interfaces.is_null() || count.is_null() {
                    return;
                }
                for at in 0..*count as usize {
                    let interface = &mut *interfaces.add(at);
                    if is_pkcs11(interface) {
                        interface.list = copy_list(interface.list, definer);
                    }
                }
            }
            _ => {}
        }
    }
}

/// An object is closed: its lists may be somewhere else when it is loaded again, and where they
/// were may be another's.
pub(crate) fn close(object: usize) {
    for known in &KNOWN {
        let of = known.definer.load(Ordering::Relaxed);
        if of == object as u32 {
            known.definer.store(CLOSED, Ordering::Relaxed);
        }
    }
}

/// # Safety
/// A module's interface.
unsafe fn is_pkcs11(interface: &Interface) -> bool {
    // SAFETY: a name ends with a zero.
    let name = unsafe { text_up_to(interface.name.cast(), 16) };
    name == b"PKCS 11" && !interface.list.is_null()
}

/// # Safety
/// A module's list.
unsafe fn copy_list(list: *const List, definer: usize) -> *const List {
    let address = list as usize;
    let open = KNOWN.iter().find(|known| {
        let is_it = known.original.load(Ordering::Relaxed) == address
            || known.copy.load(Ordering::Relaxed) == address;
        is_it && known.definer.load(Ordering::Relaxed) != CLOSED
    });
    if let Some(known) = open {
        return known.copy.load(Ordering::Relaxed) as *const List;
    }
    // A client may have kept the copy from before: the same list has the same one again.
    let closed = |known: &&Known| known.definer.load(Ordering::Relaxed) == CLOSED;
    let original = |known: &&Known| known.original.load(Ordering::Relaxed);
    let again = || KNOWN.iter().filter(closed).find(|known| original(known) == address);
    let unused = || KNOWN.iter().find(|known| original(known) == 0);
    let known = again().or_else(unused).or_else(|| KNOWN.iter().find(closed));
    // SAFETY: the version is in front of the functions.
    let count = count(unsafe { (*list).version });
    let (Some(known), Some(count)) = (known, count) else {
        state().header().unwatched.fetch_add(1, Ordering::Relaxed);
        return list;
    };
    if known.copy.load(Ordering::Relaxed) == 0 {
        known.copy.store(sys::memory(size_of::<List>()) as usize, Ordering::Relaxed);
    }
    let copy = known.copy.load(Ordering::Relaxed) as *mut List;
    if copy.is_null() {
        return list;
    }
    // SAFETY: memory of that size; the list has as many functions as its version.
    unsafe { fill(copy, list, count, definer) };
    known.original.store(address, Ordering::Relaxed);
    known.definer.store(definer as u32, Ordering::Relaxed);
    copy
}

/// How many functions a list of this version has. One that is newer may have more than are known.
fn count(version: [u8; 2]) -> Option<usize> {
    match version {
        [..=2, _] => Some(PKCS11_V2),
        [3, ..=1] => Some(PKCS11_V3_0),
        [3, 2] => Some(PKCS11_V3_2),
        _ => None,
    }
}

/// # Safety
/// `list` is a module's with so many functions, `made` has room for the longest.
unsafe fn fill(made: *mut List, list: *const List, count: usize, definer: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        (*made).version = (*list).version;
        for at in 0..count {
            let function = (&raw const (*list).functions).cast::<usize>().add(at).read();
            let stub = match function {
                0 => None,
                // Whoever calls through a list: its copy is the same for all.
                address => stubs::assign(at, address, definer, definer),
            };
            (&raw mut (*made).functions).cast::<usize>().add(at).write(stub.unwrap_or(function));
        }
    }
}

/// # Safety
/// A module's interface.
unsafe fn copy_interface(interface: *const Interface, definer: usize) -> *const Interface {
    // SAFETY: the caller's promise.
    unsafe {
        if !is_pkcs11(&*interface) {
            return interface;
        }
        let list = copy_list((*interface).list, definer);
        if INTERFACE_COPIES.load(Ordering::Relaxed) == 0 {
            let page = sys::memory(size_of::<Interface>() * INTERFACES) as usize;
            INTERFACE_COPIES.store(page, Ordering::Relaxed);
        }
        let copies = INTERFACE_COPIES.load(Ordering::Relaxed) as *mut Interface;
        if copies.is_null() || list == (*interface).list {
            return interface;
        }
        for at in 0..INTERFACES {
            let copy = copies.add(at);
            let same = (*copy).list == list && (*copy).flags == (*interface).flags;
            if same || (*copy).list.is_null() {
                // Its name is the module's, which may have been loaded again.
                ptr::write(copy, Interface { list, ..*interface });
                return copy;
            }
        }
        interface
    }
}
