//! What the verbs for PC/SC and cards share: the controller, the record, and what is seen while they run.

use std::cell::RefCell;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;
use tapstone_card::controller::{CardController, CardObserver, CardOptions, CardProgress};
use tapstone_card::protocol::{Cards, Reader};
use tapstone_explain::tables;
use tapstone_explain::timeline::Timeline;
use tapstone_live::{Figures, LiveSocket};
use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record as record;
use tapstone_record::Record;
use tapstone_text::thousands;

use crate::command_line;
use crate::environment;
use crate::output::OutputArguments;
use crate::progress::{ProgressLine, Steps, whole_seconds};
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
    let readers = controller.and_then(|mut controller| {
        Ok(controller.look(Cards::None, &mut CardLine::new(true, None))?)
    });
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

/// What a person at a terminal sees while PC/SC, a card or a door is measured.
pub(crate) struct CardLine {
    line: ProgressLine,
    /// Where others are told.
    socket: Option<LiveSocket>,
    /// What is being done, before how much of it is.
    stage: RefCell<String>,
    /// How many operations there are to be, where that is known.
    wanted: Option<u64>,
    /// How long they may take together, where that is known.
    longest: Option<Duration>,
    /// When the first of several rounds began.
    begun: Option<Instant>,
}

impl CardLine {
    pub(crate) fn new(quiet: bool, socket: Option<LiveSocket>) -> Self {
        let line = ProgressLine::new(quiet);
        Self { line, socket, stage: RefCell::default(), wanted: None, longest: None, begun: None }
    }

    pub(crate) fn stage(&self, text: &str) {
        text.clone_into(&mut self.stage.borrow_mut());
        if let Some(socket) = &self.socket {
            socket.stage(text, "begins");
        }
        self.line.draw(None, text);
    }

    /// A round of so many begins, the first with 1.
    pub(crate) fn begin_round(&mut self, number: u64, of: u64) {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let steps = Steps { done: number.saturating_sub(1), of, begun };
        let text = format!("round {number} of {of}{}", steps.left());
        self.line.draw(Some(steps.share()), &text);
        self.tell(&format!("rounds, {of} in all"), steps.done, 0, begun.elapsed());
    }

    /// Whoever looks learns how many operations are done; latencies are in the record.
    fn tell(&self, case: &str, completed: u64, failed: u64, elapsed: Duration) {
        let Some(socket) = &self.socket else { return };
        let rate = completed as f64 / elapsed.as_secs_f64().max(1e-9);
        socket.figures(Figures {
            case: case.to_owned(),
            level: None,
            elapsed_ns: elapsed.into(),
            completed,
            failed,
            rate: PerSecond(rate),
            p50_ns: None,
            p99_ns: None,
            missed: 0,
        });
    }

    /// Writes the record, and then tells whoever looks on, who may take it slowly.
    pub(crate) fn put(self, record: &Record, output: &OutputArguments) -> anyhow::Result<()> {
        let put = output.put(record);
        if let Some(socket) = self.socket {
            socket.finish(record);
        }
        put
    }

    /// Until so many operations are done, or so long a time is over, as far as that is known.
    pub(crate) fn until(&mut self, operations: Option<u64>, longest: Option<Duration>) {
        self.wanted = operations;
        self.longest = longest;
    }

    pub(crate) fn say(&self, text: &str) {
        self.line.say(text);
    }

    pub(crate) fn end(&self) {
        self.line.end();
    }
}

impl CardObserver for CardLine {
    fn waiting(&mut self, text: &str) {
        self.say(text);
    }

    fn progress(&mut self, progress: CardProgress) {
        let done = thousands(progress.done);
        let stage = self.stage.borrow();
        let completed = progress.done - progress.failed;
        self.tell(&stage, completed, progress.failed, progress.elapsed);
        let Some(of) = self.wanted else {
            let elapsed = progress.elapsed;
            let share = self.longest.map(|all| elapsed.as_secs_f64() / all.as_secs_f64());
            let left = match self.longest {
                Some(all) => format!("at most {} left", whole_seconds(all.saturating_sub(elapsed))),
                None => whole_seconds(elapsed),
            };
            return self.line.draw(share, &format!("{stage}: {done} done, {left}"));
        };
        let begun = Instant::now().checked_sub(progress.elapsed).unwrap_or_else(Instant::now);
        let steps = Steps { done: progress.done, of, begun };
        let text = format!("{stage}: {done} of {}{}", thousands(of), steps.left());
        self.line.draw(Some(steps.share()), &text);
    }
}
