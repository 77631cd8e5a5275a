//! Every verb under every fault: `make faults` runs the whole matrix and prints its totals, `make
//! test` a part of it.
//!
//! What came of a fault is kept in `target/tmp/faults.txt`, so that a run that was stopped goes on
//! where it was; remove the file after a change of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cards::run_with_card;
use crate::outputs::{may_mount, on_a_disk_with};
use crate::verbs::{ALONE, VERBS, Verb, WITH_CARD};
use crate::workplace::Workplace;

/// Runs at once. Most of them wait for something.
const AT_ONCE: usize = 3;

/// `make test` takes every so many of them, which is prime to the numbers of cases.
const STEP: usize = 23;

/// One cell's entry: a verb with something that goes wrong.
pub(crate) struct Fault {
    pub(crate) verb: Verb,
    /// The column of the table.
    kind: &'static str,
    case: String,
    pub(crate) deed: Deed,
}

/// What goes wrong.
pub(crate) enum Deed {
    /// The shell arranges for it before it starts the program.
    Shell { before: String, allowed: Vec<i32> },
    /// A signal after this share of the verb's usual time.
    Signal { signal: Signal, at: f64 },
    /// What a card needs goes away after this share of that time.
    Gone { gone: Gone, at: f64 },
    /// The null module is told so by a variable.
    Module { name: &'static str, value: String },
}

/// What goes away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gone {
    Card,
    /// pcscd, killed.
    Service,
}

#[test]
fn a_part_of_the_fault_matrix_holds() {
    let faults: Vec<Fault> = faults(&[VERBS, ALONE].concat()).into_iter().step_by(STEP).collect();
    assert_eq!(run_without_card(&faults, |_, _| ()), [""; 0]);
}

#[test]
fn a_part_of_the_fault_matrix_holds_with_a_card() {
    let faults: Vec<Fault> = faults(WITH_CARD).into_iter().step_by(STEP).collect();
    assert_eq!(run_with_card(&faults, |_, _| ()).unwrap_or_default(), [""; 0]);
}

/// `make faults`
#[test]
#[ignore = "minutes"]
fn the_whole_fault_matrix_holds() {
    let ledger = Ledger::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.txt"));
    let keep = |fault: &Fault, held| {
        if held {
            ledger.add(&fault.name());
        }
    };
    let left = |verbs: &[Verb]| -> Vec<Fault> {
        faults(verbs).into_iter().filter(|it| !ledger.has(&it.name())).collect()
    };
    let mut verbs = [VERBS, ALONE].concat();
    let mut fell = run_without_card(&left(&verbs), keep);
    if let Some(with_card) = run_with_card(&left(WITH_CARD), keep) {
        verbs.extend(WITH_CARD);
        fell.extend(with_card);
    }
    print_table(&verbs, &fell);
    assert_eq!(fell, [""; 0]);
}

impl Fault {
    pub(crate) fn name(&self) -> String {
        format!("{} | {} | {}", self.verb.name, self.kind, self.case)
    }

    /// Whether what has to hold after it does.
    pub(crate) fn holds(&self, make: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(make)).is_ok()
    }

    /// Panics when something does not hold.
    pub(crate) fn make(&self, usual: &UsualTimes) {
        let verb = &self.verb;
        let workplace = Workplace::new(verb);
        match &self.deed {
            Deed::Shell { before, allowed } => {
                let left = workplace.run(verb, before);
                let is_loader = left.stderr.contains("error while loading shared libraries");
                let is_memory = left.stderr.contains("memory allocation of");
                // The program itself does not fit into the memory: the kernel ends it.
                let is_unborn = self.kind == "ulimit -v" && left.said_nothing();
                let mut allowed = [&[verb.exit, 2], &allowed[..]].concat();
                // The program was not there yet; or nothing is left to go on with.
                allowed.extend(is_loader.then_some(127));
                allowed.extend(is_memory.then_some(134));
                allowed.extend(is_unborn.then_some(139));
                left.holds(&allowed);
            }
            Deed::Signal { signal, at } => {
                let child = workplace.command(verb, "").spawn().unwrap();
                sleep(usual.after(verb, *at));
                // It is not waited for yet, so that the number is nobody else's.
                let _ = kill_process(Pid::from_child(&child), *signal);
                let left = workplace.wait(verb, child);
                left.holds(&[verb.exit, 2, 128 + signal.as_raw()]);
            }
            Deed::Gone { .. } => unreachable!("whoever has the card makes it go"),
            Deed::Module { name, value } => {
                let before = match &**value {
                    // No process can remove a key: the next run does, with a module that is well.
                    "C_DestroyObject/1" => format!("NULL_MODULE_{name}={value} \"$@\""),
                    _ => format!("export NULL_MODULE_{name}={value}"),
                };
                workplace.run(verb, &before).holds(&[verb.exit, 2]);
            }
        }
    }
}

fn run_without_card(faults: &[Fault], done: impl Fn(&Fault, bool) + Sync) -> Vec<String> {
    let usual = UsualTimes::of(faults);
    let all: Vec<&Fault> = faults.iter().collect();
    run_faults(&all, AT_ONCE, |fault| fault.make(&usual), &done)
}

/// Makes the faults, so many at once; returns what did not hold.
pub(crate) fn run_faults(
    faults: &[&Fault],
    at_once: usize,
    make: impl Fn(&Fault) + Sync,
    done: &(impl Fn(&Fault, bool) + Sync),
) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let fell = Mutex::new(Vec::new());
    scope(|threads| {
        for _ in 0..at_once {
            threads.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Relaxed)) {
                    let held = fault.holds(|| make(fault));
                    if !held {
                        fell.lock().unwrap().push(fault.name());
                    }
                    done(fault, held);
                }
            });
        }
    });
    fell.into_inner().unwrap()
}

/// How long verbs take without a fault.
pub(crate) struct UsualTimes(BTreeMap<&'static str, Duration>);

impl UsualTimes {
    /// Of the verbs of those faults that come at a moment.
    pub(crate) fn of(faults: &[Fault]) -> Self {
        let has_moment = |deed: &Deed| matches!(deed, Deed::Signal { .. } | Deed::Gone { .. });
        let mut times = BTreeMap::new();
        for Fault { verb, .. } in faults.iter().filter(|fault| has_moment(&fault.deed)) {
            times.entry(verb.name).or_insert_with(|| {
                let workplace = Workplace::new(verb);
                let begun = Instant::now();
                workplace.run(verb, "").holds(&[verb.exit]);
                begun.elapsed()
            });
        }
        Self(times)
    }

    /// This share of a verb's time.
    pub(crate) fn after(&self, verb: &Verb, share: f64) -> Duration {
        self.0[verb.name].mul_f64(share)
    }
}

fn faults(verbs: &[Verb]) -> Vec<Fault> {
    let mut all = Vec::new();
    for verb in verbs {
        let mut add = |kind, case: String, deed| {
            all.push(Fault { verb: *verb, kind, case, deed });
        };
        for (case, before, allowed) in OUTPUTS {
            let deed = Deed::Shell { before: (*before).into(), allowed: allowed.to_vec() };
            add("output", (*case).into(), deed);
        }
        for (kind, before) in limits() {
            add(kind, before.clone(), Deed::Shell { before, allowed: Vec::new() });
        }
        if may_mount() {
            for (kind, before) in processes().into_iter().chain(mounts(verb)) {
                add(kind, before.clone(), Deed::Shell { before, allowed: Vec::new() });
            }
        }
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
            for moment in 0..10 {
                let at = 0.05 + f64::from(moment) / 10.0;
                add("signal", format!("{signal:?} {at:.2}"), Deed::Signal { signal, at });
            }
        }
        if verb.needs_card() {
            for (kind, gone) in [("card pulled", Gone::Card), ("pcscd killed", Gone::Service)] {
                for moment in 0..10 {
                    let at = 0.05 + f64::from(moment) / 10.0;
                    add(kind, format!("{at:.2}"), Deed::Gone { gone, at });
                }
            }
        }
        if verb.arguments.contains("{null}") {
            for (name, value) in module_faults() {
                add("module", format!("{name} {value}"), Deed::Module { name, value });
            }
        }
    }
    all
}

/// Standard output and standard error: name, what the shell does, exit codes beside the usual.
const OUTPUTS: &[(&str, &str, &[i32])] = &[
    ("full", "exec >/dev/full", &[]),
    ("errors full", "exec 2>/dev/full", &[]),
    ("both full", "exec >/dev/full 2>&1", &[]),
    ("closed", "exec >&-", &[]),
    ("errors closed", "exec 2>&-", &[]),
    ("all closed", "exec <&- >&- 2>&-", &[]),
    ("reader gone", "exec > >(exec true); sleep 0.1", &[141]),
    ("reader of errors gone", "exec 2> >(exec true); sleep 0.1", &[]),
    ("both readers gone", "exec > >(exec true) 2> >(exec true); sleep 0.1", &[141]),
];

fn limits() -> impl Iterator<Item = (&'static str, String)> {
    let files = [3, 4, 5, 6, 7, 8, 10, 12, 16, 24].map(|n| ("ulimit -n", format!("ulimit -n {n}")));
    let sizes = [0, 1, 2, 4, 8, 16, 64].map(|n| ("ulimit -f", format!("ulimit -f {n}")));
    let memory = [20, 40, 60, 80, 100, 150, 200, 400];
    let memory = memory.map(|mib| ("ulimit -v", format!("ulimit -v {}", mib * 1024)));
    files.into_iter().chain(sizes).chain(memory)
}

/// So few processes and threads, as a user of the run's own: root is exempt.
fn processes() -> [(&'static str, String); 8] {
    [1, 2, 3, 4, 5, 6, 8, 12].map(|most| {
        let before = format!(
            r#"user=$((100000 + $$)); chown -R $user ..; exec setpriv --reuid=$user --clear-groups bash -c 'ulimit -u {most}; exec "$@"' bash "$@""#
        );
        ("ulimit -u", before)
    })
}

/// In a mount namespace of the run's own.
fn mounts(verb: &Verb) -> Vec<(&'static str, String)> {
    let read_only = |folder: &str| {
        format!(
            r#"exec unshare --mount bash -c 'mount -t tmpfs -o ro none "$0" && exec "$@"' {folder} "$@""#
        )
    };
    let mut mounts = vec![
        ("read-only TMPDIR", read_only("\"$TMPDIR\"")),
        ("no /dev/shm", read_only("/dev/shm")),
    ];
    if !verb.outputs.is_empty() {
        let pages = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32];
        mounts.extend(pages.map(|pages| ("disk full", on_a_disk_with(pages))));
    }
    mounts
}

/// Calls of the module that never return, die, or end its process.
fn module_faults() -> Vec<(&'static str, String)> {
    const CALLS: [&str; 11] = [
        "C_Initialize",
        "C_Finalize",
        "C_GetSlotList",
        "C_GetTokenInfo",
        "C_OpenSession",
        "C_CloseSession",
        "C_Login",
        "C_GenerateKeyPair",
        "C_DestroyObject",
        "C_SignInit",
        "C_Sign",
    ];
    let mut faults = Vec::new();
    for call in CALLS {
        for name in ["HANG", "CRASH", "EXIT"] {
            for nth in [1, 2] {
                faults.push((name, format!("{call}/{nth}")));
            }
        }
    }
    faults
}

/// The names of the faults that were made and held.
struct Ledger {
    path: PathBuf,
    known: BTreeSet<String>,
    lock: Mutex<()>,
}

impl Ledger {
    fn open(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let known = text.lines().map(str::to_owned).collect();
        Self { path: path.to_owned(), known, lock: Mutex::new(()) }
    }

    fn has(&self, name: &str) -> bool {
        self.known.contains(&one_line(name))
    }

    fn add(&self, name: &str) {
        let _turn = self.lock.lock().unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        writeln!(file, "{}", one_line(name)).unwrap();
    }
}

/// The shell's part of a name may have several lines.
fn one_line(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Verb by fault: how many were made, and how many of them did not hold.
fn print_table(verbs: &[Verb], fell: &[String]) {
    let faults = faults(verbs);
    let fell: BTreeSet<&str> = fell.iter().map(String::as_str).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for fault in &faults {
        if !kinds.contains(&fault.kind) {
            kinds.push(fault.kind);
        }
    }
    println!("| verb | {} | all |", kinds.join(" | "));
    println!("|{}", " --- |".repeat(kinds.len() + 2));
    let row = |name: &str, of: &dyn Fn(&Fault) -> bool| {
        let count = |kind: Option<&str>| {
            let these =
                faults.iter().filter(|it| of(it) && kind.is_none_or(|kind| it.kind == kind));
            let names: Vec<String> = these.map(Fault::name).collect();
            let bad = names.iter().filter(|name| fell.contains(name.as_str())).count();
            match (names.len(), bad) {
                (0, _) => String::new(),
                (made, 0) => made.to_string(),
                (made, bad) => format!("{made} ({bad} fell)"),
            }
        };
        let mut cells: Vec<String> = kinds.iter().map(|kind| count(Some(kind))).collect();
        cells.push(count(None));
        println!("| {name} | {} |", cells.join(" | "));
    };
    for verb in verbs {
        row(verb.name, &|fault| fault.verb.name == verb.name);
    }
    row("all", &|_| true);
}
