//! The way to a card that a suite is sent on: PC/SC, or in tests a card of its own.

use std::ffi::CString;

use tapstone_firewall::Cleared;
use tapstone_names::pcsc::{PcscCode, PcscFailure, PcscFunction};

use crate::scard::{
    CardProtocol, Connection, Context, Disposition, ReaderStateBits, ShareMode, reader_name,
};

/// A reader with a card in it.
pub(crate) trait CardPort {
    /// What reader and card agreed on.
    fn protocol(&self) -> CardProtocol;

    /// Whether there is a connection.
    fn is_connected(&self) -> bool;

    /// SCardConnect to a card just powered, shared.
    fn connect(&mut self) -> Result<(), PcscFailure>;

    /// SCardBeginTransaction.
    fn begin(&mut self) -> Result<(), PcscFailure>;

    /// SCardTransmit.
    fn transmit<'a>(
        &mut self,
        command: Cleared<'_>,
        response: &'a mut [u8],
    ) -> Result<&'a [u8], PcscFailure>;

    /// SCardEndTransaction.
    fn end(&mut self) -> Result<(), PcscFailure>;

    /// SCardDisconnect; without a connection, nothing.
    fn disconnect(&mut self, disposition: Disposition) -> Result<(), PcscFailure>;

    /// Whether the reader says that it is empty.
    fn is_empty(&self) -> bool;
}

/// A reader behind PC/SC.
pub(crate) struct PcscPort {
    // The connection goes before its context.
    card: Option<Connection>,
    context: Context,
    reader: CString,
    protocol: CardProtocol,
}

impl PcscPort {
    pub(crate) fn new(context: Context, card: Connection, reader: &str) -> Self {
        let protocol = card.protocol();
        Self { card: Some(card), context, reader: reader_name(reader), protocol }
    }

    fn card(&self, call: PcscFunction) -> Result<&Connection, PcscFailure> {
        self.card.as_ref().ok_or(PcscFailure { call, code: PcscCode::INVALID_HANDLE })
    }
}

impl CardPort for PcscPort {
    fn protocol(&self) -> CardProtocol {
        self.protocol
    }

    fn is_connected(&self) -> bool {
        self.card.is_some()
    }

    fn connect(&mut self) -> Result<(), PcscFailure> {
        self.card = Some(self.context.connect(&self.reader, ShareMode::Shared)?);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), PcscFailure> {
        self.card(PcscFunction::BeginTransaction)?.begin()
    }

    #[inline]
    fn transmit<'a>(
        &mut self,
        command: Cleared<'_>,
        response: &'a mut [u8],
    ) -> Result<&'a [u8], PcscFailure> {
        self.card(PcscFunction::Transmit)?.transmit(command, response)
    }

    fn end(&mut self) -> Result<(), PcscFailure> {
        self.card(PcscFunction::EndTransaction)?.end()
    }

    fn disconnect(&mut self, disposition: Disposition) -> Result<(), PcscFailure> {
        self.card.take().map_or(Ok(()), |card| card.disconnect(disposition))
    }

    fn is_empty(&self) -> bool {
        let look = self.context.status_change(&self.reader, ReaderStateBits::UNAWARE);
        look.is_ok_and(|look| !look.card_present)
    }
}
