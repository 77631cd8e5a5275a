//! The protocol of vpcd, against a server that does as the driver does: each message in two
//! writes.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use tapstone_vcard::vpcd::{Acknowledge, ConnectionEnd, Served, VpcdError, VpcdReader};
use tapstone_vcard::{BenchApplet, Gone, Profile, VirtualCard};

const SELECT: &[u8] = b"\x00\xA4\x04\x00\x0A\xF0TAPSTONE\x01";
const VERSION: &[u8] = &[0x80, 0x12, 0, 0, 0];
const FAULTY: &str = "name = 'x'\ndescription = ''\nsource = ''\natr = '3B 80 01 81'\n\
                      [[applet]]\nname = 'bench'\n[[fault]]\nat = 2\nfrom = 'assumed'\n";

fn bench() -> VirtualCard {
    VirtualCard::new().with("bench", Box::new(BenchApplet::default()))
}

/// The driver's end of a connection.
struct Driver(TcpStream);

impl Driver {
    fn send(&mut self, message: &[u8]) {
        self.0.write_all(&(message.len() as u16).to_be_bytes()).unwrap();
        self.0.write_all(message).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut length = [0; 2];
        self.0.read_exact(&mut length).unwrap();
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        self.0.read_exact(&mut message).unwrap();
        message
    }

    fn ask(&mut self, message: &[u8]) -> Vec<u8> {
        self.send(message);
        self.receive()
    }

    /// The card has closed its end.
    fn is_closed(&mut self) -> bool {
        self.0.read(&mut [0; 1]).unwrap() == 0
    }
}

/// Puts the card into the reader of a driver that does so; what serving it came to.
fn serve(card: VirtualCard, driver: impl FnOnce(Driver) + Send + 'static) -> Served {
    serve_so(card, Acknowledge::AtOnce, driver)
}

fn serve_so(
    mut card: VirtualCard,
    acknowledge: Acknowledge,
    driver: impl FnOnce(Driver) + Send + 'static,
) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut reader = VpcdReader::connect("127.0.0.1", port).unwrap().acknowledging(acknowledge);
    let driver = thread::spawn(move || driver(Driver(listener.accept().unwrap().0)));
    let mut inserted = 0;
    let served = reader.serve(&mut card, || inserted += 1).unwrap();
    // The driver must see the end of the connection too.
    drop(reader);
    driver.join().unwrap();
    assert_eq!(inserted, 1);
    served
}

#[test]
fn controls_and_commands_are_answered_until_the_reader_goes_away() {
    let atr = bench().atr().to_vec();
    let served = serve(bench(), move |mut driver| {
        driver.send(&[1]);
        assert_eq!(driver.ask(&[4]), atr);
        assert_eq!(driver.ask(VERSION), [0x69, 0x99]);
        assert_eq!(driver.ask(SELECT), [0x90, 0]);
        assert_eq!(driver.ask(VERSION), [1, 0, 0x90, 0]);
        // Neither a reset nor an unknown control is answered; the reset ends the selection.
        driver.send(&[9]);
        driver.send(&[2]);
        assert_eq!(driver.ask(VERSION), [0x69, 0x99]);
        assert_eq!(driver.ask(&[0, 0]), [0x67, 0]);
        driver.send(&[0]);
    });
    assert_eq!((served.ended, served.commands, served.late), (ConnectionEnd::ReaderGone, 5, 0));
}

#[test]
fn a_message_may_come_in_pieces() {
    serve(bench(), |mut driver| {
        for byte in [&[0, 15][..], SELECT, &[0, 5], VERSION].concat() {
            driver.0.write_all(&[byte]).unwrap();
        }
        assert_eq!(driver.receive(), [0x90, 0]);
        assert_eq!(driver.receive(), [1, 0, 0x90, 0]);
    });
}

/// The shortest of some round trips, so that a busy machine does not count.
fn quickest(acknowledge: Acknowledge) -> Duration {
    let (sender, receiver) = std::sync::mpsc::channel();
    serve_so(bench(), acknowledge, move |mut driver| {
        for _ in 0..10 {
            let begin = Instant::now();
            assert_eq!(driver.ask(SELECT), [0x90, 0]);
            sender.send(begin.elapsed()).unwrap();
        }
    });
    receiver.into_iter().min().unwrap()
}

#[test]
fn a_delayed_acknowledgement_holds_up_every_command_from_the_first() {
    let [at_once, delayed] = [Acknowledge::AtOnce, Acknowledge::Delayed].map(quickest);
    assert!(delayed > 10 * at_once, "{at_once:?} and {delayed:?}");
}

#[test]
fn a_stopper_takes_the_card_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut reader =
        VpcdReader::connect("127.0.0.1", listener.local_addr().unwrap().port()).unwrap();
    let stopper = reader.stopper().unwrap();
    let driver = thread::spawn(move || {
        let mut driver = Driver(listener.accept().unwrap().0);
        driver.ask(SELECT);
        stopper.stop();
        assert!(driver.is_closed());
    });
    let served = reader.serve(&mut bench(), || {}).unwrap();
    driver.join().unwrap();
    assert_eq!((served.ended, served.commands), (ConnectionEnd::Stopped, 1));
}

#[test]
fn a_mute_card_closes_its_connection_and_so_does_one_pulled_out() {
    let faults =
        ["kind = 'mute'\ncloses_after = { ms = 20, from = 'assumed' }\n", "kind = 'removed'\n"];
    for fault in faults {
        let profile = Profile::parse("x.toml", &format!("{FAULTY}{fault}")).unwrap();
        let served = serve(profile.card(None).unwrap(), |mut driver| {
            assert_eq!(driver.ask(SELECT), [0x90, 0]);
            driver.send(VERSION);
            assert!(driver.is_closed());
        });
        let mute = matches!(served.ended, ConnectionEnd::Fault(Gone::Mute { .. }));
        assert_eq!(mute, fault.contains("mute"), "{served:?}");
        assert_eq!(served.commands, 1);
    }
}

#[test]
fn nobody_listening_is_an_error_with_a_hint() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = VpcdReader::connect("127.0.0.1", port).unwrap_err();
    assert!(matches!(error, VpcdError::NoReader { .. }));
    assert!(error.to_string().contains("hint: install pcscd"), "{error}");
}
