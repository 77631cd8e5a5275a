//! OSDP: SIA Open Supervised Device TransmissionProtocol v2.2, which is IEC 60839-11-5:2020.
//!
//! A control panel (ACU) asks, a peripheral (PD) answers, in packets over RS-485: SOM, ADDR, LEN
//! (2), CTRL, an optional security block, a command or reply code, data, and a CRC (2). A byte is
//! 10 bits: start, 8, stop. Before a packet the line is marked for one character. A PD never speaks
//! first: what it has waits for the next osdp_POLL, and each packet of it needs one.

use serde::Deserialize;
use tapstone_measure::units::Nanos;

use crate::error::{LinkError, require};
use crate::{blocks, transfer_time};

/// An OSDP line whose parameters were checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Osdp")]
pub struct OsdpLink(Osdp);

/// The parameters of an OSDP line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Osdp {
    /// The baud rate of the RS-485 line, in bits per second.
    pub baud: u32,
    /// The longest packet that both sides take, in bytes (osdp_PDCAP, function 10).
    #[serde(default = "default_packet")]
    pub packet_bytes: u16,
    /// Whether packets are encrypted and carry a MAC.
    #[serde(default)]
    pub secure_channel: bool,
    /// From one osdp_POLL to the next, in microseconds. 0 polls without a pause.
    #[serde(default = "default_poll")]
    pub poll_us: u32,
    /// From the end of a command to the start of its reply, in microseconds (REPLY_DELAY).
    #[serde(default = "default_reply_delay")]
    pub reply_delay_us: u32,
}

/// Every device takes packets of 128 bytes.
const fn default_packet() -> u16 {
    128
}
/// A device wants a poll at least every 8 s to stay online; panels poll some twenty times a second.
const fn default_poll() -> u32 {
    50_000
}
/// At most 200 ms; devices usually reply within 3 ms.
const fn default_reply_delay() -> u32 {
    3_000
}

/// The rates that the standard names.
const BAUD: [u32; 6] = [9_600, 19_200, 38_400, 57_600, 115_200, 230_400];
const BITS_A_BYTE: u64 = 10;
/// One character of mark before a packet.
const MARK: u64 = 1;
/// SOM, ADDR, LEN, CTRL, code, CRC.
const AROUND: u64 = 1 + 1 + 2 + 1 + 1 + 2;
/// SEC_BLK_LEN and SEC_BLK_TYPE, and the MAC.
const SECURITY: u64 = 2 + 4;
/// Data of the secure channel is padded to AES blocks.
const AES_BLOCK: u64 = 16;
/// Total size, offset and length of a fragment, in messages of several packets.
const FRAGMENT: u64 = 2 + 2 + 2;

impl TryFrom<Osdp> for OsdpLink {
    type Error = LinkError;

    fn try_from(line: Osdp) -> Result<Self, LinkError> {
        let why = "not a rate of OSDP";
        let hint = "9600, 19200, 38400, 57600, 115200 or 230400";
        require(BAUD.contains(&line.baud), "baud", line.baud, why, hint)?;
        let packet = (64..=1440).contains(&line.packet_bytes);
        let why = "outside what OSDP devices take";
        require(packet, "packet_bytes", line.packet_bytes, why, "128 to 1440")?;
        let why = "a device that is not polled for 8 s is offline";
        require(line.poll_us <= 8_000_000, "poll_us", line.poll_us, why, "0 to 8000000")?;
        let why = "a reply after 200 ms is too late";
        let delay = line.reply_delay_us;
        require(delay <= 200_000, "reply_delay_us", delay, why, "0 to 200000, usually 3000")?;
        Ok(Self(line))
    }
}

impl OsdpLink {
    /// The parameters that were checked.
    #[must_use]
    pub const fn parameters(&self) -> &Osdp {
        &self.0
    }

    /// Data to the peripheral and data from it, on average over when they come between two polls.
    #[must_use]
    pub fn exchange(&self, to_peripheral: usize, from_peripheral: usize) -> Nanos {
        let empty = self.packet(0);
        let mut total = Nanos::ZERO;
        // Each packet of a command is answered by osdp_ACK.
        for data in self.fragments(to_peripheral) {
            total += self.round(data, 0);
        }
        if from_peripheral == 0 {
            return total;
        }
        // It waits half an interval for its poll; every further packet waits for a poll of its own.
        let interval = Nanos(u64::from(self.0.poll_us) * 1000);
        total += Nanos(interval.0 / 2);
        let fragments = self.fragments(from_peripheral);
        let last = fragments.len() - 1;
        for (at, data) in fragments.into_iter().enumerate() {
            let round = self.at_rate(empty) + self.at_rate(self.packet(data)) + self.delay();
            total += if at == last { round } else { round.max(interval) };
        }
        total
    }

    /// A command and its reply.
    fn round(&self, command: u64, reply: u64) -> Nanos {
        self.at_rate(self.packet(command) + self.packet(reply)) + self.delay()
    }

    /// The data of each packet, with the headers that a message in several packets needs.
    fn fragments(&self, bytes: usize) -> Vec<u64> {
        if bytes == 0 {
            return Vec::new();
        }
        let whole = self.room();
        if bytes as u64 <= whole {
            return vec![bytes as u64];
        }
        let each = (whole - FRAGMENT) as usize;
        let count = blocks(bytes, each);
        let last = bytes as u64 - (count - 1) * each as u64;
        let mut fragments = vec![whole; count as usize - 1];
        fragments.push(last + FRAGMENT);
        fragments
    }

    /// What a packet leaves for data.
    fn room(&self) -> u64 {
        let room = u64::from(self.0.packet_bytes) - AROUND;
        if self.0.secure_channel {
            // At least one byte of padding marks the end of the data.
            (room - SECURITY) / AES_BLOCK * AES_BLOCK - 1
        } else {
            room
        }
    }

    /// The characters of a packet on the line.
    fn packet(&self, data: u64) -> u64 {
        let data = match data {
            0 => 0,
            data if self.0.secure_channel => (data + 1).next_multiple_of(AES_BLOCK),
            data => data,
        };
        MARK + AROUND + data + if self.0.secure_channel { SECURITY } else { 0 }
    }

    fn delay(&self) -> Nanos {
        Nanos(u64::from(self.0.reply_delay_us) * 1000)
    }

    fn at_rate(&self, characters: u64) -> Nanos {
        transfer_time(characters * BITS_A_BYTE, f64::from(self.0.baud))
    }
}
