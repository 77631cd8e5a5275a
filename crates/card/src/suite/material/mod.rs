//! What is sent to a card and what must come back: made and judged by software that the card has
//! no part in, in the controller's process.

mod answer;
mod ciphers;
mod keys;
mod make;

pub use self::answer::{Answer, SeenAnswer};
pub use self::make::Maker;

/// An input, and what its maker knows of the result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Material {
    /// The bytes that are sent to the card.
    pub input: Vec<u8>,
    /// What the input was made from: the plain text of a cipher text, the hash that is to be
    /// signed.
    pub plain: Vec<u8>,
}
