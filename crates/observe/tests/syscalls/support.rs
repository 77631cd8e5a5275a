//! The fixture, compiled once, and programs run with and without an observer.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Plain, Stdio};
use std::sync::OnceLock;

use tapstone_command::command::Command;
use tapstone_command::run::Exit;
use tapstone_events::system_calls::{Observed, SystemCall};
use tapstone_observe::syscalls::{Launch, TracingOptions, observe};
pub(crate) use tapstone_testing::skip;
use tempfile::TempDir;

/// A program and what it has on its streams.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The fixture's file.
pub(crate) fn fixture() -> &'static Path {
    static FIXTURE: OnceLock<PathBuf> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/syscalls/fixture.c");
        compile(&source, "fixture", &["-O2", "-g0", "-pthread"])
    })
}

/// Compiles a program in C, in the build's own directory for such things.
pub(crate) fn compile(source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Compiled beside its place, so that a run of these tests at the same time finds it whole.
    let beside = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let fresh = beside.path().join(name);
    let compiled = Plain::new("cc").args(flags).arg("-o").arg(&fresh).arg(source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    std::fs::rename(&fresh, &program).unwrap();
    program
}

/// A command of the fixture.
pub(crate) fn of_fixture(arguments: &[&str]) -> Command {
    let words = [fixture().as_os_str().to_owned()].into_iter();
    Command::from_words(words.chain(arguments.iter().map(OsString::from))).unwrap()
}

/// Observes a command; what it writes is kept.
pub(crate) fn observed(command: &Command, set: &str) -> (Observed, Outcome) {
    let options = TracingOptions { set: set.parse().unwrap(), ..TracingOptions::default() };
    observed_with(command, &options)
}

/// The same with other options.
pub(crate) fn observed_with(command: &Command, options: &TracingOptions) -> (Observed, Outcome) {
    let mut stdout = tempfile::tempfile().unwrap();
    let mut stderr = tempfile::tempfile().unwrap();
    let launch = Launch::new(command)
        .stdin(File::open("/dev/null").unwrap().into())
        .stdout(stdout.try_clone().unwrap().into())
        .stderr(stderr.try_clone().unwrap().into());
    let seen = observe(&launch, options).unwrap();
    let outcome =
        Outcome { exit: seen.exit, stdout: content(&mut stdout), stderr: content(&mut stderr) };
    (seen, outcome)
}

/// Runs a command without an observer.
pub(crate) fn plain(command: &Command) -> Outcome {
    let mut plain = Plain::new(command.program());
    let plain = plain.args(command.arguments()).stdin(Stdio::null()).output().unwrap();
    let status = plain.status;
    let signal = || Exit::Signal(status.signal().unwrap());
    Outcome {
        exit: status.code().map_or_else(signal, Exit::Code),
        stdout: String::from_utf8(plain.stdout).unwrap(),
        stderr: String::from_utf8(plain.stderr).unwrap(),
    }
}

/// How many calls of this name were made on what has this name.
pub(crate) fn count(seen: &Observed, call: &str, on: &str) -> usize {
    calls(seen, call).filter(|call| name(seen, call).as_deref() == Some(on)).count()
}

/// The calls of this name.
pub(crate) fn calls(seen: &Observed, name: &str) -> impl Iterator<Item = SystemCall> {
    seen.calls.iter().filter(move |call| call.name() == name)
}

/// What a call worked on.
pub(crate) fn name(seen: &Observed, call: &SystemCall) -> Option<String> {
    let name = seen.names.get(call.on?);
    Some(String::from_utf8(name.to_vec()).unwrap())
}

/// A file that is opened by nobody else, and its path.
pub(crate) fn file_of_its_own() -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("opened");
    std::fs::write(&path, "content").unwrap();
    (directory, path.to_str().unwrap().to_owned())
}

fn content(file: &mut File) -> String {
    use std::io::Seek;
    let mut content = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut content).unwrap();
    content
}
