//! What is started for the demonstration, and stopped again: pcscd, and cards in its virtual
//! reader.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tapstone_card::protocol::{Cards, Reader};
use tapstone_measure::units::Nanos;

use super::Skipped;
use super::run::{DemoRun, has_program, own_program};
use crate::card_controller::{self, CardLine};

/// The first reader of vpcd.
pub(super) const READER: &str = "Virtual PCD 00 00";

/// A service and a card that come up at all do so in this time. Keys of a card are made first.
const TIME_LIMIT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(100);

/// A process of ours, ended with a signal.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// pcscd: somebody's, or ours, which is started when it is first needed.
pub(super) struct Pcscd<'a> {
    scratch: &'a Path,
    started: RefCell<Option<Owned>>,
}

/// A virtual card in the reader, until this is dropped.
pub(super) struct DemoCard {
    process: Owned,
}

impl<'a> Pcscd<'a> {
    pub(super) const fn new(scratch: &'a Path) -> Self {
        Self { scratch, started: RefCell::new(None) }
    }

    /// A card of this profile; a PIV card's keys and objects are kept in `card_data`.
    pub(super) fn insert(
        &self,
        run: &DemoRun,
        profile: &str,
        card_data: Option<&Path>,
    ) -> anyhow::Result<DemoCard> {
        self.start(run)?;
        let log = self.scratch.join("vcard.log");
        let mut command = Command::new(own_program()?);
        command.args(["vcard", profile]).stdin(Stdio::null()).stdout(Stdio::null());
        card_data.into_iter().for_each(|folder| {
            command.arg("--card-data").arg(folder);
        });
        let child = command.stderr(File::create(&log)?).spawn().context("tapstone vcard")?;
        let mut card = DemoCard { process: Owned(child) };
        let until = Instant::now() + TIME_LIMIT;
        while Instant::now() < until {
            run.check()?;
            if reader().is_some_and(|reader| reader.emulated.is_some()) {
                return Ok(card);
            }
            if card.process.0.try_wait()?.is_some() {
                break;
            }
            thread::sleep(PAUSE);
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        anyhow::bail!("the virtual card {profile} did not get into {READER}: {}", said.trim())
    }

    /// One that runs already is used and left alone.
    fn start(&self, run: &DemoRun) -> anyhow::Result<()> {
        if let Some(reader) = reader() {
            // A card that was just taken out stays for a moment.
            let until = Instant::now() + Duration::from_secs(5);
            let mut reader = Some(reader);
            while reader.as_ref().is_some_and(|reader| reader.card_present)
                && Instant::now() < until
            {
                thread::sleep(PAUSE);
                reader = self::reader();
            }
            return match reader {
                Some(reader) if reader.card_present => {
                    Err(Skipped(format!("there is somebody's card in {READER}")).into())
                }
                _ => Ok(()),
            };
        }
        let missing =
            |what: &str| Err(Skipped(format!("{what} (Debian: pcscd and vsmartcard-vpcd)")).into());
        if !has_program("pcscd") {
            return missing("there is no pcscd");
        }
        if !geteuid().is_root() {
            return missing("no pcscd runs here, and starting it takes root");
        }
        let log = File::create(self.scratch.join("pcscd.log"))?;
        let program = ["/usr/sbin/pcscd", "/usr/bin/pcscd"].map(PathBuf::from);
        let program = program.into_iter().find(|path| path.is_file());
        let mut command = Command::new(program.unwrap_or_else(|| "pcscd".into()));
        command.arg("--foreground").stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        *self.started.borrow_mut() = Some(Owned(command.spawn().context("pcscd")?));
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            run.check()?;
            if reader().is_some() {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        self.started.borrow_mut().take();
        missing("pcscd has no virtual reader")
    }
}

/// The virtual reader, as pcscd shows it now.
fn reader() -> Option<Reader> {
    const TIMEOUT: Nanos = Nanos::from_secs(2);
    let idle = Arc::new(AtomicBool::new(false));
    let mut controller = card_controller::open(TIMEOUT, Nanos::ZERO, idle, Vec::new()).ok()?;
    let readers = controller.look(Cards::All, &mut CardLine::new(true, None)).ok()?;
    readers.into_iter().find(|reader| reader.name == READER)
}
