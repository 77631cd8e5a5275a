//! How a process ended.

use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// A signal ended it; its number.
    Signal(i32),
}

impl Exit {
    /// Whether the command says that all went well.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_hook::low_level::signal_name(signal) {
                Some(name) => f.write_str(name),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exit_code_0_is_success() {
        for (exit, is_success, text) in [
            (Exit::Code(0), true, "exit code 0"),
            (Exit::Code(1), false, "exit code 1"),
            (Exit::Signal(libc::SIGKILL), false, "SIGKILL"),
            (Exit::Signal(0), false, "signal 0"),
        ] {
            assert_eq!(exit.is_success(), is_success, "{exit}");
            assert_eq!(exit.to_string(), text);
        }
    }
}
