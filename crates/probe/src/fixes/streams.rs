//! `memoise:fopen`: [`stream_keeper`](tapstone_probe_core::stream_keeper) in the program's memory.
//!
//! The kernel is asked at each opening whether the path still leads to the file, and whether that is
//! as it was; where the program goes another way with a stream or a descriptor, it goes it.

use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::names::known;
use tapstone_probe_core::stream_keeper::{
    FileOffset, FileState, KeptStream, LibraryStream, Request, StreamKeeper, is_local,
};
use tapstone_probe_core::text::text_up_to;
use tapstone_probe_core::wire::{FIX_MEMOISE, Fix};

use super::shared_cache::SharedCache;
use super::{AnsweredBy, FixAnswer, are_on, of_kind};
use crate::thread::{self, here};
use crate::{process, sys};

static KEEPER: SharedCache<StreamKeeper> = SharedCache::new();

/// Looks into the streams of this process.
fn keeper<R>(look: impl FnOnce(&mut StreamKeeper) -> R) -> Option<R> {
    // SAFETY: all zero is a keeper of nothing; nothing below looks again.
    unsafe { KEEPER.look(look) }
}

fn fix_of(function: u32) -> Option<&'static Fix> {
    of_kind(FIX_MEMOISE).find(|fix| fix.is_about(function))
}

/// A fix that keeps streams, if there is any.
fn any_fix() -> Option<&'static Fix> {
    fix_of(known::FOPEN).or_else(|| fix_of(known::FOPEN64))
}

/// # Safety
/// The frame is a call of fopen(3).
unsafe fn request(frame: &Frame) -> Option<Request<'static>> {
    const ENOUGH: usize = 4096;
    let [path, mode, ..] = frame.arguments;
    // SAFETY: both end with a zero, and are there while the call lasts.
    unsafe {
        Request::new(text_up_to(path as *const u8, ENOUGH), text_up_to(mode as *const u8, 16))
    }
}

fn opens_stream(function: u32) -> bool {
    matches!(function, known::FOPEN | known::FOPEN64)
}

/// Before a file is opened.
///
/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before_open(frame: &Frame, function: u32) -> FixAnswer {
    let Some(fix) = fix_of(function).filter(|_| opens_stream(function) && are_on()) else {
        return FixAnswer::Call;
    };
    // SAFETY: as above.
    let Some(request) = (unsafe { request(frame) }) else { return FixAnswer::Call };
    let path = frame.arguments[0] as *const u8;
    let given = keeper(|keeper| {
        let kept = keeper.kept(&request)?;
        // SAFETY: the path ends with a zero.
        unsafe { open_again(kept, path, request.closes_on_exec, fix) }
    });
    given.flatten().map_or(FixAnswer::Call, |stream| FixAnswer::Replaced(stream as u64))
}

/// The stream that was kept, at the beginning of the file that the path leads to now.
///
/// # Safety
/// The path ends with a zero.
unsafe fn open_again(
    kept: &mut KeptStream,
    path: *const u8,
    closes_on_exec: bool,
    fix: &Fix,
) -> Option<*mut LibraryStream> {
    let own = file_state(kept.descriptor()).filter(|own| own.is_same_file(kept.file()));
    if own.is_none() {
        // Its descriptor was closed unseen, and may be another file's.
        kept.forget();
        return None;
    }
    // SAFETY: the caller's promise.
    let file = unsafe { sys::file_at(path) }.map(|words| FileState::from_words(&words))?;
    if !file.is_same_file(kept.file()) {
        // SAFETY: as above.
        return unsafe { open_other(kept, path, closes_on_exec) };
    }
    let (stream, FileOffset(offset)) = kept.give_again(file);
    sys::seek(kept.descriptor(), offset);
    fix.count_applied();
    Some(stream)
}

/// The path leads to another file by now: the stream becomes that one's.
///
/// # Safety
/// The path ends with a zero.
unsafe fn open_other(
    kept: &mut KeptStream,
    path: *const u8,
    closes_on_exec: bool,
) -> Option<*mut LibraryStream> {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { sys::open_to_read(path, closes_on_exec) }?;
    sys::close(kept.descriptor());
    kept.move_to(descriptor);
    let file = may_be_kept(descriptor);
    let (stream, _) = kept.give_again(file.unwrap_or(*kept.file()));
    if file.is_none() {
        kept.forget();
    }
    Some(stream)
}

/// After a file was opened.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after_open(frame: &Frame, function: u32, by: AnsweredBy) {
    let is_ours = by == AnsweredBy::Function && opens_stream(function) && frame.result != 0;
    let Some(fix) = fix_of(function).filter(|_| is_ours && are_on()) else { return };
    let stream = frame.result as *mut LibraryStream;
    // SAFETY: as above; a stream of the C library.
    let (Some(request), true) = (unsafe { (request(frame), (*stream).is_fresh()) }) else { return };
    // SAFETY: as above.
    let Some(file) = may_be_kept(unsafe { (*stream).descriptor }) else { return };
    // SAFETY: as above.
    let added = |keeper: &mut StreamKeeper| unsafe {
        keeper.has_stopped() || !keeper.add(&request, stream, file)
    };
    if keeper(added) != Some(false) {
        fix.count_refused();
    }
}

/// Before a stream is closed.
pub(super) fn before_close(frame: &Frame) -> FixAnswer {
    let Some(fix) = any_fix() else { return FixAnswer::Call };
    let stream = frame.arguments[0] as *const LibraryStream;
    let is_kept = keeper(|keeper| {
        let open = keeper.open(stream)?;
        if !are_on() || !open.is_plain() {
            open.forget();
            return Some(false);
        }
        take_content(open);
        open.keep();
        Some(true)
    });
    match is_kept.flatten() {
        Some(true) => return FixAnswer::Replaced(0),
        Some(false) if are_on() => fix.count_refused(),
        _ => {}
    }
    FixAnswer::Call
}

/// Reads what a small file holds, unless that is known, or a change could go unseen.
fn take_content(open: &mut KeptStream) {
    let descriptor = open.descriptor();
    let file = *open.file();
    if !file.is_settled(sys::wall_clock()) {
        return;
    }
    let Some(room) = open.room() else { return };
    if sys::read_at_start(descriptor, room) == room.len() && file_state(descriptor) == Some(file) {
        open.has_content();
    }
}

fn file_state(descriptor: i32) -> Option<FileState> {
    sys::file_of(descriptor).map(|words| FileState::from_words(&words))
}

fn may_be_kept(descriptor: i32) -> Option<FileState> {
    let file = file_state(descriptor).filter(FileState::is_filled_file)?;
    sys::file_system_of(descriptor).is_some_and(is_local).then_some(file)
}

/// The program closes a descriptor.
pub(super) fn descriptor_closed(descriptor: u32) {
    if any_fix().is_some() && !process::is_borrowed() {
        keeper(|keeper| keeper.forget_descriptor(descriptor as i32));
    }
}

/// A shell is about to be started.
pub(super) fn before_shell() {
    if any_fix().is_some() && !process::is_borrowed() {
        keeper(|keeper| keeper.stop(sys::close));
    }
}

/// A descriptor becomes another file's.
pub(crate) fn descriptor_becomes(descriptor: u64) {
    in_turn(|keeper| keeper.forget_descriptor(descriptor as i32));
}

/// The program asks for a stream's descriptor, or makes it another file's.
pub(crate) fn stream_goes(stream: u64) {
    in_turn(|keeper| {
        let Some(open) = keeper.open(stream as *const LibraryStream) else { return };
        if let Some(FileOffset(offset)) = open.offset_for_others() {
            sys::seek(open.descriptor(), offset);
        }
        open.forget();
    });
}

/// What is open is another process's too, or will be closed.
pub(crate) fn program_parts() {
    in_turn(|keeper| keeper.stop(sys::close));
}

/// Outside of any watched call: a signal handler may have interrupted one.
fn in_turn(look: impl FnOnce(&mut StreamKeeper)) {
    if any_fix().is_none() || process::is_borrowed() {
        return;
    }
    if let Some(thread) = thread::enter(here()) {
        keeper(look);
        thread.leave();
    }
}
