//! Timelines that tests make up: what each thread does, told in order.
//!
//! ```
//! use tapstone_explain::synthetic::{Story, micros, millis};
//!
//! let timeline = Story::new()
//!     .thread(|told| {
//!         told.enter("SCardEndTransaction").advance(micros(30)).leaf("usleep", millis(5)).exit();
//!     })
//!     .timeline();
//! assert_eq!(timeline.wall(), micros(5_030));
//! ```

use std::collections::HashMap;

use tapstone_measure::units::Nanos;

use tapstone_events::FUNCTIONS;

use crate::timeline::{
    About, CalledFunction, End, Exchange, ExchangeId, Family, FunctionId, Leaf, On, Outcome, Place,
    Program, Span, TextId, Thread, Timeline,
};

/// A length of so many microseconds.
pub const fn micros(count: u64) -> Nanos {
    Nanos(count * 1_000)
}

/// A length of so many milliseconds.
pub const fn millis(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

/// What happens in a run that begins at 0.
pub struct Story {
    builder: Builder,
    process: u32,
    threads: u32,
}

impl Default for Story {
    fn default() -> Self {
        Self::new()
    }
}

impl Story {
    /// A run of `program`, in which nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        let mut story = Self { builder: Builder::default(), process: 0, threads: 0 };
        story.process("program");
        story.builder.timeline().root = story.process;
        story
    }

    /// Another process: whose threads come now.
    pub fn process(&mut self, program: &str) -> &mut Self {
        self.process += 1_000;
        self.threads = 0;
        let id = self.process;
        let parent = self.process - 1_000;
        let program = program.to_owned();
        let process = Program { id, parent, program, started: Nanos::ZERO };
        self.builder.timeline().processes.push(process);
        self
    }

    /// Another thread of the process, from 0 on.
    pub fn thread(&mut self, tell: impl FnOnce(&mut ThreadStory<'_>)) -> &mut Self {
        let id = self.process + self.threads;
        self.threads += 1;
        let thread = Thread { process: self.process, id, ..Thread::default() };
        let open = Vec::new();
        let now = Nanos::ZERO;
        let mut telling = ThreadStory { builder: &mut self.builder, thread, open, now };
        tell(&mut telling);
        while !telling.open.is_empty() {
            telling.exit();
            telling.last_span().end_kind = End::Open;
        }
        let ThreadStory { mut thread, now, .. } = telling;
        thread.end = now;
        let timeline = self.builder.timeline();
        timeline.ended = timeline.ended.max(now);
        timeline.threads.push(thread);
        self
    }

    /// The timeline of what was told. The story is empty then.
    pub fn timeline(&mut self) -> Timeline {
        let mut timeline = std::mem::take(&mut self.builder).finish();
        let ended = timeline.ended;
        if let Some(first) = timeline.threads.first_mut() {
            first.end = ended;
        }
        timeline
    }
}

/// What one thread does.
pub struct ThreadStory<'a> {
    builder: &'a mut Builder,
    thread: Thread,
    /// Calls that have not returned, and the last one that has.
    open: Vec<u32>,
    now: Nanos,
}

impl ThreadStory<'_> {
    /// The moment up to which the thread's story is told.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Lets time pass in which nothing is seen.
    pub fn advance(&mut self, time: Nanos) -> &mut Self {
        self.now += time;
        self
    }

    /// Waits for a moment that may be past.
    pub fn until(&mut self, moment: Nanos) -> &mut Self {
        self.now = self.now.max(moment);
        self
    }

    /// A call begins, in the library that usually has it.
    pub fn enter(&mut self, function: &str) -> &mut Self {
        let module = module(family(function));
        self.enter_in(function, module)
    }

    /// A call begins, in this library.
    pub fn enter_in(&mut self, function: &str, module: &str) -> &mut Self {
        let call = self.function(function, module);
        let span = Span {
            start: self.now,
            end: Nanos::NEVER,
            call,
            parent: self.open.last().copied().map(Place::new),
            end_kind: End::Returned,
            result: 0,
            handle: 0,
            detail: 0,
            operand: 0,
            outcome: Outcome::NOTHING,
            about: None,
            on_token: false,
        };
        self.open.push(self.thread.spans.len() as u32);
        self.thread.spans.push(span);
        self
    }

    /// First and second argument of the call that has just begun.
    pub fn given(&mut self, handle: u64, detail: u64) -> &mut Self {
        let span = self.last_span();
        span.handle = handle;
        span.detail = detail;
        self
    }

    /// The call that began last.
    ///
    /// # Panics
    /// When none has begun.
    pub fn last_span(&mut self) -> &mut Span {
        self.thread.spans.last_mut().expect("a call has begun")
    }

    /// The call that began last makes this.
    pub fn gives(&mut self, made: u64) -> &mut Self {
        self.last_span().outcome = Outcome::made(made);
        self
    }

    /// The call that began last finds so many objects, which have this digest.
    pub fn finds(&mut self, count: u32, digest: u32) -> &mut Self {
        self.last_span().outcome = Outcome::found(count, digest);
        self
    }

    /// A fix put this much of its time into the call that began last.
    pub fn injects(&mut self, time: Nanos) -> &mut Self {
        let last = Place::new(self.thread.spans.len() as u32 - 1);
        self.thread.injected.insert(last, time);
        self
    }

    /// The innermost open call returns 0.
    pub fn exit(&mut self) -> &mut Self {
        self.exit_with(0)
    }

    /// The innermost open call returns this.
    ///
    /// # Panics
    /// When none is open.
    pub fn exit_with(&mut self, result: u64) -> &mut Self {
        let at = self.open.pop().expect("a call is open");
        let span = &mut self.thread.spans[at as usize];
        span.end = self.now;
        span.result = result;
        self
    }

    /// A call in which nothing else is seen.
    pub fn call(&mut self, function: &str, handle: u64, time: Nanos) -> &mut Self {
        self.enter(function).given(handle, 0).advance(time).exit()
    }

    /// The same of one that makes something.
    pub fn makes(&mut self, function: &str, handle: u64, made: u64, time: Nanos) -> &mut Self {
        self.call(function, handle, time).gives(made)
    }

    /// SCardTransmit: a command and its response with the status word.
    pub fn transmit(
        &mut self,
        card: u64,
        command: &[u8],
        response: &[u8],
        time: Nanos,
    ) -> &mut Self {
        let reads = matches!(command[1], 0xA4 | 0xB0..=0xB3 | 0xCA | 0xCB | 0xC0);
        let status = response.last_chunk().map_or(0, |status| u16::from_be_bytes(*status));
        let exchange = Exchange {
            command: command.into(),
            digest: if reads { digest(command) } else { 0 },
            sent: command.len() as u32,
            received: response.len() as u32,
            status,
            answer: (digest(response) >> 32) as u32,
        };
        self.enter("SCardTransmit").given(card, 0).advance(time);
        self.last_span().about = Some(About::exchange(self.builder.exchange(exchange)));
        self.exit()
    }

    /// A call of libc, with nothing in it but its time.
    pub fn leaf(&mut self, function: &str, time: Nanos) -> &mut Self {
        let call = self.function(function, "libc.so.6");
        let leaf = Leaf {
            start: self.now,
            end: self.now + time,
            call,
            parent: self.open.last().copied().map(Place::new),
            count: 1,
            time,
            result: 0,
            a: 0,
            b: 0,
            text: None,
            on: On::Something,
            replaced: false,
        };
        self.thread.leaves.push(leaf);
        self.now += time;
        self
    }

    /// More of the last call of libc.
    pub fn with(&mut self, more: impl FnOnce(&mut Leaf)) -> &mut Self {
        more(self.thread.leaves.last_mut().expect("there is one"));
        self
    }

    /// A path or a name for it.
    pub fn about(&mut self, text: &str) -> &mut Self {
        let id = self.builder.text(text.as_bytes());
        self.with(|leaf| (leaf.text, leaf.a) = (Some(id), digest(text.as_bytes())))
    }

    /// SCardConnect to a reader.
    pub fn connect(&mut self, context: u64, reader: &str, card: u64, time: Nanos) -> &mut Self {
        let id = self.builder.text(reader.as_bytes());
        self.makes("SCardConnect", context, card, time).last_span().about = Some(About::reader(id));
        self
    }

    /// Many short ones, among which others lie that begin now too: time does not go on.
    pub fn counted(&mut self, function: &str, count: u32, each: Nanos, over: Nanos) -> &mut Self {
        let now = self.now;
        self.leaf(function, over).with(|leaf| {
            leaf.count = count;
            leaf.time = Nanos(each.0 * u64::from(count));
        });
        self.now = now;
        self
    }

    fn function(&mut self, name: &str, module: &str) -> FunctionId {
        let number = FUNCTIONS.iter().position(|function| function.name == name);
        let number = number.unwrap_or_else(|| panic!("{name} is not watched"));
        let around = self.open.last().map(|at| self.thread.spans[*at as usize].call);
        let caller = around
            .map_or_else(String::new, |around| self.builder.timeline().call(around).module.clone());
        self.builder.call(number, module, &caller)
    }
}

/// Makes a timeline, piece after piece.
#[derive(Debug, Default)]
struct Builder {
    timeline: Timeline,
    call_ids: HashMap<CalledFunction, FunctionId>,
    text_ids: HashMap<Box<[u8]>, TextId>,
}

impl Builder {
    /// The id of a function, by its number among the watched ones.
    fn call(&mut self, function: usize, module: &str, caller: &str) -> FunctionId {
        let watched = FUNCTIONS[function];
        let call = CalledFunction {
            function: watched.name,
            family: watched.family,
            module: module.to_owned(),
            caller: caller.to_owned(),
        };
        let calls = &mut self.timeline.calls;
        *self.call_ids.entry(call).or_insert_with_key(|call| {
            calls.push(call.clone());
            FunctionId(calls.len() as u32 - 1)
        })
    }

    /// The id of a text.
    fn text(&mut self, text: &[u8]) -> TextId {
        if let Some(id) = self.text_ids.get(text) {
            return *id;
        }
        let id = TextId(Place::new(self.timeline.texts.len() as u32));
        self.timeline.texts.push(text.into());
        self.text_ids.insert(text.into(), id);
        id
    }

    /// The id of an exchange.
    fn exchange(&mut self, exchange: Exchange) -> ExchangeId {
        self.timeline.exchanges.push(exchange);
        ExchangeId(Place::new(self.timeline.exchanges.len() as u32 - 1))
    }

    /// What is known so far, to be added to.
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// What has been built.
    fn finish(self) -> Timeline {
        self.timeline
    }
}

fn family(function: &str) -> Family {
    let watched = FUNCTIONS.iter().find(|watched| watched.name == function);
    watched.unwrap_or_else(|| panic!("{function} is not watched")).family
}

fn module(family: Family) -> &'static str {
    match family {
        Family::Pkcs11 => "module.so",
        Family::Pcsc => "libpcsclite.so.1",
        Family::Driver => "driver.so",
        Family::Libc(_) => "libc.so.6",
    }
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
#[test]
fn a_story_is_told_in_order() {
    use crate::timeline::Kind;

    let timeline = Story::new()
        .thread(|told| {
            told.advance(millis(1)).enter("C_Sign").given(7, 1).advance(millis(2));
            told.enter("SCardTransmit").leaf("recv", millis(3)).exit().exit_with(5);
        })
        .timeline();
    let [thread] = &timeline.threads[..] else { panic!("{timeline:?}") };
    let [sign, transmit] = &thread.spans[..] else { panic!("{thread:?}") };
    assert_eq!((sign.start, sign.end, sign.handle, sign.result), (millis(1), millis(6), 7, 5));
    assert_eq!(
        (transmit.parent, thread.leaves[0].parent),
        (Some(Place::new(0)), Some(Place::new(1)))
    );
    let leaf = timeline.call(thread.leaves[0].call);
    assert_eq!((leaf.family, leaf.caller.as_str()), (Family::Libc(Kind::Read), "libpcsclite.so.1"));
    assert_eq!(timeline.wall(), millis(6));
}
