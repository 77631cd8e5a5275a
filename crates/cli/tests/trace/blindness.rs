//! Programs that nobody can look into: it is said, with what to do, and nothing else changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;
use tapstone_testing::{copy_program, write_program};

use crate::fixtures;
use crate::program::Program;
use crate::support::skip;

/// The program does what it does, nothing was seen, and these words say why.
#[track_caller]
fn is_blind(program: &Program, code: i32, why: &str, hint: &str) {
    let record = program.unchanged().exits(code).record();
    assert_eq!(record.calls, []);
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    assert!(warning.contains(why) && warning.contains(hint), "{warning}");
}

#[test]
fn a_static_program() {
    let Some(client) = fixtures::built("static-client") else { return };
    let program = Program::new(client).arg("3");
    is_blind(&program, 0, "is linked statically", "--syscalls");
    // What is done already is no advice.
    let record = program.traced_with("--syscalls").exits(0).record();
    let told: Vec<&String> =
        record.warnings.iter().filter(|it| it.contains("is linked statically")).collect();
    let [warning] = &told[..] else { panic!("{:?}", record.warnings) };
    assert!(!warning.contains("--syscalls") && warning.contains("build it"), "{warning}");
}

#[test]
fn a_program_for_another_machine() {
    let Some(program) = fixtures::built("exits-32") else { return };
    if Command::new(&program).status().is_err() {
        return skip("a kernel that runs programs of 32 bits");
    }
    is_blind(&Program::new(program), 3, "is not a program for x86-64", "a build of it for x86-64");
}

/// A dynamic linker of 32 bits would say on the program's standard error that it cannot load the
/// probe. Who starts such a program gives it an environment of which that is no part.
#[test]
fn a_program_for_another_machine_is_started_without_the_probe() {
    let Some(program) = fixtures::built("variables-32") else { return };
    if Command::new(&program).output().is_err() {
        return skip("a kernel that runs programs of 32 bits");
    }
    let spawn =
        "import os, sys; os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)";
    for starts in [
        Program::new("sh").arg("-c").arg("\"$0\"; true").arg(&program),
        Program::new("python3").arg("-c").arg(spawn).arg(&program),
    ] {
        let starts = starts.env("TAPSTONE_TEST_KEPT", "kept");
        let left = starts.traced().exits(0);
        let variables: Vec<&str> = left.stdout.lines().collect();
        assert!(variables.contains(&"TAPSTONE_TEST_KEPT=kept"), "{variables:?}");
        assert!(!variables.iter().any(|it| it.starts_with("LD_AUDIT=")), "{variables:?}");
        let record = left.record();
        let unseen = |it: &String| it.contains("variables-32") && it.contains("x86-64");
        assert!(record.warnings.iter().any(unseen), "{:?}", record.warnings);
    }
}

/// As musl's is.
#[test]
fn a_program_with_another_dynamic_linker() {
    let Some(linker) = fixtures::built("exits-linker") else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let mut compile = Command::new("cc");
    compile.args(["-nostdlib", "-pie", "-o"]).arg(&program).arg(fixtures::source("exits.S"));
    compile.arg(format!("-Wl,--dynamic-linker={}", linker.display()));
    assert!(compile.status().unwrap().success());
    is_blind(&Program::new(program), 3, "uses the dynamic linker", "a build of it for glibc");
}

/// The dynamic linker drops LD_AUDIT only when the bit changes who runs the program.
#[test]
fn a_setuid_program_of_somebody_else() {
    const NOBODY: u32 = 65534;
    let Some((trouble, module)) = fixtures::built("trouble").zip(fixtures::built("stand-in"))
    else {
        return;
    };
    if !geteuid().is_root() {
        return skip("root, to make a setuid program that is not root's");
    }
    // Whoever runs it must get there.
    let folder =
        tempfile::Builder::new().prefix("tapstone-setuid-").tempdir_in("/var/tmp").unwrap();
    let copy = |from: &Path, name: &str, mode: u32| {
        let to = folder.path().join(name);
        copy_program(from, &to);
        chown(&to, Some(NOBODY), None).unwrap();
        // Another owner takes the bit away, so it comes last.
        fs::set_permissions(&to, Permissions::from_mode(mode)).unwrap();
        to
    };
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let program = Program::new(copy(&trouble, "trouble", 0o4755));
    let program = program.arg(copy(&module, "stand-in.so", 0o755)).args("digest 3");
    if !program.traced().exits(0).record().calls.is_empty() {
        return skip("a file system without nosuid below /var/tmp");
    }
    is_blind(&program, 0, "has the setuid or setgid bit", "a copy without that bit");
}

/// What a script is run by is what counts.
#[test]
fn a_script_is_not_blind() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    write_program(&script, "#!/bin/sh\nexit 3\n", 0o755);
    assert_eq!(Program::new(script).unchanged().exits(3).record().warnings, [""; 0]);
}
