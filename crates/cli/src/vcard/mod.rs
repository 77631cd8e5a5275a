//! `tapstone vcard`: a virtual smart card in a real reader driver.

use std::path::PathBuf;
use std::thread;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tapstone_vcard::vpcd::{self, Ended, Reader};
use tapstone_vcard::{Card, Identity};

use crate::exit::Exit;

/// Be a smart card in a virtual reader of pcscd.
///
/// The card answers until Ctrl-C takes it out. It needs pcscd with the reader driver vpcd (Debian:
/// pcscd and vsmartcard-vpcd).
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// `piv`, `bench`, the name of a shipped profile, or a profile file
    #[arg(value_name = "PROFILE", required_unless_present = "list")]
    profile: Option<String>,
    /// List the shipped profiles
    #[arg(long)]
    list: bool,
    /// The folder of the PIV card's objects and keys
    #[arg(long, value_name = "FOLDER")]
    personality: Option<PathBuf>,
    /// Where the reader driver listens
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The port of the virtual reader
    #[arg(long, default_value_t = vpcd::DEFAULT_PORT)]
    port: u16,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut card = Card::new().with("identity", Box::new(Identity::plain()));
    let mut reader = Reader::connect(&arguments.host, arguments.port)?;
    stop_on_signals(&reader)?;
    let ended = reader.serve(&mut card, || eprintln!("the card is in the reader; Ctrl-C ends"))?;
    Ok(match ended {
        Ended::Stopped => Exit::Done,
        Ended::ReaderGone => {
            eprintln!(
                "error: the reader closed the connection: pcscd has ended\nhint: start pcscd, then this again"
            );
            Exit::NotMeasured
        }
    })
}

/// Ctrl-C takes the card out; a second one finds the default action again.
fn stop_on_signals(reader: &Reader) -> anyhow::Result<()> {
    let stopper = reader.stopper()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            stopper.stop();
        }
    });
    Ok(())
}
