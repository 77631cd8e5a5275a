//! What a card is known by, in its CHUID and in its certificates (SP 800-73-5, part 1, 3.1.2).

/// What identifies a card.
pub(super) struct Identifiers {
    pub(super) fasc_n: [u8; 25],
    pub(super) guid: [u8; 16],
    /// The last day, `YYYYMMDD`.
    pub(super) expires: String,
}
