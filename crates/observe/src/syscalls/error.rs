//! Why a command could not be observed.

use std::io;

use nix::errno::Errno;
use thiserror::Error;

use tapstone_command::run::RunError;

/// Why a command could not be observed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TracingError {
    /// It could not be started.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The system does not let this process trace or filter another.
    #[error(
        "system calls cannot be observed: {call} failed: {code:?}, {}\nhint: {}",
        code.desc(),
        hint(*code)
    )]
    Refused {
        /// The name of the call that failed.
        call: &'static str,
        /// What the system said.
        code: Errno,
    },
}

impl TracingError {
    /// A call that prepares or does the tracing has failed.
    pub(super) fn refused(call: &'static str, cause: &io::Error) -> Self {
        Self::Refused { call, code: code(cause) }
    }

    /// The command could not be executed.
    pub(super) fn exec(command: &str, cause: &io::Error) -> Self {
        let command = command.to_owned();
        Self::Run(RunError { command, call: "execve", code: code(cause) })
    }
}

fn code(cause: &io::Error) -> Errno {
    Errno::from_raw(cause.raw_os_error().unwrap_or_default())
}

const fn hint(code: Errno) -> &'static str {
    match code {
        Errno::EPERM | Errno::EACCES => {
            "ptrace is not allowed here: see /proc/sys/kernel/yama/ptrace_scope (0 or 1 is needed), \
             and the seccomp profile of a container; or leave out --syscalls"
        }
        Errno::ENOSYS | Errno::EINVAL => "the kernel has no seccomp filters; leave out --syscalls",
        Errno::EAGAIN | Errno::ENOMEM => "no more processes or no memory: see ulimit -u, and free",
        Errno::EMFILE | Errno::ENFILE => "too many open files: see ulimit -n",
        _ => "leave out --syscalls",
    }
}
