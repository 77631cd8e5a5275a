//! How a program ends is how `tapstone trace` ends; and what cannot be started is said.

use std::fs::{self, File};

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
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "#!/nowhere/at/all\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let error = Program::new(script).traced().refusal();
    assert!(error.contains("execve"), "{error}");
}
