//! A card that the test plays itself, to see what it is sent or to answer what no card would.

use std::io::{ErrorKind, Read, Write};
use std::marker::PhantomData;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tapstone_apdu::CommandApdu;
use tapstone_testing::CountingCard;
use tapstone_vcard::{Applet, BenchApplet, IdentityApplet, Reply, VirtualCard, vpcd};

use super::card::{empty, has_card};
use super::pcscd::Pcscd;
use super::{Slot, eventually};

const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The commands that the applet was sent.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<CommandApdu>>>);

impl Log {
    /// How many commands had this INS.
    pub(crate) fn count(&self, ins: u8) -> usize {
        self.0.lock().unwrap().iter().filter(|command| command.ins == ins).count()
    }
}

/// The benchmark applet, which notes what it is sent.
struct Noted {
    applet: BenchApplet,
    log: Log,
}

impl Applet for Noted {
    fn aid(&self) -> &[u8] {
        self.applet.aid()
    }

    fn select(&mut self) -> Reply {
        self.applet.select()
    }

    fn deselect(&mut self) {
        self.applet.deselect();
    }

    fn answer(&mut self, command: &CommandApdu) -> Reply {
        self.log.0.lock().unwrap().push(command.clone());
        self.applet.answer(command)
    }
}

/// What a card that is no card answers to every command.
#[derive(Clone, Copy)]
pub(crate) struct Says(pub(crate) &'static [u8]);

/// In the first reader for as long as this lives.
pub(crate) struct Played<'a> {
    pull: Box<dyn Fn() + 'a>,
    thread: Option<JoinHandle<()>>,
    _pcscd: PhantomData<&'a Pcscd>,
}

impl<'a> Played<'a> {
    /// The benchmark applet with an account of what it was sent.
    pub(crate) fn noted(_: &'a Pcscd) -> (Self, Log) {
        assert!(empty(Slot::First));
        let log = Log::default();
        let applet = Noted { applet: BenchApplet::default(), log: log.clone() };
        let mut card = VirtualCard::new()
            .with("identity", Box::new(IdentityApplet::plain()))
            .with("bench", Box::new(applet));
        let mut reader = vpcd::VpcdReader::connect("127.0.0.1", Slot::First.port()).unwrap();
        let stopper = reader.stopper().unwrap();
        let thread = thread::spawn(move || {
            reader.serve(&mut card, || {}).unwrap();
        });
        (Self::there(Box::new(move || stopper.stop()), thread), log)
    }

    /// Powers on like a card, and answers every command with the same bytes.
    pub(crate) fn garbage(_: &'a Pcscd, says: Says) -> Self {
        assert!(empty(Slot::First));
        let stream = TcpStream::connect(("127.0.0.1", Slot::First.port())).unwrap();
        stream.set_nodelay(true).unwrap();
        let end = stream.try_clone().unwrap();
        let thread = thread::spawn(move || answer_all(stream, |_| says.0.to_vec(), || ()));
        let pull = move || {
            // The other side may have closed it.
            let _ = end.shutdown(Shutdown::Both);
        };
        Self::there(Box::new(pull), thread)
    }

    /// A card that counts what is tried on it and written to it.
    pub(crate) fn counting(_: &'a Pcscd, card: CountingCard) -> (Self, Arc<Mutex<CountingCard>>) {
        assert!(empty(Slot::First));
        let card = Arc::new(Mutex::new(card));
        let stream = TcpStream::connect(("127.0.0.1", Slot::First.port())).unwrap();
        stream.set_nodelay(true).unwrap();
        let end = stream.try_clone().unwrap();
        let played = card.clone();
        let thread = thread::spawn(move || {
            let answer = |command: &[u8]| played.lock().unwrap().answer(command);
            answer_all(stream, answer, || played.lock().unwrap().power_off());
        });
        let pull = move || {
            // The other side may have closed it.
            let _ = end.shutdown(Shutdown::Both);
        };
        (Self::there(Box::new(pull), thread), card)
    }

    fn there(pull: Box<dyn Fn() + 'a>, thread: JoinHandle<()>) -> Self {
        let card = Self { pull, thread: Some(thread), _pcscd: PhantomData };
        assert!(eventually(TIME_LIMIT, || has_card(Slot::First)));
        card
    }
}

impl Drop for Played<'_> {
    fn drop(&mut self) {
        (self.pull)();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = empty(Slot::First);
    }
}

/// vpcd's protocol: two bytes of length and a message, where one byte is a control: 4 asks for the
/// ATR, the others have to do with power.
fn answer_all(mut stream: TcpStream, answer: impl Fn(&[u8]) -> Vec<u8>, power_off: impl Fn()) {
    const ATR: [u8; 4] = [0x3B, 0x80, 0x01, 0x81];
    let send = |mut stream: &TcpStream, bytes: &[u8]| {
        let message = [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
        stream.write_all(&message)
    };
    loop {
        let mut length = [0; 2];
        match stream.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
            Ok(()) => {}
        }
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        if stream.read_exact(&mut message).is_err() {
            return;
        }
        let sent = match message[..] {
            [4] => send(&stream, &ATR),
            [_] => {
                power_off();
                Ok(())
            }
            ref command => send(&stream, &answer(command)),
        };
        if sent.is_err() {
            return;
        }
    }
}
