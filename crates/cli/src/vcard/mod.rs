//! `tapstone vcard`: a virtual smart card in a real reader driver.

mod which;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use tapstone_measure::units::Nanos;
use tapstone_vcard::vpcd::{self, Acknowledge, ConnectionEnd, Served, Stopper, VpcdReader};
use tapstone_vcard::{Gone, VirtualCard, shipped};

use self::which::Which;
use crate::exit::Exit;
use crate::print::{out, outln, say};
use crate::values;

/// After so long without a word from the reader something is in the way: pcscd looks for cards
/// about twice a second.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Between two tries to reach a reader.
const PAUSE: Duration = Duration::from_millis(50);

/// Be a smart card in a virtual reader of pcscd.
///
/// The card answers until Ctrl-C takes it out. It needs pcscd with the reader driver vpcd (Debian:
/// pcscd and vsmartcard-vpcd). `piv` and `bench` answer as fast as they can; a profile answers as
/// late as the card that it describes. A PIV card that is made at first use has the PIN 123456 and
/// the PUK 12345678.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// `piv`, `bench`, the name of a shipped profile, or a profile file
    #[arg(value_name = "PROFILE", required_unless_present = "list_profiles")]
    profile: Option<String>,
    /// List the shipped profiles
    #[arg(long)]
    list_profiles: bool,
    /// Print the profile's file instead of being its card
    #[arg(long, conflicts_with = "list_profiles")]
    show: bool,
    /// The PIV card's objects and keys, a folder or a file; made when it is not there
    #[arg(long, alias = "personality", value_name = "FOLDER")]
    card_data: Option<PathBuf>,
    /// Where the reader driver listens
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The port of the virtual reader; Debian's second one is 35964
    #[arg(long, default_value_t = vpcd::DEFAULT_PORT)]
    port: u16,
    /// Wait so long for a reader that is not there yet, and again when pcscd has ended
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    wait: Option<Nanos>,
    /// Acknowledge what the driver sends as late as Linux does by itself: with vpcd 3.3 each
    /// command takes some 43 ms longer
    #[arg(long)]
    delayed_ack: bool,
}

const EXAMPLES: &str = "\
Examples:
  tapstone vcard piv
  tapstone vcard bench --port 35964
  tapstone vcard jcop41-v2.2 --show > my-card.toml
  tapstone vcard my-card.toml --card-data my-card

Exit codes: 0 taken out, 2 no reader, or no such card.";

pub(crate) fn run_vcard(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Some(name) = arguments.profile.as_deref().filter(|_| !arguments.list_profiles) else {
        list();
        return Ok(Exit::Done);
    };
    let which = Which::find(name)?;
    if arguments.show {
        out!("{}", which.text()?);
        return Ok(Exit::Done);
    }
    let stop = Stop::on_signals()?;
    // Before card data is made, which takes a while.
    let mut reader = arguments.reader(&stop)?;
    let mut card = which.card(arguments.card_data.as_deref())?;
    loop {
        stop.applies_to(&reader)?;
        let served = serve(arguments, &which, &mut reader, &mut card)?;
        if !matches!(served.ended, ConnectionEnd::ReaderGone) || arguments.wait.is_none() {
            return Ok(report(&served));
        }
        say!("pcscd has ended after {} commands; waiting for another", served.commands);
        match arguments.reader(&stop) {
            Ok(next) => reader = next,
            Err(_) if stop.is_asked() => return Ok(Exit::Done),
            Err(error) => return Err(error),
        }
    }
}

fn serve(
    arguments: &Arguments,
    which: &Which,
    reader: &mut VpcdReader,
    card: &mut VirtualCard,
) -> anyhow::Result<Served> {
    let taken = Arc::new(AtomicBool::new(false));
    say_when_nothing_happens(&taken, arguments.port);
    let served = reader.serve(card, || {
        taken.store(true, Ordering::Release);
        say!(
            "{} is in the reader at {}:{}; Ctrl-C takes it out",
            which.name(),
            arguments.host,
            arguments.port
        );
    })?;
    Ok(served)
}

impl Arguments {
    /// The reader, as soon as it listens.
    fn reader(&self, stop: &Stop) -> anyhow::Result<VpcdReader> {
        let until = Instant::now() + Duration::from(self.wait.unwrap_or(Nanos::ZERO));
        loop {
            match VpcdReader::connect(&self.host, self.port) {
                Err(_) if Instant::now() < until && !stop.is_asked() => thread::sleep(PAUSE),
                connected => return Ok(connected?.acknowledging(self.acknowledge())),
            }
        }
    }

    fn acknowledge(&self) -> Acknowledge {
        if self.delayed_ack { Acknowledge::Delayed } else { Acknowledge::AtOnce }
    }
}

fn list() {
    outln!("{:18} a PIV card that takes no time", "piv");
    outln!("{:18} the benchmark applet, taking no time", "bench");
    for shipped in shipped() {
        outln!("{:18} {}", shipped.name, shipped.profile().description);
    }
}

/// Ctrl-C takes the card out, or ends the wait for a reader.
#[derive(Clone, Default)]
struct Stop(Arc<(AtomicBool, Mutex<Option<Stopper>>)>);

impl Stop {
    fn on_signals() -> anyhow::Result<Self> {
        let stop = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
        thread::Builder::new().spawn({
            let stop = stop.clone();
            move || {
                for _ in signals.forever() {
                    stop.ask();
                }
            }
        })?;
        Ok(stop)
    }

    fn ask(&self) {
        let (asked, current) = &*self.0;
        asked.store(true, Ordering::Release);
        let current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stopper) = &*current {
            stopper.stop();
        }
    }

    fn is_asked(&self) -> bool {
        self.0.0.load(Ordering::Acquire)
    }

    fn applies_to(&self, reader: &VpcdReader) -> anyhow::Result<()> {
        let stopper = reader.stopper()?;
        *self.0.1.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopper);
        if self.is_asked() {
            self.ask();
        }
        Ok(())
    }
}

fn say_when_nothing_happens(taken: &Arc<AtomicBool>, port: u16) {
    let taken = Arc::clone(taken);
    // Without a thread for it, nobody is told.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(TIME_LIMIT);
        if !taken.load(Ordering::Acquire) {
            say!(
                "note: the reader at port {port} has not taken the card yet\n\
                 hint: another card may be in it: try the second reader with --port 35964"
            );
        }
    });
}

fn report(served: &Served) -> Exit {
    if served.late > 0 {
        say!(
            "warning: {} of {} answers came later than modelled, by up to {}\n\
             hint: computing them took longer than the profile says; on a machine with less to do, \
             or with a release build, it is faster",
            served.late,
            served.commands,
            served.latest
        );
    }
    match served.ended {
        ConnectionEnd::Stopped => {
            say!("the card is out of the reader after {} commands", served.commands);
            Exit::Done
        }
        ConnectionEnd::Fault(gone) => {
            let what = match gone {
                Gone::Mute { .. } => "was mute",
                Gone::Removed { .. } => "was pulled out",
            };
            let at = served.commands + 1;
            say!("the card {what} at command {at}, as its profile says");
            Exit::Done
        }
        ConnectionEnd::ReaderGone => {
            say!(
                "error: the reader closed the connection after {} commands: pcscd has ended\n\
                 hint: start pcscd, then this again",
                served.commands
            );
            Exit::NotMeasured
        }
    }
}
