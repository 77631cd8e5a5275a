//! Programs in which the probe began when the file had no room left to say so.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use super::chunks::WORD;
use crate::starts::Unannounced;
use crate::wire;

/// Those of which the file's header has the numbers; none where it is cut short.
pub(super) fn unannounced(file: &File) -> io::Result<Vec<Unannounced>> {
    let mut words = vec![0; WORD * wire::UNANNOUNCED];
    match file.read_exact_at(&mut words, offset_of!(wire::Header, unannounced) as u64) {
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
        read => read?,
    }
    let words = words.chunks_exact(WORD);
    let both = words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
    let noted = both.filter(|both| *both != 0);
    Ok(noted
        .map(|both| Unannounced { process: both as u32, parent: (both >> 32) as u32 })
        .collect())
}
