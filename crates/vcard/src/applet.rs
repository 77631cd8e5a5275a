//! What an application on the card is: it answers whole commands, and says what it computed.
//!
//! Chaining, GET RESPONSE, response lengths and time are the card's business, not the applet's:
//! an applet gets the whole data field and gives the whole answer.

use tapstone_apdu::{CommandApdu, StatusWord};

/// An application on the card.
pub trait Applet: Send {
    /// Its name (ISO 7816-4, 8.2.1.2): SELECT finds it by the whole of it or the start.
    fn aid(&self) -> &[u8];

    /// It was selected: forgets what a selection forgets, and answers with its control information.
    fn select(&mut self) -> Reply;

    /// Another application was selected, or the card was reset or lost its power.
    fn deselect(&mut self) {}

    /// Answers a command. Its data is complete: command chaining has been undone.
    fn answer(&mut self, command: &CommandApdu) -> Reply;
}

/// An applet's answer to one whole command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The response data, of any length.
    pub data: Vec<u8>,
    /// SW1 and SW2 after the last byte of data.
    pub status: StatusWord,
    /// What the card computed for it: what a timing profile charges for.
    pub work: Vec<CardWork>,
}

/// Something that a card computes, which takes time by kind and amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardWork {
    /// The name that timing profiles know it by: `rsa2048.private`, `3des.block`.
    pub name: &'static str,
    /// How many of it.
    pub count: u32,
}

impl Reply {
    /// Done, with this data.
    #[must_use]
    pub fn ok(data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into(), status: StatusWord::OK, work: Vec::new() }
    }

    /// Not done, for this reason.
    #[must_use]
    pub const fn refused(status: StatusWord) -> Self {
        Self { data: Vec::new(), status, work: Vec::new() }
    }

    /// The same after so much of this work. Doing nothing is no work.
    #[must_use]
    pub fn after(mut self, name: &'static str, count: u32) -> Self {
        if count > 0 {
            self.work.push(CardWork { name, count });
        }
        self
    }
}
