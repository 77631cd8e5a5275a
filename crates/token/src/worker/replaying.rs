//! A recorded load, replayed by this process: keys and inputs made, threads run, keys removed,
//! whoever is left to hear of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tapstone_measure::units::Nanos;
use tapstone_replay::{PreparedReplay, ReplaySite, ReplayTrouble, prepare_replay};

use super::keys::numbered_key_id;
use super::{Token, Worker, WorkerEvent};
use crate::protocol::{Login, Order, ReplayJob, Report, Task, Trouble};

impl Worker {
    /// Prepares a replay, and runs it when it is told to.
    pub(super) fn replay(&mut self, job: ReplayJob) -> io::Result<()> {
        let board = self.board()?;
        let token = self.token()?;
        token.finish().ok();
        let prepared = match token.prepare_replay(job) {
            Ok(prepared) => prepared,
            Err(trouble) => {
                self.report(&Report::ReplayReady(Err(trouble)));
                return Ok(());
            }
        };
        let evidence = prepared.evidence(&self.token()?.main);
        self.report(&Report::ReplayReady(Ok(evidence)));
        let Some(at) = self.wait_for_start() else {
            let token = self.token()?;
            let keys = prepared.discard(&token.main);
            token.forget_if_gone(keys.is_ok());
            self.report(&Report::Replayed { threads: Vec::new(), keys, failure: None });
            return Ok(());
        };
        let stop = Arc::new(AtomicBool::new(false));
        let events = self.events.clone();
        let ended = move || {
            let _ = events.send(WorkerEvent::Ended);
        };
        // The first cell is the main thread's.
        let running = prepared.start(at, |thread| board.cell(1 + thread), &stop, &ended);
        self.wait_for_threads(running.threads(), &stop);
        let token = self.token()?;
        let failure = running.failure().map(ToString::to_string);
        let (threads, keys) = running.finish(&token.main);
        token.forget_if_gone(keys.is_ok());
        self.report(&Report::Replayed { threads, keys, failure });
        Ok(())
    }

    /// The moment at which the replay begins; `None` when it does not.
    fn wait_for_start(&mut self) -> Option<Nanos> {
        loop {
            match self.inbox.recv() {
                Ok(WorkerEvent::Order(Order::Task(Task::Start { at }))) => return Some(at),
                Ok(WorkerEvent::Order(Order::Task(Task::Close { .. }))) => return None,
                Ok(WorkerEvent::Abandoned) | Err(_) => {
                    self.abandoned = true;
                    return None;
                }
                // Late words of threads that were called off.
                Ok(_) => {}
            }
        }
    }

    /// Until all threads have ended; whoever wants an end before stops them.
    fn wait_for_threads(&mut self, threads: usize, stop: &AtomicBool) {
        let mut ended = 0;
        while ended < threads {
            match self.inbox.recv() {
                Ok(WorkerEvent::Ended) => ended += 1,
                Ok(WorkerEvent::Order(Order::Task(Task::Close { .. }))) => {
                    stop.store(true, Relaxed);
                }
                Ok(WorkerEvent::Abandoned) | Err(_) => {
                    self.abandoned = true;
                    stop.store(true, Relaxed);
                    // Threads end by themselves now; their words are heard as they come.
                }
                Ok(_) => {}
            }
        }
    }
}

impl Token {
    fn prepare_replay(&mut self, job: ReplayJob) -> Result<PreparedReplay, Trouble> {
        let ReplayJob { run, first_worker, process } = job;
        let shared = &self.shared;
        let site = ReplaySite {
            module: &shared.module,
            slot: shared.slot,
            main: &self.main,
            read_only: shared.read_only,
            private: shared.login != Login::None,
            pin: shared.login.pin(),
            run: &run,
            key_id: &|number| numbered_key_id(first_worker, number),
            note: &|id| shared.note(&run, id).map_err(|trouble| trouble.to_string()),
        };
        prepare_replay(&site, process).map_err(|trouble| match trouble {
            ReplayTrouble::Call(failure) => Trouble::Call { lane: 0, failure },
            ReplayTrouble::NotNoted(why) => Trouble::NotNoted { why },
        })
    }

    /// Forgets the notes of keys that are gone from the token.
    fn forget_if_gone(&self, is_gone: bool) {
        if is_gone {
            self.shared.forget_keys();
        }
    }
}
