//! What is kept of a call's arguments and results: numbers, names and lengths; of APDUs the header,
//! and of data only what tells which object is read. No PIN, no key, no data of other commands.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::stubs::Frame;
use crate::{state, sys, thread};
use tapstone_probe_core::functions::Kind;
use tapstone_probe_core::wire::{CAPTURE_DATA, ENTER_WORDS, FLAG_TOKEN, MOST_BYTES};

/// Words of an event of a call's beginning, behind its head.
const WORDS: usize = ENTER_WORDS - 2;
/// CLA INS P1 P2 and the length behind them.
const HEADER: usize = 5;
/// Of the data of commands that read: an AID or a tag list.
const NAMED: usize = 40;
/// An extended APDU has 65,544 bytes at most (ISO 7816-4, 5.1); what is said to be longer is none.
const LONGEST: usize = 1 << 17;

/// Numbers of functions whose arguments have a meaning of their own.
pub(crate) mod known {
    use tapstone_probe_core::functions::FUNCTIONS;

    const fn find(name: &str) -> u32 {
        let mut at = 0;
        while at < FUNCTIONS.len() {
            if equal(FUNCTIONS[at].name.as_bytes(), name.as_bytes()) {
                return at as u32;
            }
            at += 1;
        }
        panic!("no such function")
    }

    const fn equal(one: &[u8], other: &[u8]) -> bool {
        let mut at = 0;
        while at < one.len() && at < other.len() && one[at] == other[at] {
            at += 1;
        }
        at == one.len() && at == other.len()
    }

    macro_rules! numbers {
        ($($constant:ident = $name:literal;)*) => { $(pub(crate) const $constant: u32 = find($name);)* };
    }

    numbers! {
        C_OPEN_SESSION = "C_OpenSession";
        C_FIND_OBJECTS = "C_FindObjects";
        C_CREATE_OBJECT = "C_CreateObject";
        C_COPY_OBJECT = "C_CopyObject";
        C_GENERATE_KEY_PAIR = "C_GenerateKeyPair";
        C_UNWRAP_KEY = "C_UnwrapKey";
        C_ENCRYPT_INIT = "C_EncryptInit";
        C_DECRYPT_INIT = "C_DecryptInit";
        C_DIGEST_INIT = "C_DigestInit";
        C_SIGN_INIT = "C_SignInit";
        C_SIGN_RECOVER_INIT = "C_SignRecoverInit";
        C_VERIFY_INIT = "C_VerifyInit";
        C_VERIFY_RECOVER_INIT = "C_VerifyRecoverInit";
        C_GENERATE_KEY = "C_GenerateKey";
        C_DERIVE_KEY = "C_DeriveKey";
        C_UNWRAP_KEY_AUTHENTICATED = "C_UnwrapKeyAuthenticated";
        C_ENCAPSULATE_KEY = "C_EncapsulateKey";
        C_DECAPSULATE_KEY = "C_DecapsulateKey";
        SCARD_ESTABLISH_CONTEXT = "SCardEstablishContext";
        SCARD_CONNECT = "SCardConnect";
        SCARD_RECONNECT = "SCardReconnect";
        SCARD_DISCONNECT = "SCardDisconnect";
        SCARD_END_TRANSACTION = "SCardEndTransaction";
        SCARD_CONTROL = "SCardControl";
        SCARD_TRANSMIT = "SCardTransmit";
        SCARD_SET_ATTRIB = "SCardSetAttrib";
        IFDH_TRANSMIT = "IFDHTransmitToICC";
        SLEEP = "sleep";
        USLEEP = "usleep";
        NANOSLEEP = "nanosleep";
        POLL = "poll";
        POLL_CHK = "__poll_chk";
        PPOLL = "ppoll";
        SELECT = "select";
        PSELECT = "pselect";
        GETTIMEOFDAY = "gettimeofday";
        TIME = "time";
        OPENAT = "openat";
        OPENAT64 = "openat64";
        CLOCK_GETTIME = "clock_gettime";
        FLOCK = "flock";
        MUTEX_LOCK = "pthread_mutex_lock";
        RDLOCK = "pthread_rwlock_rdlock";
        WRLOCK = "pthread_rwlock_wrlock";
        RECVMSG = "recvmsg";
        SENDMSG = "sendmsg";
    }
}

/// A command APDU and where its response goes.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) command: *const u8,
    pub(crate) sent: usize,
    pub(crate) response: *mut u8,
    pub(crate) received: *mut u64,
}

/// The exchange of SCardTransmit or IFDHTransmitToICC.
///
/// # Safety
/// The frame is a call of one of them.
pub(crate) unsafe fn exchange(function: u32, frame: &Frame) -> Option<Exchange> {
    let [_, _, second, third, fourth, fifth] = frame.arguments;
    // SAFETY: both have a pointer to the response's length as their seventh argument: the driver's
    // second is a structure of two words, which takes two registers.
    let received = unsafe { frame.stack.read() } as *mut u64;
    let (command, sent, response) = match function {
        known::SCARD_TRANSMIT => (second, third, fifth),
        known::IFDH_TRANSMIT => (third, fourth, fifth),
        _ => return None,
    };
    let exchange = Exchange {
        command: command as *const u8,
        sent: sent as usize,
        response: response as *mut u8,
        received,
    };
    let is_one = !exchange.command.is_null() && !received.is_null() && exchange.sent <= LONGEST;
    is_one.then_some(exchange)
}

/// What is kept of a call's beginning.
pub(crate) struct Before {
    pub(crate) words: [u64; WORDS],
    /// Whatever they are in, it is the program's.
    pub(crate) bytes: &'static [u8],
    pub(crate) flags: u8,
}

/// # Safety
/// The frame is a call of that function, and the result is dropped before it returns.
pub(crate) unsafe fn before(function: u32, frame: &Frame) -> Before {
    let [first, second, ..] = frame.arguments;
    // Numbers tell something, addresses nothing.
    let mut words = [first, if is_address(second) { 0 } else { second }, 0];
    let mut bytes: &[u8] = &[];
    match function {
        known::C_ENCRYPT_INIT
        | known::C_DECRYPT_INIT
        | known::C_DIGEST_INIT
        | known::C_SIGN_INIT
        | known::C_SIGN_RECOVER_INIT
        | known::C_VERIFY_INIT
        | known::C_VERIFY_RECOVER_INIT
        | known::C_GENERATE_KEY..=known::C_DERIVE_KEY => {
            // CK_MECHANISM begins with its type.
            let mechanism = second as *const u64;
            // SAFETY: the function reads it itself.
            words[1] = if mechanism.is_null() { 0 } else { unsafe { *mechanism } };
        }
        known::SCARD_CONNECT => {
            // SAFETY: a reader's name ends with a zero.
            bytes = unsafe { text_at(second) };
        }
        known::SCARD_TRANSMIT | known::IFDH_TRANSMIT => {
            // SAFETY: a call of that function.
            if let Some(exchange) = unsafe { exchange(function, frame) } {
                // SAFETY: as many bytes as the caller says.
                let command =
                    unsafe { core::slice::from_raw_parts(exchange.command, exchange.sent) };
                words[1] = if reads(command) { hash(command) } else { 0 };
                words[2] = exchange.sent as u64;
                bytes = kept(command);
            }
        }
        _ => {}
    }
    // SAFETY: a call of that function.
    let on_token = unsafe { makes_token_object(function, frame) };
    Before { words, bytes, flags: if on_token { FLAG_TOKEN } else { 0 } }
}

/// Of the program's half of the address space, above what a number could be.
fn is_address(word: u64) -> bool {
    (1 << 32..1 << 47).contains(&word)
}

/// Whether a template of new objects says that they stay on the token.
///
/// # Safety
/// The frame is a call of that function.
unsafe fn makes_token_object(function: u32, frame: &Frame) -> bool {
    let [_, first, second, third, fourth, fifth] = frame.arguments;
    // SAFETY: as many attributes as the caller says.
    unsafe {
        match function {
            known::C_CREATE_OBJECT => is_on_token(first, second),
            // Where the template says nothing, a copy is where its original is.
            known::C_COPY_OBJECT => token(second, third) != Some(false),
            known::C_GENERATE_KEY => is_on_token(second, third),
            known::C_GENERATE_KEY_PAIR => is_on_token(second, third) || is_on_token(fourth, fifth),
            known::C_DERIVE_KEY => is_on_token(third, fourth),
            known::C_UNWRAP_KEY => is_on_token(fifth, *frame.stack),
            // Newer ones have their templates in other places: taken for the worst.
            _ => matches!(
                function,
                known::C_UNWRAP_KEY_AUTHENTICATED
                    | known::C_ENCAPSULATE_KEY
                    | known::C_DECAPSULATE_KEY
            ),
        }
    }
}

/// # Safety
/// `template` is null or has so many attributes.
unsafe fn is_on_token(template: u64, count: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { token(template, count) == Some(true) }
}

/// CKA_TOKEN in a template; `None` where it is not in it.
///
/// # Safety
/// `template` is null or has so many attributes.
unsafe fn token(template: u64, count: u64) -> Option<bool> {
    const CKA_TOKEN: u64 = 1;
    // CK_ATTRIBUTE: type, value, length.
    let attributes = template as *const [u64; 3];
    for at in 0..if template == 0 { 0 } else { count.min(256) as usize } {
        // SAFETY: inside the template; a value has as many bytes as it says.
        unsafe {
            let [kind, value, length] = *attributes.add(at);
            if kind == CKA_TOKEN && value != 0 && length > 0 {
                return Some(*(value as *const u8) != 0);
            }
        }
    }
    None
}

/// A word for the event of a call's end.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub(crate) unsafe fn after(function: u32, frame: &Frame) -> u64 {
    let [_, _, _, third, fourth, _] = frame.arguments;
    if frame.result != 0 {
        return 0;
    }
    let out = match function {
        known::C_OPEN_SESSION | known::SCARD_CONNECT => fourth,
        known::C_FIND_OBJECTS | known::SCARD_ESTABLISH_CONTEXT => third,
        known::SCARD_TRANSMIT | known::IFDH_TRANSMIT => {
            // SAFETY: a call of that function, which has succeeded.
            return unsafe { exchange(function, frame).map_or(0, |exchange| answer(exchange)) };
        }
        _ => 0,
    } as *const u64;
    // SAFETY: where the function has just written its result.
    if out.is_null() { 0 } else { unsafe { *out } }
}

/// Status word, length, and half of a hash.
///
/// # Safety
/// The exchange is over.
unsafe fn answer(exchange: Exchange) -> u64 {
    // SAFETY: the response's length and as many bytes.
    let response = unsafe {
        let length = *exchange.received as usize;
        if exchange.response.is_null() || length > LONGEST {
            return 0;
        }
        core::slice::from_raw_parts(exchange.response, length)
    };
    let status = match response {
        [.., one, two] => u64::from(*one) << 8 | u64::from(*two),
        _ => 0,
    };
    status | (response.len() as u64 & 0xFFFF) << 16 | (hash(response) >> 32) << 32
}

/// SELECT, READ BINARY, READ RECORD, GET DATA, GET RESPONSE (ISO 7816-4) and what reads in other
/// applications: their data name what is read.
pub(crate) fn reads(command: &[u8]) -> bool {
    match command {
        [class, instruction, ..] => {
            is_plain(*class) && matches!(instruction, 0xA4 | 0xB0..=0xB3 | 0xCA | 0xCB | 0xC0)
        }
        _ => false,
    }
}

/// Classes of ISO 7816-4 (5.4.1) and GlobalPlatform (11.1.4) without secure messaging and chaining.
/// In others the numbers of instructions mean something else.
fn is_plain(class: u8) -> bool {
    class & 0x7C == 0
}

/// Commands whose data can be a PIN, a key, or made from one: never kept, whatever is asked for.
fn is_secret(command: &[u8]) -> bool {
    let [class, instruction, ..] = command else { return true };
    // GET STATUS of GlobalPlatform, and what reads on tokens of Yubico. Others import keys by
    // neighbours of these.
    let asks = matches!(instruction, 0x84 | 0x88 | 0x22 | 0xF2 | 0xF7..=0xF9 | 0xFD);
    let may_be_known = reads(command) || (asks && is_plain(*class));
    !may_be_known
}

/// The header, and of the data what may be known.
fn kept(command: &[u8]) -> &[u8] {
    let most = if reads(command) {
        HEADER + NAMED
    } else if state().header().options & CAPTURE_DATA != 0 && !is_secret(command) {
        MOST_BYTES
    } else {
        HEADER
    };
    command.get(..most).unwrap_or(command)
}

/// FNV-1a of 64 bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// # Safety
/// `from` is null or a text that ends with a zero.
unsafe fn text_at(from: u64) -> &'static [u8] {
    if from == 0 {
        return &[];
    }
    let from = from as *const u8;
    // SAFETY: not past the zero.
    unsafe { core::slice::from_raw_parts(from, sys::length(from, MOST_BYTES)) }
}

/// What a libc call works on, and how much: see [`Kind`].
///
/// # Safety
/// The frame is a call of that function.
pub(crate) unsafe fn leaf(function: u32, kind: Kind, frame: &Frame) -> (u64, u64) {
    let [first, second, third, fourth, fifth, _] = frame.arguments;
    match kind {
        // SAFETY: a call of that function.
        Kind::Sleep => (0, unsafe { sleep(function, frame) }),
        // SAFETY: as above.
        Kind::Poll => unsafe {
            match function {
                known::POLL | known::POLL_CHK => (descriptor(first, second), millis(third)),
                known::PPOLL => (descriptor(first, second), seconds(third, 1)),
                known::SELECT => (first_in_set(first, second), seconds(fifth, 1_000)),
                known::PSELECT => (first_in_set(first, second), seconds(fifth, 1)),
                _ => (u64::from(first as u32), millis(fourth)),
            }
        },
        Kind::Read | Kind::Write => match function {
            known::RECVMSG | known::SENDMSG => (u64::from(first as u32), 0),
            _ => (u64::from(first as u32), third),
        },
        Kind::Close | Kind::Connect => (u64::from(first as u32), 0),
        Kind::LookupNumber => (u64::from(first as u32), 0),
        Kind::Lock if function == known::FLOCK => (u64::from(first as u32), second),
        Kind::Lock => (first, 0),
        Kind::Clock | Kind::Open | Kind::Stat | Kind::LookupName => (0, 0),
    }
}

/// How long a call is to sleep.
///
/// # Safety
/// The frame is a call of that function.
unsafe fn sleep(function: u32, frame: &Frame) -> u64 {
    let [first, flags, third, ..] = frame.arguments;
    let number = u64::from(first as u32);
    // SAFETY: the function reads it itself.
    unsafe {
        match function {
            known::SLEEP => number * 1_000_000_000,
            known::USLEEP => number * 1_000,
            known::NANOSLEEP => seconds(first, 1),
            // clock_nanosleep: for a time, or until a moment, which is not so long from now.
            _ if flags as u32 == 0 => seconds(third, 1),
            _ => 0,
        }
    }
}

/// Whether a lock is there to be taken: most are, libraries take thousands, and none of those is
/// written about. glibc keeps the state of a mutex (0: free) and of a read-write lock (bit 1: a
/// writer has it, from bit 3: readers) in the first word.
///
/// # Safety
/// The frame is a call of that function.
#[inline(always)]
pub(crate) unsafe fn is_free_lock(function: u32, frame: &Frame) -> bool {
    const WRITER: u32 = 2;
    const READERS: u32 = !7;
    let word = frame.arguments[0] as *const AtomicU32;
    let taken = match function {
        known::MUTEX_LOCK => u32::MAX,
        known::RDLOCK => WRITER,
        known::WRLOCK => WRITER | READERS,
        _ => return false,
    };
    // SAFETY: the function's own argument, which it is about to read.
    unsafe { (*word).load(Ordering::Relaxed) & taken == 0 }
}

/// A timespec (parts of 1 ns) or a timeval (of 1,000 ns) as nanoseconds; none is for ever.
///
/// # Safety
/// `at` is null or points to one.
unsafe fn seconds(at: u64, part: u64) -> u64 {
    let at = at as *const u64;
    if at.is_null() {
        return u64::MAX;
    }
    // SAFETY: two words.
    unsafe { (*at).saturating_mul(1_000_000_000).saturating_add(*at.add(1) * part) }
}

fn millis(time: u64) -> u64 {
    u64::try_from(time as i32).map_or(u64::MAX, |time| time * 1_000_000)
}

/// The first of the descriptors to poll.
///
/// # Safety
/// `at` points to as many.
unsafe fn descriptor(at: u64, count: u64) -> u64 {
    // SAFETY: there is one.
    if at == 0 || count == 0 { u64::MAX } else { unsafe { u64::from(*(at as *const u32)) } }
}

/// The first descriptor to read from.
///
/// # Safety
/// `at` is null or an fd_set for so many.
unsafe fn first_in_set(count: u64, at: u64) -> u64 {
    for word in 0..if at == 0 { 0 } else { (count as usize).div_ceil(64).min(16) } {
        // SAFETY: inside the set.
        let bits = unsafe { *(at as *const u64).add(word) };
        if bits != 0 {
            return word as u64 * 64 + u64::from(bits.trailing_zeros());
        }
    }
    u64::MAX
}

/// A path, an address or a name that a libc call is given, where the program has it.
///
/// # Safety
/// The frame is a call of that function, and the result is dropped before it returns.
pub(crate) unsafe fn text(function: u32, kind: Kind, frame: &Frame) -> &'static [u8] {
    let [first, second, third, ..] = frame.arguments;
    // SAFETY: the function reads them itself.
    unsafe {
        match kind {
            Kind::Open if matches!(function, known::OPENAT | known::OPENAT64) => text_at(second),
            Kind::Open | Kind::Stat | Kind::LookupName => text_at(first),
            Kind::Connect => address(second, third),
            _ => &[],
        }
    }
}

/// # Safety
/// `at` is null or points to an address of that length.
unsafe fn address<'a>(at: u64, length: u64) -> &'a [u8] {
    if at == 0 {
        return &[];
    }
    // sockaddr_un has 110 bytes, and no other is longer in practice.
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(at as *const u8, (length as usize).min(128)) }
}

/// Descriptors that are connected to pcscd.
static SERVICE: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

pub(crate) fn is_service(descriptor: u64) -> bool {
    let word = SERVICE.get(descriptor as usize / 64);
    word.is_some_and(|word| word.load(Ordering::Relaxed) >> (descriptor % 64) & 1 == 1)
}

/// Remembers which descriptors lead to pcscd.
pub(crate) fn note_descriptor(kind: Kind, frame: &Frame, descriptor: u64) {
    let (descriptor, connected) = match kind {
        Kind::Connect if frame.result as i32 == 0 => (descriptor, leads_to_pcscd(frame)),
        Kind::Close => (descriptor, false),
        Kind::Open => (u64::from(frame.result as u32), false),
        _ => return,
    };
    let Some(word) = SERVICE.get(descriptor as usize / 64) else { return };
    let bit = 1 << (descriptor % 64);
    let was_connected = word.load(Ordering::Relaxed) & bit != 0;
    // The child of a vfork(2) closes descriptors of its own, which its parent keeps.
    if connected == was_connected || thread::is_borrowed() {
        return;
    }
    if connected {
        word.fetch_or(bit, Ordering::Relaxed);
    } else {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// By the address that was just connected to.
fn leads_to_pcscd(frame: &Frame) -> bool {
    const AF_UNIX: u8 = 1;
    // SAFETY: connect(2) has just read it.
    let address = unsafe { address(frame.arguments[1], frame.arguments[2]) };
    matches!(address, [AF_UNIX, 0, ..]) && address.windows(5).any(|window| window == b"pcscd")
}
