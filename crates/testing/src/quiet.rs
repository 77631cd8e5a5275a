//! Figures that mean something only while the machine does nothing else.

#![expect(clippy::unwrap_used, reason = "a test that cannot look at its machine fails")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use crate::urgent::is_urgent;
use crate::{Held, figures, hold, skip};

/// Processors that may be in use beside what is measured: one other program that computes takes a
/// whole one.
const SPARE: f64 = 0.5;

/// Tries before the machine is given up as too busy.
const TRIES: usize = 6;

/// After so long no further try begins: a busy machine does not make the tests take hours.
const ENOUGH: Duration = Duration::from_secs(60);

/// A machine that has been too busy for so long before a measurement is given up.
const AT_REST: Duration = Duration::from_secs(15);

/// For so long it is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Measures until the figures are `within` their bounds, as [`figures`] does, but only while the
/// machine does nothing else. `None`: never quiet, which has been said then.
///
/// A virtual machine can stand still in the one moment that counts, and hardly be late in all.
///
/// # Panics
/// Figures were out of their bounds three times, or once and the machine was never quiet again.
pub fn undisturbed<T>(
    processors: f64,
    bound: f64,
    mut measure: impl FnMut() -> T,
    within: impl Fn(&T) -> Held,
) -> Option<T> {
    let mut held = None;
    let mut spoiled = false;
    figures(|| {
        let Some(measured) = while_quiet(processors, bound, &mut measure) else {
            return hold(!spoiled, "the machine was not quiet again");
        };
        spoiled = true;
        within(&measured)?;
        held = Some(measured);
        Ok(())
    });
    held
}

/// Measures again what was measured while the machine did something else, which is told without
/// looking at the figure.
///
/// What the processes that it starts and waits for use is known; what is measured may keep so many
/// `processors` busy beside that, with a pcscd for example. And for a figure that is judged to a part of
/// `bound`, sleepers may be woken late for half of that: a virtual machine can stand still with
/// nobody to be seen. An [`Urgent`](crate::Urgent) thread is not held up by who computes beside it, so
/// that only the sleepers count, which are then as urgent as what is measured.
fn while_quiet<T>(processors: f64, bound: f64, mut measure: impl FnMut() -> T) -> Option<T> {
    let all = available_parallelism().unwrap().get() as f64;
    let begun = Instant::now();
    for nth in 0..TRIES {
        if nth > 0 && begun.elapsed() > ENOUGH {
            break;
        }
        if !comes_to_rest(processors, Instant::now() + AT_REST) {
            if nth == 0 {
                // What is no figure is asserted on a busy machine, too.
                measure();
            }
            break;
        }
        let before = ProcessorTime::now();
        let (figure, late) = with_witnesses(&mut measure);
        let used = ProcessorTime::now().used_since(&before) * all;
        let seen = format!(
            "{used:.2} of {all} processors were in use beside it, sleepers woke {:.3} % late",
            100.0 * late
        );
        let is_alone = is_urgent() || used <= processors + SPARE;
        if is_alone && late <= bound / 2.0 {
            println!("measured quietly: {seen}");
            return Some(figure);
        }
        println!("measured again: {seen}");
    }
    skip("a machine that does nothing else");
    None
}

/// Waits for others to leave the machine alone, so that little is measured that would be measured
/// again. Whether they do before `latest`; an urgent thread need not wait.
fn comes_to_rest(processors: f64, latest: Instant) -> bool {
    let all = available_parallelism().unwrap().get() as f64;
    while !is_urgent() {
        let before = ProcessorTime::now();
        thread::sleep(LOOK);
        let used = ProcessorTime::now().used_since(&before) * all;
        if used <= processors + SPARE {
            break;
        }
        if Instant::now() > latest {
            return false;
        }
    }
    true
}

/// What was measured, and the part of that time by which sleepers beside it were woken late.
pub fn with_witnesses<T>(measure: impl FnOnce() -> T) -> (T, f64) {
    let witnesses = Witnesses::start();
    let figure = measure();
    (figure, witnesses.late())
}

/// As many threads as there are processors, which sleep and see how late they are woken: as late as
/// what is measured, which waits for a card most of its time.
struct Witnesses {
    since: Instant,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Witnesses {
    const NAP: Duration = Duration::from_millis(1);

    /// Timers are allowed this, and it is in every figure.
    const USUAL: Duration = Duration::from_micros(500);

    fn start() -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let witness = |_| {
            let end = Arc::clone(&end);
            thread::spawn(move || {
                let mut late = Duration::ZERO;
                while !end.load(Relaxed) {
                    let begun = Instant::now();
                    thread::sleep(Self::NAP);
                    let over = begun.elapsed().saturating_sub(Self::NAP);
                    late += if over > Self::USUAL { over } else { Duration::ZERO };
                }
                late
            })
        };
        let processors = 0..available_parallelism().unwrap().get();
        Self { since: Instant::now(), threads: processors.map(witness).collect(), end }
    }

    /// The part of their time by which they were late.
    fn late(self) -> f64 {
        self.end.store(true, Relaxed);
        let all = self.since.elapsed() * self.threads.len() as u32;
        let late: Duration = self.threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        late.as_secs_f64() / all.as_secs_f64()
    }
}

/// What all processors did since the machine started, in ticks (proc_stat(5)).
struct ProcessorTime {
    all: u64,
    idle: u64,
    /// Of processes that this one waited for, and of those that they waited for.
    children: u64,
}

impl ProcessorTime {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let line = stat.lines().next().unwrap();
        // user nice system idle iowait irq softirq steal; what follows is in `user` already.
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map(|ticks| ticks.parse().unwrap()).collect();
        Self { all: ticks.iter().sum(), idle: ticks[3] + ticks[4], children: children() }
    }

    /// The part of all processors' time that others used, or that was stolen from this machine.
    fn used_since(&self, before: &Self) -> f64 {
        // Time in which a processor waited for a disk may become less (proc_stat(5)).
        let known =
            self.idle.saturating_sub(before.idle) + self.children.saturating_sub(before.children);
        1.0 - known as f64 / self.all.saturating_sub(before.all).max(1) as f64
    }
}

/// cutime and cstime (proc_pid_stat(5)).
fn children() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let times = fields.split(' ').skip(13).take(2);
    times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}
