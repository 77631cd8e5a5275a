//! Calls that go past the linker's questions.
//!
//! Code without a procedure linkage table (Rust, `-fno-plt`) calls through a slot that the linker
//! fills without asking the auditor (R_X86_64_GLOB_DAT). Such slots are rewritten here: at
//! la_preinit for the objects of the start, and at the next dlsym(3) for those of a dlopen(3),
//! since la_activity comes before they are relocated.

use crate::elf::{self, Dynamic, LinkMap};
use crate::{objects, stubs};

/// Rewrites the slots of objects that were loaded since the last time.
pub(crate) fn rewrite_waiting() {
    objects::each_waiting(|number, map| {
        if !objects::is_system(number) {
            // SAFETY: the object is loaded, and relocated by now.
            unsafe { rewrite_slots(number, map) };
        }
    });
}

/// # Safety
/// The object is loaded and relocated.
unsafe fn rewrite_slots(number: usize, map: &LinkMap) {
    let program = objects::program_headers(number);
    // SAFETY: the caller's promise; slots are the object's own.
    unsafe {
        let Some(object) = Dynamic::from_link_map(map) else { return };
        object.each_slot(|slot, symbol| {
            let address = *slot;
            let definer = objects::definer_of(address);
            // Names are looked at last: their pages may be in nobody's memory yet.
            if address == 0 || definer == number || !objects::defines_watched(definer) {
                return;
            }
            let Some(function) = stubs::number_of_symbol(object.name(symbol)) else { return };
            if let Some(stub) = stubs::watch(function, address, number, definer) {
                elf::write(map, program, slot, stub);
            }
        });
    }
}
