//! Which of a module's interfaces is used: the newest that it offers, however it offers it.
//!
//! PKCS #11 3.0 and later name interfaces by version. The default one need not be the newest, so
//! the list is asked for, and each known version by itself (PKCS #11 3.2, 4.6 and 5.4).

use std::ffi::CStr;
use std::ptr;

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Amount, Pkcs11Failure, Pkcs11Function, Rv, Violation};
use tapstone_worker::BoardCell;

use super::LoadError;

/// The standard's own interface; vendors name theirs otherwise.
const STANDARD_INTERFACE: &CStr = c"PKCS 11";

/// Versions with interfaces, the newest first.
const VERSIONS: [CK_VERSION; 3] = [
    CK_VERSION { major: 3, minor: 2 },
    CK_VERSION { major: 3, minor: 1 },
    CK_VERSION { major: 3, minor: 0 },
];

/// The room that a module is offered for its interfaces; none has so many.
const MOST_INTERFACES: usize = 64;

/// A table of functions that a module has given, with its version.
type Table = *const CK_FUNCTION_LIST;

/// The newest table, as the widest type; functions that an older interface lacks are null.
pub(super) fn newest_table(
    library: &Pkcs11,
    place: &BoardCell,
) -> Result<CK_FUNCTION_LIST_3_2, LoadError> {
    let mut tables = listed(library, place)?;
    tables.extend(VERSIONS.into_iter().filter_map(|version| by_version(library, place, version)));
    if tables.is_empty() {
        tables.extend(default_interface(library, place));
    }
    // SAFETY: each was given with CKR_OK, lives as long as the module and starts with its version.
    let newest = tables.into_iter().max_by_key(|table| rank(unsafe { (**table).version }));
    let table = match newest {
        Some(table) => table,
        None => function_list(library, place)?,
    };
    // SAFETY: as above.
    Ok(unsafe { widened(table) })
}

/// Newer versions rank higher. One that is not known yet is used as far as it is.
fn rank(version: CK_VERSION) -> (u8, u8) {
    (version.major, version.minor)
}

/// The standard's interfaces in C_GetInterfaceList.
fn listed(library: &Pkcs11, place: &BoardCell) -> Result<Vec<Table>, LoadError> {
    if library.C_GetInterfaceList.is_err() {
        return Ok(Vec::new());
    }
    let none =
        CK_INTERFACE { pInterfaceName: ptr::null_mut(), pFunctionList: ptr::null_mut(), flags: 0 };
    let mut interfaces = [none; MOST_INTERFACES];
    let mut count = MOST_INTERFACES as CK_ULONG;
    place.enter(Pkcs11Function::C_GetInterfaceList as u8, 1);
    // SAFETY: the list has room for as many as `count` says, and both outlive the call.
    let code = unsafe { library.C_GetInterfaceList(interfaces.as_mut_ptr(), &mut count) };
    place.leave();
    if code != CKR_OK {
        return Ok(Vec::new());
    }
    let given = interfaces.get(..count as usize).ok_or_else(|| {
        let numbers = (Amount::new(count), Amount::new(MOST_INTERFACES as u64));
        broken(Pkcs11Function::C_GetInterfaceList, Violation::BeyondRoom(Some(numbers)))
    })?;
    Ok(given.iter().filter_map(standard_table).collect())
}

/// An answer that cannot be, before there is a module to keep it.
fn broken(call: Pkcs11Function, violation: Violation) -> LoadError {
    Pkcs11Failure { call, code: violation.code() }.into()
}

fn by_version(library: &Pkcs11, place: &BoardCell, version: CK_VERSION) -> Option<Table> {
    let mut version = version;
    let name = STANDARD_INTERFACE.as_ptr().cast_mut().cast();
    interface(library, place, name, &mut version)
}

fn default_interface(library: &Pkcs11, place: &BoardCell) -> Option<Table> {
    interface(library, place, ptr::null_mut(), ptr::null_mut())
}

/// What C_GetInterface gives for a name and a version, which may be null.
fn interface(
    library: &Pkcs11,
    place: &BoardCell,
    name: *mut CK_UTF8CHAR,
    version: *mut CK_VERSION,
) -> Option<Table> {
    if library.C_GetInterface.is_err() {
        return None;
    }
    let mut interface: *mut CK_INTERFACE = ptr::null_mut();
    place.enter(Pkcs11Function::C_GetInterface as u8, 1);
    // SAFETY: name and version are null or outlive the call, as `interface` does.
    let code = unsafe { library.C_GetInterface(name, version, &mut interface, 0) };
    place.leave();
    if code != CKR_OK {
        return None;
    }
    // SAFETY: the module answered CKR_OK: null, or an interface that lives as long as itself.
    standard_table(unsafe { interface.as_ref() }?)
}

/// The table of an interface of the standard; of a vendor's own, none.
fn standard_table(interface: &CK_INTERFACE) -> Option<Table> {
    if interface.pInterfaceName.is_null() || interface.pFunctionList.is_null() {
        return None;
    }
    // SAFETY: the name is not null, so it is a text that ends with a zero (PKCS #11 3.2, 3.1).
    let name = unsafe { CStr::from_ptr(interface.pInterfaceName.cast()) };
    (name == STANDARD_INTERFACE).then(|| interface.pFunctionList.cast_const().cast())
}

/// The table of C_GetFunctionList, which every module has.
fn function_list(library: &Pkcs11, place: &BoardCell) -> Result<Table, LoadError> {
    if library.C_GetFunctionList.is_err() {
        return Err(LoadError::NoFunctionList);
    }
    let mut table: *mut CK_FUNCTION_LIST = ptr::null_mut();
    place.enter(Pkcs11Function::C_GetFunctionList as u8, 1);
    // SAFETY: `table` outlives the call.
    let code = unsafe { library.C_GetFunctionList(&mut table) };
    place.leave();
    Rv::check(code)
        .map_err(|code| Pkcs11Failure { call: Pkcs11Function::C_GetFunctionList, code })?;
    if table.is_null() {
        return Err(broken(Pkcs11Function::C_GetFunctionList, Violation::NullPointer));
    }
    Ok(table)
}

/// Copies a table into the type of the newest one, of which every older table is a prefix
/// (PKCS #11 3.2, 4.6).
///
/// # Safety
/// `table` points to a table as long as its version says.
unsafe fn widened(table: Table) -> CK_FUNCTION_LIST_3_2 {
    // SAFETY: the caller vouches for the table, which starts with its version.
    let version = unsafe { (*table).version };
    let length = match (version.major, version.minor) {
        (..3, _) => size_of::<CK_FUNCTION_LIST>(),
        (3, ..2) => size_of::<CK_FUNCTION_LIST_3_0>(),
        _ => size_of::<CK_FUNCTION_LIST_3_2>(),
    };
    // SAFETY: a version and optional function pointers: all zero is "version 0, none".
    let mut wide: CK_FUNCTION_LIST_3_2 = unsafe { std::mem::zeroed() };
    // SAFETY: both are at least `length` long, checked by the types above, and do not overlap.
    unsafe {
        ptr::copy_nonoverlapping(table.cast::<u8>(), ptr::from_mut(&mut wide).cast(), length)
    };
    wide
}
