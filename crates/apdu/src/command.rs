//! A command APDU: ISO 7816-4, section 5.2.

use std::fmt;

use thiserror::Error;

use crate::Class;

/// A command APDU (ISO/IEC 7816-4, 5.2).
#[derive(Clone, PartialEq, Eq)]
pub struct CommandApdu {
    /// CLA, the class byte: chaining, secure messaging, logical channel.
    pub cla: u8,
    /// INS, the instruction byte.
    pub ins: u8,
    /// P1, the first parameter byte of the instruction.
    pub p1: u8,
    /// P2, the second parameter byte of the instruction.
    pub p2: u8,
    /// The data field, at most 65,535 bytes. Empty: there is none.
    pub data: Vec<u8>,
    /// How many bytes of response data are expected at most; `None`: there is no Le field.
    pub expected: Option<Expected>,
}

/// How many bytes of response data a command expects at most: Ne.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expected(u32);

impl Expected {
    /// As many as a short command can ask for: 256.
    pub const SHORT: Self = Self(256);
    /// As many as an extended command can ask for: 65,536.
    pub const EXTENDED: Self = Self(65_536);

    /// So many bytes, 1 to 65,536.
    #[must_use]
    pub const fn bytes(count: u32) -> Option<Self> {
        if count >= 1 && count <= Self::EXTENDED.0 { Some(Self(count)) } else { None }
    }

    /// In bytes, 1 to 65,536.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0 as usize
    }
}

/// How lengths are written: in one byte, or in two after a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// At most 255 bytes of data, at most 256 bytes of response.
    Short,
    /// At most 65,535 bytes of data, at most 65,536 bytes of response.
    Extended,
}

/// Bytes that are no command APDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{length} bytes are no command APDU: {why}")]
pub struct MalformedCommand {
    /// How many bytes there were.
    pub length: usize,
    /// What is wrong with them.
    pub why: &'static str,
}

impl CommandApdu {
    /// A command with a header only: no data, no response data expected (case 1).
    #[must_use]
    pub const fn new(cla: u8, ins: u8, p1: u8, p2: u8) -> Self {
        Self { cla, ins, p1, p2, data: Vec::new(), expected: None }
    }

    /// SELECT an application by its name, or the start of it (ISO 7816-4, 11.2.2).
    #[must_use]
    pub fn select(aid: &[u8]) -> Self {
        Self::new(0x00, 0xA4, 0x04, 0x00).with_data(aid).expecting(Expected::SHORT)
    }

    /// GET RESPONSE for so many bytes of what is left of an answer, on the logical channel of the
    /// command that it answers (ISO 7816-4, 11.7.1); at most 256 are asked for.
    #[must_use]
    pub const fn get_response(class: Class, bytes: usize) -> Self {
        let bytes = if bytes == 0 || bytes > 256 { 256 } else { bytes as u32 };
        Self::new(class.plain().0, 0xC0, 0x00, 0x00).expecting(Expected(bytes))
    }

    /// The same once more with the Le that the card asks for by 6Cxx (ISO 7816-4, 5.6); `None` of a
    /// command with data: what those did the first time, they would do a second time.
    #[must_use]
    pub fn again_with(&self, exact_length: usize) -> Option<Self> {
        let expected = Expected::bytes(exact_length as u32).filter(|_| self.data.is_empty())?;
        Some(self.clone().expecting(expected))
    }

    /// The same with this data field.
    #[must_use]
    pub fn with_data(mut self, data: &[u8]) -> Self {
        self.data = data.to_vec();
        self
    }

    /// The same with an Le field.
    #[must_use]
    pub const fn expecting(mut self, expected: Expected) -> Self {
        self.expected = Some(expected);
        self
    }

    /// Whether more of the data follows in another command (bit 5 of CLA; ISO 7816-4, 5.3.3).
    #[must_use]
    pub const fn is_chained(&self) -> bool {
        // Further interindustry classes (01xx xxxx) have the bit at the same place; a class with
        // the top bit set is proprietary, and GlobalPlatform puts the bit there too.
        self.cla & 0x10 != 0
    }

    /// The shortest form that can hold the command.
    #[must_use]
    pub fn form(&self) -> Form {
        let long = self.data.len() > 255
            || self.expected.is_some_and(|expected| expected > Expected::SHORT);
        if long { Form::Extended } else { Form::Short }
    }

    /// The command as bytes, in its shortest form.
    ///
    /// # Panics
    /// With more than 65,535 bytes of data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(self.form())
    }

    /// The command as bytes, in this form; extended where short cannot hold it.
    ///
    /// # Panics
    /// With more than 65,535 bytes of data.
    #[must_use]
    pub fn encode_as(&self, form: Form) -> Vec<u8> {
        assert!(self.data.len() <= 0xFFFF, "a command holds at most 65,535 bytes");
        let extended = form == Form::Extended || self.form() == Form::Extended;
        let mut bytes = Vec::with_capacity(4 + 3 + self.data.len() + 3);
        bytes.extend([self.cla, self.ins, self.p1, self.p2]);
        let any = !self.data.is_empty() || self.expected.is_some();
        if extended && any {
            bytes.push(0);
        }
        if !self.data.is_empty() {
            let length = (self.data.len() as u16).to_be_bytes();
            bytes.extend(if extended { &length[..] } else { &length[1..] });
            bytes.extend(&self.data);
        }
        if let Some(expected) = self.expected {
            // The largest count is written as zero.
            let length = (expected.0 as u16).to_be_bytes();
            bytes.extend(if extended { &length[..] } else { &length[1..] });
        }
        bytes
    }

    /// Reads a command of either form.
    ///
    /// # Errors
    /// When the lengths in the bytes are not those of the bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, Form), MalformedCommand> {
        let wrong = |why| MalformedCommand { length: bytes.len(), why };
        let Some((&[cla, ins, p1, p2], body)) = bytes.split_first_chunk() else {
            return Err(wrong("a header has 4 bytes"));
        };
        let command = Self::new(cla, ins, p1, p2);
        match *body {
            [] => Ok((command, Form::Short)),
            [le] => Ok((command.expecting(short(le)), Form::Short)),
            [0, high, low] => Ok((command.expecting(long([high, low])), Form::Extended)),
            [0, high, low, ref rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                if length == 0 {
                    return Err(wrong("Lc is 0"));
                }
                let command = match rest.len().checked_sub(length) {
                    Some(0) => command.with_data(rest),
                    Some(2) => {
                        let (data, le) = rest.split_at(length);
                        command.with_data(data).expecting(long([le[0], le[1]]))
                    }
                    _ => return Err(wrong("extended Lc is not the length of what follows")),
                };
                Ok((command, Form::Extended))
            }
            [0, _] => Err(wrong("an extended length has 2 bytes")),
            [length, ref rest @ ..] => {
                let length = usize::from(length);
                let command = match rest.len().checked_sub(length) {
                    Some(0) => command.with_data(rest),
                    Some(1) => command.with_data(&rest[..length]).expecting(short(rest[length])),
                    _ => return Err(wrong("Lc is not the length of what follows")),
                };
                Ok((command, Form::Short))
            }
        }
    }
}

const fn short(le: u8) -> Expected {
    Expected(if le == 0 { 256 } else { le as u32 })
}

const fn long(le: [u8; 2]) -> Expected {
    let count = u16::from_be_bytes(le);
    Expected(if count == 0 { 65_536 } else { count as u32 })
}

/// The header and lengths only: data may hold a PIN.
impl fmt::Debug for CommandApdu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02X} {:02X} {:02X} {:02X}", self.cla, self.ins, self.p1, self.p2)?;
        if !self.data.is_empty() {
            write!(f, " [{} bytes]", self.data.len())?;
        }
        match self.expected {
            Some(expected) => write!(f, " Le {}", expected.0),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commands() -> impl Strategy<Value = CommandApdu> {
        let data = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            prop::collection::vec(any::<u8>(), 65_535..=65_535),
        ];
        (any::<[u8; 4]>(), data, prop::option::of(1u32..=65_536)).prop_map(
            |([cla, ins, p1, p2], data, expected)| CommandApdu {
                data,
                expected: expected.and_then(Expected::bytes),
                ..CommandApdu::new(cla, ins, p1, p2)
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_again(command in commands()) {
            let (read, form) = CommandApdu::parse(&command.encode()).unwrap();
            prop_assert_eq!(&read, &command);
            prop_assert_eq!(form, command.form());
            let (read, _) = CommandApdu::parse(&command.encode_as(Form::Extended)).unwrap();
            prop_assert_eq!(read, command);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok((command, form)) = CommandApdu::parse(&bytes) {
                prop_assert_eq!(command.encode_as(form), bytes);
            }
        }
    }

    #[test]
    fn the_four_cases_have_the_lengths_of_the_standard() {
        let header = CommandApdu::new(0x00, 0xCB, 0x3F, 0xFF);
        assert_eq!(header.encode().len(), 4);
        assert_eq!(header.clone().expecting(Expected::SHORT).encode(), [0, 0xCB, 0x3F, 0xFF, 0]);
        assert_eq!(header.clone().with_data(&[1; 5]).encode().len(), 4 + 1 + 5);
        let case4 = header.clone().with_data(&[1; 5]).expecting(Expected::SHORT);
        assert_eq!(case4.encode().len(), 4 + 1 + 5 + 1);
        assert_eq!(case4.encode_as(Form::Extended).len(), 4 + 3 + 5 + 2);
        assert_eq!(header.expecting(Expected::EXTENDED).encode(), [0, 0xCB, 0x3F, 0xFF, 0, 0, 0]);
    }

    #[test]
    fn lengths_are_counted_from_1_to_65_536() {
        let count = |bytes| Expected::bytes(bytes).map(Expected::count);
        assert_eq!(count(0), None);
        assert_eq!(count(1), Some(1));
        assert_eq!(count(65_536), Some(65_536));
        assert_eq!(count(65_537), None);
        assert_eq!(Expected::SHORT.count(), 256);
        assert_eq!(Expected::EXTENDED.count(), 65_536);
    }

    /// ISO 7816-4, 5.1: a short Lc is 1 to 255, a short Le 1 to 256.
    #[test]
    fn what_a_short_command_cannot_hold_is_extended() {
        let header = CommandApdu::new(0x00, 0xCB, 0x3F, 0xFF);
        let with_data = |bytes| header.clone().with_data(&vec![7; bytes]);
        let expecting = |bytes| header.clone().expecting(Expected::bytes(bytes).unwrap());
        assert_eq!((with_data(255).form(), with_data(256).form()), (Form::Short, Form::Extended));
        assert_eq!((expecting(256).form(), expecting(257).form()), (Form::Short, Form::Extended));

        assert_eq!(with_data(255).encode()[4..6], [0xFF, 7]);
        assert_eq!(with_data(256).encode()[4..8], [0x00, 0x01, 0x00, 7]);
        assert_eq!(with_data(255).encode().len(), 4 + 1 + 255);
        assert_eq!(with_data(256).encode().len(), 4 + 3 + 256);
        assert_eq!(expecting(255).encode()[4..], [0xFF]);
        assert_eq!(expecting(256).encode()[4..], [0x00]);
        assert_eq!(expecting(257).encode()[4..], [0x00, 0x01, 0x01]);
        assert_eq!(expecting(65_535).encode()[4..], [0x00, 0xFF, 0xFF]);
        assert_eq!(expecting(65_536).encode()[4..], [0x00, 0x00, 0x00]);
        // A command is not made longer by a form that has nothing to write.
        assert_eq!(header.encode_as(Form::Extended), header.encode());
        // Where short cannot hold it, asking for short changes nothing.
        assert_eq!(with_data(256).encode_as(Form::Short), with_data(256).encode());
    }

    #[test]
    fn an_le_of_zero_asks_for_the_most_that_its_form_can() {
        let expected =
            |bytes: &[u8]| CommandApdu::parse(bytes).unwrap().0.expected.unwrap().count();
        assert_eq!(expected(&[0, 0xB0, 0, 0, 0]), 256);
        assert_eq!(expected(&[0, 0xB0, 0, 0, 1]), 1);
        assert_eq!(expected(&[0, 0xB0, 0, 0, 255]), 255);
        assert_eq!(expected(&[0, 0xB0, 0, 0, 0, 0, 0]), 65_536);
        assert_eq!(expected(&[0, 0xB0, 0, 0, 0, 1, 0]), 256);
        assert_eq!(expected(&[0, 0xB0, 0, 0, 1, 9, 0]), 256);
        assert_eq!(expected(&[0, 0xB0, 0, 0, 0, 0, 1, 9, 0, 0]), 65_536);
    }

    #[test]
    #[should_panic(expected = "a command holds at most 65,535 bytes")]
    fn more_data_than_a_length_can_say_is_not_written() {
        let _ = CommandApdu::new(0, 0xDB, 0x3F, 0xFF).with_data(&[0; 65_536]).encode();
    }

    #[test]
    fn get_response_keeps_the_channel() {
        let fetch = |cla, bytes| CommandApdu::get_response(Class(cla), bytes).encode();
        assert_eq!(fetch(0x00, 256), [0x00, 0xC0, 0, 0, 0]);
        assert_eq!(fetch(0x13, 7), [0x03, 0xC0, 0, 0, 7]);
        assert_eq!(fetch(0x45, 300), [0x45, 0xC0, 0, 0, 0]);
        assert_eq!(fetch(0x80, 1), [0x00, 0xC0, 0, 0, 1]);
    }

    /// ISO 7816-4, 5.6: SW 6Cxx.
    #[test]
    fn a_command_with_data_is_not_sent_again() {
        let read = CommandApdu::new(0, 0xB0, 0, 0);
        let again = read.clone().expecting(Expected::SHORT).again_with(7).unwrap();
        assert_eq!(again.encode(), [0, 0xB0, 0, 0, 7]);
        assert_eq!(read.again_with(256).unwrap().encode(), [0, 0xB0, 0, 0, 0]);
        assert_eq!(read.with_data(&[1]).again_with(7), None);
    }

    #[test]
    fn select_names_an_application() {
        let expected = [0x00, 0xA4, 0x04, 0x00, 0x03, 0xA0, 0x00, 0x01, 0x00];
        assert_eq!(CommandApdu::select(&[0xA0, 0x00, 0x01]).encode(), expected);
    }

    /// ISO 7816-4, 5.3.3: bit 5 of CLA.
    #[test]
    fn a_chained_command_has_bit_5_of_its_class() {
        let chained = |cla| CommandApdu::new(cla, 0xDB, 0, 0).is_chained();
        assert_eq!([0x10, 0x1C, 0x50, 0x90].map(chained), [true; 4]);
        assert_eq!([0x00, 0x0C, 0x40, 0x80, 0xEF].map(chained), [false; 5]);
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let refusals: [(&[u8], &str); 8] = [
            (&[0, 1, 2], "a header has 4 bytes"),
            (&[0, 1, 2, 3, 0, 1], "an extended length has 2 bytes"),
            (&[0, 1, 2, 3, 5, 1], "Lc is not the length of what follows"),
            (&[0, 1, 2, 3, 1, 7, 7, 7], "Lc is not the length of what follows"),
            (&[0; 8], "Lc is 0"),
            (&[0, 1, 2, 3, 0, 0, 2, 7], "extended Lc is not the length of what follows"),
            (&[0, 1, 2, 3, 0, 0, 1, 7, 7], "extended Lc is not the length of what follows"),
            (&[0, 1, 2, 3, 0, 0, 1, 7, 7, 7, 7], "extended Lc is not the length of what follows"),
        ];
        for (bytes, why) in refusals {
            let malformed = MalformedCommand { length: bytes.len(), why };
            assert_eq!(CommandApdu::parse(bytes), Err(malformed), "{bytes:?}");
        }
    }

    #[test]
    fn debug_shows_no_data() {
        let verify = CommandApdu::new(0, 0x20, 0, 0x80).with_data(b"123456\xFF\xFF");
        assert_eq!(format!("{verify:?}"), "00 20 00 80 [8 bytes]");
        let read = CommandApdu::new(0, 0xB0, 0, 0).expecting(Expected::SHORT);
        assert_eq!(format!("{read:?}"), "00 B0 00 00 Le 256");
    }
}
