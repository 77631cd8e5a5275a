//! The card holder unique identifier and what is in it: SP 800-73-5 part 1, 3.1.2; FIPS 201-3,
//! 4.2.1; the FASC-N by the "Technical Implementation Guidance: Smart Card Enabled Physical Access
//! Control Systems", 6.2.

use sha2::{Digest, Sha256};

use super::CardDataError;
use super::certificate::Issuer;
use super::containers::error_detection_code;
use super::identifiers::Identifiers;
use super::signed::{self, SignedContent};
use crate::piv::tlv;

/// The tag of the GUID.
pub(super) const GUID: u8 = 0x34;

const FASC_N: u8 = 0x30;
const EXPIRATION_DATE: u8 = 0x35;
const ISSUER_SIGNATURE: u8 = 0x3E;

/// The longest container: its elements at their longest (part 1, appendix A), with their tags and
/// lengths. FASC-N, organisation, DUNS, GUID, expiration, cardholder's UUID, signature, end.
const LONGEST: usize = 27 + 6 + 11 + 18 + 10 + 18 + (2816 + 4) + 2;

/// How often a signature may turn out a byte longer or shorter than the last one.
const ATTEMPTS: usize = 200;

/// The signed container. When it is to have a certain length, a filler is signed with it.
pub(super) fn chuid(
    identifiers: &Identifiers,
    signer: &Issuer,
    wanted: Option<usize>,
) -> Result<Vec<u8>, CardDataError> {
    let plain = [
        tlv::element(FASC_N, &identifiers.fasc_n),
        tlv::element(GUID, &identifiers.guid),
        tlv::element(EXPIRATION_DATE, identifiers.expires.as_bytes()),
    ]
    .concat();
    let digest = Sha256::new().chain_update(&plain).chain_update(error_detection_code()).finalize();
    let with = |attempt: usize, filler: usize| -> Result<Vec<u8>, CardDataError> {
        let description = format!("Virtual card {attempt:03}{}", ".".repeat(filler));
        let content = SignedContent::Detached(&digest);
        let signature =
            signed::sign(signer, signed::CHUID_SECURITY_OBJECT, content, Some(description))?;
        let signature = tlv::element(ISSUER_SIGNATURE, &signature);
        Ok([plain.clone(), signature, error_detection_code()].concat())
    };
    let shortest = with(0, 0)?;
    let Some(wanted) = wanted else { return Ok(shortest) };
    let impossible =
        CardDataError::ChuidLength { wanted, shortest: shortest.len(), longest: LONGEST };
    if wanted > LONGEST || wanted < shortest.len() {
        return Err(impossible);
    }
    let mut filler = wanted - shortest.len();
    for attempt in 1..=ATTEMPTS {
        // An ECDSA signature in DER has 70 to 72 bytes, by chance; the same content has the same
        // one, therefore the attempt is part of it.
        let chuid = with(attempt, filler)?;
        match chuid.len() as isize - wanted as isize {
            0 => return Ok(chuid),
            excess => filler = filler.saturating_add_signed(-excess),
        }
    }
    Err(impossible)
}

/// A FASC-N of agency 9999, which is none: digits in 5 bits each, lowest first, with odd parity.
pub(super) fn fasc_n(credential: u32, person: u64) -> [u8; 25] {
    // System 9999, series 0, issue 1; person: category 3 (corporate), organisation 9999, role 4
    // (customer).
    packed(&format!("S9999F9999F{:06}F0F1F{:010}399994E", credential % 1_000_000, person))
}

/// 40 characters as 200 bits: digits, `S`tart, `F`ield and `E`nd; the last one is a sum over all.
fn packed(characters: &str) -> [u8; 25] {
    let mut symbols: Vec<u8> = characters
        .bytes()
        .map(|character| match character {
            b'S' => 0b1011,
            b'F' => 0b1101,
            b'E' => 0b1111,
            digit => digit & 0x0F,
        })
        .collect();
    symbols.push(symbols.iter().fold(0, |sum, symbol| sum ^ symbol));
    let mut packed = [0; 25];
    let bits = symbols.iter().flat_map(|symbol| {
        let parity = (symbol.count_ones() + 1) as u8 & 1;
        (0..4).map(move |place| symbol >> place & 1).chain([parity])
    });
    for (place, bit) in bits.enumerate() {
        packed[place / 8] |= bit << (7 - place % 8);
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_guidance_is_packed_as_there() {
        let packed = packed("S0032F0001F092446F0F1F1112223333112232E");
        assert_eq!(hex::encode_upper(packed), "D0439458210C2C19A0846D83685A1082108CE73984108CA3FC");
    }
}
