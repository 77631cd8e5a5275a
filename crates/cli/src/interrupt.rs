//! Signals. Ctrl-C, Ctrl-\, SIGTERM and SIGHUP end a run in good order: what was measured is
//! written, what was made on a token is removed. A second one ends the program at once;
//! `--leftovers` finds what is left.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

/// From now on a file that reaches its limit (`ulimit -f`) is an error of writing, EFBIG. Programs
/// that are started have the signal as it was, because it is not ignored but handled.
pub(crate) fn survive_file_limits() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// A flag that is set once the user asks to end.
pub(crate) fn flag_on_signals() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // Registered first, so that it acts from the second signal on.
        flag::register_conditional_shutdown(signal, 2, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}
