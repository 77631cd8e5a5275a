//! The program's memory, as its calls point to it.

use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::program_memory::ProgramMemory;

use crate::{objects, sys};

/// What a call may point to.
#[inline(always)]
pub(crate) fn memory_of(frame: &Frame) -> ProgramMemory {
    ProgramMemory::of_call(frame, is_readable)
}

/// What of that is known to be there without asking the kernel.
#[inline(always)]
pub(crate) fn memory_at_hand(frame: &Frame) -> ProgramMemory {
    ProgramMemory::of_call(frame, objects::is_of_program)
}

/// Whether the page of an address can be read. Of the program's own file it is known: many keep
/// what they pass there, and to ask the kernel takes longer than all else of a watched call.
fn is_readable(address: usize) -> bool {
    objects::is_of_program(address) || sys::is_readable(address)
}
