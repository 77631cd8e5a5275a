//! The kernel and the processor, without a library between: the C library of an audit namespace
//! has neither threads nor errno of the program, and loading it costs more than all of the probe.

use core::arch::{asm, global_asm};
use core::ops::Range;

const READ: usize = 0;
const OPEN: usize = 2;
const CLOSE: usize = 3;
const FSTAT: usize = 5;
const MMAP: usize = 9;
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
const RT_SIGPROCMASK: usize = 14;
const IOCTL: usize = 16;
const SCHED_YIELD: usize = 24;
const MADVISE: usize = 28;
const NANOSLEEP: usize = 35;
const GETPID: usize = 39;
const SETSOCKOPT: usize = 54;
const GETSOCKOPT: usize = 55;
const READLINK: usize = 89;
const GETPPID: usize = 110;
const SIGALTSTACK: usize = 131;
const GETTID: usize = 186;
const CLOCK_GETTIME: usize = 228;
const TGKILL: usize = 234;
const PRLIMIT64: usize = 302;

const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const O_RDWR: usize = 2;
const O_CLOEXEC: usize = 0o2_000_000;
const MADV_WIPEONFORK: usize = 18;
const MADV_POPULATE_WRITE: usize = 23;
const CLOCK_MONOTONIC: usize = 1;
const TCGETS: usize = 0x5401;
/// Memory is not there, or a page of a file has no space on the disk.
pub(crate) const EFAULT: isize = 14;
/// Bytes of the kernel's struct stat, and where the size is.
const STAT_BYTES: usize = 144;
const STAT_SIZE: usize = 48;

/// A system call. The result is negative on error: errno stays what it was.
///
/// # Safety
/// What the call asks of its arguments.
unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's convention on x86-64; what it does with memory is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack),
        );
    }
    result
}

fn address(result: isize) -> *mut u8 {
    if (-4095..0).contains(&result) { core::ptr::null_mut() } else { result as *mut u8 }
}

pub(crate) fn process() -> u32 {
    // SAFETY: touches nothing.
    unsafe { call(GETPID, [0; 6]) as u32 }
}

pub(crate) fn parent() -> u32 {
    // SAFETY: touches nothing.
    unsafe { call(GETPPID, [0; 6]) as u32 }
}

pub(crate) fn thread_from_kernel() -> u32 {
    // SAFETY: touches nothing.
    unsafe { call(GETTID, [0; 6]) as u32 }
}

/// Where glibc keeps the thread's id: `struct pthread`, `tid`, unchanged on x86-64 since 2.4 and
/// written by clone(2) itself. The probe compares it with the kernel's once, at the start.
const TID_IN_THREAD: usize = 0x2d0;

#[inline(always)]
pub(crate) fn thread_from_library() -> u32 {
    let thread;
    // SAFETY: %fs points to the thread's control block, which is larger than that.
    unsafe {
        asm!("mov {0:e}, fs:[{1}]", out(reg) thread, const TID_IN_THREAD, options(nostack, readonly, preserves_flags));
    }
    thread
}

/// Where the thread's control block is: far from its stack or at its end, and always at one place.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the first word of the control block is its own address (psABI, variant II).
    unsafe {
        asm!("mov {0}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// The secret that glibc mangles addresses with: `tcbhead_t`, `pointer_guard`.
pub(crate) fn pointer_guard() -> u64 {
    const POINTER_GUARD: usize = 0x30;
    let guard;
    // SAFETY: as above.
    unsafe {
        asm!("mov {0}, fs:[{1}]", out(reg) guard, const POINTER_GUARD, options(nostack, readonly, preserves_flags));
    }
    guard
}

/// Whether a thread of this process has not ended yet.
pub(crate) fn is_alive(process: u32, thread: u32) -> bool {
    const ESRCH: isize = 3;
    // SAFETY: no signal is sent.
    unsafe { call(TGKILL, [process as usize, thread as usize, 0, 0, 0, 0]) != -ESRCH }
}

/// Whether the page of an address can be read. A signal mask is read before it is looked at what is
/// to be done with it, which is nothing here (Abseil's AddressIsReadable asks the same).
pub(crate) fn is_readable(address: usize) -> bool {
    const NOTHING: usize = usize::MAX;
    // A mask that lies in that page alone.
    let mask = (address & !4095) | (address & 4095).min(4096 - 8);
    // SAFETY: the kernel reads eight bytes, or says that it cannot; it changes nothing.
    unsafe { call(RT_SIGPROCMASK, [NOTHING, mask, 0, 8, 0, 0]) != -EFAULT }
}

/// The stack of its own that a signal handler runs on, inside one.
pub(crate) fn signal_stack() -> Option<Range<usize>> {
    const SS_ONSTACK: u32 = 1;
    // stack_t: where it begins, flags, how long it is.
    let mut stack = [0_usize; 3];
    // SAFETY: the kernel writes three words.
    let result = unsafe { call(SIGALTSTACK, [0, stack.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    let [start, flags, bytes] = stack;
    (result == 0 && flags as u32 & SS_ONSTACK != 0).then_some(start..start + bytes)
}

/// How much this process may map in all, unless it may as much as it likes.
pub(crate) fn address_space_limit() -> Option<usize> {
    const RLIMIT_AS: usize = 9;
    let mut limit = [usize::MAX; 2];
    // SAFETY: the kernel writes two words.
    unsafe { call(PRLIMIT64, [0, RLIMIT_AS, 0, limit.as_mut_ptr() as usize, 0, 0]) };
    (limit[0] != usize::MAX).then_some(limit[0])
}

/// The processor's time-stamp counter (RDTSC).
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 has it; user code may read it unless PR_SET_TSC says otherwise.
    unsafe { core::arch::x86_64::_rdtsc() }
}

pub(crate) fn monotonic_nanos() -> u64 {
    clock_nanos(CLOCK_MONOTONIC)
}

fn clock_nanos(clock: usize) -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: the kernel writes two words.
    unsafe { call(CLOCK_GETTIME, [clock, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// The beginning of a file, as far as it fits; `None` where there is less. As with any descriptor of
/// it that is closed, the process's own locks on it are gone then (fcntl(2)).
///
/// # Safety
/// `path` ends with a zero.
pub(crate) unsafe fn beginning<const N: usize>(path: *const u8) -> Option<[u8; N]> {
    // A pipe would wait for who writes into it.
    const O_NONBLOCK: usize = 0o4000;
    let mut bytes = [0_u8; N];
    // SAFETY: the path ends with a zero; the kernel fills the buffer.
    let length = unsafe {
        let file = call(OPEN, [path as usize, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0]);
        if file < 0 {
            return None;
        }
        let read = call(READ, [file as usize, bytes.as_mut_ptr() as usize, N, 0, 0, 0]);
        call(CLOSE, [file as usize, 0, 0, 0, 0, 0]);
        read
    };
    (length == N as isize).then_some(bytes)
}

/// How long this process's first thread ran, and how long it could have and had no processor, in
/// nanoseconds (proc_pid_schedstat(5)).
pub(crate) fn scheduled() -> Option<[u64; 2]> {
    let path = c"/proc/self/schedstat".as_ptr() as usize;
    let mut text = [0_u8; 64];
    // SAFETY: the path ends with a zero; the kernel fills the buffer.
    let length = unsafe {
        let file = call(OPEN, [path, O_CLOEXEC, 0, 0, 0, 0]);
        if file < 0 {
            return None;
        }
        let read = call(READ, [file as usize, text.as_mut_ptr() as usize, text.len(), 0, 0, 0]);
        call(CLOSE, [file as usize, 0, 0, 0, 0, 0]);
        read.max(0) as usize
    };
    let mut numbers = text.get(..length)?.split(|byte| *byte == b' ').map(number);
    Some([numbers.next()??, numbers.next()??])
}

fn number(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(number.wrapping_mul(10).wrapping_add(digit))
    })
}

/// The processor time of all threads of this process, in nanoseconds.
pub(crate) fn process_nanos() -> u64 {
    const CLOCK_PROCESS_CPUTIME_ID: usize = 2;
    clock_nanos(CLOCK_PROCESS_CPUTIME_ID)
}

/// The processor time of this thread, in nanoseconds.
pub(crate) fn thread_nanos() -> u64 {
    const CLOCK_THREAD_CPUTIME_ID: usize = 3;
    clock_nanos(CLOCK_THREAD_CPUTIME_ID)
}

pub(crate) fn give_way() {
    // SAFETY: touches nothing.
    unsafe { call(SCHED_YIELD, [0; 6]) };
}

pub(crate) fn sleep(nanos: u64) {
    let time = [nanos / 1_000_000_000, nanos % 1_000_000_000];
    // SAFETY: the kernel reads two words.
    unsafe { call(NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// A file, or the beginning of it, that is mapped.
pub(crate) struct Mapped {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    /// Of the whole file.
    pub(crate) size: usize,
}

/// Maps a file that both sides write, up to `most`. Where that fails only its first `least` bytes.
/// Its descriptor is closed again.
///
/// # Safety
/// `path` ends with a zero.
pub(crate) unsafe fn map_file(path: *const u8, most: usize, least: usize) -> Option<Mapped> {
    let mut stat = [0_u8; STAT_BYTES];
    // SAFETY: the path ends; the kernel fills `stat`; mappings at addresses of its choice.
    unsafe {
        let file = call(OPEN, [path as usize, O_RDWR | O_CLOEXEC, 0, 0, 0, 0]);
        if file < 0 {
            return None;
        }
        call(FSTAT, [file as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
        let size = stat.as_ptr().add(STAT_SIZE).cast::<usize>().read_unaligned();
        let protection = PROT_READ | PROT_WRITE;
        let flags = MAP_SHARED | MAP_NORESERVE;
        let map = |bytes| {
            let at = address(call(MMAP, [0, bytes, protection, flags, file as usize, 0]));
            (!at.is_null() && bytes >= least).then_some(Mapped { at, bytes, size })
        };
        let mapped = map(size.min(most)).or_else(|| map(size.min(least)));
        call(CLOSE, [file as usize, 0, 0, 0, 0, 0]);
        mapped
    }
}

/// Takes a mapping away.
///
/// # Safety
/// Nobody uses it any more.
pub(crate) unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { call(MUNMAP, [start as usize, bytes, 0, 0, 0, 0]) };
}

/// Zeroed memory of this process; null when there is none.
pub(crate) fn memory(bytes: usize) -> *mut u8 {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: a mapping at an address of the kernel's choice.
    address(unsafe { call(MMAP, [0, bytes, PROT_READ | PROT_WRITE, flags, usize::MAX, 0]) })
}

/// Makes memory zero again in a process that is forked off.
///
/// # Safety
/// `start` and `bytes` are those of [`memory`].
pub(crate) unsafe fn wipe_on_fork(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's own mapping.
    unsafe { call(MADVISE, [start as usize, bytes, MADV_WIPEONFORK, 0, 0, 0]) };
}

/// Has memory's pages made now rather than one by one, or says why not: older kernels than Linux
/// 5.14 refuse (EINVAL), and a file has no space on its disk (EFAULT; madvise(2)).
///
/// # Safety
/// The memory is mapped and may be written.
pub(crate) unsafe fn populate(start: *mut u8, bytes: usize) -> Result<(), isize> {
    // SAFETY: nothing in it changes.
    match unsafe { call(MADVISE, [start as usize, bytes, MADV_POPULATE_WRITE, 0, 0, 0]) } {
        0 => Ok(()),
        error => Err(-error),
    }
}

/// Lets a page be written, or no longer.
///
/// # Safety
/// The page is mapped, and nobody depends on its being writable when it is taken away.
pub(crate) unsafe fn protect(page: usize, bytes: usize, writable: bool) -> bool {
    let protection = if writable { PROT_READ | PROT_WRITE } else { PROT_READ };
    // SAFETY: the caller's promise.
    unsafe { call(MPROTECT, [page, bytes, protection, 0, 0, 0]) == 0 }
}

/// The path of the program, without a zero.
pub(crate) fn program(path: &mut [u8]) -> usize {
    let link = c"/proc/self/exe".as_ptr() as usize;
    // SAFETY: the kernel fills the slice.
    let length = unsafe { call(READLINK, [link, path.as_mut_ptr() as usize, path.len(), 0, 0, 0]) };
    length.max(0) as usize
}

pub(crate) fn is_terminal(descriptor: u32) -> bool {
    let mut settings = [0_u8; 64];
    let at = settings.as_mut_ptr() as usize;
    // SAFETY: the kernel writes its struct termios, 36 bytes.
    unsafe { call(IOCTL, [descriptor as usize, TCGETS, at, 0, 0, 0]) == 0 }
}

const IPPROTO_TCP: usize = 6;
const TCP_NODELAY: usize = 1;

/// Whether TCP_NODELAY is set; `None` when it is no TCP socket.
pub(crate) fn nodelay(descriptor: u32) -> Option<bool> {
    let mut value = 0_u32;
    let mut length = 4_u32;
    let at = &raw mut value as usize;
    let length = &raw mut length as usize;
    // SAFETY: the kernel writes at most four bytes, and how many.
    let result =
        unsafe { call(GETSOCKOPT, [descriptor as usize, IPPROTO_TCP, TCP_NODELAY, at, length, 0]) };
    (result == 0).then_some(value != 0)
}

/// Sets TCP_NODELAY; false when it is no TCP socket.
pub(crate) fn set_nodelay(descriptor: u32, on: bool) -> bool {
    let value = u32::from(on);
    let at = &raw const value as usize;
    // SAFETY: the kernel reads four bytes.
    let result =
        unsafe { call(SETSOCKOPT, [descriptor as usize, IPPROTO_TCP, TCP_NODELAY, at, 4, 0]) };
    result == 0
}

// What the compiler calls for copies. In assembler: in Rust it would call itself.
global_asm!(
    ".globl memcpy",
    ".hidden memcpy",
    "memcpy:",
    ".globl memmove",
    ".hidden memmove",
    "memmove:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "mov r8, rdi",
    "sub r8, rsi",
    "cmp r8, rdx",
    "jb 2f",
    "rep movsb",
    "ret",
    "2: std",
    "lea rdi, [rdi + rdx - 1]",
    "lea rsi, [rsi + rdx - 1]",
    "rep movsb",
    "cld",
    "ret",
    ".globl memset",
    ".hidden memset",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".globl memcmp",
    ".hidden memcmp",
    "memcmp:",
    ".globl bcmp",
    ".hidden bcmp",
    "bcmp:",
    "xor eax, eax",
    "xor ecx, ecx",
    "3: cmp rcx, rdx",
    "je 4f",
    "mov al, [rdi + rcx]",
    "movzx r8d, byte ptr [rsi + rcx]",
    "inc rcx",
    "movzx eax, al",
    "sub eax, r8d",
    "je 3b",
    "4: ret",
    // Named by the unwinding tables of the core library. Nothing unwinds through it.
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the program with SIGILL, which the tracer reports. No code here is to panic.
    unsafe { asm!("ud2", options(noreturn)) }
}
