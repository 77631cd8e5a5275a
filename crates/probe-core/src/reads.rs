//! Reads of what a token says of itself and of its objects: what is asked, and what is answered, as
//! digests under the run's own key; and calls that only ask how long an answer is.
//!
//! Of objects only public attributes are looked at ([`is_public_attribute`]): of a read that asks
//! for any other one nothing is known, not even a digest.

use core::hash::Hasher;

use crate::frame::Frame;
use crate::names::known;
use crate::program_memory::ProgramMemory;

/// Attributes of a template that are looked at, at most.
const MOST_ATTRIBUTES: u64 = 64;
/// Bytes of an attribute's value, and entries of a list, at most.
const LONGEST_VALUE: u64 = 1 << 16;
/// CK_UNAVAILABLE_INFORMATION, as a length.
const UNAVAILABLE: u64 = u64::MAX;

/// The detail of a call that only asks how long its answer is.
pub const ASKS_FOR_LENGTH: u64 = 1;

/// Whether an attribute says nothing of a secret or private key that its owner hides: what an
/// object is, what it is for, and the public parts of keys. CKA_VALUE and CKA_CHECK_VALUE are none
/// of them, since secret keys have them too.
pub fn is_public_attribute(kind: u64) -> bool {
    matches!(
        kind,
        // CKA_CLASS, CKA_TOKEN, CKA_PRIVATE, CKA_LABEL, CKA_UNIQUE_ID
        0x000..=0x004
        // CKA_APPLICATION, CKA_OBJECT_ID
        | 0x010 | 0x012
        // CKA_CERTIFICATE_TYPE, CKA_ISSUER, CKA_SERIAL_NUMBER
        | 0x080..=0x082
        // CKA_TRUSTED ... CKA_NAME_HASH_ALGORITHM
        | 0x086..=0x08C
        // CKA_KEY_TYPE, CKA_SUBJECT, CKA_ID, CKA_SENSITIVE, CKA_ENCRYPT ... CKA_DERIVE
        | 0x100..=0x10C
        // CKA_START_DATE, CKA_END_DATE
        | 0x110 | 0x111
        // CKA_MODULUS, CKA_MODULUS_BITS, CKA_PUBLIC_EXPONENT
        | 0x120..=0x122
        // CKA_PUBLIC_KEY_INFO
        | 0x129
        // CKA_VALUE_BITS, CKA_VALUE_LEN, CKA_EXTRACTABLE, CKA_LOCAL, CKA_NEVER_EXTRACTABLE,
        // CKA_ALWAYS_SENSITIVE, CKA_KEY_GEN_MECHANISM
        | 0x160..=0x166
        // CKA_MODIFIABLE, CKA_COPYABLE, CKA_DESTROYABLE
        | 0x170..=0x172
        // CKA_EC_PARAMS, CKA_EC_POINT
        | 0x180 | 0x181
        // CKA_ALWAYS_AUTHENTICATE, CKA_WRAP_WITH_TRUSTED
        | 0x202 | 0x210
    )
}

/// An entry of a template as C has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Attribute {
    /// CKA_…: which attribute.
    pub kind: u64,
    /// Where its value is, or goes; null: only its length is asked for.
    pub value: *mut u8,
    /// The value's length in bytes, or the room for it.
    pub length: u64,
}

/// The template of C_GetAttributeValue, where it is there and all of it may be looked at.
///
/// # Safety
/// The frame is a call of that function, and the slice is dropped before it returns.
pub unsafe fn public_template(
    frame: &Frame,
    memory: &ProgramMemory,
) -> Option<&'static mut [Attribute]> {
    let [_, _, template, count, ..] = frame.arguments;
    if !(1..=MOST_ATTRIBUTES).contains(&count) {
        return None;
    }
    let count = count as usize;
    if !memory.holds(template, count * size_of::<Attribute>()) {
        return None;
    }
    // SAFETY: as many attributes are there.
    let all = unsafe { core::slice::from_raw_parts_mut(template as *mut Attribute, count) };
    all.iter().all(|attribute| is_public_attribute(attribute.kind)).then_some(all)
}

/// What a C_GetAttributeValue asks for: object, attributes and the room for each. 0: of something
/// that is not looked at.
///
/// # Safety
/// The frame is a call of that function, which has not begun.
pub unsafe fn attribute_question(frame: &Frame, key: [u64; 2], memory: &ProgramMemory) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { template_question(frame, key, memory, |attribute| attribute.length) }
}

/// The same without the room, which a call that is over has overwritten.
///
/// # Safety
/// The frame is a call of that function.
pub unsafe fn attribute_subject(frame: &Frame, key: [u64; 2], memory: &ProgramMemory) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { template_question(frame, key, memory, |_| 0) }
}

/// # Safety
/// The frame is a call of C_GetAttributeValue.
unsafe fn template_question(
    frame: &Frame,
    key: [u64; 2],
    memory: &ProgramMemory,
    room: impl Fn(&Attribute) -> u64,
) -> u64 {
    // SAFETY: the caller's promise.
    let Some(template) = (unsafe { public_template(frame, memory) }) else { return 0 };
    let mut digest = keyed(key);
    digest.write_u64(frame.arguments[1]);
    for attribute in template {
        digest.write_u64(attribute.kind);
        digest.write_u64(if attribute.value.is_null() { UNAVAILABLE } else { room(attribute) });
    }
    // Not what a call that asks for a length is known by.
    digest.finish().max(ASKS_FOR_LENGTH + 1)
}

/// How many values were given (in the lower half; none: only lengths), and half of a digest of what
/// was answered. 0: nothing that is looked at.
///
/// # Safety
/// The frame is a call of C_GetAttributeValue, which has succeeded.
unsafe fn attribute_answer(frame: &Frame, key: [u64; 2], memory: &ProgramMemory) -> u64 {
    // SAFETY: the caller's promise.
    let Some(template) = (unsafe { public_template(frame, memory) }) else { return 0 };
    let mut digest = keyed(key);
    let mut values = 0;
    for attribute in template {
        digest.write_u64(attribute.length);
        if attribute.value.is_null() {
            continue;
        }
        // A module may say more than there was room for.
        let is_there = attribute.length <= LONGEST_VALUE
            && memory.holds_rest(attribute.value as u64, attribute.length as usize);
        if !is_there {
            return 0;
        }
        values += 1;
        // SAFETY: the function has just written there, and as many bytes are there.
        digest.write(unsafe {
            core::slice::from_raw_parts(attribute.value, attribute.length as usize)
        });
    }
    values | half(digest)
}

/// What was answered to a question that a program may ask again: 1, or the number of values, and in
/// the upper half a digest that is never 0. 0: it is no such call.
///
/// # Safety
/// The frame is a call of that function, which has succeeded.
pub unsafe fn answer_of_read(
    function: u32,
    frame: &Frame,
    key: [u64; 2],
    memory: &ProgramMemory,
) -> u64 {
    let [first, second, third, ..] = frame.arguments;
    // Counters and the token's clock are left out: they say that time has passed.
    let (at, parts): (u64, &[(usize, usize)]) = match function {
        // SAFETY: as above.
        known::C_GET_ATTRIBUTE_VALUE => return unsafe { attribute_answer(frame, key, memory) },
        known::C_GET_SLOT_LIST | known::C_GET_MECHANISM_LIST => {
            // SAFETY: as above.
            return unsafe { list_answer(second, third, key, memory) };
        }
        known::C_GET_INFO => (first, &[(0, 34), (40, 82)]),
        known::C_GET_SLOT_INFO => (second, &[(0, 108)]),
        known::C_GET_TOKEN_INFO => (second, &[(0, 112), (136, 152), (184, 188)]),
        known::C_GET_MECHANISM_INFO => (third, &[(0, 24)]),
        _ => return 0,
    };
    if at == 0 {
        return 0;
    }
    let mut digest = keyed(key);
    for (from, to) in parts {
        // SAFETY: inside the structure that the function has just written.
        digest
            .write(unsafe { core::slice::from_raw_parts((at as *const u8).add(*from), to - from) });
    }
    1 | half(digest)
}

/// # Safety
/// A function has just written both.
unsafe fn list_answer(list: u64, count: u64, key: [u64; 2], memory: &ProgramMemory) -> u64 {
    if count == 0 {
        return 0;
    }
    let mut digest = keyed(key);
    // SAFETY: the caller's promise.
    unsafe {
        let count = *(count as *const u64);
        digest.write_u64(count);
        if list != 0 && count <= LONGEST_VALUE && memory.holds_rest(list, count as usize * 8) {
            digest.write(core::slice::from_raw_parts(list as *const u8, count as usize * 8));
        }
    }
    u64::from(list != 0) | half(digest)
}

/// Whether a call only asks how long its answer is: the place for it is null (PKCS#11, 5.2).
pub fn asks_for_length(function: u32, frame: &Frame) -> bool {
    let [_, second, third, fourth, fifth, sixth] = frame.arguments;
    match function {
        known::C_ENCRYPT
        | known::C_DECRYPT
        | known::C_SIGN
        | known::C_SIGN_RECOVER
        | known::C_VERIFY_RECOVER
        | known::C_DIGEST
        | known::C_ENCRYPT_UPDATE
        | known::C_DECRYPT_UPDATE => fourth == 0 && fifth != 0,
        known::C_ENCRYPT_FINAL
        | known::C_DECRYPT_FINAL
        | known::C_SIGN_FINAL
        | known::C_DIGEST_FINAL
        | known::C_GET_OPERATION_STATE
        | known::C_GET_SLOT_LIST
        | known::C_GET_MECHANISM_LIST => second == 0 && third != 0,
        known::C_WRAP_KEY => fifth == 0 && sixth != 0,
        _ => false,
    }
}

#[allow(deprecated, reason = "SipHash-2-4 with a key, which has no other name in core")]
fn keyed([first, second]: [u64; 2]) -> core::hash::SipHasher {
    core::hash::SipHasher::new_with_keys(first, second)
}

/// The upper half of a word; never 0.
fn half(digest: impl Hasher) -> u64 {
    (digest.finish() >> 32).max(1) << 32
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    const KEY: [u64; 2] = [1, 2];
    const CKA_LABEL: u64 = 3;
    const CKA_VALUE: u64 = 0x11;

    fn number(name: &str) -> u32 {
        crate::names::function_number(name.as_bytes()).unwrap() as u32
    }

    fn called(name: &str, arguments: [u64; 6]) -> Frame {
        Frame::new(number(name), arguments)
    }

    /// All that tests point to is there.
    fn memory() -> ProgramMemory {
        ProgramMemory::of_call(&Frame::new(0, [0; 6]), |_| true)
    }

    fn at<T>(value: &T) -> u64 {
        core::ptr::from_ref(value) as u64
    }

    /// Question and answer of a read of one attribute, which has that value and that room.
    fn read(object: u64, kind: u64, value: &[u8], room: Option<u64>, key: [u64; 2]) -> (u64, u64) {
        let mut bytes = value.to_vec();
        let to = if room.is_some() { bytes.as_mut_ptr() } else { core::ptr::null_mut() };
        let mut template = [Attribute { kind, value: to, length: room.unwrap_or_default() }];
        let asked = template.as_mut_ptr();
        let frame = called("C_GetAttributeValue", [1, object, asked as u64, 1, 0, 0]);
        // SAFETY: a template of one attribute, whose value is as long as it says.
        let question = unsafe { attribute_question(&frame, key, &memory()) };
        // SAFETY: it points to the attribute above, as the frame does.
        unsafe { (*asked).length = value.len() as u64 };
        // SAFETY: as above.
        (question, unsafe { answer_of_read(frame.function, &frame, key, &memory()) })
    }

    #[test]
    fn a_read_is_the_same_with_the_same_object_attributes_room_and_answer() {
        let label = read(5, CKA_LABEL, b"key", Some(64), KEY);
        assert_eq!(read(5, CKA_LABEL, b"key", Some(64), KEY), label);
        assert_eq!(label.1 as u32, 1, "one value");
        for other in [
            read(6, CKA_LABEL, b"key", Some(64), KEY),
            read(5, 0x102, b"key", Some(64), KEY),
            read(5, CKA_LABEL, b"key", Some(32), KEY),
            read(5, CKA_LABEL, b"key", None, KEY),
            read(5, CKA_LABEL, b"key", Some(64), [1, 3]),
        ] {
            assert_ne!(other.0, label.0);
            assert!(other.0 > ASKS_FOR_LENGTH);
        }
        assert_ne!(read(5, CKA_LABEL, b"kez", Some(64), KEY).1, label.1);
        assert_eq!(read(5, CKA_LABEL, b"key", None, KEY).1 as u32, 0, "a length alone");
    }

    #[test]
    fn of_what_a_key_hides_there_is_not_even_a_digest() {
        // CKA_VALUE, CKA_CHECK_VALUE, CKA_PRIVATE_EXPONENT to CKA_COEFFICIENT, a vendor's own.
        for kind in [CKA_VALUE, 0x90, 0x123, 0x124, 0x125, 0x126, 0x127, 0x128, 0x8000_0001] {
            assert_eq!(read(5, kind, b"secret", Some(64), KEY), (0, 0), "{kind:#x}");
        }
        let value = *b"secret";
        let public = Attribute { kind: CKA_LABEL, value: value.as_ptr().cast_mut(), length: 6 };
        let both = [public, Attribute { kind: CKA_VALUE, ..public }];
        let frame = called("C_GetAttributeValue", [1, 5, at(&both), 2, 0, 0]);
        // SAFETY: two attributes.
        assert_eq!(unsafe { attribute_question(&frame, KEY, &memory()) }, 0);
        // SAFETY: none are looked at.
        let none = |template, count| unsafe {
            let frame = called("C_GetAttributeValue", [1, 5, template, count, 0, 0]);
            attribute_question(&frame, KEY, &memory())
        };
        assert_eq!((none(0, 1), none(8, 0), none(8, MOST_ATTRIBUTES + 1)), (0, 0, 0));
    }

    fn answered(name: &str, arguments: [u64; 6]) -> u64 {
        let frame = called(name, arguments);
        // SAFETY: tests pass what the function has written.
        unsafe { answer_of_read(frame.function, &frame, KEY, &memory()) }
    }

    #[test]
    fn what_a_token_says_of_itself_is_compared_without_its_counters_and_its_clock() {
        let with = |place: usize| {
            let mut info = [0_u8; 208];
            info[place] = 1;
            answered("C_GetTokenInfo", [1, at(&info), 0, 0, 0, 0])
        };
        let none = answered("C_GetTokenInfo", [1, at(&[0_u8; 208]), 0, 0, 0, 0]);
        // Label, flags, the longest PIN, a version.
        for place in [0, 96, 136, 184] {
            assert_ne!(with(place), none, "{place}");
        }
        // Sessions, free memory, utcTime.
        for place in [112, 128, 160, 190] {
            assert_eq!(with(place), none, "{place}");
        }
        assert_eq!(answered("C_GetTokenInfo", [1, 0, 0, 0, 0, 0]), 0);
        assert_eq!(answered("C_Sign", [1; 6]), 0);
    }

    #[test]
    fn lists_are_compared_as_a_whole() {
        let list = |slots: &[u64], to_list: bool| {
            let count = slots.len() as u64;
            let at_slots = if to_list { slots.as_ptr() as u64 } else { 0 };
            answered("C_GetSlotList", [1, at_slots, at(&count), 0, 0, 0])
        };
        let both: Vec<u64> = vec![7, 8];
        assert_eq!(list(&both, true), list(&both.clone(), true));
        assert_ne!(list(&both, true), list(&[7, 9], true));
        assert_ne!(list(&both, false), list(&[7], false));
        assert_eq!((list(&both, true) as u32, list(&both, false) as u32), (1, 0));
    }

    #[test]
    fn a_null_pointer_asks_for_a_length() {
        for (name, place) in [
            ("C_Sign", 3),
            ("C_Encrypt", 3),
            ("C_DigestFinal", 1),
            ("C_SignFinal", 1),
            ("C_GetSlotList", 1),
            ("C_WrapKey", 4),
        ] {
            let mut arguments = [9; 6];
            assert!(!asks_for_length(number(name), &called(name, arguments)), "{name}");
            arguments[place] = 0;
            assert!(asks_for_length(number(name), &called(name, arguments)), "{name}");
            // Nor is there a place for the length: a mistake.
            arguments[place + 1] = 0;
            assert!(!asks_for_length(number(name), &called(name, arguments)), "{name}");
        }
        assert!(!asks_for_length(number("C_SignInit"), &called("C_SignInit", [0; 6])));
    }
}
