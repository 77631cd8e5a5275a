//! The relay does to a connection what it was told, and nothing else.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Relay;

/// No answer takes so long.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Long enough for what is not held up to come through.
const MOMENT: Duration = Duration::from_millis(300);

/// Answers each byte with the same byte until the test program ends.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
            });
        }
    });
    address
}

fn connect(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(relay.address()).unwrap();
    stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    stream
}

/// Sends a byte and waits for it.
fn ask(stream: &mut TcpStream, byte: u8) -> Option<u8> {
    stream.write_all(&[byte]).ok()?;
    hear(stream)
}

/// `None`: the connection is broken.
fn hear(stream: &mut TcpStream) -> Option<u8> {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(1) => Some(byte[0]),
        Ok(_) => None,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "no answer after {TIME_LIMIT:?}");
            None
        }
    }
}

#[test]
fn each_direction_takes_what_was_told() {
    let relay = Relay::to(echo()).delay(Duration::from_millis(20));
    let mut stream = connect(&relay);
    for byte in 0..5 {
        let begin = Instant::now();
        assert_eq!(ask(&mut stream, byte), Some(byte));
        assert!(begin.elapsed() >= Duration::from_millis(40), "{:?}", begin.elapsed());
    }
}

#[test]
fn delayed_bytes_do_not_wait_for_one_another() {
    // One after another, 50 bytes would take 100 s.
    let relay = Relay::to(echo()).delay(Duration::from_secs(1));
    let mut stream = connect(&relay);
    for byte in 0..50 {
        stream.write_all(&[byte]).unwrap();
        thread::sleep(Duration::from_millis(2));
    }
    let mut answers = [0; 50];
    stream.read_exact(&mut answers).unwrap();
    assert!(answers.iter().copied().eq(0..50), "in order: {answers:?}");
}

#[test]
fn much_comes_through_unharmed() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let relay = Relay::to(listener.local_addr().unwrap());
    let sent: Vec<u8> = (0..4_000_000_u32).map(|number| (number % 251) as u8).collect();
    let receiver = thread::spawn(move || {
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        received
    });
    let mut stream = connect(&relay);
    stream.write_all(&sent).unwrap();
    drop(stream);
    assert!(receiver.join().unwrap() == sent, "4 MB, and then the end");
}

#[test]
fn what_is_broken_can_be_made_again() {
    let relay = Relay::to(echo());
    let mut stream = connect(&relay);
    assert_eq!(ask(&mut stream, 1), Some(1));
    relay.break_connections();
    assert_eq!(hear(&mut stream), None);
    let mut stream = connect(&relay);
    assert_eq!(ask(&mut stream, 2), Some(2));
    assert_eq!(relay.connections_ever(), 2);
}

#[test]
fn what_is_stalled_comes_late_and_whole() {
    let relay = Relay::to(echo());
    let mut stream = connect(&relay);
    assert_eq!(ask(&mut stream, 1), Some(1));
    relay.stall();
    stream.write_all(&[2, 3]).unwrap();
    let mut new = connect(&relay);
    new.write_all(&[4]).unwrap();
    for silent in [&mut stream, &mut new] {
        silent.set_read_timeout(Some(MOMENT)).unwrap();
        let heard = silent.read(&mut [0]);
        assert_eq!(heard.unwrap_err().kind(), ErrorKind::WouldBlock, "nothing, and no end");
        silent.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    }
    relay.come_back();
    assert_eq!([hear(&mut stream), hear(&mut stream)], [Some(2), Some(3)]);
    assert_eq!(hear(&mut new), Some(4));
}

#[test]
fn who_is_cut_off_comes_through_when_it_is_back() {
    let relay = Relay::to(echo());
    let mut stream = connect(&relay);
    assert_eq!(ask(&mut stream, 1), Some(1));
    relay.cut_off();
    assert_eq!(hear(&mut stream), None);
    assert_eq!(ask(&mut connect(&relay), 2), None);
    relay.come_back();
    assert_eq!(ask(&mut connect(&relay), 3), Some(3));
    assert_eq!(relay.connections_ever(), 2, "those that came through");
}

#[test]
fn a_stalled_relay_ends_too() {
    let relay = Relay::to(echo());
    let mut stream = connect(&relay);
    relay.stall();
    stream.write_all(&[1]).unwrap();
    let address = relay.address();
    drop(relay);
    assert_eq!(hear(&mut stream), None);
    assert!(TcpStream::connect(address).is_err());
}
