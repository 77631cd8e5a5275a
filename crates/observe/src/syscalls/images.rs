//! All files of code that were seen, in all processes, each once.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use libc::pid_t;

use super::memory;
use crate::code::{CodeImage, ImageLayout};

/// The files; their places in the list are their numbers.
#[derive(Default)]
pub(super) struct Images {
    list: Vec<CodeImage>,
    files: HashMap<FileKey, u32>,
    names: HashMap<String, u32>,
}

/// A file as it was when it was mapped: a number is used again once a file is deleted.
type FileKey = (u64, u64, u64, i64, i64);

impl Images {
    /// All images that were read so far.
    pub(super) fn as_slice(&self) -> &[CodeImage] {
        &self.list
    }

    /// A file that is being mapped. It must be a regular one: to open a device can act on it.
    pub(super) fn of_path(&mut self, path: &str) -> Option<u32> {
        let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
        let key = (
            metadata.dev(),
            metadata.ino(),
            metadata.size(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        );
        if let Some(known) = self.files.get(&key) {
            return Some(*known);
        }
        let id = self.add(CodeImage::of_file(File::open(path).ok()?));
        self.files.insert(key, id);
        Some(id)
    }

    /// Code that is in no file that can be read.
    pub(super) fn of_name(&mut self, name: &str) -> u32 {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let id = self.add(CodeImage::of_name(name));
        self.names.insert(name.to_owned(), id);
        id
    }

    /// The vDSO: one for all processes, as the kernel has only one for programs of 64 bits.
    pub(super) fn of_vdso(&mut self, thread: pid_t, range: &Range<u64>) -> u32 {
        const NAME: &str = "[vdso]";
        if let Some(known) = self.names.get(NAME) {
            return *known;
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let count = memory::read(thread, range.start, &mut bytes).unwrap_or(0);
        bytes.truncate(count);
        let id = self.add(CodeImage::of_memory(bytes));
        self.names.insert(NAME.to_owned(), id);
        id
    }

    /// Where the parts of a file are.
    pub(super) fn layout(&mut self, id: u32) -> Option<&ImageLayout> {
        self.list[id as usize].layout()
    }

    fn add(&mut self, image: CodeImage) -> u32 {
        self.list.push(image);
        self.list.len() as u32 - 1
    }
}
