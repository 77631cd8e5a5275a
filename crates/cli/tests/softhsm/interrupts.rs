//! Ctrl-C at random moments in the first second of a run, while other programs take all processors:
//! keys are being made, found, used, destroyed, and nothing of them is left.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use rustix::process::Signal;
use tapstone_measure::pace::SplitMix;

use crate::support::{Hsm, eventually};

#[test]
fn a_few_interrupts_on_a_busy_machine_leave_nothing() {
    interrupt_runs(6, 1);
}

/// `make interrupts`
#[test]
#[ignore = "ten minutes"]
fn two_hundred_interrupts_on_a_busy_machine_leave_nothing() {
    interrupt_runs(200, 2);
}

fn interrupt_runs(count: usize, seed: u64) {
    let Some(hsm) = Hsm::new() else { return };
    let _neighbours = Neighbours::on_all_processors();
    let mut random = SplitMix(seed);
    let mut measured = 0;
    for number in 0..count {
        let run = hsm.tapstone().args("--token-keys --threads 2 --seconds 1").in_a_group().start();
        let after = Duration::from_secs_f64(random.uniform());
        sleep(after);
        run.signal_group(Signal::INT);
        // As timeout(1) does.
        if number % 2 == 0 && run.is_alive() {
            run.signal_group(Signal::INT);
        }
        let outcome = run.wait();
        let left = hsm.objects();
        let told = format!("run {number}, {after:?}: {:?}\n{}", outcome.exit, outcome.stderr);
        assert!(left.is_empty(), "{} objects are left, {told}", left.len());
        // No exit code: it came before the run had arranged for it.
        assert!(matches!(outcome.exit, None | Some(2)), "{told}");
        measured += usize::from(outcome.record_text().is_some());
    }
    println!("{count} runs interrupted, {measured} of them wrote a record, nothing left");
}

#[test]
fn the_next_run_clears_up_after_a_few_that_were_killed() {
    kill_runs(4, 3);
}

/// `make interrupts`
#[test]
#[ignore = "minutes"]
fn the_next_run_clears_up_after_forty_that_were_killed() {
    kill_runs(40, 4);
}

/// Nobody can clean up after SIGKILL to the controller and its workers.
fn kill_runs(count: usize, seed: u64) {
    let Some(hsm) = Hsm::new() else { return };
    let alive = hsm.tapstone().args("--token-keys --op rsa2048.sign --duration 1h").start();
    // SoftHSM2 makes the file of an object first, and writes what the object is afterwards.
    let is_whole = |bytes: &Vec<u8>| !bytes.is_empty();
    let are_made = || hsm.objects().values().filter(|bytes| is_whole(bytes)).count() == 2;
    assert!(eventually(Duration::from_secs(60), are_made));
    sleep(Duration::from_secs(1));
    let of_the_living = hsm.objects();
    let mut random = SplitMix(seed);
    let mut with_keys = 0;
    let mut unfinished = 0;
    for number in 0..count {
        let run = hsm.tapstone().args("--token-keys --threads 2 --seconds 1").start();
        sleep(Duration::from_secs_f64(0.5 + 4.0 * random.uniform()));
        let _directory = run.kill_all();
        let left = hsm.objects().len() - of_the_living.len();
        with_keys += usize::from(left > 0);
        let next = hsm.tapstone().args("--op random --count 9").run().exits(0);
        let objects = hsm.objects();
        for (path, bytes) in &of_the_living {
            assert_eq!(objects.get(path), Some(bytes), "run {number}: {}", next.stderr);
        }
        let is_new = |path: &&PathBuf| !of_the_living.contains_key(*path);
        for path in objects.keys().filter(is_new) {
            assert!(!is_whole(&objects[path]), "run {number}: {}", next.stderr);
            unfinished += 1;
            fs::remove_file(path).unwrap();
        }
    }
    alive.signal(Signal::INT);
    alive.wait().exits(2);
    assert!(hsm.objects().is_empty());
    println!(
        "{count} runs killed, {with_keys} of them with keys on the token, all removed by the next; \
         {unfinished} files of objects that SoftHSM2 had not finished"
    );
}

/// Programs that compute, two for each processor.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn on_all_processors() -> Self {
        let processors = available_parallelism().unwrap().get();
        let start = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            command.spawn().unwrap()
        };
        Self((0..2 * processors).map(start).collect())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
