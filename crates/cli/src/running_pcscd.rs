//! Which pcscd answers: the process behind the socket is asked, not the file that is installed.
//!
//! They differ after an update without a restart, beside a pcscd of one's own, and in a container
//! that has another machine's socket.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::process::geteuid;
use tapstone_record as record;

/// Where pcsc-lite's client library connects to, unless this variable names another place.
const SOCKET: &str = "/run/pcscd/pcscd.comm";
const SOCKET_VARIABLE: &str = "PCSCLITE_CSOCK_NAME";
/// The name of the daemon's file. Another program's `--version` is not asked for.
const NAME: &str = "pcscd";
/// The process that starts the others: systemd, where it listens for pcscd until a client comes.
const INIT: i32 = 1;
/// What the link to a file ends with that was replaced.
const DELETED: &str = " (deleted)";

/// The pcscd that answers a client of this process; `None` where it cannot be asked: without one,
/// and where another user's processes may not be looked into.
pub(crate) fn running_pcscd() -> Option<record::Daemon> {
    let socket = std::env::var_os(SOCKET_VARIABLE).unwrap_or_else(|| OsString::from(SOCKET));
    pcscd_behind(Path::new(&socket))
}

fn pcscd_behind(socket: &Path) -> Option<record::Daemon> {
    let stream = UnixStream::connect(socket).ok()?;
    let peer = getsockopt(&stream, PeerCredentials).ok()?;
    // A program of somebody else's is not run as this user.
    if peer.uid() != 0 && peer.uid() != geteuid().as_raw() {
        return None;
    }
    let process = match peer.pid() {
        listener if is_pcscd(listener) => listener,
        // With socket activation the kernel names systemd, whoever answers: it made the socket. The
        // pcscd that it has started answers, and with two of them nobody knows which.
        INIT => only_pcscd()?,
        // Another program, or, as 0, a process of another container's.
        _ => return None,
    };
    Some(record::Daemon { name: NAME.to_owned(), version: version(process)? })
}

/// The file that a process runs, also when it was replaced since.
fn executable(process: i32) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    let text = link.to_string_lossy();
    Some(PathBuf::from(text.strip_suffix(DELETED).unwrap_or(&text)))
}

/// By the file that it runs, or, where that is not shown, by its name.
fn is_pcscd(process: i32) -> bool {
    match executable(process) {
        Some(file) => file.file_name().is_some_and(|name| name == NAME),
        None => fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.trim_end() == NAME),
    }
}

/// The one pcscd of root's on this machine, if there is one only.
fn only_pcscd() -> Option<i32> {
    let processes = fs::read_dir("/proc").ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let process: i32 = entry.file_name().to_str()?.parse().ok()?;
        (entry.metadata().ok()?.uid() == 0 && is_pcscd(process)).then_some(process)
    });
    let found: Vec<i32> = processes.collect();
    match found[..] {
        [process] => Some(process),
        _ => None,
    }
}

/// What the process's own file says: its first line is `pcsc-lite version 1.9.9.`
fn version(process: i32) -> Option<String> {
    // The link leads to the very file, whatever has taken its name since.
    let exact = PathBuf::from(format!("/proc/{process}/exe"));
    let program = if executable(process).is_some() { exact } else { unchanged_file(process)? };
    let output = Command::new(program).arg("--version").env_clear().output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().next()?.rsplit(' ').next()?.trim_end_matches('.').to_owned();
    (!version.is_empty()).then_some(version)
}

/// The file that a process of another user was started by, if it is older than the process.
fn unchanged_file(process: i32) -> Option<PathBuf> {
    let command = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let first = command.split(|byte| *byte == 0).next()?;
    let file = PathBuf::from(String::from_utf8(first.to_vec()).ok()?);
    let started = fs::metadata(format!("/proc/{process}")).ok()?.ctime();
    let changed = fs::metadata(&file).ok()?.ctime();
    (file.is_absolute() && changed < started).then_some(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::{Child, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Listens at the path that it is given, and says which version it is.
    const DAEMON: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    if (strcmp(words[1], "--version") == 0)
        return puts("pcsc-lite version 7.6.5.") == EOF;
    strncpy(place.sun_path, words[1], sizeof place.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&place, sizeof place) || listen(listener, 5))
        return 1;
    for (;;)
        close(accept(listener, 0, 0));
}
"#;

    struct Daemon(Child);

    impl Drop for Daemon {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Compiled under this name; `None` without a C compiler.
    fn compiled(folder: &Path, name: &str) -> Option<PathBuf> {
        let source = folder.join("daemon.c");
        fs::write(&source, DAEMON).unwrap();
        let program = folder.join(name);
        let made = Command::new("cc").arg("-o").arg(&program).arg(&source).status();
        if !made.is_ok_and(|status| status.success()) {
            tapstone_testing::skip("a C compiler (Debian: gcc)");
            return None;
        }
        Some(program)
    }

    fn start(program: &Path, socket: &Path) -> Daemon {
        let child = Command::new(program).arg(socket).stdin(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while UnixStream::connect(socket).is_err() {
            assert!(Instant::now() < until, "{} does not listen", program.display());
            thread::sleep(Duration::from_millis(20));
        }
        Daemon(child)
    }

    #[test]
    fn the_version_is_that_of_the_process_that_answers() {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = compiled(folder.path(), NAME) else { return };
        let socket = folder.path().join("socket");
        let daemon = start(&program, &socket);
        let told = || pcscd_behind(&socket).map(|daemon| daemon.version);
        assert_eq!(told().as_deref(), Some("7.6.5"));
        // An update replaces the file, and what runs stays what it was.
        fs::remove_file(&program).unwrap();
        fs::write(&program, "#!/bin/sh\necho 'pcsc-lite version 9.9.9.'\n").unwrap();
        assert_eq!(told().as_deref(), Some("7.6.5"));
        drop(daemon);
        assert_eq!(told(), None, "nobody answers");
    }

    #[test]
    fn another_program_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own-socket");
        let _listener = UnixListener::bind(&own).unwrap();
        assert!(pcscd_behind(&own).is_none(), "this test is no pcscd");
        let Some(program) = compiled(folder.path(), "other") else { return };
        let other = folder.path().join("other-socket");
        let _daemon = start(&program, &other);
        assert_eq!(pcscd_behind(&other).map(|daemon| daemon.version), None);
    }
}
