//! The second pass over a file of events: what threads did.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use tapstone_events::{
    CallBegun, CallEnded, CallOutcome, CalledFrom, End, Event, Family, FunctionId, Kind, LibcCalls,
    On, Place, ProcessEnd, Scheduled, SentCommand, StubId, TextId,
};
use tapstone_measure::units::Nanos;

use super::Recording;
use super::chunks::{HEAD, RecordingChunk, WORD, WireEvent, events};
use crate::wire::{
    self, ENTER_WORDS, EVENT_ENDS, EVENT_ENTER, EVENT_EXIT, EVENT_FIXED, EVENT_LEAF, EVENT_NOTHING,
    EVENT_PROCESS, EVENT_ROOM, EVENT_STACK, FLAG_ABANDONED, FLAG_LENGTH, FLAG_REPLACED,
    FLAG_SERVICE, FLAG_TERMINAL, FLAG_TOKEN,
};

/// Words of a leaf before its bytes.
const LEAF: usize = size_of::<wire::Leaf>() / WORD;

/// The second pass: what threads did.
pub(super) struct Decoder<'a> {
    pub(super) recording: &'a Recording,
    pub(super) texts: HashMap<Box<[u8]>, TextId>,
    pub(super) take: &'a mut dyn FnMut(Event),
}

impl Decoder<'_> {
    /// Hands over the events of a chunk.
    pub(super) fn read(&mut self, chunk: &RecordingChunk) -> io::Result<()> {
        let Recording { file, scale, images, callers, .. } = self.recording;
        let content = chunk.content(file)?;
        let Some(image) = images.at(chunk.process, chunk.number) else { return Ok(()) };
        for event in events(&content) {
            let at = scale.moment(event.time);
            let function = || images.function(image, event.slot);
            // The file may be anybody's: a call is of the kind that its function is, or none.
            let function_of = |libc: bool| function().filter(|it| self.is_of_libc(*it) == libc);
            let event = match event.kind {
                EVENT_NOTHING => continue,
                EVENT_PROCESS => Event::Executed(at),
                EVENT_ENTER => match function_of(false) {
                    Some(function) => Event::CallBegun(self.call_begun(event, at, function)),
                    None => Event::Alive(at),
                },
                EVENT_EXIT => Event::CallEnded(self.call_ended(event, at, function())),
                EVENT_LEAF => match function_of(true) {
                    Some(function) => Event::Libc(self.libc_calls(event, at, function)),
                    None => Event::Alive(at),
                },
                EVENT_ENDS => Event::ProcessEnded(process_end(event, at)),
                EVENT_STACK => match callers.get(&(chunk.process, chunk.thread, event.time)) {
                    Some(frames) if !frames.is_empty() => {
                        Event::CalledFrom(CalledFrom { at, frames: Arc::clone(frames) })
                    }
                    _ => Event::Alive(at),
                },
                EVENT_ROOM => Event::RoomMade { at, took: scale.duration(event.word(0)) },
                EVENT_FIXED => Event::Injected { at, time: Nanos(event.word(0)) },
                _ => Event::Alive(at),
            };
            (self.take)(event);
        }
        Ok(())
    }

    fn is_of_libc(&self, function: FunctionId) -> bool {
        matches!(self.recording.functions.get(function).family, Family::Libc(_))
    }

    fn call_begun(&mut self, event: WireEvent<'_>, at: Nanos, function: FunctionId) -> CallBegun {
        let mut begun = CallBegun {
            at,
            stub: StubId(event.slot),
            function,
            handle: event.word(0),
            detail: 0,
            operand: 0,
            only_length: event.flags & FLAG_LENGTH != 0,
            on_token: event.flags & FLAG_TOKEN != 0,
            sent: None,
            reader: None,
        };
        match self.recording.functions.get(function).function {
            name if exchanges(name) => {
                let bytes = event.word(2) as u32;
                let kept = event.bytes(ENTER_WORDS - HEAD);
                let command = kept.get(..kept.len().min(bytes as usize)).unwrap_or_default();
                begun.sent =
                    Some(SentCommand { command: command.into(), digest: event.word(1), bytes });
            }
            "SCardConnect" => begun.reader = Some(self.text(event.text(ENTER_WORDS - HEAD))),
            _ => {
                begun.detail = event.word(1);
                begun.operand = event.word(2);
            }
        }
        begun
    }

    fn call_ended(
        &self,
        event: WireEvent<'_>,
        at: Nanos,
        function: Option<FunctionId>,
    ) -> CallEnded {
        let word = event.word(1);
        let name = function.map(|function| self.recording.functions.get(function).function);
        CallEnded {
            at,
            stub: StubId(event.slot),
            end: match event.flags {
                flags if flags & FLAG_ABANDONED != 0 => End::Abandoned,
                flags if flags & FLAG_REPLACED != 0 => End::Replaced,
                _ => End::Returned,
            },
            result: event.word(0),
            outcome: if name.is_some_and(exchanges) {
                CallOutcome::Response {
                    status: word as u16,
                    bytes: (word >> 16) as u32 & 0xFFFF,
                    digest: (word >> 32) as u32,
                }
            } else if name.is_some_and(has_digest) {
                CallOutcome::Found { count: word as u32, digest: (word >> 32) as u32 }
            } else {
                CallOutcome::Made(word)
            },
        }
    }

    fn libc_calls(
        &mut self,
        event: WireEvent<'_>,
        start: Nanos,
        function: FunctionId,
    ) -> LibcCalls {
        let Recording { scale, functions, .. } = self.recording;
        let bytes = event.bytes(LEAF - HEAD);
        let text = match functions.get(function).family {
            _ if bytes.is_empty() => None,
            // A sockaddr has zeros inside.
            Family::Libc(Kind::Connect) => Some(self.text(bytes)),
            _ => Some(self.text(event.text(LEAF - HEAD))),
        };
        LibcCalls {
            start,
            end: (event.word(0) != 0).then(|| scale.moment(event.word(0))),
            function,
            count: event.word(1).min(u64::from(u32::MAX)) as u32,
            time: scale.duration(event.word(2)),
            // int and ssize_t alike: the upper half of an int's register means nothing.
            result: i64::from(event.word(5) as i32),
            a: event.word(6),
            b: event.word(7),
            text,
            on: match event.flags {
                flags if flags & FLAG_SERVICE != 0 => On::Service,
                flags if flags & FLAG_TERMINAL != 0 => On::Terminal,
                _ => On::Something,
            },
            replaced: event.flags & FLAG_REPLACED != 0,
        }
    }

    /// The number of a text, which is declared when it first comes.
    fn text(&mut self, text: &[u8]) -> TextId {
        if let Some(id) = self.texts.get(text) {
            return *id;
        }
        let id = TextId(Place::new(self.texts.len() as u32));
        self.texts.insert(text.into(), id);
        (self.take)(Event::Text(text.into()));
        id
    }
}

fn process_end(event: WireEvent<'_>, at: Nanos) -> ProcessEnd {
    let ran = Nanos(event.word(1));
    let waited = Nanos(event.word(2));
    ProcessEnd {
        process: event.word(0) as u32,
        at,
        first_thread: (ran > Nanos::ZERO).then_some(Scheduled { ran, waited }),
        processor: Nanos(event.word(3)),
    }
}

/// Whether a function sends a command to a card and returns its response.
fn exchanges(function: &str) -> bool {
    matches!(function, "SCardTransmit" | "IFDHTransmitToICC")
}

/// Whether what a function answered is kept as a digest, so that it can be compared.
fn has_digest(function: &str) -> bool {
    matches!(
        function,
        "C_FindObjects"
            | "C_GetAttributeValue"
            | "C_GetInfo"
            | "C_GetSlotList"
            | "C_GetSlotInfo"
            | "C_GetTokenInfo"
            | "C_GetMechanismList"
            | "C_GetMechanismInfo"
    )
}
