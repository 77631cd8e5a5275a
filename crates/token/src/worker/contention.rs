//! What the system says of the measuring threads while they measure, read by the main thread.
//!
//! Two snapshots, at the window's opening and at its closing, say how long the threads ran and how
//! long they waited for a processor; samples in between say what they waited for otherwise. What
//! cannot be read is left out, and nothing here touches a measuring thread.

use std::net::IpAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use procfs::process::{FDTarget, Process, Syscall, Task};
use procfs::{CpuPressure, Current, CurrentSI, KernelStats};
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, getpeername, sockopt};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::contention::{
    Connections, Contention, MachineTimes, ThreadTimes, WaitSamples,
};
use tapstone_measure::units::Nanos;

/// A thread's number in the system; 0 until it has started. With what its counters said last: on a
/// machine that others use it can be gone before anybody looks.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadNumber(Arc<NumberedThread>);

#[derive(Debug, Default)]
struct NumberedThread {
    number: AtomicI32,
    last: OnceLock<ThreadCounters>,
}

impl ThreadNumber {
    /// To be called on the thread itself.
    pub(super) fn set_to_this_thread(&self) {
        let number = rustix::thread::gettid().as_raw_nonzero().get();
        self.0.number.store(number, Ordering::Relaxed);
    }

    /// To be called on the thread itself, when it has measured.
    pub(super) fn note_end(&self) {
        if let Some(counters) = Process::myself().ok().and_then(|me| self.read(&me)) {
            self.0.last.get_or_init(|| counters);
        }
    }

    fn get(&self) -> Option<i32> {
        Some(self.0.number.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }

    fn task(&self, me: &Process) -> Option<Task> {
        me.task_from_tid(self.get()?).ok()
    }

    fn read(&self, me: &Process) -> Option<ThreadCounters> {
        ThreadCounters::read(&self.task(me)?)
    }
}

/// How often threads are looked at, on average. The moments vary, so that an operation which
/// repeats is not always found in the same place.
const INTERVAL: Nanos = Nanos::from_millis(20);

/// So many threads are looked at in turn: each keeps a descriptor open.
const MOST_SAMPLED: usize = 64;

/// So many at a time: one look costs some 10 µs.
const AT_A_TIME: usize = 8;

/// Watches the threads of one run.
pub(super) struct ContentionWatch {
    numbers: Vec<ThreadNumber>,
    opened: Option<Snapshot>,
    sampled: Vec<Task>,
    next_sample: Nanos,
    next_thread: usize,
    waits: WaitSamples,
}

impl ContentionWatch {
    pub(super) fn new(numbers: Vec<ThreadNumber>) -> Self {
        Self {
            numbers,
            opened: None,
            sampled: Vec::new(),
            next_sample: Nanos::NEVER,
            next_thread: 0,
            waits: WaitSamples::default(),
        }
    }

    /// Notes the counters at the window's opening, and begins to sample.
    pub(super) fn open(&mut self) {
        let me = Process::myself().ok();
        let task = |number: &ThreadNumber| number.task(me.as_ref()?);
        self.sampled = self.numbers.iter().take(MOST_SAMPLED).filter_map(task).collect();
        self.opened = Some(Snapshot::take(&self.numbers));
        self.plan_sample();
    }

    /// How long until the next look at the threads.
    pub(super) fn until_next_sample(&self) -> Duration {
        (self.next_sample - Monotonic.now()).into()
    }

    /// Looks at some threads, if it is time.
    pub(super) fn sample(&mut self) {
        if self.sampled.is_empty() || Monotonic.now() < self.next_sample {
            return;
        }
        for _ in 0..AT_A_TIME.min(self.sampled.len()) {
            self.next_thread = (self.next_thread + 1) % self.sampled.len();
            if let Ok(state) = self.sampled[self.next_thread].syscall() {
                count(&mut self.waits, state);
            }
        }
        self.plan_sample();
    }

    /// Between half and one and a half of the interval from now, by the clock's last digits.
    fn plan_sample(&mut self) {
        let now = Monotonic.now();
        self.next_sample = now + Nanos(INTERVAL.0 / 2 + now.0 % INTERVAL.0);
    }

    /// The window has closed: what was seen since its opening.
    pub(super) fn close(&mut self) -> Contention {
        self.sampled.clear();
        self.next_sample = Nanos::NEVER;
        let Some(opened) = self.opened.take() else { return Contention::default() };
        Snapshot::take(&self.numbers).since(&opened, self.waits)
    }
}

fn count(waits: &mut WaitSamples, state: Syscall) {
    let number = match state {
        Syscall::Blocked { syscall_number, .. } if syscall_number >= 0 => syscall_number,
        // In no system call: on a processor, waiting for one, or for a page.
        _ => {
            waits.running += 1;
            return;
        }
    };
    match number {
        libc::SYS_futex | libc::SYS_futex_waitv => waits.lock += 1,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => waits.sleep += 1,
        _ => waits.input += 1,
    }
}

/// The system's counters at one moment.
struct Snapshot {
    at: Nanos,
    /// By thread: time on a processor and ready to run, and switches.
    threads: Vec<Option<ThreadCounters>>,
    machine: Option<MachineCounters>,
}

#[derive(Clone, Copy, Debug)]
struct ThreadCounters {
    at: Nanos,
    running: Nanos,
    runnable: Nanos,
    voluntary: u64,
    involuntary: u64,
}

/// Since the machine started, all its processors together.
#[derive(Clone, Copy)]
struct MachineCounters {
    busy: Nanos,
    steal: Nanos,
    pressure: Option<Nanos>,
}

impl Snapshot {
    fn take(numbers: &[ThreadNumber]) -> Self {
        let me = Process::myself().ok();
        let counters = |number: &ThreadNumber| {
            let last = number.0.last.get().copied();
            last.or_else(|| number.read(me.as_ref()?)).or_else(|| number.0.last.get().copied())
        };
        Self {
            at: Monotonic.now(),
            threads: numbers.iter().map(counters).collect(),
            machine: MachineCounters::read(),
        }
    }

    fn since(&self, opened: &Self, waits: WaitSamples) -> Contention {
        let elapsed = self.at - opened.at;
        let pairs = self.threads.iter().zip(&opened.threads);
        let mut threads: Option<ThreadTimes> = None;
        let pairs = pairs.filter_map(|(end, start)| Some(((*end)?, (*start)?)));
        for (end, start) in pairs.filter(|(end, start)| end.at > start.at) {
            let sum = threads.get_or_insert_default();
            sum.watched += end.at - start.at;
            sum.running += end.running - start.running;
            sum.runnable += end.runnable - start.runnable;
            sum.voluntary_switches += end.voluntary - start.voluntary;
            sum.involuntary_switches += end.involuntary - start.involuntary;
        }
        let machine = self.machine.zip(opened.machine).map(|(end, start)| MachineTimes {
            watched: elapsed,
            busy: end.busy - start.busy,
            steal: end.steal - start.steal,
            pressure: end.pressure.zip(start.pressure).map(|(end, start)| end - start),
        });
        Contention { threads, waits, machine, connections: connections() }
    }
}

impl ThreadCounters {
    fn read(task: &Task) -> Option<Self> {
        let times = task.schedstat().ok()?;
        let status = task.status().ok()?;
        Some(Self {
            at: Monotonic.now(),
            running: Nanos(times.sum_exec_runtime),
            runnable: Nanos(times.run_delay),
            voluntary: status.voluntary_ctxt_switches?,
            involuntary: status.nonvoluntary_ctxt_switches?,
        })
    }
}

impl MachineCounters {
    fn read() -> Option<Self> {
        let all = KernelStats::current().ok()?.total;
        let nanos = |ticks: u64| Nanos(ticks * (1_000_000_000 / procfs::ticks_per_second().max(1)));
        let interrupts = all.irq.unwrap_or(0) + all.softirq.unwrap_or(0);
        let pressure = CpuPressure::current().ok();
        Some(Self {
            busy: nanos(all.user + all.nice + all.system + interrupts),
            steal: nanos(all.steal.unwrap_or(0)),
            pressure: pressure.map(|pressure| Nanos(pressure.some.total.saturating_mul(1_000))),
        })
    }
}

/// The stream sockets of this process.
fn connections() -> Connections {
    let mut found = Connections::default();
    let Ok(descriptors) = Process::myself().and_then(|me| me.fd()) else { return found };
    for descriptor in descriptors.flatten() {
        if matches!(descriptor.target, FDTarget::Socket(_)) {
            add_connection(&mut found, descriptor.fd);
        }
    }
    found
}

fn add_connection(found: &mut Connections, descriptor: RawFd) {
    // SAFETY: the descriptor was open a moment ago. If the module has closed it since, or opened
    // another in its place, the calls below fail or read another socket's state; they change nothing.
    let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
    if sockopt::socket_type(socket) != Ok(SocketType::STREAM) {
        return;
    }
    if sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX) {
        // A pair of this process's own has a peer as well, and waits for itself.
        found.local |= getpeername(socket).is_ok_and(|peer| peer.is_some());
        return;
    }
    match getpeername(socket).ok().flatten().and_then(ip_address) {
        Some(peer) if peer.is_loopback() => found.local = true,
        Some(_) => found.round_trip = found.round_trip.max(round_trip(descriptor)),
        None => {}
    }
}

fn ip_address(peer: SocketAddrAny) -> Option<IpAddr> {
    let address: std::net::SocketAddr = peer.try_into().ok()?;
    Some(address.ip().to_canonical())
}

/// The shortest round trip of a TCP connection in the last minutes (tcp(7), TCP_INFO; Linux 4.9).
///
/// Not the smoothed one: a server that answers within 40 ms acknowledges a request with its answer, so
/// that the time which it takes for its work would be the network's.
fn round_trip(descriptor: RawFd) -> Option<Nanos> {
    let mut info = [0_u32; TCP_INFO_WORDS];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`; a descriptor that is no TCP socket
    // is refused.
    let status = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    // The kernel says ~0 of a connection that has seen no round trip.
    let shortest = info[MIN_RTT_WORD];
    let is_known = status == 0 && length as usize == size_of_val(&info) && shortest != u32::MAX;
    is_known.then(|| Nanos(u64::from(shortest) * 1_000))
}

/// Where `tcpi_min_rtt` is in the kernel's `struct tcp_info` (linux/tcp.h), which only ever grows at
/// its end; `libc` has the older part only. In microseconds.
const MIN_RTT_WORD: usize = 148 / size_of::<u32>();

const TCP_INFO_WORDS: usize = MIN_RTT_WORD + 1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::thread;

    /// Watches a thread that does this for some time.
    fn watched(work: impl FnOnce() + Send + 'static, time: Duration) -> Contention {
        let number = ThreadNumber::default();
        let (started, on) = mpsc::channel();
        let thread = thread::spawn({
            let number = number.clone();
            move || {
                number.set_to_this_thread();
                started.send(()).unwrap();
                work();
            }
        });
        on.recv().unwrap();
        let mut watch = ContentionWatch::new(vec![number]);
        watch.open();
        let end = Monotonic.now() + time.into();
        while Monotonic.now() < end {
            thread::sleep(watch.until_next_sample().min(Duration::from_millis(5)));
            watch.sample();
        }
        let seen = watch.close();
        thread.join().unwrap();
        seen
    }

    #[test]
    fn a_thread_that_sleeps_neither_runs_nor_wants_to() {
        let seen =
            watched(|| thread::sleep(Duration::from_millis(600)), Duration::from_millis(400));
        let times = seen.threads.unwrap();
        assert!(times.watched >= Nanos::from_millis(400), "{times:?}");
        assert!(times.running_share() < 0.1 && times.runnable_share() < 0.1, "{times:?}");
        assert!(seen.waits.sleep >= 5 && seen.waits.lock == 0, "{:?}", seen.waits);
    }

    /// As one is that has measured before a busy machine lets anybody look.
    #[test]
    fn a_thread_that_is_gone_is_known_to_its_end() {
        let number = ThreadNumber::default();
        let (started, on) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let thread = thread::spawn({
            let number = number.clone();
            move || {
                number.set_to_this_thread();
                started.send(()).unwrap();
                gone.recv().unwrap();
                thread::sleep(Duration::from_millis(50));
                number.note_end();
            }
        });
        on.recv().unwrap();
        let mut watch = ContentionWatch::new(vec![number]);
        let begun = Monotonic.now();
        watch.open();
        go.send(()).unwrap();
        thread.join().unwrap();
        let ended = Monotonic.now();
        thread::sleep(Duration::from_millis(100));
        let times = watch.close().threads.unwrap();
        assert!(times.watched >= Nanos::from_millis(50), "{times:?}");
        assert!(times.watched <= ended - begun, "{times:?}");
    }

    #[test]
    fn a_thread_that_computes_runs_or_wants_to() {
        // It reads the counters itself: a wait for a processor is counted when it ends, and while
        // it reads them it does not wait for one.
        let number = ThreadNumber::default();
        number.set_to_this_thread();
        let mut watch = ContentionWatch::new(vec![number]);
        watch.open();
        let end = Monotonic.now() + Nanos::from_millis(400);
        while Monotonic.now() < end {}
        let seen = watch.close();
        let times = seen.threads.unwrap();
        assert!(times.running_share() + times.runnable_share() > 0.9, "{times:?}");
        let machine = seen.machine.unwrap();
        assert!(machine.busy_cores() > 0.9 * times.running_share(), "{machine:?}");
    }

    #[test]
    fn a_thread_that_computes_is_found_running() {
        let end = Monotonic.now() + Nanos::from_millis(600);
        let work = move || while Monotonic.now() < end {};
        let seen = watched(work, Duration::from_millis(400));
        assert!(seen.waits.running > seen.waits.waiting(), "{:?}", seen.waits);
    }

    #[test]
    fn a_thread_that_waits_for_a_lock_is_found_there() {
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock().unwrap();
        let other = Arc::clone(&lock);
        let number = ThreadNumber::default();
        let waiting = thread::spawn({
            let number = number.clone();
            move || {
                number.set_to_this_thread();
                drop(other.lock().unwrap());
            }
        });
        while number.get().is_none() {
            thread::yield_now();
        }
        let mut watch = ContentionWatch::new(vec![number]);
        watch.open();
        let end = Monotonic.now() + Nanos::from_millis(300);
        while Monotonic.now() < end {
            thread::sleep(Duration::from_millis(2));
            watch.sample();
        }
        let waits = watch.close().waits;
        drop(held);
        waiting.join().unwrap();
        assert!(waits.lock >= 5 && waits.lock > waits.running, "{waits:?}");
    }

    #[test]
    fn a_loopback_connection_is_local() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"x").unwrap();
        let mut found = Connections::default();
        add_connection(&mut found, client.as_raw_fd());
        assert_eq!(found, Connections { round_trip: None, local: true });
        assert!(round_trip(client.as_raw_fd()).is_some());
        // A socket that listens is no connection.
        let mut none = Connections::default();
        add_connection(&mut none, listener.as_raw_fd());
        assert_eq!(none, Connections::default());
    }

    /// A server that takes 20 ms for each request, behind no network at all.
    #[test]
    fn a_round_trip_does_not_hold_what_the_server_takes_for_its_work() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let serving = thread::spawn(move || {
            while server.read_exact(&mut [0]).is_ok() {
                thread::sleep(Duration::from_millis(20));
                server.write_all(&[1]).unwrap();
            }
        });
        for _ in 0..20 {
            client.write_all(&[1]).unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        let trip = round_trip(client.as_raw_fd()).unwrap();
        drop(client);
        serving.join().unwrap();
        assert!(trip < Nanos::from_millis(5), "{trip}");
    }
}
