//! What is said: results on standard output, everything else on standard error.
//!
//! An output that fails ends no run and loses no other: it is noted, and the exit code tells.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

/// What the shell says of a program that SIGPIPE ended: 128 and the signal's number.
const NOBODY_READS: u8 = 141;

/// Whether the reader of standard output has closed it.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// The first output that failed for another reason.
static FAILED: OnceLock<String> = OnceLock::new();

/// To standard output, as `print!`.
macro_rules! out {
    ($($text:tt)*) => { $crate::print::to_output(format_args!($($text)*)) };
}

/// A line to standard output, as `println!`.
macro_rules! outln {
    () => { $crate::print::to_output(format_args!("\n")) };
    ($($text:tt)*) => { $crate::print::to_output(format_args!("{}\n", format_args!($($text)*))) };
}

/// A line to standard error, as `eprintln!`.
macro_rules! say {
    ($($text:tt)*) => { $crate::print::to_error(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use {out, outln, say};

/// Writes to standard output. Whoever closed it has seen enough, as in
/// `tapstone report run.json | head`: nothing more is written there.
pub(crate) fn to_output(text: Arguments<'_>) {
    if is_closed() {
        return;
    }
    let mut to = io::stdout().lock();
    match to.write_fmt(text).and_then(|()| to.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
        }
        Err(error) => note("standard output", &error),
    }
}

/// Writes to standard error.
pub(crate) fn to_error(text: Arguments<'_>) {
    match io::stderr().lock().write_fmt(text) {
        Ok(()) => {}
        // Nobody listens, and nobody has to.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => note("standard error", &error),
    }
}

/// Whether something that was said did not arrive, other than that its reader closed the pipe.
pub(crate) fn has_failed() -> bool {
    FAILED.get().is_some()
}

/// Whether the reader of standard output has closed it.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Nothing is begun whose results nobody could see.
pub(crate) fn without_output() -> ExitCode {
    say!(
        "error: standard output is closed (EBADF), so no result could be shown\n\
         hint: send it to a file, or to /dev/null"
    );
    Exit::NotMeasured.into()
}

fn note(what: &str, error: &io::Error) {
    FAILED.get_or_init(|| format!("{what}: {error}"));
}

/// The exit code of a run that came to `exit`, if all that it said arrived. What could not be
/// measured, or not be written, weighs more than a reader that has seen enough.
pub(crate) fn exit_code(exit: Exit) -> ExitCode {
    if let Some(what) = FAILED.get() {
        say!("error: {what}\nhint: is its disk full, or its file at its limit?");
        return Exit::NotMeasured.into();
    }
    if is_closed() && exit != Exit::NotMeasured { NOBODY_READS.into() } else { exit.into() }
}
