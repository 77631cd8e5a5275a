//! Where space ends: of the file of events, of the disk, of a program's address space. What is lost
//! is counted, and the program notices nothing.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::program::{Program, call, counts};
use crate::support::skip;
use crate::trouble;

const MODULE: &str = "stand-in.so";

#[test]
fn without_a_folder_for_the_events_nothing_is_run() {
    for folder in ["/nowhere/at/all", "/proc"] {
        let program = Program::shell("echo it runs").env("TMPDIR", folder);
        let error = program.traced().refusal();
        assert!(error.contains(folder) && error.contains("TMPDIR"), "{error}");
    }
}

/// LD_AUDIT cannot name a file there.
#[test]
fn a_colon_in_the_folder_of_temporary_files_blinds_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("a:b");
    fs::create_dir(&folder).unwrap();
    let Some(program) = trouble("digest", 100) else { return };
    let left = program.env("TMPDIR", &folder).unchanged().exits(0);
    assert_eq!(counts(&left.whole(), MODULE)["C_Digest"], 100);
}

#[test]
fn more_fixes_than_there_is_room_for_are_one_error() {
    let program = Program::shell("echo it runs");
    assert_eq!(program.traced_with(&"--fix no-sleep ".repeat(16)).exits(0).stdout, "it runs\n");
    let error = program.traced_with(&"--fix no-sleep ".repeat(17)).refusal();
    assert!(error.contains("17 fixes") && error.contains("at most 16"), "{error}");
}

/// Whatever cannot be written is told, and all else is there.
#[test]
fn a_file_that_takes_nothing_costs_nothing_else() {
    let Some(program) = trouble("digest", 100) else { return };
    let bare = program.bare().exits(0);
    for option in ["--perfetto", "--folded", "--events"] {
        let left = program.traced_with(&format!("{option} /dev/full")).exits(2);
        assert_eq!(left.stdout, bare.stdout, "{option}");
        let record = left.whole();
        assert_eq!(counts(&record, MODULE)["C_Digest"], 100, "{option}");
        assert_eq!(record.events, None, "{option}");
        let error = &left.stderr;
        assert!(error.contains("error: /dev/full: ") && error.contains("No space left"), "{error}");
        assert!(error.lines().last().unwrap().starts_with("hint: "), "{error}");
    }
}

/// A disk of one's own, which is gone when this is dropped.
struct Disk(TempDir);

impl Disk {
    /// `None`, which has been said then: only root may.
    fn of(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tapstone"]).arg(folder.path());
        if !geteuid().is_root() || !mount.status().is_ok_and(|status| status.success()) {
            skip("the right to mount a file system");
            return None;
        }
        Some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(self.path()).status().unwrap().success());
    }
}

fn on(disk: &Disk, program: Program) -> Program {
    program.env("TMPDIR", disk.path())
}

#[test]
fn a_disk_that_is_full_from_the_start_is_one_error() {
    let Some(disk) = Disk::of("400k") else { return };
    let error = on(&disk, Program::shell("echo it runs")).traced().refusal();
    assert!(error.contains("No space left on device") && error.contains("TMPDIR"), "{error}");
    // What fits is enough for a small program.
    let Some(program) = trouble("digest", 100) else { return };
    let left = on(&disk, program).traced_with("--events-size 64k").exits(0);
    assert_eq!(counts(&left.whole(), MODULE)["C_Digest"], 100);
}

/// It was refused when space was made for what a program might come to need.
#[test]
fn a_small_disk_is_enough_for_a_small_program() {
    let Some(disk) = Disk::of("1m") else { return };
    let Some(program) = trouble("digest", 100) else { return };
    let left = on(&disk, program).traced().exits(0);
    assert_eq!(counts(&left.whole(), MODULE)["C_Digest"], 100);
}

#[test]
fn a_disk_that_becomes_full_loses_events_and_nothing_else() {
    let Some(disk) = Disk::of("24m") else { return };
    // It goes on for long after that, in which the file is looked after.
    let Some(program) = trouble("digest", 10_000_000) else { return };
    let bare = program.bare();
    let left = on(&disk, program).traced().exits(0);
    assert_eq!((&left.stdout, &left.stderr), (&bare.stdout, &bare.stderr));
    let record = left.record();
    assert!(record.dropped.unwrap() > 0);
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    assert!(warning.contains("No space left on device") && warning.contains("TMPDIR"), "{warning}");
    assert!(counts(&record, MODULE)["C_Digest"] > 200_000);
}

/// Little space is made before a program shows that it needs more; until its tracer has seen that,
/// it makes its own.
#[test]
fn a_program_that_its_tracer_does_not_look_at_loses_nothing() {
    let Some(program) = trouble("digest", 50_000) else { return };
    let record = program.unseen_by_its_tracer().traced().exits(0).whole();
    assert_eq!(counts(&record, MODULE)["C_Digest"], 50_000);
}

#[test]
fn a_program_that_finds_the_disk_full_before_its_tracer_does_loses_events_and_nothing_else() {
    let Some(disk) = Disk::of("3m") else { return };
    let Some(program) = trouble("digest", 50_000) else { return };
    let bare = program.bare();
    let left = on(&disk, program.unseen_by_its_tracer()).traced().exits(0);
    assert_eq!((&left.stdout, &left.stderr), (&bare.stdout, &bare.stderr));
    let record = left.record();
    assert!(record.dropped.unwrap() > 0);
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    assert!(warning.contains("No space left on device") && warning.contains("TMPDIR"), "{warning}");
    assert!(counts(&record, MODULE)["C_Digest"] > 5_000);
}

/// The file of events takes address space, which the program may need.
#[test]
fn a_program_that_limits_its_address_space_gets_it() {
    for bytes in [200_000_000, 1_000_000_000, 3_000_000_000] {
        let Some(program) = trouble("limit", bytes) else { return };
        let record = program.unchanged().exits(0).whole();
        assert_eq!(counts(&record, MODULE)["C_Digest"], 20, "{bytes}");
    }
}

/// A fourth of the limit is the most that the probe takes; where that is next to nothing, it stays
/// out.
#[test]
fn a_program_with_little_address_space_is_left_alone() {
    let Some(program) = trouble("digest", 37) else { return };
    let left = program.after("ulimit -v 500000").unchanged().exits(0);
    assert_eq!(counts(&left.whole(), MODULE)["C_Digest"], 37);
    // The shell is seen, the program is not.
    let record = program.after("ulimit -v 24000").unchanged().exits(0).record();
    assert!(counts(&record, MODULE).is_empty());
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    assert!(warning.starts_with("1 program could not be watched for want of"), "{warning}");
}

/// What does not fit into its part of the address space is counted.
#[test]
fn events_that_a_limit_keeps_out_are_counted() {
    let Some(program) = trouble("digest", 400_000) else { return };
    // Eight megabytes of events.
    let record = program.after("ulimit -v 60000").unchanged().exits(0).record();
    let seen = counts(&record, MODULE)["C_Digest"];
    let dropped = record.dropped.unwrap();
    assert!((100_000..400_000).contains(&seen), "{seen}");
    assert!((800_000..800_002).contains(&(seen * 2 + dropped)), "{seen}, {dropped}");
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    assert!(warning.contains("RLIMIT_AS"), "{warning}");
}

/// mlockall(2) takes all that is mapped into memory: the file of events must not be.
#[test]
fn a_program_that_locks_its_memory_locks_no_events() {
    let Some(program) = trouble("lock", 37) else { return };
    if !geteuid().is_root() {
        return skip("root, to lock memory");
    }
    let record = program.unchanged().exits(0).whole();
    assert_eq!(counts(&record, MODULE)["C_Digest"], 37);
}

/// The probe keeps no descriptor, so it loses none.
#[test]
fn a_program_that_closes_all_descriptors_is_seen() {
    let Some(program) = trouble("bare", 37) else { return };
    let record = program.unchanged().exits(0).whole();
    assert_eq!(counts(&record, MODULE)["C_Digest"], 37);
}

/// The program looks at errno after each call, and ends with 1 when it is not what it has to be.
#[test]
fn errno_is_what_the_call_left_there() {
    let Some(program) = trouble("errno", 1_000) else { return };
    let record = program.unchanged().exits(0).whole();
    let digest = call(&record, MODULE, "C_Digest");
    let failed = [("CKR_FUNCTION_FAILED".to_owned(), 1_000)].into();
    assert_eq!((digest.count, &digest.failed), (2_000, &failed));
}

impl Program {
    /// The same behind this command of the shell.
    fn after(&self, command: &str) -> Self {
        Self::shell(&format!("{command}; exec \"$0\" \"$@\"")).words(self)
    }

    /// The tracer is stopped as long as the program runs.
    fn unseen_by_its_tracer(&self) -> Self {
        let script = "kill -STOP $PPID; \"$0\" \"$@\"; code=$?; kill -CONT $PPID; exit $code";
        Self::shell(script).words(self)
    }

    /// With the words of another one.
    fn words(self, other: &Self) -> Self {
        other.all_words().iter().map(AsRef::<OsStr>::as_ref).fold(self, Self::arg)
    }
}
