//! Programs as they are posted: a header, a sealed part, a clear part.
//!
//! The body is SHA-1 of the program, then the program. Under a key its first part is encrypted
//! together with a digest of its own.

use sha1::{Digest, Sha1};
use tapstone_apdu::StatusWord;

use super::cipher::blocks_of_sha;
use super::keys::{KeyId, Keys};
use super::machine::{Bytecode, LONGEST};
use super::work;
use crate::applet::{CardWork, Reply};

const MAGIC: [u8; 2] = *b"TP";
const DIGEST: usize = 20;
/// The longest sealed part.
const LONGEST_SEALED: usize = 512;

/// The program in the image, and what it took to check it.
pub(super) fn open(
    image: &[u8],
    keys: &mut Keys,
    key: Option<KeyId>,
) -> Result<(Bytecode, Vec<CardWork>), StatusWord> {
    if let Some(key) = key {
        keys.require(key)?;
    }
    let (sealed, clear) = parts(image)?;
    let mut reply = Reply::ok([]);
    let mut body = Vec::new();
    match key {
        None if !sealed.is_empty() => return Err(StatusWord::WRONG_DATA),
        None => {}
        Some(_) if sealed.is_empty() || sealed.len() > LONGEST_SEALED => {
            return Err(StatusWord::WRONG_DATA);
        }
        Some(key) => {
            let opened = keys.decrypt(key, sealed)?;
            let (start, digest) = split_end(&opened.plain)?;
            if start.len() < DIGEST {
                return Err(StatusWord::WRONG_DATA);
            }
            check(start, digest)?;
            body.extend(start);
            reply = opened.charge(reply).after(work::SHA1_BLOCK, blocks_of_sha(start.len()));
        }
    }
    body.extend(clear);
    let (digest, program) = body.split_at_checked(DIGEST).ok_or(StatusWord::WRONG_DATA)?;
    check(program, digest)?;
    if program.len() > LONGEST {
        return Err(StatusWord::WRONG_DATA);
    }
    let reply = reply
        .after(work::SHA1_BLOCK, blocks_of_sha(program.len()))
        .after(work::VM_LOAD_BYTE, body.len() as u32);
    let program = Bytecode::new(program).ok_or(StatusWord::WRONG_DATA)?;
    Ok((program, reply.work))
}

/// The sealed part and the clear part; what follows them in the buffer is not looked at.
fn parts(image: &[u8]) -> Result<(&[u8], &[u8]), StatusWord> {
    let (&[m0, m1, s0, s1, c0, c1], rest) =
        image.split_first_chunk().ok_or(StatusWord::WRONG_DATA)?;
    let sealed = usize::from(u16::from_be_bytes([s0, s1]));
    let clear = usize::from(u16::from_be_bytes([c0, c1]));
    if [m0, m1] != MAGIC {
        return Err(StatusWord::WRONG_DATA);
    }
    let (sealed, rest) = rest.split_at_checked(sealed).ok_or(StatusWord::WRONG_DATA)?;
    Ok((sealed, rest.get(..clear).ok_or(StatusWord::WRONG_DATA)?))
}

fn split_end(plain: &[u8]) -> Result<(&[u8], &[u8]), StatusWord> {
    let end = plain.len().checked_sub(DIGEST).ok_or(StatusWord::WRONG_DATA)?;
    Ok(plain.split_at(end))
}

fn check(bytes: &[u8], digest: &[u8]) -> Result<(), StatusWord> {
    if Sha1::digest(bytes)[..] == *digest { Ok(()) } else { Err(StatusWord::WRONG_DATA) }
}
