//! What a program did, as a stream of owned events.
//!
//! The stream declares functions and texts before events refer to them by number. Threads come one
//! after the other, the events of each in the order in which they were noted. Nothing in it depends
//! on how a probe writes things down, so that whoever observes a program (a probe, a debugger, a
//! file that was kept) can be read by the same code.

use std::sync::Arc;

use tapstone_measure::units::Nanos;

use crate::place::Place;
use crate::system_calls::StackFrame;
use crate::unseen::UnseenProgram;
use tapstone_probe_core::functions::Family;

/// Whatever has seen a program and can hand over what it saw.
pub trait EventSource {
    /// Why it cannot be read.
    type Error;

    /// When the run began and ended that this is about, and what of it is missing.
    fn observed_run(&self) -> ObservedRun;

    /// Hands over all events: programs, functions and texts before events refer to them by number,
    /// then one thread after the other, each in the order in which it did things.
    ///
    /// # Errors
    /// When they cannot be read. `take` may have got some by then.
    fn read_events(&self, take: &mut dyn FnMut(Event)) -> Result<(), Self::Error>;
}

/// The run that events are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedRun {
    /// When the command was started, on CLOCK_MONOTONIC. What began earlier is a daemon's.
    pub started: Nanos,
    /// When it had ended.
    pub ended: Nanos,
    /// Events that found no space: what is there is a lower bound then.
    pub dropped: u64,
    /// The processor time of the command and of the processes that it waited for, where that is
    /// known.
    pub processor: Option<Nanos>,
    /// When calls were no longer all listed, but summed.
    pub summed_from: Option<Nanos>,
}

/// One event, or a declaration that later events refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A program began. They come in the order in which they began.
    Program(Program),
    /// A program was started, and what it did was not seen.
    Unseen(UnseenProgram),
    /// Declares the next [`FunctionId`], from 0 on.
    Function(CalledFunction),
    /// What it costs to watch a function that was declared.
    WatchCost {
        /// The function that is watched.
        function: FunctionId,
        /// What each of its calls takes longer for it.
        cost: WatchCost,
    },
    /// How much of its time a function's callers had a processor, at some of its calls.
    Running {
        /// The function that was called.
        function: FunctionId,
        /// The time of these calls.
        time: Nanos,
        /// The processor time of their threads meanwhile.
        ran: Nanos,
    },
    /// Calls that were summed and not listed.
    Summed(SummedCalls),
    /// One of the last of those on its thread, which is known all the same.
    Unlisted(UnlistedCall),
    /// Declares the next [`TextId`], from 0 on: a path, a name, or an address (a `sockaddr`).
    Text(Box<[u8]>),
    /// What follows is of this thread.
    Thread {
        /// Its process, by id.
        process: u32,
        /// The thread's id, as the kernel numbers it (gettid(2)).
        id: u32,
    },
    /// The thread was there at this moment; nothing else is known of it.
    Alive(Nanos),
    /// By exec(3) another program began on the thread: calls that were open are gone.
    Executed(Nanos),
    /// A process ended in good order.
    ProcessEnded(ProcessEnd),
    /// Where the call comes from that begins at this moment, on this thread.
    CalledFrom(CalledFrom),
    /// A watched function was called.
    CallBegun(CallBegun),
    /// A watched function returned, or was left in another way.
    CallEnded(CallEnded),
    /// A call of libc, or many in a row.
    Libc(LibcCalls),
    /// The probe made room for what the thread would do next.
    RoomMade {
        /// When it began to, on CLOCK_MONOTONIC.
        at: Nanos,
        /// How long that took.
        took: Nanos,
    },
    /// A fix put time into the call that is open.
    Injected {
        /// When it was noted, on CLOCK_MONOTONIC.
        at: Nanos,
        /// How much time the fix put into the call.
        time: Nanos,
    },
}

/// Where a call came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledFrom {
    /// When that call began, on CLOCK_MONOTONIC.
    pub at: Nanos,
    /// The functions on the stack, the innermost first: the one that made the call.
    pub frames: Arc<[StackFrame]>,
}

/// A program, from its start or its exec(3) on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The id of its process.
    pub id: u32,
    /// Who forked it off.
    pub parent: u32,
    /// Its file; empty when it is not known.
    pub program: String,
    /// When the observer began in it.
    pub started: Nanos,
}

/// What a process took, as it knew when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// The number of the process.
    pub process: u32,
    /// When it ended, on CLOCK_MONOTONIC.
    pub at: Nanos,
    /// How its first thread was scheduled; `None` where the kernel does not say.
    pub first_thread: Option<Scheduled>,
    /// User and system time of all its threads.
    pub processor: Nanos,
}

/// How a thread was scheduled (`/proc/self/schedstat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The time on a processor.
    pub ran: Nanos,
    /// The time in which it was ready to run, and without a processor.
    pub waited: Nanos,
}

/// Which function of which library, called by which: a [`CalledFunction`] by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// A path, a name or an address by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub Place);

/// A function as it was called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CalledFunction {
    /// Its name, as it is exported.
    pub function: &'static str,
    /// Which interface the function belongs to.
    pub family: Family,
    /// The file name of the library that was called.
    pub module: String,
    /// That of the library that called; empty for the program itself.
    pub caller: String,
}

/// Calls of one function on one thread that were not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummedCalls {
    /// The process that made them, by id.
    pub process: u32,
    /// The thread, by id.
    pub thread: u32,
    /// The function that was called.
    pub function: FunctionId,
    /// Calls that began.
    pub count: u64,
    /// Those of them that never ended, or of libc were left by an exception or longjmp(3).
    pub unfinished: u64,
    /// The time of those that ended, without that of calls of the same function inside.
    pub time: Nanos,
    /// So many of them it is of: not of calls inside one of the same function, nor of those that an
    /// exception or longjmp(3) went past.
    pub timed: u64,
    /// Of it, what no watched call inside them took.
    pub own: Nanos,
    /// What failed calls returned, and how many did; without a result: an exception or longjmp(3)
    /// went past them.
    pub failed: Vec<(Option<u64>, u64)>,
    /// Calls that failed with other codes.
    pub other_failures: u64,
    /// What is known of one by one of them.
    pub details: SummedDetails,
}

/// What is known of calls of PKCS#11, PC/SC and drivers that were summed and went well: of a thread's
/// calls of one function from the 64th on, where there is room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummedDetails {
    /// So many took that long, within a sixteenth.
    pub times: Vec<(Nanos, u64)>,
    /// Those that asked again what their thread had asked before, with no call of their process in
    /// between that changes answers: a search by its template, others with the same answer. There may be more.
    pub again: u64,
    /// From entry to return, all of these together.
    pub time_again: Nanos,
}

/// One of the last calls of a thread whose calls were summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnlistedCall {
    /// The process that made it, by id.
    pub process: u32,
    /// The thread, by id.
    pub thread: u32,
    /// The function that was called.
    pub function: FunctionId,
    /// When the call began, on CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// What it returned.
    pub result: u64,
}

/// What a call takes longer because it is watched, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchCost {
    /// Before the call's own time begins.
    pub before: Nanos,
    /// Within the call's own time, at its beginning.
    pub inside: Nanos,
    /// After the call's own time has ended.
    pub after: Nanos,
    /// How much longer all of it takes than it did at best. The program is taken to wait no longer at
    /// other places, for memory that the probe has displaced from caches.
    pub displaced: Nanos,
}

/// Where calls of one function come through, by which an end finds its beginning: two stubs may
/// stand for one [`CalledFunction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StubId(pub u32);

/// The beginning of a call of PKCS#11, PC/SC or a reader driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBegun {
    /// When the call began, on CLOCK_MONOTONIC.
    pub at: Nanos,
    /// The stub that the call went through.
    pub stub: StubId,
    /// The function that was called.
    pub function: FunctionId,
    /// Its first argument: a session, a context, a card.
    pub handle: u64,
    /// Its second: a mechanism, a slot, a time limit in milliseconds; of C_FindObjectsInit a digest
    /// of the template under the run's own key; 0 where `sent` or `reader` say more.
    pub detail: u64,
    /// Of a call of PKCS#11 what it works on: the key of an operation that begins, the length in
    /// bytes of what it is given, the most objects of C_FindObjects, and of C_FindObjectsInit and
    /// C_GetAttributeValue the shape of the template (`template_shape`), of the latter with the
    /// object in the bits above; 0 elsewhere.
    pub operand: u64,
    /// It has no room for a result, and only asks how long that is.
    pub only_length: bool,
    /// It makes an object that stays on the token (CKA_TOKEN).
    pub on_token: bool,
    /// What it sends to a card.
    pub sent: Option<SentCommand>,
    /// A reader's name, where it takes one.
    pub reader: Option<TextId>,
}

/// A command to a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentCommand {
    /// CLA INS P1 P2 and P3, and data where they may be known.
    pub command: Box<[u8]>,
    /// A digest of a command that reads; 0 for all others.
    pub digest: u64,
    /// Bytes to the card.
    pub bytes: u32,
}

/// The end of the innermost open call that came through a stub. Calls inside it that are open were
/// abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEnded {
    /// When the call ended, on CLOCK_MONOTONIC.
    pub at: Nanos,
    /// The stub that the call went through.
    pub stub: StubId,
    /// In which way it ended.
    pub end: End,
    /// What it returned: CK_RV, or the error code of PC/SC or the driver.
    pub result: u64,
    /// What the call gave its caller, as far as it was captured.
    pub outcome: CallOutcome,
}

/// What a call gave beside its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// A session, a card, a context or an object; of an operation how long its result is, in
    /// bytes; 0 where there is nothing.
    Made(u64),
    /// Objects of a token.
    Found {
        /// How many objects one call gave.
        count: u32,
        /// A digest of their handles.
        digest: u32,
    },
    /// A card's response APDU.
    Response {
        /// Bytes from the card, status word included.
        bytes: u32,
        /// The status word; 0 when there was none.
        status: u16,
        /// A digest of the response.
        digest: u32,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The function returned to its caller.
    #[default]
    Returned,
    /// An exception or longjmp(3) went past it.
    Abandoned,
    /// A fix answered instead of the function.
    Replaced,
    /// Never: the program ended before.
    Open,
    /// Nobody watched its return: neither its result nor its time is known.
    Unseen,
}

/// A libc call, or many short ones of the same kind in a row, among which others may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibcCalls {
    /// The beginning of the first.
    pub start: Nanos,
    /// The end of the last; `None`: it never returned.
    pub end: Option<Nanos>,
    /// The function of libc that was called.
    pub function: FunctionId,
    /// How many calls there were.
    pub count: u32,
    /// The time of all of them together.
    pub time: Nanos,
    /// What the last one returned.
    pub result: i64,
    /// A descriptor, an address, a number that was looked up.
    pub a: u64,
    /// A length in bytes, or a time that was asked for in nanoseconds.
    pub b: u64,
    /// A path, an address (sockaddr), a name.
    pub text: Option<TextId>,
    /// What it waited for.
    pub on: On,
    /// A fix answered instead of the function.
    pub replaced: bool,
}

/// What is at the other end of a descriptor, where that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// A descriptor of no particular interest.
    #[default]
    Something,
    /// The socket of pcscd.
    Service,
    /// A terminal, behind which a person sits.
    Terminal,
}
