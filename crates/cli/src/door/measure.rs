//! `tapstone door measure`: the real dialogue with a real card.

mod arguments;
mod files;
mod lab;
mod model;
mod protocol;
mod rows;
mod worker;

use tapstone_measure::units::Nanos;
use tapstone_piv::{AuthenticationMechanism as Mechanism, Strategy, Time};
use tapstone_record as record;

pub(crate) use self::arguments::Arguments;
use self::lab::DoorLab;
use self::protocol::{Ran, Setup};
use self::rows::{Round, Run};
pub(crate) use self::worker::serve;
use crate::card_lab::{self, Live};
use crate::exit::Exit;
use crate::machine_load::Watch;
use crate::{interrupt, token};

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let mechanisms = arguments.mechanisms()?;
    let certificates = files::certificates(&arguments.trust)?;
    let crls = files::crls(&arguments.crl)?;
    // Here too, so that what is wrong with them is said before any card is touched.
    let trust = files::trust(&certificates, crls.as_deref())?;
    for issuer in trust.unused_crls() {
        eprintln!("warning: no certificate in --trust signed the CRL of {issuer}: it says nothing");
    }
    let pin = token::read_pin(&arguments.pin)?;
    let needs_pin = mechanisms.iter().any(|mechanism| mechanism.needs_pin());
    anyhow::ensure!(
        pin.is_some() || !needs_pin,
        "this mechanism gives the PIN to the card, and there is none\nhint: --pin-file, --pin-env, \
         --pin-fd or --pin-prompt says where it is"
    );
    if mechanisms.contains(&Mechanism::Contact) {
        eprintln!("the card is unpowered again and again: other programs lose what they verified");
    }
    let interrupt = interrupt::flag_on_signals()?;
    let hidden: Vec<_> = arguments.pin.pin_env.iter().map(Into::into).collect();
    let mut cards =
        card_lab::open(arguments.timeout, arguments.wait, interrupt.clone(), hidden.clone())?;
    let mut live = Live::new(arguments.output.quiet);
    let reader = cards.choose(arguments.reader.as_deref(), true, &mut live)?;
    drop(cards);
    let setup = Setup {
        reader: reader.name.clone(),
        certificates,
        crls,
        policy: arguments.policy.map(|policy| policy.to_string()),
        age_limit: arguments.age_limit,
        module_time: arguments.module_time,
        // Mechanisms without a PIN never have it in their process.
        pin: pin.filter(|_| needs_pin),
        wait: arguments.wait,
    };
    let mut record = card_lab::record(record::TargetKind::Door, Some(&reader));
    let machine = Watch::start();
    let mut lab = DoorLab::new(setup, arguments.timeout, arguments.wait, interrupt, hidden)?;
    let run = measure(&mut lab, arguments, &mechanisms, &mut live);
    live.end();
    let run = run?;
    machine.add_to(&mut record.environment.load);
    let exit = rows::fill(&mut record, &run);
    if !trust.checks_revocation() {
        record.warnings.push("revocation was not checked: --crl names the CRLs".to_owned());
    }
    if arguments.module_time > Nanos::ZERO {
        record.warnings.push(format!(
            "path validation takes {} here: the time of another module, replayed on this machine",
            arguments.module_time
        ));
    }
    card_lab::mark_emulated(&mut record);
    arguments.output.put(&record)?;
    Ok(exit)
}

/// All rounds, the ways taking turns: A B C, then C B A.
fn measure(
    lab: &mut DoorLab,
    arguments: &Arguments,
    mechanisms: &[Mechanism],
    live: &mut Live,
) -> anyhow::Result<Run> {
    let mut run = Run { mechanisms: mechanisms.to_vec(), rounds: Vec::new(), interrupted: false };
    for number in 0..arguments.rounds {
        live.stage(&format!("round {} of {}", number + 1, arguments.rounds));
        let mut round: Vec<Option<Ran>> = vec![None; mechanisms.len()];
        let forwards = number % 2 == 0;
        for turn in 0..mechanisms.len() {
            let place = if forwards { turn } else { mechanisms.len() - 1 - turn };
            let at = arguments.at.map(|at| Time(at.as_second().max(0) as u64));
            match lab.run(mechanisms[place], at, live)? {
                Some(ran) => round[place] = Some(ran),
                None => run.interrupted = true,
            }
            if run.interrupted {
                break;
            }
        }
        let gone = round.iter().flatten().any(|ran| ran.gave_up);
        run.rounds.push(Round(round));
        if run.interrupted || gone {
            break;
        }
    }
    Ok(run)
}

/// What rows are called.
fn row_name(mechanism: Mechanism) -> String {
    match mechanism {
        Mechanism::PkiCak(Strategy::Plain) => "door.pki-cak".to_owned(),
        Mechanism::PkiCak(strategy) => format!("door.pki-cak [{strategy}]"),
        Mechanism::Chuid => "door.chuid".to_owned(),
        Mechanism::PkiAuth => "door.pki-auth".to_owned(),
        Mechanism::Contact => "door.contact".to_owned(),
    }
}
