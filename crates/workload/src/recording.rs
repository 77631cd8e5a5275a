//! Events of a traced program into a workload.
//!
//! Only the outermost calls are kept: what a proxy passes on to the module behind it is no call of
//! the program's.

use std::collections::HashMap;

use tapstone_events::{
    CallBegun, CallEnded, CalledFunction, Event, EventSource, Family, Kind, LibcCalls,
};
use tapstone_measure::units::Nanos;

use crate::model::{Workload, WorkloadHead, WorkloadLosses};
use crate::numbering::number_calls;
use crate::seen::{OpenCall, SeenCall, SeenThread};

/// Makes a workload of what was seen. `transaction` is the function that the user calls one, if he
/// does.
///
/// # Errors
/// When the events cannot be read.
pub fn record_workload<S: EventSource>(
    source: &S,
    transaction: Option<&str>,
) -> Result<Workload, S::Error> {
    let run = source.observed_run();
    let mut collector = Collector::default();
    source.read_events(&mut |event| collector.take(event))?;
    let module = collector.main_module();
    let all = collector.threads.iter().map(|thread| thread.calls.len()).sum::<usize>();
    for thread in &mut collector.threads {
        thread.calls.retain(|call| collector.functions[call.function as usize].module == module);
    }
    let kept: usize = collector.threads.iter().map(|thread| thread.calls.len()).sum();
    let numbered = number_calls(&collector.functions, &collector.threads, run.started);
    Ok(Workload {
        head: WorkloadHead {
            program: collector.program,
            module,
            wall_ns: run.summed_from.unwrap_or(run.ended) - run.started,
            transaction: transaction.map(str::to_owned),
            slots: numbered.slots,
            losses: WorkloadLosses {
                // Of each call that was only counted there is neither beginning nor end.
                dropped: run.dropped.saturating_add(collector.summed.saturating_mul(2)),
                other_modules: (all - kept) as u64,
                unfinished: numbered.unfinished,
            },
        },
        threads: numbered.threads,
    })
}

#[derive(Debug, Default)]
struct Collector {
    program: String,
    functions: Vec<CalledFunction>,
    threads: Vec<SeenThread>,
    places: HashMap<(u32, u32), usize>,
    current: Option<usize>,
    /// Calls of PKCS#11 that were counted, and not listed.
    summed: u64,
}

impl Collector {
    fn take(&mut self, event: Event) {
        match event {
            Event::Program(program) if self.program.is_empty() => {
                let file = program.program.rsplit('/').next().unwrap_or_default();
                file.clone_into(&mut self.program);
            }
            Event::Function(function) => self.functions.push(function),
            Event::Summed(calls) => {
                let function = self.functions.get(calls.function.0 as usize);
                if function.is_some_and(|function| function.family == Family::Pkcs11) {
                    self.summed = self.summed.saturating_add(calls.count);
                }
            }
            Event::Thread { process, id } => self.turn_to(process, id),
            Event::Executed(_) => {
                if let Some(thread) = self.thread() {
                    thread.open.clear();
                }
            }
            Event::CallBegun(begun) => self.begin(begun),
            Event::CallEnded(ended) => self.end(ended),
            Event::Libc(calls) => self.wait(calls),
            _ => {}
        }
    }

    fn turn_to(&mut self, process: u32, id: u32) {
        let threads = &mut self.threads;
        let place = *self.places.entry((process, id)).or_insert_with(|| {
            threads.push(SeenThread {
                process,
                calls: Vec::new(),
                open: Vec::new(),
                waiting: Nanos::ZERO,
                has_waited: false,
            });
            threads.len() - 1
        });
        self.current = Some(place);
    }

    fn thread(&mut self) -> Option<&mut SeenThread> {
        self.current.and_then(|place| self.threads.get_mut(place))
    }

    fn family(&self, function: u32) -> Option<Family> {
        self.functions.get(function as usize).map(|function| function.family)
    }

    fn begin(&mut self, begun: CallBegun) {
        let function = begun.function.0;
        let is_pkcs11 = self.family(function) == Some(Family::Pkcs11);
        let Some(thread) = self.thread() else { return };
        let is_outermost = is_pkcs11 && !thread.open.iter().any(|open| open.is_pkcs11);
        let stub = begun.stub;
        let call = is_outermost.then(|| {
            thread.calls.push(SeenCall {
                function,
                begun,
                ended: None,
                waiting: std::mem::take(&mut thread.waiting),
                after_wait: std::mem::take(&mut thread.has_waited),
            });
            thread.calls.len() - 1
        });
        thread.open.push(OpenCall { stub, is_pkcs11, call });
    }

    /// Ends the innermost open call of that stub. Calls inside it were abandoned.
    fn end(&mut self, ended: CallEnded) {
        let Some(thread) = self.thread() else { return };
        let Some(place) = thread.open.iter().rposition(|open| open.stub == ended.stub) else {
            return;
        };
        let call = thread.open[place].call;
        thread.open.truncate(place);
        if let Some(call) = call.and_then(|call| thread.calls.get_mut(call)) {
            call.ended = Some(ended);
        }
    }

    /// A call of libc between calls of the module: a wait, if it can be one.
    fn wait(&mut self, calls: LibcCalls) {
        let Some(CalledFunction { family: Family::Libc(kind), function, .. }) =
            self.functions.get(calls.function.0 as usize)
        else {
            return;
        };
        let is_wait = is_wait_outside(*kind, function, &calls);
        let Some(thread) = self.thread() else { return };
        if is_wait && !thread.open.iter().any(|open| open.is_pkcs11) {
            thread.waiting = Nanos(thread.waiting.0.saturating_add(calls.time.0));
            thread.has_waited = true;
        }
    }

    /// The module with most calls.
    fn main_module(&self) -> String {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for call in self.threads.iter().flat_map(|thread| &thread.calls) {
            *counts.entry(&self.functions[call.function as usize].module).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(module, count)| (*count, *module));
        most.map(|(module, _)| module.to_owned()).unwrap_or_default()
    }
}

/// Shorter calls of a kind that need not wait did not.
const SHORTEST_WAIT: Nanos = Nanos(20_000);

/// Whether a thread waited for something outside of itself: a client, a clock, another thread or
/// process. What asks whether a client is there is a wait even where one was.
fn is_wait_outside(kind: Kind, function: &str, calls: &LibcCalls) -> bool {
    match kind {
        // From outside a process a poll's time limit is not seen, but that it waited is.
        Kind::Poll => calls.b > 0 || calls.time >= SHORTEST_WAIT,
        Kind::Read if function.starts_with("recv") => true,
        Kind::Read | Kind::Sleep | Kind::Lock | Kind::Children | Kind::Connect => {
            calls.time >= SHORTEST_WAIT
        }
        _ => false,
    }
}
