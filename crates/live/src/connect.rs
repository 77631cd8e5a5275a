//! Connecting to a socket without waiting for whoever listens there.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as ask, socket_with,
};

/// A connection to a socket of this machine.
///
/// # Errors
/// When nobody listens there (ECONNREFUSED), or whoever does lets too many wait (EAGAIN).
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    ask(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}
