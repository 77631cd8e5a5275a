//! What a PKCS#11 module answers: codes, counts, lengths, handles, texts.
//!
//! The module here is a table of functions that answer by the input, one number after the other.
//! It writes no more than it was given room for, but says what it likes of it.

#![allow(clippy::unnecessary_cast, reason = "CK_ULONG has 32 bits on some platforms")]

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use cryptoki_sys::*;
use tapstone_names::pkcs11::Rv;
use tapstone_token::answers::{Answers, SEARCH_LIMIT};
use tapstone_worker::Board;

use crate::FuzzTarget;
use crate::structure::Structure;

/// Live objects have handles of their own, lists are as long as there was room, and every code has
/// words.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "module-answers",
    reads: "answers of PKCS#11 modules",
    structure: Structure::Bytes,
    longest: 1024,
    check,
};

/// Far beyond what any list may hold.
const MOST_LISTED: usize = 1 << 18;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The next byte of the input, which is kept from its end; 0 when it is used up.
fn byte() -> u8 {
    INPUT.with_borrow_mut(|input| input.pop().unwrap_or_default())
}

/// A small number, mostly: as long as the byte before it says.
fn number() -> u64 {
    match byte() {
        small @ 0..=0xEF => small.into(),
        0xF0..=0xF7 => u64::from(byte()) << 8 | u64::from(byte()),
        0xF8..=0xFB => (0..8).fold(0, |sum, _| sum << 8 | u64::from(byte())),
        _ => u64::MAX,
    }
}

/// CKR_OK, mostly.
fn code() -> CK_RV {
    match byte() {
        0..=0xDF => CKR_OK,
        _ => number() as CK_RV,
    }
}

fn check(input: &[u8]) {
    static BOARD: OnceLock<Arc<Board>> = OnceLock::new();
    let board = BOARD.get_or_init(|| Board::create().expect("there is memory for a board"));
    INPUT.with_borrow_mut(|kept| {
        kept.clear();
        kept.extend(input.iter().rev());
    });
    let answers = Answers::of_table(table(), board.cell(0));
    assert!(answers.listed <= MOST_LISTED, "{} are listed", answers.listed);
    assert!(answers.found.len() <= SEARCH_LIMIT, "{} are found", answers.found.len());
    for handles in [&answers.made, &answers.found] {
        let mut sorted = handles.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), handles.len(), "two objects have one handle");
        assert!(!handles.contains(&0), "CK_INVALID_HANDLE was taken for an object");
    }
    let violations = answers.violations.iter().map(|(failure, _)| failure);
    for failure in answers.failures.iter().chain(violations) {
        assert!(!failure.to_string().is_empty());
        assert_ne!(failure.code, Rv(CKR_OK as u64), "CKR_OK is no failure");
    }
}

fn table() -> CK_FUNCTION_LIST_3_2 {
    // SAFETY: a version and optional function pointers: all zero is "version 0, none".
    let mut table: CK_FUNCTION_LIST_3_2 = unsafe { std::mem::zeroed() };
    table.C_Initialize = Some(initialize);
    table.C_Finalize = Some(initialize);
    table.C_GetInfo = Some(get_info);
    table.C_GetSlotList = Some(get_slot_list);
    table.C_GetSlotInfo = Some(get_slot_info);
    table.C_GetTokenInfo = Some(get_token_info);
    table.C_GetMechanismList = Some(get_mechanism_list);
    table.C_GetMechanismInfo = Some(get_mechanism_info);
    table.C_OpenSession = Some(open_session);
    table.C_CloseSession = Some(of_session);
    table.C_Login = Some(login);
    table.C_Logout = Some(of_session);
    table.C_CreateObject = Some(create_object);
    table.C_GenerateKeyPair = Some(generate_key_pair);
    table.C_FindObjectsInit = Some(find_objects_init);
    table.C_FindObjects = Some(find_objects);
    table.C_FindObjectsFinal = Some(of_session);
    table.C_GetAttributeValue = Some(get_attribute_value);
    table
}

/// Fills a structure of numbers and bytes with the input.
///
/// # Safety
/// `to` may be written, and any bytes are a value of its type.
unsafe fn fill<T>(to: *mut T) {
    let length = usize::from(byte()).min(size_of::<T>());
    for at in 0..length {
        // SAFETY: within the structure, as the caller vouches.
        unsafe { to.cast::<u8>().add(at).write(byte()) };
    }
}

/// Fills a list as far as there is room, and says how long it is.
///
/// # Safety
/// `list` is null, or has room for as many as `count` says.
unsafe fn answer_list(list: *mut CK_ULONG, count: *mut CK_ULONG) -> CK_RV {
    let code = code();
    let said = number() as CK_ULONG;
    // SAFETY: as the caller vouches.
    unsafe {
        if !list.is_null() {
            for at in 0..said.min(*count).min(64) as usize {
                list.add(at).write(number() as CK_ULONG);
            }
        }
        *count = said;
    }
    code
}

unsafe extern "C" fn initialize(_: *mut std::ffi::c_void) -> CK_RV {
    code()
}

unsafe extern "C" fn get_info(info: *mut CK_INFO) -> CK_RV {
    // SAFETY: Tapstone gives a structure of its own, of numbers and bytes.
    unsafe { fill(info) };
    code()
}

unsafe extern "C" fn get_slot_list(
    _: CK_BBOOL,
    list: *mut CK_SLOT_ID,
    count: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: Tapstone gives a list with room for `count`, or none.
    unsafe { answer_list(list, count) }
}

unsafe extern "C" fn get_slot_info(_: CK_SLOT_ID, info: *mut CK_SLOT_INFO) -> CK_RV {
    // SAFETY: as in `get_info`.
    unsafe { fill(info) };
    // Whether a token is there, without all the text before it.
    // SAFETY: as above.
    unsafe { (*info).flags |= CK_FLAGS::from(byte() % 2) };
    code()
}

unsafe extern "C" fn get_token_info(_: CK_SLOT_ID, info: *mut CK_TOKEN_INFO) -> CK_RV {
    // SAFETY: as in `get_info`.
    unsafe { fill(info) };
    code()
}

unsafe extern "C" fn get_mechanism_list(
    _: CK_SLOT_ID,
    list: *mut CK_MECHANISM_TYPE,
    count: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: as in `get_slot_list`.
    unsafe { answer_list(list, count) }
}

unsafe extern "C" fn get_mechanism_info(
    _: CK_SLOT_ID,
    _: CK_MECHANISM_TYPE,
    info: *mut CK_MECHANISM_INFO,
) -> CK_RV {
    // SAFETY: as in `get_info`.
    unsafe { fill(info) };
    code()
}

unsafe extern "C" fn open_session(
    _: CK_SLOT_ID,
    _: CK_FLAGS,
    _: *mut std::ffi::c_void,
    _: CK_NOTIFY,
    session: *mut CK_SESSION_HANDLE,
) -> CK_RV {
    // SAFETY: Tapstone gives room for a handle.
    unsafe { *session = number() as CK_SESSION_HANDLE };
    code()
}

unsafe extern "C" fn of_session(_: CK_SESSION_HANDLE) -> CK_RV {
    code()
}

unsafe extern "C" fn login(
    _: CK_SESSION_HANDLE,
    _: CK_USER_TYPE,
    _: *mut CK_UTF8CHAR,
    _: CK_ULONG,
) -> CK_RV {
    code()
}

unsafe extern "C" fn create_object(
    _: CK_SESSION_HANDLE,
    _: *mut CK_ATTRIBUTE,
    _: CK_ULONG,
    object: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: as in `open_session`.
    unsafe { *object = number() as CK_OBJECT_HANDLE };
    code()
}

unsafe extern "C" fn generate_key_pair(
    _: CK_SESSION_HANDLE,
    _: *mut CK_MECHANISM,
    _: *mut CK_ATTRIBUTE,
    _: CK_ULONG,
    _: *mut CK_ATTRIBUTE,
    _: CK_ULONG,
    public: *mut CK_OBJECT_HANDLE,
    private: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: as in `open_session`.
    unsafe {
        *public = number() as CK_OBJECT_HANDLE;
        *private = number() as CK_OBJECT_HANDLE;
    }
    code()
}

unsafe extern "C" fn find_objects_init(
    _: CK_SESSION_HANDLE,
    _: *mut CK_ATTRIBUTE,
    _: CK_ULONG,
) -> CK_RV {
    code()
}

unsafe extern "C" fn find_objects(
    _: CK_SESSION_HANDLE,
    list: *mut CK_OBJECT_HANDLE,
    room: CK_ULONG,
    count: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: Tapstone gives a list with room for `room`.
    unsafe {
        *count = room;
        answer_list(list, count)
    }
}

unsafe extern "C" fn get_attribute_value(
    _: CK_SESSION_HANDLE,
    _: CK_OBJECT_HANDLE,
    attributes: *mut CK_ATTRIBUTE,
    _: CK_ULONG,
) -> CK_RV {
    let code = code();
    // SAFETY: Tapstone asks for one attribute, with room for as much as its length says, or none.
    unsafe {
        let attribute = &mut *attributes;
        let said = number() as CK_ULONG;
        if !attribute.pValue.is_null() {
            for at in 0..said.min(attribute.ulValueLen).min(64) as usize {
                attribute.pValue.cast::<u8>().add(at).write(byte());
            }
        }
        attribute.ulValueLen = said;
    }
    code
}
