//! What can be measured on a PKCS #11 token, and how software judges what it answers.
//!
//! [`catalogue`] says what there is to measure, as data; [`material`] makes the inputs of an
//! operation from a seed before the clock starts, and checks its results after it has stopped.
//! Nothing here calls a module: PKCS #11 is met only as constants.
//!
//! ```
//! use tapstone_token_operations::catalogue::{Catalogue, Shape};
//!
//! let chosen = Catalogue::builtin().select("rsa2048.sign")?;
//! assert_eq!(chosen[0].shape, Shape::Sign);
//! # Ok::<(), tapstone_token_operations::catalogue::CatalogueError>(())
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::unnecessary_cast, reason = "CK_ULONG has 32 bits on some platforms")]

pub mod catalogue;
pub mod material;
