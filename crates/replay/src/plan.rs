//! What of a workload is replayed, with which keys, and what is left out and why.

mod keys;
mod made;
mod sample;
mod thread;
mod turns;
mod works;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tapstone_measure::pace::SplitMix;
use tapstone_measure::units::Nanos;
use tapstone_token_operations::catalogue::{KeySpec, MAX_MESSAGE_BYTES};
use tapstone_worker::BOARD_THREADS;
use tapstone_workload::Workload;

use self::keys::observed_keys;
use self::made::Makers;
pub(crate) use self::thread::BUFFER_TOO_SMALL;
pub(crate) use self::thread::SPARE_BYTES;
use self::thread::ThreadPlanner;
use self::turns::take_turns;
pub(crate) use self::works::work_of;
use crate::steps::{Due, KeyUses, MadeObject, ReplayProcess, ReplayStep, ReplayThread};

/// How a workload is replayed.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// So many times the same clients, each with a start of its own; 0 is taken for 1.
    pub scale: u32,
    /// On so many devices: each client keeps to one of them, and they are dealt in turn. 0 is taken
    /// for 1.
    pub devices: u32,
    /// Each client runs twice in a row, begun anywhere in the time of the recording: from one such
    /// time to two, all of them are there, and each does once what was recorded.
    pub steady: bool,
    /// Keys are made on the token, where they outlive a session.
    pub on_token: bool,
    /// Keys that the user has told, by the number of their object.
    pub keys: BTreeMap<u32, KeySpec>,
    /// Where pseudo-random inputs and starts come from.
    pub seed: u64,
}

/// What is going to be done.
#[derive(Clone, Debug, Default)]
pub struct ReplayPlan {
    /// The processes that replay it.
    pub processes: Vec<ReplayProcess>,
    /// The keys that are made for those of the recording.
    pub keys: Vec<MappedKey>,
    /// Keys that its calls make, of one copy of the clients.
    pub made: Vec<MadeKeys>,
    /// What is left out, and why, the most frequent first.
    pub skipped: Vec<Skipped>,
    /// Reads of objects that no operation used: another object stands for them.
    pub stand_in_reads: u64,
    /// Calls that are replayed, by function, of one copy of the clients.
    pub replayed: BTreeMap<&'static str, u64>,
}

/// A recorded key and what stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedKey {
    /// The number of its object.
    pub object: u32,
    /// What is made for it; `None`: nobody knows.
    pub spec: Option<KeySpec>,
    /// What it was used for.
    pub uses: KeyUses,
    /// How well that is known.
    pub certainty: KeyCertainty,
    /// Operations that used it.
    pub operations: u64,
    /// It asked for a login before each use (CKA_ALWAYS_AUTHENTICATE).
    pub always_authenticate: bool,
    /// Its mechanisms are replayed, so that whoever tells its kind has it replayed.
    pub can_be_told: bool,
}

impl MappedKey {
    /// Whether its operations are replayed only once the user has said what it is.
    #[must_use]
    pub fn is_to_be_told(&self) -> bool {
        self.certainty == KeyCertainty::Unknown && self.can_be_told
    }
}

/// Keys of one kind that calls of a function make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeKeys {
    /// The function that makes them, `C_…`.
    pub function: &'static str,
    /// Their kind and size.
    pub spec: KeySpec,
    /// How well that is known.
    pub certainty: KeyCertainty,
    /// How many there are.
    pub count: u64,
}

/// How well the kind of a key is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCertainty {
    /// The user has told it.
    Told,
    /// From the length of what it made.
    Seen,
    /// A recording does not tell: this is a usual one.
    Assumed,
    /// It is not known.
    Unknown,
}

/// Calls that are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Which function was called.
    pub function: &'static str,
    /// Why they are left out.
    pub reason: SkipReason,
    /// How many calls there are.
    pub count: u64,
}

/// Why a call is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkipReason {
    /// C_Initialize and its kin.
    OnceForEachProcess,
    /// C_Login and C_LoginUser.
    LoginHappensOnce,
    /// C_Logout, C_CloseAllSessions.
    WouldEndTheReplay,
    /// C_InitToken, C_InitPIN, C_SetPIN.
    WouldChangeTheToken,
    /// What makes, changes or destroys objects.
    WouldChangeObjects,
    /// It failed when it was recorded.
    FailedThen,
    /// It never returned.
    NeverReturned,
    /// A decryption or verification in parts.
    InParts,
    /// A mechanism that is not known.
    UnknownMechanism,
    /// A key that is not known.
    UnknownKey,
    /// A session that is not known, or was opened before.
    UnknownSession,
    /// A function that is not replayed.
    UnknownFunction,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnceForEachProcess => "done once for each process, before the replay",
            Self::LoginHappensOnce => "the login happens once, before the replay",
            Self::WouldEndTheReplay => "it would end the replay's own login or sessions",
            Self::WouldChangeTheToken => "it would change a PIN or the token",
            Self::WouldChangeObjects => {
                "it makes, changes or destroys objects that may be on the token, or makes a key that a \
                 replay cannot"
            }
            Self::FailedThen => "it failed when it was recorded",
            Self::NeverReturned => "it never returned",
            Self::InParts => {
                "of RSA without a digest there are no parts, or their end was not recorded"
            }
            Self::UnknownMechanism => "its mechanism is not one of those that are replayed",
            Self::UnknownKey => "the kind of its key is not known",
            Self::UnknownSession => "the recording does not tell its session",
            Self::UnknownFunction => "this function is not replayed",
        })
    }
}

/// Why a workload is not replayed. The text ends with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It asks for more of something than is made.
    #[error("the workload has {count} {what}, and {most} are replayed\nhint: {hint}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many are replayed.
        most: u64,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// Nothing of it is replayed.
    #[error(
        "nothing of the workload can be replayed: it has no call of a kind that is\nhint: `tapstone \
         report FILE` shows what is in it"
    )]
    Nothing,
    /// A key that the user told of is not in it.
    #[error(
        "the workload has no key {0}\nhint: the table of keys that a replay prints has their numbers"
    )]
    NoSuchKey(u32),
}

/// Each is a process of this machine.
const MOST_PROCESSES: usize = 64;
/// Each is made before the replay begins.
const MOST_KEYS: usize = 10_000;
const MOST_SESSIONS: usize = 100_000;
/// Objects that calls make.
const MOST_OBJECTS: usize = 1_000_000;
/// Threads of a process that can be watched, without its first one.
const MOST_THREADS: usize = BOARD_THREADS - 1;
const RECORD_LESS: &str = "record a shorter run, or one with fewer of them";

/// Plans the replay of a workload.
///
/// # Errors
/// When it asks for too much, or nothing of it can be replayed whatever is told of its keys.
pub fn plan_replay(workload: &Workload, options: &ReplayOptions) -> Result<ReplayPlan, PlanError> {
    let observed = observed_keys(workload, &options.keys)?;
    let makers = Makers::of(workload, &observed);
    let keys = observed.iter().copied().filter(|key| !makers.has(key.object)).collect();
    let mut plan = ReplayPlan { keys, ..ReplayPlan::default() };
    if plan.keys.len() > MOST_KEYS {
        return Err(too_many("keys", plan.keys.len(), MOST_KEYS));
    }
    let numbers: Vec<u32> = workload.threads.iter().map(|thread| thread.process).collect();
    let mut places: Vec<u32> = numbers.clone();
    places.sort_unstable();
    places.dedup();
    if places.len() > MOST_PROCESSES {
        return Err(too_many("processes", places.len(), MOST_PROCESSES));
    }
    let mut skipped: BTreeMap<(&'static str, SkipReason), u64> = BTreeMap::new();
    let mut planned_processes = Vec::new();
    for process in places {
        let mut planner = ThreadPlanner::new(&observed, &makers, process);
        let mut threads = Vec::new();
        for (origin, thread) in workload.threads.iter().enumerate() {
            if thread.process == process {
                let steps = planner.steps(origin, thread);
                threads.push(ReplayThread { origin: origin as u32, copy: 0, steps });
            }
        }
        for (why, count) in planner.skipped.drain_all() {
            *skipped.entry(why).or_default() += count;
        }
        for thread in &threads {
            for step in &thread.steps {
                *plan.replayed.entry(step.call.name()).or_default() += 1;
                plan.stand_in_reads += u64::from(step.reads_stand_in());
            }
        }
        for made in &planner.made {
            let same = |known: &&mut MadeKeys| MadeKeys { count: made.count, ..**known } == *made;
            match plan.made.iter_mut().find(same) {
                Some(known) => known.count += made.count,
                None => plan.made.push(*made),
            }
        }
        threads.retain(|thread| !thread.steps.is_empty());
        if threads.is_empty() {
            continue;
        }
        take_turns(&mut threads, workload);
        let objects = planner.objects();
        let planned = ReplayProcess {
            device: 0,
            keys: planner.keys,
            on_token: options.on_token,
            sessions: planner.sessions.iter().map(|session| session.opened_before).collect(),
            objects,
            prepared: planner.prepared,
            curves: planner.curves,
            longest_input: planner.longest_input,
            threads,
            seed: options.seed,
        };
        within_memory(&planned)?;
        planned_processes.push(planned);
    }
    begin_at_once(&mut planned_processes);
    for planned in planned_processes {
        let planned = scaled(planned, options, replayed_span(workload))?;
        plan.processes.extend(dealt(planned, options.devices.max(1))?);
    }
    // What the user tells of a key can still make something of it.
    if plan.processes.is_empty() && !plan.keys.iter().any(MappedKey::is_to_be_told) {
        return Err(PlanError::Nothing);
    }
    sample::draw_judged(&mut plan.processes, options.seed);
    let known = |((function, reason), count)| Skipped { function, reason, count };
    plan.skipped = skipped.into_iter().map(known).collect();
    plan.skipped.sort_by_key(|it| std::cmp::Reverse(it.count));
    Ok(plan)
}

/// Inputs and results fit into memory, whatever a recording says.
fn within_memory(process: &ReplayProcess) -> Result<(), PlanError> {
    let hint = "longer messages are measured by no verb";
    let too_long = |what, count: u64| {
        let most = MAX_MESSAGE_BYTES as u64;
        if count > most { Err(PlanError::TooMany { what, count, most, hint }) } else { Ok(()) }
    };
    too_long("bytes in an input", process.longest_input.into())?;
    let steps = process.threads.iter().flat_map(|thread| &thread.steps);
    let results = steps.filter(|step| step.gives_bytes());
    let longest = results.map(|step| step.room.saturating_sub(SPARE_BYTES)).max();
    too_long("bytes in a result", longest.unwrap_or_default().into())?;
    let prepared = process.prepared.iter().map(|input| u64::from(input.kind.bytes())).sum();
    too_long("bytes in inputs that are made before", prepared)
}

/// The time that a program took before its first call is none of its load on a token.
fn begin_at_once(processes: &mut [ReplayProcess]) {
    let threads = || processes.iter().flat_map(|process| &process.threads);
    let moments = threads().flat_map(|thread| &thread.steps).filter_map(|step| match step.due {
        Due::At(at) => Some(at),
        Due::AfterAnswer(_) => None,
    });
    let first = moments.min().unwrap_or_default();
    let threads = processes.iter_mut().flat_map(|process| &mut process.threads);
    for step in threads.flat_map(|thread| &mut thread.steps) {
        if let Due::At(at) = &mut step.due {
            *at = *at - first;
        }
    }
}

/// From the first call of a workload to the end of its last.
#[must_use]
pub fn replayed_span(workload: &Workload) -> Nanos {
    let threads = || workload.threads.iter().filter(|thread| !thread.calls.is_empty());
    let start = threads().map(|thread| thread.start).min().unwrap_or_default();
    let ends = threads().filter_map(|thread| {
        let (begin, call) = thread.timed_calls().last()?;
        Some(Nanos(begin.0.saturating_add(call.duration.0)))
    });
    ends.max().unwrap_or_default() - start
}

/// How many times the clients of a plan, made for a scale of one, can be replayed on so many devices.
#[must_use]
pub fn most_scale(plan: &ReplayPlan, devices: u32) -> u32 {
    let most_of = |process: &ReplayProcess| {
        let threads = MOST_THREADS / process.threads.len().max(1);
        let sessions = MOST_SESSIONS / (ROUNDS_OF_STEADY * process.sessions.len()).max(1);
        let objects = MOST_OBJECTS / (ROUNDS_OF_STEADY * process.objects as usize).max(1);
        threads.min(sessions).min(objects) as u32
    };
    plan.processes.iter().map(most_of).min().unwrap_or_default().saturating_mul(devices)
}

/// Rounds of a client in a steady replay.
const ROUNDS_OF_STEADY: usize = 2;

/// The same clients so many times, each with sessions and a start of its own.
fn scaled(
    one: ReplayProcess,
    options: &ReplayOptions,
    span: Nanos,
) -> Result<ReplayProcess, PlanError> {
    let scale = options.scale.max(1);
    let rounds = if options.steady { ROUNDS_OF_STEADY } else { 1 };
    let threads = one.threads.len().saturating_mul(scale as usize);
    let most = MOST_THREADS.saturating_mul(options.devices.max(1) as usize);
    if threads > most {
        return Err(too_many("threads in a process", threads, most));
    }
    let count = one.sessions.len();
    let sessions = count.saturating_mul(scale as usize).saturating_mul(rounds);
    let most = MOST_SESSIONS.saturating_mul(options.devices.max(1) as usize);
    if sessions > most {
        return Err(too_many("sessions", sessions, most));
    }
    let objects = (one.objects as usize).saturating_mul(scale as usize).saturating_mul(rounds);
    let most = MOST_OBJECTS.saturating_mul(options.devices.max(1) as usize);
    if objects > most {
        return Err(too_many("objects that calls make", objects, most));
    }
    let mut random = SplitMix(one.seed ^ 0x5CA1_ED00);
    let nothing = ReplayProcess { threads: Vec::new(), sessions: Vec::new(), ..one.clone() };
    let mut all = ReplayProcess { objects: 0, ..nothing };
    for copy in 0..scale {
        // The first is as it was recorded; the others begin somewhere in the time of it.
        let delay = match (copy, options.steady) {
            (0, false) => 0,
            _ => (random.uniform() * span.0 as f64) as u64,
        };
        let threads = one.threads.iter().map(|thread| ReplayThread {
            copy,
            steps: Vec::with_capacity(rounds * thread.steps.len()),
            ..*thread
        });
        let mut threads: Vec<ReplayThread> = threads.collect();
        for round in 0..rounds as u64 {
            let its_own = ItsOwn {
                first_session: all.sessions.len() as u32,
                first_object: all.objects,
                later: delay.saturating_add(span.0.saturating_mul(round)),
            };
            all.sessions.extend(&one.sessions);
            all.objects += one.objects;
            for (thread, recorded) in threads.iter_mut().zip(&one.threads) {
                thread.steps.extend(recorded.steps.iter().map(|step| its_own.moved(step)));
            }
        }
        all.threads.extend(threads);
    }
    Ok(all)
}

/// The clients of a process dealt to so many devices, a process for each that has any.
fn dealt(all: ReplayProcess, devices: u32) -> Result<Vec<ReplayProcess>, PlanError> {
    if devices == 1 {
        return Ok(vec![all]);
    }
    let mut dealt: Vec<ReplayProcess> = Vec::new();
    for device in 0..devices {
        let its_own = |thread: &&ReplayThread| thread.copy % devices == device;
        let threads: Vec<ReplayThread> = all.threads.iter().filter(its_own).cloned().collect();
        if threads.len() > MOST_THREADS {
            return Err(too_many("threads in a process", threads.len(), MOST_THREADS));
        }
        // Those of the other clients are not opened here.
        let steps = threads.iter().flat_map(|thread| &thread.steps);
        let used: BTreeSet<u32> = steps.filter_map(|step| step.session).collect();
        let sessions =
            all.sessions.iter().zip(0..).map(|(open, place)| *open && used.contains(&place));
        let sessions = sessions.collect();
        if !threads.is_empty() {
            dealt.push(ReplayProcess { device, threads, sessions, ..all.clone() });
        }
    }
    Ok(dealt)
}

/// What a copy of the clients has for itself.
struct ItsOwn {
    first_session: u32,
    first_object: u32,
    /// So much later it begins, in nanoseconds.
    later: u64,
}

impl ItsOwn {
    /// A step in sessions and with objects of its own, so much later.
    fn moved(&self, step: &ReplayStep) -> ReplayStep {
        ReplayStep {
            session: step.session.map(|session| session + self.first_session),
            object: step.object.map(|object| object + self.first_object),
            makes: step
                .makes
                .map(|made| MadeObject { place: made.place + self.first_object, ..made }),
            due: match step.due {
                Due::At(at) => Due::At(Nanos(at.0.saturating_add(self.later))),
                after => after,
            },
            ..*step
        }
    }
}

fn too_many(what: &'static str, count: usize, most: usize) -> PlanError {
    PlanError::TooMany { what, count: count as u64, most: most as u64, hint: RECORD_LESS }
}

#[cfg(test)]
mod tests;
