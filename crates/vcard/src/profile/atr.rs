//! Reads an answer to reset, far enough to know that it is one: ISO 7816-3, 8.2.

use crate::transmission::Transmission;

/// The protocol that a PC/SC service speaks with the card: T=1 where it is offered, else T=0,
/// which is what a card offers that names none.
pub(super) fn spoken(atr: &[u8]) -> Result<Transmission, &'static str> {
    let (&start, rest) = atr.split_first().ok_or("it is empty")?;
    if !matches!(start, 0x3B | 0x3F) {
        return Err("it starts with 3B or 3F (8.1)");
    }
    let (&format, mut rest) = rest.split_first().ok_or("the format byte T0 is missing")?;
    let mut follows = format >> 4;
    let mut protocols = Vec::new();
    while follows != 0 {
        let count = follows.count_ones() as usize;
        let (group, after) = rest.split_at_checked(count).ok_or("interface bytes are missing")?;
        rest = after;
        let has_td = follows & 0x08 != 0;
        follows = 0;
        if let Some(&td) = group.last().filter(|_| has_td) {
            protocols.push(td & 0x0F);
            follows = td >> 4;
        }
    }
    // T=0 alone needs no check byte (8.2.5).
    let checked = protocols.iter().any(|&protocol| protocol != 0);
    let length = usize::from(format & 0x0F) + usize::from(checked);
    if rest.len() != length {
        return Err("the historical bytes and the check byte are not as many as it says");
    }
    if checked && atr[1..].iter().fold(0, |sum, byte| sum ^ byte) != 0 {
        return Err("the check byte is wrong: bytes 2 to the last exclusive-ored are 0");
    }
    // Section 8.2.3: T=15 is no protocol; 2 to 14 are not in use.
    match &protocols[..] {
        offered if offered.contains(&1) => Ok(Transmission::T1),
        offered if offered.is_empty() || offered.contains(&0) => Ok(Transmission::T0),
        _ => Err("it offers neither T=0 nor T=1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piv;

    #[test]
    fn protocols_are_found() {
        assert_eq!(spoken(&piv::atr::T1), Ok(Transmission::T1));
        assert_eq!(spoken(&piv::atr::T0), Ok(Transmission::T0));
        assert_eq!(spoken(&[0x3B, 0x00]), Ok(Transmission::T0));
        // What readers make up for contactless cards names both (PC/SC part 3, 3.1.3.2.3).
        assert_eq!(spoken(&[0x3B, 0x80, 0x80, 0x01, 0x01]), Ok(Transmission::T1));
        assert_eq!(spoken(&[0x3B, 0x80, 0x01, 0x81]), Ok(Transmission::T1));
    }

    #[test]
    fn what_is_no_atr_is_refused() {
        let texts: [&[u8]; 7] = [
            &[],
            &[0x3C, 0],
            &[0x3B],
            &[0x3B, 0x02, 1],
            &[0x3B, 0x80, 0x01, 0x80],
            &[0x3B, 0x80],
            &[0x3B, 0x80, 0x0E, 0x8E],
        ];
        for atr in texts {
            assert!(spoken(atr).is_err(), "{atr:02X?}");
        }
    }
}
