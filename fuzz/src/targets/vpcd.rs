//! What a reader driver sends to a virtual card, through to the card's applications.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;

use tapstone_vcard::vpcd::{Acknowledge, ConnectionEnd, ReaderStream, VpcdReader};
use tapstone_vcard::{IdentityApplet, VirtualCard};

use crate::FuzzTarget;
use crate::structure::{Structure, messages};

/// Each command gets one answer that ends with a status word, each question for the ATR gets it,
/// and the end of the stream is the end of the session.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "vpcd",
    reads: "vpcd's stream",
    structure: Structure::Messages,
    longest: 4096,
    check,
};

/// A stream of which all has come already, and what is sent back.
struct Heard<'a> {
    incoming: &'a [u8],
    outgoing: Rc<RefCell<VecDeque<u8>>>,
}

impl Read for Heard<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.incoming.read(buffer)
    }
}

impl Write for Heard<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReaderStream for Heard<'_> {
    fn acknowledge(&self, _: Acknowledge) {}

    fn close(&self) {}
}

fn check(input: &[u8]) {
    let outgoing = Rc::default();
    let mut reader = VpcdReader::through(Heard { incoming: input, outgoing: Rc::clone(&outgoing) });
    let mut card = VirtualCard::new().with_default("identity", Box::new(IdentityApplet::plain()));
    let served = reader.serve(&mut card, || ()).expect("the stream does not break");
    assert_eq!(served.ended, ConnectionEnd::ReaderGone);
    let sent: Vec<u8> = outgoing.take().into();
    let whole = whole_messages(input);
    let asked = |length: &dyn Fn(&[u8]) -> bool| whole.iter().filter(|it| length(it)).count();
    let commands = asked(&|message| message.len() > 1);
    let for_atr = asked(&|message| *message == [4]);
    assert_eq!(served.commands, commands as u64);
    let answers: Vec<&[u8]> = messages(&sent).collect();
    assert_eq!(answers.len(), commands + for_atr);
    assert!(answers.iter().all(|answer| answer.len() >= 2), "an answer without a status word");
}

/// The messages that came to their end.
fn whole_messages(input: &[u8]) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = messages(input).collect();
    let bytes: usize = all.iter().map(|message| 2 + message.len()).sum();
    let last = all.last().map_or(0, |message| message.len());
    let said = &input[bytes.min(input.len()) - last.min(bytes)..];
    // The last one says how long it is in the two bytes before it.
    let start = input.len() - said.len();
    if start >= 2 && bytes == input.len() {
        let length = usize::from(u16::from_be_bytes([input[start - 2], input[start - 1]]));
        if length != last {
            all.pop();
        }
    }
    all
}
