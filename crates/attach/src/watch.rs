//! Watching processes: from finding their functions to taking the last probe away.

mod probing;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tapstone_events::Program;
use tapstone_measure::units::Nanos;

pub use self::watched::Watched;
use crate::calibration::{self, ProbeCost, RESERVED};
use crate::counted::FunctionTimes;
use crate::error::{self, AttachError};
use crate::functions::{WatchedFunction, note_called};
use crate::kernel::{Kernel, KernelPlan};
use crate::layout::{Record, RecordKind, Totals};
use crate::modules;
use crate::modules::ProcessModules;
use crate::plan::WatchPlan;
use crate::process::{self, Mapping};
use crate::spool::Spool;
use crate::targets::{modules_of, processes_of};

/// Processes that are being watched.
#[derive(Debug)]
pub struct Watch {
    plan: WatchPlan,
    kernel: Kernel,
    cost: ProbeCost,
    before: Totals,
    /// By number, from [`RESERVED`] on.
    functions: Vec<WatchedFunction>,
    /// By the module's file and the function.
    numbers: BTreeMap<(u64, u16, bool), u16>,
    /// Entries that have a probe, by file and offset.
    probed: BTreeSet<(u64, u64)>,
    programs: Vec<Program>,
    /// Those that are alive.
    alive: BTreeMap<u32, Vec<Mapping>>,
    /// Code that processes had, also of those that have ended.
    pub(crate) code: BTreeMap<u32, Vec<Mapping>>,
    notes: BTreeSet<String>,
    has_unseen_returns: bool,
    spool: Option<Spool>,
    times: Vec<FunctionTimes>,
    /// Functions with this number and higher ones have counts and no times.
    timed_functions: u32,
    started: Nanos,
    /// From the first probe to the flag that switches all on.
    attach_time: Nanos,
}

/// Functions of modules that are loaded later, whose times are counted too: two modules' worth. Each
/// takes 20 KiB of every processor's memory, whether it comes or not.
const LATER_FUNCTIONS: u32 = 2 * 68;

impl Watch {
    /// Begins.
    ///
    /// # Errors
    /// When rights are missing, a process is not there, or has nothing to watch.
    pub fn attach(plan: WatchPlan) -> Result<Self, AttachError> {
        if let Some(sentence) = error::missing_rights() {
            return Err(AttachError::Rights(sentence));
        }
        let processes = processes_of(&plan)?;
        let mut found = Vec::new();
        for process in processes {
            found.push((process, modules_of(process)?));
        }
        let timed_functions = u32::from(RESERVED) + count_functions(&found) + LATER_FUNCTIONS;
        let mut watch = Self::new(plan, timed_functions)?;
        let begin = Instant::now();
        for (process, modules) in &found {
            watch.add_process(*process, process::parent(*process), now())?;
            watch.probe(*process, modules)?;
        }
        watch.started = now();
        for program in &mut watch.programs {
            program.started = watch.started;
        }
        watch.kernel.enable(true)?;
        watch.attach_time = Nanos(begin.elapsed().as_nanos() as u64);
        Ok(watch)
    }

    /// The kernel's side is there and calibrated, and nobody is watched yet.
    fn new(plan: WatchPlan, timed_functions: u32) -> Result<Self, AttachError> {
        if !cfg!(target_arch = "x86_64") {
            let processor = std::env::consts::ARCH;
            return Err(AttachError::Kernel(format!("this machine's processor is {processor}")));
        }
        let mut kernel = Kernel::load(KernelPlan {
            with_events: plan.with_events,
            with_inputs: plan.with_load,
            as_pairs: plan.as_pairs,
            timed_functions,
        })?;
        let cost = calibration::calibrate(&mut kernel, plan.with_events)?;
        // Not before: this process was watched for a moment, and may start others.
        kernel.watch_children()?;
        let before = kernel.totals()?;
        let spool = plan.with_events.then(|| Spool::new(plan.most_events)).transpose()?;
        Ok(Self {
            plan,
            kernel,
            cost,
            before,
            functions: Vec::new(),
            numbers: BTreeMap::new(),
            probed: BTreeSet::new(),
            programs: Vec::new(),
            alive: BTreeMap::new(),
            code: BTreeMap::new(),
            notes: BTreeSet::new(),
            has_unseen_returns: false,
            spool,
            times: Vec::new(),
            timed_functions,
            started: Nanos::ZERO,
            attach_time: Nanos::ZERO,
        })
    }

    /// Takes in what has come, often enough that nothing is lost: each few milliseconds with
    /// events.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn take_in(&mut self) -> Result<(), AttachError> {
        let mut notes = Vec::new();
        let Self { kernel, spool, functions, .. } = self;
        let mut failure = Ok(());
        kernel.ring.read(&mut |bytes| {
            let Some(record) = Record::from_bytes(bytes) else { return };
            match (record.kind, &mut *spool) {
                (RecordKind::Fork | RecordKind::Exec | RecordKind::Exit, _) => notes.push(record),
                (_, Some(spool)) => {
                    note_called(functions, &record);
                    let kept = spool.keep(bytes);
                    if failure.is_ok() {
                        failure = kept;
                    }
                }
                (_, None) => {}
            }
        });
        failure?;
        for note in notes {
            self.process_changed(&note)?;
        }
        Ok(())
    }

    /// Looks whether processes have ended or loaded other modules, and notes the times of the last
    /// moments: about once a second.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub fn look_around(&mut self) -> Result<(), AttachError> {
        let processes: Vec<u32> = self.alive.keys().copied().collect();
        for process in processes {
            if process::is_alive(process) {
                self.look_at(process)?;
            } else {
                self.alive.remove(&process);
                self.kernel.forget_process(process)?;
            }
        }
        self.note_times()
    }

    /// Whether calls are handed over one by one.
    #[must_use]
    pub const fn has_events(&self) -> bool {
        self.plan.with_events
    }

    /// Of some modules only the beginnings of calls are seen.
    #[must_use]
    pub const fn has_unseen_returns(&self) -> bool {
        self.has_unseen_returns
    }

    /// What is watched, in words.
    #[must_use]
    pub fn described(&self) -> String {
        let modules: BTreeSet<&str> = self.functions.iter().map(|it| it.module.as_str()).collect();
        let modules: Vec<&str> = modules.into_iter().collect();
        format!(
            "{} of {} in {}",
            counted(self.probed.len() as u64, "function", "functions"),
            modules.join(", "),
            counted(self.alive.len() as u64, "process", "processes"),
        )
    }

    /// Whether any process is left to be watched.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        !self.alive.is_empty()
    }

    /// Ends.
    ///
    /// # Errors
    /// When what was counted cannot be read.
    pub fn detach(mut self) -> Result<Watched, AttachError> {
        self.kernel.enable(false)?;
        let ended = now();
        let begin = Instant::now();
        self.kernel.detach();
        let detach_time = Nanos(begin.elapsed().as_nanos() as u64);
        self.take_in()?;
        self.note_times()?;
        self.finish(ended, detach_time)
    }

    fn add_process(
        &mut self,
        process: u32,
        parent: u32,
        started: Nanos,
    ) -> Result<(), AttachError> {
        self.kernel.watch_process(process)?;
        let program = process::program(process);
        self.programs.push(Program { id: process, parent, program, started });
        self.alive.insert(process, Vec::new());
        self.note_code(process);
        Ok(())
    }

    /// Returns whether it has code that it had not before.
    fn note_code(&mut self, process: u32) -> bool {
        let Ok(mut mappings) = process::mappings(process) else { return false };
        mappings.retain(|it| it.is_executable);
        if self.alive.get(&process) == Some(&mappings) {
            return false;
        }
        // Only who asks where a call came from needs it.
        if self.plan.with_events {
            let code = self.code.entry(process).or_default();
            let new = mappings.iter().filter(|it| !code.contains(it)).cloned();
            let new: Vec<Mapping> = new.collect();
            code.extend(new);
        }
        self.alive.insert(process, mappings);
        true
    }

    fn look_at(&mut self, process: u32) -> Result<(), AttachError> {
        if self.note_code(process)
            && let Ok(found) = modules::find_modules(process)
        {
            self.probe(process, &found)?;
        }
        Ok(())
    }

    fn process_changed(&mut self, note: &Record) -> Result<(), AttachError> {
        match note.kind {
            RecordKind::Fork => {
                self.add_process(note.handle as u32, note.process, Nanos(note.start))
            }
            RecordKind::Exec => {
                if let Some(program) = self.programs.iter_mut().rfind(|it| it.id == note.process) {
                    program.program = process::program(note.process);
                }
                self.look_at(note.process)
            }
            RecordKind::Exit => Ok(()),
            RecordKind::Call | RecordKind::Wait | RecordKind::Entry => Ok(()),
        }
    }

    fn note_times(&mut self) -> Result<(), AttachError> {
        if self.plan.with_events {
            return Ok(());
        }
        let moment = now();
        let since = Nanos(moment.0.saturating_sub(self.started.0));
        let mut values = Vec::new();
        let Self { times, kernel, timed_functions, .. } = self;
        for (times, number) in times.iter_mut().zip(u32::from(RESERVED)..*timed_functions) {
            let buckets = kernel.times(number, &mut values)?;
            times.add(&buckets, since);
        }
        Ok(())
    }
}

pub(crate) fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` can be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Functions of all modules, each file's once.
fn count_functions(found: &[(u32, ProcessModules)]) -> u32 {
    let modules = found.iter().flat_map(|(_, process)| &process.modules);
    let by_file: BTreeMap<u64, usize> =
        modules.map(|module| (module.inode, module.functions.len())).collect();
    by_file.values().sum::<usize>() as u32
}
