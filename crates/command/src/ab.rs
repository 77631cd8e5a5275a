//! Two whole commands against one another, interleaved: wall time and processor time of each, and the
//! ratio of the two with its interval.
//!
//! There is no probe here, so nothing is known of a command but how it ended. It is therefore
//! never run again after an exit code that is not 0, and no option changes that.

mod paired;
mod record;

use std::fmt;

use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::command::Command;
use crate::rounds::{self, Ended, Progress, Rounds, Turn};
use crate::run::{Exit, Finished, ProgramInput, ProgramOutput, ProgramRun, RunError, Signals};

/// Lines of a failed command's standard error that its error shows.
const LINES: usize = 8;

/// What is to be compared, and how often.
#[derive(Clone, Debug)]
pub struct Ab {
    /// What is compared with, and what is compared.
    pub sides: [AbSide; 2],
    /// Run before each run of a side, outside its time.
    pub prepare: Option<Command>,
    /// How many rounds count, without those that warm up.
    pub rounds: u32,
    /// Rounds before them that do not.
    pub warm_up: u32,
    /// Decides in which order the sides of each round run, and how far apart rounds are.
    pub seed: u64,
    /// Where the output of the commands goes: [`ProgramOutput::Tail`] or [`ProgramOutput::Shown`].
    pub output: ProgramOutput,
}

/// One of the two commands.
#[derive(Clone, Debug)]
pub struct AbSide {
    /// What it is called in tables.
    pub name: String,
    /// The command of this side.
    pub command: Command,
}

/// The times of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTimes {
    /// When it began, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// From fork to end.
    pub wall: Nanos,
    /// Processor time in user mode.
    pub user: Nanos,
    /// Processor time in the kernel.
    pub system: Nanos,
}

impl From<&Finished> for RunTimes {
    fn from(&Finished { started, wall, user, system, .. }: &Finished) -> Self {
        Self { started, wall, user, system }
    }
}

/// What the rounds gave.
#[derive(Clone, Debug)]
pub struct MeasuredRounds {
    rounds: Rounds<RunTimes, AbError>,
}

/// A comparison came to an end before its last round. The text ends with a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AbError {
    /// The system did not start a command.
    #[error("{place}: {error}")]
    NotRun {
        /// The run that could not be started or waited for.
        place: RunPlace,
        /// The call that failed, and its error.
        error: RunError,
    },
    /// A command did not end well.
    #[error(
        "{place}: `{command}` ended with {exit}{}\nhint: a command that failed is not run again, \
         since a wrong PIN given again would block a card: run it by hand until it ends with exit \
         code 0", told(stderr.as_deref())
    )]
    Failed {
        /// The run that ended badly.
        place: RunPlace,
        /// The command, as it may be shown.
        command: String,
        /// How the run ended.
        exit: Exit,
        /// The last lines of its standard error; `None` where that was shown.
        stderr: Option<Vec<String>>,
    },
    /// Somebody ended it before there was anything to keep.
    #[error("interrupted before the first round was complete\nhint: nothing was measured")]
    Interrupted,
}

/// Which run of which side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// The name of the side.
    pub side: String,
    /// The run's place in its round.
    pub turn: Turn,
    /// Of how many rounds.
    pub rounds: u32,
    /// Whether it was the command that prepares the run.
    pub prepare: bool,
}

/// `B, round 3 of 20`.
impl fmt::Display for RunPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { side, turn, rounds, prepare } = self;
        let before = if *prepare { "before " } else { "" };
        let warm_up = if turn.warm_up { "warm-up " } else { "" };
        write!(f, "{before}{side}, {warm_up}round {} of {rounds}", turn.round)
    }
}

impl Ab {
    /// Runs all rounds; `progress` is told before each run.
    ///
    /// # Errors
    /// When it ends before the first round is complete. Later, what complete rounds have measured
    /// stays: see [`MeasuredRounds::failure`] and [`MeasuredRounds::interrupted`].
    pub fn measure(
        &self,
        signals: &Signals,
        progress: impl FnMut(Progress),
    ) -> Result<MeasuredRounds, AbError> {
        let rounds = self.rounds as usize;
        let warm_up = self.warm_up as usize;
        let sides = self.sides.len();
        let plan = rounds::TurnsPlan { sides, rounds, warm_up, seed: self.seed };
        let run = |turn: Turn| self.run_turn(turn, signals);
        let rounds = plan.run_rounds(run, || signals.asked_to_end(), progress);
        match (rounds.rounds.is_empty(), rounds.ended) {
            (true, Ended::Failed { error, .. }) => Err(error),
            (true, Ended::Interrupted | Ended::Done) => Err(AbError::Interrupted),
            (false, ended) => Ok(MeasuredRounds { rounds: Rounds { ended, ..rounds } }),
        }
    }

    fn run_turn(&self, turn: Turn, signals: &Signals) -> Result<RunTimes, AbError> {
        if let Some(command) = &self.prepare {
            self.run_one(command, self.place(turn, true), signals)?;
            if signals.asked_to_end() {
                return Err(AbError::Interrupted);
            }
        }
        let command = &self.sides[turn.side].command;
        let finished = self.run_one(command, self.place(turn, false), signals)?;
        Ok(RunTimes::from(&finished))
    }

    fn run_one(
        &self,
        command: &Command,
        place: RunPlace,
        signals: &Signals,
    ) -> Result<Finished, AbError> {
        let run = ProgramRun::new(command).input(ProgramInput::Null).output(self.output);
        match run.finish(signals) {
            Ok(finished) if finished.exit.is_success() => Ok(finished),
            Ok(finished) => Err(AbError::Failed {
                place,
                command: command.shown().to_owned(),
                exit: finished.exit,
                stderr: finished.stderr.map(|stream| stream.last_lines(LINES)),
            }),
            Err(error) => Err(AbError::NotRun { place, error }),
        }
    }

    fn place(&self, turn: Turn, prepare: bool) -> RunPlace {
        let rounds = if turn.warm_up { self.warm_up } else { self.rounds };
        RunPlace { side: self.sides[turn.side].name.clone(), turn, rounds, prepare }
    }
}

impl MeasuredRounds {
    /// What failed in a later round, if anything did.
    #[must_use]
    pub const fn failure(&self) -> Option<&AbError> {
        match &self.rounds.ended {
            Ended::Failed { error, .. } => Some(error),
            Ended::Done | Ended::Interrupted => None,
        }
    }

    /// Whether somebody ended it before the last round.
    #[must_use]
    pub const fn interrupted(&self) -> bool {
        matches!(self.rounds.ended, Ended::Interrupted)
    }
}

/// What a command printed before it failed, indented below the error.
fn told(stderr: Option<&[String]>) -> String {
    match stderr {
        None => String::new(),
        Some([]) => "; it wrote nothing to its standard error".to_owned(),
        Some(lines) => format!("; its standard error ends with\n    {}", lines.join("\n    ")),
    }
}
