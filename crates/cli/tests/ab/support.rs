//! A folder with scripts, and `tapstone ab` in it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tapstone_record::{CaseResult, ComparedCase, Comparison, Record};
use tapstone_testing::{eventually, private_environment};
use tempfile::TempDir;

/// No run of these tests takes so long: one that does hangs.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// See the module's text. What the scripts append to `log` is told by [`Folder::log`].
pub(crate) struct Folder {
    folder: TempDir,
}

/// What a run has left behind.
pub(crate) struct Outcome {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// Writes a script, and gives the command that runs it.
    pub(crate) fn script(&self, name: &str, body: &str) -> String {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        format!("./{name}")
    }

    /// A script that counts to this number.
    pub(crate) fn work(&self, name: &str, count: u32) -> String {
        let count = format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); done");
        self.script(name, &format!("echo {name} >> log\n{count}"))
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// The lines that scripts have appended.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Starts it in a process group of its own, as a shell does.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let file = |name| File::create(self.path(name)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.current_dir(self.folder.path()).arg("ab").args(arguments).process_group(0);
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr")).spawn().unwrap()
    }

    pub(crate) fn wait(&self, mut child: Child) -> Outcome {
        let mut status = None;
        let ended = eventually(TIME_LIMIT, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            // With the commands that it runs.
            kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
            child.wait().unwrap();
        }
        let read = |name| fs::read_to_string(self.path(name)).unwrap();
        let outcome = Outcome {
            exit: status.and_then(|status| status.code()),
            stdout: read("stdout"),
            stderr: read("stderr"),
        };
        assert!(ended, "still running after {TIME_LIMIT:?}\n{}", outcome.stderr);
        outcome
    }

    pub(crate) fn ab(&self, arguments: &[&str]) -> Outcome {
        self.wait(self.start(arguments))
    }
}

impl Outcome {
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The record that `--format json` printed, held to the schema.
    pub(crate) fn record(&self) -> Record {
        assert!(self.stdout.starts_with('{'), "{}\n{}", self.stdout, self.stderr);
        tapstone_testing::record(&self.stdout)
    }

    /// One error, which names all of these and ends with a hint.
    pub(crate) fn is_error(&self, says: &[&str]) {
        let text = &self.stderr;
        assert_eq!(self.exit, Some(2), "{text}");
        assert!(text.starts_with("error: "), "{text}");
        assert!(says.iter().all(|says| text.contains(says)), "{says:?}: {text}");
        assert!(text.lines().last().unwrap().starts_with("hint: "), "{text}");
    }
}

pub(crate) fn comparison(record: &Record) -> &Comparison {
    record.comparison.as_ref().expect("a comparison")
}

pub(crate) fn compared<'a>(record: &'a Record, operation: &str) -> &'a ComparedCase {
    let rows = &comparison(record).cases;
    rows.iter().find(|row| row.operation == operation).expect("this row")
}

pub(crate) fn row<'a>(record: &'a Record, operation: &str) -> &'a CaseResult {
    record.results.iter().find(|row| row.operation == operation).expect("this row")
}
