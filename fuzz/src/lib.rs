//! Fuzz targets: all that Tapstone reads from others, and what must hold whatever they write.
//!
//! Each [`FuzzTarget`] is one function over bytes, used by everything that runs it:
//! - `make fuzz`: libFuzzer, guided by coverage, as long as is wanted (`fuzz_targets/`, and the
//!   program of this package);
//! - `make test`: the kept corpus, and changes of it for some seconds (`tests/bounded`);
//! - `make fuzz-bugs`: the same targets in a copy of the sources into which bugs were put.
//!
//! A target panics when something does not hold. Memory beyond [`MOST_MEMORY`] ends the program,
//! and so does an input that takes longer than the time limit of what runs it.

pub mod structure;
mod target;
pub mod targets;

use cap::Cap;
use std::alloc::System;

pub use target::{Executions, FuzzTarget};

/// How much memory a program of this package may have at once, in bytes: many times what any
/// input here needs, and too little for what believes a length that an input gives.
pub const MOST_MEMORY: usize = 512 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MOST_MEMORY);

/// The entry points of a program of libFuzzer for one target.
#[macro_export]
macro_rules! libfuzzer {
    ($target:ident) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::targets::$target::TARGET.execute(data));

        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            let own = |data: &mut [u8], size, most| libfuzzer_sys::fuzzer_mutate(data, size, most);
            let structure = $crate::targets::$target::TARGET.structure;
            $crate::structure::mutate_in_place(structure, data, size, max_size, seed, own)
        });
    };
}
