//! Sums of calls: what a thread keeps of them once the file lists no more.
//!
//! A program that makes a hundred million calls would fill any file. So only its first calls are
//! listed; of the others each thread keeps, in one chunk, how many there were of each function, how
//! long they took together and how they failed; and, of functions that it calls often, in a few more,
//! how many calls were of which length; and the last calls themselves ([`crate::last_calls`]).

use core::mem::{align_of, size_of};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::last_calls::{LastCall, LastCalls, MOST_LAST};
use crate::questions::Questions;
use crate::times::{CallTimes, MOST_TIMES, bucket_of};
use crate::wire::{CHUNK_BYTES, CHUNK_HEAD_BYTES, CHUNK_LAST, CHUNK_TIMES, CHUNK_TOTALS, Chunk};

/// Codes of failure that are told apart for a function of a thread.
pub const FAILURES: usize = 4;
/// The code of a call that an exception or longjmp(3) went past; no function returns it.
pub const LEFT: u64 = u64::MAX;
/// Functions that a chunk has room for: a power of two, which a place is found by without division.
pub const MOST_TOTALS: usize = 512;
/// A thread's chunks of times, at most.
const TIMES_CHUNKS: usize = 4;
/// The times of a function's calls are kept from this one of a thread on: most threads that begin
/// late need no room for times.
pub const TIMED_FROM: u64 = 64;
/// There is no room for a function's times.
const NO_TIMES: u8 = u8::MAX;

const _: () = assert!(TIMES_CHUNKS * MOST_TIMES < NO_TIMES as usize);

/// Where in a chunk of sums it stands which functions have times, a byte each.
const TIMES_OF: usize = CHUNK_HEAD_BYTES + MOST_TOTALS * size_of::<CallTotals>();
/// Where in a thread's first chunk of times its questions are.
const QUESTIONS: usize = CHUNK_HEAD_BYTES + MOST_TIMES * size_of::<CallTimes>();

const _: () = assert!(TIMES_OF + MOST_TOTALS <= CHUNK_BYTES);
const _: () = assert!(QUESTIONS + size_of::<Questions>() <= CHUNK_BYTES);
const _: () = assert!(QUESTIONS.is_multiple_of(align_of::<Questions>()));

/// The calls of one function that a thread has summed. All zeros: of none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    /// The number by which events call the stub, and one: 0 is no function.
    pub slot_and_one: u64,
    /// Calls that began.
    pub begun: u64,
    /// Those of them that ended.
    pub count: u64,
    /// Their time, on the probe's clock, without that of calls of the same function inside.
    pub time: u64,
    /// So many of them it is of.
    pub timed: u64,
    /// Of it, what no watched call inside them took.
    pub own: u64,
    /// How often each of the first few codes was returned that is a failure.
    pub failures: [Failures; FAILURES],
    /// Failures with other codes.
    pub other_failures: u64,
}

/// Calls that failed with one code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// What the function returned, or [`LEFT`].
    pub code: u64,
    /// How often; 0: the code means nothing.
    pub count: u64,
}

/// A call that is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct SummedCall {
    /// Its time, on the probe's clock; `None` for one inside a call of the same function, whose time
    /// it is already, and for one of which nobody knows when it began.
    pub time: Option<u64>,
    /// Of it, what no watched call inside took.
    pub own: u64,
    /// What it returned if that is a failure, or [`LEFT`].
    pub failure: Option<u64>,
}

impl CallTotals {
    /// Notes that a call begins, so that one that never ends is known.
    pub fn begin(&mut self) {
        self.begun += 1;
    }

    /// Forgets a call that began: it waited for nothing. Its beginning may have found no room.
    pub fn take_back(&mut self) {
        self.begun = self.begun.saturating_sub(1);
    }

    /// Adds a call that is over.
    pub fn end(&mut self, call: &SummedCall) {
        self.count += 1;
        self.time += call.time.unwrap_or_default();
        self.timed += u64::from(call.time.is_some());
        self.own += call.own;
        let Some(code) = call.failure else { return };
        let known = self.failures.iter_mut().find(|known| known.count == 0 || known.code == code);
        match known {
            Some(known) => {
                known.code = code;
                known.count += 1;
            }
            None => self.other_failures += 1,
        }
    }
}

/// What a call asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Its question with the answer ([`crate::questions`]); 0: nothing that is known.
    pub question: u64,
    /// The time in which this thread's questions have the same answers.
    pub era: u64,
}

/// The chunks of sums of a thread. Zeroed memory is one that has none yet.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadTotals {
    chunk: *mut Chunk,
    /// Its chunks of times.
    times: [*mut Chunk; TIMES_CHUNKS],
    /// Functions that have a place in those.
    with_times: u8,
    /// The chunk of its last calls.
    last: *mut Chunk,
}

impl ThreadTotals {
    /// Without a chunk.
    pub const fn new() -> Self {
        Self {
            chunk: ptr::null_mut(),
            times: [ptr::null_mut(); TIMES_CHUNKS],
            with_times: 0,
            last: ptr::null_mut(),
        }
    }

    /// Whether there is a chunk of this process to add to. One that was forked off starts anew.
    #[inline(always)]
    pub fn has_chunk(&self, process: u32) -> bool {
        // SAFETY: `begin` made it, and it stays mapped.
        !self.chunk.is_null() && unsafe { (*self.chunk).process == process }
    }

    /// Takes a chunk, which holds nothing from then on; a null one is none.
    ///
    /// # Safety
    /// The chunk is null, or mapped for good, zeroed and nobody else's.
    pub unsafe fn begin(&mut self, chunk: *mut Chunk, process: u32, thread: u32) {
        *self = Self { chunk, ..Self::new() };
        if !chunk.is_null() {
            // SAFETY: the caller's promise.
            unsafe { begin_chunk(chunk, process, thread, CHUNK_TOTALS) };
        }
    }

    /// The sums of the function that events call so. `None`: there is no chunk, or no room in it for
    /// another function.
    #[inline(always)]
    pub fn of(&mut self, slot: u32) -> Option<&mut CallTotals> {
        let at = self.place_of(slot)?;
        // SAFETY: inside the chunk, which is this thread's.
        Some(unsafe { &mut *self.first().add(at) })
    }

    fn first(&self) -> *mut CallTotals {
        // SAFETY: the chunk is longer than its head.
        unsafe { self.chunk.cast::<u8>().add(CHUNK_HEAD_BYTES) }.cast()
    }

    #[inline(always)]
    fn place_of(&mut self, slot: u32) -> Option<usize> {
        if self.chunk.is_null() {
            return None;
        }
        let key = u64::from(slot) + 1;
        for probed in 0..MOST_TOTALS {
            let at = (slot as usize + probed) % MOST_TOTALS;
            // SAFETY: inside the chunk, which is this thread's.
            let known = unsafe { &mut (*self.first().add(at)).slot_and_one };
            if *known == key {
                return Some(at);
            }
            if *known == 0 {
                *known = key;
                let end = (CHUNK_HEAD_BYTES + (at + 1) * size_of::<CallTotals>()) as u32;
                // SAFETY: as above.
                unsafe { (*self.chunk).used.fetch_max(end, Ordering::Release) };
                return Some(at);
            }
        }
        None
    }

    /// Whether it is noted how long calls took whose sums are known.
    pub fn keeps_times(&mut self, slot: u32) -> bool {
        // SAFETY: inside the chunk, which is this thread's.
        let place = self.place_of(slot).map(|at| unsafe { *self.times_of(at) });
        place.is_some_and(|place| !matches!(place, 0 | NO_TIMES))
    }

    /// One more than the place of a function's times; 0: it has none yet, [`NO_TIMES`]: it gets none.
    fn times_of(&self, at: usize) -> *mut u8 {
        // SAFETY: the chunk is that long.
        unsafe { self.chunk.cast::<u8>().add(TIMES_OF + at) }
    }

    /// Notes how long a call took whose sums are known, and whether it asked what this thread had asked
    /// before, if the function is called often. `take_chunk` is asked for another chunk when one is
    /// needed, with what it is for.
    ///
    /// # Safety
    /// What `take_chunk` returns is null, or mapped for good, zeroed and nobody else's.
    #[inline(always)]
    pub unsafe fn add_time(
        &mut self,
        slot: u32,
        time: u64,
        asked: Asked,
        take_chunk: impl FnMut(u32) -> *mut Chunk,
    ) {
        let Some(at) = self.place_of(slot) else { return };
        let times_of = self.times_of(at);
        // SAFETY: inside the chunk, which is this thread's.
        let place = match unsafe { *times_of } {
            NO_TIMES => return,
            // SAFETY: inside the chunk, which is this thread's.
            0 if unsafe { (*self.first().add(at)).count } < TIMED_FROM => return,
            0 => {
                // SAFETY: the caller's promise.
                let begun = unsafe { self.begin_times(slot, take_chunk) };
                // SAFETY: as above.
                unsafe { *times_of = begun.map_or(NO_TIMES, |place| place + 1) };
                let Some(place) = begun else { return };
                place
            }
            known if known <= self.with_times => known - 1,
            // Somebody else has written there.
            _ => return,
        };
        // SAFETY: such a place is in a chunk of this thread's.
        let times = unsafe { &mut *self.times_at(place) };
        times.counts[bucket_of(time)] += 1;
        // SAFETY: there is a first chunk of times, and it is this thread's.
        let questions =
            unsafe { &mut *self.times[0].cast::<u8>().add(QUESTIONS).cast::<Questions>() };
        if asked.question != 0 && questions.is_asked_again(asked.question, asked.era) {
            times.again += 1;
            times.time_again += time;
        }
    }

    /// Keeps a call among the last ones, if this thread has made many.
    #[inline(always)]
    pub fn note_last(&mut self, call: LastCall) {
        if !self.last.is_null() {
            // SAFETY: a chunk of this thread's, which is mapped for good and long enough.
            unsafe {
                (*self.last.cast::<u8>().add(CHUNK_HEAD_BYTES).cast::<LastCalls>()).note(call)
            }
        }
    }

    /// Gives the times of another function a place.
    ///
    /// # Safety
    /// As for [`add_time`](Self::add_time).
    #[cold]
    unsafe fn begin_times(
        &mut self,
        slot: u32,
        mut take_chunk: impl FnMut(u32) -> *mut Chunk,
    ) -> Option<u8> {
        let place = self.with_times;
        let number = usize::from(place) / MOST_TIMES;
        let mut chunk = *self.times.get(number)?;
        if chunk.is_null() {
            chunk = take_chunk(CHUNK_TIMES);
            if chunk.is_null() {
                return None;
            }
            // SAFETY: the caller's promise; `begin` has made the chunk of sums.
            unsafe { begin_chunk(chunk, (*self.chunk).process, (*self.chunk).thread, CHUNK_TIMES) };
            self.times[number] = chunk;
            if place == 0 {
                // SAFETY: as above.
                unsafe { self.begin_last(take_chunk(CHUNK_LAST)) };
            }
        }
        let used =
            CHUNK_HEAD_BYTES + (usize::from(place) % MOST_TIMES + 1) * size_of::<CallTimes>();
        // SAFETY: a chunk of this thread's, and inside it.
        unsafe {
            (*chunk).used.store(used as u32, Ordering::Release);
            (*self.times_at(place)).slot_and_one = u64::from(slot) + 1;
        }
        self.with_times += 1;
        Some(place)
    }

    /// # Safety
    /// The chunk is null, or as `take_chunk` of [`add_time`](Self::add_time) returns it.
    unsafe fn begin_last(&mut self, chunk: *mut Chunk) {
        const USED: usize = CHUNK_HEAD_BYTES + MOST_LAST * size_of::<LastCall>();
        if !chunk.is_null() {
            // SAFETY: the caller's promise; `begin` has made the chunk of sums.
            unsafe {
                begin_chunk(chunk, (*self.chunk).process, (*self.chunk).thread, CHUNK_LAST);
                (*chunk).used.store(USED as u32, Ordering::Release);
            }
        }
        self.last = chunk;
    }

    /// # Safety
    /// The place has been given.
    #[inline(always)]
    unsafe fn times_at(&self, place: u8) -> *mut CallTimes {
        let place = usize::from(place);
        // SAFETY: the caller's promise: there is that chunk, with room for so many.
        unsafe {
            let first = self.times[place / MOST_TIMES].cast::<u8>().add(CHUNK_HEAD_BYTES);
            first.cast::<CallTimes>().add(place % MOST_TIMES)
        }
    }
}

/// # Safety
/// The chunk is mapped for good, zeroed and nobody else's.
unsafe fn begin_chunk(chunk: *mut Chunk, process: u32, thread: u32, content: u32) {
    let used = AtomicU32::new(CHUNK_HEAD_BYTES as u32);
    // SAFETY: the caller's promise.
    unsafe { chunk.write(Chunk { process, thread, used, content }) };
}

impl Default for ThreadTotals {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::vec::Vec;

    use super::*;

    /// Memory for a chunk.
    struct Memory(*mut Chunk);

    impl Memory {
        fn layout() -> Layout {
            Layout::from_size_align(CHUNK_BYTES, 4096).unwrap()
        }

        fn new() -> Self {
            // SAFETY: of some length.
            Self(unsafe { alloc_zeroed(Self::layout()) }.cast())
        }

        /// The sums up to where the chunk says that it is used.
        fn totals(&self) -> Vec<CallTotals> {
            // SAFETY: a chunk that `begin` has written.
            let used = unsafe { (*self.0).used.load(Ordering::Acquire) } as usize;
            let count = (used - CHUNK_HEAD_BYTES) / size_of::<CallTotals>();
            // SAFETY: inside the memory, which is zeroed or written.
            let at = |at| unsafe {
                self.0.cast::<u8>().add(CHUNK_HEAD_BYTES).cast::<CallTotals>().add(at).read()
            };
            (0..count).map(at).filter(|totals| totals.slot_and_one != 0).collect()
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: allocated with the same layout.
            unsafe { dealloc(self.0.cast(), Self::layout()) };
        }
    }

    fn begun(memory: &Memory) -> ThreadTotals {
        let mut totals = ThreadTotals::new();
        // SAFETY: zeroed, and as long as a chunk.
        unsafe { totals.begin(memory.0, 7, 8) };
        totals
    }

    /// A call, from its beginning to its end. False: there was no room for it.
    fn add(totals: &mut ThreadTotals, slot: u32, time: u64, failure: Option<u64>) -> bool {
        let Some(totals) = totals.of(slot) else { return false };
        totals.begin();
        totals.end(&SummedCall { time: Some(time), own: time / 2, failure });
        true
    }

    #[test]
    fn calls_add_up_by_function() {
        let memory = Memory::new();
        let mut totals = begun(&memory);
        assert!(memory.totals().is_empty());
        for (slot, time) in [(0, 10), (5, 100), (0, 30), (5, 200), (0, 2)] {
            assert!(add(&mut totals, slot, time, None));
        }
        let sums: Vec<_> = memory
            .totals()
            .iter()
            .map(|it| (it.slot_and_one - 1, it.count, it.timed, it.time, it.own))
            .collect();
        assert_eq!(sums, [(0, 3, 3, 42, 21), (5, 2, 2, 300, 150)]);
        // SAFETY: written by `begin`.
        let head = unsafe { &*memory.0 };
        assert_eq!((head.process, head.thread, head.content), (7, 8, CHUNK_TOTALS));
    }

    #[test]
    fn a_call_that_never_ends_has_begun() {
        let memory = Memory::new();
        let mut totals = begun(&memory);
        for _ in 0..3 {
            totals.of(4).unwrap().begin();
        }
        totals.of(4).unwrap().end(&SummedCall::default());
        totals.of(4).unwrap().take_back();
        // Its beginning found no room.
        totals.of(5).unwrap().take_back();
        let [sum, other] = memory.totals()[..] else { panic!() };
        assert_eq!((sum.begun, sum.count, sum.timed), (2, 1, 0), "its time is another's");
        assert_eq!((other.begun, other.count), (0, 0));
    }

    #[test]
    fn failures_are_told_apart_as_far_as_there_is_room() {
        let memory = Memory::new();
        let mut totals = begun(&memory);
        for code in [5, 6, 5, LEFT, 8, 9, 10, 9, 5] {
            add(&mut totals, 1, 1, Some(code));
        }
        add(&mut totals, 1, 1, None);
        let [sum] = memory.totals()[..] else { panic!() };
        let failures: Vec<_> = sum.failures.iter().map(|it| (it.code, it.count)).collect();
        assert_eq!(failures, [(5, 3), (6, 1), (LEFT, 1), (8, 1)]);
        assert_eq!((sum.count, sum.other_failures), (10, 3));
    }

    #[test]
    fn functions_that_meet_are_kept_apart_until_the_chunk_is_full() {
        let memory = Memory::new();
        let mut totals = begun(&memory);
        let slots = (0..MOST_TOTALS as u32).map(|number| number * MOST_TOTALS as u32);
        for slot in slots.clone() {
            assert!(add(&mut totals, slot, 2, None));
        }
        assert_eq!(memory.totals().len(), MOST_TOTALS);
        assert!(!add(&mut totals, 1, 2, None), "no room for another");
        for slot in slots {
            assert!(add(&mut totals, slot, 2, None), "there is for those that are known");
        }
        assert!(memory.totals().iter().all(|it| (it.count, it.time) == (2, 4)));
    }

    /// A thread's sums after so many calls of each function, that took as many ticks as there were
    /// before, and its chunks of times.
    fn timed(functions: u32, calls: u64, room: usize) -> (Memory, Vec<Memory>) {
        let (memory, chunks) = counted(functions, calls, room);
        (memory, chunks.into_iter().filter(|chunk| content(chunk) == CHUNK_TIMES).collect())
    }

    fn content(chunk: &Memory) -> u32 {
        // SAFETY: a chunk that was begun.
        unsafe { (*chunk.0).content }
    }

    /// The same with all chunks but the first.
    fn counted(functions: u32, calls: u64, room: usize) -> (Memory, Vec<Memory>) {
        let memory = Memory::new();
        let mut totals = begun(&memory);
        let mut chunks = Vec::new();
        for (slot, time) in (0..functions).flat_map(|slot| (0..calls).map(move |time| (slot, time)))
        {
            assert!(add(&mut totals, slot, time, None));
            let take_chunk = |_| {
                if chunks.len() == room {
                    return ptr::null_mut();
                }
                chunks.push(Memory::new());
                chunks[chunks.len() - 1].0
            };
            // SAFETY: zeroed, and as long as a chunk.
            unsafe { totals.add_time(slot, time, asked(slot, time), take_chunk) };
            totals.note_last(LastCall::new(slot, time, time + 1, 0));
        }
        (memory, chunks)
    }

    /// What the calls of even times ask, those after them ask again.
    /// The last of them is asked after a change.
    fn asked(slot: u32, time: u64) -> Asked {
        let era = if time == 71 { 8 } else { 7 };
        Asked { question: u64::from(slot) * 1000 + time / 2 + 1, era }
    }

    fn times(chunk: &Memory) -> Vec<CallTimes> {
        // SAFETY: a chunk that was begun; what is used of it was written.
        unsafe {
            let used = (*chunk.0).used.load(Ordering::Acquire) as usize;
            let count = (used - CHUNK_HEAD_BYTES) / size_of::<CallTimes>();
            let first = chunk.0.cast::<u8>().add(CHUNK_HEAD_BYTES).cast::<CallTimes>();
            (0..count).map(|at| (*first.add(at)).clone()).collect()
        }
    }

    #[test]
    fn times_of_functions_that_are_called_often_are_told_apart() {
        let (_memory, chunks) = timed(1, TIMED_FROM - 1, 9);
        assert_eq!(chunks.len(), 0, "few calls need no room");
        let functions = MOST_TIMES as u32 + 3;
        let (_memory, chunks) = timed(functions, TIMED_FROM + 9, 9);
        let all: Vec<CallTimes> = chunks.iter().flat_map(times).collect();
        assert_eq!((chunks.len(), all.len()), (2, functions as usize));
        // SAFETY: both were begun.
        let heads = unsafe { [&*chunks[0].0, &*chunks[1].0] };
        for head in heads {
            assert_eq!((head.process, head.thread, head.content), (7, 8, CHUNK_TIMES));
        }
        for (slot, times) in (0..).zip(&all) {
            assert_eq!((times.slot_and_one, times.counts.iter().sum()), (slot + 1, 10));
            assert_eq!(times.counts[bucket_of(TIMED_FROM)], 8, "63 is in the bucket before it");
            assert_eq!((times.again, times.time_again), (3, 65 + 67 + 69));
        }
    }

    #[test]
    fn a_thread_that_makes_many_calls_keeps_the_last_ones() {
        let (_memory, chunks) = counted(1, TIMED_FROM - 1, 9);
        assert_eq!(chunks.len(), 0);
        let (_memory, chunks) = counted(2, TIMED_FROM + 9, 9);
        let [CHUNK_TIMES, CHUNK_LAST] = chunks.iter().map(content).collect::<Vec<_>>()[..] else {
            panic!("{} chunks", chunks.len())
        };
        // SAFETY: the chunk was begun for them.
        let last = unsafe { &*chunks[1].0.cast::<u8>().add(CHUNK_HEAD_BYTES).cast::<LastCalls>() };
        // From the call on from which times are kept.
        let noted = 10 + TIMED_FROM as usize + 9;
        assert_eq!(last.calls[0], LastCall::new(0, TIMED_FROM - 1, TIMED_FROM, 0));
        assert_eq!(last.calls[noted - 1], LastCall::new(1, TIMED_FROM + 8, TIMED_FROM + 9, 0));
        assert_eq!(last.calls[noted], LastCall::default());
        // SAFETY: written when it was begun.
        let used = unsafe { (*chunks[1].0).used.load(Ordering::Acquire) } as usize;
        assert_eq!(used, CHUNK_HEAD_BYTES + MOST_LAST * size_of::<LastCall>());
        // Where there is room for one chunk, it is for the times.
        let (_memory, chunks) = counted(2, TIMED_FROM + 9, 1);
        assert_eq!(chunks.iter().map(content).collect::<Vec<_>>(), [CHUNK_TIMES]);
    }

    #[test]
    fn where_there_is_no_room_for_times_calls_are_summed_all_the_same() {
        let (memory, chunks) = timed(3, 2 * TIMED_FROM, 0);
        assert_eq!(chunks.len(), 0);
        assert!(memory.totals().iter().all(|it| it.count == 2 * TIMED_FROM));
        let most = TIMES_CHUNKS * MOST_TIMES;
        let (memory, chunks) = timed(most as u32 + 2, TIMED_FROM, 9);
        assert_eq!(chunks.iter().map(|chunk| times(chunk).len()).sum::<usize>(), most);
        assert_eq!(memory.totals().len(), most + 2);
    }

    #[test]
    fn nothing_is_added_without_a_chunk_or_to_another_processs() {
        let mut totals = ThreadTotals::new();
        assert!(!totals.has_chunk(7) && !add(&mut totals, 1, 2, None));
        let memory = Memory::new();
        // SAFETY: as in `begun`.
        unsafe { totals.begin(memory.0, 7, 8) };
        assert!(totals.has_chunk(7) && !totals.has_chunk(9));
        // SAFETY: null is none.
        unsafe { totals.begin(ptr::null_mut(), 9, 9) };
        assert!(!totals.has_chunk(9) && !add(&mut totals, 1, 2, None));
    }

    #[test]
    fn the_last_function_lies_inside_the_chunk() {
        let memory = Memory::new();
        let mut totals = begun(&memory);
        add(&mut totals, MOST_TOTALS as u32 - 1, 2, None);
        // SAFETY: written by `begin`.
        let used = unsafe { (*memory.0).used.load(Ordering::Acquire) } as usize;
        assert_eq!(used, CHUNK_HEAD_BYTES + MOST_TOTALS * size_of::<CallTotals>());
        assert!(used <= CHUNK_BYTES);
    }
}
