//! A card holder unique identifier, as GET DATA brings it.

use tapstone_piv::Chuid;

use crate::FuzzTarget;
use crate::structure::Structure;

/// Whole and from its start it is the same card's, and its signature covers what was read.
pub const TARGET: FuzzTarget =
    FuzzTarget { name: "chuid", reads: "CHUIDs", structure: Structure::Tlv, longest: 4096, check };

/// CHUIDs that were signed; inputs are made from these.
const SIGNED: [&[u8]; 1] = [include_bytes!("../data/chuid.bin")];

fn check(input: &[u8]) {
    let start = Chuid::parse_start(input);
    let Ok(whole) = Chuid::parse(input) else { return };
    // From the start alone a card is known by the elements of one-byte lengths that come first.
    if let Ok(start) = start {
        assert_eq!(start.identity, whole.identity, "both readers agree");
        assert_eq!(start.expires, whole.expires, "both readers agree");
    }
    if whole.signer().is_ok() {
        let same = |signed: &&[u8]| {
            Chuid::parse(signed)
                .is_ok_and(|it| it.identity == whole.identity && it.expires == whole.expires)
        };
        assert!(SIGNED.iter().any(same), "a CHUID that nobody signed has a signer");
    }
    let _ = whole.identity.to_string();
}
