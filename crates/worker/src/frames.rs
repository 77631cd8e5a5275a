//! Messages through a pipe: postcard, each with its length in four bytes before it.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroize;

/// Frames beyond this are not Tapstone's: something else wrote into the pipe.
const LONGEST_FRAME: u32 = 1 << 30;

/// What a frame gets room for before any of it has come.
const FIRST_ROOM: u32 = 64 << 10;

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
    // Room grows with what comes, not with what the length says. Orders with a PIN are short: they
    // are never moved, which would leave a copy.
    let mut frame = Vec::with_capacity(length.min(FIRST_ROOM) as usize);
    let read = pipe.take(length.into()).read_to_end(&mut frame)?;
    if read < length as usize {
        frame.zeroize();
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let message = postcard::from_bytes(&frame)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
    frame.zeroize();
    message.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says how much room it was offered at a time.
    struct Offered<'a> {
        bytes: &'a [u8],
        most: usize,
    }

    impl Read for Offered<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.most = self.most.max(buffer.len());
            self.bytes.read(buffer)
        }
    }

    #[test]
    fn a_length_that_lies_gets_no_room() {
        let mut bytes = LONGEST_FRAME.to_le_bytes().to_vec();
        bytes.extend([7; 10]);
        let mut pipe = Offered { bytes: &bytes, most: 0 };
        let error = receive::<u64>(&mut pipe).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(pipe.most <= 2 * FIRST_ROOM as usize, "{} bytes", pipe.most);
    }

    #[test]
    fn long_messages_come_whole() {
        let message = vec![7u8; 5 * FIRST_ROOM as usize];
        let mut frame = Vec::new();
        send(&mut frame, &message).unwrap();
        assert_eq!(receive::<Vec<u8>>(&mut &frame[..]).unwrap(), Some(message));
        assert_eq!(receive::<u8>(&mut &[][..]).unwrap(), None);
    }
}
