//! An observed program behaves as it does alone; what cannot be so is said.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command as Plain;

use tapstone_command::command::Command;
use tapstone_command::observation::Observations;
use tapstone_command::run::Exit;
use tapstone_observe::syscalls::{Launch, TracingError, TracingOptions, observe};
use tapstone_testing::{copy_program, write_program};

use crate::support::{compile, count, file_of_its_own, fixture, observed, of_fixture, plain, skip};

/// All that a program may use to find out.
const MANY: &str = "default,+read,+write,+close,+mmap,+execve,+clone,+clone3,+exit_group,+wait4";

#[test]
fn exit_codes_and_output_are_the_same() {
    let (_directory, path) = file_of_its_own();
    for arguments in [
        vec!["exit", "0", "text"],
        vec!["exit", "77", "other text"],
        vec!["crash", "1", &path],
        vec!["exit-early"],
        vec!["signals"],
        vec!["stopped", "1", &path],
        vec!["processes", "3", "1", &path],
        vec!["exec-from-thread", "1", &path],
        vec!["interrupted", "0"],
        vec!["interrupted", "1"],
        vec!["unknown"],
    ] {
        let command = of_fixture(&arguments);
        let alone = plain(&command);
        for set in ["openat", "default", MANY] {
            assert_eq!(observed(&command, set).1, alone, "{arguments:?} with {set}");
        }
    }
}

#[test]
fn a_program_finds_its_processors_as_they_are() {
    let (_directory, path) = file_of_its_own();
    let command = of_fixture(&["processors", &path]);
    let alone = plain(&command);
    let [first, "0", second, _] = alone.stdout.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{alone:?}")
    };
    assert_eq!(first, second);
    assert_eq!(observed(&command, "default").1, alone);
    assert_eq!(observed(&command, "default,+sched_getaffinity").1, alone);
}

#[test]
fn who_makes_the_calls_shares_a_processor_and_the_others_do_not() {
    let (_directory, path) = file_of_its_own();
    for mode in ["places", "places-after-exec"] {
        let command = of_fixture(&[mode, &path]);
        let alone = plain(&command).stdout;
        let [everywhere, of_sleeper] = alone.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{alone}")
        };
        assert_eq!(everywhere, of_sleeper);
        assert_eq!(observed(&command, "default").1.stdout, format!("1 {everywhere}\n"), "{mode}");
    }
}

#[test]
fn programs_of_the_system_run_as_ever() {
    for text in [
        "for i in 1 2 3; do echo $i | cat | tr 1 2; done; ls /etc/hostname; exit 4",
        "cat /proc/self/comm /proc/self/cgroup | wc -l; ulimit -a; umask",
        "env",
        "printf x | (sleep 0.01; cat) ; (exit 3) || kill -TERM $$",
    ] {
        let command = Command::by_shell(text).unwrap();
        assert_eq!(observed(&command, "default").1, plain(&command), "{text}");
    }
}

#[test]
fn variables_are_added_to_the_environment() {
    let command = Command::by_shell("test \"$ADDED\" = 'a b' && test -n \"$PATH\"").unwrap();
    let launch = Launch::new(&command).observed(Observations::default().variable("ADDED", "a b"));
    let seen = observe(&launch, &TracingOptions::default());
    assert_eq!(seen.unwrap().exit, Exit::Code(0));
}

#[test]
fn programs_that_cannot_be_started_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    write_program(&script, "#!/no/such/interpreter\n", 0o755);
    let command = Command::from_words([script.as_os_str().to_owned()]).unwrap();
    let error = observe(&Launch::new(&command), &TracingOptions::default()).unwrap_err();
    assert!(matches!(error, TracingError::Run(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("ENOENT") && text.contains(script.to_str().unwrap()), "{text}");
    assert!(text.lines().last().unwrap().starts_with("hint: "), "{text}");
    // It was there when the command was made, and is not any more.
    fs::remove_file(&script).unwrap();
    assert!(observe(&Launch::new(&command), &TracingOptions::default()).is_err());
}

#[test]
fn a_script_without_an_interpreter_is_run_as_a_shell_does() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    write_program(&script, "exit 6\n", 0o755);
    let command = Command::from_words([script.as_os_str().to_owned()]).unwrap();
    assert_eq!(observed(&command, "default").1.exit, Exit::Code(6));
}

#[test]
fn a_setuid_program_is_named() {
    let (directory, path) = file_of_its_own();
    let setuid = directory.path().join("setuid");
    copy_program(fixture(), &setuid);
    const NOBODY: u32 = 65534;
    if chown(&setuid, Some(NOBODY), None).is_err() {
        return skip("the right to make a program of another user");
    }
    fs::set_permissions(&setuid, Permissions::from_mode(0o4755)).unwrap();
    let text = format!("true; {} opens 3 {path}", setuid.display());
    let (seen, outcome) = observed(&Command::by_shell(&text).unwrap(), "default");
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(count(&seen, "openat", &path), 3);
    let [warning] = &seen.warnings[..] else { panic!("{:?}", seen.warnings) };
    assert!(warning.starts_with(&format!("{} is setuid", setuid.display())), "{warning}");
}

#[test]
fn calls_of_32_bits_go_unseen_and_work() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("small.c");
    let text = "void _start(void) {\
        __asm__ volatile(\"int $0x80\" : : \"a\"(1), \"b\"(9)); }";
    fs::write(&source, text).unwrap();
    let flags = ["-m32", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-O1"];
    let small = compile(&source, "small", &flags);
    if !runs_here(&small) {
        return skip("the kernel's support for programs of 32 bits");
    }
    let command = Command::from_words([small.as_os_str().to_owned()]).unwrap();
    let (seen, outcome) = observed(&command, "default");
    assert_eq!(outcome.exit, Exit::Code(9));
    let [warning] = &seen.warnings[..] else { panic!("{:?}", seen.warnings) };
    assert!(warning.contains("32 bits"), "{warning}");
    let command = of_fixture(&["by-gate"]);
    assert_eq!(observed(&command, "default").1, plain(&command));
}

fn runs_here(program: &Path) -> bool {
    Plain::new(program).status().is_ok_and(|status| status.code() == Some(9))
}
