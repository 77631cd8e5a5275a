//! Contacts: ISO/IEC 7816-3:2006.
//!
//! Everything counts in elementary time units: 1 etu = F / (D f), section 7.1. A character is 10
//! etu (start, 8 data, parity), then guard time: in all at least 12 etu, in T=1 11 when the ATR's
//! TC1 is 255, plus N extra ones before characters from the reader (section 8.3, TC1).

use serde::Deserialize;
use tapstone_measure::units::Nanos;

use crate::error::{LinkError, require};
use crate::{blocks, transfer_time};

/// A link by contacts whose parameters were checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Contact")]
pub struct ContactLink(Contact);

/// The parameters of a link by contacts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contact {
    /// The transmission protocol: characters (T=0) or blocks (T=1).
    pub protocol: TransmissionProtocol,
    /// The clock rate conversion integer F of the ATR's TA1 (section 8.3, table 7).
    #[serde(rename = "F", default = "default_f")]
    pub f: u16,
    /// The baud rate adjustment integer D (table 8).
    #[serde(rename = "D", default = "default_d")]
    pub d: u8,
    /// The clock that the reader gives.
    pub clock_hz: u32,
    /// The extra guard time N: TC1 of the ATR.
    #[serde(default)]
    pub extra_guard_etu: u8,
    /// T=0: the waiting time integer WI (section 10.2).
    #[serde(default = "default_wi")]
    pub wi: u8,
    /// T=1: the longest information field that the card takes (section 11.4.2).
    #[serde(default = "default_ifs")]
    pub ifsc: u8,
    /// T=1: the longest information field that the reader takes.
    #[serde(default = "default_ifs")]
    pub ifsd: u8,
    /// T=1: the block waiting time integer BWI (section 11.4.3).
    #[serde(default = "default_bwi")]
    pub bwi: u8,
    /// T=1: what ends a block (section 11.4.4).
    #[serde(default)]
    pub edc: RedundancyCode,
}

/// A transmission protocol of ISO/IEC 7816-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum TransmissionProtocol {
    /// Half-duplex transmission of characters: section 10.
    #[serde(rename = "T=0")]
    T0,
    /// Half-duplex transmission of blocks: section 11.
    #[serde(rename = "T=1")]
    T1,
}

/// The epilogue of a block of T=1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RedundancyCode {
    /// Longitudinal redundancy code, one byte.
    #[default]
    #[serde(rename = "LRC")]
    Lrc,
    /// Cyclic redundancy code, two bytes.
    #[serde(rename = "CRC")]
    Crc,
}

// The defaults of the standard: F = 372, D = 1 (section 8.1), WI = 10 (10.2), IFSC = IFSD = 32
// (11.4.2), BWI = 4 (11.4.3).
const fn default_f() -> u16 {
    372
}
const fn default_d() -> u8 {
    1
}
const fn default_wi() -> u8 {
    10
}
const fn default_ifs() -> u8 {
    32
}
const fn default_bwi() -> u8 {
    4
}

/// Values of F in ISO/IEC 7816-3, table 7.
const F_VALUES: [u16; 11] = [372, 558, 744, 1116, 1488, 1860, 512, 768, 1024, 1536, 2048];
/// Values of D in ISO/IEC 7816-3, table 8.
const D_VALUES: [u8; 9] = [1, 2, 4, 8, 16, 32, 64, 12, 20];

/// NAD, PCB, LEN: section 11.3.1.
const PROLOGUE: u64 = 3;
/// BGT, between the last character of a block and the first of the answer: section 11.4.3.
const BLOCK_GUARD_ETU: u64 = 22;
/// Bytes of the status word, SW1 and SW2.
const STATUS: usize = 2;
/// CLA, INS, P1, P2, P3: section 10.3.2.
const HEADER: u64 = 5;
/// INS from the card, after which all remaining data follows: section 10.3.3.
const PROCEDURE: u64 = 1;
/// The most data of one command of T=0.
const T0_DATA: usize = 255;
/// The most data of one response of T=0.
const T0_RESPONSE: usize = 256;

impl TryFrom<Contact> for ContactLink {
    type Error = LinkError;

    fn try_from(link: Contact) -> Result<Self, LinkError> {
        let table = "not in ISO 7816-3, section 8.3";
        let f = "one of 372, 512, 558, 744, 768, 1024, 1116, 1488, 1536, 1860, 2048";
        require(F_VALUES.contains(&link.f), "F", link.f, table, f)?;
        let d = "one of 1, 2, 4, 8, 12, 16, 20, 32, 64";
        require(D_VALUES.contains(&link.d), "D", link.d, table, d)?;
        // Section 5.2.3 and table 7: no card is clocked below 1 MHz or above 20 MHz.
        let clock = (1_000_000..=20_000_000).contains(&link.clock_hz);
        let hint = "1000000 to 20000000; readers give 3579545 to 5000000";
        require(clock, "clock_hz", link.clock_hz, "cards run at 1 to 20 MHz", hint)?;
        require(link.wi > 0, "wi", link.wi, "0 is reserved", "1 to 255, by default 10")?;
        require(link.bwi <= 9, "bwi", link.bwi, "above 9 is reserved", "0 to 9, by default 4")?;
        for (field, value) in [("ifsc", link.ifsc), ("ifsd", link.ifsd)] {
            require(
                (1..=254).contains(&value),
                field,
                value,
                "0 and 255 are reserved",
                "1 to 254",
            )?;
        }
        Ok(Self(link))
    }
}

impl ContactLink {
    /// The parameters that were checked.
    #[must_use]
    pub const fn parameters(&self) -> &Contact {
        &self.0
    }

    /// The command and its response on the line: see [`crate::Link::exchange`].
    #[must_use]
    pub fn exchange(&self, command_bytes: usize, response_bytes: usize) -> Nanos {
        self.etu(match self.0.protocol {
            TransmissionProtocol::T0 => self.t0_etu(command_bytes, response_bytes),
            TransmissionProtocol::T1 => self.t1_etu(command_bytes, response_bytes),
        })
    }

    /// T=0: WT = WI × 960 × F / f (section 10.2). T=1: BWT = 2^BWI × 960 × 372 / f + 11 etu
    /// (section 11.4.3).
    #[must_use]
    pub fn waiting_time(&self) -> Nanos {
        let clock = f64::from(self.0.clock_hz);
        match self.0.protocol {
            TransmissionProtocol::T0 => {
                transfer_time(u64::from(self.0.wi) * 960 * u64::from(self.0.f), clock)
            }
            TransmissionProtocol::T1 => {
                transfer_time((960 * 372) << self.0.bwi, clock) + self.etu(11)
            }
        }
    }

    /// T=0: a NULL byte (section 10.3.3). T=1: S(WTX request) and S(WTX response), one byte of
    /// information each (section 11.6.2.3).
    #[must_use]
    pub fn waiting_time_extension(&self) -> Nanos {
        self.etu(match self.0.protocol {
            TransmissionProtocol::T0 => self.by_card(1),
            TransmissionProtocol::T1 => self.block_by_card(1) + self.block_by_reader(1),
        })
    }

    /// Case 1: header, status. Case 2: header, procedure byte, data, status. Case 3: the same.
    /// Case 4: case 3 ending in 61xx, then GET RESPONSE, which is case 2 (section 12.2).
    fn t0_etu(&self, command_bytes: usize, response_bytes: usize) -> u64 {
        let fetched = response_bytes.saturating_sub(STATUS);
        // Lc is P3; a command of 5 bytes or fewer has no data. With data both ways the command
        // has an Le at its end, which is P3 of GET RESPONSE.
        let mut sent = command_bytes.saturating_sub(HEADER as usize);
        if sent > 0 && fetched > 0 {
            sent -= 1;
        }
        let mut etu = 0;
        let sending = if sent > 0 { blocks(sent, T0_DATA) } else { 0 };
        etu += sending * (self.by_reader(HEADER) + self.by_card(PROCEDURE + STATUS as u64));
        etu += self.by_reader(sent as u64);
        let fetching = if fetched > 0 { blocks(fetched, T0_RESPONSE) } else { 0 };
        etu += fetching * (self.by_reader(HEADER) + self.by_card(PROCEDURE + STATUS as u64));
        etu += self.by_card(fetched as u64);
        if sending + fetching == 0 {
            etu += self.by_reader(HEADER) + self.by_card(STATUS as u64);
        }
        etu
    }

    /// I-blocks of the command, each but the last answered by an R-block, then those of the
    /// response, likewise (section 11.6.2.2).
    fn t1_etu(&self, command_bytes: usize, response_bytes: usize) -> u64 {
        let there = blocks(command_bytes, self.0.ifsc.into());
        let back = blocks(response_bytes, self.0.ifsd.into());
        let sent = command_bytes as u64;
        let fetched = response_bytes as u64;
        // The information itself, then the frames around it.
        let information = self.by_reader(sent) + self.by_card(fetched);
        let empty_there = self.block_by_reader(0);
        let empty_back = self.block_by_card(0);
        let acknowledged = (there - 1) * empty_back + (back - 1) * empty_there;
        information + there * empty_there + back * empty_back + acknowledged
    }

    fn block_by_reader(&self, information: u64) -> u64 {
        self.by_reader(PROLOGUE + information + self.epilogue()) + self.turn()
    }

    fn block_by_card(&self, information: u64) -> u64 {
        self.by_card(PROLOGUE + information + self.epilogue()) + self.turn()
    }

    /// What BGT adds to the guard time that the last character has anyway.
    fn turn(&self) -> u64 {
        BLOCK_GUARD_ETU.saturating_sub(self.by_card(1))
    }

    fn epilogue(&self) -> u64 {
        match self.0.edc {
            RedundancyCode::Lrc => 1,
            RedundancyCode::Crc => 2,
        }
    }

    fn by_reader(&self, characters: u64) -> u64 {
        // TC1 = 255 is the least that the protocol allows, not 255 (section 8.3).
        let extra = match self.0.extra_guard_etu {
            255 => 0,
            extra => u64::from(extra),
        };
        characters * (self.character() + extra)
    }

    fn by_card(&self, characters: u64) -> u64 {
        characters * self.character()
    }

    /// T=0: 12 etu (section 10.2). T=1: 12, and 11 when TC1 is 255 (section 11.2).
    fn character(&self) -> u64 {
        if self.0.protocol == TransmissionProtocol::T1 && self.0.extra_guard_etu == 255 {
            11
        } else {
            12
        }
    }

    fn etu(&self, count: u64) -> Nanos {
        let Contact { f, d, clock_hz, .. } = self.0;
        transfer_time(count * u64::from(f), f64::from(d) * f64::from(clock_hz))
    }
}
