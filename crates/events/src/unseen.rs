//! Programs that were started by programs that are watched, and in which the probe did not begin:
//! what these do is not seen, which whoever repeats a command has to know.

use std::fmt;
use std::path::PathBuf;

use crate::blind::Blind;

/// A program in which the probe did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnseenProgram {
    /// Its file, as far as it is known.
    pub program: PathBuf,
    /// Why, where the probe or the file told when the program was observed.
    pub reason: Option<Blind>,
}

impl fmt::Display for UnseenProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_ref().map(ToString::to_string) {
            Some(reason) => f.write_str(reason.lines().next().unwrap_or_default()),
            None => write!(
                f,
                "{} was started without the variables of the probe, where it cannot go, or just \
                 before the end: what it did is not here",
                self.program.display()
            ),
        }
    }
}
