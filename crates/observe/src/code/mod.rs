//! Files of code: where they want to lie in memory, how their stack frames are undone, the names of
//! their functions, and the lines of source.

mod elf;
mod image;
mod sources;
mod symbols;

pub(crate) use self::image::{CodeImage, ImageLayout, file_name};
pub(crate) use self::sources::{SourceFrame, Sources, demangled};
