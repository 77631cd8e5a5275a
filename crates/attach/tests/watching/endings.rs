//! Programs that execute another, unload their module, crash, are cancelled, or throw; and a watcher
//! that is killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tapstone_attach::{Watch, WatchPlan, Watched};
use tapstone_testing::skip;

use crate::client::{RIGHTS, Running, attach, null_module, watched};

/// Calls of C_Digest, whether their returns were seen or not.
fn digests(seen: &Watched) -> u64 {
    seen.counts.iter().filter(|it| it.function == "C_Digest").map(|it| it.count).sum()
}

fn plan(running: &Running) -> WatchPlan {
    WatchPlan { processes: vec![running.child.id()], ..WatchPlan::default() }
}

#[test]
fn a_module_that_is_loaded_again_is_watched_on() {
    let Some(mut running) = Running::start_ending("reload") else { return };
    let Some(watch) = attach(plan(&running)) else { return };
    running.go_on();
    assert_eq!(running.line(), "done\n");
    assert_eq!(digests(&watch.detach().unwrap()), 100);
}

#[test]
fn a_program_that_executes_another_is_watched_on() {
    let Some(mut running) = Running::start_ending("exec") else { return };
    let Some(mut watch) = attach(plan(&running)) else { return };
    running.go_on();
    assert_eq!(running.line(), "ready\n");
    watch.take_in().unwrap();
    watch.look_around().unwrap();
    running.go_on();
    assert_eq!(running.line(), "done\n");
    // 50 before, and 100 of what was executed.
    assert_eq!(digests(&watch.detach().unwrap()), 150);
}

#[test]
fn what_was_counted_stays_when_the_program_crashes() {
    let Some(mut running) = Running::start_ending("crash") else { return };
    let Some(mut watch) = attach(plan(&running)) else { return };
    running.go_on();
    assert!(!running.child.wait().unwrap().success());
    watch.look_around().unwrap();
    assert!(!watch.has_processes());
    assert_eq!(digests(&watch.detach().unwrap()), 50);
}

/// Handlers of pthread_cancel, and destructors in the way of an exception: without `--returns` they
/// run as they do when nobody watches.
#[test]
fn clean_up_is_left_alone() {
    for what in ["cancel", "throw"] {
        let Some(mut alone) = Running::start_ending(what) else { return };
        alone.go_on();
        let expected = alone.line();
        assert_eq!(expected, if what == "cancel" { "1\n" } else { "20 20\n" });
        let Some(mut running) = Running::start_ending(what) else { return };
        let Some(watch) = attach(plan(&running)) else { return };
        running.go_on();
        assert_eq!(running.line(), expected, "{what}");
        assert!(running.child.wait().unwrap().success(), "{what}");
        let seen = watch.detach().unwrap();
        assert_eq!(digests(&seen), 50);
        assert!(seen.counts.iter().all(|it| it.result.is_none()), "{:?}", seen.counts);
    }
}

/// With `--returns` they may not, which is said. That this kernel does harm is not asked for.
#[test]
fn what_returns_may_change_is_said() {
    for what in ["cancel", "throw"] {
        let Some(mut running) = Running::start_ending(what) else { return };
        let plan = WatchPlan { with_returns: true, ..plan(&running) };
        let Some(watch) = attach(plan) else { return };
        running.go_on();
        let cleaned = running.line();
        let status = running.child.wait().unwrap();
        eprintln!("{what} with watched returns: {cleaned:?}, {status}");
        let seen = watch.detach().unwrap();
        let risk = "which aborts the program or skips its clean-up";
        assert!(seen.warnings.iter().any(|it| it.contains(risk)), "{:?}", seen.warnings);
    }
}

#[test]
fn a_module_of_another_mount_namespace_is_watched() {
    let unshared = Command::new("unshare").args(["--mount", "true"]).status();
    if !unshared.is_ok_and(|status| status.success()) {
        return skip(RIGHTS);
    }
    let Some(mut running) = Running::start_unshared(&null_module(), &[2, 500]) else { return };
    assert!(!std::path::Path::new("/mnt/hidden.so").exists());
    let Some((known, seen)) = watched(&mut running, WatchPlan::default()) else { return };
    assert_eq!(digests(&seen), known[1] + known[2]);
    assert!(seen.counts.iter().all(|it| it.module == "hidden.so"), "{:?}", seen.counts);
}

const WATCHED: &str = "TAPSTONE_TEST_WATCHED";

/// Not a test: the program that [`nothing_is_left_of_a_watcher_that_is_killed`] kills.
#[test]
#[ignore = "a part of another test"]
fn watches_until_it_is_killed() {
    let Ok(process) = std::env::var(WATCHED) else { return };
    let plan = WatchPlan { processes: vec![process.parse().unwrap()], ..WatchPlan::default() };
    let watch = Watch::attach(plan);
    eprintln!("{}", if watch.is_ok() { "watching" } else { "skipped" });
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn nothing_is_left_of_a_watcher_that_is_killed() {
    let Some(mut running) = Running::start(&null_module(), &[2, 5000]) else { return };
    let mut watcher = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "endings::watches_until_it_is_killed"])
        .env(WATCHED, running.child.id().to_string())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let said = BufReader::new(watcher.stderr.take().unwrap());
    let said = said.lines().map(Result::unwrap).find(|it| it == "watching" || it == "skipped");
    let programs = programs_of(watcher.id());
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    if said.as_deref() != Some("watching") {
        return skip(RIGHTS);
    }
    assert!(!programs.is_empty());
    // The kernel takes them away when nobody uses them any more, a moment later.
    let begin = Instant::now();
    while programs.iter().any(|program| is_loaded(*program)) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{programs:?} are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.go_on();
    let [begun, well, refused, other, ..] = running.known();
    assert_eq!([begun, well, refused, other], [10_000, 10_000, 1_000, 0]);
}

/// Programs of the kernel's that a process holds, by their numbers (proc_pid_fdinfo(5)).
fn programs_of(process: u32) -> Vec<u32> {
    let files = std::fs::read_dir(format!("/proc/{process}/fdinfo")).unwrap();
    let texts = files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let number = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
        line.trim().parse().ok()
    };
    texts.filter_map(number).collect()
}

/// Whether the kernel still has a program (BPF_PROG_GET_FD_BY_ID).
fn is_loaded(program: u32) -> bool {
    const PROG_GET_FD_BY_ID: libc::c_int = 13;
    let mut attributes = [program, 0, 0];
    let length = size_of_val(&attributes);
    // SAFETY: the attributes are as long as said, and hold a number and two zeros.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_GET_FD_BY_ID, attributes.as_mut_ptr(), length) };
    if descriptor >= 0 {
        // SAFETY: it is this function's own.
        unsafe { libc::close(descriptor as libc::c_int) };
    }
    descriptor >= 0
}
