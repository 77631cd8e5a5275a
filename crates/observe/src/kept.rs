//! A file of events that was kept by an earlier run.

use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;
use std::path::Path;

use tapstone_measure::units::Nanos;

use crate::clock::{ClockReading, Scale};
use crate::recording::{self, EventsError, Recording};
use crate::wire::{Header, MAGIC, NO_SPACE, Run, VERSION};
use tapstone_events::{Losses, ObservedRun};

/// What such a file holds.
#[derive(Debug)]
pub struct Kept {
    /// What the program did.
    pub recording: Recording,
    /// How long it took.
    pub wall: Nanos,
    /// What else is missing, but for the dropped events that no reason is known of: these are in
    /// the recording.
    pub losses: Losses,
    /// Bytes that are missing at the file's end: it was cut short.
    pub missing: u64,
}

/// Reads as much of it as there is.
///
/// # Errors
/// When it cannot be read, or is something else.
pub fn read_kept(path: &Path) -> Result<Kept, EventsError> {
    let open = |why| EventsError::Open { path: path.to_owned(), why };
    let file = File::open(path).map_err(open)?;
    let fields = Fields::of_header(&file).map_err(open)?;
    let fields = fields.ok_or_else(|| EventsError::NoEvents(path.to_owned()))?;
    let started = Nanos(fields.started);
    let ended = Nanos(fields.ended);
    let length = file.metadata()?.len();
    let missing = recording::used(&file)?.saturating_sub(length);
    let processor = Some(Nanos(fields.processor)).filter(|it| *it > Nanos::ZERO);
    let run = ObservedRun { started, ended, dropped: fields.dropped, processor, summed_from: None };
    let recording = Recording::new(file, fields.scale, run)?;
    let losses = recording.with_sums(fields.losses);
    Ok(Kept { recording, wall: ended - started, losses, missing })
}

/// What the header says of the run.
struct Fields {
    scale: Scale,
    started: u64,
    ended: u64,
    processor: u64,
    dropped: u64,
    losses: Losses,
}

impl Fields {
    /// `None`: it is no header, or the run never came to its end.
    fn of_header(file: &File) -> io::Result<Option<Self>> {
        let mut header = vec![0; size_of::<Header>()];
        match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let word = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("eight"));
        let half = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four"));
        let is_one = word(offset_of!(Header, magic)) == MAGIC
            && half(offset_of!(Header, version)) == VERSION;
        let run = |at: usize| word(offset_of!(Header, run) + at);
        let reading = |at: usize| ClockReading::of_both([run(at), run(at + 8)]);
        let started = run(offset_of!(Run, started));
        let ended = run(offset_of!(Run, ended));
        if !is_one || ended < started || started == 0 {
            return Ok(None);
        }
        let [first, last] = [offset_of!(Run, first), offset_of!(Run, last)].map(reading);
        let clock = half(offset_of!(Header, clock));
        let losses = Losses {
            interrupted: word(offset_of!(Header, interrupted)),
            crowded: word(offset_of!(Header, crowded)),
            out_of_reach: word(offset_of!(Header, out_of_reach)),
            unwatched: word(offset_of!(Header, unwatched)),
            limited: word(offset_of!(Header, limited)),
            outdated: word(offset_of!(Header, outdated)),
            full: word(offset_of!(Header, granted)) >= word(offset_of!(Header, most)),
            disk: (word(offset_of!(Header, refused)) == NO_SPACE)
                .then(|| io::Error::from_raw_os_error(libc::ENOSPC)),
            ..Losses::default()
        };
        Ok(Some(Self {
            scale: Scale::between(first, last, clock),
            started,
            ended,
            processor: run(offset_of!(Run, processor)),
            dropped: word(offset_of!(Header, dropped)),
            losses,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{CHUNK_BYTES, HEADER_BYTES};

    /// A file of one empty chunk, in whose header these words stand at these places.
    fn kept_with(words: &[(usize, u64)]) -> Result<Kept, EventsError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len((HEADER_BYTES + CHUNK_BYTES) as u64).unwrap();
        let run = offset_of!(Header, run);
        let sound = [
            (offset_of!(Header, magic), MAGIC),
            (offset_of!(Header, version), u64::from(VERSION)),
            (offset_of!(Header, taken), 1),
            (run + offset_of!(Run, started), 1),
            (run + offset_of!(Run, ended), 1_000),
        ];
        for (at, word) in sound.iter().chain(words) {
            file.as_file().write_all_at(&word.to_ne_bytes(), *at as u64).unwrap();
        }
        read_kept(file.path())
    }

    #[test]
    fn a_header_that_names_more_chunks_than_can_be_is_a_file_that_was_cut_short() {
        assert_eq!(kept_with(&[]).unwrap().missing, 0);
        let kept = kept_with(&[(offset_of!(Header, taken), u64::MAX)]).unwrap();
        assert!(kept.missing > 1 << 60);
    }
}
