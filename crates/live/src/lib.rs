//! A run as it goes on: [`LiveSocket`] hands its figures to whoever connects to a socket, and
//! [`serve::LiveServer`] shows them as a page that only this machine can open.
//!
//! What comes over the socket is a line of JSON for each [`LiveFrame`]. Who measures never waits for who
//! looks: frames for which there is no room are dropped, and the next one says how many.
//!
//! ```
//! use std::io::{BufRead, BufReader};
//! use std::os::unix::net::UnixStream;
//! use tapstone_live::{LiveFrame, LiveSocket};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("live");
//! let socket = LiveSocket::bind(&path)?;
//! let seen = BufReader::new(UnixStream::connect(&path)?);
//! socket.finish(&"the record");
//! let last = seen.lines().last().expect("the record")?;
//! assert!(matches!(serde_json::from_str(&last)?, LiveFrame::Record(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod connect;
mod frame;
mod http;
mod page;
mod publish;
pub mod serve;

pub use self::frame::{Figures, LiveFrame};
pub use self::publish::LiveSocket;
