//! The replay in the process that has loaded the module: keys and inputs made, threads run, keys
//! removed.

mod calls;
mod handles;
mod kept;
mod key_login;
mod keys;
mod mechanism;
mod prepare;
mod schedule;
mod sessions;
mod templates;
mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;

use cryptoki_sys::*;
use tapstone_measure::units::Nanos;
use tapstone_module::{Module, Session};
use tapstone_names::pkcs11::Pkcs11Failure;
use tapstone_pin::Pin;
use tapstone_token_operations::material::peer_point;
use tapstone_worker::BoardCell;

use self::handles::SharedHandles;
use self::key_login::KeyLogin;
use self::keys::MadeKey;
use self::prepare::PreparedBytes;
use self::sessions::SharedSessions;
use self::thread::{ReplayingThread, ThreadMemory};
use crate::inputs::noise;
use crate::measured::ReplayedThread;
use crate::steps::{ReplayProcess, ReplayThread};
use crate::verified::ReplayEvidence;

/// The token that a process replays on.
pub struct ReplaySite<'a> {
    /// The module, loaded and initialised.
    pub module: &'a Arc<Module>,
    /// The slot of the token.
    pub slot: CK_SLOT_ID,
    /// Logged in; it owns the keys.
    pub main: &'a Session,
    /// Sessions can only be opened for reading.
    pub read_only: bool,
    /// There was a login: keys are private.
    pub private: bool,
    /// The PIN of that login, for keys that ask for it again.
    pub pin: Option<&'a Pin>,
    /// The label of all that is made.
    pub run: &'a str,
    /// The CKA_ID of a key by its number, which marks it as this program's.
    pub key_id: &'a dyn Fn(u32) -> Vec<u8>,
    /// Notes a key before it is made on the token.
    pub note: &'a dyn Fn(&[u8]) -> Result<(), String>,
}

/// Results of a process are kept until they fill so many bytes.
const KEPT_RESULTS: usize = 64 << 20;

/// What stood in the way of keys or inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayTrouble {
    /// A call of the module failed.
    Call(Pkcs11Failure),
    /// A key could not be noted, and was not made.
    NotNoted(String),
}

impl From<Pkcs11Failure> for ReplayTrouble {
    fn from(failure: Pkcs11Failure) -> Self {
        Self::Call(failure)
    }
}

/// A process whose keys and inputs are there.
pub struct PreparedReplay {
    process: ReplayProcess,
    shared: Arc<SharedReplay>,
    sessions: Arc<SharedSessions>,
    /// Of each thread.
    memory: Vec<ThreadMemory>,
}

/// What the threads of a process share and do not change.
struct SharedReplay {
    module: Arc<Module>,
    slot: CK_SLOT_ID,
    read_only: bool,
    keys: Vec<MadeKey>,
    key_login: KeyLogin,
    /// For reads of objects that no operation used.
    stand_in: Option<CK_OBJECT_HANDLE>,
    prepared: Vec<PreparedBytes>,
    /// The other party's point on each curve.
    points: Vec<Vec<u8>>,
    /// What calls make: objects of their sessions.
    objects: SharedHandles,
    /// Of pairs among them the public halves, which go with the private ones.
    public_halves: SharedHandles,
    /// The places of those of each session, which are gone with it.
    objects_of_session: Vec<Vec<u32>>,
    /// Objects that calls make are private (CKA_PRIVATE).
    private: bool,
    /// Pseudo-random bytes, as many as the longest input and some more.
    noise: Vec<u8>,
    /// Bytes of results that may still be kept.
    room_for_results: AtomicUsize,
    run: String,
    first_id: Vec<u8>,
}

impl SharedReplay {
    /// Destroys all that was made.
    fn destroy_objects(&self, main: &Session) -> Result<(), Pkcs11Failure> {
        let stand_in = self.stand_in.map_or(Ok(()), |object| main.destroy_object(object));
        keys::destroy_keys(main, &self.keys).and(stand_in)
    }
}

/// Makes the keys and the inputs of a process. What was made before a failure is gone again.
///
/// # Errors
/// The token does not make a key or an input.
pub fn prepare_replay(
    site: &ReplaySite<'_>,
    process: ReplayProcess,
) -> Result<PreparedReplay, ReplayTrouble> {
    let keys = keys::make_keys(site, &process)?;
    let made = prepare::prepare_inputs(site, &process, &keys);
    let sessions = made.and_then(|prepared| {
        let sessions = SharedSessions::open(site, &process.sessions)?;
        Ok((prepared, sessions))
    });
    let (prepared, sessions) = match sessions {
        Ok(both) => both,
        Err(trouble) => {
            keys::destroy_keys(site.main, &keys).ok();
            return Err(trouble);
        }
    };
    let noise = noise(process.seed, process.longest_input);
    let point = |curve| peer_point(curve, process.seed).unwrap_or_default();
    let points = process.curves.iter().copied().map(point).collect();
    let stand_in = keys::make_stand_in(site, &process);
    let shared = SharedReplay {
        module: Arc::clone(site.module),
        slot: site.slot,
        read_only: site.read_only,
        keys,
        key_login: KeyLogin::new(site.pin),
        stand_in,
        prepared,
        points,
        objects: SharedHandles::new(process.objects as usize),
        public_halves: SharedHandles::new(process.objects as usize),
        objects_of_session: objects_of_sessions(&process),
        private: site.private,
        noise,
        room_for_results: AtomicUsize::new(KEPT_RESULTS),
        run: site.run.to_owned(),
        first_id: (site.key_id)(0),
    };
    let memory =
        |thread: &ReplayThread| ThreadMemory::for_steps(&thread.steps, &shared.room_for_results);
    let memory = process.threads.iter().map(memory).collect();
    Ok(PreparedReplay { process, shared: Arc::new(shared), sessions: Arc::new(sessions), memory })
}

/// The places of objects that calls make, by the place of their session.
fn objects_of_sessions(process: &ReplayProcess) -> Vec<Vec<u32>> {
    let mut objects = vec![Vec::new(); process.sessions.len()];
    for step in process.threads.iter().flat_map(|thread| &thread.steps) {
        if let (Some(made), Some(session)) = (step.makes, step.session) {
            objects[session as usize].push(made.place);
        }
    }
    objects
}

impl PreparedReplay {
    /// How many threads it has.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.process.threads.len()
    }

    /// What is known of its keys and inputs, for those who judge its results.
    #[must_use]
    pub fn evidence(&self, main: &Session) -> ReplayEvidence {
        let orders = self.process.keys.iter().zip(&self.shared.keys);
        let keys = orders.map(|(order, key)| keys::known_key(main, order.spec, *key)).collect();
        let signatures = self.shared.prepared.iter().map(|it| it.signature.clone()).collect();
        ReplayEvidence { keys, signatures }
    }

    /// Starts the threads; the replay begins at that moment of CLOCK_MONOTONIC. Each has a cell of
    /// the board, and calls `ended` when it is done. When one cannot be started, those that run are
    /// stopped, and [`RunningReplay::failure`] says so.
    #[must_use]
    pub fn start(
        self,
        at: Nanos,
        cell: impl Fn(usize) -> BoardCell,
        stop: &Arc<AtomicBool>,
        ended: &(impl Fn() + Clone + Send + 'static),
    ) -> RunningReplay {
        let Self { process, shared, sessions, memory } = self;
        let mut running =
            RunningReplay { threads: Vec::new(), shared: Arc::clone(&shared), failure: None };
        for (number, (plan, memory)) in process.threads.into_iter().zip(memory).enumerate() {
            let thread = ReplayingThread::new(
                plan,
                number as u32,
                Arc::clone(&shared),
                Arc::clone(&sessions),
                cell(number),
            );
            let stop_of_thread = Arc::clone(stop);
            let ended = ended.clone();
            let builder = std::thread::Builder::new().name(format!("replay-{number}"));
            let started = builder.spawn(move || {
                let _guard = StopsOnPanic(&stop_of_thread);
                let replayed = thread.replay(memory, at, &stop_of_thread);
                ended();
                replayed
            });
            match started {
                Ok(handle) => running.threads.push(handle),
                Err(error) => {
                    stop.store(true, Relaxed);
                    running.failure = Some(error);
                    break;
                }
            }
        }
        running
    }

    /// Removes the keys of a replay that does not begin.
    ///
    /// # Errors
    /// A key is still there.
    pub fn discard(self, main: &Session) -> Result<(), Pkcs11Failure> {
        self.shared.destroy_objects(main)
    }
}

/// Ends a replay in which a thread panicked: others would wait for its turns.
struct StopsOnPanic<'a>(&'a AtomicBool);

impl Drop for StopsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// A replay that goes on.
pub struct RunningReplay {
    threads: Vec<JoinHandle<ReplayedThread>>,
    shared: Arc<SharedReplay>,
    failure: Option<std::io::Error>,
}

impl RunningReplay {
    /// How many threads there are.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Why not all threads were started.
    #[must_use]
    pub const fn failure(&self) -> Option<&std::io::Error> {
        self.failure.as_ref()
    }

    /// Waits for the threads and removes the keys: what came of both.
    pub fn finish(self, main: &Session) -> (Vec<ReplayedThread>, Result<(), Pkcs11Failure>) {
        let joined = self.threads.into_iter().map(JoinHandle::join);
        let replayed = joined.map(Result::unwrap_or_default).collect();
        let gone = self.shared.destroy_objects(main);
        (replayed, gone)
    }
}
