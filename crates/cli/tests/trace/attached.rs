//! A program that already runs, watched by `trace --pid`: the same findings as of one that was
//! started, and the same report, record and exports.
//!
//! Without root or a kernel that allows it these tests skip, and say so.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use tapstone_measure::units::Nanos;
use tapstone_record::{Finding, FindingKind, Record};
use tapstone_testing::skip;
use tapstone_workload::{Workload, WorkloadCall, WorkloadLimits, read_workload};
use tempfile::TempDir;

use crate::fixtures;
use crate::program::Program;
use crate::softhsm::{Hsm, PIN};

/// A program of these fixtures that was started with `--wait`, and waits.
struct Waiting {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Waiting {
    fn start(program: &Program) -> Self {
        let mut command = program.clone().arg("--wait").command();
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut waiting = Self { child, said };
        assert_eq!(waiting.line(), "ready\n");
        waiting
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    /// Works until it ends.
    fn work(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        assert!(self.child.wait().unwrap().success(), "{}", self.line());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `tapstone trace --pid`, which watches until all have ended.
struct Watcher {
    child: Child,
    said: BufReader<ChildStderr>,
    folder: TempDir,
}

impl Watcher {
    /// `None`, which has been said then: this machine cannot.
    fn start(programs: &[&Waiting], options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        command.args(["trace", "--output", "record.json"]).args(options.split_whitespace());
        for program in programs {
            command.arg("--pid").arg(program.child.id().to_string());
        }
        let command = command.current_dir(folder.path()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        if first.contains("needs CAP_") || first.contains("kernel") {
            println!("{first}");
            skip("rights and a kernel to watch processes");
            child.wait().unwrap();
            return None;
        }
        assert!(first.starts_with("watching "), "{first}");
        Some(Self { child, said, folder })
    }

    /// What it says and writes when all have ended.
    fn end(mut self) -> (String, Record, TempDir) {
        let mut report = String::new();
        self.said.read_to_string(&mut report).unwrap();
        assert!(self.child.wait().unwrap().success(), "{report}");
        let record = std::fs::read(self.folder.path().join("record.json")).unwrap();
        (report, serde_json::from_slice(&record).unwrap(), self.folder)
    }
}

/// Watches a program from its start to its end, at returns too.
fn watched(program: &Program) -> Option<Record> {
    let mut running = Waiting::start(program);
    let watcher = Watcher::start(&[&running], "--returns")?;
    running.work();
    Some(watcher.end().1)
}

/// Kinds that are looked for from outside too.
const KINDS: [FindingKind; 4] = [
    FindingKind::RepeatedSearch,
    FindingKind::SessionChurn,
    FindingKind::Serialised,
    FindingKind::Sleep,
];

fn found(record: &Record) -> BTreeSet<(String, String)> {
    let wanted = record.findings.iter().filter(|it| KINDS.contains(&it.kind));
    // What sleeps outside of any call has the name of a system call here, and of libc's function
    // there.
    let place = |it: &Finding| {
        if it.layer == "program" { "the program".to_owned() } else { it.place.clone() }
    };
    wanted.map(|it| (format!("{:?}", it.kind), place(it))).collect()
}

/// The same findings, and one of that kind among them, about as often.
#[track_caller]
fn same_findings(program: &Program, kind: &FindingKind) {
    let Some(watched) = watched(program) else { return };
    let started = program.traced().exits(0).record();
    assert_eq!(
        found(&watched),
        found(&started),
        "watched {:#?}\nstarted {:#?}",
        watched.findings,
        started.findings
    );
    let count = |record: &Record| {
        let of_kind = record.findings.iter().find(|it| it.kind == *kind);
        of_kind.unwrap_or_else(|| panic!("no {kind:?} in {:#?}", record.findings)).count
    };
    if *kind != FindingKind::Serialised {
        assert!(count(&watched).abs_diff(count(&started)) <= 2, "{watched:#?}\n{started:#?}");
    }
}

/// A program on a token with a key pair.
fn on_softhsm(program: &str, options: &str) -> Option<(Program, Hsm)> {
    let (program, hsm) = fixtures::built(program).zip(Hsm::new())?;
    let program = Program::new(program).arg(hsm.module()).args(options);
    Some((program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf")), hsm))
}

fn null_module() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libnull_module.so")
}

/// Templates and answers are compared by digests that the kernel makes.
#[test]
fn repeated_searches_are_found_from_outside() {
    let Some((searcher, _hsm)) = on_softhsm("searcher", "500") else { return };
    same_findings(&searcher, &FindingKind::RepeatedSearch);
    let Some((changer, _hsm)) = on_softhsm("searcher", "200 --change --keep") else { return };
    let Some(record) = watched(&changer) else { return };
    let search = record.findings.iter().find(|it| it.kind == FindingKind::RepeatedSearch);
    assert_eq!(search, None, "what is searched changes each time");
}

/// Sessions that take some time: those of SoftHSM2 take a microsecond, as much as a watched call
/// costs, and weigh nothing from outside.
#[test]
fn session_churn_is_found_from_outside() {
    let Some(churner) = sleeper() else { return };
    same_findings(&churner, &FindingKind::SessionChurn);
}

/// A program that opens a session for each operation, on a module that sleeps in C_OpenSession.
fn sleeper() -> Option<Program> {
    let (client, module) = fixtures::built("client").zip(fixtures::built("stand-in-sleepy"))?;
    Some(Program::new(client).arg(module).args("--digest 50 --sessions-per-op"))
}

#[test]
fn serialised_threads_are_found_from_outside() {
    let options = format!("--sign 500 --rsa --threads 4 --serialised --pin {PIN}");
    let Some((client, _hsm)) = on_softhsm("client", &options) else { return };
    same_findings(&client, &FindingKind::Serialised);
}

#[test]
fn sleeps_are_found_from_outside() {
    let Some(sleeper) = sleeper() else { return };
    same_findings(&sleeper, &FindingKind::Sleep);
    let Some((pauses, _hsm)) = on_softhsm("searcher", "50 --keep --pause 5") else { return };
    same_findings(&pauses, &FindingKind::Sleep);
}

/// Two at once, each with its calls, and all exports.
#[test]
fn several_programs_are_one_report() {
    let Some(client) = fixtures::built("client") else { return };
    let program = |count: &str| Program::new(&client).arg(null_module()).arg("--digest").arg(count);
    let mut one = Waiting::start(&program("300"));
    let mut other = Waiting::start(&program("200"));
    let options = "--returns --perfetto p.pftrace --folded stacks --operation C_Digest";
    let Some(watcher) = Watcher::start(&[&one, &other], options) else { return };
    one.work();
    other.work();
    let (report, record, folder) = watcher.end();
    assert!(report.contains("C_DigestInit"), "{report}");
    assert!(report.contains("watched from outside"), "{report}");
    let digests = record.calls.iter().find(|it| it.function == "C_Digest").unwrap();
    assert_eq!((digests.count, digests.module.as_str()), (500, "libnull_module.so"));
    let case = record.results.iter().find(|it| it.operation.contains("C_Digest"));
    assert!(case.is_some(), "{:#?}", record.results);
    assert!(std::fs::metadata(folder.path().join("p.pftrace")).unwrap().len() > 10_000);
    let stacks = std::fs::read_to_string(folder.path().join("stacks")).unwrap();
    assert!(stacks.contains("C_Digest"), "{stacks}");
}

/// The same calls with the same numbers, lengths and templates, and the same waits, whoever looks.
#[test]
fn a_load_recorded_from_outside_is_the_one_recorded_from_inside() {
    let Some((searcher, hsm)) = on_softhsm("searcher", "30 --pause 2") else { return };
    let mut running = Waiting::start(&searcher);
    let options = "--returns --workload load.parquet --events kept";
    let Some(watcher) = Watcher::start(&[&running], options) else { return };
    running.work();
    let (_, _, folder) = watcher.end();
    let read = |path: &Path| read_workload(path, WorkloadLimits::default()).unwrap();
    let outside = read(&folder.path().join("load.parquet"));
    let started = searcher.traced_with("--workload load.parquet").exits(0);
    let inside = read(&started.file("load.parquet"));
    // What came before it was watched is not there.
    let calls = |workload: &Workload| {
        let [thread] = &workload.threads[..] else { panic!("{workload:?}") };
        let untimed = thread.calls.iter().map(|call| WorkloadCall {
            computing: Nanos::ZERO,
            waiting: Nanos::ZERO,
            duration: Nanos::ZERO,
            ..*call
        });
        untimed.skip_while(|call| call.function != "C_OpenSession").collect::<Vec<_>>()
    };
    let (outside_calls, inside_calls) = (calls(&outside), calls(&inside));
    assert!(inside_calls.iter().any(|call| call.function == "C_Sign" && call.output_bytes == 32));
    assert!(inside_calls.iter().filter(|call| call.after_wait).count() >= 29);
    for (outside, inside) in outside_calls.iter().zip(&inside_calls) {
        assert_eq!(outside, inside);
    }
    assert_eq!(outside_calls.len(), inside_calls.len());
    // As well from the events that were kept; and it is replayed.
    let tapstone = Command::new(env!("CARGO_BIN_EXE_tapstone"))
        .args(["trace", "--read", "kept", "--workload", "again.parquet"])
        .current_dir(folder.path())
        .output();
    assert!(tapstone.unwrap().status.success());
    assert_eq!(read(&folder.path().join("again.parquet")), outside);
    let load = folder.path().join("load.parquet");
    let replayed = hsm.tapstone().arg("--workload").arg(load).run().exits(0).record();
    let signs = replayed.results.iter().find(|case| case.operation == "C_Sign CKM_SHA256_HMAC");
    assert_eq!(signs.unwrap().completed, 30);
}

/// What is kept is looked at again, with all that the first look found.
#[test]
fn kept_calls_of_a_watched_program_are_read_again() {
    let Some((searcher, _hsm)) = on_softhsm("searcher", "200") else { return };
    let mut running = Waiting::start(&searcher);
    let options = "--returns --events kept --folded first.folded";
    let Some(watcher) = Watcher::start(&[&running], options) else { return };
    running.work();
    let (_, first, folder) = watcher.end();
    let kept = folder.path().join("kept");
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(first.events.as_ref().unwrap().file, "kept");
    let tapstone = |arguments: &str| {
        let arguments = arguments.split_whitespace();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        command.args(arguments).current_dir(folder.path()).output().unwrap()
    };
    let again = || {
        let done = tapstone("trace --read kept --output again.json --folded again.folded");
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let record = std::fs::read(folder.path().join("again.json")).unwrap();
        serde_json::from_slice::<Record>(&record).unwrap()
    };
    let second = again();
    assert_eq!(second.calls, first.calls);
    assert_eq!(second.findings, first.findings);
    assert_eq!(second.layers, first.layers);
    assert_eq!(second.dropped, first.dropped);
    assert_eq!(second.warnings, first.warnings);
    let stacks = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(stacks("again.folded"), stacks("first.folded"));
    let done = tapstone("trace --read kept --operation C_Sign --output signs.json");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(tapstone("report -o page.html record.json").status.code(), Some(0));
    assert!(stacks("page.html").contains("C_FindObjectsInit"));
    let refused = tapstone("trace --read kept --workload w.parquet");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("hint: "), "{refused:?}");

    // Cut short, damaged, and no longer one at all.
    let whole = std::fs::read(&kept).unwrap();
    std::fs::write(&kept, &whole[..whole.len() - 100]).unwrap();
    assert!(again().warnings.iter().any(|it| it.contains("cut short by 100 bytes")));
    let mut damaged = whole.clone();
    let last = damaged.len() - 80;
    damaged[last..].fill(0xFF);
    std::fs::write(&kept, &damaged).unwrap();
    assert_eq!(again().dropped, first.dropped.map(|dropped| dropped + 1));
    for bytes in [&whole[..20], &whole[..200], &[&whole[..24], b"{}"].concat()] {
        std::fs::write(&kept, bytes).unwrap();
        let refused = tapstone("trace --read kept");
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("damaged"), "{refused:?}");
    }
}
