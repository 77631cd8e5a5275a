//! The process that loads a module and measures it, on orders that come through a pipe.
//!
//! It does one thing at a time, in the order that the controller asks for: load, enter a token, prepare a
//! case, run it, hand over results, clean up. When the pipe ends, for whatever reason, it ends the
//! run, destroys what it made and goes.

mod bench;
mod capture;
mod case;
mod case_lane;
mod contention;
mod input;
mod kept_objects;
mod keys;
mod lane;
mod operation;
mod parameters;
mod replaying;
mod round_trip;
mod running;
mod shapes;
mod shared;
mod sink;
mod threads;
mod watch;

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use cryptoki_sys::*;
use tapstone_key_journal::{KeyJournal, TokenName, users_folder};
use tapstone_measure::looper::WarmUpResult;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function};
use tapstone_worker::{Board, CleanUpTimeouts, CleanUpWatch, private_pipes};

use self::case::Case;
use self::case_lane::LaneThread;
pub(crate) use self::keys::LABEL_MARK as RUN_MARK;
use self::keys::Sought;
use self::running::RunningCase;
use self::shared::Shared;
use crate::module::{Module, Session};
use crate::protocol::{
    Broken, Enter, Job, Leftover, Login, Order, Report, Task, Trouble, receive, send,
};

/// Runs a worker on this process's standard input and output until the controller has no more orders.
///
/// The pipes are moved out of the module's reach first: what it prints goes to standard error.
///
/// # Errors
/// What the pipes say. Everything that goes wrong with the module is a report.
pub fn serve() -> io::Result<()> {
    let (orders, reports) = private_pipes()?;
    let (events, inbox) = mpsc::channel();
    let sender = events.clone();
    let board = Arc::new(OnceLock::new());
    let watched = Arc::clone(&board);
    thread::Builder::new().name("orders".into()).spawn(move || {
        let mut orders = BufReader::new(orders);
        while let Ok(Some(order)) = receive(&mut orders) {
            if sender.send(WorkerEvent::Order(order)).is_err() {
                return;
            }
        }
        let _ = sender.send(WorkerEvent::Abandoned);
        wait_until_stuck(&watched);
        // SAFETY: ends the process at once, without the module's exit handlers, which may hang too.
        unsafe { libc::_exit(3) };
    })?;
    let worker = Worker {
        reports,
        events,
        inbox,
        board,
        module: None,
        token: None,
        abandoned: false,
        unheard: Ok(()),
    };
    worker.serve()
}

/// Returns when this process, which cleans up, does not get on. A module that hangs would keep it
/// for ever when the controller is dead: nobody else is left to kill it.
fn wait_until_stuck(board: &OnceLock<Arc<Board>>) {
    let Some(board) = board.get() else { return thread::sleep(RESPITE.otherwise) };
    let is_lasting = |number| {
        Pkcs11Function::from_number(number).is_some_and(Pkcs11Function::makes_or_removes_objects)
    };
    let mut watch = CleanUpWatch::new(Arc::clone(board));
    while !watch.is_stuck(RESPITE, is_lasting) {
        thread::sleep(LOOK_AT_BOARD);
    }
}

/// How long a worker may stand still after its controller is gone, while it cleans up.
const RESPITE: CleanUpTimeouts = CleanUpTimeouts {
    in_lasting_call: Duration::from_secs(60),
    otherwise: Duration::from_secs(10),
};

/// Between two looks at whether it gets on.
const LOOK_AT_BOARD: Duration = Duration::from_millis(100);

/// What the worker's main thread waits for.
enum WorkerEvent {
    Order(Order),
    /// The lab is gone.
    Abandoned,
    /// A thread is warm, or could not get so far.
    Ready(Result<WarmUpResult, Pkcs11Failure>),
    /// A thread has ended.
    Ended,
}

struct Worker {
    reports: File,
    events: Sender<WorkerEvent>,
    inbox: Receiver<WorkerEvent>,
    board: Arc<OnceLock<Arc<Board>>>,
    module: Option<Arc<Module>>,
    token: Option<Token>,
    /// The controller is gone: what was made is removed, and nothing more is reported.
    abandoned: bool,
    /// Why a report did not get through.
    unheard: io::Result<()>,
}

/// The token that is used.
struct Token {
    shared: Arc<Shared>,
    /// Owns the login and the keys of a case.
    main: Session,
    case: Option<Case>,
    /// The same while threads use it.
    running_case: Option<Arc<Case>>,
    finished: Vec<threads::FinishedThread>,
}

impl Worker {
    fn serve(mut self) -> io::Result<()> {
        while !self.abandoned {
            match self.inbox.recv() {
                Ok(WorkerEvent::Order(order)) => {
                    // Whatever is wrong with the pipes, what was made has to be removed.
                    if let Err(error) = self.obey(order) {
                        self.abandon(error);
                    }
                }
                // Late words of threads that were called off.
                Ok(WorkerEvent::Ready(_) | WorkerEvent::Ended) => {}
                Ok(WorkerEvent::Abandoned) | Err(_) => self.abandoned = true,
            }
        }
        self.leave();
        self.unheard
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Load { module, arguments, board } => {
                let board = Board::open(&board)?;
                tapstone_module::note_guard_faults(board.cell(0));
                let loaded = Module::load(&module, arguments.as_ref(), board.cell(0));
                let _ = self.board.set(board);
                let report = match loaded {
                    Ok(module) => {
                        let library = module.library();
                        self.module = Some(module);
                        library.map_err(Into::into)
                    }
                    Err(error) => Err(error),
                };
                self.report(&Report::Loaded(report));
            }
            Order::Slots { mechanisms } => {
                let slots = self.module()?.slots_with_mechanisms(mechanisms);
                self.report(&Report::Slots(slots));
            }
            Order::Enter(enter) => {
                let entered =
                    self.enter(enter).map_err(|failure| Trouble::Call { lane: 0, failure });
                self.report(&Report::Entered(entered));
            }
            Order::Reclaim { keys } => {
                let main = &self.token()?.main;
                let left = find_leftovers(main, &Sought::Keys(&keys), true);
                self.report(&Report::Leftovers(left));
            }
            Order::Replay(job) => self.replay(*job)?,
            Order::Task(task) => self.perform(task)?,
        }
        Ok(())
    }

    fn perform(&mut self, task: Task) -> io::Result<()> {
        match task {
            Task::Prepare(job) => {
                let prepared = self.token()?.prepare(*job);
                self.report(&Report::Prepared(prepared));
            }
            Task::Inputs(inputs) => {
                let place = self.board()?.cell(0);
                let tried = self.token()?.try_inputs(inputs, &place);
                self.report(&Report::Tried(tried));
            }
            Task::Run(run) => RunningCase::start(self, *run)?.steer(self)?,
            // They went as they were made.
            Task::Samples => self.report(&Report::Samples(Vec::new())),
            Task::Outputs => self.send_outputs()?,
            Task::Finish => {
                let finished = self.token()?.finish();
                self.report(&Report::Finished(finished));
            }
            Task::Leftovers { remove, run } => {
                let main = &self.token()?.main;
                let sought = run.as_deref().map_or(Sought::All, Sought::Run);
                let left = find_leftovers(main, &sought, remove);
                self.report(&Report::Leftovers(left));
            }
            // An agent does this itself, and sends no worker any of it.
            Task::MakeInputs { .. } | Task::Judge { .. } | Task::Show { .. } => {
                return Err(out_of_order());
            }
            // Steering what does not run is no mistake: a run can end by itself.
            Task::Start { .. } | Task::Ping | Task::Open { .. } | Task::Close { .. } => {}
        }
        Ok(())
    }

    fn enter(&mut self, enter: Enter) -> Result<crate::module::TokenInfo, Pkcs11Failure> {
        let module = Arc::clone(self.module.as_ref().ok_or(NOT_LOADED)?);
        let slot = enter.slot as CK_SLOT_ID;
        let token = module.token(slot)?;
        let read_only = token.has(CKF_WRITE_PROTECTED);
        let main = Session::open(&module, slot, read_only)?;
        if enter.login != Login::None {
            main.login(enter.login.pin())?;
        }
        let pin_refused = AtomicBool::new(false);
        let name = TokenName { serial: token.serial.clone(), label: token.label.clone() };
        let journal = Mutex::new(KeyJournal::new(users_folder(), name));
        let login = enter.login;
        let shared = Arc::new(Shared { module, slot, read_only, login, pin_refused, journal });
        self.token =
            Some(Token { shared, main, case: None, running_case: None, finished: Vec::new() });
        Ok(token)
    }

    fn send_outputs(&mut self) -> io::Result<()> {
        /// Results in one frame: the controller reads while the worker still collects.
        const BATCH: usize = 4096;
        let Some(token) = &self.token else { return Ok(()) };
        let Some(case) = &token.case else { return Ok(()) };
        for (index, lane) in case.lanes.iter().enumerate() {
            let index = index as u8;
            for bench in token.finished.iter().filter_map(|thread| thread.bench.as_ref()) {
                let Some(session) = &bench.session else { continue };
                let outputs = lane.outputs(&bench.lanes[usize::from(index)], session);
                for batch in outputs.chunks(BATCH) {
                    let outputs = batch.to_vec();
                    let report = Report::Outputs { lane: index, outputs, broken: Vec::new() };
                    send(&mut self.reports, &report)?;
                }
            }
            let broken = token.shared.module.take_violations().into_iter();
            let broken = broken.map(|(first, count)| Broken { lane: index, first, count });
            let outputs = Vec::new();
            let broken = broken.collect();
            send(&mut self.reports, &Report::Outputs { lane: index, outputs, broken })?;
        }
        Ok(())
    }

    /// Destroys what was made, logs out and finalizes, as far as the module lets it.
    fn leave(&mut self) {
        if let Some(mut token) = self.token.take() {
            token.finish().ok();
            if token.shared.login != Login::None {
                token.main.logout().ok();
            }
        }
        if let Some(module) = self.module.take() {
            module.finalize().ok();
        }
    }

    /// A controller that does not hear it is gone.
    fn report(&mut self, report: &Report) {
        if self.abandoned {
            return;
        }
        if let Err(error) = send(&mut self.reports, report) {
            self.abandon(error);
        }
    }

    fn abandon(&mut self, why: io::Error) {
        self.abandoned = true;
        // A controller that was killed is no error of this process.
        if why.kind() != io::ErrorKind::BrokenPipe {
            self.unheard = Err(why);
        }
    }

    fn module(&self) -> io::Result<&Arc<Module>> {
        self.module.as_ref().ok_or_else(out_of_order)
    }

    fn board(&self) -> io::Result<Arc<Board>> {
        self.board.get().cloned().ok_or_else(out_of_order)
    }

    fn token(&mut self) -> io::Result<&mut Token> {
        self.token.as_mut().ok_or_else(out_of_order)
    }
}

const NOT_LOADED: Pkcs11Failure = Pkcs11Failure {
    call: tapstone_names::pkcs11::Pkcs11Function::C_Initialize,
    code: tapstone_names::pkcs11::Rv(CKR_CRYPTOKI_NOT_INITIALIZED as u64),
};

/// What runs left; an answer of the module that cannot be is none.
fn find_leftovers(
    main: &Session,
    sought: &Sought<'_>,
    remove: bool,
) -> Result<Vec<Leftover>, Pkcs11Failure> {
    main.module.take_violations();
    let left = keys::leftovers(main, sought, remove);
    // A key whose label cannot be read is not known to be this program's.
    match main.module.take_violations().first() {
        Some(&(failure, _)) => left.and(Err(failure)),
        None => left,
    }
}

/// Only a lab with a mistake in it sends such orders.
fn out_of_order() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "an order that does not fit what came before")
}

impl Token {
    fn prepare(&mut self, job: Job) -> Result<Vec<crate::protocol::LaneReady>, Trouble> {
        self.finish().map_err(|failure| Trouble::Call { lane: 0, failure })?;
        // What came of the case before has been said.
        self.shared.module.take_violations();
        let case = Case::prepare(&self.shared, &self.main, job)?;
        let ready = case.ready(&self.shared);
        self.case = Some(case);
        // What reads attributes goes on without them; not so with a module that lies.
        if let Some(&(failure, _)) = self.shared.module.take_violations().first() {
            self.finish().ok();
            return Err(Trouble::Call { lane: 0, failure });
        }
        Ok(ready)
    }

    fn try_inputs(
        &mut self,
        inputs: Vec<Vec<crate::protocol::Ring>>,
        place: &tapstone_worker::BoardCell,
    ) -> Vec<Result<(), Pkcs11Failure>> {
        let Some(case) = &mut self.case else { return Vec::new() };
        let taken = case.take_inputs(&self.main, inputs);
        if taken.iter().any(Result::is_err) {
            return taken;
        }
        let worker = case.job.first_worker;
        let thread = LaneThread { index: 0, worker, keep_bytes: 0, limit: 0, seed: 0, place };
        if case.is_login() {
            // C_Login while the main session is logged in would fail for no fault of the token.
            return vec![Ok(())];
        }
        case::try_lanes(case, &self.shared, &self.main, thread)
    }

    /// Ends the case: threads' sessions and objects first, then the keys.
    fn finish(&mut self) -> Result<(), Pkcs11Failure> {
        self.end_threads();
        let Some(mut case) = self.case.take() else { return Ok(()) };
        if case.is_login() && self.shared.login != Login::None {
            self.main.login(self.shared.login.pin()).ok();
        }
        let made = case.made_on_token();
        match case.destroy(&self.main) {
            Err(failure) if failure.code.is_lost() => {
                self.renew_main()?;
                keys::destroy_found(&self.main, &made)?;
            }
            destroyed => destroyed?,
        }
        self.shared.forget_keys();
        Ok(())
    }

    /// A new main session after the device was lost and came back.
    fn renew_main(&mut self) -> Result<(), Pkcs11Failure> {
        let Shared { module, slot, read_only, .. } = &*self.shared;
        // First: a token may have room for no other session, or give the new one the old handle.
        self.main.close();
        module.forget_handles();
        self.main = Session::open(module, *slot, *read_only)?;
        self.shared.login_again(&self.main)
    }

    /// Lets go of the threads of the last run, with their sessions and what they kept.
    fn end_threads(&mut self) {
        for thread in &mut self.finished {
            if let Some(bench) = &mut thread.bench {
                bench.discard_objects();
            }
        }
        self.finished.clear();
    }
}
