//! What the kernel's programs (programs/watch.bpf.c) and this side both read and write.

use tapstone_names::pkcs11::takes_mechanism;

/// The object that `make bpf` makes of programs/watch.bpf.c.
pub(crate) static PROGRAMS: &Aligned<[u8]> = &Aligned(*include_bytes!("../programs/watch.bpf.o"));

/// ELF files are read in place, word by word.
#[repr(align(8))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

/// `struct settings`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) is_enabled: bool,
    pub(crate) with_children: bool,
    /// Where the kernel has a process's and a thread's id, in bytes from a task's beginning.
    pub(crate) process_at: u32,
    pub(crate) thread_at: u32,
}

impl Settings {
    pub(crate) fn bytes(self) -> Vec<u8> {
        let enabled = u32::from(self.is_enabled);
        let children = u32::from(self.with_children);
        words(&[enabled, children, self.process_at, self.thread_at])
    }
}

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `TOTAL_…`, by their places in the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls that began while the functions were watched.
    pub begun: u64,
    /// Of these, those that ended so.
    pub ended: u64,
    /// Calls that were under way when watching began.
    pub at_attach: u64,
    /// Calls that were handed over one by one.
    pub sent: u64,
    /// Calls that found no room on the way.
    pub lost: u64,
    /// Calls that were not counted for want of room.
    pub crowded: u64,
    /// Calls of functions whose return is not watched.
    pub entries: u64,
    /// Waits and processes that found no room on the way.
    pub notes_lost: u64,
    /// Templates and answers of searches that could not be compared with others.
    pub not_compared: u64,
}

impl Totals {
    pub(crate) const COUNT: u32 = 9;

    pub(crate) const fn from_array(of: [u64; Self::COUNT as usize]) -> Self {
        let [begun, ended, at_attach, sent, lost, crowded, entries, notes_lost, not_compared] = of;
        Self { begun, ended, at_attach, sent, lost, crowded, entries, notes_lost, not_compared }
    }

    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            begun: self.begun - before.begun,
            ended: self.ended - before.ended,
            at_attach: self.at_attach - before.at_attach,
            sent: self.sent - before.sent,
            lost: self.lost - before.lost,
            crowded: self.crowded - before.crowded,
            entries: self.entries - before.entries,
            notes_lost: self.notes_lost - before.notes_lost,
            not_compared: self.not_compared - before.not_compared,
        }
    }
}

/// `RECORD_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Call,
    Wait,
    Entry,
    Fork,
    Exec,
    Exit,
}

/// `struct record`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) kind: RecordKind,
    /// A function's number; of a wait the system call's.
    pub(crate) function: u32,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// A session; of a fork the child.
    pub(crate) handle: u64,
    /// A mechanism, a slot, a digest of a template.
    pub(crate) detail: u64,
    pub(crate) result: u64,
    /// A session; of a search how many objects were found, and above that a digest of their handles.
    pub(crate) made: u64,
    /// The address that the call returns to.
    pub(crate) caller: u64,
}

impl Record {
    pub(crate) const BYTES: usize = 72;

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        let half = |n: usize| u32::from_ne_bytes(bytes[4 * n..][..4].try_into().expect("four"));
        let word = |n: usize| u64::from_ne_bytes(bytes[8 * n..][..8].try_into().expect("eight"));
        let kind = match half(0) {
            1 => RecordKind::Call,
            2 => RecordKind::Wait,
            3 => RecordKind::Entry,
            4 => RecordKind::Fork,
            5 => RecordKind::Exec,
            6 => RecordKind::Exit,
            _ => return None,
        };
        Some(Self {
            kind,
            function: half(1),
            process: half(2),
            thread: half(3),
            start: word(2),
            end: word(3),
            handle: word(4),
            detail: word(5),
            result: word(6),
            made: word(7),
            caller: word(8),
        })
    }
}

/// `RESULT_UNSEEN`.
pub(crate) const RESULT_UNSEEN: u64 = u64::MAX;

/// `struct call_key`: process, thread, function, result.
pub(crate) fn call_key(key: &[u8]) -> (u32, u32, u32, u64) {
    let half = |n: usize| u32::from_ne_bytes(key[4 * n..][..4].try_into().expect("four"));
    let result = u64::from_ne_bytes(key[16..24].try_into().expect("eight"));
    (half(0), half(1), half(2), result)
}

const SUB_BITS: u32 = 5;
const OCTAVES: usize = 40;
/// `BUCKETS`.
pub(crate) const BUCKETS: usize = OCTAVES << SUB_BITS;

/// The middle of a bucket of times, in nanoseconds (`bucket_of`).
pub(crate) fn middle_of(bucket: usize) -> u64 {
    let place = bucket as u64;
    if place < 1 << SUB_BITS {
        return place;
    }
    let octave = (place >> SUB_BITS) - 1;
    let lowest = (place & ((1 << SUB_BITS) - 1) | 1 << SUB_BITS) << octave;
    lowest + (1 << octave) / 2
}

/// What is told to the program of a probe: which function it is, and which of its arguments matter.
pub(crate) fn cookie(function: u16, arguments: Arguments<'_>) -> u64 {
    const MECHANISM: u64 = 1;
    const GIVES_FOURTH: u64 = 2;
    const GIVES_FIFTH: u64 = 4;
    const TEMPLATE: u64 = 8;
    const GIVES_OBJECTS: u64 = 16;
    let how = match arguments {
        Arguments::Ignored => 0,
        Arguments::Of(name) if takes_mechanism(name) => MECHANISM,
        Arguments::Of("C_FindObjectsInit") => TEMPLATE,
        Arguments::Of("C_FindObjects") => GIVES_FOURTH | GIVES_OBJECTS,
        Arguments::Of("C_OpenSession") => GIVES_FIFTH,
        Arguments::Of(_) => 0,
    };
    u64::from(function) | how << 16
}

/// Whether arguments of a function are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arguments<'a> {
    /// They may have been overwritten where the probe is.
    Ignored,
    /// Those of the function with that name.
    Of(&'a str),
}

/// `struct digest_key`: bytes that nobody can know.
pub(crate) fn digest_key() -> std::io::Result<[u8; 16]> {
    let mut key = [0; 16];
    // SAFETY: the key may be written to, and is as long as said.
    let length = unsafe { libc::getrandom(key.as_mut_ptr().cast(), key.len(), 0) };
    if length == 16 { Ok(key) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_and_are_narrow() {
        let middles: Vec<u64> = (0..BUCKETS - 1).map(middle_of).collect();
        assert!(middles.is_sorted_by(|one, next| one < next));
        assert_eq!(middles[..4], [0, 1, 2, 3]);
        let near = |wanted: f64| middles.iter().any(|it| (*it as f64 / wanted - 1.0).abs() < 0.02);
        assert!(near(1_000.0) && near(12_345.0) && near(50_000_000.0));
    }
}
