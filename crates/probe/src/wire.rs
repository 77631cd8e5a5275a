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
//! This file is part of two programs: the probe, which has no library, and the tracer.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The first eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tapstone");
/// Raised with every change of what follows.
pub const VERSION: u32 = 2;
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
/// A function's name, with a zero behind it.
pub const NAME_BYTES: usize = 64;

/// The beginning of the file.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// What the events' moments count: [`CLOCK_TSC`] or [`CLOCK_NANOS`].
    pub clock: u32,
    /// Chunks that the file may come to have; the mapping has room for them.
    pub most: u64,
    /// Chunks that have space on the disk. The tracer raises it ahead of `taken`.
    pub ready: AtomicU64,
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
    /// [`CAPTURE_DATA`], or 0.
    pub options: u32,
    /// How many of `fixes` there are.
    pub fix_count: u32,
    /// Ticks a microsecond, for those fixes that wait or count time.
    pub ticks_per_micro: u32,
    /// What to change.
    pub fixes: [Fix; FIXES],
}

/// Moments are readings of the processor's time-stamp counter.
pub const CLOCK_TSC: u32 = 0;
/// Moments are nanoseconds of CLOCK_MONOTONIC.
pub const CLOCK_NANOS: u32 = 1;
/// Command data goes into the file, but for commands that carry secrets.
pub const CAPTURE_DATA: u32 = 1;

/// One change to the program, and how often it came to pass.
#[repr(C)]
#[derive(Debug)]
pub struct Fix {
    /// One of `FIX_…`.
    pub kind: u32,
    /// Keeps what follows in its place.
    pub reserved: u32,
    /// The function that it is about; empty: any.
    pub function: [u8; NAME_BYTES],
    /// The shortest delay, in nanoseconds.
    pub low_ns: u64,
    /// The longest.
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

/// The beginning of a chunk.
#[repr(C)]
#[derive(Debug)]
pub struct Chunk {
    /// Whose it is.
    pub process: u32,
    /// Whose it is, up to an [`EVENT_THREAD`].
    pub thread: u32,
    /// Bytes used, this head included. 0: taken, and nothing in it.
    pub used: AtomicU32,
    /// Keeps events on multiples of eight.
    pub reserved: u32,
}

/// The beginning of an event: two words, of `words` in all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// When it began.
    pub time: u64,
    /// One of `EVENT_…`.
    pub kind: u8,
    /// Some of `FLAG_…`.
    pub flags: u8,
    /// Words of eight bytes, this head included.
    pub words: u16,
    /// Which call is meant, as [`EVENT_SLOT`] declares it.
    pub slot: u32,
}

/// A program begins: process and parent (a word), then the path of its file.
pub const EVENT_PROCESS: u8 = 1;
/// A process was forked off: process and parent (a word).
pub const EVENT_FORKED: u8 = 2;
/// What a slot stands for, in this program from here on: function (`FUNCTIONS`), lengths of two
/// names, a word; then the module that defines it and the one that calls it.
pub const EVENT_SLOT: u8 = 3;
/// A call begins: `ENTER_WORDS` arguments, then bytes.
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

/// The call never returned by itself: an exception or longjmp(3) went past it. Its end is when the
/// probe noticed.
pub const FLAG_ABANDONED: u8 = 1;
/// It waited for pcscd's socket.
pub const FLAG_SERVICE: u8 = 2;
/// It waited for a terminal.
pub const FLAG_TERMINAL: u8 = 4;
/// A fix answered instead.
pub const FLAG_REPLACED: u8 = 8;

/// A call of libc, or many alike in a row inside one call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Its beginning; the time of the first.
    pub head: Head,
    /// The end of the last; 0: it never ended.
    pub end: u64,
    /// How many.
    pub count: u64,
    /// Their times.
    pub sum: u64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// What (the last) returned.
    pub result: u64,
    /// A descriptor, or what else the kind explains.
    pub a: u64,
    /// A length or a time asked for, or what else the kind explains.
    pub b: u64,
    // Bytes may follow: a path, an address, the argument of a lookup.
}

/// Words of an [`EVENT_ENTER`] before its bytes, head included.
pub const ENTER_WORDS: usize = 7;
/// Bytes that follow an event, at most.
pub const MOST_BYTES: usize = 512;

/// What a function is, as far as it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A function of a PKCS#11 module.
    Pkcs11,
    /// A function of the PC/SC client library.
    Pcsc,
    /// A function of a reader driver (IFD handler).
    Driver,
    /// A function of libc, watched in the libraries that call it.
    Libc(Kind),
}

/// What a function of libc does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sleeps; `b` is nanoseconds.
    Sleep,
    /// Waits until something is ready; `b` is the time limit in nanoseconds, `u64::MAX` for none,
    /// `a` the first descriptor.
    Poll,
    /// Reads a clock.
    Clock,
    /// Opens a file; the bytes are its path.
    Open,
    /// Asks about a file; the bytes are its path.
    Stat,
    /// Closes descriptor `a`.
    Close,
    /// Reads or receives from `a` up to `b` bytes.
    Read,
    /// Writes or sends `b` bytes to `a`.
    Write,
    /// Connects `a`; the bytes are the address.
    Connect,
    /// Waits for another thread.
    Lock,
    /// Asks a database by a name, which the bytes are.
    LookupName,
    /// Asks a database by a number `a`.
    LookupNumber,
}

/// A function that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name, as it is exported.
    pub name: &'static str,
    /// What it is.
    pub family: Family,
}

const fn of(family: Family, name: &'static str) -> Function {
    Function { name, family }
}

/// Functions of CK_FUNCTION_LIST (PKCS#11 v2.40, 5.1), of CK_FUNCTION_LIST_3_0 and of
/// CK_FUNCTION_LIST_3_2, in the order in which those have them.
pub const PKCS11_V2: usize = 68;
/// All of version 3.0.
pub const PKCS11_V3_0: usize = 92;
/// All of version 3.2.
pub const PKCS11_V3_2: usize = 104;

/// What is watched, by number. The first [`PKCS11_V3_2`] are a PKCS#11 function list.
pub const FUNCTIONS: &[Function] = &functions();

const FUNCTION_COUNT: usize = PKCS11_V3_2 + PCSC.len() + DRIVER.len() + LIBC.len();

const fn functions() -> [Function; FUNCTION_COUNT] {
    let mut all = [of(Family::Pkcs11, ""); FUNCTION_COUNT];
    let mut at = 0;
    while at < PKCS11.len() {
        all[at] = of(Family::Pkcs11, PKCS11[at]);
        at += 1;
    }
    let mut next = 0;
    while next < PCSC.len() {
        all[at] = of(Family::Pcsc, PCSC[next]);
        at += 1;
        next += 1;
    }
    next = 0;
    while next < DRIVER.len() {
        all[at] = of(Family::Driver, DRIVER[next]);
        at += 1;
        next += 1;
    }
    next = 0;
    while next < LIBC.len() {
        all[at] = of(Family::Libc(LIBC[next].0), LIBC[next].1);
        at += 1;
        next += 1;
    }
    all
}

const PKCS11: [&str; PKCS11_V3_2] = [
    "C_Initialize",
    "C_Finalize",
    "C_GetInfo",
    "C_GetFunctionList",
    "C_GetSlotList",
    "C_GetSlotInfo",
    "C_GetTokenInfo",
    "C_GetMechanismList",
    "C_GetMechanismInfo",
    "C_InitToken",
    "C_InitPIN",
    "C_SetPIN",
    "C_OpenSession",
    "C_CloseSession",
    "C_CloseAllSessions",
    "C_GetSessionInfo",
    "C_GetOperationState",
    "C_SetOperationState",
    "C_Login",
    "C_Logout",
    "C_CreateObject",
    "C_CopyObject",
    "C_DestroyObject",
    "C_GetObjectSize",
    "C_GetAttributeValue",
    "C_SetAttributeValue",
    "C_FindObjectsInit",
    "C_FindObjects",
    "C_FindObjectsFinal",
    "C_EncryptInit",
    "C_Encrypt",
    "C_EncryptUpdate",
    "C_EncryptFinal",
    "C_DecryptInit",
    "C_Decrypt",
    "C_DecryptUpdate",
    "C_DecryptFinal",
    "C_DigestInit",
    "C_Digest",
    "C_DigestUpdate",
    "C_DigestKey",
    "C_DigestFinal",
    "C_SignInit",
    "C_Sign",
    "C_SignUpdate",
    "C_SignFinal",
    "C_SignRecoverInit",
    "C_SignRecover",
    "C_VerifyInit",
    "C_Verify",
    "C_VerifyUpdate",
    "C_VerifyFinal",
    "C_VerifyRecoverInit",
    "C_VerifyRecover",
    "C_DigestEncryptUpdate",
    "C_DecryptDigestUpdate",
    "C_SignEncryptUpdate",
    "C_DecryptVerifyUpdate",
    "C_GenerateKey",
    "C_GenerateKeyPair",
    "C_WrapKey",
    "C_UnwrapKey",
    "C_DeriveKey",
    "C_SeedRandom",
    "C_GenerateRandom",
    "C_GetFunctionStatus",
    "C_CancelFunction",
    "C_WaitForSlotEvent",
    "C_GetInterfaceList",
    "C_GetInterface",
    "C_LoginUser",
    "C_SessionCancel",
    "C_MessageEncryptInit",
    "C_EncryptMessage",
    "C_EncryptMessageBegin",
    "C_EncryptMessageNext",
    "C_MessageEncryptFinal",
    "C_MessageDecryptInit",
    "C_DecryptMessage",
    "C_DecryptMessageBegin",
    "C_DecryptMessageNext",
    "C_MessageDecryptFinal",
    "C_MessageSignInit",
    "C_SignMessage",
    "C_SignMessageBegin",
    "C_SignMessageNext",
    "C_MessageSignFinal",
    "C_MessageVerifyInit",
    "C_VerifyMessage",
    "C_VerifyMessageBegin",
    "C_VerifyMessageNext",
    "C_MessageVerifyFinal",
    "C_EncapsulateKey",
    "C_DecapsulateKey",
    "C_VerifySignatureInit",
    "C_VerifySignature",
    "C_VerifySignatureUpdate",
    "C_VerifySignatureFinal",
    "C_GetSessionValidationFlags",
    "C_AsyncComplete",
    "C_AsyncGetID",
    "C_AsyncJoin",
    "C_WrapKeyAuthenticated",
    "C_UnwrapKeyAuthenticated",
];

const PCSC: [&str; 18] = [
    "SCardEstablishContext",
    "SCardReleaseContext",
    "SCardIsValidContext",
    "SCardConnect",
    "SCardReconnect",
    "SCardDisconnect",
    "SCardBeginTransaction",
    "SCardEndTransaction",
    "SCardStatus",
    "SCardGetStatusChange",
    "SCardControl",
    "SCardTransmit",
    "SCardListReaderGroups",
    "SCardListReaders",
    "SCardFreeMemory",
    "SCardCancel",
    "SCardGetAttrib",
    "SCardSetAttrib",
];

/// Interface of IFD handlers, MUSCLE PC/SC IFD Driver API 3.0. Without IFDHGetCapabilities, which
/// asks the driver and not the card.
const DRIVER: [&str; 7] = [
    "IFDHCreateChannelByName",
    "IFDHCreateChannel",
    "IFDHSetProtocolParameters",
    "IFDHPowerICC",
    "IFDHTransmitToICC",
    "IFDHControl",
    "IFDHICCPresence",
];

const LIBC: [(Kind, &str); 64] = [
    (Kind::Sleep, "sleep"),
    (Kind::Sleep, "usleep"),
    (Kind::Sleep, "nanosleep"),
    (Kind::Sleep, "clock_nanosleep"),
    (Kind::Poll, "poll"),
    (Kind::Poll, "__poll_chk"),
    (Kind::Poll, "ppoll"),
    (Kind::Poll, "select"),
    (Kind::Poll, "pselect"),
    (Kind::Poll, "epoll_wait"),
    (Kind::Clock, "clock_gettime"),
    (Kind::Clock, "gettimeofday"),
    (Kind::Clock, "time"),
    (Kind::Open, "open"),
    (Kind::Open, "open64"),
    (Kind::Open, "openat"),
    (Kind::Open, "openat64"),
    (Kind::Open, "fopen"),
    (Kind::Open, "fopen64"),
    (Kind::Open, "opendir"),
    (Kind::Stat, "stat"),
    (Kind::Stat, "stat64"),
    (Kind::Stat, "lstat"),
    (Kind::Stat, "lstat64"),
    (Kind::Stat, "access"),
    (Kind::Close, "close"),
    (Kind::Read, "read"),
    (Kind::Read, "__read_chk"),
    (Kind::Read, "recv"),
    (Kind::Read, "__recv_chk"),
    (Kind::Read, "recvfrom"),
    (Kind::Read, "recvmsg"),
    (Kind::Write, "write"),
    (Kind::Write, "send"),
    (Kind::Write, "sendto"),
    (Kind::Write, "sendmsg"),
    (Kind::Connect, "connect"),
    (Kind::Lock, "pthread_mutex_lock"),
    (Kind::Lock, "pthread_cond_wait"),
    (Kind::Lock, "pthread_cond_timedwait"),
    (Kind::Lock, "pthread_rwlock_rdlock"),
    (Kind::Lock, "pthread_rwlock_wrlock"),
    (Kind::Lock, "pthread_join"),
    (Kind::Lock, "sem_wait"),
    (Kind::Lock, "sem_timedwait"),
    (Kind::Lock, "flock"),
    (Kind::LookupName, "getprotobyname"),
    (Kind::LookupNumber, "getprotobynumber"),
    (Kind::LookupName, "getservbyname"),
    (Kind::LookupNumber, "getservbyport"),
    (Kind::LookupName, "getpwnam"),
    (Kind::LookupNumber, "getpwuid"),
    (Kind::LookupName, "getgrnam"),
    (Kind::LookupNumber, "getgrgid"),
    (Kind::LookupName, "getprotobyname_r"),
    (Kind::LookupNumber, "getprotobynumber_r"),
    (Kind::LookupName, "getservbyname_r"),
    (Kind::LookupNumber, "getservbyport_r"),
    (Kind::LookupName, "getpwnam_r"),
    (Kind::LookupNumber, "getpwuid_r"),
    (Kind::LookupName, "getgrnam_r"),
    (Kind::LookupNumber, "getgrgid_r"),
    (Kind::LookupName, "getaddrinfo"),
    (Kind::LookupName, "gethostbyname"),
];
