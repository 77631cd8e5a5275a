//! What `make test` does with the targets: the kept corpus, then changes of it for some seconds.
//!
//! Nothing guides the changes here; finding new paths is for `make fuzz`.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use mutatis::Session;
use tapstone_fuzz::structure::{Choices, mutate};
use tapstone_fuzz::targets::TARGETS;
use tapstone_fuzz::{Executions, FuzzTarget};

/// For all targets together.
const BUDGET: Duration = Duration::from_secs(20);

/// The inputs of a target that are kept, by their names.
fn corpus(target: &FuzzTarget) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut inputs: Vec<_> = files
        .map(|file| file.unwrap())
        .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

/// The input that is being tried, so that a failure can name it.
struct Trying<'a> {
    target: &'a FuzzTarget,
    input: &'a [u8],
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let path = std::env::temp_dir().join(format!("tapstone-fuzz-{}", self.target.name));
            let kept = fs::write(&path, self.input);
            eprintln!("{}: the input is in {}: {kept:?}", self.target.name, path.display());
        }
    }
}

fn try_input(target: &FuzzTarget, input: &[u8]) {
    let trying = Trying { target, input };
    target.execute(trying.input);
}

#[test]
fn every_target_holds_for_its_corpus_and_for_changes_of_it() {
    let each = BUDGET / TARGETS.len() as u32;
    let began = Executions::until_now();
    for target in TARGETS {
        let before = Executions::until_now();
        let start = Instant::now();
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "{} has a corpus", target.name);
        for (_, input) in &corpus {
            try_input(target, input);
        }
        let replayed = Executions::until_now().count - before.count;
        assert_eq!(replayed, corpus.len() as u64, "{}", target.name);
        changes_hold(target, &corpus, start + each);
        let after = Executions::until_now();
        let executions = after.count - before.count;
        let cpu = Duration::from_nanos(after.cpu_nanos - before.cpu_nanos);
        println!(
            "{:14} {replayed:5} inputs, {executions:8} executions in {:5.2} s of processor time",
            target.name,
            cpu.as_secs_f64(),
        );
        // No target does its work in less than 50 ns: a count beyond that was not made.
        assert!(
            u128::from(executions) * 50 <= cpu.as_nanos(),
            "{}: {executions} in {cpu:?}",
            target.name
        );
    }
    let all = Executions::until_now().count - began.count;
    println!("{all} executions in all");
}

/// Several changes on top of each other reach further than one.
fn changes_hold(target: &FuzzTarget, corpus: &[(String, Vec<u8>)], until: Instant) {
    let seed = u64::from(std::process::id());
    let mut choices = Choices::from_seed(seed);
    let mut bytes = Session::new().seed(seed);
    while Instant::now() < until {
        let at = choices.below(corpus.len());
        let mut input = corpus[at].1.clone();
        for _ in 0..=choices.below(4) {
            mutate(target.structure, &mut input, &mut choices, &mut |part| {
                // An empty part that cannot be changed stays as it is.
                let _ = bytes.mutate(part);
            });
            input.truncate(target.longest);
            try_input(target, &input);
        }
    }
}
