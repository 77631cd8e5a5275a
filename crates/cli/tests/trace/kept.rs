//! Events that were kept, and read again.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use tapstone_record::Record;
use tapstone_testing::private_environment;

use crate::program::{Program, counts};
use crate::trouble;

const MODULE: &str = "stand-in.so";

/// `tapstone trace --read FILE`, with a record beside it.
pub(crate) fn read(file: &Path) -> (Output, Option<Record>) {
    let record = file.with_extension("json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    command.args(["trace", "--quiet", "--read"]).arg(file).arg("--output").arg(&record);
    (command.output().unwrap(), Record::read(&record).ok())
}

#[test]
fn what_was_kept_is_what_was_seen() {
    let Some(program) = trouble("digest", 5_000) else { return };
    let left = program.traced_with("--events events").exits(0);
    let (traced, (output, again)) = (left.whole(), read(&left.file("events")));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let again = again.unwrap();
    assert_eq!((&again.calls, &again.layers), (&traced.calls, &traced.layers));
    assert_eq!((&again.findings, again.warnings.len()), (&traced.findings, 0));
}

/// What a program says to a card or a token is its user's.
#[test]
fn what_may_hold_data_is_its_owners() {
    let Some(program) = trouble("digest", 10) else { return };
    let options = "--data --events events --perfetto perfetto --folded folded";
    let left = program.traced_with(options).exits(0);
    for name in ["events", "perfetto", "folded"] {
        let mode = fs::metadata(left.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// Also that something was not seen.
#[test]
fn what_was_missing_is_told_again() {
    for (text, says) in [
        ("env -i /bin/true", "/bin/true was started without the variables of the probe"),
        ("ulimit -v 24000; /bin/true; /bin/true", "2 programs could not be watched for want of"),
    ] {
        let left = Program::shell(text).traced_with("--events events").exits(0);
        let warnings = left.record().warnings;
        assert!(warnings.len() == 1 && warnings[0].contains(says), "{warnings:?}");
        let (_, again) = read(&left.file("events"));
        assert_eq!(again.unwrap().warnings, warnings);
    }
}

/// Four chunks: one for the shell, and one for each of the first three programs.
#[test]
fn programs_that_found_no_room_are_not_said_to_be_without_the_probe() {
    let programs = Program::shell("for i in 1 2 3 4 5 6 7 8; do /bin/true; done; /bin/true");
    let left = programs.traced_with("--events events --events-size 256k").exits(0);
    let record = left.record();
    let (_, again) = read(&left.file("events"));
    for warnings in [record.warnings, again.unwrap().warnings] {
        let of_programs: Vec<_> = warnings.iter().filter(|it| it.contains("/bin/true")).collect();
        assert_eq!(of_programs.len(), 1, "{warnings:?}");
        let no_room = "/bin/true began when the file of events had no room left";
        assert!(of_programs[0].starts_with(no_room), "{warnings:?}");
    }
}

#[test]
fn of_a_file_that_was_cut_short_what_is_whole_is_read() {
    let Some(program) = trouble("digest", 5_000) else { return };
    let left = program.traced_with("--events events").exits(0);
    let file = left.file("events");
    let length = fs::metadata(&file).unwrap().len();
    let cut = length - 100_001;
    File::options().write(true).open(&file).unwrap().set_len(cut).unwrap();
    let (output, record) = read(&file);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = record.unwrap();
    let digests = counts(&record, MODULE)["C_Digest"];
    assert!((1_000..5_000).contains(&digests), "{digests}");
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    assert!(warning.contains("was cut short by 100,001 bytes"), "{warning}");
}

/// System calls are not in the file: that they were not made would be untrue.
#[test]
fn an_operation_that_no_file_of_events_can_hold_is_one_error() {
    let Some(program) = trouble("digest", 10) else { return };
    let left = program.traced_with("--events events").exits(0);
    let file = left.file("events");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    command.args(["trace", "--operation", "syscall:read", "--read"]).arg(&file);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("holds no system calls") && stderr.contains("\nhint: "), "{stderr}");
    assert!(!stderr.contains("was not called"), "{stderr}");
}

#[test]
fn what_is_no_file_of_events_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("nothing");
    let other = folder.path().join("other");
    fs::write(&other, [7; 100_000]).unwrap();
    let short = folder.path().join("short");
    fs::write(&short, b"tapstone").unwrap();
    let says = [(&nothing, "No such file"), (&other, "no events"), (&short, "no events")];
    for (file, says) in says {
        let (output, record) = read(file);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), record), (Some(2), None), "{stderr}");
        assert!(stderr.contains(says) && stderr.contains("\nhint: "), "{stderr}");
        assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
    }
}
