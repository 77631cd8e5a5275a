//! The tracer: what it does at each stop of the program.

use std::io;

use libc::pid_t;
use nix::errno::Errno;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

use super::call::{GET_AFFINITY, PendingCall, RESTART, is_to_be_restarted};
use super::cost::Meter;
use super::error::TracingError;
use super::family::{ProcessTree, is_caught};
use super::launch::{Launch, TracingOptions};
use super::names::Namer;
use super::ptrace::{self, Stop, ThreadEvent, Until};
use super::signals::Listener;
use super::start::{self, Step};
use super::walk::Walker;
use super::{exec, filter};
use tapstone_events::Exit;
use tapstone_events::system_calls::table;
use tapstone_events::system_calls::{Observed, SystemCall, SystemCallWriter};

const MMAP: u32 = libc::SYS_mmap as u32;
const SET_AFFINITY: u32 = libc::SYS_sched_setaffinity as u32;

/// Calls that the tracer itself wants to know of. Mappings of code, too: see the filter.
const OWN: [u32; 3] = [RESTART, GET_AFFINITY, SET_AFFINITY];

/// See [`super::observe`]; the calling thread becomes the tracer.
pub(super) fn observe(
    launch: &Launch<'_>,
    options: &TracingOptions,
) -> Result<Observed, TracingError> {
    let mut filter = filter::program(options.set.numbers().chain(OWN));
    let refused = |call| move |cause| TracingError::refused(call, &cause);
    let before = Monotonic.now();
    let started = start::start(launch, &mut filter)?;
    let listener = Listener::start(started.process).map_err(refused("sigaction"))?;
    let mut tracer = Tracer::new(started.process, options, &listener);
    while let Some(stop) = ptrace::wait().map_err(refused("wait4"))? {
        tracer.answer(&stop);
    }
    match started.failure() {
        Some((Step::Exec, cause)) => Err(TracingError::exec(launch.command.shown(), &cause)),
        Some((Step::Filter, cause)) => Err(TracingError::refused("prctl", &cause)),
        None => match tracer.ended {
            Some(end) => Ok(tracer.into_observed(before, end)),
            None => Err(TracingError::refused("wait4", &io::Error::from(Errno::ECHILD))),
        },
    }
}

struct Tracer<'a> {
    options: &'a TracingOptions,
    listener: &'a Listener,
    program: pid_t,
    /// It has become the program; before that, its calls are the tracer's own.
    is_running: bool,
    ended: Option<End>,
    family: ProcessTree<'a>,
    walker: Walker,
    names: Namer,
    calls: SystemCallWriter,
    meter: Meter,
    warnings: Vec<String>,
}

/// How and when the program ended.
#[derive(Clone, Copy)]
struct End {
    exit: Exit,
    at: Nanos,
    usage: libc::rusage,
}

impl<'a> Tracer<'a> {
    fn new(program: pid_t, options: &'a TracingOptions, listener: &'a Listener) -> Self {
        let mut family = ProcessTree::new(listener);
        family.thread(program, Monotonic.now());
        Self {
            options,
            listener,
            program,
            is_running: false,
            ended: None,
            family,
            walker: Walker::new(),
            names: Namer::default(),
            calls: SystemCallWriter::new(options.most_bytes),
            meter: Meter::new(),
            warnings: Vec::new(),
        }
    }

    /// Does what a stop asks for, and lets the thread go on.
    fn answer(&mut self, stop: &Stop) {
        let thread = stop.thread;
        let seen = Monotonic.now();
        let answered = match stop.event {
            ThreadEvent::Entry => self.entered(thread, seen),
            ThreadEvent::Return => self.returned(thread, seen),
            ThreadEvent::Signal(signal) => self.signalled(thread, signal, seen),
            ThreadEvent::Child => self.has_child(thread, seen),
            ThreadEvent::Exec => self.executed(thread, seen),
            ThreadEvent::Ready => self.go_on(thread, 0, seen),
            ThreadEvent::GroupStop => ptrace::listen(thread),
            ThreadEvent::Exited(code) => return self.ended(stop, Exit::Code(code), seen),
            ThreadEvent::Killed(signal) => return self.ended(stop, Exit::Signal(signal), seen),
        };
        // A request can only fail because the thread was killed meanwhile; its end is reported.
        drop(answered);
    }

    /// A thread is about to make a call.
    fn entered(&mut self, thread: pid_t, seen: Nanos) -> io::Result<()> {
        let registers = ptrace::registers(thread)?;
        let call = &mut self.family.thread(thread, seen).call;
        if let Some(interrupted) = call.as_mut().filter(|call| call.is_begun_again(&registers)) {
            interrupted.interrupted = None;
            return ptrace::resume(thread, Until::Return, 0);
        }
        self.give_up(thread, seen);
        let number = registers.orig_rax as u32;
        match number {
            GET_AFFINITY => self.family.placement().apart(),
            SET_AFFINITY => self.family.placement().give_up(),
            _ => self.family.place(thread),
        }
        let is_of_interest = self.options.set.contains(number) || number == MMAP;
        let known = table::by_number(number).filter(|_| self.is_running);
        let Some(known) = known.filter(|_| is_of_interest || number == GET_AFFINITY) else {
            return ptrace::resume(thread, Until::Entry, 0);
        };
        let mut call = PendingCall::new(known, &registers, seen);
        if self.options.set.contains(number) {
            call.on = self.names.operand(thread, known, &call.arguments);
            if let Some(space) = self.family.space(thread) {
                call.stack = self.walker.stack(space, thread, &registers);
            }
        }
        call.start = Monotonic.now();
        self.meter.worked(call.start - seen);
        self.family.thread(thread, seen).call = Some(call);
        ptrace::resume(thread, Until::Return, 0)
    }

    /// A thread has made a call, or was interrupted in it.
    fn returned(&mut self, thread: pid_t, seen: Nanos) -> io::Result<()> {
        let result = ptrace::result(thread)?;
        let call = &mut self.family.thread(thread, seen).call;
        if let Some(call) = call.as_mut().filter(|_| is_to_be_restarted(result)) {
            call.interrupted = Some(seen);
            return ptrace::resume(thread, Until::Entry, 0);
        }
        if let Some(call) = call.take() {
            if call.known.number == MMAP && result > 0 {
                self.mapped(thread, &call.arguments, result as u64);
            }
            self.meter.returned(seen - call.start, call.known.waits);
            self.record(thread, call, Some(result), seen);
            self.meter.worked(Monotonic.now() - seen);
        }
        ptrace::resume(thread, Until::Entry, 0)
    }

    /// A signal is about to be delivered. Its handler ends a call that it interrupted.
    fn signalled(&mut self, thread: pid_t, signal: i32, seen: Nanos) -> io::Result<()> {
        let call = &self.family.thread(thread, seen).call;
        if call.as_ref().is_some_and(|call| !call.is_under_way()) && is_caught(thread, signal) {
            self.give_up(thread, seen);
        }
        self.go_on(thread, signal, seen)
    }

    /// The call that a thread was interrupted in is not begun again.
    fn give_up(&mut self, thread: pid_t, seen: Nanos) {
        if let Some(call) = self.family.thread(thread, seen).call.take() {
            self.record(thread, call, Some(-i64::from(libc::EINTR)), seen);
        }
    }

    fn has_child(&mut self, parent: pid_t, seen: Nanos) -> io::Result<()> {
        let child = ptrace::new_thread(parent)?;
        self.family.born(parent, child, seen);
        self.go_on(parent, 0, seen)
    }

    /// A process runs another program from now on.
    fn executed(&mut self, process: pid_t, seen: Nanos) -> io::Result<()> {
        let former = ptrace::former_thread(process)?;
        let program = exec::program(process);
        if let Some(warning) = exec::warning(process, &program) {
            self.warn(warning);
        }
        if process == self.program {
            self.is_running = true;
        }
        for (thread, state) in self.family.executed(process, former, program) {
            if let Some(call) = state.call {
                self.record_of(process, thread, call, None, seen);
            }
        }
        self.go_on(process, 0, seen)
    }

    fn ended(&mut self, stop: &Stop, exit: Exit, seen: Nanos) {
        let thread = stop.thread;
        if thread == self.program {
            self.ended = Some(End { exit, at: seen, usage: stop.usage });
        }
        if let Some(state) = self.family.ended(thread, exit, seen)
            && let Some(call) = state.call
        {
            self.record_of(state.process, thread, call, None, seen);
        }
    }

    /// Lets a thread go on where it is: in a call, or not.
    fn go_on(&mut self, thread: pid_t, signal: i32, seen: Nanos) -> io::Result<()> {
        let call = &self.family.thread(thread, seen).call;
        let is_in_call = call.as_ref().is_some_and(PendingCall::is_under_way);
        let until = if is_in_call { Until::Return } else { Until::Entry };
        ptrace::resume(thread, until, signal)
    }

    /// A mapping has been made, of code perhaps.
    fn mapped(&mut self, thread: pid_t, arguments: &[u64; 6], start: u64) {
        const PAGE_BYTES: u64 = 4096;
        let [_, length, protection, flags, descriptor, offset] = *arguments;
        let is_code = protection & libc::PROT_EXEC as u64 != 0;
        if !is_code || flags & libc::MAP_ANONYMOUS as u64 != 0 {
            return;
        }
        if let Some(space) = self.family.space(thread) {
            let end = start.saturating_add(length.next_multiple_of(PAGE_BYTES));
            space.mapped(&mut self.walker.images, thread, start..end, descriptor, offset);
        }
    }

    fn record(&mut self, thread: pid_t, call: PendingCall, result: Option<i64>, seen: Nanos) {
        let process = self.family.thread(thread, seen).process;
        self.record_of(process, thread, call, result, seen);
    }

    fn record_of(
        &mut self,
        process: pid_t,
        thread: pid_t,
        call: PendingCall,
        result: Option<i64>,
        seen: Nanos,
    ) {
        if !self.options.set.contains(call.known.number) {
            return;
        }
        self.calls.write(&SystemCall {
            process: process as u32,
            thread: thread as u32,
            start: call.start,
            end: call.interrupted.unwrap_or(seen),
            number: call.known.number,
            arguments: call.arguments,
            result,
            on: call.on,
            stack: call.stack,
        });
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn into_observed(mut self, started: Nanos, end: End) -> Observed {
        for (count, what) in [
            (self.walker.cut(), "stacks were cut: there were too many different ones"),
            (self.names.lost, "calls have no path: there were too many different ones"),
            (
                self.walker.refused,
                "calls have no stack, and some no path: their program does not let others read \
                 its memory (PR_SET_DUMPABLE, or a file that may not be read)",
            ),
        ] {
            if count > 0 {
                self.warn(format!("{count} {what}"));
            }
        }
        Observed {
            exit: end.exit,
            started,
            ended: end.at,
            user: nanos(end.usage.ru_utime),
            system: nanos(end.usage.ru_stime),
            dropped: self.calls.dropped,
            calls: self.calls.into_calls(),
            stacks: self.walker.into_stacks(),
            names: self.names.into_names(),
            processes: self.family.into_ended(),
            warnings: self.warnings,
            stop_cost: self.meter.cost(),
            interrupted: self.listener.interrupted(),
        }
    }
}

fn nanos(time: libc::timeval) -> Nanos {
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000)
}
