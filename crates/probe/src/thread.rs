//! What the probe knows of a thread: the calls that are open, and where its events go.
//!
//! An audit namespace has no thread-local storage that works, so threads find their state by their
//! id in a table, in which a thread that has ended leaves its place to another, with what is left
//! of its chunk. The table is wiped in a process that is forked off: its threads begin anew, with
//! chunks of their own.
//!
//! Whether a call is still open is told by where it is on the stack, which grows downwards: it is
//! over when another begins at the same place or above.

use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use tapstone_probe_core::busy_wait::{BusyWait, OwnPolls};
use tapstone_probe_core::callers::CallPlaces;
use tapstone_probe_core::cost::CostSampling;
use tapstone_probe_core::journal::{ChunkSource, ChunkUse, Journal};
use tapstone_probe_core::last_calls::LastCall;
use tapstone_probe_core::totals::{Asked, CallTotals, LEFT, SummedCall, ThreadTotals};
use tapstone_probe_core::wire::{EVENT_EXIT, EVENT_FORKED, FLAG_ABANDONED, Head, Leaf};

use crate::file::SharedFile;
use crate::process::{TELLING, ask_whose_memory, now, process};
use crate::{State, state, sys};

/// Threads of one process at a time; what those beyond it do is dropped, and counted.
const THREADS: usize = 4096;
/// Places at which the search for a thread begins. There are few, so that a thread meets the places
/// of those that have ended, rather than one that nobody had yet.
const DOORS: usize = 128;
/// Places that a thread may have, from its door on.
const NEAR: usize = 96;
/// Calls open at a time, one inside the other; those deeper are not seen.
pub(crate) const DEPTH: usize = 48;
/// Calls of libc open at a time: signal handlers make them too.
const WAITS: usize = 4;

/// Or'ed to a function's number: the call is not listed.
const SUMMED: u32 = 1 << 31;

/// A call that has not returned.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    /// Where its stub's frame is.
    frame: usize,
    id: u32,
    /// Its number, and [`SUMMED`].
    function: u32,
    /// What is known of a loop in which the thread may spin.
    pub(crate) busy_wait: BusyWait,
}

impl Open {
    /// The function's number among all that are watched.
    pub(crate) fn function(&self) -> u32 {
        self.function & !SUMMED
    }

    fn is_summed(&self) -> bool {
        self.function & SUMMED != 0
    }
}

/// A call of libc that has not returned, and its event.
#[derive(Clone, Copy)]
struct Wait {
    frame: usize,
    leaf: *mut Leaf,
}

/// The table: who has which place, what is known of them, and where they have made calls from.
#[repr(C)]
pub(crate) struct Table {
    /// The process whose memory this is; 0 when it was just forked off. [`TELLING`] is or'ed while
    /// its first thread says so.
    pub(crate) process: AtomicU32,
    pub(crate) call_places: CallPlaces,
    owners: [AtomicU32; THREADS],
    threads: [Thread; THREADS],
}

#[repr(C, align(64))]
pub(crate) struct Thread {
    /// Where the probe's work for it began on the stack, while it goes on; else 0.
    busy: AtomicUsize,
    pub(crate) depth: usize,
    /// It has made a call of PKCS#11, PC/SC or a driver.
    pub(crate) has_called: bool,
    /// What it asks outside of such calls.
    pub(crate) own_polls: OwnPolls,
    /// At which calls the probe times itself, ...
    pub(crate) cost_sampling: CostSampling,
    /// ... and at which it looks at the thread's processor time: ...
    pub(crate) running_sampling: CostSampling,
    /// ... at this frame's last, ...
    looked_at: usize,
    /// ... and the time was this, in nanoseconds, of a call that stands for so many.
    ran: [u64; 2],
    pub(crate) journal: Journal,
    totals: ThreadTotals,
    /// What summed calls took together inside the innermost call that is open.
    inside: u64,
    pub(crate) random: u64,
    waiting: usize,
    waits: [Wait; WAITS],
    open: [Open; DEPTH],
}

pub(crate) const TABLE_BYTES: usize = size_of::<Table>();

/// The process whose memory this was last, which a fork(2) does not take away.
static LAST: AtomicU32 = AtomicU32::new(0);

/// A table for the threads of this process.
pub(crate) fn table() -> *mut Table {
    let table: *mut Table = sys::memory(TABLE_BYTES).cast();
    if !table.is_null() {
        // SAFETY: just mapped, zeroed, and as long.
        unsafe {
            sys::wipe_on_fork(table.cast(), TABLE_BYTES);
            (*table).process.store(sys::process(), Ordering::Relaxed);
        }
        LAST.store(sys::process(), Ordering::Relaxed);
    }
    table
}

/// This thread's state, and nobody else's until it is left. `None` inside the probe's own work (a
/// signal handler that interrupted it), and where there is no room: both count as dropped.
///
/// `here` is where the stack is.
#[inline(always)]
pub(crate) fn enter(here: usize) -> Option<&'static mut Thread> {
    let state = state();
    let id = own_id();
    match find(state, id) {
        Some(thread) => thread.begin(here),
        None => claim(state, id, here),
    }
}

/// longjmp(3) or an exception is about to leave `here` for a frame that begins at `to`.
pub(crate) fn left(here: usize, to: usize) {
    let Some(thread) = find(state(), own_id()) else { return };
    if thread.depth == 0 && thread.waiting == 0 && thread.busy.load(Ordering::Relaxed) == 0 {
        return;
    }
    // A signal handler may leave a stack of its own.
    let stack = sys::signal_stack().filter(|stack| stack.contains(&here) && !stack.contains(&to));
    if to < here && stack.is_none() {
        // For another stack, as coroutines do: nothing is over.
        return;
    }
    let is_left = |frame| {
        let of_handler = stack.as_ref().is_some_and(|stack| stack.contains(&frame));
        frame < to || of_handler
    };
    // The handler may have interrupted the probe's own work.
    if is_left(thread.busy.load(Ordering::Relaxed)) {
        thread.busy.store(here, Ordering::Relaxed);
        thread.forget(is_left);
        thread.leave();
    }
}

#[inline(always)]
fn own_id() -> u32 {
    if state().tid_in_thread { sys::thread_from_library() } else { sys::thread_from_kernel() }
}

#[inline(always)]
fn find(state: &State, id: u32) -> Option<&'static mut Thread> {
    let door = door(id);
    for at in door..door + NEAR {
        let (owner, thread) = state.place(at);
        match owner.load(Ordering::Relaxed) {
            // SAFETY: only the thread of that id comes here.
            owner if owner == id => return Some(unsafe { &mut *thread }),
            0 => return None,
            _ => {}
        }
    }
    None
}

#[inline(always)]
fn door(id: u32) -> usize {
    ((id as usize).wrapping_mul(0x9E37_79B1) >> 7) % DOORS * (THREADS / DOORS)
}

impl State {
    #[inline(always)]
    fn place(&self, at: usize) -> (&'static AtomicU32, *mut Thread) {
        let at = at % THREADS;
        // SAFETY: inside the table, which is mapped for good.
        unsafe {
            let owners = (&raw const (*self.threads).owners).cast::<AtomicU32>();
            (&*owners.add(at), (&raw mut (*self.threads).threads).cast::<Thread>().add(at))
        }
    }
}

/// A place for a thread that has none: one whose owner has ended, or that nobody has.
#[cold]
fn claim(state: &State, id: u32, here: usize) -> Option<&'static mut Thread> {
    let process = process();
    let door = door(id);
    for at in door..door + NEAR {
        let (place, thread) = state.place(at);
        let owner = place.load(Ordering::Relaxed);
        let free = owner == 0 || !sys::is_alive(process, owner);
        if free && place.compare_exchange(owner, id, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // SAFETY: who has won the exchange has the place.
            let thread = unsafe { &mut *thread };
            thread.busy.store(here, Ordering::Relaxed);
            thread.depth = 0;
            thread.has_called = false;
            thread.own_polls = OwnPolls::default();
            thread.waiting = 0;
            thread.inside = 0;
            thread.random = u64::from(id) << 32 | 0x9E37_79B9;
            thread.journal.begin(&SharedFile, id, now());
            thread.tell_of_fork(state);
            return Some(thread);
        }
    }
    dropped(&state.header().crowded);
    None
}

/// Whether what began at `then` on the stack is over when something begins at `now`: unless one of
/// the two is a signal handler on a stack of its own.
#[inline(always)]
fn is_over(then: usize, now: usize) -> bool {
    then <= now && !other_stacks(then, now)
}

#[cold]
fn other_stacks(then: usize, now: usize) -> bool {
    sys::signal_stack().is_some_and(|stack| stack.contains(&now) && !stack.contains(&then))
}

/// How a call was kept that is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Popped {
    /// Its beginning is listed.
    Listed,
    /// It is to be summed.
    Summed,
}

impl Thread {
    #[inline(always)]
    fn begin(&'static mut self, here: usize) -> Option<&'static mut Self> {
        let before = self.busy.load(Ordering::Relaxed);
        // A signal handler may have left the probe's work by siglongjmp(3): then it is over too.
        if before != 0 && !is_over(before, here) {
            dropped(&state().header().interrupted);
            return None;
        }
        self.busy.store(here, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(self)
    }

    #[inline(always)]
    pub(crate) fn leave(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.busy.store(0, Ordering::Relaxed);
    }

    /// The probe's own work goes on after a call that it made in between.
    pub(crate) fn go_on(&mut self, here: usize) {
        self.busy.store(here, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// The first thread of a process that was forked off says so, before any other writes.
    fn tell_of_fork(&mut self, state: &State) {
        const MOST_SPINS: u32 = 1 << 20;
        let known = state.process();
        for _ in 0..MOST_SPINS {
            match known.load(Ordering::Acquire) {
                0 => {
                    let process = ask_whose_memory();
                    let now_known = process | TELLING;
                    let relaxed = Ordering::Relaxed;
                    if known.compare_exchange(0, now_known, relaxed, relaxed).is_ok() {
                        let parent = LAST.swap(process, Ordering::Relaxed);
                        let both = u64::from(process) | u64::from(parent) << 32;
                        let head = Head::new(now(), EVENT_FORKED, 0);
                        self.journal.write_event(&SharedFile, head, [both], &[]);
                        known.store(process, Ordering::Release);
                    }
                }
                // Another thread of this process does.
                process if process & TELLING != 0 => core::hint::spin_loop(),
                _ => return,
            }
        }
    }

    /// The call in which the thread is, with no watched one inside it.
    pub(crate) fn innermost(&mut self) -> Option<&mut Open> {
        self.depth.checked_sub(1).and_then(|at| self.open.get_mut(at))
    }

    /// Notes a call. False: too deep.
    #[inline(always)]
    pub(crate) fn push(&mut self, frame: usize, id: u32, function: u32) -> bool {
        let Some(open) = self.open.get_mut(self.depth) else { return false };
        let busy_wait = BusyWait::default();
        *open = Open { frame, id, function, busy_wait };
        self.depth += 1;
        self.has_called = true;
        true
    }

    /// The call that has just begun is summed. Returns what others took inside the one around it so
    /// far, for [`end_sum`](Self::end_sum).
    #[inline(always)]
    pub(crate) fn begin_sum(&mut self, slot: u32) -> u64 {
        if let Some(open) = self.innermost() {
            open.function |= SUMMED;
        }
        self.begin_summed(slot);
        core::mem::take(&mut self.inside)
    }

    /// A call begins that is only counted.
    pub(crate) fn begin_summed(&mut self, slot: u32) {
        if let Some(totals) = self.totals_of(slot) {
            totals.begin();
        }
    }

    /// One that began is nothing to be counted after all.
    pub(crate) fn take_back_summed(&mut self, slot: u32) {
        if let Some(totals) = self.totals_of(slot) {
            totals.take_back();
        }
    }

    /// Where calls of that function are summed on this thread; where there is no room for that,
    /// nowhere, which is counted. When the run is over, nowhere either.
    fn totals_of(&mut self, slot: u32) -> Option<&mut CallTotals> {
        if SharedFile.is_over() {
            return None;
        }
        let process = SharedFile.process();
        if !self.totals.has_chunk(process) {
            let chunk = SharedFile.take_chunk(ChunkUse::Totals);
            // SAFETY: a chunk of the file that nobody else has, or null.
            unsafe { self.totals.begin(chunk, process, own_id()) };
        }
        let totals = self.totals.of(slot);
        if totals.is_none() {
            SharedFile.count_dropped();
        }
        totals
    }

    /// Adds a call that is over and was not listed. Of its `time`, if that is known, so much was
    /// spent `inside` other calls. Returns what of it was added.
    fn sum(
        &mut self,
        slot: u32,
        time: Option<u64>,
        inside: u64,
        failure: Option<u64>,
    ) -> Option<u64> {
        let is_inside_itself =
            self.open.get(..self.depth).is_some_and(|open| open.iter().any(|it| it.id == slot));
        let own = time.unwrap_or_default().saturating_sub(inside);
        let time = time.filter(|_| !is_inside_itself);
        self.totals_of(slot)?.end(&SummedCall { time, own, failure });
        time
    }

    /// A call of libc that was not listed is over. `waited`: its time is its own, and not that of
    /// the call around it.
    pub(crate) fn sum_leaf(&mut self, slot: u32, call: LastCall, waited: bool) {
        let time = call.end.saturating_sub(call.start);
        let is_own = waited || self.depth == 0;
        self.inside += if is_own { time } else { 0 };
        self.sum(slot, Some(time), if is_own { 0 } else { time }, None);
        self.note_last(call);
    }

    /// Somebody looks at the thread's processor time as the call of this frame begins, or nobody
    /// does. One call at a time is looked at: the one that began last.
    #[inline(always)]
    pub(crate) fn look_at(&mut self, frame: usize, ran: Option<[u64; 2]>) {
        if let Some(ran) = ran {
            (self.looked_at, self.ran) = (frame, ran);
        } else if self.looked_at == frame {
            // It was for another call at that place, which was abandoned.
            self.looked_at = 0;
        }
    }

    /// The thread's processor time when the call of this frame began, if somebody looked, and for how
    /// many calls this one stands.
    pub(crate) fn ran_before(&self, frame: usize) -> Option<[u64; 2]> {
        (self.looked_at == frame).then_some(self.ran)
    }

    /// Whether it is to be known what a call asks that is about to begin and will be summed. What is
    /// passed on to another module is asked once.
    pub(crate) fn keeps_questions(&mut self, slot: u32, function: u32) -> bool {
        let open = self.open.get(..self.depth).unwrap_or_default();
        let is_passed_on = open.iter().any(|open| open.function() == function);
        !is_passed_on && !SharedFile.is_over() && self.totals.keeps_times(slot)
    }

    /// What was open as the call of this frame, which is over. Those inside it are abandoned.
    #[inline(always)]
    pub(crate) fn pop(&mut self, frame: usize) -> Option<Popped> {
        if self.waiting > 0 {
            self.forget_waits(|wait| is_over(wait, frame));
        }
        while let Some(open) = self.innermost().copied() {
            if open.frame == frame {
                self.depth -= 1;
                return Some(if open.is_summed() { Popped::Summed } else { Popped::Listed });
            }
            if !is_over(open.frame, frame) {
                return None;
            }
            self.abandon(open);
        }
        None
    }

    /// A call that was popped as summed is over; before it, others had taken `around` inside the call
    /// around it. `question` is what it asked and was answered, or 0.
    pub(crate) fn end_sum(&mut self, slot: u32, call: LastCall, around: u64, question: u64) {
        let time = call.end.saturating_sub(call.start);
        let failure = (call.result != 0).then_some(call.result);
        let inside = core::mem::replace(&mut self.inside, around + time);
        let added = self.sum(slot, Some(time), inside, failure);
        self.note_last(call);
        if let (Some(time), None) = (added, failure) {
            // SAFETY: a chunk of the file that nobody else has, or null.
            unsafe {
                let take_chunk = |content| SharedFile.take_chunk_of(content);
                self.totals.add_time(slot, time, Asked { question, era: era() }, take_chunk);
            }
        }
    }

    /// Keeps a call that was not listed among the last ones, where its sums have a chunk.
    #[inline(always)]
    fn note_last(&mut self, call: LastCall) {
        if !SharedFile.is_over() && self.totals.has_chunk(SharedFile.process()) {
            self.totals.note_last(LastCall { thread: own_id(), ..call });
        }
    }

    /// Notes a call of libc whose event was just written, unless there was no room for that. Null:
    /// too deep, and the event is gone again.
    pub(crate) fn begin_wait(&mut self, frame: usize, leaf: *mut Leaf) -> *mut Leaf {
        if leaf.is_null() {
            return leaf;
        }
        let Some(wait) = self.waits.get_mut(self.waiting) else {
            // SAFETY: just written.
            unsafe { self.journal.take_back(leaf) };
            dropped(&state().header().crowded);
            return ptr::null_mut();
        };
        *wait = Wait { frame, leaf };
        self.waiting += 1;
        leaf
    }

    /// Whether this is the frame of such a call, and this the process that began it.
    pub(crate) fn end_wait(&mut self, frame: usize) -> bool {
        self.forget_waits(|wait| wait != frame && is_over(wait, frame));
        let ends = self.last_wait().is_some_and(|wait| wait.frame == frame);
        self.waiting -= usize::from(ends);
        ends
    }

    /// Calls that were left without returning: their frames are where a new one is now.
    #[inline(always)]
    pub(crate) fn forget_abandoned(&mut self, frame: usize) {
        let waits = self.last_wait().is_some_and(|wait| wait.frame <= frame);
        if waits || self.innermost().is_some_and(|open| open.frame <= frame) {
            self.forget(|then| is_over(then, frame));
        }
    }

    #[cold]
    fn forget(&mut self, is_over: impl Fn(usize) -> bool) {
        self.forget_waits(&is_over);
        while let Some(open) = self.innermost().copied().filter(|open| is_over(open.frame)) {
            self.abandon(open);
        }
    }

    /// The innermost call will not return.
    #[cold]
    fn abandon(&mut self, open: Open) {
        self.depth -= 1;
        if open.is_summed() {
            // When it began is gone with its frame.
            self.inside = 0;
            self.sum(open.id, None, 0, Some(LEFT));
            return;
        }
        let head = Head::new(now(), EVENT_EXIT, open.id).with_flags(FLAG_ABANDONED);
        self.journal.write_event(&SharedFile, head, [0, 0], &[]);
    }

    fn last_wait(&self) -> Option<Wait> {
        self.waiting.checked_sub(1).and_then(|at| self.waits.get(at)).copied()
    }

    fn forget_waits(&mut self, is_over: impl Fn(usize) -> bool) {
        while let Some(wait) = self.last_wait().filter(|wait| is_over(wait.frame)) {
            self.waiting -= 1;
            let end = now();
            // SAFETY: an event of this thread, in a chunk that is its own for good.
            let leaf = unsafe { &mut *wait.leaf };
            let time = end.saturating_sub(leaf.head.time);
            leaf.end = end;
            leaf.sum = time;
            leaf.min = time;
            leaf.max = time;
            leaf.head.flags |= FLAG_ABANDONED;
        }
    }
}

/// How often answers may have changed, in this process.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// Answers to what any thread asked may have changed.
pub(crate) fn note_change() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// How often they may have.
pub(crate) fn changes() -> u64 {
    u64::from(CHANGES.load(Ordering::Relaxed))
}

/// The time in which this thread's questions have the same answers.
fn era() -> u64 {
    u64::from(own_id()) << 32 | changes()
}

/// A call is not written, and this is why.
#[cold]
pub(crate) fn dropped(why: &AtomicU64) {
    why.fetch_add(1, Ordering::Relaxed);
    state().header().dropped.fetch_add(1, Ordering::Relaxed);
}

/// Where the stack is.
#[inline(always)]
pub(crate) fn here() -> usize {
    let place = 0_u8;
    ptr::from_ref(&place) as usize
}
