//! This program again, with another verb.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tapstone_record::{Outcome, Record, Verdict};
use tempfile::TempDir;

use crate::interrupt;

/// How often a child is looked at.
const PAUSE: Duration = Duration::from_millis(50);

/// Where records go, and where everything else is kept while it runs.
pub(super) struct DemoRun {
    folder: PathBuf,
    scratch: TempDir,
    interrupt: Arc<AtomicBool>,
}

impl DemoRun {
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            scratch: tempfile::tempdir().context("no temporary folder can be made")?,
            interrupt: interrupt::flag_on_signals()?,
        })
    }

    /// A folder that is removed at the end.
    pub(super) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A file of the folder that stays.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a verb, which writes its record to this file. Claims may be missed, or void where other
    /// programs keep the machine busy.
    pub(super) fn verb(
        &self,
        record: &str,
        words: &[&OsStr],
        variables: &[(&str, &OsStr)],
    ) -> anyhow::Result<PathBuf> {
        const MISSED: i32 = 1;
        const NOT_MEASURED: i32 = 2;
        let path = self.kept(record);
        // Options stand behind the verb, and before a command that is to be run.
        let is_option = |word: &&OsStr| word.as_encoded_bytes().starts_with(b"--");
        let verbs = words.iter().position(is_option).unwrap_or(words.len());
        let (verb, rest) = words.split_at(verbs);
        let mut command = Command::new(own_program()?);
        command.args(verb).arg("--output").arg(&path).args(rest).envs(variables.iter().copied());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let status = self.wait(child.with_context(|| shown(words))?)?;
        match status {
            Some(0 | MISSED) => Ok(path),
            Some(NOT_MEASURED) if has_void_claim(&path) => Ok(path),
            _ => anyhow::bail!("{} did not end well; above it says why", shown(words)),
        }
    }

    /// Waits for a child, and ends it in good order when the user wants to end.
    fn wait(&self, mut child: Child) -> anyhow::Result<Option<i32>> {
        let mut told = false;
        loop {
            if let Some(status) = child.try_wait()? {
                self.check()?;
                return Ok(status.code());
            }
            if self.interrupt.load(Ordering::Relaxed) && !told {
                told = true;
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Fails once the user wants to end.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let asked = self.interrupt.load(Ordering::Relaxed);
        anyhow::ensure!(!asked, "interrupted; the records that were made are kept");
        Ok(())
    }
}

pub(super) fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the program's own file")
}

/// `tapstone token --op rsa2048.sign`.
fn shown(words: &[&OsStr]) -> String {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    format!("tapstone {}", words.join(" "))
}

/// Words of a command, of strings and paths.
pub(super) fn words<const N: usize>(words: [&dyn AsRef<OsStr>; N]) -> Vec<&OsStr> {
    words.iter().map(|word| (*word).as_ref()).collect()
}

/// Whether a program can be found, in the folders of PATH and those of daemons.
pub(super) fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let daemons = [PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")];
    std::env::split_paths(&path).chain(daemons).any(|folder| folder.join(name).is_file())
}

/// All was measured, but a claim about it is void.
fn has_void_claim(record: &Path) -> bool {
    Record::read(record).is_ok_and(|record| {
        let measured = record.results.iter().all(|case| case.status.outcome == Outcome::Ok);
        measured && record.claims.iter().any(|claim| claim.verdict == Verdict::Void)
    })
}
