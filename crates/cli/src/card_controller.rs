//! What the verbs for PC/SC and cards share: the controller, the record, and what is seen while they run.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use tapstone_card::controller::{CardController, CardObserver, CardOptions, CardProgress};
use tapstone_card::protocol::{Cards, Reader};
use tapstone_explain::tables;
use tapstone_explain::timeline::Timeline;
use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_record::Record;
use tapstone_text::{Foreign, thousands};

use crate::command_line;
use crate::environment;
use crate::print::say;
use crate::running_pcscd::running_pcscd;

/// a controller whose workers are this program again, without these environment variables: one may hold
/// the PIN.
pub(crate) fn open(
    timeout: Nanos,
    wait: Nanos,
    interrupt: Arc<AtomicBool>,
    hidden: Vec<OsString>,
) -> anyhow::Result<CardController> {
    let program = std::env::current_exe().context("cannot find the program's own file")?;
    let arguments = vec!["card-worker".to_owned()];
    let worker = tapstone_worker::WorkerCommand { program, arguments, hidden };
    Ok(CardController::new(CardOptions {
        worker,
        timeout: timeout.into(),
        wait: wait.into(),
        interrupt,
    }))
}

/// A record without results.
pub(crate) fn record(kind: record::TargetKind, reader: Option<&Reader>) -> Record {
    let tool =
        record::Tool { name: "tapstone".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let environment = environment::observe(Precision::measure(&Monotonic));
    let mut record = Record::new(tool, Timestamp::now(), environment, target(kind, reader));
    // No secret is ever an argument.
    record.command = command_line::words();
    record
}

fn target(kind: record::TargetKind, reader: Option<&Reader>) -> record::Target {
    let mut target = record::Target::new(kind);
    // Whether a command uses it is seen later.
    target.daemon = if kind == record::TargetKind::Command { None } else { running_pcscd() };
    let Some(reader) = reader else { return target };
    target.reader = Some(record::Reader {
        name: reader.name.clone(),
        driver_version: reader.driver_version.clone(),
    });
    target.card = reader.atr.as_ref().map(|atr| record::Card {
        atr: hex::encode_upper(atr),
        protocol: reader.protocol.clone(),
        name: None,
    });
    target.emulated = match &reader.emulated {
        Some(emulated) => Some(record::Emulated {
            profile: emulated.profile.clone(),
            sha256: emulated.sha256.clone(),
        }),
        None => {
            reader.name.starts_with(tapstone_names::pcsc::VIRTUAL_READER).then(unknown_virtual_card)
        }
    };
    target
}

/// Whether PC/SC has a reader with a card in it. No card is spoken to.
pub(crate) fn sees_a_card() -> bool {
    const TIMEOUT: Nanos = Nanos::from_secs(2);
    let controller = open(TIMEOUT, Nanos::ZERO, Arc::new(AtomicBool::new(false)), Vec::new());
    let readers = controller
        .and_then(|mut controller| Ok(controller.look(Cards::None, &mut CardLine::new(true))?));
    readers.is_ok_and(|readers| readers.iter().any(|reader| reader.card_present))
}

/// What is in a virtual reader and was not asked.
pub(crate) fn unknown_virtual_card() -> record::Emulated {
    record::Emulated {
        profile: "a virtual card that does not say what it plays".to_owned(),
        sha256: String::new(),
    }
}

/// Marks cases of a card that is none: for those who read cases without their record.
pub(crate) fn mark_emulated(record: &mut Record) {
    if record.target.emulated.is_some() {
        for case in &mut record.results {
            case.provenance = record::Provenance::Emulated;
        }
    }
}

/// What a traced program turned out to talk to.
pub(crate) fn note_cards(target: &mut record::Target, timeline: &Timeline) {
    if tables::uses_pcsc(timeline) {
        target.daemon = running_pcscd();
    }
    if tables::virtual_reader(timeline).is_some() {
        target.emulated = Some(unknown_virtual_card());
    }
}

/// One line that is rewritten on a terminal; in a pipe, nothing.
pub(crate) struct CardLine {
    bar: ProgressBar,
    /// What is being done, before how much of it is.
    stage: RefCell<String>,
}

impl CardLine {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        // A hidden one needs no thread, which there may be none for (`ulimit -u`).
        if shown {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Self { bar, stage: RefCell::default() }
    }

    pub(crate) fn stage(&self, text: &str) {
        text.clone_into(&mut self.stage.borrow_mut());
        self.bar.set_message(text.to_owned());
    }

    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| say!("{}", Foreign::with_lines(text)));
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl CardObserver for CardLine {
    fn waiting(&mut self, text: &str) {
        self.say(text);
    }

    fn progress(&mut self, progress: CardProgress) {
        let seconds = progress.elapsed.as_secs();
        let done = thousands(progress.completed);
        self.bar.set_message(format!("{} {done} done, {seconds} s", self.stage.borrow()));
    }
}
