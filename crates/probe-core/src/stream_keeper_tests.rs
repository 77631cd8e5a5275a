use core::mem::zeroed;
use std::alloc::{Layout, alloc_zeroed};
use std::boxed::Box;

use super::*;

const FLAGS: u32 = MAGIC | 0x2480 | NO_WRITES;
const TEXT: &[u8] = b"key = value\n";

/// What may be otherwise with a stream.
type StreamChange<'a> = (&'static str, &'a dyn Fn(&mut LibraryStream));

fn keeper() -> Box<StreamKeeper> {
    // SAFETY: all zero is a keeper of nothing.
    unsafe { Box::from_raw(alloc_zeroed(Layout::new::<StreamKeeper>()).cast()) }
}

/// As fopen(3) returns it.
fn stream(descriptor: i32) -> Box<LibraryStream> {
    // SAFETY: numbers and pointers, of which all may be zero.
    let none: LibraryStream = unsafe { zeroed() };
    Box::new(LibraryStream { flags: FLAGS, descriptor, offset: UNKNOWN, ..none })
}

/// What reading it to its end leaves.
fn read_to_the_end(stream: &mut LibraryStream, buffer: &mut [u8]) {
    stream.buffer = buffer.as_mut_ptr() as usize;
    stream.buffer_end = stream.buffer + buffer.len();
    stream.set_read(0);
    stream.flags |= END_SEEN;
    stream.orientation = -1;
}

fn file(changed: u64) -> FileState {
    let mut words = [0; 18];
    words[0] = 7;
    words[1] = 8;
    words[3] = 0o100_644;
    words[6] = TEXT.len() as u64;
    words[14] = changed;
    FileState::from_words(&words)
}

fn request(mode: &[u8]) -> Option<Request<'static>> {
    Request::new(b"/etc/client.conf", mode)
}

/// A stream that was read to its end and closed, of a file whose content is known.
fn with_one_kept(keeper: &mut StreamKeeper, stream: &mut LibraryStream, buffer: &mut [u8]) {
    // SAFETY: a stream.
    assert!(unsafe { keeper.add(&request(b"r").unwrap(), stream, file(1)) });
    read_to_the_end(stream, buffer);
    let open = keeper.open(stream).unwrap();
    assert!(open.is_plain());
    open.room().unwrap().copy_from_slice(TEXT);
    open.has_content();
    open.keep();
}

#[test]
fn only_files_to_be_read_are_asked_for() {
    for mode in [&b"r"[..], b"rb", b"re", b"rbe"] {
        let asked = request(mode).unwrap();
        assert_eq!(asked.closes_on_exec, mode.contains(&b'e'), "{mode:?}");
    }
    for mode in [&b""[..], b"w", b"a", b"r+", b"rm", b"rc", b"r,ccs=UTF-8"] {
        assert_eq!(request(mode), None, "{mode:?}");
    }
    assert_eq!(Request::new(&[b'x'; LONGEST_PATH], b"r"), None);
    assert_eq!(Request::new(b"", b"r"), None);
}

#[test]
fn a_stream_is_given_again_as_it_was_opened_with_what_the_file_holds() {
    let mut keeper = keeper();
    let (mut stream, mut buffer) = (stream(5), [b'!'; 64]);
    assert!(stream.is_fresh());
    with_one_kept(&mut keeper, &mut stream, &mut buffer);
    assert_eq!((stream.flags, stream.offset, stream.orientation), (FLAGS, UNKNOWN, 0));
    assert!(keeper.open(&raw const *stream).is_none());
    assert!(keeper.kept(&request(b"re").unwrap()).is_none(), "another mode");
    let kept = keeper.kept(&request(b"r").unwrap()).unwrap();
    let (given, offset) = kept.give_again(file(1));
    assert!(ptr::eq(given, &raw const *stream));
    assert_eq!((offset, stream.offset), (FileOffset(TEXT.len()), TEXT.len() as i64));
    assert_eq!(stream.read_end - stream.read_at, TEXT.len());
    assert_eq!(&buffer[..TEXT.len()], TEXT);
    assert!(keeper.kept(&request(b"r").unwrap()).is_none(), "the program has it");
}

#[test]
fn of_a_file_that_changed_the_kernel_gives_what_it_holds() {
    let mut keeper = keeper();
    let (mut stream, mut buffer) = (stream(5), [0; 64]);
    with_one_kept(&mut keeper, &mut stream, &mut buffer);
    let kept = keeper.kept(&request(b"r").unwrap()).unwrap();
    assert_eq!(kept.give_again(file(2)).1, FileOffset(0));
    assert_eq!((stream.read_at, stream.read_end), (stream.buffer, stream.buffer));
    // Of another file in its place, too.
    let open = keeper.open(&raw const *stream).unwrap();
    open.room().unwrap();
    open.has_content();
    open.keep();
    let kept = keeper.kept(&request(b"r").unwrap()).unwrap();
    kept.move_to(9);
    assert_eq!(kept.give_again(file(2)).1, FileOffset(0));
    assert_eq!(stream.descriptor, 9);
}

#[test]
fn a_file_that_is_longer_than_the_buffer_is_not_taken_in() {
    let mut keeper = keeper();
    let (mut stream, mut buffer) = (stream(5), [0; 4]);
    // SAFETY: a stream.
    assert!(unsafe { keeper.add(&request(b"r").unwrap(), &raw mut *stream, file(1)) });
    read_to_the_end(&mut stream, &mut buffer);
    assert!(keeper.open(&raw const *stream).unwrap().room().is_none());
}

#[test]
fn a_stream_that_is_not_as_the_library_made_it_is_closed() {
    let locked = 1_u32;
    let change: [StreamChange<'_>; 9] = [
        ("a buffer of the program's", &|it| it.flags |= 1),
        ("an error", &|it| it.flags |= 0x20),
        ("written", &|it| it.write_at += 1),
        ("put back", &|it| it.save_base = 1),
        ("marked", &|it| it.markers = 1),
        ("wide", &|it| it.orientation = 1),
        ("another descriptor", &|it| it.descriptor = 6),
        ("mapped", &|it| it.more_flags |= 1),
        ("locked", &|it| it.lock = &raw const locked),
    ];
    for (what, change) in change {
        let mut keeper = keeper();
        let (mut stream, mut buffer) = (stream(5), [0; 64]);
        // SAFETY: a stream.
        assert!(unsafe { keeper.add(&request(b"r").unwrap(), &raw mut *stream, file(1)) });
        read_to_the_end(&mut stream, &mut buffer);
        assert!(keeper.open(&raw const *stream).unwrap().is_plain());
        change(&mut stream);
        assert!(!keeper.open(&raw const *stream).unwrap().is_plain(), "{what}");
    }
}

#[test]
fn what_is_not_laid_out_as_known_or_is_not_only_read_is_no_fresh_stream() {
    let change: [StreamChange<'_>; 6] = [
        ("no magic", &|it| it.flags = NO_WRITES),
        ("to be written", &|it| it.flags &= !NO_WRITES),
        ("with a buffer", &|it| it.buffer = 1),
        ("somewhere", &|it| it.offset = 0),
        ("wide", &|it| it.orientation = 1),
        ("standard input", &|it| it.descriptor = 0),
    ];
    for (what, change) in change {
        let mut stream = stream(5);
        change(&mut stream);
        assert!(!stream.is_fresh(), "{what}");
    }
}

#[test]
fn whoever_asks_for_the_descriptor_finds_it_where_it_would_be() {
    let mut keeper = keeper();
    let (mut stream, mut buffer) = (stream(5), [0; 64]);
    with_one_kept(&mut keeper, &mut stream, &mut buffer);
    keeper.kept(&request(b"r").unwrap()).unwrap().give_again(file(1));
    let open = keeper.open(&raw const *stream).unwrap();
    assert_eq!(open.offset_for_others(), Some(FileOffset(0)), "nothing was read");
    assert_eq!(stream.read_end, stream.read_at);
    let open = keeper.open(&raw const *stream).unwrap();
    assert_eq!(open.offset_for_others(), None, "it is there");
    open.keep();
    keeper.kept(&request(b"r").unwrap()).unwrap().give_again(file(1));
    stream.read_at += 1;
    let open = keeper.open(&raw const *stream).unwrap();
    assert_eq!(open.offset_for_others(), None, "all was read into the buffer at once");
    open.forget();
    assert!(keeper.open(&raw const *stream).is_none());
}

#[test]
fn a_descriptor_that_goes_is_forgotten_and_at_the_end_all_are() {
    let mut keeper = keeper();
    let (mut one, mut buffer) = (stream(5), [0; 64]);
    with_one_kept(&mut keeper, &mut one, &mut buffer);
    keeper.forget_descriptor(6);
    assert!(keeper.kept(&request(b"r").unwrap()).is_some());
    keeper.forget_descriptor(5);
    assert!(keeper.kept(&request(b"r").unwrap()).is_none());
    let (mut kept, mut kept_buffer) = (stream(7), [0; 64]);
    with_one_kept(&mut keeper, &mut kept, &mut kept_buffer);
    let mut open = stream(8);
    // SAFETY: a stream.
    assert!(unsafe { keeper.add(&request(b"r").unwrap(), &raw mut *open, file(1)) });
    let mut closed = std::vec::Vec::new();
    keeper.stop(|descriptor| closed.push(descriptor));
    assert_eq!(closed, [7], "the program has the other one");
    assert!(keeper.has_stopped() && keeper.open(&raw const *open).is_none());
    assert_eq!((kept.descriptor, open.descriptor), (-1, 8));
}

#[test]
fn there_is_room_for_so_many() {
    let mut keeper = keeper();
    let mut streams: std::vec::Vec<_> = (0..=PLACES as i32).map(|at| stream(at + 3)).collect();
    // SAFETY: streams.
    let mut add =
        |at: usize| unsafe { keeper.add(&request(b"r").unwrap(), &raw mut *streams[at], file(1)) };
    assert!((0..PLACES).all(&mut add));
    assert!(!add(PLACES));
    assert!(add(0), "one that was closed unseen");
}

#[test]
fn files_are_told_apart() {
    let regular = file(1);
    assert!(regular.is_filled_file());
    let with = |at: usize, value: u64| {
        let mut words = [0; 18];
        words[..7].copy_from_slice(&[7, 8, 0, 0o100_644, 0, 0, TEXT.len() as u64]);
        words[14] = 1;
        words[at] = value;
        FileState::from_words(&words)
    };
    assert_eq!(with(14, 1), regular);
    for (at, is_same) in [(0, false), (1, false), (4, false), (6, true), (11, true), (14, true)] {
        let other = with(at, 99);
        assert_ne!(other, regular);
        assert_eq!(other.is_same_file(&regular), is_same, "{at}");
    }
    assert!(!with(3, 0o100_600).is_same_file(&regular), "other permissions");
    assert!(!with(3, 0o100_644 | 5 << 32).is_same_file(&regular), "another owner");
    for other in [with(6, 0), with(3, 0o020_644), with(3, 0o040_755)] {
        assert!(!other.is_filled_file(), "{other:?}");
    }
}

#[test]
fn a_file_that_just_changed_may_change_unseen() {
    let at = |seconds, nanos| {
        let mut words = [0; 18];
        words[13] = seconds;
        words[14] = nanos;
        FileState::from_words(&words)
    };
    assert!(!at(100, 5_000_000).is_settled([100, 24_999_999]));
    assert!(at(100, 5_000_000).is_settled([100, 25_000_000]));
    assert!(!at(100, 0).is_settled([101, 999_999_999]), "whole seconds");
    assert!(at(100, 0).is_settled([102, 0]));
    assert!(!at(100, 1).is_settled([50, 0]), "a clock that was set back");
}

#[test]
fn only_file_systems_that_show_each_change_are_local() {
    assert!([0xEF53, 0x5846_5342, 0x0102_1994].into_iter().all(is_local));
    // NFS, FUSE, proc, sysfs, 9p.
    let others = [0x6969, 0x6573_5546, 0x9FA0, 0x6265_6572, 0x0102_1997];
    assert!(!others.into_iter().any(is_local));
}
