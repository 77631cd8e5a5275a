//! PC/SC through its C library, one safe method for each call.
//!
//! Every method makes exactly the call that it is named for, into memory that is there already,
//! and says so on the worker's board before it enters: a call that never returns has a name.

mod sys;

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::ptr;
use std::rc::Rc;

use tapstone_firewall::Cleared;
use tapstone_names::pcsc::{PcscCode, PcscFailure, PcscFunction};
use tapstone_worker::BoardCell;

use self::sys::{Dword, Functions, Handle, IoRequest, LONGEST_ATR, ReaderState};

/// SCARD_SCOPE_SYSTEM.
const SCOPE_SYSTEM: Dword = 2;
/// CM_IOCTL_GET_FEATURE_REQUEST: SCARD_CTL_CODE(3400) of PC/SC part 10, which every driver that
/// knows features answers, and the others refuse.
const GET_FEATURE_REQUEST: Dword = 0x4200_0000 + 3400;
/// SCARD_ATTR_VENDOR_IFD_VERSION.
const ATTRIBUTE_IFD_VERSION: Dword = 0x0001_0102;
/// The longest response: 65,536 bytes of data and a status word.
pub const LONGEST_RESPONSE: usize = 65_538;

/// The library that clients of PC/SC are linked with.
#[derive(Clone)]
pub struct Pcsc(Rc<Shared>);

struct Shared {
    functions: Functions,
    place: BoardCell,
    /// Tells one call from the next of the same name: a call that never returns from many short
    /// ones.
    calls: Cell<u64>,
}

/// How a card is shared with other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ShareMode {
    /// SCARD_SHARE_EXCLUSIVE.
    Exclusive = 1,
    /// SCARD_SHARE_SHARED.
    Shared = 2,
    /// SCARD_SHARE_DIRECT: the reader without a card.
    Direct = 3,
}

/// What becomes of the card when it is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Disposition {
    /// SCARD_LEAVE_CARD.
    Leave = 0,
    /// SCARD_RESET_CARD.
    Reset = 1,
    /// SCARD_UNPOWER_CARD.
    Unpower = 2,
    /// SCARD_EJECT_CARD.
    Eject = 3,
}

/// The protocol that reader and card agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardProtocol(Dword);

impl CardProtocol {
    /// No protocol: a reader without a card, or a direct connection.
    pub const NONE: Self = Self(0);
    /// SCARD_PROTOCOL_T0.
    pub const T0: Self = Self(1);
    /// SCARD_PROTOCOL_T1.
    pub const T1: Self = Self(2);
    const ANY: Self = Self(Self::T0.0 | Self::T1.0);

    /// Its name, `T=0` or `T=1`; `None` without a card.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::T0 => Some("T=0"),
            Self::T1 => Some("T=1"),
            _ => None,
        }
    }
}

/// PC/SC's library cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {why}\nhint: install PC/SC: apt install libpcsclite1 pcscd", file = sys::FILE)]
pub struct NoLibrary {
    why: libloading::Error,
}

impl Pcsc {
    /// Opens the library. Calls are announced at `place`.
    ///
    /// # Errors
    /// When the library is not there, or has not all of the functions.
    pub fn open(place: BoardCell) -> Result<Self, NoLibrary> {
        let functions = Functions::open().map_err(|why| NoLibrary { why })?;
        Ok(Self(Rc::new(Shared { functions, place, calls: Cell::new(1) })))
    }

    /// SCardEstablishContext.
    ///
    /// # Errors
    /// What the call returns.
    pub fn establish(&self) -> Result<Context, PcscFailure> {
        let mut handle = 0;
        // SAFETY: the reserved arguments may be null, and `handle` is written to before the return.
        self.call(PcscFunction::EstablishContext, |f| unsafe {
            (f.SCardEstablishContext)(SCOPE_SYSTEM, ptr::null(), ptr::null(), &mut handle)
        })?;
        Ok(Context { pcsc: self.clone(), handle })
    }

    #[inline]
    fn call(
        &self,
        call: PcscFunction,
        make: impl FnOnce(&Functions) -> sys::Long,
    ) -> Result<(), PcscFailure> {
        let Shared { functions, place, calls } = &*self.0;
        calls.set(calls.get() + 1);
        place.enter(call as u8, calls.get());
        let result = make(functions);
        place.leave();
        if result == 0 { Ok(()) } else { Err(PcscFailure { call, code: PcscCode(result as u32) }) }
    }
}

/// A connection to the service.
pub struct Context {
    pcsc: Pcsc,
    handle: Handle,
}

/// The state of a reader as SCardGetStatusChange takes and gives it: SCARD_STATE_ flags, and the
/// number of events in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderStateBits(Dword);

impl ReaderStateBits {
    /// SCARD_STATE_UNAWARE: the caller knows nothing, so the call returns at once.
    pub const UNAWARE: Self = Self(0);

    /// What was told, as a caller gives it back: without SCARD_STATE_CHANGED.
    const fn told(event: Dword) -> Self {
        const CHANGED: Dword = 0x2;
        Self(event & !CHANGED)
    }
}

/// How a reader looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderLook {
    /// To be given to the next call that asks whether something has changed.
    pub state: ReaderStateBits,
    /// SCARD_STATE_PRESENT.
    pub card_present: bool,
    /// SCARD_STATE_EXCLUSIVE.
    pub exclusive: bool,
}

impl Context {
    /// SCardReleaseContext.
    ///
    /// # Errors
    /// What the call returns.
    pub fn release(self) -> Result<(), PcscFailure> {
        let released = self.release_handle();
        std::mem::forget(self);
        released
    }

    fn release_handle(&self) -> Result<(), PcscFailure> {
        // SAFETY: no pointers.
        self.pcsc
            .call(PcscFunction::ReleaseContext, |f| unsafe { (f.SCardReleaseContext)(self.handle) })
    }

    /// SCardIsValidContext.
    ///
    /// # Errors
    /// What the call returns.
    pub fn is_valid(&self) -> Result<(), PcscFailure> {
        // SAFETY: no pointers.
        self.pcsc
            .call(PcscFunction::IsValidContext, |f| unsafe { (f.SCardIsValidContext)(self.handle) })
    }

    /// SCardCancel. Nothing waits in this context, so there is nothing to cancel.
    ///
    /// # Errors
    /// What the call returns.
    pub fn cancel(&self) -> Result<(), PcscFailure> {
        // SAFETY: no pointers.
        self.pcsc.call(PcscFunction::Cancel, |f| unsafe { (f.SCardCancel)(self.handle) })
    }

    /// SCardListReaders into `names`, one call, each name ended by a zero.
    ///
    /// # Errors
    /// What the call returns.
    pub fn list_readers<'a>(&self, names: &'a mut [u8]) -> Result<&'a [u8], PcscFailure> {
        let mut length = names.len() as Dword;
        // SAFETY: `names` has room for `length` bytes.
        self.pcsc.call(PcscFunction::ListReaders, |f| unsafe {
            (f.SCardListReaders)(self.handle, ptr::null(), names.as_mut_ptr().cast(), &mut length)
        })?;
        Ok(&names[..length as usize])
    }

    /// The names of the readers.
    ///
    /// # Errors
    /// What the call returns; no reader at all is an empty list.
    pub fn readers(&self) -> Result<Vec<String>, PcscFailure> {
        let mut names = vec![0; 65_536];
        match self.list_readers(&mut names) {
            Ok(names) => Ok(names
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty())
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect()),
            Err(PcscFailure { code: PcscCode::NO_READERS_AVAILABLE, .. }) => Ok(Vec::new()),
            Err(failure) => Err(failure),
        }
    }

    /// SCardGetStatusChange with a zero timeout: is the reader in another state than `known`?
    ///
    /// # Errors
    /// What the call returns; that nothing changed is no error.
    pub fn status_change(
        &self,
        reader: &CStr,
        known: ReaderStateBits,
    ) -> Result<ReaderLook, PcscFailure> {
        const PRESENT: Dword = 0x20;
        const EXCLUSIVE: Dword = 0x80;
        let mut state = ReaderState {
            reader: reader.as_ptr(),
            user_data: ptr::null_mut(),
            current: known.0,
            event: known.0,
            atr_length: 0,
            atr: [0; LONGEST_ATR],
        };
        // SAFETY: one state, which lives longer than the call.
        let looked = self.pcsc.call(PcscFunction::GetStatusChange, |f| unsafe {
            (f.SCardGetStatusChange)(self.handle, 0, &mut state, 1)
        });
        match looked {
            Ok(()) | Err(PcscFailure { code: PcscCode::TIMEOUT, .. }) => Ok(ReaderLook {
                state: ReaderStateBits::told(state.event),
                card_present: state.event & PRESENT != 0,
                exclusive: state.event & EXCLUSIVE != 0,
            }),
            Err(failure) => Err(failure),
        }
    }

    /// SCardConnect.
    ///
    /// # Errors
    /// What the call returns.
    pub fn connect(&self, reader: &CStr, share: ShareMode) -> Result<Connection, PcscFailure> {
        let protocols =
            if share == ShareMode::Direct { CardProtocol::NONE } else { CardProtocol::ANY };
        let mut handle = 0;
        let mut protocol = 0;
        // SAFETY: `reader` ends with a zero, and the results are written before the return.
        self.pcsc.call(PcscFunction::Connect, |f| unsafe {
            let reader = reader.as_ptr();
            let share = share as Dword;
            (f.SCardConnect)(self.handle, reader, share, protocols.0, &mut handle, &mut protocol)
        })?;
        Ok(Connection { pcsc: self.pcsc.clone(), handle, protocol: CardProtocol(protocol), share })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _ = self.release_handle();
    }
}

/// A connection to a card in a reader.
pub struct Connection {
    pcsc: Pcsc,
    handle: Handle,
    protocol: CardProtocol,
    share: ShareMode,
}

impl Connection {
    /// What reader and card agreed on.
    #[must_use]
    pub const fn protocol(&self) -> CardProtocol {
        self.protocol
    }

    /// SCardReconnect, leaving the card as it is or resetting it.
    ///
    /// # Errors
    /// What the call returns.
    pub fn reconnect(&mut self, initialise: Disposition) -> Result<(), PcscFailure> {
        let mut protocol = 0;
        let share = self.share as Dword;
        let initialise = initialise as Dword;
        // SAFETY: the result is written before the return.
        self.pcsc.call(PcscFunction::Reconnect, |f| unsafe {
            (f.SCardReconnect)(self.handle, share, CardProtocol::ANY.0, initialise, &mut protocol)
        })?;
        self.protocol = CardProtocol(protocol);
        Ok(())
    }

    /// SCardDisconnect.
    ///
    /// # Errors
    /// What the call returns.
    pub fn disconnect(self, disposition: Disposition) -> Result<(), PcscFailure> {
        let done = self.disconnect_handle(disposition);
        std::mem::forget(self);
        done
    }

    fn disconnect_handle(&self, disposition: Disposition) -> Result<(), PcscFailure> {
        let disposition = disposition as Dword;
        // SAFETY: no pointers.
        self.pcsc.call(PcscFunction::Disconnect, |f| unsafe {
            (f.SCardDisconnect)(self.handle, disposition)
        })
    }

    /// SCardBeginTransaction: waits until no other program has one.
    ///
    /// # Errors
    /// What the call returns.
    pub fn begin(&self) -> Result<(), PcscFailure> {
        // SAFETY: no pointers.
        self.pcsc.call(PcscFunction::BeginTransaction, |f| unsafe {
            (f.SCardBeginTransaction)(self.handle)
        })
    }

    /// SCardEndTransaction, leaving the card as it is.
    ///
    /// # Errors
    /// What the call returns.
    pub fn end(&self) -> Result<(), PcscFailure> {
        let leave = Disposition::Leave as Dword;
        // SAFETY: no pointers.
        self.pcsc.call(PcscFunction::EndTransaction, |f| unsafe {
            (f.SCardEndTransaction)(self.handle, leave)
        })
    }

    /// SCardStatus; the card's ATR.
    ///
    /// # Errors
    /// What the call returns.
    pub fn status(&self) -> Result<Atr, PcscFailure> {
        let mut name = [0; 256];
        let mut name_length = name.len() as Dword;
        let mut state = 0;
        let mut protocol = 0;
        let mut atr = Atr { bytes: [0; LONGEST_ATR], length: LONGEST_ATR as Dword };
        // SAFETY: both buffers are as long as their lengths say.
        self.pcsc.call(PcscFunction::Status, |f| unsafe {
            (f.SCardStatus)(
                self.handle,
                name.as_mut_ptr(),
                &mut name_length,
                &mut state,
                &mut protocol,
                atr.bytes.as_mut_ptr(),
                &mut atr.length,
            )
        })?;
        Ok(atr)
    }

    /// SCardTransmit: one APDU that a firewall let pass, into `response`.
    ///
    /// # Errors
    /// What the call returns.
    #[inline]
    pub fn transmit<'a>(
        &self,
        command: Cleared<'_>,
        response: &'a mut [u8],
    ) -> Result<&'a [u8], PcscFailure> {
        let command = command.into_bytes();
        let request = IoRequest {
            protocol: self.protocol.0,
            length: std::mem::size_of::<IoRequest>() as Dword,
        };
        let mut length = response.len() as Dword;
        // SAFETY: command and response are as long as their lengths say; the receive header may
        // be null.
        self.pcsc.call(PcscFunction::Transmit, |f| unsafe {
            (f.SCardTransmit)(
                self.handle,
                &request,
                command.as_ptr(),
                command.len() as Dword,
                ptr::null_mut(),
                response.as_mut_ptr(),
                &mut length,
            )
        })?;
        Ok(&response[..(length as usize).min(response.len())])
    }

    /// SCardControl: asks the driver for its features (PC/SC part 10, 2.2).
    ///
    /// # Errors
    /// What the call returns.
    pub fn control(&self) -> Result<(), PcscFailure> {
        let mut features = [0_u8; 1024];
        let mut length = 0;
        // SAFETY: nothing is sent, and `features` is as long as its length says.
        self.pcsc.call(PcscFunction::Control, |f| unsafe {
            (f.SCardControl)(
                self.handle,
                GET_FEATURE_REQUEST,
                ptr::null(),
                0,
                features.as_mut_ptr().cast(),
                features.len() as Dword,
                &mut length,
            )
        })
    }

    /// The driver's version (SCARD_ATTR_VENDOR_IFD_VERSION), where it tells.
    #[must_use]
    pub fn driver_version(&self) -> Option<String> {
        let mut bytes = [0_u8; 4];
        let mut length = bytes.len() as Dword;
        // SAFETY: `bytes` is as long as `length` says.
        let told = self.pcsc.call(PcscFunction::GetAttrib, |f| unsafe {
            let attribute = ATTRIBUTE_IFD_VERSION;
            (f.SCardGetAttrib)(self.handle, attribute, bytes.as_mut_ptr(), &mut length)
        });
        // 0xMMmmbbbb, in the machine's byte order.
        let version = u32::from_ne_bytes(bytes);
        (told.is_ok() && length == 4)
            .then(|| format!("{}.{}.{}", version >> 24, version >> 16 & 0xFF, version & 0xFFFF))
    }
}

/// The card is left as it is.
impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.disconnect_handle(Disposition::Leave);
    }
}

/// An answer to reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atr {
    bytes: [u8; LONGEST_ATR],
    length: Dword,
}

impl Atr {
    /// Its bytes, at most 33.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..(self.length as usize).min(LONGEST_ATR)]
    }
}

/// A reader's name as C takes it; one with a zero inside is no reader's.
#[must_use]
pub fn reader_name(name: &str) -> CString {
    CString::new(name.replace('\0', "")).unwrap_or_default()
}
