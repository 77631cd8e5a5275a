//! Ctrl-C at random moments in the first second of a run, while other programs take all processors:
//! keys are being made, found, used, destroyed, and nothing of them is left.

use std::process::{Child, Command, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use rustix::process::Signal;
use tapstone_measure::pace::SplitMix;

use crate::support::Hsm;

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
