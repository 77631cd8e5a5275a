//! The calls of a watched process as events, like those of a program with the probe inside.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use tapstone_events::{
    CallBegun, CallEnded, CallOutcome, CalledFunction, End, Event, EventSource, Family, FunctionId,
    Kind, LibcCalls, ObservedRun, On, Program, StubId,
};
use tapstone_measure::units::Nanos;

use crate::calibration::{ProbeCost, RESERVED};
use crate::functions::WatchedFunction;
use crate::layout::{Record, RecordKind};
use crate::process::Mapping;

/// No clock shows a later moment, in nanoseconds.
const LATEST: u64 = i64::MAX as u64;

/// Calls that were watched, ready to be read.
#[derive(Debug)]
pub struct AttachedEvents {
    pub(crate) file: File,
    /// Where in the file the first call is, in bytes.
    pub(crate) begin: u64,
    pub(crate) functions: Vec<WatchedFunction>,
    pub(crate) programs: Vec<Program>,
    /// What code each process had.
    pub(crate) code: BTreeMap<u32, Vec<Mapping>>,
    pub(crate) run: ObservedRun,
    pub(crate) cost: ProbeCost,
    pub(crate) has_load: bool,
}

impl AttachedEvents {
    pub(crate) fn new(
        (file, dropped): (File, u64),
        functions: Vec<WatchedFunction>,
        programs: Vec<Program>,
        code: BTreeMap<u32, Vec<Mapping>>,
        (started, ended): (Nanos, Nanos),
        lost: u64,
        cost: ProbeCost,
    ) -> Self {
        let run = ObservedRun { started, ended, dropped: lost + dropped, ..ObservedRun::default() };
        Self { file, begin: 0, functions, programs, code, run, cost, has_load: false }
    }

    /// Programs that were watched.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Whether keys, lengths, shapes of templates and waits for input are in them, of which a workload
    /// is made.
    #[must_use]
    pub const fn has_load(&self) -> bool {
        self.has_load
    }

    /// The calls as the kernel told them.
    pub(crate) fn calls(&self) -> io::Result<BufReader<File>> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(self.begin))?;
        Ok(BufReader::new(file))
    }

    /// Hands over each call, or `None` for one that cannot be.
    fn each_call(&self, mut take: impl FnMut(Option<Record>)) -> io::Result<()> {
        let mut calls = self.calls()?;
        let mut bytes = [0; Record::BYTES];
        loop {
            match calls.read_exact(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            take(Record::from_bytes(&bytes).filter(|it| it.start <= it.end && it.end <= LATEST));
        }
    }

    /// How many calls cannot be: only a file that was kept has any.
    pub(crate) fn count_damaged(&self) -> io::Result<u64> {
        let mut damaged = 0;
        self.each_call(|record| damaged += u64::from(record.is_none()))?;
        Ok(damaged)
    }

    /// All of them, thread by thread, each in the order of beginnings.
    fn records(&self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        self.each_call(|record| records.extend(record))?;
        records.sort_by_key(|it| (it.process, it.thread, it.start, std::cmp::Reverse(it.end)));
        Ok(records)
    }

    fn caller(&self, record: &Record) -> String {
        let code = self.code.get(&record.process).map(Vec::as_slice).unwrap_or_default();
        let program = self.programs.iter().rfind(|it| it.id == record.process);
        match code.iter().rfind(|it| it.holds(record.caller)) {
            Some(it) if program.is_some_and(|program| program.program == it.name) => String::new(),
            Some(it) if it.has_file() => it.file_name(),
            _ => "code without a file".to_owned(),
        }
    }
}

impl EventSource for AttachedEvents {
    type Error = io::Error;

    fn observed_run(&self) -> ObservedRun {
        self.run
    }

    fn read_events(&self, take: &mut dyn FnMut(Event)) -> io::Result<()> {
        self.programs.iter().cloned().map(Event::Program).for_each(&mut *take);
        let records = self.records()?;
        let mut told = Telling { events: self, functions: HashMap::new(), open: Vec::new(), take };
        let mut thread = None;
        for record in &records {
            if thread != Some((record.process, record.thread)) {
                told.close_before(Nanos::NEVER);
                thread = Some((record.process, record.thread));
                (told.take)(Event::Thread { process: record.process, id: record.thread });
            }
            told.record(record);
        }
        told.close_before(Nanos::NEVER);
        Ok(())
    }
}

/// Calls of a thread, one inside the other.
struct Telling<'a> {
    events: &'a AttachedEvents,
    functions: HashMap<CalledFunction, FunctionId>,
    open: Vec<CallEnded>,
    take: &'a mut dyn FnMut(Event),
}

impl Telling<'_> {
    fn record(&mut self, record: &Record) {
        self.close_before(Nanos(record.start));
        match record.kind {
            RecordKind::Call | RecordKind::Entry => self.call(record),
            RecordKind::Wait => self.wait(record),
            RecordKind::Fork | RecordKind::Exec | RecordKind::Exit => {}
        }
    }

    fn call(&mut self, record: &Record) {
        let number = (record.function as usize).checked_sub(RESERVED.into());
        let Some(watched) = number.and_then(|number| self.events.functions.get(number)) else {
            return;
        };
        let function = self.function(CalledFunction {
            function: watched.name,
            family: watched.family,
            module: watched.module.clone(),
            caller: self.events.caller(record),
        });
        let stub = StubId(record.function);
        (self.take)(Event::CallBegun(CallBegun {
            at: Nanos(record.start),
            stub,
            function,
            handle: record.handle,
            detail: record.detail,
            operand: record.operand,
            only_length: record.only_length,
            on_token: record.on_token,
            sent: None,
            reader: None,
        }));
        let cost = self.events.cost.of(watched.is_stepped);
        let is_entry = record.kind == RecordKind::Entry;
        self.open.push(CallEnded {
            at: Nanos(record.end.saturating_sub(cost.0).max(record.start)),
            stub,
            end: if is_entry { End::Unseen } else { End::Returned },
            result: if is_entry { 0 } else { record.result },
            outcome: outcome_of(watched.name, record.made),
        });
    }

    /// A system call that slept or waited. Who in the module or the program made it is not known.
    fn wait(&mut self, record: &Record) {
        let Some((name, kind)) = wait_of(record.function) else { return };
        let around = self.open.last().and_then(|open| open.stub.0.checked_sub(RESERVED.into()));
        let module = around.and_then(|number| self.events.functions.get(number as usize));
        let caller = module.map(|it| it.module.clone()).unwrap_or_default();
        let function = self.function(CalledFunction {
            function: name,
            family: Family::Libc(kind),
            module: "kernel".to_owned(),
            caller,
        });
        (self.take)(Event::Libc(LibcCalls {
            start: Nanos(record.start),
            end: Some(Nanos(record.end)),
            function,
            count: 1,
            time: Nanos(record.end - record.start),
            result: record.result as i64,
            a: 0,
            b: 0,
            text: None,
            on: On::Something,
            replaced: false,
        }));
    }

    /// The number of a function, which is declared when it first comes.
    fn function(&mut self, function: CalledFunction) -> FunctionId {
        if let Some(id) = self.functions.get(&function) {
            return *id;
        }
        let id = FunctionId(self.functions.len() as u32);
        (self.take)(Event::Function(function.clone()));
        self.functions.insert(function, id);
        id
    }

    /// Ends calls that were over by then, the innermost first.
    fn close_before(&mut self, moment: Nanos) {
        while let Some(ended) = self.open.pop_if(|ended| ended.at <= moment) {
            (self.take)(Event::CallEnded(ended));
        }
    }
}

/// A session, or the objects of a search.
fn outcome_of(function: &str, made: u64) -> CallOutcome {
    match function {
        "C_FindObjects" => CallOutcome::Found { count: made as u32, digest: (made >> 32) as u32 },
        _ => CallOutcome::Made(made),
    }
}

/// System calls that wait, on x86-64, by the names under which libc has them.
fn wait_of(number: u32) -> Option<(&'static str, Kind)> {
    Some(match number {
        0 => ("read", Kind::Read),
        7 => ("poll", Kind::Poll),
        23 => ("select", Kind::Poll),
        35 => ("nanosleep", Kind::Sleep),
        42 => ("connect", Kind::Connect),
        43 | 288 => ("accept", Kind::Poll),
        45 => ("recvfrom", Kind::Read),
        47 => ("recvmsg", Kind::Read),
        61 => ("wait4", Kind::Children),
        247 => ("waitid", Kind::Children),
        202 => ("futex", Kind::Lock),
        230 => ("clock_nanosleep", Kind::Sleep),
        232 | 281 => ("epoll_wait", Kind::Poll),
        270 => ("pselect", Kind::Poll),
        271 => ("ppoll", Kind::Poll),
        _ => return None,
    })
}
