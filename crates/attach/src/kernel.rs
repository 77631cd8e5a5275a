//! The kernel's side of watching: its programs and maps, and what they have counted.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use tapstone_probe_core::capture::SHAPED_ATTRIBUTES;
use zeroize::Zeroize;

use crate::bpf::{
    KernelTypes, Link, LoadError, Map, Maps, ProbeSite, Program, ProgramFile, Ring, attach_probes,
    attach_tracepoint,
};
use crate::layout::{self, BUCKETS, Settings, TimeBucket, Totals};

/// What is wanted of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelPlan {
    /// Each call one by one; otherwise counts and times only.
    pub(crate) with_events: bool,
    /// And waits for input from outside.
    pub(crate) with_inputs: bool,
    /// Pairs of probes, as before kernel 6.13.
    pub(crate) as_pairs: bool,
    /// How many functions have their times counted: those with lower numbers.
    pub(crate) timed_functions: u32,
}

/// How functions are watched whose return matters.
#[derive(Debug)]
enum Returns {
    /// One link for both ends.
    Session(Program),
    /// One at a function's entry, and another at its return.
    Pair(Program, Program),
}

#[derive(Debug)]
pub(crate) struct Kernel {
    maps: Maps,
    pub(crate) ring: Ring,
    returns: Returns,
    entry: Program,
    settings: Settings,
    /// Kept while they are wanted.
    links: Vec<Link>,
}

impl Returns {
    fn load(
        with_events: bool,
        has_sessions: bool,
        load: &impl Fn(&'static str) -> Result<Program, LoadError>,
    ) -> Result<Self, LoadError> {
        let (session, end) = match with_events {
            true => ("send_session", "pair_end_sent"),
            false => ("count_session", "pair_end_counted"),
        };
        if has_sessions {
            Ok(Self::Session(load(session)?))
        } else {
            Ok(Self::Pair(load("pair_begin")?, load(end)?))
        }
    }
}

/// What tells of processes, and with events of waits.
fn tracepoints(
    with_events: bool,
    load: &impl Fn(&'static str) -> Result<Program, LoadError>,
) -> Result<Vec<Link>, LoadError> {
    let mut wanted = vec![
        ("forks", c"sched_process_fork"),
        ("executes", c"sched_process_exec"),
        ("exits", c"sched_process_exit"),
    ];
    if with_events {
        wanted.extend([("wait_begins", c"sys_enter"), ("wait_ends", c"sys_exit")]);
    }
    let attached = wanted.into_iter().map(|(program, tracepoint)| {
        let program = load(program)?;
        attach_tracepoint(program.descriptor(), tracepoint)
            .map_err(|why| map_error("tracepoint", why))
    });
    attached.collect()
}

const EVENTS_RING: u32 = 16 << 20;
const NOTES_RING: u32 = 256 << 10;

impl Kernel {
    pub(crate) fn load(plan: KernelPlan) -> Result<Self, LoadError> {
        let types = KernelTypes::read()?;
        let file = ProgramFile::parse(&layout::PROGRAMS.0)?;
        let maps = file.maps(processors(), |name, entries| match name {
            "ring" if plan.with_events => EVENTS_RING,
            "ring" => NOTES_RING,
            "times" if !plan.with_events => plan.timed_functions,
            _ => entries,
        })?;
        let load = |name| file.load(name, &maps, &types);
        let entry = load(if plan.with_events { "send_entry" } else { "count_entry" })?;
        let has_sessions = !plan.as_pairs && types.function("bpf_session_is_return").is_some();
        let returns = Returns::load(plan.with_events, has_sessions, &load)?;
        let field = |name| types.field("task_struct", name).unwrap_or(0);
        let settings = Settings {
            is_enabled: false,
            with_children: false,
            with_inputs: plan.with_inputs,
            process_at: field("tgid"),
            thread_at: field("pid"),
        };
        let ring = Ring::open(map(&maps, "ring")?).map_err(|why| map_error("ring", why))?;
        let links = tracepoints(plan.with_events, &load)?;
        let mut kernel = Self { maps, ring, returns, entry, settings, links };
        kernel.set_key().map_err(|why| map_error("digest_key", why))?;
        kernel.set_shapes().map_err(|why| map_error("shaped", why))?;
        kernel.enable(false).map_err(|why| map_error("settings", why))?;
        Ok(kernel)
    }

    /// Nobody else knows it, and it goes with the map when watching ends.
    fn set_key(&self) -> io::Result<()> {
        let mut key = layout::digest_key()?;
        let set = self.map("digest_key").update(&0_u32.to_ne_bytes(), &key);
        key.zeroize();
        set
    }

    /// Which attributes of a template are told apart.
    fn set_shapes(&self) -> io::Result<()> {
        let map = self.map("shaped");
        for (bit, kind) in SHAPED_ATTRIBUTES.into_iter().enumerate() {
            map.update(&(kind as u32).to_ne_bytes(), &(1_u32 << bit).to_ne_bytes())?;
        }
        Ok(())
    }

    /// Set last and cleared first, so that calls at both ends are told apart.
    pub(crate) fn enable(&mut self, is_enabled: bool) -> io::Result<()> {
        self.settings.is_enabled = is_enabled;
        self.map("settings").update(&0_u32.to_ne_bytes(), &self.settings.bytes())
    }

    /// Children of watched processes are watched too, from now on.
    pub(crate) fn watch_children(&mut self) -> io::Result<()> {
        self.settings.with_children = true;
        let is_enabled = self.settings.is_enabled;
        self.enable(is_enabled)
    }

    pub(crate) fn watch_process(&self, process: u32) -> io::Result<()> {
        self.map("processes").update(&process.to_ne_bytes(), &1_u32.to_ne_bytes())
    }

    pub(crate) fn forget_process(&self, process: u32) -> io::Result<()> {
        self.map("processes").delete(&process.to_ne_bytes()).map(drop)
    }

    /// Probes at entries and returns, or at entries only.
    pub(crate) fn probe(
        &mut self,
        file: &Path,
        with_return: &[ProbeSite],
        entry_only: &[ProbeSite],
    ) -> io::Result<()> {
        if !with_return.is_empty() {
            match &self.returns {
                Returns::Session(program) => {
                    self.links.push(probes(program, false, file, with_return)?);
                }
                // The return first: a call between the two is one that was under way.
                Returns::Pair(begin, end) => {
                    let end = probes(end, true, file, with_return)?;
                    let begin = probes(begin, false, file, with_return)?;
                    self.links.extend([end, begin]);
                }
            }
        }
        if !entry_only.is_empty() {
            self.links.push(probes(&self.entry, false, file, entry_only)?);
        }
        Ok(())
    }

    /// Takes all probes away.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
    }

    /// Takes the last probes away again, and what they have counted.
    pub(crate) fn forget_last_probes(&mut self, kept: usize) {
        self.links.truncate(kept);
    }

    pub(crate) fn link_count(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn totals(&self) -> io::Result<Totals> {
        let mut all = [0; Totals::COUNT as usize];
        let mut values = Vec::new();
        for (place, total) in (0..Totals::COUNT).zip(&mut all) {
            self.map("totals").look_up(&place.to_ne_bytes(), &mut values)?;
            *total = numbers(&values).sum();
        }
        Ok(Totals::from_array(all))
    }

    /// Counts by process, thread, function and result, each with the sum of its times.
    pub(crate) fn tallies(&self) -> io::Result<Vec<CallTally>> {
        let map = self.map("tallies");
        let mut values = Vec::new();
        let mut tallies = Vec::new();
        for key in map.keys()? {
            if !map.look_up(&key, &mut values)? {
                continue;
            }
            let (process, thread, function, result) = layout::call_key(&key);
            let mut tally = CallTally { process, thread, function, result, count: 0, total_ns: 0 };
            for of_one in values.chunks_exact(map.value_room()) {
                let mut numbers = numbers(of_one);
                tally.count += numbers.next().unwrap_or(0);
                tally.total_ns += numbers.next().unwrap_or(0);
            }
            tallies.push(tally);
        }
        Ok(tallies)
    }

    /// How many calls of a function took how long, by bucket.
    pub(crate) fn times(&self, function: u32, values: &mut Vec<u8>) -> io::Result<Vec<TimeBucket>> {
        let map = self.map("times");
        let mut buckets = vec![TimeBucket::default(); BUCKETS];
        if map.look_up(&function.to_ne_bytes(), values)? {
            for of_one in values.chunks_exact(map.value_room()) {
                let mut numbers = numbers(of_one);
                for bucket in &mut buckets {
                    bucket.count += numbers.next().unwrap_or(0);
                    bucket.total_ns += numbers.next().unwrap_or(0);
                }
            }
        }
        Ok(buckets)
    }

    fn map(&self, name: &str) -> &Map {
        &self.maps[name]
    }
}

/// A row of `tallies`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTally {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) function: u32,
    pub(crate) result: u64,
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
}

fn probes(
    program: &Program,
    at_return: bool,
    file: &Path,
    sites: &[ProbeSite],
) -> io::Result<Link> {
    let descriptor: BorrowedFd<'_> = program.descriptor();
    attach_probes(descriptor, (program.attach, at_return), file, sites)
}

fn numbers(values: &[u8]) -> impl Iterator<Item = u64> {
    values.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight")))
}

fn map<'a>(maps: &'a Maps, name: &str) -> Result<&'a Map, LoadError> {
    maps.get(name).ok_or_else(|| LoadError::Missing(name.to_owned()))
}

fn map_error(name: &str, why: io::Error) -> LoadError {
    LoadError::Map { name: name.to_owned(), why }
}

/// As many values as the kernel keeps for one key: a processor that may come counts.
fn processors() -> usize {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last =
        possible.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or(1, |last| last + 1)
}
