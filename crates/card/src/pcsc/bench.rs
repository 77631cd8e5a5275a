//! One PC/SC call as the measuring loop sees it: made ready outside the timed section, timed, and
//! undone outside it again.

use std::ffi::CString;
use std::time::Duration;

use tapstone_firewall::{Cleared, Declared, Firewall, Permissions};
use tapstone_names::pcsc::{PcscCode, PcscFailure, PcscFunction};

use super::PcscOperation;
use crate::scard::{
    Connection, Context, Disposition, LONGEST_RESPONSE, Pcsc, ReaderStateBits, ShareMode,
};

/// A class and an instruction that no card has: INS 00 is none of ISO 7816-4.
const MINIMAL_APDU: [u8; 4] = [0x00, 0x00, 0x00, 0x00];

/// What one worker measures with.
pub struct Bench {
    operation: PcscOperation,
    pcsc: Pcsc,
    reader: CString,
    hold: Duration,
    state: BetweenOperations,
    /// The reader's state as the last call told it, for a call that asks whether it has changed.
    known: ReaderStateBits,
    /// What SCardTransmit is to send next.
    cleared: Option<Cleared<'static>>,
    memory: Vec<u8>,
}

/// What is there between two operations.
enum BetweenOperations {
    Nothing,
    Context(Context),
    Connected(Context, Connection),
}

impl Bench {
    /// Makes what all operations share. A transaction is held for `hold`, outside what is timed.
    ///
    /// # Errors
    /// What the calls return.
    pub fn new(
        operation: PcscOperation,
        pcsc: Pcsc,
        reader: CString,
        hold: Duration,
    ) -> Result<Self, PcscFailure> {
        let mut bench = Self {
            operation,
            pcsc,
            reader,
            hold,
            state: BetweenOperations::Nothing,
            known: ReaderStateBits::UNAWARE,
            cleared: None,
            memory: vec![0; LONGEST_RESPONSE],
        };
        bench.state = match operation {
            PcscOperation::Establish | PcscOperation::Release => BetweenOperations::Nothing,
            PcscOperation::GetStatusUnaware => BetweenOperations::Context(bench.pcsc.establish()?),
            PcscOperation::GetStatusChange => {
                let context = bench.pcsc.establish()?;
                bench.known = context.status_change(&bench.reader, ReaderStateBits::UNAWARE)?.state;
                BetweenOperations::Context(context)
            }
            _ if bench.connects_each_time() || !operation.needs_reader() => {
                BetweenOperations::Context(bench.pcsc.establish()?)
            }
            _ => bench.connected()?,
        };
        Ok(bench)
    }

    /// Whether every operation needs a connection of its own, before or after it.
    const fn connects_each_time(&self) -> bool {
        matches!(
            self.operation,
            PcscOperation::ConnectShared
                | PcscOperation::ConnectExclusive
                | PcscOperation::ConnectDirect
                | PcscOperation::DisconnectLeave
                | PcscOperation::DisconnectReset
                | PcscOperation::DisconnectUnpower
                | PcscOperation::DisconnectEject
        )
    }

    fn connected(&self) -> Result<BetweenOperations, PcscFailure> {
        let context = self.pcsc.establish()?;
        let card = context.connect(&self.reader, ShareMode::Shared)?;
        Ok(BetweenOperations::Connected(context, card))
    }

    /// Everything that has to happen before the timed call.
    ///
    /// # Errors
    /// What the calls return.
    pub fn prepare(&mut self) -> Result<(), PcscFailure> {
        match (self.operation, &self.state) {
            (PcscOperation::Release, BetweenOperations::Nothing) => {
                self.state = BetweenOperations::Context(self.pcsc.establish()?);
            }
            (PcscOperation::EndTransaction, BetweenOperations::Connected(_, card)) => {
                card.begin()?;
                std::thread::sleep(self.hold);
            }
            (PcscOperation::Transmit, _) => {
                let mut firewall = Firewall::new(Permissions::default());
                self.cleared = firewall.clear(&MINIMAL_APDU, Declared::Reads).ok();
            }
            (_, BetweenOperations::Context(_)) if self.disconnects() => {
                if let BetweenOperations::Context(context) =
                    std::mem::replace(&mut self.state, BetweenOperations::Nothing)
                {
                    let card = context.connect(&self.reader, ShareMode::Shared)?;
                    self.state = BetweenOperations::Connected(context, card);
                }
            }
            _ => {}
        }
        Ok(())
    }

    const fn disconnects(&self) -> bool {
        self.disposition().is_some()
    }

    const fn disposition(&self) -> Option<Disposition> {
        match self.operation {
            PcscOperation::DisconnectLeave => Some(Disposition::Leave),
            PcscOperation::DisconnectReset => Some(Disposition::Reset),
            PcscOperation::DisconnectUnpower => Some(Disposition::Unpower),
            PcscOperation::DisconnectEject => Some(Disposition::Eject),
            _ => None,
        }
    }

    /// The call that is timed.
    ///
    /// # Errors
    /// What it returns.
    #[inline]
    pub fn perform(&mut self) -> Result<(), PcscFailure> {
        use PcscOperation as Op;
        let disposition = self.disposition();
        match (self.operation, &mut self.state) {
            (Op::Establish, state) => {
                *state = BetweenOperations::Context(self.pcsc.establish()?);
                Ok(())
            }
            (Op::IsValid, BetweenOperations::Context(context)) => context.is_valid(),
            (Op::Cancel, BetweenOperations::Context(context)) => context.cancel(),
            (Op::ListReaders, BetweenOperations::Context(context)) => {
                context.list_readers(&mut self.memory).map(|_| ())
            }
            (Op::GetStatusUnaware, BetweenOperations::Context(context)) => {
                context.status_change(&self.reader, ReaderStateBits::UNAWARE).map(|_| ())
            }
            // A state that did change is the one to ask about next.
            (Op::GetStatusChange, BetweenOperations::Context(context)) => {
                self.known = context.status_change(&self.reader, self.known)?.state;
                Ok(())
            }
            (Op::ConnectShared, state) => connect(state, &self.reader, ShareMode::Shared),
            (Op::ConnectExclusive, state) => connect(state, &self.reader, ShareMode::Exclusive),
            (Op::ConnectDirect, state) => connect(state, &self.reader, ShareMode::Direct),
            (Op::Status, BetweenOperations::Connected(_, card)) => card.status().map(|_| ()),
            (Op::BeginTransaction, BetweenOperations::Connected(_, card)) => card.begin(),
            (Op::EndTransaction, BetweenOperations::Connected(_, card)) => card.end(),
            (Op::Transmit, BetweenOperations::Connected(_, card)) => {
                let cleared = self.cleared.take().ok_or(nothing_there(PcscFunction::Transmit))?;
                card.transmit(cleared, &mut self.memory).map(|_| ())
            }
            (Op::Control, BetweenOperations::Connected(_, card)) => card.control(),
            (Op::ReconnectLeave, BetweenOperations::Connected(_, card)) => {
                card.reconnect(Disposition::Leave)
            }
            (Op::ReconnectReset, BetweenOperations::Connected(_, card)) => {
                card.reconnect(Disposition::Reset)
            }
            (Op::Release, state) => match std::mem::replace(state, BetweenOperations::Nothing) {
                BetweenOperations::Context(context) => context.release(),
                _ => Err(nothing_there(PcscFunction::ReleaseContext)),
            },
            (_, state) => match (disposition, std::mem::replace(state, BetweenOperations::Nothing))
            {
                (Some(disposition), BetweenOperations::Connected(context, card)) => {
                    let done = card.disconnect(disposition);
                    *state = BetweenOperations::Context(context);
                    done
                }
                _ => Err(nothing_there(PcscFunction::Disconnect)),
            },
        }
    }

    /// Everything that has to happen after the timed call, whether or not it succeeded.
    ///
    /// # Errors
    /// What the calls return.
    pub fn undo(&mut self) -> Result<(), PcscFailure> {
        match (self.operation, std::mem::replace(&mut self.state, BetweenOperations::Nothing)) {
            (PcscOperation::Establish, _) => {}
            (PcscOperation::BeginTransaction, BetweenOperations::Connected(context, card)) => {
                std::thread::sleep(self.hold);
                let ended = card.end();
                self.state = BetweenOperations::Connected(context, card);
                ended?;
            }
            (
                PcscOperation::ConnectShared
                | PcscOperation::ConnectExclusive
                | PcscOperation::ConnectDirect,
                BetweenOperations::Connected(context, card),
            ) => {
                drop(card);
                self.state = BetweenOperations::Context(context);
            }
            (_, state) => self.state = state,
        }
        Ok(())
    }

    /// Connects again after a failure: what was held may be gone.
    ///
    /// # Errors
    /// What the calls return.
    pub fn recover(&mut self) -> Result<(), PcscFailure> {
        let hold = self.hold;
        let fresh = Self::new(self.operation, self.pcsc.clone(), self.reader.clone(), hold)?;
        self.state = fresh.state;
        self.known = fresh.known;
        Ok(())
    }
}

fn connect(
    state: &mut BetweenOperations,
    reader: &CString,
    share: ShareMode,
) -> Result<(), PcscFailure> {
    let BetweenOperations::Context(context) = std::mem::replace(state, BetweenOperations::Nothing)
    else {
        return Err(nothing_there(PcscFunction::Connect));
    };
    match context.connect(reader, share) {
        Ok(card) => {
            *state = BetweenOperations::Connected(context, card);
            Ok(())
        }
        Err(failure) => {
            *state = BetweenOperations::Context(context);
            Err(failure)
        }
    }
}

/// An operation before it was given the state that [`Bench::new`] and [`Bench::prepare`] make.
const fn nothing_there(call: PcscFunction) -> PcscFailure {
    PcscFailure { call, code: PcscCode::INVALID_HANDLE }
}
