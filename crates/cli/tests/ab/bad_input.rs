//! What cannot be run is one error with a hint, before anything was run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::Folder;

#[test]
fn commands_that_are_none() {
    let folder = Folder::new();
    let good = folder.work("good", 10);
    fs::write(folder.path("plain"), "#!/bin/sh\n").unwrap();
    fs::write(folder.path("no-first-line"), "echo hello\n").unwrap();
    fs::set_permissions(folder.path("no-first-line"), Permissions::from_mode(0o755)).unwrap();
    folder.script("bad-interpreter", "true");
    fs::write(folder.path("bad-interpreter"), "#!/no/such/shell\n").unwrap();
    for (command, says) in [
        ("no-such-program-of-mine --x", &["no-such-program-of-mine", "ENOENT", "PATH"][..]),
        ("./missing", &["./missing", "ENOENT"]),
        ("./plain", &["./plain", "EACCES", "chmod"]),
        (".", &[".", "not found"]),
        ("./", &["./", "EACCES", "folder"]),
        ("", &["empty"]),
        ("./good 'open", &["`./good …`", "quote"]),
        ("./good | cat", &["`|`", "--shell"]),
        ("X=1 ./good", &["`X=`", "--shell"]),
    ] {
        for commands in [[command, &good], [&good, command]] {
            let outcome = folder.ab(&["--", commands[0], commands[1]]);
            outcome.is_error(says);
            assert_eq!(outcome.stdout, "");
        }
    }
    assert_eq!(folder.log(), [""; 0], "nothing was run");
    for (command, code) in [("./no-first-line", "ENOEXEC"), ("./bad-interpreter", "ENOENT")] {
        let outcome = folder.ab(&["--", command, &good]);
        outcome.is_error(&["A, warm-up round 1 of 1", command, code, "#!"]);
    }
    assert_eq!(folder.log(), [""; 0]);
}

#[test]
fn options_that_make_no_sense() {
    let folder = Folder::new();
    let good = folder.work("good", 10);
    for arguments in [
        &["--rounds", "1"][..],
        &["--rounds", "0"],
        &["--rounds", "many"],
        &["--rounds", "1001"],
        &["--warm-up-rounds", "-1"],
        &["--fail-above", "5"],
        &["--name", "one"],
        &["--name", "one", "--name", "one"],
        &["--ignore-exit"],
        &["--output", "no/such/folder.json"],
        &["--prepare", "no-such-program-of-mine"],
    ] {
        let outcome = folder.ab(&[arguments, &["--", &good, &good]].concat()).exits(2);
        assert!(outcome.stderr.starts_with("error: "), "{arguments:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{arguments:?}");
    }
    folder.ab(&["--", &good]).exits(2);
    folder.ab(&["--", &good, &good, &good]).exits(2);
    assert_eq!(folder.log(), [""; 0], "nothing was run");
}
