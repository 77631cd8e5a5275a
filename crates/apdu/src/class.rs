//! The class byte: ISO 7816-4, section 5.4.1, tables 2 and 3.

/// CLA: whose command it is, the logical channel, command chaining, secure messaging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(pub u8);

impl Class {
    /// Logical channels that a class byte can name: 0 to 19.
    pub const CHANNELS: u8 = 20;

    /// The top bit is set: the application says what the command means. GlobalPlatform's own
    /// commands are among these.
    #[must_use]
    pub const fn is_proprietary(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// A class that ISO keeps for later (001x xxxx), or that is no class (FF).
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        matches!(self.0, 0x20..=0x3F | 0xFF)
    }

    /// The logical channel, 0 to 19. Proprietary classes are read as GlobalPlatform writes them
    /// (Card Specification 2.3.1, 11.1.4), which is the same but for the top bit.
    #[must_use]
    pub const fn channel(self) -> u8 {
        match self.0 & 0x40 {
            0 => self.0 & 0x03,
            _ => 4 + (self.0 & 0x0F),
        }
    }

    /// Whether the data are under secure messaging: bits 4 and 3 of a first class, bit 6 of a
    /// further one. Proprietary classes as in [`Class::channel`].
    #[must_use]
    pub const fn is_secured(self) -> bool {
        match self.0 & 0x40 {
            0 => self.0 & 0x0C != 0,
            _ => self.0 & 0x20 != 0,
        }
    }

    /// An interindustry class for the same logical channel, without chaining and secure messaging.
    #[must_use]
    pub const fn plain(self) -> Self {
        match self.channel() {
            channel @ 0..=3 => Self(channel),
            channel => Self(0x40 | (channel - 4)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_numbered_through_both_tables() {
        let channel = |cla| Class(cla).channel();
        assert_eq!(
            [0x00, 0x03, 0x13, 0x0C, 0x40, 0x4F, 0x5F].map(channel),
            [0, 3, 3, 0, 4, 19, 19]
        );
        assert_eq!([0x80, 0x83, 0x84, 0xC0, 0xCF].map(channel), [0, 3, 0, 4, 19]);
        for cla in 0..=u8::MAX {
            assert!(channel(cla) < Class::CHANNELS);
            assert_eq!(Class(cla).plain().channel(), channel(cla));
            assert!(!Class(cla).plain().is_secured() && !Class(cla).plain().is_proprietary());
        }
    }

    #[test]
    fn secure_messaging_is_seen_in_both_tables() {
        let secured = |cla| Class(cla).is_secured();
        assert_eq!([0x04, 0x08, 0x0C, 0x1C, 0x60, 0x84, 0xE0].map(secured), [true; 7]);
        assert_eq!([0x00, 0x03, 0x10, 0x40, 0x4F, 0x80, 0x90].map(secured), [false; 7]);
    }

    #[test]
    fn reserved_is_what_iso_keeps() {
        let reserved = |cla| Class(cla).is_reserved();
        assert_eq!([0x20, 0x3F, 0xFF].map(reserved), [true; 3]);
        assert_eq!([0x00, 0x1F, 0x40, 0x7F, 0x80, 0xFE].map(reserved), [false; 6]);
    }
}
