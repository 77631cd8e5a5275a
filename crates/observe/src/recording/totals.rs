//! Calls that threads summed when the file listed no more.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use tapstone_events::{SummedCalls, SummedDetails, UnlistedCall};
use tapstone_measure::units::Nanos;
use tapstone_probe_core::last_calls::LastCall;
use tapstone_probe_core::times::{BUCKETS, CallTimes, middle_of};
use tapstone_probe_core::totals::{CallTotals, FAILURES, Failures, LEFT};

use super::chunks::{RecordingChunk, WORD};
use super::declarations::ProgramImages;
use crate::clock::Scale;
use crate::wire;

/// When the first call was summed; `None` where all are listed, and where the file's header is cut
/// short.
pub(super) fn summed_from(file: &File, scale: &Scale) -> io::Result<Option<Nanos>> {
    let mut word = [0; WORD];
    match file.read_exact_at(&mut word, offset_of!(wire::Header, summed_from) as u64) {
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let from = u64::from_ne_bytes(word);
    Ok((from != 0).then(|| scale.moment(from)))
}

/// What is known of summed calls one by one, by the program's image, thread and stub.
pub(super) type Details = HashMap<(usize, u32, u64), SummedDetails>;

/// Adds what a chunk of times says.
pub(super) fn add_details(
    file: &File,
    scale: &Scale,
    images: &ProgramImages,
    chunk: &RecordingChunk,
    to: &mut Details,
) -> io::Result<()> {
    let content = chunk.content(file)?;
    let Some(image) = images.at(chunk.process, chunk.number) else { return Ok(()) };
    for times in content.chunks_exact(size_of::<CallTimes>()) {
        let slot_and_one = word_at(times, offset_of!(CallTimes, slot_and_one));
        let counted = (0..BUCKETS).map(|bucket| {
            let at = offset_of!(CallTimes, counts) + bucket * WORD;
            (scale.duration(middle_of(bucket)), word_at(times, at))
        });
        let details = to.entry((image, chunk.thread, slot_and_one)).or_default();
        details.times.extend(counted.filter(|(_, count)| *count > 0));
        let again = word_at(times, offset_of!(CallTimes, again));
        details.again = details.again.saturating_add(again);
        details.time_again += scale.duration(word_at(times, offset_of!(CallTimes, time_again)));
    }
    Ok(())
}

/// The last calls of a chunk, of those functions that its program has declared.
pub(super) fn last_calls(
    file: &File,
    scale: &Scale,
    images: &ProgramImages,
    chunk: &RecordingChunk,
) -> io::Result<Vec<UnlistedCall>> {
    let content = chunk.content(file)?;
    let Some(image) = images.at(chunk.process, chunk.number) else { return Ok(Vec::new()) };
    let all = content.chunks_exact(size_of::<LastCall>()).filter_map(|call| {
        let word = |at: usize| word_at(call, at);
        let slot_and_thread = word(offset_of!(LastCall, slot_and_one));
        let slot = (slot_and_thread as u32).checked_sub(1)?;
        let start = scale.moment(word(offset_of!(LastCall, start)));
        Some(UnlistedCall {
            process: chunk.process,
            thread: (slot_and_thread >> 32) as u32,
            function: images.function(image, slot)?,
            start,
            // The file may be anybody's.
            end: scale.moment(word(offset_of!(LastCall, end))).max(start),
            result: word(offset_of!(LastCall, result)),
        })
    });
    Ok(all.collect())
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + WORD].try_into().expect("eight bytes"))
}

/// The sums of a chunk, of those functions that its program has declared, with what is taken out of
/// `details`.
pub(super) fn summed_calls(
    file: &File,
    scale: &Scale,
    images: &ProgramImages,
    chunk: &RecordingChunk,
    details: &mut Details,
) -> io::Result<Vec<SummedCalls>> {
    let content = chunk.content(file)?;
    let Some(image) = images.at(chunk.process, chunk.number) else { return Ok(Vec::new()) };
    let all = content.chunks_exact(size_of::<CallTotals>()).filter_map(|totals| {
        let word = |at: usize| word_at(totals, at);
        let slot_and_one = word(offset_of!(CallTotals, slot_and_one));
        let slot = slot_and_one.checked_sub(1)?;
        let failed = (0..FAILURES).map(|number| {
            let at = offset_of!(CallTotals, failures) + number * size_of::<Failures>();
            let code = word(at + offset_of!(Failures, code));
            ((code != LEFT).then_some(code), word(at + offset_of!(Failures, count)))
        });
        let begun = word(offset_of!(CallTotals, begun));
        let ended = word(offset_of!(CallTotals, count));
        Some(SummedCalls {
            process: chunk.process,
            thread: chunk.thread,
            function: images.function(image, u32::try_from(slot).ok()?)?,
            // The beginning of a call may have found no room, and its end some.
            count: begun.max(ended),
            unfinished: begun.saturating_sub(ended),
            time: scale.duration(word(offset_of!(CallTotals, time))),
            timed: word(offset_of!(CallTotals, timed)).min(ended),
            own: scale.duration(word(offset_of!(CallTotals, own))),
            failed: failed.filter(|(_, count)| *count > 0).collect(),
            other_failures: word(offset_of!(CallTotals, other_failures)),
            details: details.remove(&(image, chunk.thread, slot_and_one)).unwrap_or_default(),
        })
    });
    Ok(all.collect())
}
