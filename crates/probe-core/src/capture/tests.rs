//! Calls as a program makes them, and what is kept of each.

use core::ptr;
use core::sync::atomic::AtomicU32;
use std::vec::Vec;

mod absent;

use super::libc::{LONGEST_ADDRESS, first_in_set, timespec_nanos};
use super::template::LONGEST_TEMPLATE;
use super::*;
use crate::functions::{FUNCTIONS, Family};
use crate::program_memory::ProgramMemory;
use crate::wire::{CAPTURE_DATA, FLAG_LENGTH, MOST_BYTES};

fn number(name: &str) -> u32 {
    crate::names::function_number(name.as_bytes()).unwrap() as u32
}

fn call(name: &str, arguments: [u64; 6]) -> Frame {
    Frame::new(number(name), arguments)
}

/// All that tests point to is there.
fn memory() -> ProgramMemory {
    ProgramMemory::of_call(&Frame::new(0, [0; 6]), |_| true)
}

/// The beginning of a call that reads nothing but its own arguments.
fn beginning(frame: &Frame, options: u32) -> Beginning {
    // SAFETY: tests pass what the function is given.
    unsafe { capture_beginning(frame.function, frame, rules(options), &memory()) }
}

fn rules(options: u32) -> CaptureRules {
    CaptureRules { options, key: [1, 2] }
}

fn end(frame: &Frame) -> u64 {
    // SAFETY: tests pass what the function is given.
    unsafe { capture_end(frame.function, frame, rules(0), &memory()) }
}

fn leaf(name: &str, arguments: [u64; 6]) -> LeafWords {
    let frame = call(name, arguments);
    let kind = crate::names::libc_kind(frame.function).unwrap();
    // SAFETY: tests pass what the function is given.
    unsafe { capture_leaf(frame.function, kind, &frame, &memory()) }
}

fn at<T>(value: &T) -> u64 {
    ptr::from_ref(value) as u64
}

/// An exchange of SCardTransmit, or of the driver, with all that it points to.
struct Transmit {
    frame: Frame,
    _stack: Vec<u64>,
    _received: Vec<u64>,
}

impl Transmit {
    fn new(name: &str, command: &[u8], response: &[u8]) -> Self {
        let mut received = std::vec![response.len() as u64];
        let stack = std::vec![received.as_mut_ptr() as u64];
        let [command, sent] = [command.as_ptr() as u64, command.len() as u64];
        let arguments = match name {
            "SCardTransmit" => [5, 0, command, sent, 0, response.as_ptr() as u64],
            _ => [5, 0, 0, command, sent, response.as_ptr() as u64],
        };
        let mut frame = call(name, arguments);
        frame.stack = stack.as_ptr();
        Self { frame, _stack: stack, _received: received }
    }
}

#[test]
fn a_mechanism_is_kept_by_its_type() {
    let mechanism = [0x1087_u64, 0, 0];
    let all = [
        "C_EncryptInit",
        "C_DecryptInit",
        "C_DigestInit",
        "C_SignInit",
        "C_SignRecoverInit",
        "C_VerifyInit",
        "C_VerifyRecoverInit",
        "C_GenerateKey",
        "C_GenerateKeyPair",
        "C_WrapKey",
        "C_UnwrapKey",
        "C_DeriveKey",
    ];
    for name in all {
        let stack = [0_u64];
        let mut frame = call(name, [7, at(&mechanism), 0, 0, 0, 0]);
        frame.stack = stack.as_ptr();
        assert_eq!(beginning(&frame, 0).words, [7, 0x1087, 0], "{name}");
        frame.arguments[1] = 0;
        assert_eq!(beginning(&frame, 0).words, [7, 0, 0], "{name} without one");
    }
}

#[test]
fn numbers_are_kept_and_addresses_are_not() {
    let second = |second| beginning(&call("C_CloseSession", [7, second, 0, 0, 0, 0]), 0).words[1];
    assert_eq!(second(9), 9);
    assert_eq!(second((1 << 32) - 1), (1 << 32) - 1);
    assert_eq!(second(1 << 32), 0);
    assert_eq!(second((1 << 47) - 1), 0);
    assert_eq!(second(1 << 47), 1 << 47);
}

#[test]
fn a_reader_is_kept_by_its_name() {
    let name = b"Virtual PCD 00 00\0";
    let frame = call("SCardConnect", [7, at(name), 0, 0, 0, 0]);
    assert_eq!(beginning(&frame, 0).bytes, b"Virtual PCD 00 00");
}

#[test]
fn of_a_command_the_header_is_kept_and_never_a_pin() {
    let verify = [0x00, 0x20, 0x00, 0x80, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    for name in ["SCardTransmit", "IFDHTransmitToICC"] {
        let transmit = Transmit::new(name, &verify, &[]);
        let kept = beginning(&transmit.frame, CAPTURE_DATA);
        assert_eq!(kept.bytes, &verify[..5], "{name}");
        assert_eq!(kept.words, [5, 0, 13], "no hash of a PIN");
    }
}

#[test]
fn a_reading_command_is_kept_with_a_hash() {
    let select = [0x00, 0xA4, 4, 0, 5, 0xA0, 0, 0, 3, 8];
    let transmit = Transmit::new("SCardTransmit", &select, &[]);
    let kept = beginning(&transmit.frame, 0);
    assert_eq!(kept.bytes, select);
    assert_eq!(kept.words, [5, fnv1a(&select), 10]);
}

#[test]
fn what_is_no_exchange_is_not_looked_at() {
    let mut transmit = Transmit::new("SCardTransmit", &[0x00, 0xA4], &[0x90, 0]);
    transmit.frame.arguments[2] = 0;
    assert_eq!(beginning(&transmit.frame, 0).bytes, b"");
    let mut transmit = Transmit::new("SCardTransmit", &[0x00, 0xA4], &[0x90, 0]);
    transmit.frame.arguments[3] = LONGEST_APDU as u64 + 1;
    assert_eq!(beginning(&transmit.frame, 0).words[2], 0);
    let transmit = Transmit::new("SCardTransmit", &[0x00, 0xA4], &[0x90, 0]);
    // SAFETY: a call with an argument on the stack.
    assert!(unsafe { apdu_exchange(number("SCardStatus"), &transmit.frame) }.is_none());
    // SAFETY: as above.
    assert!(unsafe { apdu_exchange(number("SCardTransmit"), &transmit.frame) }.is_some());
}

#[test]
fn a_command_of_the_longest_length_is_one() {
    let command = std::vec![0_u8; LONGEST_APDU];
    let transmit = Transmit::new("SCardTransmit", &command, &[]);
    assert_eq!(beginning(&transmit.frame, 0).words[2], LONGEST_APDU as u64);
}

#[test]
fn the_end_of_an_exchange_is_its_response() {
    for name in ["SCardTransmit", "IFDHTransmitToICC"] {
        let response = [1, 2, 0x61, 0x10];
        let mut transmit = Transmit::new(name, &[0, 0xB0], &response);
        assert_eq!(end(&transmit.frame), response_word(&response), "{name}");
        transmit.frame.result = 1;
        assert_eq!(end(&transmit.frame), 0, "{name} that failed");
        transmit.frame.result = 0;
        transmit.frame.arguments[5] = 0;
        assert_eq!(end(&transmit.frame), 0, "{name} without a response");
    }
}

#[test]
fn the_longest_response_is_looked_at_and_no_longer_one() {
    let response = std::vec![0_u8; LONGEST_APDU + 1];
    let fits = Transmit::new("SCardTransmit", &[0, 0xB0], &response[..LONGEST_APDU]);
    assert_ne!(end(&fits.frame), 0);
    let too_long = Transmit::new("SCardTransmit", &[0, 0xB0], &response);
    assert_eq!(end(&too_long.frame), 0);
}

#[test]
fn handles_are_read_where_functions_leave_them() {
    let handle = 0x77_u64;
    for (name, argument) in
        [("C_OpenSession", 4), ("SCardConnect", 4), ("SCardEstablishContext", 3)]
    {
        let mut arguments = [0; 6];
        arguments[argument] = at(&handle);
        let mut frame = call(name, arguments);
        assert_eq!(end(&frame), 0x77, "{name}");
        frame.result = 5;
        assert_eq!(end(&frame), 0, "{name} that failed");
        assert_eq!(end(&call(name, [0; 6])), 0, "{name} with null");
    }
    assert_eq!(end(&call("C_GetInfo", [0, 0, 0, at(&handle), at(&handle), 0])), 0);
    // C_GenerateKeyPair and C_UnwrapKey leave it behind their eighth argument.
    let stack = [0, at(&handle)];
    for name in ["C_GenerateKeyPair", "C_UnwrapKey"] {
        let mut frame = call(name, [0; 6]);
        frame.stack = stack.as_ptr();
        assert_eq!(end(&frame), 0x77, "{name}");
    }
}

#[test]
fn of_operations_keys_and_lengths_are_kept() {
    let mechanism = [0x1087_u64, 0, 0];
    for (name, key) in [("C_SignInit", 9), ("C_DecryptInit", 9), ("C_DigestInit", 0)] {
        let frame = call(name, [7, at(&mechanism), 9, 0, 0, 0]);
        assert_eq!(beginning(&frame, 0).words, [7, 0x1087, key], "{name}");
    }
    let length = 256_u64;
    let room = [0_u8; 8];
    for (name, place) in [("C_Sign", 3), ("C_Encrypt", 3), ("C_SignFinal", 1)] {
        let mut arguments = [7, 1, 32, 0, 0, 0];
        arguments[place] = at(&room);
        arguments[place + 1] = at(&length);
        let frame = call(name, arguments);
        assert_eq!((beginning(&frame, 0).flags, end(&frame)), (0, 256), "{name}");
        arguments[place] = 0;
        let frame = call(name, arguments);
        assert_eq!((beginning(&frame, 0).flags, end(&frame)), (FLAG_LENGTH, 256), "{name}");
    }
    assert_eq!(beginning(&call("C_Sign", [7, 1, 32, 1, 1, 0]), 0).words[2], 32);
    assert_eq!(end(&call("C_Verify", [7, 1, 32, 1, 256, 0])), 256);
    let login = beginning(&call("C_Login", [7, 1, at(&room), 8, 0, 0]), 0);
    assert_eq!(login.words, [7, 1, 0], "no trace of a PIN");
}

#[test]
fn a_template_is_known_by_which_attributes_it_has() {
    let class = 3_u64;
    let template = [[0x0, at(&class), 8], [0x3, at(&class), 7], [0x7777, at(&class), 8]];
    let find = call("C_FindObjectsInit", [7, at(&template), 3, 0, 0, 0]);
    let expected = 1 | 1 << 3 | OTHER_ATTRIBUTES | 3 << 16 | 4 << 24;
    assert_eq!(beginning(&find, 0).words[2], expected);
    let lengths = [[0x11_u64, 0, 0]];
    let ask = call("C_GetAttributeValue", [7, 12, at(&lengths), 1, 0, 0]);
    let words = beginning(&ask, 0).words;
    assert_eq!(words[2], 1 << 6 | 1 << 16 | 1 << 40 | 12 << SHAPE_BITS);
    // Room for a class: what is in it is anything.
    let room = [[0x0, at(&class), 8]];
    let ask = call("C_GetAttributeValue", [7, 0, at(&room), 1, 0, 0]);
    assert_eq!(beginning(&ask, 0).words[2], 1 | 1 << 16);
    let all = call("C_FindObjectsInit", [7, 0, 0, 0, 0, 0]);
    assert_eq!(beginning(&all, 0).words[2], 0);
}

/// CK_ATTRIBUTE of CKA_TOKEN with that value, behind another.
struct Template {
    attributes: Vec<[u64; 3]>,
    _value: Vec<u8>,
}

impl Template {
    fn with_token(value: u8) -> Self {
        let value = std::vec![value];
        let address = value.as_ptr() as u64;
        Self { attributes: std::vec![[0, address, 1], [1, address, 1]], _value: value }
    }
}

#[test]
fn objects_on_the_token_are_told_by_their_template() {
    let on_token = |name: &str, template: [u64; 2], place: usize| {
        let mut arguments = [7, 0, 0, 0, 0, 0];
        let mut stack = [0_u64; 2];
        for (at, word) in template.into_iter().enumerate() {
            match place + at {
                place @ 0..6 => arguments[place] = word,
                place => stack[place - 6] = word,
            }
        }
        let mut frame = call(name, arguments);
        frame.stack = stack.as_ptr();
        beginning(&frame, 0).flags == FLAG_TOKEN
    };
    for (name, place) in [
        ("C_CreateObject", 1),
        ("C_CopyObject", 2),
        ("C_GenerateKey", 2),
        ("C_GenerateKeyPair", 2),
        ("C_GenerateKeyPair", 4),
        ("C_DeriveKey", 3),
        ("C_UnwrapKey", 5),
    ] {
        let stays = Template::with_token(1);
        let goes = Template::with_token(0);
        let template = |template: &Template, count| [template.attributes.as_ptr() as u64, count];
        assert!(on_token(name, template(&stays, 2), place), "{name} {place}");
        assert!(!on_token(name, template(&goes, 2), place), "{name} {place}");
        // A copy is where its original is, unless the template says otherwise.
        let unsaid = name == "C_CopyObject";
        assert_eq!(on_token(name, template(&stays, 1), place), unsaid, "{name} {place}");
        assert_eq!(on_token(name, [0, 2], place), unsaid, "{name} {place}");
    }
    for name in ["C_UnwrapKeyAuthenticated", "C_EncapsulateKey", "C_DecapsulateKey"] {
        assert!(on_token(name, [0, 0], 2), "{name}");
    }
    assert!(!on_token("C_Sign", [0, 0], 2));
}

#[test]
fn an_attribute_without_a_value_says_nothing() {
    let value = 1_u8;
    for attribute in [[1, 0, 1], [1, at(&value), 0], [2, at(&value), 1]] {
        // SAFETY: one attribute.
        assert_eq!(unsafe { token_attribute(at(&attribute), 1, &memory()) }, None, "{attribute:?}");
    }
    // SAFETY: one attribute.
    assert_eq!(unsafe { token_attribute(at(&[1, at(&value), 1]), 1, &memory()) }, Some(true));
}

#[test]
fn only_so_many_attributes_are_looked_at() {
    let value = 1_u8;
    let mut template = std::vec![[0_u64, 0, 0]; LONGEST_TEMPLATE as usize + 1];
    template[LONGEST_TEMPLATE as usize] = [1, at(&value), 1];
    let address = template.as_ptr() as u64;
    // SAFETY: as many attributes.
    assert_eq!(unsafe { token_attribute(address, LONGEST_TEMPLATE + 1, &memory()) }, None);
    template[LONGEST_TEMPLATE as usize - 1] = [1, at(&value), 1];
    let address = template.as_ptr() as u64;
    // SAFETY: as many attributes.
    assert_eq!(unsafe { token_attribute(address, LONGEST_TEMPLATE + 1, &memory()) }, Some(true));
}

#[test]
fn sleeps_are_kept_in_nanoseconds() {
    let time = [2_u64, 5];
    assert_eq!(leaf("sleep", [3, 0, 0, 0, 0, 0]).b, 3_000_000_000);
    assert_eq!(leaf("usleep", [3 | 1 << 40, 0, 0, 0, 0, 0]).b, 3_000, "32 bits");
    assert_eq!(leaf("nanosleep", [at(&time), 0, 0, 0, 0, 0]).b, 2_000_000_005);
    assert_eq!(leaf("clock_nanosleep", [0, 0, at(&time), 0, 0, 0]).b, 2_000_000_005);
    // TIMER_ABSTIME: until a moment.
    assert_eq!(leaf("clock_nanosleep", [0, 1, at(&time), 0, 0, 0]).b, 0);
}

#[test]
fn polls_are_kept_with_their_first_descriptor_and_their_limit() {
    let polled = [9_u32, 1, 4, 1];
    let time = [2_u64, 5];
    let both = |name, arguments| {
        let LeafWords { a, b } = leaf(name, arguments);
        (a, b)
    };
    for name in ["poll", "__poll_chk"] {
        assert_eq!(both(name, [at(&polled), 2, 3, 0, 0, 0]).1, 3_000_000, "{name}");
        let forever = u64::from(-1_i32 as u32);
        assert_eq!(both(name, [at(&polled), 2, forever, 0, 0, 0]).1, u64::MAX, "{name}");
        assert_eq!(both(name, [0, 2, 0, 0, 0, 0]), (u64::MAX, 0), "{name}");
        assert_eq!(both(name, [at(&polled), 0, 0, 0, 0, 0]), (u64::MAX, 0), "{name}");
    }
    assert_eq!(both("ppoll", [at(&polled), 2, at(&time), 0, 0, 0]).1, 2_000_000_005);
    assert_eq!(both("ppoll", [at(&polled), 2, 0, 0, 0, 0]).1, u64::MAX);
    let set = [0_u64, 1 << 6 | 1 << 9];
    assert_eq!(both("select", [100, at(&set), 0, 0, at(&time), 0]), (70, 2_000_005_000));
    assert_eq!(both("pselect", [100, at(&set), 0, 0, at(&time), 0]), (70, 2_000_000_005));
    assert_eq!(both("select", [64, at(&set), 0, 0, at(&time), 0]).0, u64::MAX, "not past its end");
    assert_eq!(both("select", [100, 0, 0, 0, 0, 0]), (u64::MAX, u64::MAX));
    assert_eq!(both("epoll_wait", [7, 0, 0, 4, 0, 0]), (7, 4_000_000));
}

#[test]
fn what_was_polled_is_read_when_the_kernel_has_read_it() {
    let polled = [9_u32, 1, 4, 1];
    let over = |name, count, result: i32| {
        let mut frame = call(name, [at(&polled), count, 3, 0, 0, 0]);
        frame.result = u64::from(result as u32);
        // SAFETY: two are polled.
        unsafe { polled_descriptor(frame.function, &frame) }
    };
    for name in ["poll", "__poll_chk", "ppoll"] {
        assert_eq!(over(name, 2, 0), Some(9), "{name}");
        assert_eq!(over(name, 2, 1), Some(9), "{name}");
        assert_eq!(over(name, 0, 0), Some(u64::MAX), "{name}");
        assert_eq!(over(name, 2, -1), None, "{name}");
    }
    assert_eq!(over("epoll_wait", 2, 0), None);
}

#[test]
fn a_set_of_descriptors_has_1024_at_most() {
    let mut set = [0_u64; 17];
    set[16] = 1;
    // SAFETY: the set is as long.
    assert_eq!(unsafe { first_in_set(5_000, at(&set), &memory()) }, u64::MAX);
    set[15] = 1 << 63;
    // SAFETY: as above.
    assert_eq!(unsafe { first_in_set(5_000, at(&set), &memory()) }, 1023);
}

#[test]
fn a_time_that_is_too_long_is_for_ever() {
    let time = [u64::MAX / 2, 5];
    // SAFETY: two words.
    assert_eq!(unsafe { timespec_nanos(at(&time), 1, &memory()) }, u64::MAX);
    // SAFETY: null is allowed.
    assert_eq!(unsafe { timespec_nanos(0, 1, &memory()) }, u64::MAX);
}

#[test]
fn descriptors_have_32_bits_and_lengths_64() {
    let words = |name, arguments| {
        let LeafWords { a, b } = leaf(name, arguments);
        (a, b)
    };
    let arguments = [3 | 1 << 40, 4, 5, 6, 7, 8];
    for name in ["read", "recv", "recvfrom", "write", "send", "sendto"] {
        assert_eq!(words(name, arguments), (3, 5), "{name}");
    }
    for name in ["recvmsg", "sendmsg", "close", "connect", "getpwuid"] {
        assert_eq!(words(name, arguments), (3, 0), "{name}");
    }
    assert_eq!(words("flock", arguments), (3, 4));
    assert_eq!(words("pthread_mutex_lock", arguments), (3 | 1 << 40, 0));
    for name in ["clock_gettime", "open", "stat", "getpwnam"] {
        assert_eq!(words(name, arguments), (0, 0), "{name}");
    }
}

#[test]
fn every_function_of_libc_has_words() {
    for function in FUNCTIONS {
        if let Family::Libc(_) = function.family {
            leaf(function.name, [0, 1, 0, 0, 0, 0]);
        }
    }
}

#[test]
fn paths_names_and_addresses_are_kept() {
    let bytes = |name: &str, arguments| {
        let frame = call(name, arguments);
        let kind = crate::names::libc_kind(frame.function).unwrap();
        // SAFETY: tests pass what the function is given.
        unsafe { leaf_bytes(frame.function, kind, &frame, &memory()) }
    };
    let path = b"/etc/opensc.conf\0";
    for name in ["open", "open64", "fopen", "opendir", "stat", "access", "getpwnam"] {
        assert_eq!(bytes(name, [at(path), 0, 0, 0, 0, 0]), b"/etc/opensc.conf", "{name}");
    }
    for name in ["openat", "openat64"] {
        assert_eq!(bytes(name, [5, at(path), 0, 0, 0, 0]), b"/etc/opensc.conf", "{name}");
    }
    assert_eq!(bytes("open", [0; 6]), b"");
    assert_eq!(bytes("read", [3, at(path), 5, 0, 0, 0]), b"", "what is read is nobody's business");
    let address = [1_u8; 200];
    assert_eq!(bytes("connect", [3, at(&address), 16, 0, 0, 0]).len(), 16);
    assert_eq!(bytes("connect", [3, at(&address), 200, 0, 0, 0]).len(), LONGEST_ADDRESS);
    assert_eq!(bytes("connect", [3, 0, 16, 0, 0, 0]), b"");
    let long = [b'x'; MOST_BYTES + 4];
    assert_eq!(bytes("open", [at(&long), 0, 0, 0, 0, 0]).len(), MOST_BYTES);
}

#[test]
fn a_lock_is_free_when_its_first_word_says_so() {
    let is_free = |name: &str, word: u32| {
        let word = AtomicU32::new(word);
        let frame = call(name, [at(&word), 0, 0, 0, 0, 0]);
        // SAFETY: the argument points to a word.
        unsafe { does_not_wait(frame.function, &frame) }
    };
    assert!(is_free("pthread_mutex_lock", 0));
    assert!(!is_free("pthread_mutex_lock", 1));
    assert!(!is_free("pthread_mutex_lock", 1 << 31));
    // Bit 1: a writer; from bit 3: readers.
    assert!(is_free("pthread_rwlock_rdlock", 8));
    assert!(is_free("pthread_rwlock_rdlock", 0));
    assert!(!is_free("pthread_rwlock_rdlock", 2));
    assert!(is_free("pthread_rwlock_wrlock", 0));
    assert!(is_free("pthread_rwlock_wrlock", 5));
    assert!(!is_free("pthread_rwlock_wrlock", 2));
    assert!(!is_free("pthread_rwlock_wrlock", 8));
    assert!(!is_free("sem_wait", 0), "others may be anything");
}

#[test]
fn descriptors_change_hands_by_connect_close_and_open() {
    let change = |name: &str, arguments, result: u64, descriptor| {
        let mut frame = call(name, arguments);
        frame.result = result;
        let kind = crate::names::libc_kind(frame.function).unwrap();
        // SAFETY: tests pass what the function is given.
        unsafe { descriptor_change(kind, &frame, descriptor) }
    };
    let expect = |descriptor, leads_to_pcscd| Some(DescriptorChange { descriptor, leads_to_pcscd });
    let pcscd = b"\x01\0/run/pcscd/pcscd.comm\0";
    let other = b"\x01\0/run/dbus/system_bus_socket\0";
    let internet = b"\x02\0pcscd";
    let connect = |address: &[u8], result| {
        change("connect", [3, address.as_ptr() as u64, address.len() as u64, 0, 0, 0], result, 3)
    };
    assert_eq!(connect(pcscd, 0), expect(3, true));
    assert_eq!(connect(other, 0), expect(3, false));
    assert_eq!(connect(internet, 0), expect(3, false));
    assert_eq!(connect(pcscd, u64::MAX), None);
    assert_eq!(change("close", [3, 0, 0, 0, 0, 0], 0, 3), expect(3, false));
    assert_eq!(change("open", [0; 6], 8, 0), expect(8, false));
    assert_eq!(change("read", [3, 0, 0, 0, 0, 0], 8, 3), None);
}

#[test]
fn found_objects_are_a_number_and_a_digest_of_their_handles() {
    let of = |handles: &[u64]| {
        let count = handles.len() as u64;
        let arguments = [0, at(&handles[0]), 8, at(&count), 0, 0];
        end(&call("C_FindObjects", arguments))
    };
    let two = of(&[5, 6]);
    assert_eq!(two as u32, 2);
    assert_ne!(two >> 32, 0);
    assert_eq!(of(&[5, 6]), two);
    for other in [of(&[6, 5]), of(&[5, 7]), of(&[5])] {
        assert_ne!(other >> 32, two >> 32);
    }
    assert_eq!(end(&call("C_FindObjects", [0; 6])), 0);
}

/// The digest of a template of one attribute under a key.
fn digest_of(kind: u64, value: &[u8], key: [u64; 2]) -> u64 {
    let template = [kind, value.as_ptr() as u64, value.len() as u64];
    // SAFETY: one attribute, whose value is as long as it says.
    unsafe { template_digest(at(&template), 1, key, &memory()) }
}

#[test]
fn templates_are_told_apart_by_a_digest_that_needs_the_key() {
    let signing = digest_of(3, b"signing", [1, 2]);
    assert_eq!(digest_of(3, b"signing", [1, 2]), signing);
    for other in [
        digest_of(3, b"signing", [1, 3]),
        digest_of(3, b"signinG", [1, 2]),
        digest_of(3, b"signin", [1, 2]),
        digest_of(0x102, b"signing", [1, 2]),
    ] {
        assert!(other != signing && other != 0);
    }
    // SAFETY: no attribute is looked at.
    let none = |template, count| unsafe { template_digest(template, count, [1, 2], &memory()) };
    assert_ne!(none(0, 0), 0, "all objects are searched for by an empty template");
    assert_eq!((none(0, 1), none(8, LONGEST_TEMPLATE + 1)), (0, 0));
    let null_value = [3_u64, 0, 7];
    assert_eq!(none(at(&null_value), 1), 0);
}

#[test]
fn children_that_are_only_asked_for_are_not_waited_for() {
    let waits = |name: &str, arguments: [u64; 6]| {
        let frame = call(name, arguments);
        // SAFETY: none of these is a lock.
        !unsafe { does_not_wait(frame.function, &frame) }
    };
    for (name, options) in [("wait3", 1), ("waitpid", 2), ("wait4", 2), ("waitid", 3)] {
        let mut arguments = [0; 6];
        assert!(waits(name, arguments), "{name}");
        arguments[options] = 1;
        assert!(!waits(name, arguments), "{name} with WNOHANG");
    }
    assert!(waits("wait", [1; 6]) && waits("system", [1; 6]));
}
