//! What the kernel's programs (programs/watch.bpf.c) and this side both read and write.

use tapstone_measure::units::Nanos;
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
    /// Waits for input from outside are told too.
    pub(crate) with_inputs: bool,
    /// Where the kernel has a process's and a thread's id, in bytes from a task's beginning.
    pub(crate) process_at: u32,
    pub(crate) thread_at: u32,
}

impl Settings {
    pub(crate) fn bytes(self) -> Vec<u8> {
        let enabled = u32::from(self.is_enabled);
        let children = u32::from(self.with_children);
        let inputs = u32::from(self.with_inputs);
        words(&[enabled, children, inputs, self.process_at, self.thread_at])
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
    /// Templates that could not be read: which attributes they have is not known.
    pub not_read: u64,
}

impl Totals {
    pub(crate) const COUNT: u32 = 10;

    pub(crate) const fn from_array(of: [u64; Self::COUNT as usize]) -> Self {
        let [
            begun,
            ended,
            at_attach,
            sent,
            lost,
            crowded,
            entries,
            notes_lost,
            not_compared,
            not_read,
        ] = of;
        Self {
            begun,
            ended,
            at_attach,
            sent,
            lost,
            crowded,
            entries,
            notes_lost,
            not_compared,
            not_read,
        }
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
            not_read: self.not_read - before.not_read,
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
    /// A session, an object or a length; of a search how many objects were found, and above that a
    /// digest of their handles.
    pub(crate) made: u64,
    /// The address that the call returns to.
    pub(crate) caller: u64,
    /// A key, a length, the shape of a template.
    pub(crate) operand: u64,
    /// It was given no room for a result.
    pub(crate) only_length: bool,
    /// What it makes stays on the token.
    pub(crate) on_token: bool,
}

impl Record {
    pub(crate) const BYTES: usize = 80;

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        let half = |n: usize| u32::from_ne_bytes(bytes[4 * n..][..4].try_into().expect("four"));
        let word = |n: usize| u64::from_ne_bytes(bytes[8 * n..][..8].try_into().expect("eight"));
        const ONLY_LENGTH: u32 = 1 << 8;
        const ON_TOKEN: u32 = 1 << 9;
        let kind = match half(0) & 0xFF {
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
            operand: word(9),
            only_length: half(0) & ONLY_LENGTH != 0,
            on_token: half(0) & ON_TOKEN != 0,
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

/// `struct bucket`: calls that took nearly as long, and the sum of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeBucket {
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
}

/// The shortest time of a bucket, in nanoseconds (`bucket_of`).
const fn lowest_of(bucket: usize) -> u64 {
    let place = bucket as u64;
    if place < 1 << SUB_BITS {
        return place;
    }
    let octave = (place >> SUB_BITS) - 1;
    (place & ((1 << SUB_BITS) - 1) | 1 << SUB_BITS) << octave
}

/// What the calls of a bucket took on average, or none where there are no calls. A bucket is a 32nd
/// wide, so that its middle may be far from where its calls are. The kernel goes on counting while
/// this is read: a sum may hold a call more than its count, and such an average stays in the bucket.
pub(crate) fn mean_of(bucket: usize, calls: TimeBucket) -> Option<Nanos> {
    let mean = calls.total_ns.checked_div(calls.count)?;
    Some(Nanos(mean.clamp(lowest_of(bucket), lowest_of(bucket + 1) - 1)))
}

/// What is told to the program of a probe: which function it is, and which of its arguments matter.
pub(crate) fn cookie(function: u16, arguments: Arguments<'_>) -> u64 {
    let how = match arguments {
        Arguments::Ignored => 0,
        Arguments::Of(name) => identity_of(name),
        Arguments::OfLoad(name) => identity_of(name) | load_of(name) | LOAD,
    };
    u64::from(function) | how << 16
}

/// Whether arguments of a function are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arguments<'a> {
    /// They may have been overwritten where the probe is.
    Ignored,
    /// Those of the function with that name by which a call is told from another.
    Of(&'a str),
    /// Those and all that a load is made of.
    OfLoad(&'a str),
}

// `HOW_…`.
const MECHANISM: u64 = 1;
const TEMPLATE: u64 = 2;
const GIVES_OBJECTS: u64 = 4;
const GIVES_VALUE: u64 = 8;
const SHAPE: u64 = 16;
const OBJECT: u64 = 32;
const LOAD: u64 = 64;
const MAKES: u64 = 128;

/// `PLACE_GIVES`: the argument, from 1, that points to what the call gives.
const fn gives(argument: u64) -> u64 {
    argument << 8
}

/// `PLACE_OUTPUT`: the room for a result, null where only its length is asked for.
const fn output(argument: u64) -> u64 {
    argument << 12
}

/// `PLACE_OPERAND`: a key or a length.
const fn operand(argument: u64) -> u64 {
    argument << 16
}

/// `PLACE_TEMPLATE`: an array of attributes, with their count behind it.
const fn template(argument: u64) -> u64 {
    argument << 20
}

/// `PLACE_OTHER_TEMPLATE`.
const fn other_template(argument: u64) -> u64 {
    argument << 24
}

/// What tells a call from another.
fn identity_of(name: &str) -> u64 {
    match name {
        name if takes_mechanism(name) => MECHANISM,
        "C_FindObjectsInit" => TEMPLATE,
        "C_FindObjects" => gives(4) | GIVES_OBJECTS,
        "C_OpenSession" => gives(5),
        _ => 0,
    }
}

/// What a load is made of, beyond that (PKCS#11 v3.1, sections 5.7 to 5.18, for the places).
fn load_of(name: &str) -> u64 {
    match name {
        "C_EncryptInit"
        | "C_DecryptInit"
        | "C_SignInit"
        | "C_SignRecoverInit"
        | "C_VerifyInit"
        | "C_VerifyRecoverInit"
        | "C_WrapKey" => operand(3),
        "C_Encrypt" | "C_EncryptUpdate" | "C_Decrypt" | "C_DecryptUpdate" | "C_Digest"
        | "C_Sign" => operand(3) | output(4) | gives(5),
        "C_EncryptFinal" | "C_DecryptFinal" | "C_DigestFinal" | "C_SignFinal" => {
            output(2) | gives(3)
        }
        "C_DigestUpdate" | "C_SignUpdate" | "C_VerifyUpdate" | "C_VerifyFinal" | "C_SeedRandom"
        | "C_GenerateRandom" | "C_FindObjects" => operand(3),
        "C_Verify" => operand(3) | gives(5) | GIVES_VALUE,
        "C_FindObjectsInit" => template(2) | SHAPE,
        "C_GetAttributeValue" => template(3) | SHAPE | OBJECT,
        "C_CreateObject" => MAKES | template(2) | gives(4),
        "C_GenerateKey" => MAKES | template(3) | gives(5),
        "C_GenerateKeyPair" => MAKES | template(3) | other_template(5) | gives(8),
        "C_DeriveKey" => MAKES | operand(3) | template(4) | gives(6),
        "C_UnwrapKey" => MAKES | operand(3) | template(6) | gives(8),
        _ => 0,
    }
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
        let lowest: Vec<u64> = (0..BUCKETS).map(lowest_of).collect();
        assert!(lowest.is_sorted_by(|one, next| one < next));
        assert_eq!(lowest[..4], [0, 1, 2, 3]);
        let wide = lowest[32..].windows(2).map(|two| (two[1] - two[0]) as f64 / two[0] as f64);
        assert!(wide.fold(0.0, f64::max) <= 1.0 / 32.0);
    }

    /// PKCS#11 v3.1: `C_Verify(hSession, pData, ulDataLen, pSignature, ulSignatureLen)`, and
    /// `C_UnwrapKey(…, hUnwrappingKey, …, pTemplate, ulAttributeCount, phKey)`.
    #[test]
    fn places_of_arguments_are_told_in_the_cookie() {
        let places = |name| {
            let how = cookie(7, Arguments::OfLoad(name)) >> 16;
            [8, 12, 16, 20].map(|at| how >> at & 15)
        };
        assert_eq!(places("C_Sign"), [5, 4, 3, 0]);
        assert_eq!(places("C_SignFinal"), [3, 2, 0, 0]);
        assert_eq!(places("C_Verify"), [5, 0, 3, 0]);
        assert_eq!(places("C_UnwrapKey"), [8, 0, 3, 6]);
        assert_eq!(places("C_DeriveKey"), [6, 0, 3, 4]);
        assert_eq!(places("C_DigestInit"), [0, 0, 0, 0], "it has no key");
        assert_eq!(places("C_Login"), [0, 0, 0, 0], "no trace of a PIN");
        assert_eq!(cookie(7, Arguments::Ignored), 7);
    }

    #[test]
    fn an_average_is_that_of_the_calls_and_stays_in_its_bucket() {
        let bucket = (0..BUCKETS).find(|bucket| lowest_of(bucket + 1) > 200_900).unwrap();
        let mean = |count, total_ns| mean_of(bucket, TimeBucket { count, total_ns });
        assert_eq!(mean(0, 0), None);
        assert_eq!(mean(3, 3 * 200_900), Some(Nanos(200_900)));
        // Read between its two words, when another call had been added to the sum or the count.
        assert_eq!(mean(1, 2 * 200_900), Some(Nanos(lowest_of(bucket + 1) - 1)));
        assert_eq!(mean(2, 200_900), Some(Nanos(lowest_of(bucket))));
    }
}
