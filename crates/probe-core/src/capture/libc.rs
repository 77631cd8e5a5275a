//! What is kept of a call of libc: what it works on, how much or how long, and whether it says where
//! a descriptor leads.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::frame::Frame;
use crate::functions::Kind;
use crate::names::known;
use crate::program_memory::ProgramMemory;
use crate::wire::MOST_BYTES;

/// sockaddr_un has 110 bytes, and no other address is longer in practice.
pub(super) const LONGEST_ADDRESS: usize = 128;

/// Two words for a call of libc: what `a` and `b` of its event are, by its [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafWords {
    /// A descriptor, or what else the call works on.
    pub a: u64,
    /// A length in bytes, or a time in nanoseconds.
    pub b: u64,
}

/// What a libc call works on, and how much: see [`Kind`].
///
/// # Safety
/// The frame is a call of that function.
pub unsafe fn capture_leaf(
    function: u32,
    kind: Kind,
    frame: &Frame,
    memory: &ProgramMemory,
) -> LeafWords {
    let [first, second, third, fourth, fifth, _] = frame.arguments;
    // What lies elsewhere is read when the call is over (`polled_descriptor`).
    let on_stack = |at, count| {
        // SAFETY: a page that is there.
        if memory.is_on_stack(at, 4) { unsafe { first_polled(at, count) } } else { u64::MAX }
    };
    let (a, b) = match kind {
        // SAFETY: a call of that function.
        Kind::Sleep => (0, unsafe { sleep_nanos(function, frame, memory) }),
        // SAFETY: as above.
        Kind::Poll => unsafe {
            match function {
                known::POLL | known::POLL_CHK => (on_stack(first, second), millis_nanos(third)),
                known::PPOLL => (on_stack(first, second), timespec_nanos(third, 1, memory)),
                known::SELECT => {
                    (first_in_set(first, second, memory), timespec_nanos(fifth, 1_000, memory))
                }
                known::PSELECT => {
                    (first_in_set(first, second, memory), timespec_nanos(fifth, 1, memory))
                }
                known::ACCEPT | known::ACCEPT4 => (u64::from(first as u32), u64::MAX),
                _ => (u64::from(first as u32), millis_nanos(fourth)),
            }
        },
        Kind::Read | Kind::Write => match function {
            known::RECVMSG | known::SENDMSG => (u64::from(first as u32), 0),
            _ => (u64::from(first as u32), third),
        },
        // A stream is an address.
        Kind::Close if function != known::CLOSE => (first, 0),
        Kind::Close | Kind::Connect => (u64::from(first as u32), 0),
        Kind::LookupNumber => (u64::from(first as u32), 0),
        Kind::Lock if function == known::FLOCK => (u64::from(first as u32), second),
        Kind::Lock => (first, 0),
        Kind::Clock | Kind::Open | Kind::Stat | Kind::LookupName | Kind::Children => (0, 0),
    };
    LeafWords { a, b }
}

/// How long a call is to sleep.
///
/// # Safety
/// The frame is a call of that function.
unsafe fn sleep_nanos(function: u32, frame: &Frame, memory: &ProgramMemory) -> u64 {
    let [first, flags, third, ..] = frame.arguments;
    let number = u64::from(first as u32);
    // SAFETY: the caller's promise.
    unsafe {
        match function {
            known::SLEEP => number * 1_000_000_000,
            known::USLEEP => number * 1_000,
            known::NANOSLEEP => timespec_nanos(first, 1, memory),
            // clock_nanosleep: for a time, or until a moment, which is not so long from now.
            _ if flags as u32 == 0 => timespec_nanos(third, 1, memory),
            _ => 0,
        }
    }
}

/// Whether a call does not wait: a lock that is free, or a question for children that have ended
/// (WNOHANG), as handlers of SIGCHLD ask. Of these nothing is written.
///
/// # Safety
/// The frame is a call of that function.
#[inline(always)]
pub unsafe fn does_not_wait(function: u32, frame: &Frame) -> bool {
    const WNOHANG: u64 = 1;
    let [_, second, third, fourth, ..] = frame.arguments;
    match function {
        known::WAIT3 => second & WNOHANG != 0,
        known::WAITPID | known::WAIT4 => third & WNOHANG != 0,
        known::WAITID => fourth & WNOHANG != 0,
        // SAFETY: the caller's promise.
        _ => unsafe { is_free_lock(function, frame) },
    }
}

/// Which bits of the first word of a lock say that it is not there to be taken; 0: the function takes
/// none. Most locks are free, libraries take thousands, and none of those is written about. glibc
/// keeps the state of a mutex (0: free) and of a read-write lock (bit 1: a writer has it, from bit 3:
/// readers) there.
pub const fn taken_bits(function: u32) -> u32 {
    const WRITER: u32 = 2;
    const READERS: u32 = !7;
    match function {
        known::MUTEX_LOCK => u32::MAX,
        known::RDLOCK => WRITER,
        known::WRLOCK => WRITER | READERS,
        _ => 0,
    }
}

/// # Safety
/// The frame is a call of that function.
#[inline(always)]
unsafe fn is_free_lock(function: u32, frame: &Frame) -> bool {
    let taken = taken_bits(function);
    let word = frame.arguments[0] as *const AtomicU32;
    // SAFETY: the argument of a function that takes a lock, which it is about to read.
    taken != 0 && unsafe { (*word).load(Ordering::Relaxed) & taken == 0 }
}

/// A timespec (parts of 1 ns) or a timeval (of 1,000 ns) as nanoseconds; none is for ever, and one
/// that is not there no time.
///
/// # Safety
/// The call to which it belongs has not returned.
pub(super) unsafe fn timespec_nanos(at: u64, part: u64, memory: &ProgramMemory) -> u64 {
    if at == 0 {
        return u64::MAX;
    }
    // SAFETY: the caller's promise.
    let Some([seconds, parts]) = (unsafe { memory.words::<2>(at) }) else { return 0 };
    seconds.saturating_mul(1_000_000_000).saturating_add(parts.saturating_mul(part))
}

fn millis_nanos(time: u64) -> u64 {
    u64::try_from(time as i32).map_or(u64::MAX, |time| time * 1_000_000)
}

/// The first of the descriptors to poll.
///
/// # Safety
/// `at` points to as many.
unsafe fn first_polled(at: u64, count: u64) -> u64 {
    // SAFETY: there is one.
    if at == 0 || count == 0 { u64::MAX } else { unsafe { u64::from(*(at as *const u32)) } }
}

/// The first descriptor that a poll(2) was given, once it is over; `None` of other calls, and of one
/// that failed, and may not have read it.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub unsafe fn polled_descriptor(function: u32, frame: &Frame) -> Option<u64> {
    let [first, second, ..] = frame.arguments;
    let polls = matches!(function, known::POLL | known::POLL_CHK | known::PPOLL);
    // SAFETY: the kernel has read it, and written beside it.
    (polls && frame.result as i32 >= 0).then(|| unsafe { first_polled(first, second) })
}

/// The first descriptor to read from.
///
/// # Safety
/// The call to which the set belongs has not returned.
pub(super) unsafe fn first_in_set(count: u64, at: u64, memory: &ProgramMemory) -> u64 {
    if at == 0 {
        return u64::MAX;
    }
    for word in 0..(count as u32 as usize).div_ceil(64).min(16) as u64 {
        // SAFETY: the caller's promise.
        match unsafe { memory.words::<1>(at.wrapping_add(word * 8)) } {
            Some([0]) => {}
            Some([bits]) => return word * 64 + u64::from(bits.trailing_zeros()),
            None => break,
        }
    }
    u64::MAX
}

/// A path, an address or a name that a libc call is given, where the program has it.
///
/// # Safety
/// The frame is a call of that function, and the result is dropped before it returns.
pub unsafe fn leaf_bytes(
    function: u32,
    kind: Kind,
    frame: &Frame,
    memory: &ProgramMemory,
) -> &'static [u8] {
    let [first, second, third, ..] = frame.arguments;
    let text =
        if kind == Kind::LookupName { Some(first) } else { path_argument(function, kind, frame) };
    // SAFETY: the caller's promise.
    unsafe {
        match text {
            Some(text) => memory.text(text, MOST_BYTES),
            None if kind == Kind::Connect => {
                let length = (third as u32 as usize).min(LONGEST_ADDRESS);
                memory.bytes(second, length).unwrap_or_default()
            }
            None => &[],
        }
    }
}

/// The address of the path that a call names, if it is of a kind that names one.
pub fn path_argument(function: u32, kind: Kind, frame: &Frame) -> Option<u64> {
    let [first, second, ..] = frame.arguments;
    match kind {
        Kind::Open if matches!(function, known::OPENAT | known::OPENAT64) => Some(second),
        Kind::Open | Kind::Stat => Some(first),
        _ => None,
    }
}

/// Whether a call that names a path went well: then the kernel has read that, if the function is the
/// C library's.
pub fn has_found_path(function: u32, frame: &Frame) -> bool {
    match function {
        known::FOPEN | known::FOPEN64 | known::OPENDIR => frame.result != 0,
        _ => frame.result as i32 >= 0,
    }
}

/// # Safety
/// `at` is null or points to an address of that length.
unsafe fn socket_address<'a>(at: u64, length: u64) -> &'a [u8] {
    if at == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(at as *const u8, (length as usize).min(LONGEST_ADDRESS)) }
}

/// What a call that is over says of its descriptor, which may be pcscd's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorChange {
    /// The number of the descriptor.
    pub descriptor: u64,
    /// Whether it leads to pcscd now.
    pub leads_to_pcscd: bool,
}

/// The descriptor that a call has connected, closed or opened; `None` for other calls.
///
/// # Safety
/// The frame is a call of that kind, which has returned. `descriptor` is what it was given.
pub unsafe fn descriptor_change(
    kind: Kind,
    frame: &Frame,
    descriptor: u64,
) -> Option<DescriptorChange> {
    let (descriptor, leads_to_pcscd) = match kind {
        Kind::Connect if frame.result as i32 == 0 => {
            let [_, address, length, ..] = frame.arguments;
            // SAFETY: connect(2) has just read it.
            (descriptor, is_pcscd(unsafe { socket_address(address, length) }))
        }
        Kind::Close => (descriptor, false),
        Kind::Open => (u64::from(frame.result as u32), false),
        _ => return None,
    };
    Some(DescriptorChange { descriptor, leads_to_pcscd })
}

/// Whether an address is that of pcscd's socket.
fn is_pcscd(address: &[u8]) -> bool {
    const AF_UNIX: u8 = 1;
    matches!(address, [AF_UNIX, 0, ..]) && address.windows(5).any(|window| window == b"pcscd")
}
