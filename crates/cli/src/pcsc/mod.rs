//! `tapstone pcsc`: the calls of PC/SC, one by one.

mod arguments;

use std::time::Duration;

use anyhow::bail;
use tapstone_card::controller::{
    CardController, CardMeasureError, CardStop, CaseDescription, case_results,
};
use tapstone_card::pcsc::PcscOperation;
use tapstone_card::protocol::{Cards, Fault, Job, JobWork, Reader};
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::PcscCode;
use tapstone_record as record;
use tapstone_text::Foreign;

pub(crate) use self::arguments::Arguments;
use crate::card_controller::{self, CardLine};
use crate::exit::Exit;
use crate::interrupt;
use crate::machine_load::LoadWatch;
use crate::print::{outln, say};

pub(crate) fn run_pcsc(arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.list_operations {
        for operation in PcscOperation::ALL {
            outln!("{:20}  {}", operation.name(), operation.description());
        }
        return Ok(Exit::Done);
    }
    let operations = operations(arguments)?;
    arguments.output.check()?;
    let mut controller = card_controller::open(
        arguments.timeout,
        arguments.wait,
        interrupt::flag_on_signals()?,
        Vec::new(),
    )?;
    let mut live = CardLine::new(arguments.output.quiet, arguments.live.bind()?);
    if arguments.list_readers {
        return list(&mut controller, &mut live);
    }
    let reader = reader(&mut controller, arguments, &operations, &mut live)?;
    if !arguments.op.is_empty() && operations.iter().any(|operation| operation.resets()) {
        say!("the card is reset again and again: other programs lose what they verified");
    }
    let mut record = card_controller::record(record::TargetKind::Pcsc, reader.as_ref());
    let machine = LoadWatch::start();
    let mut exit = Exit::Done;
    let count = operations.len();
    for (number, operation) in (1..).zip(operations) {
        let place = if count > 1 { format!("[{number}/{count}] ") } else { String::new() };
        live.stage(&format!("{place}{}", operation.name()));
        let (case, ended) =
            measure(&mut controller, arguments, operation, reader.as_ref(), &mut live);
        // What the driver lacks is an answer, unless it was asked for by name.
        let answered =
            case.status.outcome == record::Outcome::Unsupported && arguments.op.is_empty();
        if case.status.outcome != record::Outcome::Ok && !answered {
            exit = Exit::NotMeasured;
        }
        let interrupted = case.stopped_by == Some(record::StoppedBy::Interrupted);
        record.results.push(case);
        if ended {
            if interrupted {
                record
                    .warnings
                    .push("the run was interrupted: later calls were not measured".into());
            }
            exit = Exit::NotMeasured;
            break;
        }
    }
    live.end();
    machine.add_to(&mut record.environment.load);
    card_controller::mark_emulated(&mut record);
    live.put(&record, &arguments.output)?;
    Ok(exit)
}

/// The operations named; without any, all that disturb nobody.
fn operations(arguments: &Arguments) -> anyhow::Result<Vec<PcscOperation>> {
    if arguments.op.is_empty() {
        let harmless = PcscOperation::ALL.iter().copied().filter(|operation| {
            !operation.resets() && (arguments.processes == 1 || operation.can_contend())
        });
        return Ok(harmless.collect());
    }
    let named = arguments.op.iter().map(|name| match PcscOperation::from_name(name) {
        Some(operation) if arguments.processes > 1 && !operation.can_contend() => {
            bail!("{name} is for one process at a time\nhint: leave --processes out")
        }
        Some(operation) => Ok(operation),
        None => {
            bail!("no operation \"{name}\"\nhint: --list-operations shows those that there are")
        }
    });
    named.collect()
}

fn list(controller: &mut CardController, live: &mut CardLine) -> anyhow::Result<Exit> {
    let readers = controller.look(Cards::All, live)?;
    if readers.is_empty() {
        return Err(CardMeasureError::NoReader.into());
    }
    for reader in readers {
        outln!("{}", Foreign::new(&reader.name));
        let card = match (&reader.atr, reader.exclusive, reader.card_present) {
            (Some(atr), ..) => {
                let protocol = reader.protocol.as_deref().unwrap_or("no protocol");
                format!("a card, {protocol}, ATR {}", hex::encode_upper(atr))
            }
            (None, true, _) => "another program has it for itself".to_owned(),
            (None, false, true) => "a card that does not answer".to_owned(),
            (None, false, false) => "no card".to_owned(),
        };
        outln!("    {card}");
        if let Some(emulated) = &reader.emulated {
            outln!("    a virtual card, profile {}", Foreign::new(&emulated.profile));
        }
    }
    Ok(Exit::Done)
}

/// The reader, if any of the operations needs one.
fn reader(
    controller: &mut CardController,
    arguments: &Arguments,
    operations: &[PcscOperation],
    live: &mut CardLine,
) -> anyhow::Result<Option<Reader>> {
    let any = |of: fn(PcscOperation) -> bool| operations.iter().any(|operation| of(*operation));
    if !any(PcscOperation::needs_reader) && arguments.reader.is_none() {
        // No service at all is better told before the first case.
        controller.look(Cards::None, live)?;
        return Ok(None);
    }
    let name = arguments.reader.as_deref();
    Ok(Some(controller.choose(name, any(PcscOperation::needs_card), live)?))
}

/// One case, and whether it was the last.
fn measure(
    controller: &mut CardController,
    arguments: &Arguments,
    operation: PcscOperation,
    reader: Option<&Reader>,
    live: &mut CardLine,
) -> (record::CaseResult, bool) {
    let plan = CaseDescription {
        operation: format!("pcsc.{}", operation.name()),
        has_rate: operation.is_bare(),
        ..CaseDescription::default()
    };
    let stop = match (arguments.count, arguments.seconds) {
        (Some(_), _) => CardStop::Count,
        (None, Some(seconds)) => CardStop::Time(seconds.into()),
        (None, None) => CardStop::Precision {
            relative: arguments.precision,
            longest: Duration::from(arguments.max_time),
        },
    };
    let job = Job {
        reader: reader.map(|reader| reader.name.clone()).unwrap_or_default(),
        work: JobWork::Pcsc { operation, hold: arguments.hold.into() },
        warm_up: match arguments.count {
            Some(_) => Nanos::ZERO,
            None => arguments.warm_up,
        },
        count: arguments.count,
        wait: arguments.wait.into(),
    };
    let wanted = arguments.count.map(|count| count * u64::from(arguments.processes));
    live.until(wanted, Some(arguments.seconds.unwrap_or(arguments.max_time).into()));
    let jobs = vec![job; arguments.processes as usize];
    let ran = match controller.measure(&jobs, stop, live) {
        Ok(ran) => ran,
        Err(error) => return unmeasured(arguments, operation, &plan, &error, live),
    };
    let mut case = case_results(&ran, std::slice::from_ref(&plan), stop).remove(0);
    let gave_up = ran.done.iter().flatten().find_map(|done| done.gave_up.clone());
    if let (Some(fault), 0) = (&gave_up, case.completed) {
        return unmeasured(
            arguments,
            operation,
            &plan,
            &CardMeasureError::Fault(fault.clone()),
            live,
        );
    }
    let lost = ran.lost.clone().map(CardMeasureError::Lost);
    for trouble in gave_up.map(CardMeasureError::Fault).into_iter().chain(lost) {
        live.say(&format!("error: {}: {trouble}", plan.operation));
    }
    case.concurrency.processes = arguments.processes;
    (case, ran.interrupted || ran.lost.is_some())
}

/// A case without figures, and whether there is no point in another.
fn unmeasured(
    arguments: &Arguments,
    operation: PcscOperation,
    plan: &CaseDescription,
    error: &CardMeasureError,
    live: &CardLine,
) -> (record::CaseResult, bool) {
    let lacking = operation == PcscOperation::Control && is_lacking(error);
    if !lacking || !arguments.op.is_empty() {
        live.say(&format!("error: {}: {error}", plan.operation));
    }
    let (step, code) = match error {
        CardMeasureError::Pcsc(failure) => (failure.call.to_string(), failure.code.to_string()),
        CardMeasureError::Fault(fault) => (fault.step(), fault.code()),
        CardMeasureError::Lost(lost) => (operation.name().to_owned(), lost.code().to_owned()),
        _ => (operation.name().to_owned(), "failed".to_owned()),
    };
    let outcome = if lacking { record::Outcome::Unsupported } else { record::Outcome::Failed };
    let status = record::Status::at(outcome, step, code);
    let concurrency =
        record::Concurrency { processes: arguments.processes, ..record::Concurrency::ONE };
    let name = plan.operation.as_str();
    let case = record::CaseResult::new(name, status, concurrency, record::Load::CLOSED);
    (case, matches!(error, CardMeasureError::Lost(_) | CardMeasureError::Interrupted))
}

/// A driver without IFDHControl says so by one of several codes.
fn is_lacking(error: &CardMeasureError) -> bool {
    let code = match error {
        CardMeasureError::Pcsc(failure) | CardMeasureError::Fault(Fault::Call { failure, .. }) => {
            failure.code
        }
        _ => return false,
    };
    matches!(
        code,
        PcscCode::UNSUPPORTED_FEATURE
            | PcscCode::NOT_TRANSACTED
            | PcscCode::INVALID_PARAMETER
            | PcscCode::INVALID_VALUE
            | PcscCode::UNEXPECTED
    )
}
