//! Where the time of measuring threads went, as the operating system accounts for it.
//!
//! A thread is running, ready to run and waiting for a processor, or waiting for something else.
//! The first two are the kernel's figures (Linux: `/proc/PID/task/TID/schedstat`); what a thread
//! waits for otherwise is sampled (`/proc/PID/task/TID/syscall`). Evidence that a system does not
//! give is `None`, never zero.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// What was seen of the threads of one or several processes, and of their machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// The threads' time, added up.
    pub threads: Option<ThreadTimes>,
    /// What threads were found waiting for, by samples.
    pub waits: WaitSamples,
    /// What the machine as a whole did at the same time.
    pub machine: Option<MachineTimes>,
    /// What the process is connected to.
    pub connections: Connections,
}

/// The time of threads, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// Threads times the time that they were watched.
    pub watched: Nanos,
    /// Time on a processor.
    pub running: Nanos,
    /// Ready to run, and waiting for a processor.
    pub runnable: Nanos,
    /// Times that a thread gave its processor up: it had to wait for something.
    pub voluntary_switches: u64,
    /// Times that its processor was taken away.
    pub involuntary_switches: u64,
}

/// How often threads were found in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSamples {
    /// Running or ready to run.
    pub running: u64,
    /// In futex(2): a lock, or a condition that another thread is to bring about.
    pub lock: u64,
    /// In nanosleep(2) or its kin.
    pub sleep: u64,
    /// In any other system call: reading, polling, ioctl(2).
    pub input: u64,
}

/// What a machine did, all its processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTimes {
    /// The wall-clock time that it was watched.
    pub watched: Nanos,
    /// Processor time that was used, by whomever.
    pub busy: Nanos,
    /// Processor time that the hypervisor took away (steal).
    pub steal: Nanos,
    /// Time in which at least one task waited for a processor (PSI, `some`).
    pub pressure: Option<Nanos>,
}

/// The sockets of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// The shortest round trip of a TCP connection to another machine (tcp(7), TCP_INFO); of several
    /// connections the longest of these.
    pub round_trip: Option<Nanos>,
    /// It is connected to another process of this machine, by a Unix stream or over loopback: what
    /// lies behind that process is not seen.
    pub local: bool,
}

impl ThreadTimes {
    /// The share of the threads' time on a processor.
    #[must_use]
    pub fn running_share(&self) -> f64 {
        self.share(self.running)
    }

    /// The share of the threads' time that they were ready to run without a processor.
    #[must_use]
    pub fn runnable_share(&self) -> f64 {
        self.share(self.runnable)
    }

    /// The kernel adds a wait when it ends, also what of it lay before the window.
    fn share(&self, part: Nanos) -> f64 {
        (part.0 as f64 / self.watched.0.max(1) as f64).min(1.0)
    }

    fn absorb(&mut self, other: Self) {
        self.watched += other.watched;
        self.running += other.running;
        self.runnable += other.runnable;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

impl WaitSamples {
    /// The number of samples, in whatever state they found a thread.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.running + self.waiting()
    }

    /// The samples of threads that waited for something other than a processor.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.lock + self.sleep + self.input
    }

    /// The share of the waiting threads that waited for a lock; `None` with fewer samples than
    /// `least`.
    #[must_use]
    pub fn lock_share(&self, least: u64) -> Option<f64> {
        (self.waiting() >= least.max(1)).then(|| self.lock as f64 / self.waiting() as f64)
    }

    fn absorb(&mut self, other: Self) {
        self.running += other.running;
        self.lock += other.lock;
        self.sleep += other.sleep;
        self.input += other.input;
    }
}

impl MachineTimes {
    /// The processors that were in use on average.
    #[must_use]
    pub fn busy_cores(&self) -> f64 {
        self.cores(self.busy)
    }

    /// The processors that the hypervisor took away on average.
    #[must_use]
    pub fn steal_cores(&self) -> f64 {
        self.cores(self.steal)
    }

    /// The share of time in which a task waited for a processor.
    #[must_use]
    pub fn pressure_share(&self) -> Option<f64> {
        self.pressure.map(|pressure| self.cores(pressure))
    }

    fn cores(&self, time: Nanos) -> f64 {
        time.0 as f64 / self.watched.0.max(1) as f64
    }

    fn absorb(&mut self, other: Self) {
        self.watched += other.watched;
        self.busy += other.busy;
        self.steal += other.steal;
        self.pressure = self.pressure.zip(other.pressure).map(|(mine, more)| mine + more);
    }
}

impl MachineTimes {
    /// Processors add up and time does not; the pressure is that of the machine which has more.
    fn stand_beside(&mut self, other: Self) {
        self.watched = self.watched.max(other.watched);
        self.busy += other.busy;
        self.steal += other.steal;
        self.pressure = self.pressure.zip(other.pressure).map(|(mine, more)| mine.max(more));
    }
}

impl Connections {
    fn absorb(&mut self, other: Self) {
        self.round_trip = self.round_trip.max(other.round_trip);
        self.local |= other.local;
    }
}

impl Contention {
    /// Adds what was seen of another process of the same machine at the same time.
    pub fn absorb_process(&mut self, other: &Self) {
        self.absorb_threads(other);
        self.machine = self.machine.or(other.machine);
    }

    /// Adds what was seen of another machine at the same time.
    pub fn absorb_machine(&mut self, other: &Self) {
        self.absorb_threads(other);
        match (&mut self.machine, other.machine) {
            (Some(machine), Some(more)) => machine.stand_beside(more),
            (machine, more) => *machine = machine.or(more),
        }
    }

    /// Adds what was seen at another time.
    pub fn absorb_period(&mut self, other: &Self) {
        self.absorb_threads(other);
        match (&mut self.machine, other.machine) {
            (Some(machine), Some(more)) => machine.absorb(more),
            (machine, more) => *machine = machine.or(more),
        }
    }

    fn absorb_threads(&mut self, other: &Self) {
        match (&mut self.threads, other.threads) {
            (Some(threads), Some(more)) => threads.absorb(more),
            (threads, more) => *threads = threads.or(more),
        }
        self.waits.absorb(other.waits);
        self.connections.absorb(other.connections);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(running: u64, busy: u64) -> Contention {
        Contention {
            threads: Some(ThreadTimes {
                watched: Nanos(100),
                running: Nanos(running),
                runnable: Nanos(10),
                voluntary_switches: 3,
                involuntary_switches: 1,
            }),
            waits: WaitSamples { running: 1, lock: 2, sleep: 3, input: 4 },
            machine: Some(MachineTimes {
                watched: Nanos(50),
                busy: Nanos(busy),
                steal: Nanos(5),
                pressure: Some(Nanos(25)),
            }),
            connections: Connections { round_trip: Some(Nanos(busy)), local: busy > 50 },
        }
    }

    #[test]
    fn processes_of_one_machine_share_its_figures() {
        let mut both = seen(20, 40);
        both.absorb_process(&seen(40, 41));
        let threads = both.threads.unwrap();
        assert_eq!((threads.running_share(), threads.runnable_share()), (0.3, 0.1));
        assert_eq!((threads.voluntary_switches, threads.involuntary_switches), (6, 2));
        assert_eq!(both.waits, WaitSamples { running: 2, lock: 4, sleep: 6, input: 8 });
        let machine = both.machine.unwrap();
        assert_eq!((machine.busy_cores(), machine.steal_cores()), (0.8, 0.1));
        assert_eq!(machine.pressure_share(), Some(0.5));
        assert_eq!(both.connections.round_trip, Some(Nanos(41)));
    }

    #[test]
    fn no_thread_waits_longer_than_it_was_watched() {
        let threads = ThreadTimes {
            watched: Nanos(10_000_000),
            runnable: Nanos(10_200_000),
            ..ThreadTimes::default()
        };
        assert_eq!(threads.runnable_share(), 1.0);
    }

    #[test]
    fn periods_add_up() {
        let mut both = seen(20, 40);
        both.absorb_period(&seen(40, 60));
        let machine = both.machine.unwrap();
        assert_eq!((machine.busy_cores(), machine.steal_cores()), (1.0, 0.1));
        assert_eq!(machine.pressure_share(), Some(0.5));
        assert!(both.connections.local);
        let mut nothing = Contention::default();
        nothing.absorb_period(&seen(20, 40));
        assert_eq!(nothing, seen(20, 40));
        nothing.absorb_period(&Contention::default());
        assert_eq!(nothing.threads, seen(20, 40).threads, "missing evidence takes nothing away");
    }

    #[test]
    fn machines_add_up_their_processors() {
        let mut both = seen(20, 40);
        both.absorb_machine(&seen(40, 60));
        let machine = both.machine.unwrap();
        assert_eq!((machine.busy_cores(), machine.steal_cores()), (2.0, 0.2));
        assert_eq!(machine.pressure_share(), Some(0.5));
        assert_eq!(both.threads.unwrap().running_share(), 0.3);
    }

    #[test]
    fn pressure_that_one_period_lacks_is_not_known() {
        let mut both = seen(20, 40);
        let mut other = seen(20, 40);
        other.machine.as_mut().unwrap().pressure = None;
        both.absorb_period(&other);
        assert_eq!(both.machine.unwrap().pressure_share(), None);
    }

    #[test]
    fn shares_of_few_samples_are_not_known() {
        let waits = WaitSamples { running: 90, lock: 9, sleep: 1, input: 0 };
        assert_eq!((waits.total(), waits.waiting()), (100, 10));
        assert_eq!(waits.lock_share(11), None);
        assert_eq!(waits.lock_share(10), Some(0.9));
        assert_eq!(WaitSamples::default().lock_share(0), None);
    }
}
