//! What the probe writes and the tracer reads: one file that both map.
//!
//! ```text
//! header   64 KiB   what to do (written by the tracer), and counters
//! chunk 0  64 KiB   a thread's events, in order
//! chunk 1  …        in the order in which threads took them
//! ```
//!
//! A thread takes a chunk by raising [`Header::taken`], writes events into it, and raises
//! [`Chunk::used`] behind each. Nobody reads while the program runs, and nothing is ever moved. A
//! chunk that was taken in a program's last moment may be empty.
//!
//! Once [`Header::listing`] chunks are taken, threads list no more calls: each sums them in a chunk
//! of its own ([`totals`](crate::totals)), and of those that it makes often how long they took in a
//! few more ([`times`](crate::times)), for which there are the chunks behind; and, if that is asked
//! for, the last ones ([`last_calls`](crate::last_calls)).
//!
//! Both use this file: the probe, which has no library, and the tracer.

use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::cost::{StubCost, StubRunning};
use crate::functions::FUNCTIONS;

/// The first eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tapstone");
/// Raised with every change of what follows.
pub const VERSION: u32 = 13;
/// The variable that tells the probe where the file is. Children inherit it.
pub const VARIABLE: &str = "TAPSTONE_PROBE";
/// Before the first chunk.
pub const HEADER_BYTES: usize = 64 << 10;
/// One thread's, until it is full.
pub const CHUNK_BYTES: usize = 64 << 10;
/// In front of a chunk's events.
pub const CHUNK_HEAD_BYTES: usize = size_of::<Chunk>();
/// Fixes at a time.
pub const FIXES: usize = 16;
/// Programs without a chunk that are told apart.
pub const UNANNOUNCED: usize = 1024;
/// A function's name, with a zero behind it.
pub const NAME_BYTES: usize = 64;

/// The beginning of the file.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// Always [`MAGIC`]: a file of the probe.
    pub magic: u64,
    /// Always [`VERSION`]: the layout that reader and writer share.
    pub version: u32,
    /// What the events' moments count: [`CLOCK_TSC`] or [`CLOCK_NANOS`].
    pub clock: u32,
    /// Chunks that the file may come to have; the mapping has room for them.
    pub most: u64,
    /// Chunks that the tracer has given space on the disk. It raises that ahead of `taken`, and may
    /// be late.
    pub ready: AtomicU64,
    /// Chunks that threads may take: those behind `ready` they give space themselves first.
    pub granted: AtomicU64,
    /// Why threads cannot do that, or one could not: [`NO_SPACE`] or [`NO_WAY`], else 0. Then none
    /// takes more than are ready. A chunk that was taken for it stays empty.
    pub refused: AtomicU64,
    /// Chunks that threads have taken.
    pub taken: AtomicU64,
    /// Events that are not here: there was no chunk for them, or one of the reasons below.
    pub dropped: AtomicU64,
    /// Functions that were bound but could not be watched: all stubs were in use, or a function
    /// list is of a kind that is not known.
    pub unwatched: AtomicU64,
    /// Programs in which the probe did not begin: they limit their address space (RLIMIT_AS), and
    /// this file is too large a part of it.
    pub limited: AtomicU64,
    /// Programs in which it did not begin because their C library is too old.
    pub outdated: AtomicU64,
    /// Of `dropped`: calls in signal handlers that interrupted the probe's own work.
    pub interrupted: AtomicU64,
    /// Of `dropped`: calls of more threads, or of calls inside calls, than the probe keeps apart.
    pub crowded: AtomicU64,
    /// Of `dropped`: events of programs that gave the file back when they set such a limit.
    pub out_of_reach: AtomicU64,
    /// Processes in which the probe runs.
    pub processes: AtomicU64,
    /// Whether fixes act. A tracer switches it between the rounds of a trial.
    pub on: AtomicU32,
    /// [`CAPTURE_DATA`] where data is kept, or 0.
    pub options: u32,
    /// How many of `fixes` there are.
    pub fix_count: u32,
    /// Ticks a microsecond, for those fixes that wait or count time.
    pub ticks_per_micro: u32,
    /// Digests of arguments are made under this key, which is the run's own, and wiped when it is
    /// over: nobody can try values on them later.
    pub key: [u64; 2],
    /// What is changed in the program's calls.
    pub fixes: [Fix; FIXES],
    /// What the tracer writes when all is over, for whoever reads the file later.
    pub run: Run,
    /// What watching each function cost, where no fix was asked for.
    pub costs: [StubCost; FUNCTIONS.len()],
    /// How much of its time the threads that called each had a processor.
    pub running: [StubRunning; FUNCTIONS.len()],
    /// Once so many chunks are taken, calls are summed and no longer listed.
    pub listing: u64,
    /// When the first call was summed, on the probe's clock; 0: all are listed.
    pub summed_from: AtomicU64,
    /// 1 once the run is over. Processes that go on sum no more calls: nobody could tell those apart
    /// from the run's.
    pub over: AtomicU64,
    /// Programs that began and found no chunk in which to say so: ...
    pub unannounced_count: AtomicU64,
    /// ... process and parent of the first of them, as [`EVENT_PROCESS`] has both.
    pub unannounced: [AtomicU64; UNANNOUNCED],
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);

/// The disk gave no more space.
pub const NO_SPACE: u64 = 1;
/// The kernel, what limits the process, or the file system does not let threads give space.
pub const NO_WAY: u64 = 2;

/// The run that a file is about, in nanoseconds of CLOCK_MONOTONIC and in ticks of the probe's
/// clock. All zeros while it goes on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Both clocks when the file was made, nanoseconds first, ...
    pub first: [u64; 2],
    /// ... and when the run was over.
    pub last: [u64; 2],
    /// When the command was started.
    pub started: u64,
    /// When it had ended.
    pub ended: u64,
    /// The processor time of the command and of the processes that it waited for, in nanoseconds.
    pub processor: u64,
}

/// Moments are readings of the processor's time-stamp counter.
pub const CLOCK_TSC: u32 = 0;
/// Moments are nanoseconds of CLOCK_MONOTONIC.
pub const CLOCK_NANOS: u32 = 1;
/// Command data goes into the file, but for commands that carry secrets.
pub const CAPTURE_DATA: u32 = 1;
/// It is noted where calls come from.
pub const CAPTURE_CALLERS: u32 = 2;
/// Threads that only count their calls keep the last ones: a timeline may be drawn.
pub const KEEP_LAST: u32 = 4;

/// One change to the program, and how often it came to pass.
#[repr(C)]
#[derive(Debug)]
pub struct Fix {
    /// One of `FIX_…`: which fix it is.
    pub kind: u32,
    /// Keeps what follows in its place.
    pub reserved: u32,
    /// The function that it is about; empty: any.
    pub function: [u8; NAME_BYTES],
    /// The shortest delay, in nanoseconds.
    pub low_ns: u64,
    /// The longest delay, in nanoseconds.
    pub high_ns: u64,
    /// How often it changed something.
    pub applied: AtomicU64,
    /// How often it could not, where it should have.
    pub refused: AtomicU64,
}

/// A function returns later.
pub const FIX_DELAY: u32 = 1;
/// Sleeps inside a function return at once.
pub const FIX_NO_SLEEP: u32 = 2;
/// The clock hurries while a function asks again and again.
pub const FIX_NO_BUSY_WAIT: u32 = 3;
/// A lookup's answer is kept.
pub const FIX_MEMOISE: u32 = 4;
/// A command's response is kept.
pub const FIX_CACHE_APDU: u32 = 5;
/// A length probe reads all there is.
pub const FIX_WHOLE_READ: u32 = 6;
/// Small segments do not wait for an acknowledgement.
pub const FIX_TCP_NODELAY: u32 = 7;
/// What a search for objects found is kept.
pub const FIX_CACHE_FIND: u32 = 8;
/// What was read of an object's public attributes is kept.
pub const FIX_CACHE_ATTRIBUTES: u32 = 9;
/// A login stays over a logout.
pub const FIX_KEEP_LOGIN: u32 = 10;
/// A session stays over its end.
pub const FIX_KEEP_SESSION: u32 = 11;

/// The beginning of a chunk.
#[repr(C)]
#[derive(Debug)]
pub struct Chunk {
    /// The id of the process that writes into it.
    pub process: u32,
    /// Whose it is, up to an [`EVENT_THREAD`].
    pub thread: u32,
    /// Bytes used, this head included. 0: taken, and nothing in it.
    pub used: AtomicU32,
    /// What is in it: one of `CHUNK_…`.
    pub content: u32,
}

/// The chunk holds a thread's events, in order.
pub const CHUNK_EVENTS: u32 = 0;
/// The chunk holds sums of a thread's calls: [`CallTotals`](crate::totals::CallTotals).
pub const CHUNK_TOTALS: u32 = 1;
/// The chunk holds how long those calls took: [`CallTimes`](crate::times::CallTimes).
pub const CHUNK_TIMES: u32 = 2;
/// The chunk holds the last of those calls: [`LastCall`](crate::last_calls::LastCall).
pub const CHUNK_LAST: u32 = 3;

/// The beginning of an event: two words, of `words` in all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// When the event began, on the probe's clock.
    pub time: u64,
    /// One of `EVENT_…`: what kind of event it is.
    pub kind: u8,
    /// Some of `FLAG_…`, or 0.
    pub flags: u8,
    /// Words of eight bytes, this head included.
    pub words: u16,
    /// Which call is meant, as [`EVENT_SLOT`] declares it.
    pub slot: u32,
}

/// Nothing: an event that was written again, behind what followed it, or the end of one that is about
/// to become longer.
pub const EVENT_NOTHING: u8 = 0;
/// A program begins: process and, in the upper half of the word, parent; then the path of its file.
pub const EVENT_PROCESS: u8 = 1;
/// A process was forked off: itself, and the last before it that wrote anything (a word), whose
/// program it runs.
pub const EVENT_FORKED: u8 = 2;
/// What a slot stands for, in this program from here on: function (`FUNCTIONS`), lengths of two
/// names, a word; then the module that defines it and the one that calls it.
pub const EVENT_SLOT: u8 = 3;
/// A call begins: three numbers, of its arguments or what stands for them, then bytes.
pub const EVENT_ENTER: u8 = 4;
/// The innermost call ends: result, and a word that the function's kind explains.
pub const EVENT_EXIT: u8 = 5;
/// A call of libc, or many alike: see [`Leaf`].
pub const EVENT_LEAF: u8 = 6;
/// A fix put time into the call that is open: nanoseconds.
pub const EVENT_FIXED: u8 = 7;

/// What follows in this chunk is of another thread of the process, whose id is a word: the one
/// before has ended.
pub const EVENT_THREAD: u8 = 8;

/// Another program is about to be started: the process and [`STARTS_HERE`] or [`STARTS_CHILD`] (a
/// word), then the path or the name.
pub const EVENT_STARTS: u8 = 9;
/// A process is about to end. Its id; how long its first thread ran, and how long it could have and
/// had no processor, in nanoseconds (`/proc/self/schedstat`, zero where that cannot be read); and the
/// processor time of all its threads.
pub const EVENT_ENDS: u8 = 10;
/// Where the call that begins at this time comes from: the address of its caller's frame, which is
/// the stack pointer behind the return; the frame pointer, if it points into the stack that was
/// looked at, or 0; where the call returns to; then words of the stack
/// ([`kept_word`](crate::callers::kept_word)).
pub const EVENT_STACK: u8 = 11;
/// A file of code that stacks lead into: how far behind the addresses that it is linked for it lies,
/// where its code begins and ends, the first eight bytes of its build id or 0; then its path, as the
/// dynamic linker knows it, empty for the program itself.
pub const EVENT_OBJECT: u8 = 12;
/// The probe took this chunk, since the one before was full: how long that took.
pub const EVENT_ROOM: u8 = 13;
/// The path of the probe's own code, whose frames are undone by their frame pointer.
pub const PROBE_NAME: &[u8] = b"[probe]";
/// In this process, unless exec(3) fails.
pub const STARTS_HERE: u64 = 0;
/// In a child of this process, unless posix_spawn(3) fails.
pub const STARTS_CHILD: u64 = 1;

/// The call never returned by itself: an exception or longjmp(3) went past it. Its end is when the
/// probe noticed.
pub const FLAG_ABANDONED: u8 = 1;
/// It waited for pcscd's socket.
pub const FLAG_SERVICE: u8 = 2;
/// It waited for a terminal.
pub const FLAG_TERMINAL: u8 = 4;
/// A fix answered instead.
pub const FLAG_REPLACED: u8 = 8;
/// Of a call's beginning: it makes an object that stays on the token.
pub const FLAG_TOKEN: u8 = 16;
/// Of a call's beginning: it has no room for a result, and so only asks how long that is.
pub const FLAG_LENGTH: u8 = 32;

/// A call of libc, or many alike in a row inside one call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Its beginning; the time of the first.
    pub head: Head,
    /// The end of the last; 0: it never ended.
    pub end: u64,
    /// How many calls were counted.
    pub count: u64,
    /// The sum of their times, on the probe's clock.
    pub sum: u64,
    /// The shortest of them, on the probe's clock.
    pub min: u64,
    /// The longest of them, on the probe's clock.
    pub max: u64,
    /// What (the last) returned.
    pub result: u64,
    /// A descriptor, or what else the kind explains.
    pub a: u64,
    /// A length or a time asked for, or what else the kind explains.
    pub b: u64,
    // Bytes may follow: a path, an address, the argument of a lookup.
}

/// Words of an [`EVENT_ENTER`] before its bytes, head included. Without bytes those at the end that
/// are zero are left out, as in every event.
pub const ENTER_WORDS: usize = 5;
/// Bytes that follow an event, at most.
pub const MOST_BYTES: usize = 512;
