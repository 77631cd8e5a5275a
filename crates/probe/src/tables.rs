//! PKCS#11 function lists: a client asks for the list once and calls through it, past the linker.
//!
//! The client gets a copy of the list whose functions are stubs. There is one copy for each list,
//! so a client that compares lists finds them equal.

use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::stubs::{self, Frame, Slot};
use crate::sys;
use crate::wire::{PKCS11_V2, PKCS11_V3_0, PKCS11_V3_2};

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

const LISTS: usize = 64;
const INTERFACES: usize = 64;

/// Lists that were copied, and their copies.
static ORIGINALS: [AtomicUsize; LISTS] = [const { AtomicUsize::new(0) }; LISTS];
static COPIES: [AtomicUsize; LISTS] = [const { AtomicUsize::new(0) }; LISTS];
static INTERFACE_COPIES: AtomicUsize = AtomicUsize::new(0);

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
pub(crate) unsafe fn replace(function: u32, frame: &Frame, slot: &Slot) {
    let [first, second, third, ..] = frame.arguments;
    // SAFETY: what PKCS#11 says of these functions' arguments.
    unsafe {
        match function {
            GET_FUNCTION_LIST => {
                let list = first as *mut *const List;
                if !list.is_null() && !(*list).is_null() {
                    *list = copy(*list, slot);
                }
            }
            GET_INTERFACE => {
                let interface = third as *mut *const Interface;
                if !interface.is_null() && !(*interface).is_null() {
                    *interface = copy_interface(*interface, slot);
                }
            }
            GET_INTERFACE_LIST => {
                let (interfaces, count) = (first as *mut Interface, second as *const u64);
                if interfaces.is_null() || count.is_null() {
                    return;
                }
                for at in 0..*count as usize {
                    let interface = &mut *interfaces.add(at);
                    if is_pkcs11(interface) {
                        interface.list = copy(interface.list, slot);
                    }
                }
            }
            _ => {}
        }
    }
}

/// # Safety
/// A module's interface.
unsafe fn is_pkcs11(interface: &Interface) -> bool {
    let name = interface.name.cast::<u8>();
    // SAFETY: a name ends with a zero.
    let name = unsafe { core::slice::from_raw_parts(name, sys::length(name, 16)) };
    name == b"PKCS 11" && !interface.list.is_null()
}

/// # Safety
/// A module's list.
unsafe fn copy(list: *const List, slot: &Slot) -> *const List {
    let (_, definer) = slot.objects();
    for (original, copy) in ORIGINALS.iter().zip(&COPIES) {
        let known = original.load(Ordering::Acquire);
        if known == list as usize || copy.load(Ordering::Acquire) == list as usize {
            let copy = copy.load(Ordering::Acquire);
            return if copy == 0 { list } else { copy as *const List };
        }
        let mine = known == 0
            && original
                .compare_exchange(0, list as usize, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if mine {
            let made = sys::memory(size_of::<List>()).cast::<List>();
            if made.is_null() {
                return list;
            }
            // SAFETY: fresh memory of that size; the list has as many functions as its version.
            unsafe { fill(made, list, definer) };
            copy.store(made as usize, Ordering::Release);
            return made;
        }
    }
    list
}

/// # Safety
/// `list` is a module's, `made` has room for the longest.
unsafe fn fill(made: *mut List, list: *const List, definer: usize) {
    // SAFETY: the version is in front of the functions.
    let version = unsafe { (*list).version };
    let count = match version {
        [major, minor] if (major, minor) >= (3, 2) => PKCS11_V3_2,
        [3, _] => PKCS11_V3_0,
        _ => PKCS11_V2,
    };
    // SAFETY: as many as the version says.
    unsafe {
        (*made).version = version;
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
unsafe fn copy_interface(interface: *const Interface, slot: &Slot) -> *const Interface {
    // SAFETY: the caller's promise.
    unsafe {
        if !is_pkcs11(&*interface) {
            return interface;
        }
        let list = copy((*interface).list, slot);
        let size = size_of::<Interface>();
        if INTERFACE_COPIES.load(Ordering::Acquire) == 0 {
            let page = sys::memory(size * INTERFACES) as usize;
            let _ = INTERFACE_COPIES.compare_exchange(0, page, Ordering::AcqRel, Ordering::Relaxed);
        }
        let copies = INTERFACE_COPIES.load(Ordering::Acquire) as *mut Interface;
        if copies.is_null() {
            return interface;
        }
        for at in 0..INTERFACES {
            let copy = copies.add(at);
            if (*copy).list == list && (*copy).flags == (*interface).flags {
                return copy;
            }
            if (*copy).list.is_null() {
                ptr::write(copy, Interface { list, ..*interface });
                return copy;
            }
        }
        interface
    }
}
