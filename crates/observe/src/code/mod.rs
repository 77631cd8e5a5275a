//! Files of code: where they want to lie in memory, how their stack frames are undone, and the
//! names of their functions.

mod elf;
mod image;
mod symbols;

pub(crate) use self::image::{CodeImage, ImageLayout, file_name};
