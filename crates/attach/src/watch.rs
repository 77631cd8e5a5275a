//! Watching processes: from finding their functions to taking the last probe away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tapstone_events::{FUNCTIONS, Program};
use tapstone_measure::units::Nanos;

use crate::bpf::ProbeSite;
use crate::calibration::{self, ProbeCost, RESERVED};
use crate::counted::{CountedCall, FunctionTimes};
use crate::error::{self, AttachError};
use crate::functions::{WatchedFunction, note_called};
use crate::kernel::{CallTally, Kernel, KernelPlan};
use crate::layout::{self, RESULT_UNSEEN, Record, RecordKind, Totals};
use crate::modules::{self, FoundFunction, Module, ProcessModules};
use crate::place::ProbePlace;
use crate::process::{self, Mapping};
use crate::source::AttachedEvents;
use crate::spool::Spool;
use crate::targets::{modules_of, processes_of};

/// What is to be watched, and how.
#[derive(Clone, Debug, Default)]
pub struct WatchPlan {
    /// These processes.
    pub processes: Vec<u32>,
    /// And all that have this module loaded: a path, or a file name.
    pub users_of: Vec<String>,
    /// Each call one by one; otherwise counts and times only.
    pub with_events: bool,
    /// So much of them is kept, in bytes.
    pub most_events: u64,
    /// Returns of all functions, whatever may unwind through them.
    pub with_returns: bool,
    /// Pairs of probes, also where the kernel has sessions.
    pub as_pairs: bool,
}

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
    started: Nanos,
    /// From the first probe to the flag that switches all on.
    attach_time: Nanos,
}

/// What came of it.
#[derive(Debug)]
pub struct Watched {
    /// The calls one by one, where that was wanted.
    pub events: Option<AttachedEvents>,
    /// The calls by process, thread, function and result, where they were not.
    pub counts: Vec<CountedCall>,
    /// How long they took, by function.
    pub times: Vec<FunctionTimes>,
    /// What the kernel has counted.
    pub totals: Totals,
    /// Programs that were watched.
    pub programs: Vec<Program>,
    /// When it began, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// How long it took to set the probes.
    pub attach_time: Nanos,
    /// How long it took to take them away.
    pub detach_time: Nanos,
    /// What the probes add to a call, which was subtracted.
    pub cost: ProbeCost,
    /// Of some modules only the beginnings of calls were seen: how long these took is not known.
    pub has_unseen_returns: bool,
    /// What to know of it.
    pub warnings: Vec<String>,
}

/// Functions that may come, later ones included.
const MOST_FUNCTIONS: u32 = 1024;
const TIMED_FUNCTIONS: u32 = 512;

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
        let mut kernel = Kernel::load(KernelPlan {
            with_events: plan.with_events,
            as_pairs: plan.as_pairs,
            functions: TIMED_FUNCTIONS,
        })?;
        let cost = calibration::calibrate(&mut kernel, plan.with_events)?;
        // Not before: this process was watched for a moment, and may start others.
        kernel.watch_children()?;
        let before = kernel.totals()?;
        let spool = plan.with_events.then(|| Spool::new(plan.most_events)).transpose()?;
        let mut watch = Self {
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
            started: Nanos::ZERO,
            attach_time: Nanos::ZERO,
        };
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
        let totals = self.kernel.totals()?.since(self.before);
        let counts = self.counts()?;
        for counted in &counts {
            let called = self.functions.iter_mut().filter(|it| it.is(counted));
            called.for_each(|function| function.is_called = true);
        }
        let warnings = self.warnings(totals);
        let events = match self.spool.take() {
            None => None,
            Some(spool) => Some(AttachedEvents::new(
                spool.finish()?,
                self.functions.clone(),
                self.programs.clone(),
                self.code.clone(),
                (self.started, ended),
                totals.lost,
                self.cost,
            )),
        };
        Ok(Watched {
            events,
            counts,
            times: self.times,
            totals,
            programs: self.programs,
            started: self.started,
            ended,
            attach_time: self.attach_time,
            detach_time,
            cost: self.cost,
            has_unseen_returns: self.has_unseen_returns,
            warnings,
        })
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
        let code = self.code.entry(process).or_default();
        let new: Vec<Mapping> = mappings.iter().filter(|it| !code.contains(it)).cloned().collect();
        code.extend(new);
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

    /// Sets the probes of a process that are not there yet.
    fn probe(&mut self, process: u32, found: &ProcessModules) -> Result<(), AttachError> {
        if found.anonymous_lists > 0 {
            self.notes.insert(format!(
                "{} of process {process} {} made at run time and in no file, so not watched: calls \
                 are seen in the modules beneath",
                counted(found.anonymous_lists as u64, "list of functions", "lists of functions"),
                if found.anonymous_lists == 1 { "was" } else { "were" },
            ));
        }
        for module in &found.modules {
            self.probe_module(module, found.program_unwinds)?;
        }
        Ok(())
    }

    fn probe_module(&mut self, module: &Module, program_unwinds: bool) -> Result<(), AttachError> {
        let may_be_left = module.unwinds || program_unwinds;
        let mut with_return = Vec::new();
        let mut entry_only = Vec::new();
        for (offset, function) in &module.functions {
            if !self.probed.insert((module.inode, *offset)) {
                continue;
            }
            let blocks = matches!(function.name(), "C_WaitForSlotEvent" | "SCardGetStatusChange");
            let is_entry_only = !self.plan.with_returns && (blocks || may_be_left);
            let Some(number) = self.number(module, function) else { continue };
            let others = function.names.iter().skip(1).map(|it| FUNCTIONS[usize::from(*it)].name);
            self.functions[usize::from(number - RESERVED)].others.extend(others);
            let cookie = layout::cookie(number, function.name());
            let site = ProbeSite { offset: offset + self.place(function).behind, cookie };
            if is_entry_only { entry_only.push(site) } else { with_return.push(site) }
        }
        self.note_module(module, may_be_left);
        self.kernel
            .probe(&module.path, &with_return, &entry_only)
            .map_err(|why| AttachError::Probes { module: module.name.clone(), why })
    }

    const fn place(&self, function: &FoundFunction) -> ProbePlace {
        if self.plan.with_events { function.probe } else { function.counting_probe }
    }

    fn number(&mut self, module: &Module, function: &FoundFunction) -> Option<u16> {
        let name = *function.names.first()?;
        let is_stepped = self.place(function).is_stepped;
        let key = (module.inode, name, is_stepped);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        if self.functions.len() as u32 >= MOST_FUNCTIONS {
            self.notes
                .insert(format!("functions of {} are too many: some are not watched", module.name));
            return None;
        }
        let number = self.functions.len() as u16 + RESERVED;
        let module = process::file_name(&module.name);
        self.functions.push(WatchedFunction {
            name: FUNCTIONS[usize::from(name)].name,
            family: FUNCTIONS[usize::from(name)].family,
            module: module.clone(),
            is_stepped,
            others: BTreeSet::new(),
            is_called: false,
        });
        self.times.push(FunctionTimes::new(FUNCTIONS[usize::from(name)].name, module));
        self.numbers.insert(key, number);
        Some(number)
    }

    fn note_module(&mut self, module: &Module, may_be_left: bool) {
        let name = process::file_name(&module.name);
        if may_be_left && self.plan.with_returns {
            self.notes.insert(format!(
                "--returns: {name} or the program can leave calls by an exception or pthread_cancel, \
                 which aborts the program or skips its clean-up while returns are watched"
            ));
        } else if may_be_left {
            self.has_unseen_returns = true;
            self.notes.insert(format!(
                "calls of {name} are seen where they begin only, so without return codes and times: \
                 it or the program imports pthread_cancel, pthread_exit or _Unwind_RaiseException, \
                 and a watched return would change what these do; --returns watches them all the same"
            ));
        }
    }

    fn counts(&self) -> Result<Vec<CountedCall>, AttachError> {
        let tallies = self.kernel.tallies()?.into_iter();
        let counted = tallies.filter_map(|tally| self.counted_call(tally)).collect();
        Ok(counted)
    }

    fn counted_call(&self, tally: CallTally) -> Option<CountedCall> {
        let function =
            self.functions.get((tally.function as usize).checked_sub(RESERVED.into())?)?;
        let cost = self.cost.of(function.is_stepped).0 * tally.count;
        Some(CountedCall {
            process: tally.process,
            thread: tally.thread,
            module: function.module.clone(),
            function: function.name,
            family: function.family,
            result: (tally.result != RESULT_UNSEEN).then_some(tally.result),
            count: tally.count,
            time: Nanos(tally.total_ns.saturating_sub(cost)),
        })
    }

    fn note_times(&mut self) -> Result<(), AttachError> {
        if self.plan.with_events {
            return Ok(());
        }
        let moment = now();
        let since = Nanos(moment.0.saturating_sub(self.started.0));
        let mut values = Vec::new();
        let Self { functions, times, kernel, cost, .. } = self;
        let timed = functions.iter().zip(times).zip(u32::from(RESERVED)..TIMED_FUNCTIONS);
        for ((function, times), number) in timed {
            let buckets = kernel.times(number, &mut values)?;
            times.add(&buckets, since, cost.of(function.is_stepped));
        }
        Ok(())
    }

    fn warnings(&self, totals: Totals) -> Vec<String> {
        let cost = self.cost;
        let mut warnings = vec![format!(
            "watched from outside: a call costs the program 1 to 3 µs more, of which {} ns (or {} ns \
             where the kernel has to step through the first instruction) lie inside a call's own time \
             and were subtracted, as measured at the start on two empty functions; a mapping \
             [uprobes] of 4 KiB stays in each process",
            cost.carried_out.0, cost.stepped.0,
        )];
        warnings.extend(self.notes.iter().cloned());
        warnings.extend(self.functions.iter().filter_map(WatchedFunction::group));
        let open = totals.begun.saturating_sub(totals.ended);
        for (count, what) in [
            (totals.at_attach, "under way when watching began: not counted"),
            (open, "not over when watching ended, or left in another way: not counted"),
            (totals.lost, "lost on the way, for want of room"),
            (totals.crowded, "not counted, for want of room"),
        ] {
            if count > 0 {
                warnings.push(format!("{} {what}", calls(count)));
            }
        }
        if totals.notes_lost > 0 {
            let notes = counted(totals.notes_lost, "note", "notes");
            warnings.push(format!("{notes} of waits or processes were lost on the way"));
        }
        if let Some(spool) = self.spool.as_ref().filter(|spool| spool.dropped > 0) {
            let dropped = counted(spool.dropped, "event", "events");
            warnings.push(format!("{dropped} had no room: --events-size allows more"));
        }
        warnings
    }
}

impl Totals {
    fn since(self, before: Self) -> Self {
        Self {
            begun: self.begun - before.begun,
            ended: self.ended - before.ended,
            at_attach: self.at_attach - before.at_attach,
            sent: self.sent - before.sent,
            lost: self.lost - before.lost,
            crowded: self.crowded - before.crowded,
            entries: self.entries - before.entries,
            notes_lost: self.notes_lost - before.notes_lost,
        }
    }
}

pub(crate) fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` can be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn calls(count: u64) -> String {
    match count {
        1 => "1 call was".to_owned(),
        count => format!("{count} calls were"),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
