//! Why a command cannot be run, told before anything is measured.

use std::ffi::OsString;
use std::path::PathBuf;

use thiserror::Error;

/// A command cannot be run. The text ends with a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// There is nothing in it.
    #[error("the command is empty\nhint: name a program and its arguments")]
    Empty,
    /// A quote that is not closed, or a backslash at the end.
    #[error(
        "`{text}` has an open quote, or ends in a backslash\nhint: close it, or write \\' or \\\\"
    )]
    OpenQuote {
        /// The text that is no command.
        text: String,
    },
    /// Something that only a shell can do.
    #[error(
        "`{text}` has {syntax}, on which only a shell would act\nhint: put it in single quotes if \
         the program is to get it; --shell lets /bin/sh run the command, and its start is then in \
         every time"
    )]
    ShellSyntax {
        /// The text that is no command.
        text: String,
        /// What a shell would act on.
        syntax: String,
    },
    /// No folder of PATH has it.
    #[error(
        "{}: not found (ENOENT); searched {}\nhint: check its name, add its folder to PATH, or \
         name it with its path", name.display(), searched.display()
    )]
    NotInPath {
        /// The name of the program that was not found.
        name: OsString,
        /// The value of PATH.
        searched: OsString,
    },
    /// There is no such file.
    #[error("{}: not found (ENOENT)\nhint: check the path", path.display())]
    NoSuchFile {
        /// The path as it was given.
        path: PathBuf,
    },
    /// It is there and cannot be run.
    #[error(
        "{}: cannot be run (EACCES): {why}\nhint: name a program; chmod +x makes a file one",
        path.display()
    )]
    NotExecutable {
        /// The path of the file that cannot be run.
        path: PathBuf,
        /// Why it cannot be run, as a clause.
        why: &'static str,
    },
}
