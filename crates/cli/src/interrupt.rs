//! Signals. Ctrl-C, Ctrl-\, SIGTERM and SIGHUP end a run in good order: what was measured is
//! written, what was made on a token is removed. One more that comes later ends the program at
//! once; `--leftovers` finds what is left.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::progress;

/// Signals that follow one another so quickly are one wish: timeout(1), and programs that pass
/// signals on, send to a process what its whole group is sent as well.
const SAME_WISH: Duration = Duration::from_millis(500);

/// The exit code of a run that could not end in order.
const AT_ONCE: i32 = 2;

/// From now on a file that reaches its limit (`ulimit -f`) is an error of writing, EFBIG. Programs
/// that are started have the signal as it was, because it is not ignored but handled.
pub(crate) fn survive_file_limits() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// For what takes a moment and makes nothing but files: a signal ends the program as ever, but not
/// while a file is half written.
pub(crate) fn finish_files_first() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            let _files = tapstone_files::hold_files();
            let _ = low_level::emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// A flag that is set once the user asks to end.
pub(crate) fn flag_on_signals() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    let heard = Arc::clone(&asked);
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut first = None;
        for _ in signals.forever() {
            heard.store(true, Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() > SAME_WISH {
                progress::clear_line();
                low_level::exit(AT_ONCE);
            }
        }
    })?;
    Ok(asked)
}
