//! A PKCS #11 module in this process: loaded, initialised, its function table, and the calls that
//! prepare a measurement. The calls that are measured are in the workers of `tapstone-token`.

#![allow(clippy::unnecessary_cast, reason = "CK_ULONG has 32 bits on some platforms")]

mod guard_fault;
mod guarded;
mod info;
mod interfaces;
pub mod key_templates;
mod live_handles;
mod module_arguments;
mod objects;
mod session;
mod template;

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use cryptoki_sys::*;

pub use self::guard_fault::note_guard_faults;
pub use self::guarded::GuardedPlaces;
pub use self::info::{LibraryInfo, MechanismInfo, SlotInfo, TokenInfo, Version};
pub use self::live_handles::LiveHandles;
pub use self::module_arguments::ModuleArguments;
pub use self::session::Session;
pub use self::template::{RawTemplate, Template};
use tapstone_worker::BoardCell;

use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Violation};

/// Calls a function of the module's table, with its name on the board while it runs.
///
/// It stands in an `unsafe` block, whose SAFETY comment covers the arguments. That the function is
/// called with the types that it has is checked by the table's type.
#[macro_export]
macro_rules! ck {
    ($module:expr, $name:ident ( $($argument:expr),* $(,)? )) => {{
        let module: &$crate::Module = $module;
        let name = tapstone_names::pkcs11::Pkcs11Function::$name;
        match module.functions.$name {
            None => Err(tapstone_names::pkcs11::Pkcs11Failure {
                call: name,
                code: tapstone_names::pkcs11::Rv::NOT_IN_FUNCTION_LIST,
            }),
            Some(function) => {
                module.place.enter(name as u8, $crate::next_call());
                let code = function($($argument),*);
                module.place.leave();
                tapstone_names::pkcs11::Rv::check(code)
                    .map_err(|code| tapstone_names::pkcs11::Pkcs11Failure { call: name, code })
            }
        }
    }};
}

/// A number for the board, so that two equal calls in a row are not taken for one that hangs.
#[inline]
pub fn next_call() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    CALLS.fetch_add(1, Relaxed)
}

/// Why a module cannot be used.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, thiserror::Error)]
pub enum LoadError {
    /// dlopen(3) failed, with this text.
    #[error("{0}")]
    Open(String),
    /// It is a library, but not of PKCS #11.
    #[error("it has neither C_GetInterface nor C_GetFunctionList, so it is no PKCS #11 module")]
    NoFunctionList,
    /// The arguments for C_Initialize cannot be handed over.
    #[error("a zero stands in what the module is to be told")]
    Arguments,
    /// A call of PKCS #11 failed while it was initialised.
    #[error(transparent)]
    Call(#[from] Pkcs11Failure),
}

/// What C_Initialize is given. NSS reads a field beyond the standard's last one: it calls
/// `pReserved` LibraryParameters, and has its own `pReserved` behind it.
#[repr(C)]
struct InitializeArguments {
    standard: CK_C_INITIALIZE_ARGS,
    reserved_of_nss: *mut c_void,
}

/// A loaded and initialised module.
pub struct Module {
    /// The functions of its newest table.
    pub functions: CK_FUNCTION_LIST_3_2,
    /// Where this process says what it is calling.
    pub place: BoardCell,
    /// Objects that this process made and has not destroyed.
    pub live_objects: LiveHandles,
    /// Sessions that this process has open.
    pub live_sessions: LiveHandles,
    /// Answers that cannot be, the first of each kind with how many there were, until
    /// [`Module::take_violations`] asks for them.
    violations: Mutex<Vec<(Pkcs11Failure, u64)>>,
    /// Keeps the code mapped that `functions` points into; `None`: it is in this program.
    _library: Option<Pkcs11>,
}

impl Module {
    /// Loads the library, gets its newest table and calls C_Initialize for use by many threads.
    ///
    /// # Errors
    /// The linker's text, a library without a function list, arguments with a zero inside, or the
    /// code of C_Initialize.
    pub fn load(
        path: &Path,
        arguments: Option<&ModuleArguments>,
        place: BoardCell,
    ) -> Result<Arc<Self>, LoadError> {
        let arguments = arguments.map(ModuleArguments::as_c_text).transpose();
        let arguments = arguments.map_err(|_| LoadError::Arguments)?;
        place.enter(Pkcs11Function::dlopen as u8, 1);
        // SAFETY: loading runs the library's constructors; that is what the user asked for by
        // naming it, and it happens in a process that nothing else depends on.
        let library = unsafe { Pkcs11::new(path) };
        place.leave();
        let library = library.map_err(|error| LoadError::Open(error.to_string()))?;
        let functions = interfaces::newest_table(&library, &place)?;
        let module = Self::of_functions(functions, place, Some(library));
        module.initialize(arguments.as_deref())?;
        Ok(Arc::new(module))
    }

    /// The same with a table of functions in this program.
    ///
    /// # Errors
    /// The code of C_Initialize.
    pub fn from_table(
        functions: CK_FUNCTION_LIST_3_2,
        place: BoardCell,
    ) -> Result<Arc<Self>, Pkcs11Failure> {
        let module = Self::of_functions(functions, place, None);
        module.initialize(None)?;
        Ok(Arc::new(module))
    }

    fn of_functions(
        functions: CK_FUNCTION_LIST_3_2,
        place: BoardCell,
        library: Option<Pkcs11>,
    ) -> Self {
        Self {
            functions,
            place,
            live_objects: LiveHandles::new(),
            live_sessions: LiveHandles::new(),
            violations: Mutex::default(),
            _library: library,
        }
    }

    fn initialize(&self, text: Option<&CStr>) -> Result<(), Pkcs11Failure> {
        let text = text.map_or(ptr::null_mut(), |text| text.as_ptr().cast_mut().cast());
        let mut arguments = InitializeArguments {
            standard: CK_C_INITIALIZE_ARGS {
                CreateMutex: None,
                DestroyMutex: None,
                LockMutex: None,
                UnlockMutex: None,
                flags: CKF_OS_LOCKING_OK,
                pReserved: text,
            },
            reserved_of_nss: ptr::null_mut(),
        };
        // SAFETY: `arguments` and `text` outlive the call.
        unsafe { ck!(self, C_Initialize(ptr::from_mut(&mut arguments).cast())) }
    }

    /// A call whose answer cannot be. It is kept, since not every caller can fail for it.
    pub fn broken(&self, call: Pkcs11Function, violation: Violation) -> Pkcs11Failure {
        let failure = Pkcs11Failure { call, code: violation.code() };
        let mut kept = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |first: Pkcs11Failure| {
            (first.call, first.code.kind()) == (call, violation.kind().code())
        };
        match kept.iter_mut().find(|(first, _)| same(*first)) {
            Some((_, count)) => *count += 1,
            None => kept.push((failure, 1)),
        }
        failure
    }

    /// The answers that cannot be since this was asked last.
    pub fn take_violations(&self) -> Vec<(Pkcs11Failure, u64)> {
        std::mem::take(&mut self.violations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a new session, whose handle no other open one has.
    ///
    /// # Errors
    /// [`Violation::InvalidHandle`] for zero, [`Violation::LiveHandle`] for one that is open already.
    pub fn take_session(&self, handle: CK_SESSION_HANDLE) -> Result<(), Pkcs11Failure> {
        // Whoever opens a session fails for it.
        let broken = |violation: Violation| Pkcs11Failure {
            call: Pkcs11Function::C_OpenSession,
            code: violation.code(),
        };
        if handle == CK_INVALID_HANDLE {
            return Err(broken(Violation::InvalidHandle));
        }
        if !self.live_sessions.claim(handle as u64) {
            return Err(broken(Violation::LiveHandle));
        }
        Ok(())
    }

    /// Forgets objects and sessions: they went with a lost device.
    pub fn forget_handles(&self) {
        self.live_objects.clear();
        self.live_sessions.clear();
    }

    /// Ends the use of the module by this process.
    ///
    /// # Errors
    /// The code of C_Finalize.
    pub fn finalize(&self) -> Result<(), Pkcs11Failure> {
        // SAFETY: the argument is reserved and null (PKCS #11 3.2, 5.4.2).
        unsafe { ck!(self, C_Finalize(ptr::null_mut())) }
    }

    /// Who made the library, and its versions (C_GetInfo).
    ///
    /// # Errors
    /// The code of the call.
    pub fn library(&self) -> Result<LibraryInfo, Pkcs11Failure> {
        let mut info = CK_INFO::default();
        // SAFETY: `info` outlives the call.
        unsafe { ck!(self, C_GetInfo(&mut info)) }?;
        Ok(LibraryInfo::from(&info))
    }
}
