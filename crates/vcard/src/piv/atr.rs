//! Answers to reset that tell a terminal of the PIV application: ISO 7816-3, 8.2 and ISO 7816-4,
//! 12.1.1.
//!
//! The historical bytes are `80` (compact TLV follows), `F9` with the PIV application's name
//! without its version, and `73 C0 01 C0` (selection by full and partial name; command chaining
//! and extended lengths). OpenSC reads the name there and then takes the card as one that keeps to
//! SP 800-73; by other bytes it takes it for cards with known defects and works around these.

/// A card that speaks T=1: TA1 = 96 (F = 512, D = 32), information fields of 254 bytes.
pub const T1: [u8; 23] = [
    0x3B, 0x9F, 0x96, 0x81, 0x31, 0xFE, 0x45, 0x80, 0xF9, 0xA0, 0x00, 0x00, 0x03, 0x08, 0x00, 0x00,
    0x10, 0x00, 0x73, 0xC0, 0x01, 0xC0, 0xB2,
];

/// A card that speaks T=0: TA1 = 96. With T=0 alone there is no check byte.
pub const T0: [u8; 18] = [
    0x3B, 0x1F, 0x96, 0x80, 0xF9, 0xA0, 0x00, 0x00, 0x03, 0x08, 0x00, 0x00, 0x10, 0x00, 0x73, 0xC0,
    0x01, 0xC0,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piv::AID;

    #[test]
    fn both_carry_the_name_and_the_check_byte_is_right() {
        let historical = &T0[3..];
        assert_eq!(historical.len(), usize::from(T0[1] & 0x0F));
        assert_eq!(historical, &T1[7..22]);
        assert_eq!(historical[2..11], AID[..9]);
        // TCK makes the exclusive-or of all bytes from T0 on zero (ISO 7816-3, 8.2.5).
        assert_eq!(T1[1..].iter().fold(0, |sum, byte| sum ^ byte), 0);
    }
}
