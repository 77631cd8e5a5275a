//! `memoise:fopen`: a stream that the program closes stays open, and is the answer when it opens the
//! same file to read it again, if the file is as it was.
//!
//! Only regular files that are opened to read, by streams of the C library that are as it made them
//! when they are closed: without a buffer of the program's, wide characters, errors, or characters
//! that were put back. What was read of a small file ([`MOST_CONTENT`]) is kept beside the stream and
//! given again; of a larger one the kernel gives it, as of one that changed.
//!
//! What a change leaves unseen: one through a shared mapping, until the kernel writes it back.

use core::ptr;

/// Bytes of a file that are kept: as many as a stream's buffer has on most file systems.
pub const MOST_CONTENT: usize = 4096;
/// Streams that are open or kept.
const PLACES: usize = 32;
/// Bytes of a path, at most.
const LONGEST_PATH: usize = 256;
/// The numbers of standard streams are never kept from the program.
const LAST_STANDARD: i32 = 2;

/// A stream of the C library: the beginning of `struct _IO_FILE` (bits/types/struct_FILE.h), which
/// was part of what programs were compiled with, and so has not changed since glibc 2.1.
#[repr(C)]
#[derive(Debug)]
pub struct LibraryStream {
    flags: u32,
    read_at: usize,
    read_end: usize,
    read_base: usize,
    write_base: usize,
    write_at: usize,
    write_end: usize,
    buffer: usize,
    buffer_end: usize,
    save_base: usize,
    backup_base: usize,
    save_end: usize,
    markers: usize,
    chain: usize,
    /// Its descriptor.
    pub descriptor: i32,
    more_flags: u32,
    old_offset: i64,
    column: u16,
    vtable_offset: i8,
    short_buffer: u8,
    lock: *const u32,
    offset: i64,
    conversion: usize,
    wide: usize,
    free_list: usize,
    free_buffer: usize,
    chained_before: usize,
    orientation: i32,
}

const _: () = {
    assert!(core::mem::offset_of!(LibraryStream, descriptor) == 112);
    assert!(core::mem::offset_of!(LibraryStream, offset) == 144);
    assert!(core::mem::offset_of!(LibraryStream, orientation) == 192);
};

/// The upper half of every stream's flags.
const MAGIC: u32 = 0xFBAD_0000;
/// A buffer of the program's own, or none.
const USER_BUFFER: u32 = 1 | 2;
const NO_WRITES: u32 = 8;
const END_SEEN: u32 = 0x10;
/// Close-on-exec, and that threads were made meanwhile.
const HARMLESS: u32 = 64 | 128;
/// Where a stream is, is not known to it (`_IO_pos_BAD`).
const UNKNOWN: i64 = -1;

impl LibraryStream {
    /// Whether it is one to read that was just opened, and laid out as is known here.
    pub fn is_fresh(&self) -> bool {
        let nothing = [self.read_at, self.read_end, self.read_base, self.write_at, self.buffer];
        self.flags & 0xFFFF_0000 == MAGIC
            && self.flags & (USER_BUFFER | NO_WRITES | END_SEEN) == NO_WRITES
            && self.more_flags & !HARMLESS == 0
            && nothing == [0; 5]
            && self.offset == UNKNOWN
            && self.orientation == 0
            && self.descriptor > LAST_STANDARD
    }

    /// Whether it is as the C library made it, but for what was read.
    fn is_plain(&self, opened: &Opened) -> bool {
        // SAFETY: a stream's lock, which its library made.
        let is_locked = !self.lock.is_null() && unsafe { *self.lock } != 0;
        self.flags & !END_SEEN == opened.flags
            && self.more_flags & !HARMLESS == 0
            && self.write_at == self.write_base
            && (self.save_base, self.markers) == (0, 0)
            && self.orientation <= 0
            && self.descriptor == opened.descriptor
            && !is_locked
    }

    /// Makes it as it was when it was opened: the descriptor is to be at the file's beginning.
    fn begin_again(&mut self, flags: u32) {
        self.flags = flags;
        self.set_read(0);
        self.offset = UNKNOWN;
        self.orientation = 0;
    }

    /// So many bytes of the buffer are still to be read.
    fn set_read(&mut self, bytes: usize) {
        self.read_at = self.buffer;
        self.read_base = self.buffer;
        self.read_end = self.buffer + bytes;
        self.write_base = self.buffer;
        self.write_at = self.buffer;
        self.write_end = self.buffer;
    }

    /// Has the file's content in its buffer: the descriptor is to be at the end.
    fn fill(&mut self, content: &[u8]) {
        // SAFETY: the buffer is the stream's, and nobody else's; `has_room_for` was asked.
        unsafe {
            ptr::copy_nonoverlapping(content.as_ptr(), self.buffer as *mut u8, content.len());
        }
        self.set_read(content.len());
        self.offset = content.len() as i64;
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.buffer != 0 && self.buffer_end.saturating_sub(self.buffer) >= bytes
    }

    fn is_unread(&self) -> bool {
        self.read_at == self.read_base
    }
}

/// What the kernel says of a file (stat(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    device: u64,
    number: u64,
    /// Kind and permissions.
    mode: u64,
    owner: u64,
    group: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: [u64; 2],
    changed: [u64; 2],
}

impl FileState {
    /// From the words of the kernel's `struct stat` on x86-64.
    pub const fn from_words(words: &[u64; 18]) -> Self {
        Self {
            device: words[0],
            number: words[1],
            mode: words[3] & 0xFFFF_FFFF,
            owner: words[3] >> 32,
            group: words[4] & 0xFFFF_FFFF,
            size: words[6],
            modified: [words[11], words[12]],
            changed: [words[13], words[14]],
        }
    }

    /// Whether it is a regular file with something in it: those of /proc have a size of 0.
    pub fn is_filled_file(&self) -> bool {
        const KIND: u64 = 0o170_000;
        const REGULAR: u64 = 0o100_000;
        self.mode & KIND == REGULAR && self.size > 0
    }

    /// Whether it is that file, with the same permissions, whatever is in it.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let of = |it: &Self| [it.device, it.number, it.mode, it.owner, it.group];
        of(self) == of(other)
    }

    /// Whether each change after `now` will show: the clock of files ticks every 10 ms at the
    /// slowest, of some file systems once a second.
    pub fn is_settled(&self, now: [u64; 2]) -> bool {
        const BILLION: u64 = 1_000_000_000;
        let nanos = |[seconds, nanos]: [u64; 2]| seconds.saturating_mul(BILLION) + nanos;
        let margin = if self.changed[1] == 0 { 2 * BILLION } else { BILLION / 50 };
        nanos(self.changed).saturating_add(margin) <= nanos(now)
    }
}

/// A file system that keeps what it holds to itself, so that whoever looks sees each change: ext2 to
/// ext4, XFS, Btrfs, F2FS, tmpfs and overlays of them (statfs(2)).
pub fn is_local(file_system: u64) -> bool {
    matches!(
        file_system,
        0xEF53 | 0x5846_5342 | 0x9123_683E | 0xF2F5_2010 | 0x0102_1994 | 0x794C_7630
    )
}

/// What a program asks of fopen(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    path: &'a [u8],
    /// The descriptor is not for programs that this one becomes.
    pub closes_on_exec: bool,
}

impl<'a> Request<'a> {
    /// `None` where it is not only to be read, or the path is too long.
    pub fn new(path: &'a [u8], mode: &[u8]) -> Option<Self> {
        let [b'r', more @ ..] = mode else { return None };
        let fits = !path.is_empty() && path.len() < LONGEST_PATH;
        let is_plain = more.iter().all(|letter| matches!(letter, b'b' | b'e'));
        (fits && is_plain).then(|| Self { path, closes_on_exec: more.contains(&b'e') })
    }
}

/// What is to be known of a stream when it is closed.
#[derive(Clone, Copy, Debug)]
struct Opened {
    flags: u32,
    descriptor: i32,
}

const FREE: u32 = 0;
const OPEN: u32 = 1;
const KEPT: u32 = 2;

/// A stream that is open, or kept. All zero: none.
#[repr(C)]
#[derive(Debug)]
pub struct KeptStream {
    state: u32,
    opened: Opened,
    closes_on_exec: bool,
    stream: *mut LibraryStream,
    file: FileState,
    path_length: usize,
    path: [u8; LONGEST_PATH],
    /// How much of the file is here: all of it, or nothing.
    content_length: usize,
    content: [u8; MOST_CONTENT],
}

/// Where the kernel has to be in a file that is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOffset(pub usize);

impl KeptStream {
    /// Its descriptor.
    pub fn descriptor(&self) -> i32 {
        self.opened.descriptor
    }

    /// What the kernel said of the file.
    pub fn file(&self) -> &FileState {
        &self.file
    }

    /// The stream is open again. Its file may be in another state than it was.
    pub fn give_again(&mut self, file: FileState) -> (*mut LibraryStream, FileOffset) {
        if file != self.file {
            self.file = file;
            self.content_length = 0;
        }
        self.state = OPEN;
        // SAFETY: a stream that was not closed.
        let stream = unsafe { &mut *self.stream };
        let content = self.content.get(..self.content_length).unwrap_or_default();
        if !content.is_empty() && stream.has_room_for(content.len()) {
            stream.fill(content);
            return (self.stream, FileOffset(content.len()));
        }
        (self.stream, FileOffset(0))
    }

    /// Another file has its place, behind this descriptor.
    pub fn move_to(&mut self, descriptor: i32) {
        self.content_length = 0;
        self.opened.descriptor = descriptor;
        // SAFETY: a stream that was not closed.
        unsafe { (*self.stream).descriptor = descriptor };
    }

    /// Whether its stream is such as may be kept.
    pub fn is_plain(&self) -> bool {
        // SAFETY: a stream that the program is about to close.
        unsafe { (*self.stream).is_plain(&self.opened) }
    }

    /// Where the content goes that is to be read once more: nowhere when it is here, or too long.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        let size = self.file.size as usize;
        let is_here = self.content_length > 0;
        // SAFETY: as above.
        let has_room = unsafe { (*self.stream).has_room_for(size) };
        if is_here || !has_room { None } else { self.content.get_mut(..size) }
    }

    /// What was read there is the file's content.
    pub fn has_content(&mut self) {
        self.content_length = self.file.size as usize;
    }

    /// The program thinks that it is closed.
    pub fn keep(&mut self) {
        self.state = KEPT;
        // SAFETY: as above; the program does not use it any more.
        unsafe { (*self.stream).begin_again(self.opened.flags) };
    }

    /// The program asks for the descriptor: where it is to be, if it is not there.
    pub fn offset_for_others(&mut self) -> Option<FileOffset> {
        // SAFETY: a stream that is open.
        let stream = unsafe { &mut *self.stream };
        if self.content_length == 0 || !stream.is_unread() || stream.read_end == stream.read_at {
            return None;
        }
        stream.begin_again(self.opened.flags);
        Some(FileOffset(0))
    }

    /// Nothing is known of it any more.
    pub fn forget(&mut self) {
        self.state = FREE;
    }

    fn is_of(&self, request: &Request<'_>) -> bool {
        self.path.get(..self.path_length) == Some(request.path)
            && self.closes_on_exec == request.closes_on_exec
    }
}

/// The streams of a process. All zero: none.
#[repr(C)]
#[derive(Debug)]
pub struct StreamKeeper {
    has_stopped: bool,
    places: [KeptStream; PLACES],
}

impl StreamKeeper {
    /// Whether it keeps none any more.
    pub fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    /// A stream that was kept of what is asked for.
    pub fn kept(&mut self, request: &Request<'_>) -> Option<&mut KeptStream> {
        self.places.iter_mut().find(|place| place.state == KEPT && place.is_of(request))
    }

    /// A stream that is open.
    pub fn open(&mut self, stream: *const LibraryStream) -> Option<&mut KeptStream> {
        self.places.iter_mut().find(|place| place.state == OPEN && ptr::eq(place.stream, stream))
    }

    /// The C library has opened a stream of a file. False: there is no place for it.
    ///
    /// # Safety
    /// It is one.
    pub unsafe fn add(
        &mut self,
        request: &Request<'_>,
        stream: *mut LibraryStream,
        file: FileState,
    ) -> bool {
        // One that was closed unseen.
        if let Some(place) = self.open(stream) {
            place.forget();
        }
        let Some(place) = self.places.iter_mut().find(|place| place.state == FREE) else {
            return false;
        };
        // SAFETY: the caller's promise.
        let LibraryStream { flags, descriptor, .. } = unsafe { &*stream };
        place.opened = Opened { flags: *flags, descriptor: *descriptor };
        place.closes_on_exec = request.closes_on_exec;
        place.stream = stream;
        place.file = file;
        place.path_length = request.path.len();
        for (to, from) in place.path.iter_mut().zip(request.path) {
            *to = *from;
        }
        place.content_length = 0;
        place.state = OPEN;
        true
    }

    /// A descriptor is closed, or becomes another file's.
    pub fn forget_descriptor(&mut self, descriptor: i32) {
        let of_it = |place: &&mut KeptStream| place.opened.descriptor == descriptor;
        self.places.iter_mut().filter(of_it).for_each(KeptStream::forget);
    }

    /// Keeps none from now on, and hands over the descriptors of those that were kept.
    pub fn stop(&mut self, mut close: impl FnMut(i32)) {
        self.has_stopped = true;
        for place in &mut self.places {
            if place.state == KEPT {
                close(place.opened.descriptor);
                place.move_to(-1);
            }
            place.forget();
        }
    }
}

#[cfg(test)]
#[path = "stream_keeper_tests.rs"]
mod tests;
