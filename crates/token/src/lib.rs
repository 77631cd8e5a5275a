//! The benchmark of PKCS #11 tokens and HSMs.
//!
//! [`catalogue`] says what can be measured, [`worker`] measures it in a process that loads the
//! module, [`controller`] runs such processes and never loads one, and [`material`] prepares inputs and
//! judges results in software.
//!
//! What can be measured is chosen by name; every operation says which calls make it up:
//!
//! ```
//! use tapstone_token::catalogue::{Catalogue, Shape};
//!
//! let chosen = Catalogue::builtin().select("rsa2048.sign")?;
//! assert_eq!(chosen[0].shape, Shape::Sign);
//! assert_eq!(chosen[0].key_bits(), Some(2048));
//! // One call is enough for any answer: a signature is as long as the modulus.
//! assert_eq!(chosen[0].output_capacity_bytes(), 2048 / 8);
//! # Ok::<(), tapstone_token::catalogue::CatalogueError>(())
//! ```
//!
//! A message of another length is the same operation:
//!
//! ```
//! use tapstone_token::catalogue::Catalogue;
//!
//! let digest = Catalogue::builtin().select("sha256.digest")?.remove(0);
//! assert_eq!(digest.with_message_bytes(64)?.message_bytes, 64);
//! # Ok::<(), tapstone_token::catalogue::CatalogueError>(())
//! ```

#![allow(clippy::unnecessary_cast, reason = "CK_ULONG has 32 bits on some platforms")]

#[doc(hidden)]
pub mod answers;
pub mod controller;
pub mod protocol;
pub mod worker;

pub use tapstone_module as module;
pub use tapstone_token_operations::{catalogue, material};
