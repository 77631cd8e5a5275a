//! The parts of a command that a name depends on. Unlike
//! [`CommandApdu`](tapstone_apdu::CommandApdu) it takes commands that were cut off, as they are in a
//! trace.

/// A command, or its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) class: u8,
    pub(super) instruction: u8,
    pub(super) p1: u8,
    pub(super) p2: u8,
    /// The byte behind the header: Lc or Le; 0 when there is none.
    pub(super) p3: u8,
    /// As much of the data as there is.
    pub(super) data: &'a [u8],
}

impl<'a> View<'a> {
    /// `None` of less than a header.
    pub(super) fn parse(command: &'a [u8]) -> Option<Self> {
        let (&[class, instruction, p1, p2], rest) = command.split_first_chunk()?;
        let data = match *rest {
            // Extended: Lc has two bytes behind a zero, or there is only such an Le.
            [0, high, low, ref data @ ..] => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                &data[..length.min(data.len())]
            }
            [length, ref data @ ..] => &data[..usize::from(length).min(data.len())],
            [] => &[],
        };
        let p3 = rest.first().copied().unwrap_or_default();
        Some(Self { class, instruction, p1, p2, p3, data })
    }

    /// Whether the class is not one of ISO 7816-4 (5.4.1, bit 8).
    pub(super) const fn is_proprietary(&self) -> bool {
        self.class & 0x80 != 0
    }

    /// Whether more of the data follows in another command (ISO 7816-4, 5.3.3).
    pub(super) const fn is_chained(&self) -> bool {
        self.class & 0x10 != 0
    }

    /// The logical channel, 0 to 19 (ISO 7816-4, 5.4.1; GlobalPlatform 2.3.1, 11.1.4).
    pub(super) const fn channel(&self) -> u8 {
        match self.class & 0x40 {
            0 => self.class & 0x03,
            _ => 4 + (self.class & 0x0F),
        }
    }

    pub(super) const fn parameters(&self) -> u16 {
        u16::from_be_bytes([self.p1, self.p2])
    }

    /// The object that GET DATA and PUT DATA name by a tag list in their data, or which stands
    /// there itself.
    pub(super) fn tag_in_data(&self) -> Option<u32> {
        match *self.data {
            [0x5C, length, ref list @ ..] => {
                first_tag(&list[..usize::from(length).min(list.len())])
            }
            ref data => first_tag(data),
        }
    }

    /// The object that GET DATA and PUT DATA name: by P1 and P2 (even instruction), or in the data.
    pub(super) fn tag(&self) -> Option<u32> {
        match self.instruction & 1 {
            0 => Some(self.parameters().into()),
            _ => self.tag_in_data(),
        }
    }
}

/// The first tag of BER-TLV, of one to three bytes (ISO 7816-4, 6.3).
fn first_tag(bytes: &[u8]) -> Option<u32> {
    let more = |byte: &u8| byte & 0x80 != 0;
    let length = match bytes {
        [first, ..] if first & 0x1F != 0x1F => 1,
        [_, second, ..] if !more(second) => 2,
        [_, _, third, ..] if !more(third) => 3,
        _ => return None,
    };
    Some(bytes[..length].iter().fold(0, |tag, byte| tag << 8 | u32::from(*byte)))
}
