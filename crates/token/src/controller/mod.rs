//! The controller: steers a case through workers, gathers what they report, and judges the results. It never
//! loads a module itself. Workers are processes here, or on other machines: once they have entered
//! their token, nothing but the way to them differs.

mod agent_case;
mod arrivals;
mod case;
mod case_figures;
mod commitment;
mod describe;
mod error;
mod evidence;
mod figures;
mod gather;
mod here;
mod host_figures;
mod hosts;
mod judge;
mod judged;
mod leftovers;
mod limit;
mod outcome;
mod own_sample;
mod plan;
mod prepare;
mod ran_case;
mod relay;
mod replay;
mod steering;
mod talk;
mod targets;
mod verify;
mod warnings;
mod within;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapstone_measure::pace::SplitMix;
use tapstone_measure::units::Nanos;
pub use tapstone_worker::WorkerCommand;

pub use self::case::{RoundsOutcome, RoundsPlan};
pub use self::error::{Lost, TokenMeasureError};
pub use self::gather::{Gathered, SampleSink};
pub use self::hosts::{HostClock, Hosts, Joined, Joining, Wanted};
pub use self::limit::{Limit, LimitPlan};
pub use self::outcome::{CaseOutcome, HostPart, not_measured};
pub use self::plan::{CasePlan, CaseStop, Common, KeyCount, KeysPlan, LanePlan, LoadPlan};
pub use self::relay::{FreshNonce, Relay, Waker};
pub use self::replay::ReplayOutcome;
pub use self::steering::{CaseProgress, SearchPart, TimeLeft, TokenObserver};
use self::talk::Workers;
pub use self::targets::{ModuleAnswer, ModuleReport, look_at};
pub use self::within::{FoundWithin, WithinSearchPlan};
use crate::module::{LibraryInfo, ModuleArguments, SlotInfo, TokenInfo};
use crate::protocol::Login;
use crate::worker::RUN_MARK;

/// Which module and tokens are measured, and how patiently.
#[derive(Clone, Debug)]
pub struct TokenOptions {
    /// What to run as a worker.
    pub worker: WorkerCommand,
    /// The path of the PKCS #11 module.
    pub module: PathBuf,
    /// What the module is told when it is initialised.
    pub module_arguments: Option<ModuleArguments>,
    /// The tokens; several are measured at once.
    pub tokens: Vec<TokenChoice>,
    /// The login, the same for all tokens.
    pub login: Login,
    /// Log in although the token says that few tries are left.
    pub accept_low_count: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// The user has asked to end.
    pub interrupt: Arc<AtomicBool>,
    /// Tells the user what to do with a device in hand.
    pub announce: fn(&str),
}

/// How a token is chosen among those of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenChoice {
    /// The only one there is.
    Only,
    /// The token of this label (CK_TOKEN_INFO.label).
    Label(String),
    /// The token of this serial number (CK_TOKEN_INFO.serialNumber).
    Serial(String),
    /// The token in the slot of this CK_SLOT_ID.
    Slot(u64),
}

/// A token that is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenTarget {
    /// The slot that the token is in.
    pub slot: SlotInfo,
    /// What it says of itself, before the first login.
    pub token: TokenInfo,
}

/// See the module's text.
pub struct TokenController {
    site: Site,
    workers: Workers,
    /// Marks everything that this run makes on a token.
    run: String,
    /// With hosts: the module of the first one.
    module: PathBuf,
    /// Of the module, as it describes itself.
    pub library: LibraryInfo,
    /// The tokens; with hosts, that of each.
    pub targets: Vec<TokenTarget>,
    /// The token that each worker has entered, by the worker's number.
    entered: BTreeMap<usize, usize>,
    /// Numbers of first operations and workers are never the same in two runs of one key.
    fresh: Fresh,
    /// Of so many workers that are gone the keys are already taken care of.
    cleaned_up_after: usize,
}

/// Where the workers are.
enum Site {
    /// Workers run on this machine.
    Here(TokenOptions),
    /// Workers run on other machines.
    Hosts(Box<dyn Hosts>),
}

/// Set when the user asks to end.
type InterruptFlag = Arc<AtomicBool>;

/// Numbers that no other run has used, as far as chance allows.
struct Fresh(SplitMix);

impl Fresh {
    /// For a process: its first worker's number; threads count on from it.
    fn worker(&mut self) -> u32 {
        (self.0.bits() >> 32) as u32
    }

    /// For a run: its first operation's number. 2⁴⁰ operations are a day at 12 million a second.
    fn operation(&mut self) -> u64 {
        (self.0.bits() >> 41) << 40
    }
}

impl TokenController {
    /// Loads the module in a first process, finds the tokens, and logs in to each once.
    ///
    /// # Errors
    /// The module, a token or the PIN does not allow it; the error says what to do.
    pub fn open(options: TokenOptions) -> Result<Self, TokenMeasureError> {
        let mut controller = Self::idle(options, entropy())?;
        controller.open_here()?;
        Ok(controller)
    }

    /// The same on other machines. One host logs in first, the others only after it succeeded.
    ///
    /// # Errors
    /// A host is lost, or its module, token or PIN does not allow it.
    pub fn open_on(
        hosts: Box<dyn Hosts>,
        timeout: Duration,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, TokenMeasureError> {
        let run = hosts.run();
        let count = hosts.names().len();
        let workers = talk::conversation(timeout, interrupt);
        let mut controller = Self::empty(Site::Hosts(hosts), workers, run);
        controller.join_hosts(&[0])?;
        controller.join_hosts(&(1..count).collect::<Vec<usize>>())?;
        Ok(controller)
    }

    /// a controller on this machine in which nothing runs yet.
    fn idle(options: TokenOptions, seed: u64) -> Result<Self, TokenMeasureError> {
        // A bare name is looked for where the dynamic linker looks.
        if options.module.components().count() > 1 && !options.module.exists() {
            return Err(TokenMeasureError::NoModule(options.module));
        }
        let workers = talk::conversation(options.timeout, Arc::clone(&options.interrupt));
        Ok(Self::empty(Site::Here(options), workers, seed))
    }

    fn empty(site: Site, workers: Workers, seed: u64) -> Self {
        Self {
            site,
            workers,
            run: format!("{RUN_MARK}{seed:016x}"),
            module: PathBuf::new(),
            library: targets::unknown_library(),
            targets: Vec::new(),
            entered: BTreeMap::new(),
            fresh: Fresh(SplitMix(seed)),
            cleaned_up_after: 0,
        }
    }

    /// What keys made by this run are labelled with.
    #[must_use]
    pub fn run_label(&self) -> &str {
        &self.run
    }

    /// The hosts, if the workers are on other machines.
    #[must_use]
    pub fn hosts(&self) -> Option<&dyn Hosts> {
        match &self.site {
            Site::Here(_) => None,
            Site::Hosts(hosts) => Some(&**hosts),
        }
    }

    /// The module's path; with hosts, that of the first one.
    #[must_use]
    pub fn module(&self) -> &Path {
        match &self.site {
            Site::Here(options) => &options.module,
            Site::Hosts(_) => &self.module,
        }
    }

    /// Ends all workers in good order.
    pub fn close(mut self) {
        self.workers.end_all();
    }

    /// The living processes of a token.
    fn processes_of(&self, token: usize) -> Vec<usize> {
        let entered = self.entered.iter().filter(|(_, entered)| **entered == token);
        entered.map(|(number, _)| *number).filter(|number| self.workers.is_alive(*number)).collect()
    }

    /// As many processes for each of the first tokens as a case needs; their numbers, by token.
    fn ensure(
        &mut self,
        tokens: usize,
        per_token: u32,
    ) -> Result<Vec<Vec<usize>>, TokenMeasureError> {
        let has = |controller: &Self, token: usize| controller.processes_of(token).len();
        let missing = |token: usize| {
            let missing = (per_token as usize).saturating_sub(has(self, token));
            std::iter::repeat_n(token, missing)
        };
        let missing: Vec<usize> = (0..tokens).flat_map(missing).collect();
        match self.site {
            Site::Here(_) => missing.into_iter().try_for_each(|token| self.join(token))?,
            Site::Hosts(_) => self.join_hosts(&missing)?,
        }
        let some = |token| self.processes_of(token).into_iter().take(per_token as usize).collect();
        Ok((0..tokens).map(some).collect())
    }

    /// How many tokens a case on so many hosts uses: here all of them.
    fn tokens_of(&self, hosts: u32) -> usize {
        match self.site {
            Site::Here(_) => self.targets.len(),
            Site::Hosts(_) => hosts as usize,
        }
    }

    /// One more process for a token.
    fn join(&mut self, token: usize) -> Result<(), TokenMeasureError> {
        match self.site {
            Site::Here(_) => self.join_here(token),
            Site::Hosts(_) => self.join_hosts(&[token]),
        }
    }

    /// One more worker on each of these hosts, all at once.
    fn join_hosts(&mut self, hosts: &[usize]) -> Result<(), TokenMeasureError> {
        let Site::Hosts(site) = &mut self.site else { return Ok(()) };
        let first = self.workers.next_number();
        let wanted = |(place, host): (usize, &usize)| Wanted { number: first + place, host: *host };
        let wanted: Vec<Wanted> = hosts.iter().enumerate().map(wanted).collect();
        let mut outcome = Ok(());
        for (wanted, joined) in wanted.iter().zip(site.join(&wanted, &self.workers.report_sender()))
        {
            match joined {
                Ok(Joined { worker, module, library, target }) => {
                    if wanted.host >= self.targets.len() {
                        self.module = module;
                        self.library = library;
                        self.targets.push(target);
                    }
                    self.workers.add_remote(worker);
                    self.entered.insert(wanted.number, wanted.host);
                }
                Err(error) => {
                    outcome = outcome.and(Err(error));
                    self.workers.add_missing();
                    // It never worked, and has left nothing behind.
                    self.cleaned_up_after += 1;
                }
            }
        }
        outcome
    }

    /// How long ahead workers have to be told of a moment, of which this is enough here.
    fn notice(&self, here: Nanos) -> Nanos {
        self.hosts().map_or(here, |hosts| here.max(hosts.notice()))
    }

    fn describe(&self, token: usize) -> String {
        format!("token \"{}\"", self.targets[token].token.label)
    }
}

/// A seed that differs from run to run.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The keys of RandomState come from the operating system.
    RandomState::new().hash_one(std::process::id())
}
