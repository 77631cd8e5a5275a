//! The lab: starts worker processes, steers a row through them, gathers what they report, and
//! judges the results. It never loads a module itself.

mod error;
mod figures;
mod gather;
mod judge;
mod limit;
mod plan;
mod prepare;
mod row;
mod steering;
mod targets;
mod verify;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use tapstone_measure::pace::SplitMix;
pub use tapstone_worker::Command as WorkerCommand;
use tapstone_worker::{self as worker, Process};

use cryptoki_sys::{
    CKF_PROTECTED_AUTHENTICATION_PATH, CKF_TOKEN_INITIALIZED, CKF_USER_PIN_COUNT_LOW,
    CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_LOCKED,
};

pub use self::error::{LabError, Lost};
pub use self::figures::RowOutcome;
pub use self::gather::{Gathered, SampleSink};
pub use self::limit::{Limit, LimitPlan};
pub use self::plan::{Common, KeyCount, KeysPlan, LanePlan, LoadPlan, RowPlan, Stop};
pub use self::steering::{Observer, Progress};
pub use self::targets::{Answer, ModuleReport, look_at};
use crate::calls::Call;
use crate::module::{LibraryInfo, MechanismInfo, SlotInfo, TokenInfo};
use crate::protocol::{Enter, Leftover, Login, Order, Report, Trouble};
use crate::worker::RUN_MARK;

/// Which module and tokens are measured, and how patiently.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to run as a worker.
    pub worker: WorkerCommand,
    /// The module.
    pub module: PathBuf,
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

/// Which token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenChoice {
    /// The only one there is.
    Only,
    /// By label.
    Label(String),
    /// By serial number.
    Serial(String),
    /// By slot.
    Slot(u64),
}

/// A token that is measured.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its slot.
    pub slot: SlotInfo,
    /// What it says of itself, before the first login.
    pub token: TokenInfo,
}

/// How long a token with a PIN pad of its own waits for a person.
const PIN_PAD: Duration = Duration::from_secs(300);

/// After an interrupt, how long a call in flight may go on.
const AFTER_INTERRUPT: Duration = Duration::from_secs(5);

/// See the module's text.
pub struct Lab {
    options: Options,
    /// Marks everything that this run makes on a token.
    run: String,
    /// Of the module, as it describes itself.
    pub library: LibraryInfo,
    /// The tokens.
    pub targets: Vec<Target>,
    /// By number, which is how their reports are known; `None` for those that are gone.
    members: Vec<Option<Member>>,
    sender: Sender<(usize, Word)>,
    inbox: Receiver<(usize, Word)>,
    /// Numbers of first operations and workers are never the same in two runs of one key.
    fresh: Fresh,
    interrupted_at: Option<Instant>,
    /// Workers that died and whose keys are already taken care of.
    mourned: usize,
}

/// Something that a worker said, or that it says no more.
type Word = worker::Word<Report>;

/// How long a worker may take to clean up, C_Logout and C_Finalize included.
const FAREWELL: Duration = Duration::from_secs(5);

/// A process and the token that it has entered.
struct Member {
    process: Process<Order, Report>,
    token: Option<usize>,
}

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

impl Lab {
    /// Loads the module in a first process, finds the tokens, and logs in to each once.
    ///
    /// # Errors
    /// The module, a token or the PIN does not allow it; the error says what to do.
    pub fn open(options: Options) -> Result<Self, LabError> {
        let mut lab = Self::idle(options)?;
        let first = lab.spawn()?;
        lab.library = lab.load(first)?;
        let slots = lab.slots(first)?;
        lab.targets = targets::choose(&lab.options.module, &lab.options.tokens, slots)?;
        lab.enter(first, 0)?;
        for token in 1..lab.targets.len() {
            lab.join(token)?;
        }
        Ok(lab)
    }

    /// A lab in which nothing runs yet.
    fn idle(options: Options) -> Result<Self, LabError> {
        // A bare name is looked for where the dynamic linker looks.
        if options.module.components().count() > 1 && !options.module.exists() {
            return Err(LabError::NoModule(options.module));
        }
        let (sender, inbox) = mpsc::channel();
        let seed = entropy();
        Ok(Self {
            run: format!("{RUN_MARK}{seed:016x}"),
            options,
            library: targets::unknown_library(),
            targets: Vec::new(),
            members: Vec::new(),
            sender,
            inbox,
            fresh: Fresh(SplitMix(seed)),
            interrupted_at: None,
            mourned: 0,
        })
    }

    /// What keys made by this run are labelled with.
    #[must_use]
    pub fn run_label(&self) -> &str {
        &self.run
    }

    /// The module's path.
    #[must_use]
    pub fn module(&self) -> &Path {
        &self.options.module
    }

    /// Keys that killed runs left on the tokens; destroys them if asked.
    ///
    /// # Errors
    /// A token cannot be searched.
    pub fn leftovers(&mut self, remove: bool) -> Result<Vec<Leftover>, LabError> {
        let mut left = Vec::new();
        for token in 0..self.targets.len() {
            left.extend(self.sweep(token, remove, None)?);
        }
        Ok(left)
    }

    /// Ends all workers in good order.
    pub fn close(mut self) {
        self.members.clear();
    }

    fn sweep(
        &mut self,
        token: usize,
        remove: bool,
        run: Option<String>,
    ) -> Result<Vec<Leftover>, LabError> {
        let Some(&number) = self.processes_of(token).first() else { return Ok(Vec::new()) };
        let left = self.ask(number, Order::Leftovers { remove, run }, |report| match report {
            Report::Leftovers(left) => Some(left),
            _ => None,
        })?;
        left.map_err(|failure| LabError::Call { what: self.describe(token), failure })
    }

    /// The living processes of a token.
    fn processes_of(&self, token: usize) -> Vec<usize> {
        let of_token = |(number, member): (usize, &Option<Member>)| {
            member.as_ref().filter(|member| member.token == Some(token)).map(|_| number)
        };
        self.members.iter().enumerate().filter_map(of_token).collect()
    }

    /// As many processes for each token as a row needs; their numbers, by token.
    fn ensure(&mut self, per_token: u32) -> Result<Vec<Vec<usize>>, LabError> {
        let mut all = Vec::new();
        for token in 0..self.targets.len() {
            while self.processes_of(token).len() < per_token as usize {
                self.join(token)?;
            }
            all.push(self.processes_of(token).into_iter().take(per_token as usize).collect());
        }
        Ok(all)
    }

    /// One more process for a token. The token's flags are read again before it logs in.
    fn join(&mut self, token: usize) -> Result<(), LabError> {
        let number = self.spawn()?;
        self.load(number)?;
        let id = self.targets[token].slot.id;
        let slots = self.slots(number)?;
        let now = slots.into_iter().find(|slot| slot.id == id).and_then(|slot| slot.token);
        if let Some(now) = now {
            self.targets[token].token.flags = now.flags;
        }
        self.enter(number, token)
    }

    fn spawn(&mut self) -> Result<usize, LabError> {
        let number = self.members.len();
        let process = Process::start(&self.options.worker, number, self.sender.clone(), FAREWELL);
        let process = process.map_err(LabError::Spawn)?;
        self.members.push(Some(Member { process, token: None }));
        Ok(number)
    }

    fn load(&mut self, number: usize) -> Result<LibraryInfo, LabError> {
        let module = self.options.module.clone();
        let board = self.member(number).map(|member| member.process.board()).unwrap_or_default();
        let loaded = self.ask(number, Order::Load { module, board }, |report| match report {
            Report::Loaded(loaded) => Some(loaded),
            _ => None,
        })?;
        let module = self.options.module.clone();
        loaded.map_err(|error| LabError::Load { module, error })
    }

    fn slots(&mut self, number: usize) -> Result<Vec<SlotInfo>, LabError> {
        let with_mechanisms = self.slots_and_mechanisms(number, false)?;
        Ok(with_mechanisms.into_iter().map(|(slot, _)| slot).collect())
    }

    fn slots_and_mechanisms(
        &mut self,
        number: usize,
        mechanisms: bool,
    ) -> Result<Vec<(SlotInfo, Vec<MechanismInfo>)>, LabError> {
        let slots = self.ask(number, Order::Slots { mechanisms }, |report| match report {
            Report::Slots(slots) => Some(slots),
            _ => None,
        })?;
        let what = self.options.module.display().to_string();
        slots.map_err(|failure| LabError::Call { what, failure })
    }

    /// Opens the token's first session and logs in: one try, and none when the flags forbid it.
    fn enter(&mut self, number: usize, token: usize) -> Result<(), LabError> {
        let target = &self.targets[token];
        if !target.token.has(CKF_TOKEN_INITIALIZED) {
            return Err(LabError::Uninitialised { slot: target.slot.id });
        }
        let login = self.login_for(&target.token);
        allow_login(&target.token, &login, self.options.accept_low_count)?;
        let limit = match login {
            Login::ProtectedPath => {
                (self.options.announce)(&format!(
                    "enter the PIN of {} on the token's own pad",
                    self.describe(token)
                ));
                PIN_PAD.max(self.options.timeout)
            }
            _ => self.options.timeout,
        };
        let enter = Enter { slot: target.slot.id, login };
        let order = |_| Order::Enter(enter.clone());
        let entered = self.ask_all(&[number], order, 0, limit, |report| match report {
            Report::Entered(entered) => Some(entered),
            _ => None,
        });
        let entered = entered.into_iter().next().transpose().map_err(|lost| self.lost(lost))?;
        match entered {
            Some(Ok(_)) | None => {
                if let Some(member) = self.member(number) {
                    member.token = Some(token);
                }
                Ok(())
            }
            Some(Err(Trouble::Call { failure, .. })) => {
                Err(LabError::Call { what: self.describe(token), failure })
            }
            Some(Err(other)) => Err(LabError::Keys { trouble: other }),
        }
    }

    /// A token with a PIN pad of its own asks for the PIN itself, unless the user gave one.
    fn login_for(&self, token: &TokenInfo) -> Login {
        let pad = token.has(CKF_PROTECTED_AUTHENTICATION_PATH);
        match &self.options.login {
            Login::None if pad => Login::ProtectedPath,
            login => login.clone(),
        }
    }

    fn member(&mut self, number: usize) -> Option<&mut Member> {
        self.members.get_mut(number)?.as_mut()
    }

    fn describe(&self, token: usize) -> String {
        format!("token \"{}\"", self.targets[token].token.label)
    }

    fn lost(&self, lost: Lost) -> LabError {
        if self.interrupted_at.is_some() {
            return LabError::Interrupted;
        }
        LabError::Lost { module: self.options.module.clone(), lost }
    }

    /// Sends one worker an order and waits for its answer.
    fn ask<T>(
        &mut self,
        number: usize,
        order: Order,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Result<T, LabError> {
        let limit = self.options.timeout;
        let mut answers = self.ask_all(&[number], |_| order.clone(), 0, limit, pick);
        match answers.pop() {
            Some(answer) => answer.map_err(|lost| self.lost(lost)),
            None => Err(self.lost(Lost::Garbled("no answer".into()))),
        }
    }

    /// Sends workers an order each and waits for all their answers. A worker that is lost is
    /// buried; `threads` of each are watched besides its main one.
    fn ask_all<T>(
        &mut self,
        numbers: &[usize],
        order: impl Fn(usize) -> Order,
        threads: usize,
        limit: Duration,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Vec<Result<T, Lost>> {
        for (place, &number) in numbers.iter().enumerate() {
            if let Some(member) = self.member(number) {
                member.process.order(&order(place));
            }
        }
        let mut answers: Vec<Option<Result<T, Lost>>> = numbers.iter().map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            let heard = self.hear(Duration::from_millis(50));
            match heard {
                Some((number, word)) => {
                    let place = numbers.iter().position(|other| *other == number);
                    let answer = match word {
                        Word::Report(report) => pick(report).map(Ok),
                        Word::Gone => Some(Err(self.bury(number, threads, None))),
                        Word::Garbled(why) => {
                            Some(Err(self.bury(number, threads, Some(Lost::Garbled(why)))))
                        }
                    };
                    // Late words of workers that were not asked mean nothing.
                    if let (Some(place), Some(answer)) = (place, answer) {
                        answers[place].get_or_insert(answer);
                    }
                }
                None => {
                    for (place, &number) in numbers.iter().enumerate() {
                        if answers[place].is_none() {
                            answers[place] = self.check(number, threads, limit).map(Err);
                        }
                    }
                }
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// Whether a worker is dead or has been in one call for too long; if so, it is buried.
    fn check(&mut self, number: usize, threads: usize, limit: Duration) -> Option<Lost> {
        let limit = self.patience(limit);
        match self.member(number) {
            None => Some(Lost::Garbled("the worker process is gone".into())),
            Some(member) => {
                let stuck = member.process.stuck(threads, limit)?;
                Some(self.bury(number, threads, Some(stuck.named(Call::from_number))))
            }
        }
    }

    /// Ends what is left of a worker; says why it was lost if nobody knows better.
    fn bury(&mut self, number: usize, threads: usize, why: Option<Lost>) -> Lost {
        let gone = Lost::Garbled("the worker process is gone".into());
        let Some(mut member) = self.members.get_mut(number).and_then(Option::take) else {
            return why.unwrap_or(gone);
        };
        match why {
            Some(why) => {
                member.process.kill();
                why
            }
            None => member.process.post_mortem(threads).named(Call::from_number),
        }
    }

    /// The next word of any worker, or nothing for so long.
    fn hear(&mut self, patience: Duration) -> Option<(usize, Word)> {
        if self.interrupted_at.is_none() && self.options.interrupt.load(Relaxed) {
            self.interrupted_at = Some(Instant::now());
        }
        // The lab holds a sender itself, so the channel never closes.
        self.inbox.recv_timeout(patience).ok()
    }

    /// A call's limit, shorter once the user has asked to end.
    fn patience(&self, limit: Duration) -> Duration {
        match self.interrupted_at {
            Some(at) if at.elapsed() > AFTER_INTERRUPT => AFTER_INTERRUPT.min(limit),
            _ => limit,
        }
    }
}

/// Whether the token's flags leave room for a try of the PIN.
fn allow_login(token: &TokenInfo, login: &Login, accept_low_count: bool) -> Result<(), LabError> {
    if *login == Login::None {
        return Ok(());
    }
    let risk = |why, hint| Err(LabError::PinAtRisk { label: token.label.clone(), why, hint });
    if token.has(CKF_USER_PIN_LOCKED) {
        return risk("the PIN is locked", "only the security officer can unlock it");
    }
    if token.has(CKF_USER_PIN_FINAL_TRY) {
        return risk(
            "one wrong PIN more would lock it",
            "log in once with the vendor's own tool, which resets the counter",
        );
    }
    if token.has(CKF_USER_PIN_COUNT_LOW) && !accept_low_count {
        return risk(
            "a wrong PIN was given since the last login",
            "if you are sure of the PIN, say --accept-low-count",
        );
    }
    Ok(())
}

/// A seed that differs from run to run.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The keys of RandomState come from the operating system.
    RandomState::new().hash_one(std::process::id())
}
