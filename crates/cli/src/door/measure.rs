//! `tapstone door measure`: the real dialogue with a real card.

mod arguments;
mod model;

use std::path::PathBuf;

use anyhow::Context;
use tapstone_door_measure::files::{RevocationFiles, SortedCertificates, TrustFiles};
use tapstone_door_measure::{Decision, DoorController, DoorObserver, DoorPlan, DoorSetup};
use tapstone_measure::units::Nanos;
use tapstone_piv::{AuthenticationMechanism, RevocationRule, Time};
use tapstone_record as record;
use tapstone_text::Foreign;
use tapstone_worker::WorkerCommand;

pub(crate) use self::arguments::Arguments;
use crate::card_controller::{self, CardLine};
use crate::exit::Exit;
use crate::machine_load::LoadWatch;
use crate::print::say;
use crate::{interrupt, token};

pub(crate) fn run_door_measure(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let mechanisms = arguments.mechanisms()?;
    let model = arguments.model.open()?;
    let (trust_files, left_out) = trust_files(arguments)?;
    let rule = trust_files.rule;
    let pin = token::read_pin(&arguments.pin)?;
    let needs_pin = mechanisms.iter().any(|mechanism| mechanism.needs_pin());
    anyhow::ensure!(
        pin.is_some() || !needs_pin,
        "this mechanism gives the PIN to the card, and there is none\nhint: --pin-file, --pin-env, \
         --pin-fd or --pin-prompt says where it is"
    );
    if mechanisms.contains(&AuthenticationMechanism::Contact) {
        say!("the card is unpowered again and again: other programs lose what they verified");
    }
    let interrupt = interrupt::flag_on_signals()?;
    let hidden: Vec<_> = arguments.pin.pin_env.iter().map(Into::into).collect();
    let mut cards = card_controller::open(
        arguments.timeout,
        arguments.wait,
        interrupt.clone(),
        hidden.clone(),
    )?;
    let mut live = CardLine::new(arguments.output.quiet, arguments.live.bind()?);
    let reader = cards.choose(arguments.reader.as_deref(), true, &mut live)?;
    drop(cards);
    let setup = DoorSetup {
        reader: reader.name.clone(),
        trust: trust_files,
        policy: arguments.policy.clone(),
        age_limit: arguments.age_limit,
        module_time: arguments.module_time,
        // Mechanisms without a PIN never have it in their process.
        pin: pin.filter(|_| needs_pin),
        wait: arguments.wait,
    };
    let mut record = card_controller::record(record::TargetKind::Door, Some(&reader));
    let machine = LoadWatch::start();
    let program = std::env::current_exe().context("cannot find the program's own file")?;
    let words = vec!["door".to_owned(), "worker".to_owned()];
    let command = WorkerCommand { program, arguments: words, hidden };
    let mut controller =
        DoorController::new(setup, command, arguments.timeout, arguments.wait, interrupt);
    let at = arguments.at.map(|at| Time(at.as_second().max(0) as u64));
    let plan = DoorPlan { mechanisms, rounds: arguments.rounds, seed: arguments.seed, at };
    let run = controller.measure(&plan, &mut live);
    live.end();
    let run = run?;
    machine.add_to(&mut record.environment.load);
    let decided = tapstone_door_measure::fill_record(&mut record, &run);
    if let Some(model) = &model {
        record.model_predictions = model.predictions(&record, &run.mechanisms);
    }
    for line in &decided.lines {
        say!("{line}");
    }
    record.warnings.extend(left_out);
    if rule == RevocationRule::Off {
        record.warnings.push(
            "revocation was not checked: --crl names CRLs, and --ocsp-live asks responders"
                .to_owned(),
        );
    }
    if arguments.module_time > Nanos::ZERO {
        record.warnings.push(format!(
            "path validation takes {} here: the time of another module, replayed on this machine",
            arguments.module_time
        ));
    }
    card_controller::mark_emulated(&mut record);
    live.put(&record, &arguments.output)?;
    Ok(match decided.worst {
        Decision::Granted => Exit::Done,
        Decision::Refused => Exit::Missed,
        Decision::None => Exit::NotMeasured,
    })
}

/// What is believed, read and tried before any card is touched; and a sentence for each file that
/// says nothing.
fn trust_files(arguments: &Arguments) -> anyhow::Result<(TrustFiles, Vec<String>)> {
    let mut sorted = SortedCertificates::default();
    sorted.add_mixed(&arguments.trust)?;
    sorted.add_anchors(&arguments.anchors)?;
    sorted.add_intermediates(&arguments.intermediates)?;
    let index_folder = arguments.crl_index.clone().or_else(usual_index_folder);
    let revocation = RevocationFiles::read(&arguments.crl, &arguments.ocsp, index_folder)?;
    let rule = arguments.revocation_rule()?;
    let SortedCertificates { anchors, intermediates, mut notes } = sorted;
    let files = TrustFiles {
        anchors,
        intermediates,
        revocation,
        rule,
        ocsp: arguments.ocsp_choice(),
        fetch_issuers: arguments.aia.then_some(arguments.aia_timeout),
    };
    notes.extend(files.trust()?.notes);
    for note in &notes {
        say!("warning: {}", Foreign::new(note.clone()));
    }
    Ok((files, notes))
}

/// Where programs of the user keep what they can make again.
fn usual_index_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    let caches = named("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| named("HOME").map(|home| PathBuf::from(home).join(".cache")));
    caches.map(|caches| caches.join("tapstone").join("crl-index"))
}

impl DoorObserver for CardLine {
    fn round(&mut self, number: u64, rounds: u64) {
        self.begin_round(number, rounds);
    }

    fn notice(&mut self, text: &str) {
        self.say(text);
    }
}
