//! Why a command is not sent.

use tapstone_apdu::{MalformedCommand, StatusWord};
use thiserror::Error;

/// A command that is not sent, and the rule that keeps it back. Its data are not in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{command} is not sent: {why}{hint}", hint = hint(&self.why))]
pub struct Refusal {
    /// Its name and its header: `VERIFY (00 20 00 80)`.
    pub command: String,
    /// The rule that keeps it back, with what the card has said.
    pub why: Why,
}

/// The rules, with what the card has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Why {
    /// The bytes are no command, so nobody knows what a card takes them for.
    #[error("{0}")]
    Malformed(MalformedCommand),
    /// Class FF is the reader's, where PIN pads have commands of their own; 20 to 3F are nobody's.
    #[error("its class is for readers, or reserved (ISO 7816-4, 5.4.1)")]
    ReservedClass,
    /// What is inside cannot be read without the keys.
    #[error("what secure messaging hides cannot be judged")]
    SecureMessaging,
    /// What is inside is no command, or another envelope.
    #[error("what is in this envelope cannot be judged")]
    Envelope,
    /// Another command in the middle of a chain.
    #[error("another command's chain is not at its end (ISO 7816-4, 5.3.3)")]
    OpenChain,
    /// It ends a card or an application for good.
    #[error("it ends a card or an application for good")]
    Destroys,
    /// It writes, and the user did not allow that.
    #[error("it changes the card, and writing was not allowed")]
    NotAllowed,
    /// It writes, and the suite does not say so.
    #[error("it changes the card, and the suite does not say so")]
    NotDeclared,
    /// No table knows it, and the suite does not say what it does.
    #[error("no standard says what it does to the card, and neither does the suite")]
    Unknown,
    /// Spends a try by another command than a plain VERIFY.
    #[error(
        "it can cost a try of a PIN or a key, and is no plain VERIFY of the PIN that was named"
    )]
    OtherTry,
    /// Nobody named a PIN for this run.
    #[error("it spends a try of a PIN, and none was named for this run")]
    NoPin,
    /// What it carries is not the PIN that was named.
    #[error("what it carries is not the PIN that was named for this run")]
    NotThePin,
    /// The PIN was named for one reference.
    #[error("the PIN that was named is for another reference than {0:02X}")]
    OtherReference(u8),
    /// It was tried in this run, and not answered with 9000; `None`: not answered at all.
    #[error("the PIN was tried, and the answer was {}", answer(*.0))]
    Tried(Option<StatusWord>),
    /// The counter was not read, or the card did not tell it.
    #[error("the card does not tell how many tries of the PIN are left{}", asked(*.0))]
    Counter(Option<StatusWord>),
    /// An empty VERIFY of an application whose cards may count it.
    #[error("it asks for a retry counter, and some cards count that as a wrong PIN")]
    Asking,
    /// The counter went down without a try.
    #[error("the card's retry counter went down with no PIN tried: asking for it costs a try")]
    AskingCosts,
    /// If asking costs a try, it costs the last.
    #[error("one try is left (63C1), and on some cards asking again costs it")]
    AskingMayBlock,
    /// A wrong one would block the PIN: one try is left (ISO 7816-4, 11.6.6).
    #[error("the card has one try of the PIN left (63C1): Tapstone does not risk it")]
    LastTry,
    /// The PIN is blocked already: no try is left.
    #[error("the PIN is blocked (6983): no try is left")]
    Blocked,
}

fn answer(status: Option<StatusWord>) -> String {
    status.map_or_else(|| "none".to_owned(), |status| format!("{status}, not 9000"))
}

fn asked(status: Option<StatusWord>) -> String {
    match status {
        Some(StatusWord::OK) => {
            " (SW 9000: it was given already, perhaps by another program)".into()
        }
        Some(status) => format!(" (SW {status}): Tapstone does not risk one"),
        None => ": Tapstone does not risk one".into(),
    }
}

fn hint(why: &Why) -> String {
    let hint = match why {
        Why::NotAllowed => "allow it with --allow-writes, if you mean it",
        Why::NotDeclared => "say under writes what it changes",
        Why::Unknown => "say effect = \"read\" in its step, or what it writes",
        Why::NoPin => "name one with --pin-file, and {pin} in the suite",
        Why::NotThePin => "write {pin}, and how long it is with pin_bytes",
        Why::Counter(Some(StatusWord::OK)) => "take the card out and put it in again",
        Why::Counter(_) => "is this the PIN's own VERIFY, and the right application selected?",
        Why::Asking => "say effect = \"read\" in its step, or name the PIN with --pin-file",
        Why::LastTry | Why::AskingCosts | Why::AskingMayBlock => {
            "give the right PIN once with the card's own tool; that resets the counter"
        }
        Why::Blocked => "unblock it with the PUK, with the card's own tool",
        Why::Tried(_) => "look at the PIN before you try again",
        _ => return String::new(),
    };
    format!("\nhint: {hint}")
}
