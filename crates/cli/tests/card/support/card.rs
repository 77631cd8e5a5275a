//! A `tapstone vcard` in one of the two virtual readers.

use std::ffi::OsStr;
use std::fs::File;
use std::marker::PhantomData;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tapstone_card::scard::{Pcsc, ReaderStateBits, reader_name};
use tapstone_testing::{eventually, private_environment};
use tapstone_worker::Board;
use tempfile::NamedTempFile;

use super::pcscd::{NoPcscd, Pcscd};

/// A card makes RSA keys before it goes into the reader.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A reader of Debian's vsmartcard-vpcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    First,
    Second,
}

impl Slot {
    /// Its name in PC/SC.
    pub(crate) const fn reader(self) -> &'static str {
        match self {
            Self::First => "Virtual PCD 00 00",
            Self::Second => "Virtual PCD 00 01",
        }
    }

    /// Where its driver waits for a card.
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::First => 35_963,
            Self::Second => 35_964,
        }
    }
}

/// Whether there is a card in a reader. The card itself is not asked: that would wait for whoever
/// measures it.
pub(crate) fn has_card(slot: Slot) -> bool {
    let board = Board::create().unwrap();
    let look = || {
        let context = Pcsc::open(board.cell(0)).unwrap().establish()?;
        context.status_change(&reader_name(slot.reader()), ReaderStateBits::UNAWARE)
    };
    // Right after its start pcscd may not know its readers yet.
    look().is_ok_and(|look| look.card_present)
}

/// Waits until a reader is empty; says whether it came to be.
pub(crate) fn empty(slot: Slot) -> bool {
    eventually(TIME_LIMIT, || !has_card(slot))
}

/// A card that waits for a pcscd to come, for as long as this lives.
pub(crate) struct Waiting(Child);

impl Waiting {
    pub(crate) fn start<A: AsRef<OsStr>>(_: &NoPcscd, arguments: &[A]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.arg("vcard").args(arguments).args(["--wait", "120s"]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// In a reader for as long as this lives, or until it is pulled.
pub(crate) struct Card<'a> {
    process: Child,
    slot: Slot,
    _pcscd: PhantomData<&'a Pcscd>,
}

impl<'a> Card<'a> {
    /// Returns when PC/SC has the card.
    pub(crate) fn insert<A: AsRef<OsStr>>(_: &'a Pcscd, slot: Slot, arguments: &[A]) -> Self {
        assert!(empty(slot), "{} has a card already", slot.reader());
        let said = NamedTempFile::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.arg("vcard").args(arguments).args(["--port", &slot.port().to_string()]);
        command.stdin(Stdio::null()).stderr(File::create(said.path()).unwrap());
        let mut card = Self { process: command.spawn().unwrap(), slot, _pcscd: PhantomData };
        let there = eventually(TIME_LIMIT, || {
            let ended = card.process.try_wait().unwrap();
            assert!(ended.is_none(), "{command:?}: {}", read(said.path()));
            has_card(slot)
        });
        assert!(there, "{command:?}: {}", read(said.path()));
        card
    }

    /// The benchmark applet, as fast as it can be.
    pub(crate) fn bench(pcscd: &'a Pcscd) -> Self {
        Self::insert(pcscd, Slot::First, &["bench"])
    }

    /// Pulls the card out of the reader by ending the process that is it.
    pub(crate) fn pull(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        self.process.wait().unwrap();
    }
}

impl Drop for Card<'_> {
    fn drop(&mut self) {
        self.pull();
        // So that the next card finds an empty reader. A test that fails has said enough.
        let _ = empty(self.slot);
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
