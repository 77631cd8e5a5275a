//! What is kept of a call's arguments and results: numbers, names and lengths; of APDUs the header,
//! and of data only what tells which object is read. No PIN, no key, no data of other commands.

mod libc;
mod template;

pub use self::libc::{
    DescriptorChange, LeafWords, capture_leaf, descriptor_change, does_not_wait, has_found_path,
    leaf_bytes, path_argument, polled_descriptor, taken_bits,
};
pub use self::template::{
    OTHER_ATTRIBUTES, SHAPE_BITS, SHAPED_ATTRIBUTES, TemplateValues, template_digest,
    template_shape,
};

use self::template::{small_handle, token_attribute};
use crate::apdu::{LONGEST_APDU, fnv1a, kept_of_command, only_reads, response_word};
use crate::frame::Frame;
use crate::names::known;
use crate::program_memory::ProgramMemory;
use crate::reads::{ASKS_FOR_LENGTH, answer_of_read, asks_for_length, attribute_question};
use crate::wire::{ENTER_WORDS, FLAG_LENGTH, FLAG_TOKEN, MOST_BYTES};

/// Words of an event of a call's beginning, behind its head.
const WORDS: usize = ENTER_WORDS - 2;

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

impl Exchange {
    /// The command that is about to be sent; empty where it is not there.
    ///
    /// # Safety
    /// The call has not returned, and the result is dropped before.
    pub unsafe fn command_in<'a>(&self, memory: &ProgramMemory) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { memory.bytes(self.command as u64, self.sent) }.unwrap_or_default()
    }
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
pub unsafe fn capture_beginning(
    function: u32,
    frame: &Frame,
    rules: CaptureRules,
    memory: &ProgramMemory,
) -> Beginning {
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
            // SAFETY: the caller's promise.
            words[1] = unsafe { memory.words::<1>(second) }.map_or(0, |[mechanism]| mechanism);
            words[2] = if takes_key(function) { third } else { 0 };
        }
        known::C_FIND_OBJECTS_INIT => {
            // SAFETY: as many attributes as the caller says.
            words[1] = unsafe { template_digest(second, third, rules.key, memory) };
            // SAFETY: as above.
            words[2] = unsafe { template_shape(second, third, TemplateValues::Given, memory) };
        }
        known::C_GET_ATTRIBUTE_VALUE => {
            // SAFETY: as many attributes as the caller says.
            words[1] = unsafe { attribute_question(frame, rules.key, memory) };
            // SAFETY: as above.
            let shape = unsafe {
                template_shape(third, frame.arguments[3], TemplateValues::AskedFor, memory)
            };
            words[2] = shape | small_handle(second) << SHAPE_BITS;
        }
        known::C_FIND_OBJECTS => words[2] = third,
        known::C_GET_INFO => words = [0; WORDS],
        _ if asks_for_length(function, frame) => {
            words[1] = ASKS_FOR_LENGTH;
            words[2] = if has_input(function) { third } else { 0 };
        }
        known::SCARD_CONNECT => {
            // SAFETY: the caller's promise.
            bytes = unsafe { memory.text(second, MOST_BYTES) };
        }
        known::SCARD_TRANSMIT | known::IFDH_TRANSMIT => {
            // SAFETY: a call of that function.
            if let Some(exchange) = unsafe { apdu_exchange(function, frame) } {
                // SAFETY: as above.
                let command = unsafe { exchange.command_in(memory) };
                words[1] = if only_reads(command) { fnv1a(command) } else { 0 };
                words[2] = exchange.sent as u64;
                bytes = kept_of_command(command, rules.options);
            }
        }
        _ => words[2] = if has_input(function) { third } else { 0 },
    }
    // SAFETY: a call of that function.
    let on_token = unsafe { makes_token_object(function, frame, memory) };
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

/// Of the program's half of the address space, above what a number could be.
fn is_address(word: u64) -> bool {
    (1 << 32..1 << 47).contains(&word)
}

/// Whether a template of new objects says that they stay on the token.
///
/// # Safety
/// The frame is a call of that function.
unsafe fn makes_token_object(function: u32, frame: &Frame, memory: &ProgramMemory) -> bool {
    let [_, first, second, third, fourth, fifth] = frame.arguments;
    let is_on_token = |template, count| {
        // SAFETY: the caller's promise.
        unsafe { token_attribute(template, count, memory) == Some(true) }
    };
    // SAFETY: as above; C_UnwrapKey has arguments on the stack.
    unsafe {
        match function {
            known::C_CREATE_OBJECT => is_on_token(first, second),
            // Where the template says nothing, a copy is where its original is.
            known::C_COPY_OBJECT => token_attribute(second, third, memory) != Some(false),
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

/// A word for the event of a call's end.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub unsafe fn capture_end(
    function: u32,
    frame: &Frame,
    rules: CaptureRules,
    memory: &ProgramMemory,
) -> u64 {
    let [_, second, _, third, fourth, _] = frame.arguments;
    if frame.result != 0 {
        return 0;
    }
    if function == known::C_FIND_OBJECTS {
        let most = frame.arguments[2];
        // SAFETY: a call of that function, which has succeeded.
        return unsafe { found_objects(second as *const u64, most, third as *const u64) };
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
        // Some mechanisms leave keys elsewhere and do not look at it (CKM_TLS12_KEY_AND_MAC_DERIVE).
        known::C_DERIVE_KEY if memory.holds(frame.arguments[5], 8) => frame.arguments[5],
        known::C_DERIVE_KEY => 0,
        // The count of the template, and where the key's handle goes; or where those of both do.
        known::C_UNWRAP_KEY | known::C_GENERATE_KEY_PAIR => stacked(1),
        _ if output_place(function).is_some() => {
            output_place(function).map_or(0, |place| frame.arguments[place + 1])
        }
        known::SCARD_ESTABLISH_CONTEXT => third,
        known::SCARD_TRANSMIT | known::IFDH_TRANSMIT => {
            // SAFETY: a call of that function, which has succeeded.
            return unsafe {
                apdu_exchange(function, frame).map_or(0, |over| response_of(over, memory))
            };
        }
        // SAFETY: as above.
        _ => return unsafe { answer_of_read(function, frame, rules.key, memory) },
    } as *const u64;
    // SAFETY: where the function has just written its result.
    if out.is_null() { 0 } else { unsafe { *out } }
}

/// How many objects were found, of so many at `most`, and half of a hash of their handles.
///
/// # Safety
/// Where C_FindObjects has just written its result.
unsafe fn found_objects(objects: *const u64, most: u64, count: *const u64) -> u64 {
    const MOST: u64 = 1 << 16;
    if objects.is_null() || count.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        // A module may say more than there is room for.
        let count = (*count).min(most).min(MOST);
        let handles = core::slice::from_raw_parts(objects.cast::<u8>(), count as usize * 8);
        count | fnv1a(handles) << 32
    }
}

/// Status word, length, and half of a hash.
///
/// # Safety
/// The exchange is over.
unsafe fn response_of(exchange: Exchange, memory: &ProgramMemory) -> u64 {
    // SAFETY: the response's length and as many bytes.
    let response = unsafe {
        let length = *exchange.received as usize;
        let is_there = memory.holds_rest(exchange.response as u64, length);
        if exchange.response.is_null() || length > LONGEST_APDU || !is_there {
            return 0;
        }
        core::slice::from_raw_parts(exchange.response, length)
    };
    response_word(response)
}

#[cfg(test)]
mod tests;
