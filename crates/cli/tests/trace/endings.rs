//! How a program ends is how `tapstone trace` ends; and what cannot be started is said.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use tapstone_testing::write_program;

use crate::program::Program;

#[test]
fn the_exit_code_is_passed_on() {
    for (text, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("ulimit -c 0; kill -SEGV $$", 139),
        ("echo out; echo err >&2; exit 2", 2),
    ] {
        let traced = Program::shell(text).unchanged().exits(code);
        assert_eq!(traced.record().warnings, [""; 0], "{text}");
    }
}

/// File names need not be UTF-8.
#[test]
fn any_bytes_are_arguments() {
    let echo = Program::new("echo").arg(OsStr::from_bytes(b"a\xffb"));
    let traced = echo.unchanged().exits(0);
    assert_eq!(traced.record().command.last().unwrap(), "…");
    let whole = echo.traced_with("--record-command").exits(0);
    assert_eq!(whole.record().command.last().unwrap(), "a\u{fffd}b");
}

/// They have the probe's variables until they end, and its library is gone before.
#[test]
fn processes_that_are_left_behind_are_told() {
    let left = Program::shell("sleep 60 > /dev/null 2>&1 & echo $!").traced().exits(0);
    let sleep = left.stdout.trim();
    let ended = Command::new("kill").arg(sleep).status();
    assert!(ended.is_ok_and(|status| status.success()));
    let said = format!("left processes behind ({sleep})");
    let warnings = left.record().warnings;
    assert!(warnings.iter().any(|it| it.contains(&said) && it.contains("ld.so")), "{warnings:?}");
}

/// A record is written, whatever the exit code: 2 alone does not say that nothing was traced.
#[test]
fn what_cannot_be_started_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    File::create(&file).unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "#!/nowhere/at/all\n").unwrap();
    for (name, says) in [
        ("no-such-program", "no-such-program"),
        ("/no/such/program", "/no/such/program"),
        (file.to_str().unwrap(), "file"),
        (folder.path().to_str().unwrap(), "it is a folder"),
        (script.to_str().unwrap(), "script"),
    ] {
        let error = Program::new(name).traced().refusal();
        assert!(error.contains(says), "{name}: {error}");
    }
}

/// An interpreter that is missing is found out only by the kernel.
#[test]
fn a_script_without_its_interpreter_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    write_program(&script, "#!/nowhere/at/all\n", 0o755);
    let error = Program::new(script).traced().refusal();
    assert!(error.contains("execve"), "{error}");
}
