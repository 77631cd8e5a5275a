//! `memoise:fopen` on programs that open the same file again and again: what they read is what they
//! read without it.

use std::process::Command;

use tapstone_testing::skip;

use crate::{finding, fixtures, record, run, trial, turn};

const COUNT: u64 = 20;

/// What the program prints under the fix is what it prints without, in each of these ways; and how
/// many openings were answered.
#[test]
fn a_file_that_is_opened_again_gives_what_it_holds() {
    let _turn = turn();
    let Some(program) = fixtures::built("reopener") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let all = COUNT - 1;
    for (way, least, most) in [
        ("plain", all, all),
        ("large", all, all),
        ("half", all, all),
        ("seeks", all, all),
        // Each in place, of the same length.
        ("rewritten", all, all),
        // Another file by the same name each fifth time.
        ("replaced", all - COUNT / 5, all - COUNT / 5),
        ("grows", all, all),
        ("removed", COUNT / 2 - 1, COUNT / 2 - 1),
        // Ways on which a stream cannot be followed: it is closed.
        ("wide", 0, 0),
        ("buffer", 0, 0),
        ("descriptor", 0, 0),
        ("late", 0, 0),
        ("reopened", 0, 0),
        ("closed", 0, 0),
        ("forks", 0, 0),
        ("threads", 1, 4 * COUNT - 1),
    ] {
        let count = COUNT.to_string();
        let command = [program.to_str().unwrap(), way, path.to_str().unwrap(), &count];
        let bare = Command::new(command[0]).args(&command[1..]).output().unwrap();
        assert!(bare.status.success(), "{way}: {bare:?}");
        let with = run("trace", "--fix memoise:fopen", &[], &command).exits(0);
        assert_eq!(with.stdout, String::from_utf8(bare.stdout).unwrap(), "{way}");
        let warnings = record(&with).warnings;
        let said = warnings.iter().find_map(|warning| {
            let (_, after) = warning.split_once("the fix memoise:fopen was on and changed ")?;
            after.split_once(' ')?.0.parse::<u64>().ok()
        });
        let changed = said.unwrap_or_default();
        assert!(
            (least..=most).contains(&changed),
            "{way}: {changed} of {least} to {most}: {warnings:#?}"
        );
    }
}

/// A configuration file that is read for each request.
#[test]
fn a_configuration_read_for_each_request_is_found_and_kept() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let [program, file] = ["configured", "settings"].map(|name| folder.path().join(name));
    let source = fixtures::source("../twins/configured.c");
    let built = Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source).status();
    let Ok(built) = built else { return skip("cc") };
    assert!(built.success());
    let command = [program.to_str().unwrap(), file.to_str().unwrap(), "3000"];
    let traced = run("trace", "", &[], &command).exits(0);
    let found = finding(&record(&traced).findings, "memoise:fopen");
    assert!(found.place == "fopen" && found.count >= 3_000, "{found:?}");
    // All but the first: what that saves is less than runs differ beside other work.
    let tried = trial("memoise:fopen", "--rounds 3", &[], &command);
    assert_eq!(tried.changed, Some(3_000 * 3), "{tried:?}");
}
