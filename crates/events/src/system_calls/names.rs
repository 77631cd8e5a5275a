//! The names of what system calls work on: paths, the files behind descriptors, socket addresses.

use std::sync::Arc;

/// A name, as [`Names`] knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// All names of a run, each once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    list: Vec<Arc<[u8]>>,
}

impl Names {
    /// Adds a name, which must be new, and returns its number.
    pub fn add(&mut self, name: Arc<[u8]>) -> NameId {
        self.list.push(name);
        NameId(self.list.len() as u32 - 1)
    }

    /// The bytes of a name: a path as the program gave it, the path of a descriptor's file, or a
    /// socket's address (`/run/pcscd/pcscd.comm`, `@abstract`, `127.0.0.1:53`).
    #[must_use]
    pub fn get(&self, id: NameId) -> &Arc<[u8]> {
        &self.list[id.0 as usize]
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_as_they_come() {
        let mut names = Names::default();
        assert!(names.is_empty());
        let hosts = names.add(Arc::from(&b"/etc/hosts"[..]));
        let services = names.add(Arc::from(&b"/etc/services"[..]));
        assert_eq!((hosts, services), (NameId(0), NameId(1)));
        assert_eq!(&**names.get(services), b"/etc/services");
        assert!(names.len() == 2 && !names.is_empty());
    }
}
