//! `tapstone card`: what a smart card costs, command by command.

mod arguments;

use tapstone_card::controller::{
    CardController, CardMeasureError, CardRun, CardStop, apdus, case_results, costs,
};
use tapstone_card::protocol::{Job, JobWork, Reader};
use tapstone_card::suite::file::{SHIPPED, SuiteFile, SuiteText};
use tapstone_card::suite::job::Secret;
use tapstone_card::suite::plan::{Plan, Wishes};
use tapstone_card::suite::verify::verify;
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_text::Foreign;

pub(crate) use self::arguments::Arguments;
use crate::card_controller::{self, CardLine};
use crate::exit::Exit;
use crate::machine_load::LoadWatch;
use crate::print::{outln, say};
use crate::{interrupt, token};

pub(crate) fn run_card(arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.list_suites {
        list_suites();
        return Ok(Exit::Done);
    }
    let source = SuiteText::find(&arguments.suite)?;
    let suite = source.parse()?;
    if arguments.list_operations {
        list_operations(&arguments.suite, &suite);
        return Ok(Exit::Done);
    }
    arguments.output.check()?;
    let plan = Plan::from_suite(&source, &suite, &wishes(arguments)?)?;
    for (test, why) in &plan.left_out {
        say!("{test} is left out: it {why}");
    }
    if plan.cases.is_empty() {
        anyhow::bail!("no test is left to run\nhint: the lines above say what each of them needs");
    }
    let interrupt = interrupt::flag_on_signals()?;
    let hidden = arguments.pin.pin_env.iter().map(Into::into).collect();
    let mut controller =
        card_controller::open(arguments.timeout, arguments.wait, interrupt, hidden)?;
    let mut live = CardLine::new(arguments.output.quiet, arguments.live.bind()?);
    live.stage(&arguments.suite);
    let reader = controller.choose(arguments.reader.as_deref(), true, &mut live)?;
    announce(&plan, &reader);
    measure(&mut controller, arguments, &plan, &reader, live)
}

fn list_suites() {
    for (name, text) in SHIPPED {
        let source = SuiteText { name: (*name).to_owned(), text: (*text).to_owned() };
        let title = source.parse().map(|suite| suite.title).unwrap_or_default();
        outln!("{name:12}  {title}");
    }
}

fn list_operations(name: &str, suite: &SuiteFile) {
    outln!("{name}: {}", suite.title);
    for test in &suite.test {
        outln!("  {:36}  {}", test.name.get_ref(), test.title);
    }
}

fn wishes(arguments: &Arguments) -> anyhow::Result<Wishes> {
    let pin = token::read_pin(&arguments.pin)?;
    Ok(Wishes {
        tests: arguments.op.clone(),
        pin: pin.map(|pin| Secret::padded(pin.expose(), 0)),
        allow_writes: arguments.allow_writes,
        rounds: arguments.rounds,
        seed: arguments.seed,
    })
}

/// What will change, before it does.
fn announce(plan: &Plan, reader: &Reader) {
    if plan.job.lanes.iter().any(|lane| lane.cold) {
        say!("the card is unpowered again and again: other programs lose what they verified");
    }
    if plan.changes.is_empty() {
        return;
    }
    say!("this will change on the card in {}:", Foreign::new(&reader.name));
    for change in &plan.changes {
        say!("  - {}", Foreign::new(change));
    }
}

fn measure(
    controller: &mut CardController,
    arguments: &Arguments,
    plan: &Plan,
    reader: &Reader,
    mut live: CardLine,
) -> anyhow::Result<Exit> {
    let mut record = card_controller::record(record::TargetKind::Card, Some(reader));
    let machine = LoadWatch::start();
    let job = Job {
        reader: reader.name.clone(),
        work: JobWork::Suite(Box::new(plan.job.clone())),
        warm_up: Nanos::ZERO,
        count: Some(arguments.rounds),
        wait: arguments.wait.into(),
    };
    live.until(Some(arguments.rounds.saturating_mul(plan.cases.len() as u64)), None);
    let ran = controller.measure(&[job], CardStop::Count, &mut live);
    live.end();
    let ran = ran?;
    machine.add_to(&mut record.environment.load);
    let exit = fill(&mut record, &ran, plan, arguments);
    card_controller::mark_emulated(&mut record);
    live.put(&record, &arguments.output)?;
    Ok(exit)
}

/// Everything that the run has brought, even if it did not end well.
fn fill(record: &mut record::Record, ran: &CardRun, plan: &Plan, arguments: &Arguments) -> Exit {
    let mut exit = Exit::Done;
    let plans: Vec<_> = plan.cases.iter().map(|case| case.case.clone()).collect();
    let made = case_results(ran, &plans, CardStop::Count);
    for (number, (planned, mut case)) in (0_u16..).zip(plan.cases.iter().zip(made)) {
        let unsupported = case.status.outcome == record::Outcome::Unsupported;
        if unsupported && planned.optional && arguments.op.is_empty() {
            continue;
        }
        case.verification = verify(ran, number, planned);
        case.seed = Some(arguments.seed);
        let wrong = case.verification.map_or(0, |verification| verification.wrong);
        if wrong > 0 {
            case.warnings.insert(
                0,
                format!("{wrong} answers were wrong: no figure of this case can be trusted"),
            );
        }
        // A suite asks what a card can do: what it cannot is an answer, unless asked for by name.
        let answered = unsupported && arguments.op.is_empty();
        if wrong > 0 || case.status.outcome != record::Outcome::Ok && !answered {
            exit = Exit::NotMeasured;
        }
        record.results.push(case);
    }
    record.costs = costs(ran, plan);
    record.apdus = apdus(ran, plan);
    for (test, why) in &plan.left_out {
        record.warnings.push(format!("{test} was left out: it {why}"));
    }
    exit.max(trouble(record, ran, plan))
}

/// What ended the run early, told on standard error and in the record.
fn trouble(record: &mut record::Record, ran: &CardRun, plan: &Plan) -> Exit {
    let mut told = Vec::new();
    if let Some(lost) = &ran.lost {
        told.push(CardMeasureError::Lost(lost.clone()).to_string());
        if !plan.job.clean_up.is_empty() {
            told.push(format!("this may still be on the card: {}", plan.changes.join("; ")));
        }
    }
    for done in ran.done.iter().flatten() {
        if let Some(fault) = &done.gave_up {
            told.push(CardMeasureError::Fault(fault.clone()).to_string());
        }
        if let Some(fault) = &done.left {
            told.push(format!("cleaning up failed: {fault}"));
        }
    }
    for text in &told {
        say!("error: {}", Foreign::with_lines(text));
    }
    record.warnings.extend(told.iter().map(|text| text.replace('\n', "; ")));
    if ran.interrupted {
        record.warnings.push("the run was interrupted: some cases have fewer operations".into());
    }
    if told.is_empty() && !ran.interrupted { Exit::Done } else { Exit::NotMeasured }
}
