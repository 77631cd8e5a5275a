//! What the controller and a worker process say to each other.
//!
//! A module runs in a process of its own, because it can hang, crash or print. Orders go in by
//! one pipe and reports come back by another, as length-prefixed postcard frames.
//!
//! An [`Order`] names paths and holds the PIN, and stays on its machine. A [`Task`] does neither:
//! it is what may come from another machine, through an agent that adds its own paths and PIN.
//! Only the clock that moments are counted on is then another one.

mod kept;

use std::path::PathBuf;

pub use self::kept::{Commitment, ShownKey, ShownLane, ShownResult, ShownResults};
use serde::{Deserialize, Serialize};
pub use tapstone_key_journal::OwnKey;
use tapstone_measure::contention::Contention;
use tapstone_measure::looper::{LoopEnd, WarmUpResult};
use tapstone_measure::recorder::{LaneEnd, SliceGrid};
use tapstone_measure::slice::Slice;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function};
use tapstone_replay::{ReplayEvidence, ReplayProcess, ReplayedThread};
use tapstone_worker::WorkerProtocol;
pub use tapstone_worker::{receive, send};

use crate::catalogue::Variant;
use crate::material::{ForToken, KeyMaterial, Output};
use crate::module::{LibraryInfo, LoadError, MechanismInfo, ModuleArguments, SlotInfo, TokenInfo};
use tapstone_pin::Pin;

/// To a worker, from whoever started it on the same machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Load and initialise a module; the board names the call in flight if that never returns.
    Load {
        /// The path of the PKCS #11 module.
        module: PathBuf,
        /// What C_Initialize is told, beyond the standard's flags.
        arguments: Option<ModuleArguments>,
        /// The path of the shared memory in which the worker notes its calls.
        board: PathBuf,
    },
    /// List slots and tokens, with the mechanisms of each token if asked.
    Slots {
        /// Whether the mechanisms are listed, too.
        mechanisms: bool,
    },
    /// Use this slot's token from now on.
    Enter(Enter),
    /// Destroy these keys, which runs on this machine made and left.
    Reclaim {
        /// What they are found by.
        keys: Vec<OwnKey>,
    },
    /// Replay a recorded load. An order, since an agent lets nobody choose what it calls.
    Replay(Box<ReplayJob>),
    /// A task, once the worker has logged in.
    Task(Task),
}

/// A process of a replay.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayJob {
    /// Marks the keys that this run makes: their label.
    pub run: String,
    /// Unique in the run, and part of the ids of keys.
    pub first_worker: u32,
    /// The steps of its threads, and the keys that they need.
    pub process: ReplayProcess,
}

/// What a worker does with the token that it has entered. It names no file and holds no secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Make or find the keys of a case.
    Prepare(Box<Job>),
    /// The inputs of the case's lanes, each for every key; then one trial operation a lane.
    Inputs(Vec<Vec<Ring>>),
    /// Start the threads and let them warm up.
    Run(Box<CaseRun>),
    /// All workers are warm: begin at this moment.
    Start {
        /// On this machine's CLOCK_MONOTONIC.
        at: Nanos,
    },
    /// How long does an order take to reach the workers while their threads are busy?
    Ping,
    /// All workers have completed their first operation: the window is this.
    Open {
        /// When the window opens, on this machine's CLOCK_MONOTONIC.
        at: Nanos,
        /// When it closes, if that is known.
        closes: Option<Nanos>,
    },
    /// The window is to close.
    Close {
        /// When; a moment in the past means now.
        at: Nanos,
    },
    /// Send the raw samples that were kept where they were made.
    Samples,
    /// Send the results that were kept for verification.
    Outputs,
    /// Make the inputs of the case, and try one operation of each lane. For an agent, which never
    /// lets another machine choose what a key signs.
    MakeInputs {
        /// The run's seed, a part of what the inputs come from.
        seed: u64,
        /// Inputs in a ring.
        ring: u32,
    },
    /// Judge the results that were kept. For an agent, whose worker has no part in it.
    Judge {
        /// Settles which results are judged when the time does not suffice for all.
        seed: u64,
        /// How long the judging may take, all workers of the agent together.
        at_most: Nanos,
    },
    /// Show these of the results that were judged last, each by its place among those that the agent
    /// has committed itself to. It does so once.
    Show {
        /// The places that are asked for, of each lane in the order of the plan.
        drawn: Vec<Vec<u64>>,
    },
    /// Destroy the case's keys.
    Finish,
    /// Look for keys that killed runs left, and destroy them if asked.
    Leftovers {
        /// Whether they are destroyed, or only listed.
        remove: bool,
        /// Only those of this run.
        run: Option<String>,
    },
}

impl From<Task> for Order {
    fn from(task: Task) -> Self {
        Self::Task(task)
    }
}

/// The protocol between the controller and workers that load a module.
#[derive(Clone, Copy, Debug)]
pub enum TokenProtocol {}

impl WorkerProtocol for TokenProtocol {
    type Order = Order;
    type Task = Task;
    type Report = Report;
    type Call = Pkcs11Function;

    fn call_of_number(number: u8) -> Option<Pkcs11Function> {
        Pkcs11Function::from_number(number)
    }

    fn outlives_process(call: Pkcs11Function) -> bool {
        call.makes_or_removes_objects()
    }
}

/// Which token to use, and how to log in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Enter {
    /// The CK_SLOT_ID of the slot.
    pub slot: u64,
    /// How the worker logs in.
    pub login: Login,
}

/// How to log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Login {
    /// The worker does not log in.
    None,
    /// The worker logs in with this PIN.
    Pin(Pin),
    /// The token has a PIN pad of its own.
    ProtectedPath,
}

impl Login {
    /// The PIN that C_Login gets, if there is one.
    #[must_use]
    pub fn pin(&self) -> Option<&Pin> {
        match self {
            Self::Pin(pin) => Some(pin),
            Self::None | Self::ProtectedPath => None,
        }
    }
}

/// The operations of a case and their keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Marks the keys that this run makes: their label.
    pub run: String,
    /// What is measured: one lane, or several that are mixed.
    pub lanes: Vec<LaneJob>,
    /// The number of this process's first thread; unique in the run, and part of every IV and of
    /// the ids of keys.
    pub first_worker: u32,
    /// Own keys are made extractable where verification needs their value.
    pub verify: bool,
    /// Which thread uses which key.
    pub key_use: KeyUse,
    /// Where operations that generate keys keep them.
    pub new_keys: NewKeys,
    /// Objects that are there besides the keys.
    pub extra_objects: u32,
    /// Sessions that are open besides those that measure.
    pub idle_sessions: u32,
}

/// Where an operation that generates keys keeps them until it destroys them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewKeys {
    /// Session objects, which end with their session.
    ForSession,
    /// Token objects, as with `--token-keys`: many tokens make these far more slowly.
    OnToken,
}

/// Which thread uses which of a lane's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyUse {
    /// Every thread uses all of them in turn: operation `n` takes key `n` modulo their number.
    InTurn,
    /// Each thread has one of its own.
    PerThread,
}

impl KeyUse {
    /// The key of one operation of one thread, of `keys` (more than none).
    #[must_use]
    pub fn key(self, thread: usize, operation: u64, keys: usize) -> usize {
        match self {
            Self::InTurn => (operation % keys as u64) as usize,
            Self::PerThread => thread % keys,
        }
    }
}

/// One operation and its keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneJob {
    /// The operation with all its parameters.
    pub variant: Variant,
    /// The keys that it uses.
    pub keys: KeyPlan,
}

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyPlan {
    /// Made for the run and destroyed after it.
    Own {
        /// How many keys are made.
        count: u32,
        /// On the token, where they outlive a session; else session objects.
        on_token: bool,
    },
    /// The user's: found by class and these attributes, never changed.
    Existing {
        /// The CKA_LABEL of the key.
        label: Option<String>,
        /// The CKA_ID of the key.
        id: Option<Vec<u8>>,
    },
}

/// The inputs for one key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ring {
    /// What the token is handed. With `by_token`, cipher texts are still messages.
    pub inputs: ForToken,
    /// Software does not know the key: the token makes the cipher texts itself, and is asked to
    /// undo or to confirm what it did.
    pub by_token: bool,
}

/// How a case is run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseRun {
    /// How many threads measure.
    pub threads: u32,
    /// What makes a thread start its next operation.
    pub pace: Pace,
    /// The number of each thread's first operation. Random in its high bits, so that no IV is
    /// ever used twice under a key that lives longer than the run.
    pub first: u64,
    /// How many operations each thread does; without it the window's closing ends them.
    pub counts: Option<Vec<u64>>,
    /// How slices are cut.
    pub grid: SliceGrid,
    /// How long the threads warm up, at least one operation each.
    pub warm_up: Nanos,
    /// Memory for results to be verified, for this process.
    pub keep_bytes: u64,
    /// Chooses which results are kept when not all are.
    pub seed: u64,
    /// The order of the lanes in a mix, by operation number; empty for one lane.
    pub mix: Vec<u8>,
    /// Whether raw samples are sent.
    pub samples: bool,
    /// Also time each call of an operation.
    pub phases: bool,
    /// Failures in a row that end a thread.
    pub max_failures: u32,
    /// Reopen sessions after a lost device.
    pub reconnect: bool,
}

/// What makes a thread start its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pace {
    /// As soon as the one before has ended, with two clock readings each.
    Closed,
    /// The same with one.
    Chained,
    /// At this process's share of a rate, equally spaced.
    Constant(PerSecond),
    /// At this process's share of a rate, independently of each other.
    Poisson(PerSecond),
}

/// From a worker to the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report {
    /// The module is loaded.
    Loaded(Result<LibraryInfo, LoadError>),
    /// The slots, with the mechanisms of each token if asked.
    Slots(Result<Vec<(SlotInfo, Vec<MechanismInfo>)>, Pkcs11Failure>),
    /// The token is entered; the flags are those before the login.
    Entered(Result<TokenInfo, Trouble>),
    /// The keys are there.
    Prepared(Result<Vec<LaneReady>, Trouble>),
    /// One operation of each lane was tried.
    Tried(Vec<Result<(), Pkcs11Failure>>),
    /// All threads are warm.
    Ready(Result<Vec<WarmUpResult>, Pkcs11Failure>),
    /// Every thread has completed its first operation.
    FirstDone,
    /// The answer to a ping.
    Pong,
    /// The window's opening is known to this worker's threads from this moment on: later than the
    /// opening itself where the order came too late.
    Opened {
        /// On this machine's CLOCK_MONOTONIC.
        from: Nanos,
    },
    /// Closed slices by lane; the lane after the last is the generator's lateness.
    Slices(Vec<(u8, Slice)>),
    /// Raw samples: while the case runs, or when they are asked for; then the last part is empty.
    Samples(Vec<RawSample>),
    /// All threads have ended.
    Done(Box<Done>),
    /// Results for verification, one lane's at a time; the last part is empty.
    Outputs {
        /// The number of the lane in the case.
        lane: u8,
        /// The results, in the order of threads and operations.
        outputs: Vec<Output>,
        /// With the last part: answers that cannot be, while the results were read.
        broken: Vec<Broken>,
    },
    /// What an agent found of the results that its worker kept, by lane.
    Judged {
        /// The count of each lane, in the order of the plan.
        lanes: Vec<LaneTally>,
        /// Answers that cannot be, while the results were read.
        broken: Vec<Broken>,
    },
    /// The results that the coordinator drew.
    Shown(Box<ShownResults>),
    /// The case's keys are gone, or were not this run's.
    Finished(Result<(), Pkcs11Failure>),
    /// The keys and inputs of a replay are there.
    ReplayReady(Result<ReplayEvidence, Trouble>),
    /// A replay is over, whether or not it came to its end.
    Replayed {
        /// What its threads did.
        threads: Vec<ReplayedThread>,
        /// Its keys are gone.
        keys: Result<(), Pkcs11Failure>,
        /// Why not all of its threads were started.
        failure: Option<String>,
    },
    /// Keys that killed runs left.
    Leftovers(Result<Vec<Leftover>, Pkcs11Failure>),
}

/// What stood in the way of a token or its keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Trouble {
    /// A call failed, on behalf of a lane.
    #[error("{failure}")]
    Call {
        /// The number of the lane in the case.
        lane: u8,
        /// The function, and the code that it returned.
        failure: Pkcs11Failure,
    },
    /// An agent's configuration does not allow it; the words end with a hint.
    #[error("{text}")]
    NotAllowed {
        /// What is not allowed, and what would allow it.
        text: String,
    },
    /// No key matches what was asked for.
    #[error("no key of class {class} matches {wanted}")]
    NoKey {
        /// The class that the operation needs.
        class: String,
        /// The label or id.
        wanted: String,
    },
    /// More than one key matches.
    #[error("{count} keys of class {class} match {wanted}: their ids are {}", .ids.join(", "))]
    ManyKeys {
        /// The class that the operation needs.
        class: String,
        /// The label or id.
        wanted: String,
        /// How many keys match.
        count: usize,
        /// Their CKA_IDs in hexadecimal.
        ids: Vec<String>,
    },
    /// A key matches, but it is not of the kind or length that the operation takes.
    #[error("the key with {wanted} is not {expected}")]
    WrongKey {
        /// The label or id.
        wanted: String,
        /// What the operation takes.
        expected: String,
    },
    /// Without a note of it no key is made on a token: who is killed would leave it for ever.
    #[error("the key cannot be noted, and is not made: {why}")]
    NotNoted {
        /// What the file of notes says.
        why: String,
    },
}

/// How the results of one lane were judged where they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneTally {
    /// Holds the agent to what it kept; `None`: a coordinator could judge nothing of it.
    pub kept: Option<Commitment>,
    /// Results that were judged.
    pub checked: u64,
    /// How many of them were wrong.
    pub wrong: u64,
    /// The token had a part in the judging.
    pub by_token: bool,
}

/// A lane whose keys are there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneReady {
    /// What the verifier needs to know of each key.
    pub keys: Vec<KeyReady>,
    /// The token says that hardware does the mechanism; `None` when it does not say.
    pub hardware: Option<bool>,
}

/// A key that is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyReady {
    /// Its public half, or its value where that may be read.
    pub material: KeyMaterial,
    /// CKA_TOKEN.
    pub on_token: bool,
    /// CKA_SENSITIVE, where it has one.
    pub sensitive: Option<bool>,
    /// CKA_EXTRACTABLE, where it has one.
    pub extractable: Option<bool>,
    /// CKA_ALWAYS_AUTHENTICATE.
    pub always_authenticate: bool,
}

/// One operation as it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawSample {
    /// The thread's number in the run.
    pub worker: u32,
    /// The number of the lane in the case.
    pub lane: u8,
    /// On the machine's CLOCK_MONOTONIC.
    pub start: Nanos,
    /// From start to end.
    pub latency: Nanos,
    /// The code that it failed with; 0: none.
    pub code: u64,
}

/// What a worker process has to say when its threads have ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// What each thread has to say at its end.
    pub threads: Vec<ThreadEnd>,
    /// Processor time of this process from about the window's opening to its closing.
    pub user: Nanos,
    /// The part of it in the kernel.
    pub system: Nanos,
    /// The wall-clock time in which that was used.
    pub elapsed: Nanos,
    /// What kept the threads from running meanwhile.
    pub contention: Contention,
    /// Samples that found no room.
    pub samples_dropped: u64,
}

/// How one thread ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadEnd {
    /// What ended it: the window, its number of operations, or failures.
    pub ended: LoopEnd,
    /// The last call that failed, if one did.
    pub last_failure: Option<Pkcs11Failure>,
    /// Answers that cannot be, of operations before the window or cut off by its end.
    pub broken_outside: Vec<Broken>,
    /// What it recorded besides slices, by lane.
    pub lanes: Vec<LaneEnd>,
    /// Operations per lane whose results may be verified.
    pub eligible: Vec<u64>,
    /// Times without a device.
    pub outages: Vec<Outage>,
    /// Calls of an operation and the time in them, when that was asked for.
    pub phases: Vec<(Pkcs11Function, u64, Nanos)>,
}

/// Answers of one lane that break PKCS #11 in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The number of the lane in the case.
    pub lane: u8,
    /// The first of them.
    pub first: Pkcs11Failure,
    /// How many there were.
    pub count: u64,
}

/// A time without a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// When the failure was seen.
    pub start: Nanos,
    /// Until a session was open again; `None`: it never was.
    pub length: Option<Nanos>,
    /// What the failure was.
    pub failure: Pkcs11Failure,
}

/// A key that a run left on a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its label, which names the run.
    pub label: String,
    /// The object's class, CKO_… in words.
    pub class: String,
    /// Its CKA_ID in hexadecimal.
    pub id: String,
    /// Whether it was destroyed.
    pub removed: bool,
    /// Who it belongs to. A worker does not know.
    pub owner: KeyOwner,
}

/// Who a key belongs to that a run made on a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOwner {
    /// A run on this machine that goes on.
    LiveRun,
    /// A run on this machine that was killed.
    DeadRun,
    /// This machine knows nothing of it: another one may use it.
    Unknown,
}
