//! Maps, which the kernel's programs and this one share.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::syscall::{self, MapShape};

/// BPF_MAP_TYPE_PERCPU_HASH and BPF_MAP_TYPE_PERCPU_ARRAY.
const OF_EACH_PROCESSOR: [u32; 2] = [5, 6];

/// All maps by their names in the object.
pub(crate) type Maps = BTreeMap<String, Map>;

#[derive(Debug)]
pub(crate) struct Map {
    descriptor: OwnedFd,
    shape: MapShape,
    /// Values of an element: one for each processor, or one.
    values: usize,
}

impl Map {
    pub(crate) fn new(name: &str, shape: MapShape, processors: usize) -> io::Result<Self> {
        let descriptor = syscall::create_map(name, shape)?;
        let is_each = OF_EACH_PROCESSOR.contains(&shape.kind);
        Ok(Self { descriptor, shape, values: if is_each { processors } else { 1 } })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    pub(crate) const fn entries(&self) -> u32 {
        self.shape.entries
    }

    /// The value, or those of all processors one after the other. Each takes a multiple of eight
    /// bytes then. `values` keeps its room from call to call.
    pub(crate) fn look_up(&self, key: &[u8], values: &mut Vec<u8>) -> io::Result<bool> {
        self.check_key(key);
        values.resize(self.value_room() * self.values, 0);
        syscall::look_up(self.descriptor(), key, values)
    }

    /// Bytes from one processor's value to the next.
    pub(crate) fn value_room(&self) -> usize {
        (self.shape.value_bytes as usize).next_multiple_of(8)
    }

    /// # Panics
    /// For a map with a value for each processor: only the kernel's programs write those.
    pub(crate) fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check_key(key);
        assert_eq!((value.len(), self.values), (self.shape.value_bytes as usize, 1));
        syscall::update(self.descriptor(), key, value)
    }

    pub(crate) fn delete(&self, key: &[u8]) -> io::Result<bool> {
        self.check_key(key);
        syscall::delete(self.descriptor(), key)
    }

    /// All keys that are there. Some that come meanwhile may be missing.
    pub(crate) fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut next = vec![0; self.shape.key_bytes as usize];
        while syscall::next_key(self.descriptor(), keys.last().map(Vec::as_slice), &mut next)? {
            keys.push(next.clone());
            // A key that went meanwhile begins the walk anew: it ends all the same.
            if keys.len() > self.shape.entries as usize {
                break;
            }
        }
        Ok(keys)
    }

    /// The kernel reads as many bytes as the map's keys have.
    fn check_key(&self, key: &[u8]) {
        assert_eq!(key.len(), self.shape.key_bytes as usize, "a key of another map");
    }
}
