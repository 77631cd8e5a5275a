//! What the running kernel says of its own types and functions (BTF): functions by their numbers,
//! and places of fields.

use std::fs;
use std::path::Path;

use thiserror::Error;

/// Why the kernel's types are not known.
#[derive(Debug, Error)]
pub(crate) enum TypesError {
    #[error("/sys/kernel/btf/vmlinux: {0}")]
    Read(#[from] std::io::Error),
    #[error("/sys/kernel/btf/vmlinux is cut short or of an unknown format")]
    Format,
}

const MAGIC: u32 = 0xEB9F;
const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;
const KIND_STRUCT: u32 = 4;
const KIND_FUNCTION: u32 = 12;

/// Types, function prototypes and names, as the kernel shows them.
pub(crate) struct KernelTypes {
    content: Vec<u8>,
    types: usize,
    types_end: usize,
    names: usize,
}

/// One type: its number, and where it is.
struct TypeEntry {
    number: u32,
    at: usize,
    kind: u32,
    members: u32,
}

impl KernelTypes {
    pub(crate) fn read() -> Result<Self, TypesError> {
        Self::from_bytes(fs::read(Path::new("/sys/kernel/btf/vmlinux"))?)
    }

    fn from_bytes(content: Vec<u8>) -> Result<Self, TypesError> {
        let word = |at: usize| word_at(&content, at).ok_or(TypesError::Format);
        let header = word(4)? as usize;
        let types = header + word(8)? as usize;
        let types_end = types + word(12)? as usize;
        let names = header + word(16)? as usize;
        let is_one = word(0)? & 0xFFFF == MAGIC && header >= HEADER_BYTES;
        if !is_one || types_end > content.len() || names > content.len() {
            return Err(TypesError::Format);
        }
        Ok(Self { content, types, types_end, names })
    }

    /// The number by which a program calls a function of the kernel.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        let found =
            |entry: &TypeEntry| entry.kind == KIND_FUNCTION && self.is_named(entry.at, name);
        self.entries().find(found).map(|entry| entry.number)
    }

    /// Where a field is in a structure, in bytes.
    pub(crate) fn field(&self, structure: &str, field: &str) -> Option<u32> {
        const MEMBER_BYTES: usize = 12;
        let found =
            |entry: &TypeEntry| entry.kind == KIND_STRUCT && self.is_named(entry.at, structure);
        let entry = self.entries().find(found)?;
        let members = (0..entry.members as usize).map(|n| entry.at + TYPE_BYTES + n * MEMBER_BYTES);
        let member = members.into_iter().find(|at| self.is_named(*at, field))?;
        // The upper byte is a width in bits, where the structure has fields of bits.
        let bits = word_at(&self.content, member + 8)? & 0xFF_FFFF;
        Some(bits / 8)
    }

    fn is_named(&self, at: usize, name: &str) -> bool {
        let Some(offset) = word_at(&self.content, at) else { return false };
        let text = self.content.get(self.names + offset as usize..).unwrap_or_default();
        text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn entries(&self) -> impl Iterator<Item = TypeEntry> {
        let mut at = self.types;
        let mut number = 0;
        std::iter::from_fn(move || {
            if at + TYPE_BYTES > self.types_end {
                return None;
            }
            let info = word_at(&self.content, at + 4)?;
            number += 1;
            let members = info & 0xFFFF;
            let entry = TypeEntry { number, at, kind: info >> 24 & 0x1F, members };
            at += TYPE_BYTES + bytes_behind(entry.kind, members)?;
            Some(entry)
        })
    }
}

/// What follows a type of a kind, in bytes (Documentation/bpf/btf.rst).
fn bytes_behind(kind: u32, members: u32) -> Option<usize> {
    let members = members as usize;
    Some(match kind {
        // Integer, variable, declaration tag.
        1 | 14 | 17 => 4,
        // Array.
        3 => 12,
        // Structure, union, section, enumeration of 64 bits.
        KIND_STRUCT | 5 | 15 | 19 => 12 * members,
        // Enumeration, prototype.
        6 | 13 => 8 * members,
        // Pointer, forward, typedef, qualifiers, function, float, type tag.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn word_at(content: &[u8], at: usize) -> Option<u32> {
    let bytes = content.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_btf_is_refused() {
        assert!(KernelTypes::from_bytes(vec![0; 64]).is_err());
        assert!(KernelTypes::from_bytes(Vec::new()).is_err());
    }

    #[test]
    fn finds_functions_and_fields_of_this_kernel() {
        let Ok(types) = KernelTypes::read() else {
            return eprintln!("skipped: this kernel shows no types");
        };
        assert!(types.function("do_exit").is_some());
        assert_eq!(types.function("no_such_function"), None);
        let pid = types.field("task_struct", "pid").unwrap();
        assert_eq!(types.field("task_struct", "tgid"), Some(pid + 4));
    }
}
