//! `tapstone ab`: two whole commands against one another, interleaved.

use std::time::Instant;

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use tapstone_command::ab::{Ab, AbSide};
use tapstone_command::command::{Command, CommandError};
use tapstone_command::rounds::Progress;
use tapstone_command::run::{ProgramOutput, Signals};
use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_measure::compare::Percent;
use tapstone_record::{Judgement, Record, Target, TargetKind};
use tapstone_text::Foreign;

use crate::command_line::RecordArguments;
use crate::exit::Exit;
use crate::machine_load::LoadWatch;
use crate::output::OutputArguments;
use crate::print::say;
use crate::progress::{ProgressLine, Steps};
use crate::{compare, environment};

/// Compare two whole commands, run interleaved, in an order that is drawn for each round
///
/// Gives the wall time and the processor time of each, and the ratio of the two with a 95 %
/// interval over the rounds. A command is given as one argument and split as a shell splits words,
/// but no shell is started. As soon as a run ends with an exit code that is not 0, everything
/// stops: a wrong PIN, given again and again, would block a card.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The command to compare with
    #[arg(value_name = "A")]
    baseline: String,
    /// The command to compare
    #[arg(value_name = "B")]
    candidate: String,
    /// Rounds; a verdict needs at least 20
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Rounds before them that do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    warm_up_rounds: u32,
    /// What decides the order within each round and the pauses between rounds
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Run the commands by /bin/sh; its start is then in every time
    #[arg(long)]
    shell: bool,
    /// Run this before each run, outside its time
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Show what the commands print, on standard error
    #[arg(long)]
    show_output: bool,
    /// What tables call a command; give it twice
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Fail when B is surely slower than A by more than this part of its wall time: 5%
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    fail_above: Option<Percent>,
    #[command(flatten)]
    record: RecordArguments,
    #[command(flatten)]
    output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone ab -- 'sha256sum file' 'openssl dgst -sha256 file'
  tapstone ab --rounds 50 --fail-above 5% -- './old --sign' './new --sign'
  tapstone ab --shell -- 'sort file | uniq' 'sort -u file'
  tapstone ab --prepare 'rm -f cache' --name old --name new -- ./old ./new

Exit codes: 0 done, also when a threshold is undecided; 1 a threshold was surely exceeded; 2 could
not be measured to the end.";

pub(crate) fn run_ab(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let ab = plan(arguments)?;
    let signals = Signals::watch().context("cannot watch for signals")?;
    let mut record = record(arguments);
    let machine = LoadWatch::start();
    let live = AbLine::new(arguments, &ab);
    let measured = ab.measure(&signals, |progress| live.draw(&progress));
    live.line.end();
    let measured = measured?;
    machine.add_to(&mut record.environment.load);
    measured.add_to(&mut record, &ab, arguments.fail_above);
    arguments.output.put(&record)?;
    if let Some(failure) = measured.failure() {
        say!("error: {}", Foreign::with_lines(failure.to_string()));
    }
    Ok(match exceeded(&record) {
        _ if measured.failure().is_some() || measured.interrupted() => Exit::NotMeasured,
        true => Exit::Missed,
        false => Exit::Done,
    })
}

fn plan(arguments: &Arguments) -> anyhow::Result<Ab> {
    let from_text = if arguments.shell { Command::by_shell } else { Command::from_text };
    let recorded = arguments.record.recorded();
    let parse =
        |text: &str| -> Result<Command, CommandError> { Ok(from_text(text)?.recorded(recorded)) };
    let names = match &arguments.name[..] {
        [] => ["A", "B"].map(str::to_owned),
        [a, b] if a != b => [a.clone(), b.clone()],
        _ => anyhow::bail!("--name wants two different names\nhint: --name old --name new"),
    };
    let [a, b] = names;
    Ok(Ab {
        sides: [
            AbSide { name: a, command: parse(&arguments.baseline)? },
            AbSide { name: b, command: parse(&arguments.candidate)? },
        ],
        prepare: arguments.prepare.as_deref().map(parse).transpose()?,
        rounds: arguments.rounds,
        warm_up: arguments.warm_up_rounds,
        seed: arguments.seed,
        output: if arguments.show_output { ProgramOutput::Shown } else { ProgramOutput::Tail },
    })
}

fn record(arguments: &Arguments) -> Record {
    let environment = environment::observe(Precision::measure(&Monotonic));
    let target = Target::new(TargetKind::Command);
    let mut record = Record::new(compare::tool(), Timestamp::now(), environment, target);
    let both = [&arguments.baseline[..], &arguments.candidate];
    let commands: Vec<&str> = both.into_iter().chain(arguments.prepare.as_deref()).collect();
    record.command = arguments.record.words_with_commands(&commands);
    record
}

fn exceeded(record: &Record) -> bool {
    let rows = record.comparison.iter().flat_map(|comparison| &comparison.cases);
    rows.into_iter().any(|row| row.threshold == Some(Judgement::Exceeded))
}

/// One line on a terminal, drawn between two runs and never during one.
struct AbLine {
    line: ProgressLine,
    names: [String; 2],
    begun: Instant,
}

impl AbLine {
    fn new(arguments: &Arguments, ab: &Ab) -> Self {
        let line = ProgressLine::without_ticks(arguments.output.quiet || arguments.show_output);
        Self { line, names: ab.sides.clone().map(|side| side.name), begun: Instant::now() }
    }

    fn draw(&self, progress: &Progress) {
        let turn = progress.turn;
        let kind = if turn.warm_up { "warm-up round" } else { "round" };
        let Progress { done, of, .. } = *progress;
        let steps = Steps { done: done as u64, of: of as u64, begun: self.begun };
        let text = format!("{kind} {}, {}{}", turn.round, self.names[turn.side], steps.left());
        self.line.draw(Some(steps.share()), &text);
    }
}
