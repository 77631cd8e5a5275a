//! The card's side of vpcd's protocol: a reader driver for pcscd that listens on TCP and takes
//! whoever connects for the card in its reader.
//!
//! A message is its length (2 bytes, big-endian) and so many bytes. From the driver, one byte is
//! a control (0 power off, 1 power on, 2 reset, 4 send the ATR) and more are a command APDU; from
//! the card come the ATR and response APDUs. A closed connection is a card pulled out.
//!
//! vpcd 3.3 writes the length and the bytes apart and leaves Nagle's algorithm (RFC 896) on, so
//! its second write waits for the acknowledgement of the first, which Linux puts off by up to
//! 43 ms. TCP_QUICKACK sends it at once, but the kernel takes the option back after a while:
//! it is set again before each read. [`Acknowledge::Delayed`] does without on purpose.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::card::VirtualCard;
use crate::fault::Gone;

/// Where the first virtual reader of Debian's vsmartcard-vpcd listens.
pub const DEFAULT_PORT: u16 = 35_963;

/// The longest wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// What a command takes from a host's call to the card and back, through pcsc-lite's library,
/// pcscd and the driver, where the card is slow enough for all of them to fall asleep in between:
/// 0.1 to 0.36 ms were measured. A profile's times are what a host finds, so this is taken off.
const ON_THE_WAY: Duration = Duration::from_micros(200);

/// When the card's side acknowledges what the driver sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// At once, so that the driver's second write does not wait.
    #[default]
    AtOnce,
    /// As late as Linux does by itself on a connection of questions and answers (RFC 1122,
    /// 4.2.3.2): every command then takes some 43 ms longer.
    Delayed,
}

/// What a card and its reader speak through.
pub trait ReaderStream: Read + Write {
    /// Says when what comes is to be acknowledged. Where it cannot be set, messages take 43 ms more
    /// or less, but come.
    fn acknowledge(&self, acknowledge: Acknowledge);

    /// Takes the card out: both sides read no more. It may be closed already.
    fn close(&self);
}

impl ReaderStream for TcpStream {
    fn acknowledge(&self, acknowledge: Acknowledge) {
        let _ = sockopt::set_tcp_quickack(self, acknowledge == Acknowledge::AtOnce);
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// A connection to a virtual reader.
#[derive(Debug)]
pub struct VpcdReader<S = TcpStream> {
    stream: S,
    acknowledge: Acknowledge,
    stop: Arc<AtomicBool>,
}

/// Takes the card out of its reader, from any thread.
#[derive(Debug)]
pub struct Stopper {
    stream: TcpStream,
    stop: Arc<AtomicBool>,
}

/// Why the card is no longer in its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// A [`Stopper`] took it out.
    Stopped,
    /// The reader closed the connection: pcscd has ended, or put the driver away.
    ReaderGone,
    /// A fault of the profile: see [`Gone`].
    Fault(Gone),
}

/// What the card did while it was in the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Why it is no longer.
    pub ended: ConnectionEnd,
    /// How many commands it answered.
    pub commands: u64,
    /// How many answers came later than modelled, for computing them took longer.
    pub late: u64,
    /// The longest of these delays.
    pub latest: Nanos,
}

/// No connection, or one that broke.
#[derive(Debug, Error)]
pub enum VpcdError {
    /// Nobody listens, or the name is unknown.
    #[error(
        "no virtual reader at {host}:{port}: {why}\nhint: install pcscd and vsmartcard-vpcd, \
         start it (`sudo systemctl start pcscd`, or `sudo pcscd --foreground`), and see with \
         `opensc-tool --list-readers` whether it has a Virtual PCD; with other ports than Debian's \
         35963 and 35964 use --port"
    )]
    NoReader {
        /// As it was given.
        host: String,
        /// As it was given.
        port: u16,
        /// What the system says. Not called `source`: the text above has it already.
        why: io::Error,
    },
    /// Reading from or writing to the reader driver failed.
    #[error(
        "the connection to the virtual reader broke: {0}\n\
         hint: pcscd's own messages (`journalctl -u pcscd`) may say why"
    )]
    Broken(io::Error),
}

impl VpcdReader {
    /// Connects to the reader.
    ///
    /// # Errors
    /// When nothing listens there.
    pub fn connect(host: &str, port: u16) -> Result<Self, VpcdError> {
        let wrong = |why| VpcdError::NoReader { host: host.to_owned(), port, why };
        let stream = dial(host, port).map_err(wrong)?;
        stream.set_nodelay(true).map_err(VpcdError::Broken)?;
        Ok(Self::through(stream))
    }

    /// Something that ends [`VpcdReader::serve`].
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn stopper(&self) -> Result<Stopper, VpcdError> {
        let stream = self.stream.try_clone().map_err(VpcdError::Broken)?;
        Ok(Stopper { stream, stop: Arc::clone(&self.stop) })
    }
}

impl<S: ReaderStream> VpcdReader<S> {
    /// Speaks through a stream that is open already.
    pub fn through(stream: S) -> Self {
        Self { stream, acknowledge: Acknowledge::default(), stop: Arc::default() }
    }

    /// Acknowledges in this way from now on.
    #[must_use]
    pub fn acknowledging(self, acknowledge: Acknowledge) -> Self {
        self.stream.acknowledge(acknowledge);
        Self { acknowledge, ..self }
    }

    /// Is the card, until it is taken out or the reader goes away. `inserted` is called once, when
    /// the reader has noticed the card.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn serve(
        &mut self,
        card: &mut VirtualCard,
        inserted: impl FnOnce(),
    ) -> Result<Served, VpcdError> {
        let mut inserted = Some(inserted);
        let mut served =
            Served { ended: ConnectionEnd::Stopped, commands: 0, late: 0, latest: Nanos::ZERO };
        let mut message = Vec::with_capacity(300);
        // When the card is through with its reset.
        let mut ready = Instant::now();
        while self.receive(&mut message)? {
            let arrival = Instant::now();
            if let Some(inserted) = inserted.take() {
                inserted();
            }
            match *message {
                [] => {}
                [POWER_OFF] => card.reset(),
                [POWER_ON | RESET] => {
                    card.reset();
                    ready = arrival + Duration::from(card.power_on());
                }
                [SEND_ATR] => {
                    self.wait_until(ready);
                    self.send(card.atr())?;
                }
                // vpcd has no other control; one that a later driver has needs no answer.
                [_] => {}
                ref command => match card.transmit(command) {
                    Ok(answer) => {
                        let modelled = Duration::from(answer.modelled);
                        let due = arrival.max(ready) + modelled.saturating_sub(ON_THE_WAY);
                        if answer.modelled > Nanos::ZERO {
                            served.note(due);
                        }
                        self.wait_until(due);
                        self.send(&answer.response)?;
                        served.commands += 1;
                    }
                    Err(gone) => {
                        self.leave(gone, arrival);
                        served.ended = if self.stopped() {
                            ConnectionEnd::Stopped
                        } else {
                            ConnectionEnd::Fault(gone)
                        };
                        return Ok(served);
                    }
                },
            }
        }
        card.reset();
        served.ended =
            if self.stopped() { ConnectionEnd::Stopped } else { ConnectionEnd::ReaderGone };
        Ok(served)
    }

    /// Waits as the fault says, then closes the connection: the reader sees the card pulled out.
    fn leave(&self, gone: Gone, arrival: Instant) {
        let (Gone::Mute { closes_after: wait } | Gone::Removed { after: wait }) = gone;
        self.wait_until(arrival + Duration::from(wait));
        self.stream.close();
    }

    /// The next message; false when the connection was closed.
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<bool, VpcdError> {
        let mut length = [0; 2];
        if !self.fill(&mut length)? {
            return Ok(false);
        }
        message.resize(usize::from(u16::from_be_bytes(length)), 0);
        self.fill(message)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, VpcdError> {
        let mut filled = 0;
        while filled < buffer.len() {
            // A connection acknowledges at once until its first answer, so delaying is said too.
            self.stream.acknowledge(self.acknowledge);
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Ok(false),
                Ok(bytes) => filled += bytes,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionReset => return Ok(false),
                    _ => return Err(VpcdError::Broken(error)),
                },
            }
        }
        Ok(true)
    }

    /// In one write: two would meet a delayed acknowledgement on the other side.
    fn send(&mut self, bytes: &[u8]) -> Result<(), VpcdError> {
        // A response has at most 65,536 bytes and a status word; vpcd's length has 16 bits.
        let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
        let mut message = Vec::with_capacity(2 + bytes.len());
        message.extend((bytes.len() as u16).to_be_bytes());
        message.extend(bytes);
        // After one delayed acknowledgement the kernel acknowledges quickly again (tcp(7)). The next
        // question may be there before this side reads.
        if self.acknowledge == Acknowledge::Delayed {
            self.stream.acknowledge(self.acknowledge);
        }
        match self.stream.write_all(&message) {
            // The next read finds the end of the connection.
            Err(error) if closed(&error) => Ok(()),
            done => done.map_err(VpcdError::Broken),
        }
    }

    /// Sleeps until shortly before, then looks at the clock: a wake-up comes 50 to 100 µs late.
    fn wait_until(&self, deadline: Instant) {
        while !self.stopped() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            match left.checked_sub(WAKE_UP_LATENESS) {
                Some(sleep) => thread::sleep(sleep.min(STOP_CHECK)),
                None => std::hint::spin_loop(),
            }
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

impl Served {
    /// An answer is ready; it was to leave then.
    fn note(&mut self, due: Instant) {
        let delay = Nanos::from(Instant::now().saturating_duration_since(due));
        if delay > Nanos::ZERO {
            self.late += 1;
            self.latest = self.latest.max(delay);
        }
    }
}

impl Stopper {
    /// Takes the card out.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

const POWER_OFF: u8 = 0;
const POWER_ON: u8 = 1;
const RESET: u8 = 2;
const SEND_ATR: u8 = 4;

/// Linux wakes a sleeper up to 50 µs late by its timer slack, and a little later by its scheduler.
const WAKE_UP_LATENESS: Duration = Duration::from_micros(100);
/// A long answer looks so often whether anybody still waits for it.
const STOP_CHECK: Duration = Duration::from_millis(50);

fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted
    )
}
