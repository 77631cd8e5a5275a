//! Files that a user names: read within a limit, written whole or not at all.
//!
//! ```
//! use tapstone_files::{Access, FileLimit, read_text, write_whole};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("my.toml");
//! write_whole(&path, Access::Everybody, |to| to.write_all(b"rounds = 5\n"))?;
//! assert_eq!(read_text(&path, FileLimit::TOML)?, "rounds = 5\n");
//! # Ok::<(), std::io::Error>(())
//! ```
#![deny(unsafe_code)]

mod input;
mod output;
mod standard_output;
mod target;

pub use self::input::{FileLimit, LimitedFile, read_bytes, read_text};
pub use self::output::{
    Access, check_writable, create_beside, hold_files, sync_folder_of, write_whole,
};
pub use self::standard_output::standard_output_was_closed;
pub use self::target::{WriteTarget, target};
