//! The calls of PC/SC as operations: which there are, and how each is made ready, timed and undone.

mod bench;

use serde::{Deserialize, Serialize};

pub use self::bench::Bench;

macro_rules! operations {
    ($($variant:ident, $name:literal, $text:literal;)*) => {
        /// A call of PC/SC, timed by itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum PcscOperation {
            $(#[doc = $text] $variant,)*
        }

        impl PcscOperation {
            /// All of them, in the order in which a program would make them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name on the command line; in records `pcsc.` stands before it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What is timed, in a sentence.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

operations! {
    Establish, "establish", "SCardEstablishContext";
    IsValid, "is_valid", "SCardIsValidContext";
    ListReaders, "list_readers", "SCardListReaders into memory that is there already";
    GetStatusUnaware, "get_status_unaware", "SCardGetStatusChange with SCARD_STATE_UNAWARE and a zero timeout: what is the reader's state?";
    GetStatusChange, "get_status_change", "SCardGetStatusChange with the reader's current state and a zero timeout: has it changed?";
    ConnectShared, "connect_shared", "SCardConnect with SCARD_SHARE_SHARED";
    ConnectExclusive, "connect_exclusive", "SCardConnect with SCARD_SHARE_EXCLUSIVE";
    ConnectDirect, "connect_direct", "SCardConnect with SCARD_SHARE_DIRECT";
    Status, "status", "SCardStatus";
    BeginTransaction, "begin_transaction", "SCardBeginTransaction";
    EndTransaction, "end_transaction", "SCardEndTransaction with SCARD_LEAVE_CARD";
    Transmit, "transmit", "SCardTransmit of an APDU of four bytes with INS 00, which every card refuses";
    Control, "control", "SCardControl that asks the driver for its features";
    Cancel, "cancel", "SCardCancel with nothing to cancel";
    ReconnectLeave, "reconnect", "SCardReconnect with SCARD_LEAVE_CARD";
    ReconnectReset, "reconnect_reset", "SCardReconnect with SCARD_RESET_CARD";
    DisconnectLeave, "disconnect_leave", "SCardDisconnect with SCARD_LEAVE_CARD";
    DisconnectReset, "disconnect_reset", "SCardDisconnect with SCARD_RESET_CARD";
    DisconnectUnpower, "disconnect_unpower", "SCardDisconnect with SCARD_UNPOWER_CARD";
    DisconnectEject, "disconnect_eject", "SCardDisconnect with SCARD_EJECT_CARD";
    Release, "release", "SCardReleaseContext";
}

impl PcscOperation {
    /// The operation of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|operation| operation.name() == name)
    }

    /// Whether it takes the card's state away from other programs.
    #[must_use]
    pub const fn resets(self) -> bool {
        matches!(
            self,
            Self::ReconnectReset
                | Self::DisconnectReset
                | Self::DisconnectUnpower
                | Self::DisconnectEject
        )
    }

    /// Whether it needs a card in the reader.
    #[must_use]
    pub const fn needs_card(self) -> bool {
        !matches!(
            self,
            Self::Establish
                | Self::IsValid
                | Self::ListReaders
                | Self::GetStatusUnaware
                | Self::GetStatusChange
                | Self::ConnectDirect
                | Self::Cancel
                | Self::Release
        )
    }

    /// Whether it needs a reader.
    #[must_use]
    pub const fn needs_reader(self) -> bool {
        !matches!(
            self,
            Self::Establish | Self::IsValid | Self::ListReaders | Self::Cancel | Self::Release
        )
    }

    /// Whether two programs can do it at the same time.
    #[must_use]
    pub const fn can_contend(self) -> bool {
        !matches!(self, Self::ConnectExclusive)
    }

    /// Whether nothing but the timed call is made, so that operations a second mean something.
    #[must_use]
    pub const fn is_bare(self) -> bool {
        matches!(
            self,
            Self::IsValid
                | Self::ListReaders
                | Self::GetStatusUnaware
                | Self::GetStatusChange
                | Self::Status
                | Self::Transmit
                | Self::Control
                | Self::Cancel
                | Self::ReconnectLeave
                | Self::ReconnectReset
        )
    }
}
