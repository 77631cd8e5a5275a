//! Where a PIN comes from. Never from the command line itself, which every user of the machine
//! can read in `/proc`.
//!
//! What is read is kept in buffers that are wiped, and is in no error: those name the source.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::Pin;

/// More than this is not a PIN, but the wrong file.
const MAX_FILE_BYTES: usize = 4096;

/// The terminal of the process, whatever its standard streams are.
const TERMINAL: &str = "/dev/tty";

/// Where a PIN comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinSource {
    /// The user types it, without an echo.
    Prompt,
    /// A file holds it; one newline at the end is not part of it.
    File(PathBuf),
    /// An environment variable holds it, byte by byte. Other processes of the same user can read
    /// it in `/proc`.
    Environment(String),
    /// An open file descriptor, of a file or a pipe, delivers what [`Self::File`] does.
    Descriptor(u32),
    /// The token asks for it on a PIN pad of its own.
    ProtectedPath,
    /// No PIN is given, and nobody logs in.
    None,
}

impl PinSource {
    /// The PIN; `None` when there is none to give, by [`Self::ProtectedPath`] and [`Self::None`].
    ///
    /// # Errors
    /// The source cannot be read, or is empty. No error shows what was read.
    pub fn read(&self) -> Result<Option<Pin>, PinError> {
        let pin = match self {
            Self::Prompt => prompt(TERMINAL)?,
            Self::File(path) => self.contents_of(path)?,
            Self::Environment(name) => variable(name, std::env::var_os(name))?,
            // The kernel's way to open a descriptor by its number; see fd(4) and proc(5).
            Self::Descriptor(number) => self.contents_of(format!("/dev/fd/{number}").as_ref())?,
            Self::ProtectedPath | Self::None => return Ok(None),
        };
        if pin.is_empty() { Err(PinError::Empty { from: self.clone() }) } else { Ok(Some(pin)) }
    }

    /// What the user should know about the source, other than why it cannot be read.
    #[must_use]
    pub fn warning(&self) -> Option<PinWarning> {
        let Self::File(path) = self else { return None };
        let metadata = path.metadata().ok()?;
        let mode = metadata.permissions().mode() & 0o7777;
        let is_open = metadata.is_file() && mode & 0o044 != 0;
        is_open.then(|| PinWarning::ReadableByOthers { path: path.clone(), mode })
    }

    fn contents_of(&self, path: &Path) -> Result<Pin, PinError> {
        let unreadable = |error| PinError::Unreadable { from: self.clone(), error };
        let mut file = File::open(path).map_err(unreadable)?;
        // Of full size from the start: a vector that grows leaves copies behind.
        let mut buffer = Zeroizing::new(vec![0; MAX_FILE_BYTES + 1]);
        let mut length = 0;
        while length < buffer.len() {
            match file.read(&mut buffer[length..]) {
                Ok(0) => return Ok(Pin::from_file_contents(buffer[..length].to_vec())),
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        Err(PinError::TooLong(self.clone()))
    }
}

/// As the option that gives it.
impl fmt::Display for PinSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt => f.write_str("--pin-prompt"),
            Self::File(path) => write!(f, "--pin-file {}", path.display()),
            Self::Environment(name) => write!(f, "--pin-env {name}"),
            Self::Descriptor(number) => write!(f, "--pin-fd {number}"),
            Self::ProtectedPath => f.write_str("the token's PIN pad"),
            Self::None => f.write_str("no PIN"),
        }
    }
}

/// Asks on the terminal, where neither the question nor the answer mixes with data on stdout.
fn prompt(terminal: &str) -> Result<Pin, PinError> {
    File::options().read(true).write(true).open(terminal).map_err(PinError::NoTerminal)?;
    let config = rpassword::ConfigBuilder::new()
        .input_file_path(terminal)
        .output_file_path(terminal)
        .build();
    let typed = rpassword::prompt_password_with_config("PIN: ", config);
    // The bytes are moved, not copied: the PIN wipes them.
    typed.map(|typed| Pin::new(typed.into_bytes())).map_err(PinError::Prompt)
}

fn variable(name: &str, value: Option<OsString>) -> Result<Pin, PinError> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Whoever gives the PIN where its variable's name belongs must not find it in a log.
    if !name.chars().all(is_part) || !name.starts_with(|c: char| !c.is_ascii_digit()) {
        return Err(PinError::NotAName);
    }
    let value = value.ok_or_else(|| PinError::NoVariable(name.to_owned()))?;
    Ok(Pin::new(value.into_vec()))
}

/// Why there is no PIN.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The process has no terminal: it runs in a service, a container or CI.
    #[error(
        "there is no terminal to ask for the PIN on: {0}\n\
         hint: give it by --pin-file, --pin-env or --pin-fd"
    )]
    NoTerminal(io::Error),
    /// The terminal is there, but nothing came from it.
    #[error(
        "the PIN was not typed to its end: {0}\n\
         hint: try again, or give it by --pin-file, --pin-env or --pin-fd"
    )]
    Prompt(io::Error),
    /// The file or the descriptor cannot be read.
    #[error("{from}: {error}\nhint: {}", unreadable_hint(.from))]
    Unreadable {
        /// Where the PIN was to come from.
        from: PinSource,
        /// What the system says of it.
        error: io::Error,
    },
    /// It does not end where a PIN would.
    #[error(
        "{0}: more than {MAX_FILE_BYTES} bytes, which is no PIN\n\
         hint: is this the right file? It holds the PIN and nothing else"
    )]
    TooLong(PinSource),
    /// No environment variable is called so.
    #[error("--pin-env {0}: there is no such environment variable\nhint: was it exported?")]
    NoVariable(String),
    /// No environment variable can be called so; it may be the PIN itself, so it is not shown.
    #[error(
        "--pin-env wants the name of an environment variable: letters, digits and `_`\n\
         hint: the PIN itself is never given on the command line, where other users see it"
    )]
    NotAName,
    /// It is there and holds nothing. A token would count that as an attempt.
    #[error("{from}: the PIN is empty\nhint: {}", empty_hint(.from))]
    Empty {
        /// Where the PIN was to come from.
        from: PinSource,
    },
}

fn unreadable_hint(from: &PinSource) -> &'static str {
    match from {
        PinSource::Descriptor(_) => {
            "open it for Tapstone, as a file or a pipe: `--pin-fd 3 3<pin.txt`"
        }
        _ => "does the file exist, and may this user read it?",
    }
}

fn empty_hint(from: &PinSource) -> &'static str {
    match from {
        PinSource::Prompt => "type the PIN, or leave --pin-prompt out to measure without a login",
        PinSource::Descriptor(_) => "was it read before? A pipe delivers the PIN only once",
        _ => "put the PIN there, or leave the option out to measure without a login",
    }
}

/// What is unwise about a source that works.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinWarning {
    /// The PIN is no secret from the group, or from everybody.
    #[error(
        "{} can be read by other users (mode {mode:04o})\nhint: chmod 600 {}",
        .path.display(), .path.display()
    )]
    ReadableByOthers {
        /// The path of the file with the PIN.
        path: PathBuf,
        /// The permission bits of the file, as stat(2) gives them.
        mode: u32,
    },
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::thread;

    use rustix::pty::{self, OpenptFlags};

    use super::*;

    /// A file with `contents` in a directory that goes with it.
    fn file(contents: &[u8]) -> (tempfile::TempDir, PinSource) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("pin");
        fs::write(&path, contents).expect("a file");
        (directory, PinSource::File(path))
    }

    fn pin(source: &PinSource) -> Vec<u8> {
        source.read().expect("readable").expect("a PIN").expose().to_vec()
    }

    fn error(source: &PinSource) -> String {
        source.read().expect_err("no PIN").to_string()
    }

    #[test]
    fn a_file_gives_its_bytes_without_the_last_newline() {
        for (contents, expected) in [
            (&b"1234"[..], &b"1234"[..]),
            (b"user:pass word\n", b"user:pass word"),
            (b"\xFF\x00\n\n", b"\xFF\x00\n"),
        ] {
            let (_directory, source) = file(contents);
            assert_eq!(pin(&source), expected);
        }
    }

    #[test]
    fn a_file_that_holds_no_pin_is_named_with_the_reason() {
        let missing = PinSource::File("/nonexistent/pin".into());
        assert_eq!(
            error(&missing),
            "--pin-file /nonexistent/pin: No such file or directory (os error 2)\n\
             hint: does the file exist, and may this user read it?"
        );
        let (_directory, empty) = file(b"\n");
        assert!(error(&empty).contains("/pin: the PIN is empty\nhint: put the PIN there"));
        let (_directory, longest) = file(&[b'7'; MAX_FILE_BYTES]);
        assert_eq!(pin(&longest).len(), MAX_FILE_BYTES);
        let (_directory, long) = file(&[b'7'; MAX_FILE_BYTES + 1]);
        let problem = error(&long);
        assert!(problem.contains("more than 4096 bytes") && !problem.contains("777"), "{problem}");
        assert!(error(&PinSource::File("/dev/zero".into())).contains("more than 4096 bytes"));
        assert!(error(&PinSource::File("/".into())).contains("Is a directory"));
    }

    #[test]
    fn a_file_that_others_can_read_is_warned_of() {
        let (_directory, source) = file(b"1234\n");
        let PinSource::File(path) = &source else { unreachable!("it is a file") };
        for (mode, is_open) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
            let warning = source.warning();
            assert_eq!(warning.is_some(), is_open, "{mode:o}");
            if let Some(warning) = warning {
                let path = path.display();
                let text = format!(
                    "{path} can be read by other users (mode {mode:04o})\nhint: chmod 600 {path}"
                );
                assert_eq!(warning.to_string(), text);
            }
        }
        assert_eq!(PinSource::File("/nonexistent".into()).warning(), None);
        assert_eq!(PinSource::File("/dev/null".into()).warning(), None, "not a file that keeps it");
    }

    #[test]
    fn a_variable_gives_its_bytes_as_they_are() {
        // One that is there anyway: setting one is not safe beside other threads.
        let path = std::env::var_os("PATH").expect("every shell sets it");
        assert_eq!(pin(&PinSource::Environment("PATH".into())), path.into_vec());
        let raw = variable("PIN", Some(OsString::from_vec(b"\xFF1\n".to_vec())));
        assert_eq!(raw.expect("a PIN").expose(), b"\xFF1\n");
    }

    #[test]
    fn a_variable_that_is_not_there_is_named_but_a_pin_in_its_place_is_not() {
        assert_eq!(
            error(&PinSource::Environment("TAPSTONE_UNSET".into())),
            "--pin-env TAPSTONE_UNSET: there is no such environment variable\nhint: was it exported?"
        );
        for pin in ["123456", "user:password", "", "pass word"] {
            let source = PinSource::Environment(pin.into());
            assert!(matches!(source.read(), Err(PinError::NotAName)), "{pin:?}");
        }
        assert!(!error(&PinSource::Environment("123456".into())).contains("123456"));
    }

    #[test]
    fn a_descriptor_gives_what_a_file_or_a_pipe_holds() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"1234\n").expect("room in the pipe");
        drop(writer);
        let source = PinSource::Descriptor(reader.as_raw_fd() as u32);
        assert_eq!(pin(&source), *b"1234");
        assert!(error(&source).ends_with("A pipe delivers the PIN only once"));

        let (_directory, PinSource::File(path)) = file(b"5678") else { unreachable!("a file") };
        let open = File::open(path).expect("was written");
        assert_eq!(pin(&PinSource::Descriptor(open.as_raw_fd() as u32)), *b"5678");

        let closed = error(&PinSource::Descriptor(999_999));
        assert!(closed.starts_with("--pin-fd 999999: No such file or directory"), "{closed}");
        assert!(closed.contains("hint: open it for Tapstone"), "{closed}");
    }

    #[test]
    fn a_pin_pad_and_no_login_need_no_pin() {
        assert!(PinSource::ProtectedPath.read().expect("nothing to read").is_none());
        assert!(PinSource::None.read().expect("nothing to read").is_none());
    }

    #[test]
    fn without_a_terminal_the_other_ways_are_named() {
        let problem = prompt("/nonexistent/tty").expect_err("no terminal").to_string();
        assert!(problem.starts_with("there is no terminal to ask for the PIN on: "), "{problem}");
        assert!(
            problem.ends_with("hint: give it by --pin-file, --pin-env or --pin-fd"),
            "{problem}"
        );
    }

    #[test]
    fn a_terminal_shows_the_question_and_not_the_answer() {
        let user = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        pty::grantpt(&user).expect("own terminal");
        pty::unlockpt(&user).expect("own terminal");
        let name = pty::ptsname(&user, Vec::new()).expect("a name").into_string().expect("ASCII");
        let mut user = File::from(user);

        // Kept open: reading fails with EIO while nobody has the terminal's own side open.
        let terminal = File::options()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOCTTY.bits() as i32)
            .open(&name);
        let asking = thread::spawn(move || prompt(&name));
        let mut question = [0; 5];
        user.read_exact(&mut question).expect("the question");
        assert_eq!(question, *b"PIN: ");
        // A user takes longer to answer than the program to turn the echo off.
        while echoes(&user) {
            thread::yield_now();
        }
        user.write_all("gehe!m\u{fc}\n".as_bytes()).expect("the answer");
        let pin = asking.join().expect("no panic").expect("a PIN");
        assert_eq!(pin.expose(), "gehe!m\u{fc}".as_bytes());

        assert!(echoes(&user), "the terminal is as it was");
        drop(terminal.expect("own terminal"));
        let mut shown = Vec::new();
        _ = user.read_to_end(&mut shown);
        assert_eq!(String::from_utf8_lossy(&shown).trim(), "", "nothing of the answer is shown");
    }

    fn echoes(terminal: &File) -> bool {
        let settings = rustix::termios::tcgetattr(terminal).expect("a terminal");
        settings.local_modes.contains(rustix::termios::LocalModes::ECHO)
    }
}
