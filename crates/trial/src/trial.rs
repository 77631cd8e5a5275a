//! A fix, tried on the unmodified program: rounds of the program with the fix off, with the fix on,
//! and without a probe, in turns.
//!
//! The fix's gain is what lies between off and on, since the probe is in both; the bare program
//! stands beside them and shows what the probe costs. The first run of all is one with the fix off:
//! it shows whether the command may be repeated at all.

mod record;

use thiserror::Error;

use crate::behaviour::{self, Behaviour, Judgement};
use crate::guard;
use tapstone_command::command::Command;
use tapstone_command::observation::Observations;
use tapstone_command::rounds::{self, Ended, Progress, Rounds, Turn};
use tapstone_command::run::{Exit, Finished, ProgramInput, ProgramOutput, ProgramRun, Signals};
use tapstone_events::{Blind, Fix, ObservedRun};
use tapstone_explain::reading::read_timeline;
use tapstone_explain::timeline::Timeline;
use tapstone_observe::daemon::ProbedDaemon;
use tapstone_observe::observe::{self, ObserveError, Seen};
use tapstone_observe::probe::{Applied, EventBytes, Probe, ProbeOptions};

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// The command that is run untouched and with the fix.
    pub command: &'a Command,
    /// All of these together.
    pub fixes: Vec<Fix>,
    /// How many rounds count, without those that warm up.
    pub rounds: usize,
    /// Rounds before them that do not; there is one at least.
    pub warm_up: usize,
    /// Decides in which order the runs of each round come, and how far apart rounds are.
    pub seed: u64,
    /// Whether a command that writes may be repeated.
    pub allow_writes: bool,
    /// How much one run may write down.
    pub size: EventBytes,
    /// A daemon that lives through all rounds, with the fixes inside, switched on and off.
    pub daemon: Option<&'a Command>,
    /// Called when the daemon answers: its readers may need time to find their cards.
    pub when_ready: fn(),
}

/// A daemon under trial.
#[derive(Debug)]
struct Resident {
    // Dropped, and so stopped, before the files that it writes to.
    _daemon: ProbedDaemon,
    probe: Probe,
}

impl Resident {
    fn start(command: &Command, options: &ProbeOptions) -> Result<Self, ObserveError> {
        let probe = Probe::new(options)?;
        Ok(Self { _daemon: ProbedDaemon::start(command, &probe)?, probe })
    }

    /// What it did during a run.
    fn meanwhile(&self, timeline: &mut Timeline) -> Result<(), ObserveError> {
        let Timeline { started, ended, .. } = *timeline;
        let recording =
            self.probe.buffer().record(ObservedRun { started, ended, ..ObservedRun::default() })?;
        timeline.take_in(read_timeline(&recording)?);
        Ok(())
    }
}

/// A run of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialSide {
    /// With the probe, which changes nothing.
    Off,
    /// With the probe and the fix.
    On,
    /// As its user would run it.
    Bare,
}

const SIDES: [TrialSide; 3] = [TrialSide::Off, TrialSide::On, TrialSide::Bare];

/// What one run left. Its output is in its behaviour.
#[derive(Debug)]
struct RunOutcome {
    finished: Finished,
    behaviour: Behaviour,
    timeline: Option<Timeline>,
    applied: Vec<Applied>,
    warnings: Vec<String>,
    left_behind: Option<String>,
}

/// What the rounds gave.
#[derive(Debug)]
pub struct Tried {
    /// Each run with the fix off, in order.
    pub off: Vec<Finished>,
    /// With the fix on.
    pub on: Vec<Finished>,
    /// The runs without a probe, for what probing itself costs.
    pub bare: Vec<Finished>,
    /// What the untouched program did in each round: what predictions are made from.
    pub timelines: Vec<Timeline>,
    /// What each fix came to, in all rounds together.
    pub applied: Vec<Applied>,
    /// Whether the program behaved the same.
    pub judgement: Judgement,
    /// Why there are fewer rounds than asked for, as a sentence for the record.
    pub stopped: Option<String>,
    /// What went wrong then, with what the program said: for the terminal.
    pub failure: Option<TrialError>,
    /// What to know of it.
    pub warnings: Vec<String>,
}

/// Why nothing was tried, or the trial was given up. The text ends with a hint.
#[derive(Debug, Error)]
pub enum TrialError {
    /// A run could not be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A command that failed is not repeated.
    #[error(
        "`{command}` ended with {exit}{}\nhint: a command that failed is not run again: make it \
         succeed first",
        told(stderr)
    )]
    Failed {
        /// The command, as it may be shown.
        command: String,
        /// How the command ended.
        exit: Exit,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
    /// A wrong PIN is not given again.
    #[error(
        "a PIN or key was refused: {what}\nhint: nothing was run after that; look at the retry \
         counter before you try again"
    )]
    Pin {
        /// The call that refused a PIN.
        what: String,
    },
    /// The command changes something on the token or card.
    #[error(
        "the command writes to the token or card: {}\nhint: it is not run again; \
         --allow-writes repeats it", what.join(", ")
    )]
    Writes {
        /// The calls and commands that write.
        what: Vec<String>,
    },
    /// The observer lost calls, so behaviour cannot be compared.
    #[error(
        "not all that the command does was seen: {}\nhint: whether a PIN was refused is not known, \
         so it is not run again; let it do less, on a machine that does nothing else",
        what.join("; ")
    )]
    Lost {
        /// What, and why, as sentences.
        what: Vec<String>,
    },
    /// Programs that it starts are not known.
    #[error(
        "what the command does was not seen whole: {}\nhint: whether it gives a PIN or writes is \
         not known, so it is not run again; --allow-writes repeats it all the same",
        programs.join("; ")
    )]
    Unseen {
        /// Which programs, and why.
        programs: Vec<String>,
    },
    /// There is no probe in it.
    #[error("{0}")]
    Blind(Blind),
    /// Any of these, of a command that left processes behind besides.
    #[error("{}", with_left_behind(error, left_behind))]
    LeftBehind {
        /// What it is.
        error: Box<TrialError>,
        /// Which processes, as a sentence.
        left_behind: String,
    },
    /// The user ended the trial.
    #[error("interrupted before the first round was complete\nhint: nothing was measured")]
    Interrupted,
}

fn told(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

/// Both, in front of the advice.
fn with_left_behind(error: &TrialError, left_behind: &str) -> String {
    let text = error.to_string();
    let (what, advice) = text.split_once("\nhint: ").unwrap_or((&text, "end them first"));
    format!("{what}\n{left_behind}\nhint: {advice}")
}

impl TrialError {
    fn beside(self, left_behind: Option<String>) -> Self {
        match left_behind {
            Some(left_behind) => Self::LeftBehind { error: Box::new(self), left_behind },
            None => self,
        }
    }

    /// For a record: without what the program said, which may hold a secret, and without the hint.
    #[must_use]
    pub fn in_short(&self) -> String {
        match self {
            Self::Failed { command, exit, .. } => return format!("`{command}` ended with {exit}"),
            Self::LeftBehind { error, .. } => return error.in_short(),
            _ => {}
        }
        let text = self.to_string();
        text.split("\nhint: ").next().unwrap_or_default().to_owned()
    }
}

impl Trial<'_> {
    /// Runs all rounds; `progress` is told before each run.
    ///
    /// # Errors
    /// When it ends before the first round is complete. Later, complete rounds stay.
    pub fn run_trial(
        &self,
        signals: &Signals,
        progress: impl FnMut(Progress),
    ) -> Result<Tried, TrialError> {
        let warm_up = self.warm_up.max(1);
        let sides = SIDES.len();
        let plan = rounds::TurnsPlan { sides, rounds: self.rounds, warm_up, seed: self.seed };
        let start = |command| Resident::start(command, &self.options(false));
        let resident = self.daemon.map(start).transpose()?;
        if resident.is_some() {
            (self.when_ready)();
        }
        let run = |turn: Turn| self.one(SIDES[turn.side], resident.as_ref(), signals);
        let rounds = plan.run_rounds(run, || signals.asked_to_end(), progress);
        let mut tried = match (rounds.rounds.is_empty(), rounds.ended) {
            (true, Ended::Failed { error, .. }) => return Err(error),
            (true, Ended::Interrupted | Ended::Done) => return Err(TrialError::Interrupted),
            (false, ended) => tried(Rounds { ended, ..rounds }),
        };
        let of_daemon = resident.map(|resident| resident.probe.buffer().losses().sentences(&[]));
        let of_daemon = of_daemon.unwrap_or_default();
        tried.warnings.extend(of_daemon.iter().map(|it| format!("in the daemon: {it}")));
        Ok(tried)
    }

    fn options(&self, on: bool) -> ProbeOptions {
        let fixes = self.fixes.clone();
        ProbeOptions { fixes, on, data: false, callers: false, size: self.size, listed: None }
    }

    fn one(
        &self,
        side: TrialSide,
        resident: Option<&Resident>,
        signals: &Signals,
    ) -> Result<RunOutcome, TrialError> {
        let before = resident.map(|resident| {
            resident.probe.buffer().switch(side == TrialSide::On);
            resident.probe.buffer().applied()
        });
        let beside = resident.map(|resident| &resident.probe);
        if side == TrialSide::Bare {
            let run =
                ProgramRun::new(self.command).output(ProgramOutput::Kept).input(ProgramInput::Null);
            let mut finished = run
                .observed(Observations::default().beside(beside.map(|probe| probe as _)))
                .finish(signals)
                .map_err(ObserveError::from)?;
            self.check_exit(&finished)?;
            let behaviour = Behaviour::new(&mut finished, None);
            let applied = Vec::new();
            let warnings = Vec::new();
            let timeline = None;
            let left_behind = None;
            return Ok(RunOutcome {
                finished,
                behaviour,
                timeline,
                applied,
                warnings,
                left_behind,
            });
        }
        let options = self.options(side == TrialSide::On);
        let plan = observe::ObservationPlan {
            beside,
            ..observe::ObservationPlan::new(self.command, &options)
        };
        let seen = observe::observe(&plan, signals)?;
        let mut timeline = read_timeline(&seen.recording).map_err(ObserveError::from)?;
        let checked = self.check(&seen, &timeline);
        let Seen { mut finished, mut applied, warnings, left_behind, .. } = seen;
        if let Err(error) = checked {
            return Err(error.beside(left_behind));
        }
        let behaviour = Behaviour::new(&mut finished, Some(&timeline));
        if let Some(resident) = resident {
            resident.meanwhile(&mut timeline)?;
            if resident.probe.buffer().is_summing() {
                let what = "in the daemon calls are only counted by now (--events-size)";
                return Err(TrialError::Lost { what: vec![what.to_owned()] });
            }
            let now = resident.probe.buffer().applied();
            for ((count, now), before) in
                applied.iter_mut().zip(now).zip(before.unwrap_or_default())
            {
                *count = count.and(now.since(before));
            }
        }
        let timeline = Some(timeline);
        Ok(RunOutcome { finished, behaviour, timeline, applied, warnings, left_behind })
    }

    fn check(&self, seen: &Seen, timeline: &Timeline) -> Result<(), TrialError> {
        if let Some(what) = guard::refused_pin(timeline) {
            return Err(TrialError::Pin { what });
        }
        self.check_exit(&seen.finished)?;
        if let Some(blind) = &seen.blind {
            return Err(TrialError::Blind(blind.clone()));
        }
        if !seen.lost.is_empty() {
            return Err(TrialError::Lost { what: seen.lost.clone() });
        }
        if self.allow_writes {
            return Ok(());
        }
        let what = guard::writes(timeline);
        if !what.is_empty() {
            return Err(TrialError::Writes { what });
        }
        let programs = &seen.unseen;
        if programs.is_empty() {
            return Ok(());
        }
        Err(TrialError::Unseen { programs: programs.clone() })
    }

    fn check_exit(&self, finished: &Finished) -> Result<(), TrialError> {
        const LINES: usize = 8;
        if finished.exit.is_success() {
            return Ok(());
        }
        Err(TrialError::Failed {
            command: self.command.shown().to_owned(),
            exit: finished.exit,
            stderr: finished.stderr.as_ref().map_or_else(Vec::new, |it| it.last_lines(LINES)),
        })
    }
}

fn tried(rounds: Rounds<RunOutcome, TrialError>) -> Tried {
    let (stopped, failure) = match rounds.ended {
        Ended::Done => (None, None),
        Ended::Interrupted => (Some("interrupted".to_owned()), None),
        Ended::Failed { turn, error } => {
            (Some(format!("round {}: {}", turn.round, error.in_short())), Some(error))
        }
    };
    let mut off = Vec::new();
    let mut on = Vec::new();
    let mut bare = Vec::new();
    let mut timelines = Vec::new();
    let mut applied = Vec::new();
    let mut warnings = Vec::new();
    let mut untouched = Vec::new();
    let mut fixed = Vec::new();
    let mut left_behind = None;
    for left in rounds.rounds.into_iter().flat_map(|round| SIDES.into_iter().zip(round)) {
        let (side, left) = left;
        warnings.extend(left.warnings);
        // Others in each round, and all alike.
        left_behind = left_behind.or(left.left_behind);
        match side {
            TrialSide::Off => {
                off.push(left.finished);
                untouched.push(left.behaviour);
                timelines.extend(left.timeline);
            }
            TrialSide::On => {
                on.push(left.finished);
                fixed.push(left.behaviour);
                applied.resize(left.applied.len(), Applied::default());
                for (sum, more) in applied.iter_mut().zip(left.applied) {
                    *sum = sum.and(more);
                }
            }
            TrialSide::Bare => {
                bare.push(left.finished);
                untouched.push(left.behaviour);
            }
        }
    }
    warnings.sort_unstable();
    warnings.dedup();
    warnings.extend(left_behind);
    let judgement = behaviour::judge(&untouched, &fixed);
    Tried { off, on, bare, timelines, applied, judgement, stopped, failure, warnings }
}
