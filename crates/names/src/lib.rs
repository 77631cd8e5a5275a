//! What the standards call the things that Tapstone measures and observes.
//!
//! - [`pkcs11`]: functions (`C_Sign`), return codes (`CKR_PIN_LOCKED`) with a hint for the user,
//!   and mechanisms (`CKM_RSA_PKCS`), by PKCS #11 3.2.
//! - [`pcsc`]: functions (`SCardTransmit`) and return codes (`SCARD_W_REMOVED_CARD`) with a hint,
//!   by pcsc-lite's pcsclite.h.
//! - [`apdu`]: commands to smart cards as text (`SELECT PIV`), by ISO 7816-4, GlobalPlatform, PIV
//!   and others.
//!
//! Nothing here calls a module, a reader or a card, so a program that only reads what others
//! observed can use it.
//!
//! ```
//! use tapstone_names::pkcs11::{Rv, mechanism_name};
//! use tapstone_names::{apdu, pcsc};
//!
//! assert_eq!(Rv(0xA4).to_string(), "CKR_PIN_LOCKED");
//! assert_eq!(mechanism_name(0x0001), Some("CKM_RSA_PKCS"));
//! assert_eq!(pcsc::PcscCode(0x8010_0069).to_string(), "SCARD_W_REMOVED_CARD");
//!
//! // SELECT by AID, PIV (SP 800-73-5 part 2, 3.1.1)
//! let select = [0x00, 0xA4, 0x04, 0x00, 0x05, 0xA0, 0x00, 0x00, 0x03, 0x08];
//! let described = apdu::describe(&select, None);
//! assert_eq!(described.name, "SELECT");
//! assert!(!described.secret);
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::unnecessary_cast, reason = "CK_ULONG has 32 bits on some platforms")]

pub mod apdu;
pub mod pcsc;
pub mod pkcs11;
