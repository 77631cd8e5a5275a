//! Keys that killed runs leave on a token, and the keys of others beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, test_kill_process};

use crate::support::{Outcome, Running, Tapstone, eventually, state_of};

/// A run with a key pair on the token, in the middle of its window.
fn measuring() -> Running {
    let run = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]).stored();
    let run = run.args("--op rsa1024.sign --no-verify --token-keys --seconds 60").start();
    run.wait_until_it_measures();
    run
}

/// `--leftovers` on that store.
fn leftovers(store: &Path, arguments: &str) -> Outcome {
    Tapstone::on(&[]).stored_in(store).args("--leftovers").args(arguments).without_record().run()
}

fn files(store: &Path) -> Vec<String> {
    let names = fs::read_dir(store).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".object"));
    names.sort();
    names
}

#[test]
fn a_worker_cleans_up_when_its_lab_is_killed() {
    let run = measuring();
    let workers = run.workers();
    let store = run.store();
    assert_eq!(workers.len(), 1);
    let _directory = run.kill();
    let clean = eventually(Duration::from_secs(5), || files(&store).is_empty());
    assert!(clean, "{:?}", files(&store));
    let gone = |worker: &Pid| test_kill_process(*worker).is_err();
    assert!(eventually(Duration::from_secs(5), || workers.iter().all(gone)));
}

#[test]
fn what_nobody_could_clean_up_is_listed_and_removed() {
    let run = measuring();
    let store = run.store();
    let _directory = run.kill_all();
    assert_eq!(files(&store).len(), 2);

    let listed = leftovers(&store, "").exits(0);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("left  CKO_")), "{lines:?}");
    assert_eq!(lines.len(), 2);
    assert!(listed.stderr.contains("hint: --leftovers --remove"), "{}", listed.stderr);
    assert_eq!(files(&store).len(), 2, "listing removes nothing");

    let removed = leftovers(&store, "--remove").exits(0);
    assert_eq!(removed.stdout.matches("removed  CKO_").count(), 2, "{}", removed.stdout);
    assert_eq!(files(&store), [""; 0]);
    assert_eq!(leftovers(&store, "").exits(0).stdout, "no leftovers\n");
}

#[test]
fn leftovers_are_listed_for_programs_too() {
    let run = measuring();
    let store = run.store();
    let _directory = run.kill_all();
    let listed = leftovers(&store, "--format json").exits(0);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed[0]["removed"], false);
}

/// What the module writes for an attribute: its number and its value, both in hexadecimal.
const LABEL: &str = "\n3 ";
const ID: &str = "\n102 ";

/// Beside each leftover the same object with another label, with another id, and with neither.
fn add_foreign_keys(store: &Path) -> Vec<(String, String)> {
    let mut foreign = Vec::new();
    for name in files(store) {
        let own = fs::read_to_string(store.join(&name)).unwrap();
        // "tapstone-" becomes "Tapstone-", "TAPSTONE" becomes "tAPSTONE".
        let relabelled = own.replace(&format!("{LABEL}74"), &format!("{LABEL}54"));
        let renumbered = own.replace(&format!("{ID}54"), &format!("{ID}74"));
        let both = relabelled.replace(&format!("{ID}54"), &format!("{ID}74"));
        for (kind, text) in [(7, relabelled), (8, renumbered), (9, both)] {
            assert_ne!(text, own, "the store is written as it is expected here");
            let name = format!("{kind}{name}");
            fs::write(store.join(&name), &text).unwrap();
            foreign.push((name, text));
        }
    }
    foreign.sort();
    foreign
}

fn contents(store: &Path) -> Vec<(String, String)> {
    let content = |name: String| (name.clone(), fs::read_to_string(store.join(name)).unwrap());
    files(store).into_iter().map(content).collect()
}

#[test]
fn the_keys_of_others_are_never_touched() {
    let run = measuring();
    let store = run.store();
    let _directory = run.kill_all();
    let foreign = add_foreign_keys(&store);
    assert_eq!(files(&store).len(), 8);
    assert_eq!(leftovers(&store, "").exits(0).stdout.lines().count(), 2);
    leftovers(&store, "--remove").exits(0);
    assert_eq!(contents(&store), foreign);
}

#[test]
fn a_run_that_cleans_up_leaves_the_keys_of_other_runs_alone() {
    let run = measuring();
    let store = run.store();
    let _directory = run.kill_all();
    let others = contents(&store);
    // This machine knows nothing of them.
    fs::remove_dir_all(state_of(&store)).unwrap();
    // A worker that crashes is cleaned up after by a search: here it has others' keys to spare.
    let crash = [("SERVICE", "1ms"), ("CRASH", "C_Sign/100")];
    let run = Tapstone::on(&crash).stored_in(&store);
    run.args("--op rsa1024.sign --no-verify --token-keys --seconds 20").run().exits(2);
    assert_eq!(contents(&store), others);
}

/// The files in which runs on this store have noted their keys.
fn notes(store: &Path) -> Vec<PathBuf> {
    let folder = state_of(store).join("tapstone/keys-on-tokens");
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect()
}

/// Another run on that store.
fn another(store: &Path, arguments: &str) -> Outcome {
    let run = Tapstone::on(&[]).stored_in(store).args("--op rsa1024.sign --no-verify --count 9");
    run.args(arguments).run()
}

#[test]
fn the_next_run_removes_what_a_killed_one_left_and_says_so() {
    let run = measuring();
    let store = run.store();
    let _directory = run.kill_all();
    assert_eq!((files(&store).len(), notes(&store).len()), (2, 1));
    let next = another(&store, "").exits(0);
    assert!(next.stderr.contains("removed 2 keys that a killed run had left"), "{}", next.stderr);
    assert_eq!((files(&store).len(), notes(&store).len()), (0, 0));
    let third = another(&store, "").exits(0);
    assert!(!third.stderr.contains("removed"), "{}", third.stderr);
}

#[test]
fn keys_of_a_run_that_goes_on_are_nobody_elses() {
    let run = measuring();
    let store = run.store();
    let listed = leftovers(&store, "--remove").exits(0);
    assert_eq!(listed.stdout.matches("in use  CKO_").count(), 2, "{}", listed.stdout);
    let owners = leftovers(&store, "--format json").exits(0).stdout;
    assert_eq!(owners.matches("\"owner\": \"live_run\"").count(), 2, "{owners}");
    another(&store, "--token-keys").exits(0);
    assert_eq!((files(&store).len(), notes(&store).len()), (2, 1));
    run.signal(Signal::INT);
    let outcome = run.wait().exits(2);
    assert!(outcome.row().failed.is_empty());
    assert_eq!((files(&store).len(), notes(&store).len()), (0, 0));
}

#[test]
fn keys_of_another_machine_are_never_touched() {
    let run = measuring();
    let store = run.store();
    let _directory = run.kill_all();
    let [note] = &notes(&store)[..] else { panic!("one worker") };
    let text = fs::read_to_string(note).unwrap();
    let machine = text.split("\"machine\":\"").nth(1).unwrap().split('"').next().unwrap();
    fs::write(note, text.replace(machine, "another")).unwrap();
    let listed = leftovers(&store, "--remove").exits(0);
    assert_eq!(listed.stdout.matches("owner unknown  CKO_").count(), 2, "{}", listed.stdout);
    another(&store, "").exits(0);
    assert_eq!((files(&store).len(), notes(&store).len()), (2, 1));
}

#[test]
fn a_key_that_cannot_be_noted_is_not_made() {
    let run = |arguments: &str| {
        let run = Tapstone::on(&[]).stored().args("--op rsa1024.sign --no-verify --count 9");
        let state = run.path("a-file");
        run.file("a-file", "").env("XDG_STATE_HOME", state).args(arguments).run()
    };
    let refused = run("--token-keys").exits(2);
    assert!(refused.stderr.contains("the key cannot be noted"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: XDG_STATE_HOME"), "{}", refused.stderr);
    assert_eq!(refused.objects(), [""; 0]);
    run("").exits(0);
}
