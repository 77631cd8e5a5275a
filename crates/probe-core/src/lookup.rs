//! `memoise`: the first answer of a lookup is kept, for each argument, and given again.
//!
//! Only for functions of which the answer's layout is known ([`answer_shape`]). The copy is deep. Where
//! the function hands out storage of its own, so does the fix, and as the original it is overwritten by
//! nobody else; where the caller brings room (`getpwnam_r` and the like), the copy is copied there.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::text::{text_length, text_up_to};

/// Bytes of a question's arguments, at most.
const KEY: usize = 96;
/// Bytes of a text in an answer, at most.
const LONGEST_TEXT: usize = 4096;
const EMPTY: usize = 0;
const FILLING: usize = 1;
const READY: usize = 2;

/// A word of a structure that a lookup returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A text that ends with NUL, by `char *`.
    Text,
    /// char **, which ends with null.
    Texts,
    /// Anything that is no pointer.
    Plain,
}

/// The arguments that are a lookup's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A name, as a text that ends with NUL.
    Name,
    /// A name and a protocol's.
    NameOfProtocol,
    /// A number of 32 bits.
    Number,
    /// A number and a protocol's name.
    NumberOfProtocol,
}

/// A lookup's answer and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerShape {
    /// The words of the structure that it returns.
    pub fields: &'static [Field],
    /// What it is asked.
    pub asked: Asked,
    /// Of functions that end with `_r`: which argument is the structure that the caller brings. A
    /// buffer for texts follows, its length, and where to write the structure's address.
    pub room: Option<usize>,
}

/// What `<netdb.h>`, `<pwd.h>` and `<grp.h>` say of a function's answer and of its arguments.
pub fn answer_shape(function: &str) -> Option<AnswerShape> {
    use Field::{Plain, Text, Texts};
    const PROTOCOL: &[Field] = &[Text, Texts, Plain];
    const SERVICE: &[Field] = &[Text, Texts, Plain, Text];
    const USER: &[Field] = &[Text, Text, Plain, Text, Text, Text];
    const GROUP: &[Field] = &[Text, Text, Plain, Texts];
    let plain = function.strip_suffix("_r").unwrap_or(function);
    let (fields, asked) = match plain {
        "getprotobyname" => (PROTOCOL, Asked::Name),
        "getprotobynumber" => (PROTOCOL, Asked::Number),
        "getservbyname" => (SERVICE, Asked::NameOfProtocol),
        "getservbyport" => (SERVICE, Asked::NumberOfProtocol),
        "getpwnam" => (USER, Asked::Name),
        "getpwuid" => (USER, Asked::Number),
        "getgrnam" => (GROUP, Asked::Name),
        "getgrgid" => (GROUP, Asked::Number),
        _ => return None,
    };
    let arguments = match asked {
        Asked::Name | Asked::Number => 1,
        Asked::NameOfProtocol | Asked::NumberOfProtocol => 2,
    };
    Some(AnswerShape { fields, asked, room: (plain != function).then_some(arguments) })
}

/// A lookup's function and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    function: u32,
    length: u32,
    key: [u8; KEY],
}

impl Question {
    /// The question that a call asks with its first two arguments; `None` when it is too long.
    ///
    /// # Safety
    /// The arguments are such as `asked` says; names end with a zero.
    pub unsafe fn read(function: u32, asked: Asked, first: u64, second: u64) -> Option<Self> {
        let mut question = Self { function, length: 0, key: [0; KEY] };
        match asked {
            Asked::Name | Asked::NameOfProtocol => {
                // SAFETY: the caller's promise.
                question.add(unsafe { text_up_to(first as *const u8, KEY) })?;
            }
            Asked::Number | Asked::NumberOfProtocol => {
                question.add(&(first as u32).to_ne_bytes())?;
            }
        }
        if matches!(asked, Asked::NameOfProtocol | Asked::NumberOfProtocol) {
            // SAFETY: the caller's promise.
            question.add(unsafe { text_up_to(second as *const u8, KEY) })?;
        }
        Some(question)
    }

    /// Adds an argument and a zero behind it, which may be cut off at the end.
    fn add(&mut self, argument: &[u8]) -> Option<()> {
        let start = self.length as usize;
        let place = self.key.get_mut(start..start + argument.len())?;
        for (to, from) in place.iter_mut().zip(argument) {
            *to = *from;
        }
        self.length += argument.len() as u32 + 1;
        Some(())
    }
}

/// One answer. Zeroed memory is a place that nobody has taken: the probe maps it.
#[repr(C)]
#[derive(Debug)]
pub struct LookupEntry {
    state: AtomicUsize,
    question: Question,
    answer: usize,
}

impl LookupEntry {
    /// A place that nobody has taken.
    pub const fn unused() -> Self {
        Self {
            state: AtomicUsize::new(EMPTY),
            question: Question { function: 0, length: 0, key: [0; KEY] },
            answer: 0,
        }
    }
}

/// The answer that is kept, as an address.
pub fn find_answer(entries: &[LookupEntry], question: &Question) -> Option<usize> {
    let taken = entries.iter().map(|entry| (entry.state.load(Ordering::Acquire), entry));
    let mut known = taken.take_while(|(state, _)| *state != EMPTY);
    let found = known.find(|(state, entry)| *state == READY && entry.question == *question);
    found.map(|(_, entry)| entry.answer)
}

/// Keeps an answer. False: there is no place.
///
/// # Safety
/// `entries` is a table of `count` such places, which is written only here.
pub unsafe fn keep_answer(
    entries: *mut LookupEntry,
    count: usize,
    question: &Question,
    answer: usize,
) -> bool {
    for at in 0..count {
        // SAFETY: inside the table; of a place that others read only its state is looked at.
        let state = unsafe { &(*entries.add(at)).state };
        if state.compare_exchange(EMPTY, FILLING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            continue;
        }
        // SAFETY: claimed by this thread; nobody reads it before it is ready.
        unsafe {
            (&raw mut (*entries.add(at)).question).write(*question);
            (&raw mut (*entries.add(at)).answer).write(answer);
        }
        state.store(READY, Ordering::Release);
        return true;
    }
    false
}

/// Memory that is handed out for good.
#[derive(Clone, Copy, Debug)]
pub struct Arena<'a> {
    /// Where it begins, on a multiple of 8; null when there is none.
    pub start: *mut u8,
    /// How long it is.
    pub bytes: usize,
    /// How much of it was asked for.
    pub used: &'a AtomicUsize,
}

impl Arena<'_> {
    /// Memory on a multiple of 8; `None` when so much is not left.
    fn take(&self, bytes: usize) -> Option<*mut u8> {
        let at = self.used.fetch_add(bytes.next_multiple_of(8), Ordering::AcqRel);
        let is_there = !self.start.is_null() && at + bytes <= self.bytes;
        is_there.then(|| self.start.wrapping_add(at))
    }
}

/// Copies an answer that is kept into a caller's structure and its buffer for texts. False: that is
/// too small, and holds nothing yet.
///
/// # Safety
/// `from` is an answer that [`copy_answer`] has made, not null; `to` has as many words, and `buffer`
/// as many bytes.
pub unsafe fn give_answer(
    from: usize,
    fields: &[Field],
    to: *mut usize,
    (buffer, length): (*mut u8, usize),
) -> bool {
    let skipped = buffer.align_offset(8).min(length);
    let used = AtomicUsize::new(0);
    let arena = Arena { start: buffer.wrapping_add(skipped), bytes: length - skipped, used: &used };
    // SAFETY: the caller's promise.
    !buffer.is_null() && unsafe { copy_fields(from as *const usize, to, fields, &arena) }.is_some()
}

/// A deep copy of an answer, as an address; of nothing, nothing. `None`: there is no room.
///
/// # Safety
/// `from` is null or a structure of that shape. The arena's memory is as long as it says.
pub unsafe fn copy_answer(
    from: *const usize,
    fields: &[Field],
    arena: &Arena<'_>,
) -> Option<usize> {
    if from.is_null() {
        return Some(0);
    }
    let to = arena.take(fields.len() * size_of::<usize>())?.cast::<usize>();
    // SAFETY: the caller's promise, and room for as many words.
    unsafe { copy_fields(from, to, fields, arena) }?;
    Some(to as usize)
}

/// # Safety
/// Both are structures of that shape. The arena's memory is as long as it says.
unsafe fn copy_fields(
    from: *const usize,
    to: *mut usize,
    fields: &[Field],
    arena: &Arena<'_>,
) -> Option<()> {
    for (at, field) in fields.iter().enumerate() {
        // SAFETY: as many words; texts end with a zero, lists with null.
        unsafe {
            let value = *from.add(at);
            *to.add(at) = match field {
                Field::Plain => value,
                Field::Text => copy_text(value as *const u8, arena)?,
                Field::Texts => copy_texts(value as *const usize, arena)?,
            };
        }
    }
    Some(())
}

/// # Safety
/// `from` is null or a text that ends with a zero.
unsafe fn copy_text(from: *const u8, arena: &Arena<'_>) -> Option<usize> {
    if from.is_null() {
        return Some(0);
    }
    // SAFETY: the text and its zero.
    unsafe {
        let length = text_length(from, LONGEST_TEXT);
        // One that is longer is not cut off.
        let to = (length < LONGEST_TEXT).then(|| arena.take(length + 1))??;
        ptr::copy_nonoverlapping(from, to, length);
        *to.add(length) = 0;
        Some(to as usize)
    }
}

/// # Safety
/// `from` is null or a list of texts that ends with null.
unsafe fn copy_texts(from: *const usize, arena: &Arena<'_>) -> Option<usize> {
    if from.is_null() {
        return Some(0);
    }
    // SAFETY: the list and its null.
    unsafe {
        let mut count = 0;
        while *from.add(count) != 0 {
            count += 1;
        }
        let to = arena.take((count + 1) * 8)?.cast::<usize>();
        for at in 0..count {
            *to.add(at) = copy_text(*from.add(at) as *const u8, arena)?;
        }
        *to.add(count) = 0;
        Some(to as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;

    use super::*;
    use crate::functions::{FUNCTIONS, Family, Kind};

    fn address(text: &[u8]) -> u64 {
        assert_eq!(text.last(), Some(&0));
        text.as_ptr() as u64
    }

    fn question(asked: Asked, first: u64, second: u64) -> Option<Question> {
        // SAFETY: tests pass texts that end with a zero.
        unsafe { Question::read(3, asked, first, second) }
    }

    #[test]
    fn every_lookup_in_storage_of_libc_has_a_shape() {
        for function in FUNCTIONS {
            let lookup = match function.family {
                Family::Libc(kind @ (Kind::LookupName | Kind::LookupNumber)) => Some(kind),
                _ => None,
            };
            let Some(AnswerShape { asked, room, .. }) = answer_shape(function.name) else {
                continue;
            };
            assert_eq!(room.is_some(), function.name.ends_with("_r"), "{}", function.name);
            let by_number = matches!(asked, Asked::Number | Asked::NumberOfProtocol);
            let expected = if by_number { Kind::LookupNumber } else { Kind::LookupName };
            assert_eq!(lookup, Some(expected), "{}", function.name);
        }
        for name in ["getaddrinfo", "gethostbyname", "gethostbyname_r", "poll", "_r", ""] {
            assert_eq!(answer_shape(name), None, "{name}");
        }
    }

    #[test]
    fn shapes_are_those_of_the_headers() {
        use Field::{Plain, Text, Texts};
        let fields = |name| answer_shape(name).unwrap().fields;
        // struct protoent, servent, passwd (uid and gid share a word), group.
        assert_eq!(fields("getprotobyname"), [Text, Texts, Plain]);
        assert_eq!(fields("getprotobynumber"), [Text, Texts, Plain]);
        assert_eq!(fields("getservbyname"), [Text, Texts, Plain, Text]);
        assert_eq!(fields("getservbyport"), [Text, Texts, Plain, Text]);
        assert_eq!(fields("getpwnam"), [Text, Text, Plain, Text, Text, Text]);
        assert_eq!(fields("getpwuid"), [Text, Text, Plain, Text, Text, Text]);
        assert_eq!(fields("getgrnam"), [Text, Text, Plain, Texts]);
        assert_eq!(fields("getgrgid"), [Text, Text, Plain, Texts]);
        assert_eq!(answer_shape("getservbyname").unwrap().asked, Asked::NameOfProtocol);
        assert_eq!(answer_shape("getservbyport").unwrap().asked, Asked::NumberOfProtocol);
    }

    #[test]
    fn callers_bring_room_behind_what_they_ask() {
        let room = |name| answer_shape(name).unwrap().room;
        for (name, expected) in [
            ("getpwnam", None),
            ("getpwnam_r", Some(1)),
            ("getgrgid_r", Some(1)),
            ("getservbyname_r", Some(2)),
        ] {
            assert_eq!(room(name), expected, "{name}");
        }
    }

    #[test]
    fn questions_are_equal_when_their_arguments_are() {
        let ask = |asked, first: &[u8], second: &[u8]| {
            question(asked, address(first), address(second)).unwrap()
        };
        let root = ask(Asked::Name, b"root\0", b"x\0");
        assert_eq!(root, ask(Asked::Name, b"root\0", b"y\0"), "a name is all that is asked");
        assert_ne!(root, ask(Asked::Name, b"roo\0", b"x\0"));
        let https = ask(Asked::NameOfProtocol, b"https\0", b"tcp\0");
        assert_eq!(https, ask(Asked::NameOfProtocol, b"https\0", b"tcp\0"));
        assert_ne!(https, ask(Asked::NameOfProtocol, b"https\0", b"udp\0"));
        // Where one argument ends and the other begins is part of it.
        assert_ne!(
            ask(Asked::NameOfProtocol, b"ab\0", b"c\0"),
            ask(Asked::NameOfProtocol, b"a\0", b"bc\0")
        );
    }

    #[test]
    fn numbers_have_32_bits() {
        let number = |first| question(Asked::Number, first, 0).unwrap();
        assert_eq!(number(7), number(7 | 1 << 40));
        assert_ne!(number(7), number(8));
        let tcp = question(Asked::NumberOfProtocol, 7, address(b"tcp\0"));
        assert_ne!(tcp, question(Asked::NumberOfProtocol, 7, address(b"udp\0")));
        assert_ne!(tcp, question(Asked::NumberOfProtocol, 7, 0), "any protocol");
    }

    #[test]
    fn questions_of_other_functions_are_others() {
        // SAFETY: numbers need nothing.
        let [one, other] =
            [3, 4].map(|function| unsafe { Question::read(function, Asked::Number, 7, 0) });
        assert_ne!(one, other);
    }

    #[test]
    fn what_is_too_long_is_no_question() {
        let mut name = [b'x'; KEY + 2];
        name[KEY + 1] = 0;
        name[KEY] = 0;
        assert!(question(Asked::Name, address(&name), 0).is_some());
        // A name that fills the key leaves no room for a protocol.
        assert!(question(Asked::NameOfProtocol, address(&name), address(b"tcp\0")).is_none());
        name[KEY - 4] = 0;
        assert!(question(Asked::NameOfProtocol, address(&name), address(b"tcp\0")).is_some());
        assert!(question(Asked::NameOfProtocol, address(&name), address(b"tcpx\0")).is_none());
    }

    #[test]
    fn answers_are_found_until_the_table_is_full() {
        let mut table = [const { LookupEntry::unused() }; 2];
        let ask = |number| question(Asked::Number, number, 0).unwrap();
        let mut keep = |number, answer| {
            // SAFETY: the table has as many places.
            unsafe { keep_answer(table.as_mut_ptr(), table.len(), &ask(number), answer) }
        };
        assert!(keep(1, 100));
        assert!(keep(2, 0));
        assert!(!keep(3, 300));
        assert_eq!(find_answer(&table, &ask(1)), Some(100));
        assert_eq!(find_answer(&table, &ask(2)), Some(0), "that there is nothing is an answer");
        assert_eq!(find_answer(&table, &ask(3)), None);
        assert_eq!(find_answer(&[], &ask(1)), None);
    }

    #[test]
    fn a_place_that_is_being_filled_is_passed_over() {
        let mut table = [const { LookupEntry::unused() }; 2];
        let asked = question(Asked::Number, 1, 0).unwrap();
        table[0].question = asked;
        table[0].state = AtomicUsize::new(FILLING);
        assert_eq!(find_answer(&table, &asked), None);
        // SAFETY: the table has as many places.
        assert!(unsafe { keep_answer(table.as_mut_ptr(), 2, &asked, 5) });
        assert_eq!(find_answer(&table, &asked), Some(5));
    }

    #[test]
    fn an_arena_hands_out_what_it_has() {
        let mut memory = [0_u64; 6];
        let used = AtomicUsize::new(0);
        let start: *mut u8 = memory.as_mut_ptr().cast();
        let arena = Arena { start, bytes: 48, used: &used };
        let offset = |bytes| arena.take(bytes).map(|at| at as usize - start as usize);
        assert_eq!(offset(1), Some(0));
        assert_eq!(offset(16), Some(8));
        assert_eq!(offset(25), None);
        let empty = Arena { start: ptr::null_mut(), bytes: 48, used: &AtomicUsize::new(0) };
        assert_eq!(empty.take(1), None);
        let exact = Arena { start, bytes: 48, used: &AtomicUsize::new(0) };
        assert_eq!(exact.take(48), Some(start));
    }

    /// The text at an address.
    fn text_at(address: usize) -> Vec<u8> {
        // SAFETY: a copy ends with a zero.
        unsafe { text_up_to(address as *const u8, 100) }.to_vec()
    }

    #[test]
    fn a_copy_is_deep() {
        let mut name = b"https\0".to_vec();
        let alias = b"web\0".to_vec();
        let aliases = [alias.as_ptr() as usize, name.as_ptr() as usize, 0];
        let answer = [name.as_ptr() as usize, aliases.as_ptr() as usize, 443, 0];
        let mut memory = [0_u64; 64];
        let used = AtomicUsize::new(0);
        let arena = Arena { start: memory.as_mut_ptr().cast(), bytes: 512, used: &used };
        let AnswerShape { fields, .. } = answer_shape("getservbyname").unwrap();
        // SAFETY: a struct servent.
        let copy = unsafe { copy_answer(answer.as_ptr(), fields, &arena) }.unwrap();
        name.fill(b'!');
        // SAFETY: the copy has the same shape.
        let [copied_name, list, port, protocol] = unsafe { *(copy as *const [usize; 4]) };
        assert_eq!(text_at(copied_name), b"https");
        assert_eq!((port, protocol), (443, 0));
        // SAFETY: a list that ends with null.
        let [first, second, end] = unsafe { *(list as *const [usize; 3]) };
        assert_eq!(text_at(first), b"web");
        assert_eq!(text_at(second), b"https");
        assert_eq!(end, 0);
    }

    #[test]
    fn no_answer_is_copied_as_none_and_without_room_there_is_no_copy() {
        let used = AtomicUsize::new(0);
        let nothing = Arena { start: ptr::null_mut(), bytes: 0, used: &used };
        let AnswerShape { fields, .. } = answer_shape("getprotobyname").unwrap();
        // SAFETY: null is allowed.
        assert_eq!(unsafe { copy_answer(ptr::null(), fields, &nothing) }, Some(0));
        let name = String::from("tcp\0");
        let answer = [name.as_ptr() as usize, 0, 6];
        // SAFETY: a struct protoent.
        assert_eq!(unsafe { copy_answer(answer.as_ptr(), fields, &nothing) }, None);
        // Room for the structure, not for its text.
        let mut memory = [0_u64; 4];
        let small = Arena { start: memory.as_mut_ptr().cast(), bytes: 27, used: &used };
        used.store(0, Ordering::Relaxed);
        // SAFETY: a struct protoent.
        assert_eq!(unsafe { copy_answer(answer.as_ptr(), fields, &small) }, None);
        // A list that is null stays so.
        let mut memory = [0_u64; 8];
        let enough = Arena { start: memory.as_mut_ptr().cast(), bytes: 64, used: &used };
        used.store(0, Ordering::Relaxed);
        // SAFETY: a struct protoent.
        let copy = unsafe { copy_answer(answer.as_ptr(), fields, &enough) }.unwrap();
        // SAFETY: the copy has the same shape.
        let [copied_name, aliases, number] = unsafe { *(copy as *const [usize; 3]) };
        assert_eq!(text_at(copied_name), b"tcp");
        assert_eq!((aliases, number), (0, 6));
    }

    #[test]
    fn an_answer_is_given_into_the_room_that_a_caller_brings() {
        let [name, other] = [b"root\0", b"boss\0"].map(|text| text.as_ptr() as usize);
        let members = [other, 0];
        let answer = [name, 0, 7, members.as_ptr() as usize];
        let AnswerShape { fields, .. } = answer_shape("getgrnam_r").unwrap();
        let give = |memory: &mut [u8], at: usize, length: usize| {
            let mut to = [0; 4];
            let buffer = (memory[at..].as_mut_ptr(), length);
            // SAFETY: a struct group, and room for one.
            let is_given =
                unsafe { give_answer(answer.as_ptr() as usize, fields, to.as_mut_ptr(), buffer) };
            is_given.then_some(to)
        };
        // A name, a list of one and its end, and its text: 8, 16 and 5 bytes, from the next multiple
        // of 8 on. What is there is no zero.
        let mut memory = std::vec![0xFF; 64];
        let first = memory.as_ptr().align_offset(8) + 1;
        let [given, password, number, list] = give(&mut memory, first, 7 + 29).unwrap();
        assert_eq!((text_at(given), password, number), (b"root".to_vec(), 0, 7));
        // SAFETY: a list that ends with null.
        let [member, end] = unsafe { *(list as *const [usize; 2]) };
        assert_eq!((text_at(member), end), (b"boss".to_vec(), 0));
        assert!((first..first + 36).contains(&(given - memory.as_ptr() as usize)));
        for length in [0, 7, 7 + 28] {
            assert_eq!(give(&mut memory, first, length), None, "{length}");
        }
        let nowhere = (ptr::null_mut(), 100);
        // SAFETY: no room at all.
        let is_given =
            unsafe { give_answer(answer.as_ptr() as usize, fields, [0; 4].as_mut_ptr(), nowhere) };
        assert!(!is_given);
    }

    #[test]
    fn a_text_that_is_too_long_is_not_cut_off() {
        let long = [std::vec![b'x'; LONGEST_TEXT], std::vec![0]].concat();
        let mut memory = std::vec![0_u64; 1024];
        let used = AtomicUsize::new(0);
        let arena = Arena { start: memory.as_mut_ptr().cast(), bytes: 8192, used: &used };
        let copied = |text: &[u8]| {
            let answer = [text.as_ptr() as usize, 0, 6];
            // SAFETY: a struct protoent.
            unsafe {
                copy_answer(answer.as_ptr(), &[Field::Text, Field::Texts, Field::Plain], &arena)
            }
        };
        assert!(copied(&long[1..]).is_some());
        used.store(0, Ordering::Relaxed);
        assert_eq!(copied(&long), None);
    }
}
