//! Figures that mean something only while the machine does nothing else.

use std::fs;
use std::thread::available_parallelism;

use super::skip;

/// Processors that may be in use beside what is measured: one other program that computes takes a
/// whole one.
const SPARE: f64 = 0.5;

/// Tries before the machine is given up as too busy.
const TRIES: usize = 6;

/// Measures again what was measured while the machine did something else, which is told without
/// looking at the figure. What the processes that it starts and waits for use is known; what is
/// measured may keep so many processors busy beside that, with a pcscd for example. `None`: never
/// quiet, which has been said then.
pub(crate) fn undisturbed<T>(processors: f64, mut measure: impl FnMut() -> T) -> Option<T> {
    let all = available_parallelism().unwrap().get() as f64;
    for _ in 0..TRIES {
        let before = ProcessorTime::now();
        let figure = measure();
        let used = ProcessorTime::now().used_since(&before) * all;
        if used <= processors + SPARE {
            return Some(figure);
        }
        println!("measured again: {used:.2} of {all} processors were in use");
    }
    skip("a machine that does nothing else");
    None
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
        let known = (self.idle - before.idle) + (self.children - before.children);
        1.0 - known as f64 / (self.all - before.all) as f64
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
