//! What a stub keeps of a call.

use core::ptr;

use crate::wire::Leaf;

/// What the assembler of the stubs keeps of a call. Its layout is known there.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// The six arguments in registers.
    pub arguments: [u64; 6],
    /// %rax: how many vector registers a variadic function is given.
    pub variadic: u64,
    /// The number of the stub that was called.
    pub slot: u64,
    /// When the call began, on the probe's clock.
    pub start: u64,
    /// What was written at its beginning, of a call of libc that may wait.
    pub written: *mut Leaf,
    /// The value that the function returns to its caller.
    pub result: u64,
    /// 0: not watched after all. Otherwise what is to be done when it ends.
    pub state: u64,
    /// Arguments on the stack.
    pub stack: *const u64,
    /// For the call's kind.
    pub note: u64,
    /// Which function: its number in [`FUNCTIONS`](crate::functions::FUNCTIONS).
    pub function: u32,
    /// What events call the stub.
    pub id: u32,
    /// What a read asks for, where a fix keeps its answer; else 0.
    pub question: u64,
}

const _: () = assert!(size_of::<Frame>() == 128);

impl Frame {
    /// A call of a function with these arguments in registers, and none on the stack.
    pub fn new(function: u32, arguments: [u64; 6]) -> Self {
        Self {
            arguments,
            variadic: 0,
            slot: 0,
            start: 0,
            written: ptr::null_mut(),
            result: 0,
            state: 0,
            stack: ptr::null(),
            note: 0,
            function,
            id: 0,
            question: 0,
        }
    }

    /// Where it is on the stack, which grows downwards.
    #[inline(always)]
    pub fn place(&self) -> usize {
        ptr::from_ref(self) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_where_it_is() {
        let frames = [Frame::new(7, [0; 6]), Frame::new(8, [0; 6])];
        assert_eq!(frames[0].place(), frames.as_ptr() as usize);
        assert_eq!(frames[1].place(), frames.as_ptr() as usize + 128);
    }
}
