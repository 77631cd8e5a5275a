//! The C interface of PC/SC as pcsc-lite has it on Linux (winscard.h, pcsclite.h).
//!
//! The library is opened when it is needed, not when the program starts: whoever measures an HSM
//! on a machine without smart cards needs no PC/SC.

use std::ffi::{c_char, c_long, c_ulong, c_void};

use libloading::Library;

pub(super) type Long = c_long;
pub(super) type Dword = c_ulong;
/// SCARDCONTEXT and SCARDHANDLE.
pub(super) type Handle = c_long;

/// MAX_ATR_SIZE.
pub(super) const LONGEST_ATR: usize = 33;

/// SCARD_READERSTATE.
#[repr(C)]
pub(super) struct ReaderState {
    pub(super) reader: *const c_char,
    pub(super) user_data: *mut c_void,
    pub(super) current: Dword,
    pub(super) event: Dword,
    pub(super) atr_length: Dword,
    pub(super) atr: [u8; LONGEST_ATR],
}

/// SCARD_IO_REQUEST.
#[repr(C)]
pub(super) struct IoRequest {
    pub(super) protocol: c_ulong,
    pub(super) length: c_ulong,
}

/// The file that pcsc-lite's clients are linked with.
pub(super) const FILE: &str = "libpcsclite.so.1";

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        /// The functions, as the library gave them out.
        #[expect(non_snake_case, reason = "spelled as the standard spells them")]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> Long,)*
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl Functions {
            /// Opens the library and finds every function.
            pub(super) fn open() -> Result<Self, libloading::Error> {
                // SAFETY: opening pcsc-lite runs its initialisers, which touch nothing of ours.
                let library = unsafe { Library::new(FILE)? };
                // SAFETY: the names are those of winscard.h, and the types are copied from it;
                // the pointers are used only while `_library` is there.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    SCardEstablishContext: fn(Dword, *const c_void, *const c_void, *mut Handle);
    SCardReleaseContext: fn(Handle);
    SCardIsValidContext: fn(Handle);
    SCardListReaders: fn(Handle, *const c_char, *mut c_char, *mut Dword);
    SCardConnect: fn(Handle, *const c_char, Dword, Dword, *mut Handle, *mut Dword);
    SCardReconnect: fn(Handle, Dword, Dword, Dword, *mut Dword);
    SCardDisconnect: fn(Handle, Dword);
    SCardBeginTransaction: fn(Handle);
    SCardEndTransaction: fn(Handle, Dword);
    SCardStatus: fn(Handle, *mut c_char, *mut Dword, *mut Dword, *mut Dword, *mut u8, *mut Dword);
    SCardGetStatusChange: fn(Handle, Dword, *mut ReaderState, Dword);
    SCardControl: fn(Handle, Dword, *const c_void, Dword, *mut c_void, Dword, *mut Dword);
    SCardGetAttrib: fn(Handle, Dword, *mut u8, *mut Dword);
    SCardTransmit: fn(Handle, *const IoRequest, *const u8, Dword, *mut IoRequest, *mut u8, *mut Dword);
    SCardCancel: fn(Handle);
}
