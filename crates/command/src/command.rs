//! A program with its arguments, found before anything is measured.
//!
//! A command comes as words (`-- program argument…`) or as one text (`'program argument…'`). A
//! text is split as a shell splits words, but no shell runs it: its start would be in the time of
//! every run, and takes as long as a short command. What else a shell would do with a text (pipes,
//! variables, patterns) is refused: a `|` that silently became an argument would be measured as
//! something that nobody asked for. [`Command::by_shell`] is for such texts.

mod error;
mod shown;
mod text;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use sha2::{Digest, Sha256};
use tapstone_record::Program;

pub use error::CommandError;
pub use shown::{HIDDEN, Recorded, shown_text, shown_words};

/// The shell that POSIX promises.
const SHELL: &str = "/bin/sh";

/// Where execvp(3) of glibc looks when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A program that exists and may be run, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    program: PathBuf,
    name: OsString,
    arguments: Vec<OsString>,
    shown: String,
    whole: String,
}

impl Command {
    /// From a program's name, which is looked for in PATH unless it is a path, and its arguments.
    ///
    /// # Errors
    /// When there are no words, and when there is no such program or it may not be run.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, CommandError> {
        let mut words = words.into_iter();
        let name = words.next().filter(|name| !name.is_empty()).ok_or(CommandError::Empty)?;
        let arguments: Vec<OsString> = words.collect();
        let all = [&name].into_iter().chain(&arguments);
        let all: Vec<String> = all.map(|word| word.to_string_lossy().into_owned()).collect();
        let shown = shown::joined(&shown_words(&all, Recorded::Options));
        let whole = shell_words::join(&all);
        Ok(Self { program: find_program(&name)?, name, arguments, shown, whole })
    }

    /// From a text with quotes and backslashes, which has the same words that a shell would give
    /// to the program.
    ///
    /// # Errors
    /// As [`Command::from_words`], and when the text does not end or only a shell could run it.
    pub fn from_text(text: &str) -> Result<Self, CommandError> {
        let text = text.trim();
        let shown = shown_text(text, Recorded::Options);
        if let Some(syntax) = text::shell_syntax(text) {
            return Err(CommandError::ShellSyntax { text: shown, syntax });
        }
        let Ok(words) = shell_words::split(text) else {
            return Err(CommandError::OpenQuote { text: shown });
        };
        let command = Self::from_words(words.into_iter().map(OsString::from))?;
        Ok(Self { shown, whole: text.to_owned(), ..command })
    }

    /// A text that `/bin/sh -c` runs, whatever is in it.
    ///
    /// # Errors
    /// When the text is empty, and when there is no such shell.
    pub fn by_shell(text: &str) -> Result<Self, CommandError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(CommandError::Empty);
        }
        let words = [SHELL, "-c", text].map(OsString::from);
        let command = Self::from_words(words)?;
        let shown = shown_text(text, Recorded::Options);
        Ok(Self { shown, whole: text.to_owned(), ..command })
    }

    /// The same command, of which records and errors show so much.
    #[must_use]
    pub fn recorded(self, recorded: Recorded) -> Self {
        match recorded {
            Recorded::Options => self,
            Recorded::Whole => Self { shown: self.whole.clone(), ..self },
        }
    }

    /// The path of the program's file.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The program's name as it was given: what it finds in `argv[0]`.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// What follows the name.
    #[must_use]
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The command for people and for the record: the program and its options, unless
    /// [`Command::recorded`] says that the whole is shown.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The program as the record identifies it.
    ///
    /// # Errors
    /// When its file cannot be read, which running it does not ask for.
    pub fn identity(&self) -> io::Result<Program> {
        let mut sha256 = Sha256::new();
        io::copy(&mut BufReader::new(File::open(&self.program)?), &mut sha256)?;
        let path = std::path::absolute(&self.program)?;
        let sha256 = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Program { path: path.to_string_lossy().into_owned(), sha256 })
    }
}

/// What is wrong with a file as a program.
enum Refusal {
    Absent,
    /// Why it cannot be run, and the code that execve(2) would give.
    NotExecutable(&'static str),
}

/// The file that execvp(3) would run: the name itself when it is a path, else the first in PATH
/// that may be run.
///
/// # Errors
/// When there is no such file, or the user may not run it.
pub fn find_program(name: &OsStr) -> Result<PathBuf, CommandError> {
    let not_executable = |path: PathBuf, why| CommandError::NotExecutable { path, why };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match look_at(&path) {
            Ok(()) => Ok(path),
            Err(Refusal::Absent) => Err(CommandError::NoSuchFile { path }),
            Err(Refusal::NotExecutable(why)) => Err(not_executable(path, why)),
        };
    }
    let searched = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut refused = None;
    for folder in env::split_paths(&searched) {
        // An empty part of PATH is the current folder.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let path = folder.join(name);
        match look_at(&path) {
            Ok(()) => return Ok(path),
            // A folder of that name is no program that was meant.
            Err(_) if path.is_dir() => {}
            Err(Refusal::Absent) => {}
            Err(Refusal::NotExecutable(why)) => {
                refused.get_or_insert((path, why));
            }
        }
    }
    Err(match refused {
        Some((path, why)) => not_executable(path, why),
        None => CommandError::NotInPath { name: name.to_owned(), searched },
    })
}

fn look_at(path: &Path) -> Result<(), Refusal> {
    let metadata = path.metadata().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Refusal::NotExecutable("a folder above it is closed"),
        _ => Refusal::Absent,
    })?;
    if metadata.is_dir() {
        return Err(Refusal::NotExecutable("it is a folder"));
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|_| Refusal::NotExecutable("its permissions do not let you run it"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn words(command: &Command) -> Vec<String> {
        let all = [&command.name].into_iter().chain(&command.arguments);
        all.map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_text_has_the_words_that_a_shell_gives_to_the_program() {
        for text in [
            "sh -c true",
            "  sh   'one word'\t\"another one\" ",
            r#"sh a\ b "it's" 'say "x"' "" x"y"'z' "\"" a\|b '$HOME' "a|b" a#b"#,
        ] {
            let ours = Command::from_text(text).unwrap();
            let script = format!("printf '%s\\0' {text}");
            let shell = std::process::Command::new(SHELL).args(["-c", &script]).output().unwrap();
            let theirs = String::from_utf8(shell.stdout).unwrap();
            let theirs: Vec<&str> = theirs.trim_end_matches('\0').split('\0').collect();
            assert_eq!(words(&ours), theirs, "{text}");
            assert_eq!(ours.recorded(Recorded::Whole).shown(), text.trim());
        }
    }

    #[test]
    fn a_program_is_found_as_the_system_finds_it() {
        let command = Command::from_words(["sh".into(), "-c".into(), "a b".into()]).unwrap();
        assert!(command.program().ends_with("sh") && command.program().is_absolute());
        assert_eq!(command.name(), "sh", "as it was given");
        assert_eq!(command.shown(), "sh -c …");
        assert_eq!(command.clone().recorded(Recorded::Whole).shown(), "sh -c 'a b'");
        let identity = command.identity().unwrap();
        let sum = std::process::Command::new("sha256sum").arg(command.program()).output().unwrap();
        assert!(sum.stdout.starts_with(identity.sha256.as_bytes()), "{identity:?}");
    }

    #[test]
    fn what_cannot_be_run_is_said_with_its_code_and_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&plain, Permissions::from_mode(0o644)).unwrap();
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let missing = path(&folder.path().join("missing"));
        for (text, says) in [
            ("", &["empty"][..]),
            (" ", &["empty"]),
            ("no-such-program-of-mine --x", &["ENOENT", "no-such-program-of-mine", "/usr/bin"]),
            (&missing, &["ENOENT", &missing]),
            (&path(&plain), &["EACCES", "chmod +x"]),
            (&path(folder.path()), &["EACCES", "folder"]),
            ("sh 'open", &["`sh …`", "quote"]),
            ("sh -c true | cat", &["`|`", "--shell"]),
        ] {
            let error = Command::from_text(text).unwrap_err().to_string();
            assert!(says.iter().all(|says| error.contains(says)), "{text}: {error}");
            assert!(error.lines().last().unwrap().starts_with("hint: "), "{error}");
        }
        let command = Command::by_shell("exit 3 | cat > /dev/null").unwrap();
        assert_eq!(words(&command), [SHELL, "-c", "exit 3 | cat > /dev/null"]);
    }
}
