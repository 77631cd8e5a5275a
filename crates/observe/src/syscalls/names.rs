//! What system calls work on: paths, the files behind descriptors, addresses of sockets.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use libc::pid_t;
use rustix::fs::readlink;

use super::memory;
use tapstone_events::system_calls::table::{KnownCall, Operand};
use tapstone_events::system_calls::{NameId, Names};

/// Names beyond these bytes are not kept.
const MOST_BYTES: usize = 64 << 20;

/// What a name takes in the memory, beside itself twice over.
const NAME_COST_BYTES: usize = 96;

/// Sockets whose peers are remembered.
const MOST_SOCKETS: usize = 1 << 16;

/// Names as they are collected.
#[derive(Default)]
pub(super) struct Namer {
    names: Names,
    ids: HashMap<Arc<[u8]>, NameId>,
    bytes: usize,
    /// Calls that have no name because there were too many.
    pub(super) lost: u64,
    /// What connected sockets are connected to, by what /proc calls them (`socket:[4711]`).
    peers: HashMap<Vec<u8>, NameId>,
    text: Vec<u8>,
}

impl Namer {
    /// What a thread that is about to make a call is going to work on.
    pub(super) fn operand(
        &mut self,
        thread: pid_t,
        known: &KnownCall,
        arguments: &[u64; 6],
    ) -> Option<NameId> {
        match known.operand {
            Operand::Nothing => None,
            Operand::Path => {
                memory::text(thread, arguments[0], &mut self.text);
                self.keep()
            }
            Operand::PathAt => self.path_at(thread, arguments[0], arguments[1]),
            Operand::Descriptor => self.descriptor(thread, arguments[0]),
            Operand::Address => self.address(thread, arguments),
            Operand::Polled => self.polled(thread, arguments),
        }
    }

    /// All names that were collected.
    pub(super) fn into_names(self) -> Names {
        self.names
    }

    /// A path, which without a slash in front may begin in a directory.
    fn path_at(&mut self, thread: pid_t, directory: u64, path: u64) -> Option<NameId> {
        memory::text(thread, path, &mut self.text);
        if self.text.first() == Some(&b'/') || directory as i32 == libc::AT_FDCWD {
            return self.keep();
        }
        if self.text.is_empty() {
            return self.descriptor(thread, directory);
        }
        if let Some(directory) = file_of(thread, directory) {
            self.text.splice(0..0, [&directory[..], b"/"].concat());
        }
        self.keep()
    }

    fn descriptor(&mut self, thread: pid_t, descriptor: u64) -> Option<NameId> {
        let file = file_of(thread, descriptor)?;
        if let Some(peer) = self.peers.get(&file) {
            return Some(*peer);
        }
        self.text = file;
        self.keep()
    }

    /// An address that a socket is about to be connected to.
    fn address(&mut self, thread: pid_t, arguments: &[u64; 6]) -> Option<NameId> {
        /// sizeof(struct sockaddr_storage)
        const MOST_ADDRESS_BYTES: usize = 128;
        let mut address = [0; MOST_ADDRESS_BYTES];
        let length = usize::try_from(arguments[2]).unwrap_or(usize::MAX).min(MOST_ADDRESS_BYTES);
        let count = memory::read(thread, arguments[1], &mut address[..length]).ok()?;
        self.text = address_text(&address[..count])?;
        let id = self.keep()?;
        if let Some(socket) = file_of(thread, arguments[0]) {
            if self.peers.len() >= MOST_SOCKETS {
                self.peers.clear();
            }
            self.peers.insert(socket, id);
        }
        Some(id)
    }

    /// The first of the descriptors that are waited for.
    fn polled(&mut self, thread: pid_t, arguments: &[u64; 6]) -> Option<NameId> {
        let mut first = [0; 4];
        if arguments[1] == 0 || memory::read(thread, arguments[0], &mut first).ok()? < first.len() {
            return None;
        }
        let descriptor = i32::from_le_bytes(first);
        self.descriptor(thread, u64::try_from(descriptor).ok()?)
    }

    /// The number of what is in `text`.
    fn keep(&mut self) -> Option<NameId> {
        if let Some(id) = self.ids.get(&self.text[..]) {
            return Some(*id);
        }
        self.bytes += self.text.len() + NAME_COST_BYTES;
        if self.bytes > MOST_BYTES {
            self.lost += 1;
            return None;
        }
        let name: Arc<[u8]> = self.text[..].into();
        let id = self.names.add(Arc::clone(&name));
        self.ids.insert(name, id);
        Some(id)
    }
}

/// What /proc says is behind a descriptor.
fn file_of(thread: pid_t, descriptor: u64) -> Option<Vec<u8>> {
    let path = format!("/proc/{thread}/fd/{}", descriptor as u32);
    Some(readlink(path, Vec::new()).ok()?.into_bytes())
}

/// A `struct sockaddr` in words.
fn address_text(address: &[u8]) -> Option<Vec<u8>> {
    let (family, rest) = address.split_first_chunk::<2>()?;
    let port = || Some(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?));
    match i32::from(u16::from_le_bytes(*family)) {
        libc::AF_UNIX => Some(unix_text(rest)),
        libc::AF_INET => {
            let host: [u8; 4] = rest.get(2..6)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv4Addr::from(host), port()?)).to_string().into_bytes())
        }
        libc::AF_INET6 => {
            let host: [u8; 16] = rest.get(6..22)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv6Addr::from(host), port()?)).to_string().into_bytes())
        }
        family => Some(format!("address family {family}").into_bytes()),
    }
}

/// unix(7): a path, or a name that begins with a zero and has no place in the file system.
fn unix_text(name: &[u8]) -> Vec<u8> {
    match name.split_first() {
        Some((0, name)) if !name.is_empty() => [b"@", name].concat(),
        _ => name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use tapstone_events::system_calls::table;

    fn own_thread() -> pid_t {
        std::process::id() as pid_t
    }

    fn name_of(namer: &mut Namer, call: &str, arguments: &[u64]) -> Option<String> {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let id = namer.operand(own_thread(), table::by_name(call).unwrap(), &all)?;
        Some(String::from_utf8_lossy(namer.names.get(id)).into_owned())
    }

    #[test]
    fn paths_are_as_the_program_gives_them_and_descriptors_as_proc_shows_them() {
        let directory = tempfile::tempdir().unwrap();
        let shown = directory.path().canonicalize().unwrap().display().to_string();
        let open = std::fs::File::open(directory.path()).unwrap();
        let descriptor = open.as_raw_fd() as u64;
        let mut namer = Namer::default();
        let relative = c"some/path";
        let absolute = c"/etc/protocols";
        let empty = c"";
        let at = |text: &std::ffi::CStr| text.as_ptr() as u64;
        let cwd = libc::AT_FDCWD as u64;
        for (call, arguments, expected) in [
            ("open", vec![at(absolute)], "/etc/protocols".to_owned()),
            ("openat", vec![cwd, at(relative)], "some/path".to_owned()),
            ("openat", vec![descriptor, at(relative)], format!("{shown}/some/path")),
            ("openat", vec![descriptor, at(absolute)], "/etc/protocols".to_owned()),
            ("newfstatat", vec![descriptor, at(empty)], shown.clone()),
            ("read", vec![descriptor], shown.clone()),
        ] {
            assert_eq!(name_of(&mut namer, call, &arguments), Some(expected), "{call}");
        }
        assert_eq!(namer.names.len(), 4, "each name once");
        assert_eq!(name_of(&mut namer, "nanosleep", &[]), None);
        assert_eq!(name_of(&mut namer, "read", &[u64::MAX]), None);
        let polled = [descriptor as i32, 0];
        assert_eq!(name_of(&mut namer, "poll", &[polled.as_ptr() as u64, 1]), Some(shown));
        assert_eq!(name_of(&mut namer, "poll", &[polled.as_ptr() as u64, 0]), None);
    }

    #[test]
    fn addresses_are_in_words() {
        let text = |bytes: &[u8]| address_text(bytes).map(|text| String::from_utf8(text).unwrap());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(text(b"\x01\0/run/x.comm\0rest"), some("/run/x.comm"));
        assert_eq!(text(b"\x01\0\0abstract"), some("@abstract"));
        assert_eq!(text(b"\x02\0\0\x35\x7f\0\0\x01\0\0\0\0\0\0\0\0"), some("127.0.0.1:53"));
        let mut six = [0; 28];
        six[..4].copy_from_slice(&[10, 0, 0, 80]);
        six[23] = 1;
        assert_eq!(text(&six), some("[::1]:80"));
        assert_eq!(text(b"\x10\0"), some("address family 16"));
        assert_eq!(text(b"\x02\0\0"), None);
        assert_eq!(text(b"\x01"), None);
    }

    #[test]
    fn a_socket_is_called_by_what_it_was_connected_to() {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let descriptor = socket.as_raw_fd() as u64;
        let mut namer = Namer::default();
        let before = name_of(&mut namer, "sendto", &[descriptor]).unwrap();
        assert!(before.starts_with("socket:["), "{before}");
        let address = b"\x01\0/run/x.comm\0";
        let connect = [descriptor, address.as_ptr() as u64, address.len() as u64];
        assert_eq!(name_of(&mut namer, "connect", &connect).as_deref(), Some("/run/x.comm"));
        assert_eq!(name_of(&mut namer, "recvfrom", &[descriptor]).as_deref(), Some("/run/x.comm"));
    }
}
