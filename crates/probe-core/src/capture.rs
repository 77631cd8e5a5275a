//! What is kept of a call's arguments and results: numbers, names and lengths; of APDUs the header,
//! and of data only what tells which object is read. No PIN, no key, no data of other commands.

use core::hash::Hasher;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::apdu::{LONGEST_APDU, fnv1a, kept_of_command, only_reads, response_word};
use crate::frame::Frame;
use crate::functions::Kind;
use crate::names::known;
use crate::reads::{ASKS_FOR_LENGTH, answer_of_read, asks_for_length, attribute_question};
use crate::text::text_argument;
use crate::wire::{ENTER_WORDS, FLAG_LENGTH, FLAG_TOKEN};

/// Words of an event of a call's beginning, behind its head.
const WORDS: usize = ENTER_WORDS - 2;
/// sockaddr_un has 110 bytes, and no other address is longer in practice.
const LONGEST_ADDRESS: usize = 128;
/// Attributes of a template that are looked at, at most.
const LONGEST_TEMPLATE: u64 = 256;

/// A command APDU and where its response goes.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The command's bytes; never null.
    pub command: *const u8,
    /// How many they are.
    pub sent: usize,
    /// Where the response goes, or null.
    pub response: *mut u8,
    /// The room for it in bytes; its length when the call is over. Never null.
    pub received: *mut u64,
}

/// The exchange of SCardTransmit or IFDHTransmitToICC.
///
/// # Safety
/// The frame is a call of one of them.
pub unsafe fn apdu_exchange(function: u32, frame: &Frame) -> Option<Exchange> {
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
    let is_one =
        !exchange.command.is_null() && !received.is_null() && exchange.sent <= LONGEST_APDU;
    is_one.then_some(exchange)
}

/// What is kept of a call's beginning.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Its arguments, or what stands for them.
    pub words: [u64; WORDS],
    /// A name, or what may be kept of a command. Whatever they are in, it is the program's.
    pub bytes: &'static [u8],
    /// [`FLAG_TOKEN`] where a token is concerned, [`FLAG_LENGTH`] where only a length is asked for.
    pub flags: u8,
}

/// What a file's header says of what may be kept.
#[derive(Clone, Copy, Debug)]
pub struct CaptureRules {
    /// [`CAPTURE_DATA`](crate::wire::CAPTURE_DATA) or 0.
    pub options: u32,
    /// The run's own key: digests of arguments say nothing outside of it.
    pub key: [u64; 2],
}

/// What is kept of a call of PKCS#11, PC/SC or a driver that begins.
///
/// # Safety
/// The frame is a call of that function, and the result is dropped before it returns.
pub unsafe fn capture_beginning(function: u32, frame: &Frame, rules: CaptureRules) -> Beginning {
    let [first, second, third, ..] = frame.arguments;
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
            words[2] = if takes_key(function) { third } else { 0 };
        }
        known::C_FIND_OBJECTS_INIT => {
            // SAFETY: as many attributes as the caller says.
            words[1] = unsafe { template_digest(second, third, rules.key) };
            // SAFETY: as above.
            words[2] = unsafe { template_shape(second, third) };
        }
        known::C_GET_ATTRIBUTE_VALUE => {
            // SAFETY: as many attributes as the caller says.
            words[1] = unsafe { attribute_question(frame, rules.key) };
            // SAFETY: as above.
            let shape = unsafe { template_shape(third, frame.arguments[3]) };
            words[2] = shape | small_handle(second) << SHAPE_BITS;
        }
        known::C_FIND_OBJECTS => words[2] = third,
        known::C_GET_INFO => words = [0; WORDS],
        _ if asks_for_length(function, frame) => {
            words[1] = ASKS_FOR_LENGTH;
            words[2] = if has_input(function) { third } else { 0 };
        }
        known::SCARD_CONNECT => {
            // SAFETY: a reader's name ends with a zero.
            bytes = unsafe { text_argument(second) };
        }
        known::SCARD_TRANSMIT | known::IFDH_TRANSMIT => {
            // SAFETY: a call of that function.
            if let Some(exchange) = unsafe { apdu_exchange(function, frame) } {
                // SAFETY: as many bytes as the caller says.
                let command =
                    unsafe { core::slice::from_raw_parts(exchange.command, exchange.sent) };
                words[1] = if only_reads(command) { fnv1a(command) } else { 0 };
                words[2] = exchange.sent as u64;
                bytes = kept_of_command(command, rules.options);
            }
        }
        _ => words[2] = if has_input(function) { third } else { 0 },
    }
    // SAFETY: a call of that function.
    let on_token = unsafe { makes_token_object(function, frame) };
    let flags = if on_token { FLAG_TOKEN } else { 0 };
    let only_length = output_place(function).is_some_and(|place| frame.arguments[place] == 0);
    Beginning { words, bytes, flags: flags | if only_length { FLAG_LENGTH } else { 0 } }
}

/// Whether a function that begins an operation is given a key, as its third argument.
fn takes_key(function: u32) -> bool {
    !matches!(function, known::C_DIGEST_INIT | known::C_GENERATE_KEY | known::C_GENERATE_KEY_PAIR)
}

/// Whether the third argument is the length of what the function is given, or is asked for.
fn has_input(function: u32) -> bool {
    matches!(
        function,
        known::C_ENCRYPT
            | known::C_ENCRYPT_UPDATE
            | known::C_DECRYPT
            | known::C_DECRYPT_UPDATE
            | known::C_DIGEST
            | known::C_DIGEST_UPDATE
            | known::C_SIGN
            | known::C_SIGN_UPDATE
            | known::C_VERIFY
            | known::C_VERIFY_UPDATE
            | known::C_VERIFY_FINAL
            | known::C_GENERATE_RANDOM
            | known::C_SEED_RANDOM
    )
}

/// Which argument of a function is the room for its result; the one behind it points to a length.
fn output_place(function: u32) -> Option<usize> {
    match function {
        known::C_ENCRYPT
        | known::C_ENCRYPT_UPDATE
        | known::C_DECRYPT
        | known::C_DECRYPT_UPDATE
        | known::C_DIGEST
        | known::C_SIGN => Some(3),
        known::C_ENCRYPT_FINAL
        | known::C_DECRYPT_FINAL
        | known::C_DIGEST_FINAL
        | known::C_SIGN_FINAL => Some(1),
        _ => None,
    }
}

/// Attributes whose presence in a template is kept, by their bit in [`template_shape`].
pub const SHAPED_ATTRIBUTES: [u64; 15] = [
    0x000, // CKA_CLASS
    0x001, // CKA_TOKEN
    0x002, // CKA_PRIVATE
    0x003, // CKA_LABEL
    0x102, // CKA_ID
    0x100, // CKA_KEY_TYPE
    0x011, // CKA_VALUE
    0x080, // CKA_CERTIFICATE_TYPE
    0x101, // CKA_SUBJECT
    0x120, // CKA_MODULUS
    0x122, // CKA_PUBLIC_EXPONENT
    0x180, // CKA_EC_PARAMS
    0x181, // CKA_EC_POINT
    0x108, // CKA_SIGN
    0x202, // CKA_ALWAYS_AUTHENTICATE
];
/// How many bits [`template_shape`] has.
pub const SHAPE_BITS: u32 = 41;
/// The bit of [`template_shape`] for attributes that are not in [`SHAPED_ATTRIBUTES`].
pub const OTHER_ATTRIBUTES: u64 = 1 << 15;

/// A handle that fits behind a shape; 0: another one.
fn small_handle(handle: u64) -> u64 {
    if handle >> (64 - SHAPE_BITS) == 0 { handle } else { 0 }
}

/// The shape of a template, without its values: from bit 0 which [`SHAPED_ATTRIBUTES`] it has, from
/// bit 16 how many attributes it has (at most 255), from bit 24 its CKA_CLASS plus one where that is
/// a small number, and bit 40 when no attribute has room for a value.
///
/// # Safety
/// `template` is null or has so many attributes.
pub unsafe fn template_shape(template: u64, count: u64) -> u64 {
    const CKA_CLASS: u64 = 0;
    if count > LONGEST_TEMPLATE || (template == 0 && count > 0) {
        return 0;
    }
    let mut shape = count.min(255) << 16;
    let mut without_room = count > 0;
    for at in 0..count as usize {
        // SAFETY: inside the template; a value has as many bytes as it says.
        unsafe {
            let [kind, value, length] = *(template as *const [u64; 3]).add(at);
            let known = SHAPED_ATTRIBUTES.iter().position(|other| *other == kind);
            shape |= known.map_or(OTHER_ATTRIBUTES, |bit| 1 << bit);
            without_room &= value == 0;
            if kind == CKA_CLASS && value != 0 && length == 8 {
                let class = (value as *const u64).read_unaligned();
                shape |= class.saturating_add(1).min(0xFFFF) << 24;
            }
        }
    }
    shape | u64::from(without_room) << 40
}

/// A digest of a template under a key: types, lengths and values in their order, of which nothing
/// else is kept. 0 where it is no template, or too long to be looked through.
///
/// # Safety
/// `template` is null or has so many attributes.
pub unsafe fn template_digest(template: u64, count: u64, key: [u64; 2]) -> u64 {
    const LONGEST_VALUE: u64 = 1 << 16;
    if count > LONGEST_TEMPLATE || (template == 0 && count > 0) {
        return 0;
    }
    let [first, second] = key;
    #[allow(deprecated, reason = "SipHash-2-4 with a key, which has no other name in core")]
    let mut digest = core::hash::SipHasher::new_with_keys(first, second);
    digest.write_u64(count);
    for at in 0..count as usize {
        // SAFETY: inside the template; a value has as many bytes as it says.
        unsafe {
            let [kind, value, length] = *(template as *const [u64; 3]).add(at);
            if length > LONGEST_VALUE || (value == 0 && length > 0) {
                return 0;
            }
            digest.write_u64(kind);
            digest.write_u64(length);
            if length > 0 {
                digest.write(core::slice::from_raw_parts(value as *const u8, length as usize));
            }
        }
    }
    digest.finish().max(1)
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
            known::C_COPY_OBJECT => token_attribute(second, third) != Some(false),
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
    unsafe { token_attribute(template, count) == Some(true) }
}

/// CKA_TOKEN in a template; `None` where it is not in it.
///
/// # Safety
/// `template` is null or has so many attributes.
unsafe fn token_attribute(template: u64, count: u64) -> Option<bool> {
    const CKA_TOKEN: u64 = 1;
    // CK_ATTRIBUTE: type, value, length.
    let attributes = template as *const [u64; 3];
    for at in 0..if template == 0 { 0 } else { count.min(LONGEST_TEMPLATE) as usize } {
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
pub unsafe fn capture_end(function: u32, frame: &Frame, rules: CaptureRules) -> u64 {
    let [_, second, _, third, fourth, _] = frame.arguments;
    if frame.result != 0 {
        return 0;
    }
    if function == known::C_FIND_OBJECTS {
        // SAFETY: a call of that function, which has succeeded.
        return unsafe { found_objects(second as *const u64, third as *const u64) };
    }
    if function == known::C_VERIFY {
        // How long the signature is.
        return frame.arguments[4];
    }
    let stacked = |place: usize| {
        // SAFETY: the function has so many arguments behind its sixth.
        unsafe { *frame.stack.add(place) }
    };
    let out = match function {
        known::C_OPEN_SESSION | known::SCARD_CONNECT | known::C_GENERATE_KEY => fourth,
        known::C_CREATE_OBJECT => third,
        known::C_DERIVE_KEY => frame.arguments[5],
        // The count of the template, and where the key's handle goes; or where those of both do.
        known::C_UNWRAP_KEY | known::C_GENERATE_KEY_PAIR => stacked(1),
        _ if output_place(function).is_some() => {
            output_place(function).map_or(0, |place| frame.arguments[place + 1])
        }
        known::SCARD_ESTABLISH_CONTEXT => third,
        known::SCARD_TRANSMIT | known::IFDH_TRANSMIT => {
            // SAFETY: a call of that function, which has succeeded.
            return unsafe { apdu_exchange(function, frame).map_or(0, |over| response_of(over)) };
        }
        // SAFETY: as above.
        _ => return unsafe { answer_of_read(function, frame, rules.key) },
    } as *const u64;
    // SAFETY: where the function has just written its result.
    if out.is_null() { 0 } else { unsafe { *out } }
}

/// How many objects were found, and half of a hash of their handles.
///
/// # Safety
/// Where C_FindObjects has just written its result.
unsafe fn found_objects(objects: *const u64, count: *const u64) -> u64 {
    const MOST: u64 = 1 << 16;
    if objects.is_null() || count.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let count = (*count).min(MOST);
        let handles = core::slice::from_raw_parts(objects.cast::<u8>(), count as usize * 8);
        count | fnv1a(handles) << 32
    }
}

/// Status word, length, and half of a hash.
///
/// # Safety
/// The exchange is over.
unsafe fn response_of(exchange: Exchange) -> u64 {
    // SAFETY: the response's length and as many bytes.
    let response = unsafe {
        let length = *exchange.received as usize;
        if exchange.response.is_null() || length > LONGEST_APDU {
            return 0;
        }
        core::slice::from_raw_parts(exchange.response, length)
    };
    response_word(response)
}

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
pub unsafe fn capture_leaf(function: u32, kind: Kind, frame: &Frame) -> LeafWords {
    let [first, second, third, fourth, fifth, _] = frame.arguments;
    let (a, b) = match kind {
        // SAFETY: a call of that function.
        Kind::Sleep => (0, unsafe { sleep_nanos(function, frame) }),
        // SAFETY: as above.
        Kind::Poll => unsafe {
            match function {
                known::POLL | known::POLL_CHK => (first_polled(first, second), millis_nanos(third)),
                known::PPOLL => (first_polled(first, second), timespec_nanos(third, 1)),
                known::SELECT => (first_in_set(first, second), timespec_nanos(fifth, 1_000)),
                known::PSELECT => (first_in_set(first, second), timespec_nanos(fifth, 1)),
                known::ACCEPT | known::ACCEPT4 => (u64::from(first as u32), u64::MAX),
                _ => (u64::from(first as u32), millis_nanos(fourth)),
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
        Kind::Clock | Kind::Open | Kind::Stat | Kind::LookupName | Kind::Children => (0, 0),
    };
    LeafWords { a, b }
}

/// How long a call is to sleep.
///
/// # Safety
/// The frame is a call of that function.
unsafe fn sleep_nanos(function: u32, frame: &Frame) -> u64 {
    let [first, flags, third, ..] = frame.arguments;
    let number = u64::from(first as u32);
    // SAFETY: the function reads it itself.
    unsafe {
        match function {
            known::SLEEP => number * 1_000_000_000,
            known::USLEEP => number * 1_000,
            known::NANOSLEEP => timespec_nanos(first, 1),
            // clock_nanosleep: for a time, or until a moment, which is not so long from now.
            _ if flags as u32 == 0 => timespec_nanos(third, 1),
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

/// Whether a lock is there to be taken: most are, libraries take thousands, and none of those is
/// written about. glibc keeps the state of a mutex (0: free) and of a read-write lock (bit 1: a
/// writer has it, from bit 3: readers) in the first word.
///
/// # Safety
/// The frame is a call of that function.
#[inline(always)]
unsafe fn is_free_lock(function: u32, frame: &Frame) -> bool {
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
unsafe fn timespec_nanos(at: u64, part: u64) -> u64 {
    let at = at as *const u64;
    if at.is_null() {
        return u64::MAX;
    }
    // SAFETY: two words.
    unsafe { (*at).saturating_mul(1_000_000_000).saturating_add(*at.add(1) * part) }
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
pub unsafe fn leaf_bytes(function: u32, kind: Kind, frame: &Frame) -> &'static [u8] {
    let [first, second, third, ..] = frame.arguments;
    // SAFETY: the function reads them itself.
    unsafe {
        match kind {
            Kind::Open if matches!(function, known::OPENAT | known::OPENAT64) => {
                text_argument(second)
            }
            Kind::Open | Kind::Stat | Kind::LookupName => text_argument(first),
            Kind::Connect => socket_address(second, third),
            _ => &[],
        }
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

#[cfg(test)]
mod tests;
