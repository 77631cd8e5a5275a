//! Messages through a pipe: postcard, each with its length in four bytes before it.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroize;

/// Frames beyond this are not Tapstone's: something else wrote into the pipe.
const LONGEST_FRAME: u32 = 1 << 30;

/// Writes one message.
///
/// # Errors
/// What the pipe says; [`io::ErrorKind::InvalidData`] for a message that cannot be encoded.
pub fn send<T: Serialize>(pipe: &mut impl Write, message: &T) -> io::Result<()> {
    let mut frame = postcard::to_extend(message, vec![0; 4])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let length = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    let written = pipe.write_all(&frame).and_then(|()| pipe.flush());
    // It may have held a PIN.
    frame.zeroize();
    written
}

/// Reads one message; `None` at the end of the pipe.
///
/// # Errors
/// What the pipe says; [`io::ErrorKind::InvalidData`] for what is no message.
pub fn receive<T: DeserializeOwned>(pipe: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match pipe.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame of impossible length"));
    }
    let mut frame = vec![0; length as usize];
    pipe.read_exact(&mut frame)?;
    let message = postcard::from_bytes(&frame)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
    frame.zeroize();
    message.map(Some)
}
