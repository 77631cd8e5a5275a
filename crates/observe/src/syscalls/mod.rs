//! The system calls that a program and its children make, with the stacks that made them.
//!
//! Without privileges: a seccomp filter stops only the chosen calls, and ptrace(2) tells the
//! tracer; everything else runs at full speed. It changes three things for the program: it cannot
//! gain privileges (setuid programs run without theirs; [`Observed::warnings`] names them), it
//! cannot trace others, and a thread that stops several times in a row stays on the tracer's
//! processor.
//!
//! How often calls are made, and from where, is exact, but for this: a call that a signal's
//! handler interrupts and the kernel then begins again counts twice. How long a short call takes
//! under ptrace is the tracer's time; [`Observed::slept`] says which durations are worth something.
//!
//! Linux on x86-64. Calls of other kinds of programs are not seen: those of 32 bits are named in
//! the warnings; `int 0x80` in a program of 64 bits is not noticed.

mod call;
mod cost;
mod error;
mod exec;
mod family;
mod filter;
mod images;
mod launch;
mod memory;
mod names;
mod placement;
mod ptrace;
mod signals;
mod space;
mod stacks;
mod start;
mod tracer;
mod walk;

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

pub use self::error::TracingError;
pub use self::launch::{Launch, TracingOptions};

use tapstone_events::system_calls::Observed;

/// Starts a program, observes it and all its children, and returns when the last of them has ended
/// (like `strace -f`): without a tracer the chosen calls of those that remain would fail.
///
/// While it runs, Ctrl-C and SIGHUP do not end this process, and SIGTERM is passed on to the
/// program. The process keeps handlers for them; a caller that wants them to act before or
/// afterwards registers its own. When only children are left, each of them ends those.
///
/// # Errors
/// The program cannot be started, or the kernel does not let it be observed.
pub fn observe(launch: &Launch<'_>, options: &TracingOptions) -> Result<Observed, TracingError> {
    // A thread of its own: the kernel ties tracees, and whom to wait for, to the thread.
    thread::scope(|scope| {
        let tracer = thread::Builder::new().name("tracer".to_owned());
        let (done, ended) = mpsc::channel::<()>();
        let tracer = tracer.spawn_scoped(scope, move || {
            // Dropped at the end, whatever it is.
            let _done = done;
            tracer::observe(launch, options)
        });
        let refused = |cause: io::Error| TracingError::refused("pthread_create", &cause);
        let tracer = tracer.map_err(refused)?;
        while let Some(pause) = launch.observations.period()
            && ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
        {
            launch.observations.look_after();
        }
        let observed = tracer.join();
        observed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
