//! What a command would do to a card, and whether it may be sent.
//!
//! Whatever Tapstone itself sends to a card passes a [`Firewall`]: suites, the dialogue at a door,
//! the look for virtual cards, and what a transport repeats or fetches. It reads the final bytes,
//! after templates, chaining and answers that were put in, and knows what was selected on which
//! logical channel, which chain is open, and what the card said of its retry counter. What that
//! leaves open takes the strictest reading. Only a firewall makes a [`Cleared`], and only a cleared
//! command can be sent:
//!
//! ```
//! use tapstone_apdu::StatusWord;
//! use tapstone_firewall::{Declared, Firewall, Permissions, Why};
//!
//! let mut firewall = Firewall::new(Permissions::default().with_pin(b"123456\xFF\xFF"));
//! let verify = b"\x00\x20\x00\x80\x08123456\xFF\xFF";
//!
//! // The retry counter comes first: an empty VERIFY asks for it, and passes since a PIN was named.
//! let refusal = firewall.clear(verify, Declared::Nothing).unwrap_err();
//! assert_eq!(refusal.why, Why::Counter(None));
//! firewall.clear(b"\x00\x20\x00\x80", Declared::Nothing).unwrap();
//! firewall.answered(StatusWord(0x63C3), &[]);
//!
//! assert!(firewall.clear(verify, Declared::Nothing).is_ok());
//! firewall.answered(StatusWord(0x63C2), &[]);
//! // It was wrong, so it is not tried again.
//! assert!(firewall.clear(verify, Declared::Nothing).is_err());
//! ```
//!
//! Sources: ISO/IEC 7816-4:2020 and 7816-8; SP 800-73-5 part 2; OpenPGP application on ISO smart
//! card operating systems 3.4; GlobalPlatform Card Specification 2.3.1; BSI TR-03110-3 (PACE).
//! Programs that Tapstone only starts (`trace`, `trial`, `ab`) send what they like.
#![forbid(unsafe_code)]

mod clear;
mod context;
mod effect;
mod refusal;

pub use self::clear::{Cleared, Declared, Firewall, Permissions};
pub use self::context::CardContext;
pub use self::effect::Effect;
pub use self::refusal::{Refusal, Why};
