//! A PKCS #11 module in this process: loaded, initialised, its function table, and the calls that
//! prepare a measurement. The calls that are measured are in [`crate::worker`].

mod info;
mod objects;
mod session;
mod template;

use std::path::Path;
use std::ptr;
use std::sync::Arc;

use cryptoki_sys::*;

pub use self::info::{LibraryInfo, MechanismInfo, SlotInfo, TokenInfo, Version};
pub(crate) use self::session::Session;
pub(crate) use self::template::{RawTemplate, Template};
use tapstone_worker::BoardCell;

use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};

/// Calls a function of the module's table, with its name on the board while it runs.
///
/// The caller's SAFETY comment covers the arguments; that the function is called with the types
/// that it has is checked by the table's type.
macro_rules! ck {
    ($module:expr, $name:ident ( $($argument:expr),* $(,)? )) => {{
        let module: &$crate::module::Module = $module;
        let name = tapstone_names::pkcs11::Pkcs11Function::$name;
        match module.functions.$name {
            None => Err(tapstone_names::pkcs11::Pkcs11Failure {
                call: name,
                code: tapstone_names::pkcs11::Rv(cryptoki_sys::CKR_FUNCTION_NOT_SUPPORTED),
            }),
            Some(function) => {
                module.place.enter(name as u8, 1);
                // SAFETY: see the comment at the place of use.
                let code = unsafe { function($($argument),*) };
                module.place.leave();
                tapstone_names::pkcs11::Rv::check(code)
                    .map_err(|code| tapstone_names::pkcs11::Pkcs11Failure { call: name, code })
            }
        }
    }};
}
pub(crate) use ck;

/// Why a module cannot be used.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, thiserror::Error)]
pub enum LoadError {
    /// dlopen(3) failed.
    #[error("{0}")]
    Open(String),
    /// It is a library, but not of PKCS #11.
    #[error("it has neither C_GetInterface nor C_GetFunctionList, so it is no PKCS #11 module")]
    NoFunctionList,
    /// A call failed.
    #[error(transparent)]
    Call(#[from] Pkcs11Failure),
}

/// A loaded and initialised module.
pub(crate) struct Module {
    pub(crate) functions: CK_FUNCTION_LIST_3_2,
    pub(crate) place: BoardCell,
    /// Keeps the code mapped that `functions` points into.
    _library: Pkcs11,
}

impl Module {
    /// Loads the library, gets its newest table and calls C_Initialize for use by many threads.
    pub(crate) fn load(path: &Path, place: BoardCell) -> Result<Arc<Self>, LoadError> {
        place.enter(Pkcs11Function::dlopen as u8, 1);
        // SAFETY: loading runs the library's constructors; that is what the user asked for by
        // naming it, and it happens in a process that nothing else depends on.
        let library = unsafe { Pkcs11::new(path) };
        place.leave();
        let library = library.map_err(|error| LoadError::Open(error.to_string()))?;
        let functions = function_table(&library, &place)?;
        let module = Self { functions, place, _library: library };
        module.initialize()?;
        Ok(Arc::new(module))
    }

    fn initialize(&self) -> Result<(), Pkcs11Failure> {
        let mut arguments = CK_C_INITIALIZE_ARGS {
            CreateMutex: None,
            DestroyMutex: None,
            LockMutex: None,
            UnlockMutex: None,
            flags: CKF_OS_LOCKING_OK,
            pReserved: ptr::null_mut(),
        };
        // `arguments` outlives the call.
        ck!(self, C_Initialize(ptr::from_mut(&mut arguments).cast()))
    }

    /// Ends the use of the module by this process.
    pub(crate) fn finalize(&self) -> Result<(), Pkcs11Failure> {
        ck!(self, C_Finalize(ptr::null_mut()))
    }

    /// C_GetInfo.
    pub(crate) fn library(&self) -> Result<LibraryInfo, Pkcs11Failure> {
        let mut info = CK_INFO::default();
        ck!(self, C_GetInfo(&mut info))?;
        Ok(LibraryInfo::from(&info))
    }
}

/// The table of the newest interface that the module offers, as the widest type; functions that an
/// older interface lacks are null.
fn function_table(library: &Pkcs11, place: &BoardCell) -> Result<CK_FUNCTION_LIST_3_2, LoadError> {
    if library.C_GetInterface.is_ok() {
        let mut interface: *mut CK_INTERFACE = ptr::null_mut();
        place.enter(Pkcs11Function::C_GetInterface as u8, 1);
        // SAFETY: null name and version ask for the default interface (PKCS #11 3.0, 5.4.6).
        let code =
            unsafe { library.C_GetInterface(ptr::null_mut(), ptr::null_mut(), &mut interface, 0) };
        place.leave();
        if code == CKR_OK && !interface.is_null() {
            // SAFETY: the module answered CKR_OK with an interface that lives as long as itself.
            let table = unsafe { (*interface).pFunctionList };
            if !table.is_null() {
                // SAFETY: as above; every table starts with its version.
                return Ok(unsafe { widened(table.cast()) });
            }
        }
    }
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
        return Err(LoadError::NoFunctionList);
    }
    // SAFETY: the module answered CKR_OK with a table that lives as long as itself.
    Ok(unsafe { widened(table) })
}

/// Copies a table into the type of the newest one, of which every older table is a prefix
/// (PKCS #11 3.2, 4.6).
///
/// # Safety
/// `table` points to a table as long as its version says.
unsafe fn widened(table: *const CK_FUNCTION_LIST) -> CK_FUNCTION_LIST_3_2 {
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
