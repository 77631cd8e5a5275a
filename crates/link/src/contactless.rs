//! Without contacts: ISO/IEC 14443-2, -3 and -4:2018, in a field of fc = 13.56 MHz.
//!
//! A block of part 4 is a prologue (PCB, and CID and NAD where they are used), information, and a
//! CRC of two bytes; it travels in a frame of part 3. Information longer than the frame allows is
//! chained; each block but the last is answered by R(ACK) (part 4, section 7.5.2).

use serde::Deserialize;
use tapstone_measure::units::Nanos;

use crate::error::{LinkError, require};
use crate::{blocks, transfer_time};

/// A link by a field whose parameters were checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Contactless")]
pub struct ContactlessLink(Contactless);

/// The parameters of a link by a field.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contactless {
    /// How bits are sent.
    #[serde(rename = "type", default)]
    pub kind: InterfaceType,
    /// Bits per second in both directions, in thousands.
    pub kbit_per_second: BitRate,
    /// FSC: the longest frame that the card takes, in bytes (part 4, section 5.2.3).
    #[serde(default = "default_frame")]
    pub fsc: u16,
    /// FSD: the longest frame that the reader takes (part 4, section 5.1).
    #[serde(default = "default_frame")]
    pub fsd: u16,
    /// Whether blocks carry a card identifier.
    #[serde(default)]
    pub cid: bool,
    /// Whether blocks carry a node address.
    #[serde(default)]
    pub nad: bool,
    /// The frame waiting time integer FWI (part 4, section 7.2).
    #[serde(default = "default_fwi")]
    pub fwi: u8,
}

/// The two ways of part 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum InterfaceType {
    /// Nine bits a byte.
    #[default]
    A,
    /// Ten bits a byte.
    B,
}

/// The bit rates of part 2: fc/128 to fc/16, and since its amendments of 2012 fc/8 to fc/2.
/// Frames are taken to look as at the lower rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
pub enum BitRate {
    /// fc/128, 106 kbit/s in both directions.
    K106,
    /// fc/64, 212 kbit/s in both directions.
    K212,
    /// fc/32, 424 kbit/s in both directions.
    K424,
    /// fc/16, 848 kbit/s in both directions.
    K848,
    /// fc/8, 1695 kbit/s in both directions.
    K1695,
    /// fc/4, 3390 kbit/s in both directions.
    K3390,
    /// fc/2, 6780 kbit/s in both directions.
    K6780,
}

const fn default_frame() -> u16 {
    256
}
/// Part 4, section 7.2: without a word from the card.
const fn default_fwi() -> u8 {
    4
}

const CARRIER_HZ: f64 = 13.56e6;
/// FSCI and FSDI 0 to 8, and since 2016 to C: part 4, table 1.
const FRAME_SIZES: [u16; 13] = [16, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096];
/// CRC_A or CRC_B: part 3, annex B.
const CRC: u64 = 2;
/// Type A, from the end of one side's frame to the start of the other's: part 3, section 6.2.1.1,
/// (9 × 128 + 20) / fc when the last bit was 0, and 64 / fc more when it was 1. The mean is in
/// between; the shorter one is what the standard lets a card and a reader achieve.
const TURN_A: u64 = 9 * 128 + 20;
/// Type B, the card's TR0 + TR1 before its first bit: part 2, section 9.2.5, and part 3, section
/// 7.10.3; 64/fs and 80/fs with fs = fc/16.
const TURN_B_CARD: u64 = (64 + 80) * 16;
/// Type B, from the card's EOF to the reader's SOF: part 3, section 7.1.7; 10 etu of 106 kbit/s
/// and 32/fs.
const TURN_B_READER: u64 = 10 * 128 + 32 * 16;

impl BitRate {
    /// Thousands of bits per second, as the rate is called.
    #[must_use]
    pub const fn per_second_thousands(self) -> u16 {
        match self {
            Self::K106 => 106,
            Self::K212 => 212,
            Self::K424 => 424,
            Self::K848 => 848,
            Self::K1695 => 1695,
            Self::K3390 => 3390,
            Self::K6780 => 6780,
        }
    }
}

impl TryFrom<u16> for BitRate {
    type Error = LinkError;

    fn try_from(kbit: u16) -> Result<Self, LinkError> {
        match kbit {
            106 => Ok(Self::K106),
            212 => Ok(Self::K212),
            424 => Ok(Self::K424),
            848 => Ok(Self::K848),
            1695 => Ok(Self::K1695),
            3390 => Ok(Self::K3390),
            6780 => Ok(Self::K6780),
            _ => Err(LinkError {
                field: "kbit_per_second",
                value: kbit.into(),
                why: "not a bit rate of ISO 14443-2",
                hint: "106, 212, 424, 848, 1695, 3390 or 6780",
            }),
        }
    }
}

impl TryFrom<Contactless> for ContactlessLink {
    type Error = LinkError;

    fn try_from(link: Contactless) -> Result<Self, LinkError> {
        let sizes = "16, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024, 2048 or 4096";
        for (field, value) in [("fsc", link.fsc), ("fsd", link.fsd)] {
            let why = "not a frame size of ISO 14443-4, table 1";
            require(FRAME_SIZES.contains(&value), field, value, why, sizes)?;
        }
        require(link.fwi <= 14, "fwi", link.fwi, "15 is reserved", "0 to 14, by default 4")?;
        Ok(Self(link))
    }
}

impl ContactlessLink {
    /// The parameters that were checked.
    #[must_use]
    pub const fn parameters(&self) -> &Contactless {
        &self.0
    }

    /// The command and its response in the field: see [`crate::Link::exchange`].
    #[must_use]
    pub fn exchange(&self, command_bytes: usize, response_bytes: usize) -> Nanos {
        let there = blocks(command_bytes, self.room(self.0.fsc));
        let back = blocks(response_bytes, self.room(self.0.fsd));
        let information = self.bits(command_bytes as u64 + response_bytes as u64);
        // Every I-block is answered, by R(ACK) or by the first block of the response; every block
        // of the response but the last asks for an R(ACK). So both sides send as many frames.
        let pairs = there + back - 1;
        let frames = 2 * pairs * self.frame(0);
        self.at_rate(information + frames) + Nanos(self.turns().0 * pairs)
    }

    /// FWT = 256 × 16 / fc × 2^FWI: part 4, section 7.2.
    #[must_use]
    pub fn waiting_time(&self) -> Nanos {
        transfer_time((256 * 16) << self.0.fwi, CARRIER_HZ)
    }

    /// S(WTX) of the card and of the reader, one byte of information each: part 4, section 7.3.
    #[must_use]
    pub fn waiting_time_extension(&self) -> Nanos {
        self.at_rate(2 * self.frame(1)) + self.turns()
    }

    /// What a frame leaves for information.
    fn room(&self, frame: u16) -> usize {
        usize::from(frame) - (self.prologue() + CRC) as usize
    }

    fn prologue(&self) -> u64 {
        1 + u64::from(self.0.cid) + u64::from(self.0.nad)
    }

    /// The bits of a frame with so much information.
    fn frame(&self, information: u64) -> u64 {
        let around = match self.0.kind {
            // Start and end of communication, one bit each: part 3, section 6.2.3.
            InterfaceType::A => 2,
            // SOF of 10 + 2 and EOF of 10 bits at least: part 3, sections 7.1.4 and 7.1.5.
            InterfaceType::B => 22,
        };
        around + self.bits(self.prologue() + information + CRC)
    }

    /// Type A: 8 bits and a parity bit (part 3, section 6.2.3.2). Type B: a start bit, 8 bits and a
    /// stop bit, and no extra guard time (part 3, section 7.1.1).
    fn bits(&self, bytes: u64) -> u64 {
        match self.0.kind {
            InterfaceType::A => 9 * bytes,
            InterfaceType::B => 10 * bytes,
        }
    }

    /// The two turns of a frame and its answer.
    fn turns(&self) -> Nanos {
        transfer_time(
            match self.0.kind {
                InterfaceType::A => 2 * TURN_A,
                InterfaceType::B => TURN_B_CARD + TURN_B_READER,
            },
            CARRIER_HZ,
        )
    }

    fn at_rate(&self, bits: u64) -> Nanos {
        let carrier_periods: u64 = match self.0.kbit_per_second {
            BitRate::K106 => 128,
            BitRate::K212 => 64,
            BitRate::K424 => 32,
            BitRate::K848 => 16,
            BitRate::K1695 => 8,
            BitRate::K3390 => 4,
            BitRate::K6780 => 2,
        };
        transfer_time(bits * carrier_periods, CARRIER_HZ)
    }
}
