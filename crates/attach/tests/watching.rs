//! Watching a program that runs, on the real kernel: counts against what the program itself knows.
//! Needs root, Linux 6.6 and a C compiler; without them it says so and does nothing.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tapstone_attach::modules;
use tapstone_attach::{AttachError, Watch, WatchPlan, Watched};

const REFUSED: u64 = 0x91;

/// The client, built once for all tests.
static CLIENT: LazyLock<Option<PathBuf>> = LazyLock::new(build_client);

fn build_client() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("attach-client");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let partial = program.with_extension(std::process::id().to_string());
    let built = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror"])
        .arg(format!("-I{}", here.join("../../fixtures/traced").display()))
        .arg("-o")
        .arg(&partial)
        .arg(here.join("tests/client.c"))
        .args(["-ldl", "-lpthread"])
        .status();
    built.ok().filter(std::process::ExitStatus::success)?;
    std::fs::rename(&partial, &program).ok()?;
    Some(program)
}

/// A client that is ready to work, and is not left behind.
struct Running {
    child: Child,
    said: BufReader<ChildStdout>,
}

/// What the client knows: C_DigestInit that went well, C_Digest that went well, was refused, and
/// failed otherwise, and the time of C_Digest.
type Known = [u64; 5];

impl Running {
    fn start(module: &Path, words: &[u64]) -> Option<Self> {
        let mut child = Command::new(CLIENT.as_deref()?)
            .arg(module)
            .args(words.iter().map(u64::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self { child, said };
        assert_eq!(running.line(), "ready\n");
        Some(running)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn known(&mut self) -> Known {
        let line = self.line();
        let mut words = line.split_whitespace().map(|word| word.parse().unwrap());
        std::array::from_fn(|_| words.next().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn null_module() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().join("libnull_module.so")
}

/// Attaches, or says why this machine cannot.
fn attach(plan: WatchPlan) -> Option<Watch> {
    match Watch::attach(plan) {
        Ok(watch) => Some(watch),
        Err(AttachError::Kernel(why)) if !why.contains("does not take") => {
            eprintln!("skipped: {why}");
            None
        }
        Err(AttachError::Rights(why)) => {
            eprintln!("skipped: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Watches while the client works. `None`: this machine cannot.
fn watched(running: &mut Running, plan: WatchPlan) -> Option<(Known, Watched)> {
    let plan = WatchPlan { processes: vec![running.child.id()], with_returns: true, ..plan };
    let mut watch = attach(plan)?;
    running.go_on();
    let (done, known) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| running.known());
        while !worker.is_finished() {
            watch.take_in().unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        (Instant::now(), worker.join().unwrap())
    });
    watch.look_around().unwrap();
    let seen = watch.detach().unwrap();
    assert!(done.elapsed() < Duration::from_secs(10));
    Some((known, seen))
}

/// Counts by function and result.
fn counts(seen: &Watched) -> BTreeMap<(&'static str, u64), u64> {
    let mut counts = BTreeMap::new();
    for call in &seen.counts {
        *counts.entry((call.function, call.result.unwrap())).or_default() += call.count;
    }
    counts
}

#[test]
fn counts_are_exact_with_threads_and_children() {
    for as_pairs in [false, true] {
        let Some(mut running) = Running::start(&null_module(), &[4, 5000, 0, 2]) else {
            return eprintln!("skipped: no C compiler");
        };
        let plan = WatchPlan { as_pairs, ..WatchPlan::default() };
        let Some((known, seen)) = watched(&mut running, plan) else { return };
        let [begun, well, refused, other, _] = known;
        assert_eq!([begun, well, refused, other], [60_000, 60_000, 6_000, 0]);
        let counts = counts(&seen);
        assert_eq!(counts[&("C_DigestInit", 0)], begun, "{counts:?}");
        assert_eq!(counts[&("C_Digest", 0)], well, "{counts:?}");
        assert_eq!(counts[&("C_Digest", REFUSED)], refused, "{counts:?}");
        assert_eq!(seen.totals.begun, seen.totals.ended);
        assert_eq!(counts.values().sum::<u64>(), seen.totals.ended);
        let processes: BTreeSet<u32> = seen.counts.iter().map(|it| it.process).collect();
        assert_eq!(processes.len(), 3, "children are watched too");
    }
}

#[test]
fn sent_and_lost_are_all_calls() {
    for as_pairs in [false, true] {
        let Some(mut running) = Running::start(&null_module(), &[4, 5000, 0, 1]) else { return };
        let plan =
            WatchPlan { with_events: true, most_events: 1 << 30, as_pairs, ..WatchPlan::default() };
        let Some((known, seen)) = watched(&mut running, plan) else { return };
        let [begun, well, refused, ..] = known;
        let totals = seen.totals;
        assert_eq!(totals.sent + totals.lost, totals.ended);
        let sessions_and_start = totals.ended - begun - well - refused;
        assert!((8..20).contains(&sessions_and_start), "{sessions_and_start}");
    }
}

/// Names of functions that were found in a client that has loaded a module, by the module's file.
fn found_in_client(module: &Path) -> Option<BTreeMap<String, Vec<modules::FoundFunction>>> {
    let running = Running::start(module, &[1, 0])?;
    let found = match modules::find_modules(running.child.id()) {
        Ok(found) => found,
        Err(why) => {
            eprintln!("skipped: {why}");
            return None;
        }
    };
    let by_file = found.modules.into_iter().map(|module| {
        let name = module.name.rsplit('/').next().unwrap_or_default().to_owned();
        (name, module.functions.into_values().collect())
    });
    Some(by_file.collect())
}

fn names(functions: &[modules::FoundFunction]) -> usize {
    let names = functions.iter().flat_map(|it| it.names.iter().copied());
    names.collect::<BTreeSet<u16>>().len()
}

#[test]
fn all_functions_of_a_module_are_found() {
    let Some(found) = found_in_client(&null_module()) else { return };
    assert_eq!(names(&found["libnull_module.so"]), 68);
    for (module, file) in [
        ("/usr/lib/softhsm/libsofthsm2.so", "libsofthsm2.so"),
        ("/usr/lib/x86_64-linux-gnu/pkcs11/opensc-pkcs11.so", "opensc-pkcs11.so"),
        ("/usr/lib/x86_64-linux-gnu/p11-kit-proxy.so", "libp11-kit.so.0.3.0"),
        ("/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-trust.so", "p11-kit-trust.so"),
    ] {
        if !Path::new(module).exists() {
            eprintln!("skipped: no {module}");
            continue;
        }
        let Some(found) = found_in_client(Path::new(module)) else { return };
        let Some(functions) = found.get(file) else {
            panic!("{module}: only {:?}", found.keys());
        };
        assert!(names(functions) >= 68, "{module}: {}", names(functions));
        let stepped = functions.iter().filter(|it| it.probe.is_stepped).count();
        let moved = functions.iter().filter(|it| it.probe.behind > 0).count();
        eprintln!("{file}: {} entries, {moved} moved, {stepped} stepped", functions.len());
    }
}

/// Without `--returns`, functions of a module that unwinds are seen at their entries only.
#[test]
fn returns_are_left_alone_where_calls_may_be_unwound() {
    let Some(mut running) = Running::start(&null_module(), &[2, 500]) else { return };
    let plan = WatchPlan { processes: vec![running.child.id()], ..WatchPlan::default() };
    let Some(watch) = attach(plan) else { return };
    running.go_on();
    let [begun, well, refused, ..] = running.known();
    let seen = watch.detach().unwrap();
    assert_eq!(seen.totals.begun, 0, "no return is watched: the null module can panic");
    let of = |name| {
        let calls = seen.counts.iter().filter(|it| it.function == name && it.result.is_none());
        calls.map(|it| it.count).sum::<u64>()
    };
    assert_eq!([of("C_DigestInit"), of("C_Digest")], [begun, well + refused]);
    assert!(seen.warnings.iter().any(|it| it.contains("--returns")), "{:?}", seen.warnings);
}

#[test]
fn what_cannot_be_watched_is_said() {
    let of = |processes: Vec<u32>, users_of: Vec<String>| {
        let plan = WatchPlan { processes, users_of, ..WatchPlan::default() };
        Watch::attach(plan).unwrap_err().to_string()
    };
    let nobody = of(Vec::new(), vec!["no-such-module.so".to_owned()]);
    if nobody.contains("CAP_") {
        return eprintln!("skipped: {nobody}");
    }
    assert!(nobody.starts_with("no process has no-such-module.so loaded\nhint: "), "{nobody}");
    assert!(of(vec![u32::MAX >> 1], Vec::new()).starts_with("there is no process "));
    assert!(of(vec![std::process::id()], Vec::new()).contains("is tapstone itself"));
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let none = of(vec![sleeper.id()], Vec::new());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(none.contains("has no PKCS#11 module, PC/SC library"), "{none}");
}

/// The program ends while it is watched; so does the watching.
#[test]
fn an_end_of_the_program_is_noticed() {
    let Some(mut running) = Running::start(&null_module(), &[1, 50]) else { return };
    let plan = WatchPlan { processes: vec![running.child.id()], ..WatchPlan::default() };
    let Some(mut watch) = attach(plan) else { return };
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    watch.look_around().unwrap();
    assert!(!watch.has_processes());
    watch.detach().unwrap();
}

/// What a call takes for the client, which reads a clock before and after, in nanoseconds.
fn digest_time(module: &Path, plan: Option<WatchPlan>) -> Option<(f64, Option<Watched>)> {
    let mut running = Running::start(module, &[1, 200_000])?;
    let (known, seen) = match plan {
        Some(plan) => watched(&mut running, plan).map(|(known, seen)| (known, Some(seen)))?,
        None => {
            running.go_on();
            (running.known(), None)
        }
    };
    let [_, well, refused, _, nanos] = known;
    Some((nanos as f64 / (well + refused) as f64, seen))
}

/// Prints what watching costs a call of C_Digest, and how near the medians come.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn cost_of_a_watched_call() {
    let softhsm = PathBuf::from("/usr/lib/softhsm/libsofthsm2.so");
    for module in [null_module(), softhsm].into_iter().filter(|it| it.exists()) {
        let Some((alone, _)) = digest_time(&module, None) else { return };
        eprintln!("{}: {alone:.0} ns a call of C_Digest unwatched", module.display());
        for (with_events, as_pairs) in [(false, false), (true, false), (false, true), (true, true)]
        {
            let most_events = 1 << 30;
            let plan = WatchPlan { with_events, as_pairs, most_events, ..WatchPlan::default() };
            let Some((watched, Some(seen))) = digest_time(&module, Some(plan)) else { return };
            let times = seen.times.iter().find(|it| it.function == "C_Digest");
            let median = times.and_then(|it| it.series.total().quantile(0.5));
            eprintln!(
                "  {} {}: {:.0} ns more; median {median:?}; {:?}; probes inside {:?}; attach {:.1} ms, \
                 detach {:.1} ms",
                if with_events { "events" } else { "counts" },
                if as_pairs { "by pairs" } else { "by sessions" },
                watched - alone,
                seen.totals,
                seen.cost,
                seen.attach_time.0 as f64 / 1e6,
                seen.detach_time.0 as f64 / 1e6,
            );
        }
    }
}
