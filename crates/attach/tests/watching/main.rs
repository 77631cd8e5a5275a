//! Watching a program that runs, on the real kernel: counts against what the program itself knows.
//! Needs root, Linux 6.6 and a C compiler; without them it says so and does nothing.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod client;
mod endings;
mod figures;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use tapstone_attach::modules;
use tapstone_attach::{Watch, WatchPlan, Watched};
use tapstone_testing::skip;

use self::client::{RIGHTS, Running, attach, null_module, watched};

const REFUSED: u64 = 0x91;

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
            return;
        };
        let plan = WatchPlan { as_pairs, ..WatchPlan::default() };
        let Some((known, seen)) = watched(&mut running, plan) else { return };
        let [begun, well, refused, other, ..] = known;
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
            println!("{why}");
            skip(RIGHTS);
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

/// Modules that people use, and the files that have their functions.
const MODULES: [(&str, &str); 5] = [
    ("/usr/lib/softhsm/libsofthsm2.so", "libsofthsm2.so"),
    ("/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so", "opensc-pkcs11.so"),
    ("/usr/lib/x86_64-linux-gnu/p11-kit-proxy.so", "libp11-kit.so.0.3.0"),
    ("/usr/lib/x86_64-linux-gnu/libykcs11.so", "libykcs11.so.2.2.0"),
    ("/usr/lib/x86_64-linux-gnu/pkcs11/libopencryptoki.so", "libopencryptoki.so.0.0.0"),
];
/// It complains on its standard error of each call that it does not have.
const TRUST: (&str, &str) =
    ("/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-trust.so", "p11-kit-trust.so");

/// Those of them that are installed; of the others it is said that they are not.
fn installed(
    modules: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> impl Iterator<Item = (&'static Path, &'static str)> {
    modules.into_iter().map(|(module, file)| (Path::new(module), file)).filter(|(module, _)| {
        let is_installed = module.exists();
        if !is_installed {
            skip(&module.display().to_string());
        }
        is_installed
    })
}

#[test]
fn all_functions_of_a_module_are_found() {
    let Some(found) = found_in_client(&null_module()) else { return };
    assert_eq!(names(&found["libnull_module.so"]), 68);
    for (module, file) in installed(MODULES.into_iter().chain([TRUST])) {
        let Some(found) = found_in_client(module) else { return };
        let module = module.display();
        let Some(functions) = found.get(file) else {
            panic!("{module}: only {:?}", found.keys());
        };
        assert!(names(functions) >= 68, "{module}: {}", names(functions));
        let stepped = functions.iter().filter(|it| it.probe.is_stepped).count();
        let moved = functions.iter().filter(|it| it.probe.behind > 0).count();
        eprintln!("{file}: {} entries, {moved} moved, {stepped} stepped", functions.len());
    }
}

/// Each function of each module that is installed, as often as it was called, with what it said.
#[test]
fn counts_of_installed_modules_are_exact() {
    const CALLS: u64 = 500;
    for (module, file) in installed(MODULES) {
        let Some(mut running) = Running::start_refused(module, CALLS) else { return };
        let plan = WatchPlan { processes: vec![running.child.id()], ..WatchPlan::default() };
        let Some(watch) = attach(WatchPlan { with_returns: true, ..plan }) else { return };
        running.go_on();
        let known = running.refused();
        let seen = watch.detach().unwrap();
        for refused in known {
            let counted = seen.counts.iter().filter(|it| {
                it.module == file
                    && it.function == refused.function
                    && it.result == Some(refused.result)
            });
            let counted = counted.map(|it| it.count).sum::<u64>();
            assert_eq!(counted, CALLS, "{file}: {refused:?}: {:?}", seen.counts);
        }
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
        return skip(RIGHTS);
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
