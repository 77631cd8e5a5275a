//! The same command again and again: no crash, no hang, and nothing that it says is different but
//! for what differs by itself.

use crate::fixtures;
use crate::program::{Program, counts};
use crate::softhsm::{Hsm, PIN};
use crate::support::skip;

const SOFTHSM: &str = "libsofthsm2.so";

/// pkcs11-tool on a token with a key pair. `None`, which has been said then: something is missing.
fn pkcs11_tool() -> Option<(Program, Hsm)> {
    let hsm = Hsm::new()?;
    hsm.pkcs11_tool("--keypairgen --key-type EC:prime256v1 --label key --id 01")?;
    let tool = Program::new("pkcs11-tool").arg("--module").arg(hsm.module());
    let tool = tool.args("--login --pin").arg(PIN).arg("--list-objects");
    Some((tool.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf")), hsm))
}

/// Lines, and those of them that differ between untouched runs: pkcs11-tool shows addresses of
/// memory.
struct Lines(Vec<Option<String>>);

impl Lines {
    fn of(program: &Program) -> Self {
        let mut all: Option<Vec<Option<String>>> = None;
        for _ in 0..4 {
            let bare = program.bare().exits(0);
            let lines = format!("{}{}", bare.stdout, bare.stderr);
            let lines: Vec<_> = lines.lines().map(|line| Some(line.to_owned())).collect();
            all = Some(match all {
                None => lines,
                Some(before) => {
                    assert_eq!(before.len(), lines.len());
                    let same = |(one, other)| if one == other { one } else { None };
                    before.into_iter().zip(lines).map(same).collect()
                }
            });
        }
        let lines = all.unwrap();
        let known = lines.iter().flatten().count();
        assert!(known * 2 > lines.len(), "most lines differ by themselves: {lines:?}");
        Self(lines)
    }

    #[track_caller]
    fn are_said(&self, text: &str) {
        let said: Vec<_> = text.lines().collect();
        assert_eq!(said.len(), self.0.len(), "{text}");
        for (line, said) in self.0.iter().zip(said) {
            assert!(
                line.as_ref().is_none_or(|line| line == said),
                "{said} in the place of {line:?}"
            );
        }
    }
}

fn list_objects(times: usize) {
    let Some((tool, _hsm)) = pkcs11_tool() else { return };
    let lines = Lines::of(&tool);
    let mut first = None;
    for number in 0..times {
        let left = tool.traced().exits(0);
        lines.are_said(&format!("{}{}", left.stdout, left.stderr));
        let record = left.whole();
        let counts: Vec<_> = counts(&record, SOFTHSM)
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect();
        assert_eq!(&counts, first.get_or_insert_with(|| counts.clone()), "run {number}");
        assert!(counts.iter().any(|(name, _)| name == "C_FindObjects"), "{counts:?}");
    }
}

#[test]
fn twenty_lists_of_objects_are_twenty_times_the_same() {
    list_objects(20);
}

#[test]
#[ignore = "takes a minute"]
fn two_hundred_lists_of_objects_are_two_hundred_times_the_same() {
    list_objects(200);
}

fn eight_threads(times: usize) {
    let Some((client, hsm)) = fixtures::built("client").zip(Hsm::new()) else { return };
    let client = Program::new(client).arg(hsm.module()).args("--digest 100 --threads 8 --crash");
    let client = client.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let bare = client.bare().exits(0);
    for number in 0..times {
        let left = client.traced().exits(0);
        assert_eq!((&left.stdout, &left.stderr), (&bare.stdout, &bare.stderr), "run {number}");
        // And one in the child that crashes.
        assert_eq!(counts(&left.whole(), SOFTHSM)["C_Digest"], 801, "run {number}");
    }
}

#[test]
fn twenty_runs_of_eight_threads_and_a_crash_are_twenty_times_the_same() {
    eight_threads(20);
}

#[test]
#[ignore = "takes a minute"]
fn two_hundred_runs_of_eight_threads_and_a_crash_are_two_hundred_times_the_same() {
    eight_threads(200);
}

/// The probe adds nothing to what a program says of its memory or its libraries when it is asked.
#[test]
fn a_program_finds_its_own_libraries() {
    if !std::path::Path::new("/usr/bin/ldd").exists() {
        return skip("ldd");
    }
    // ldd runs the dynamic linker, which loads auditors too.
    Program::shell("ldd /bin/true | cut -d'(' -f1").unchanged().exits(0);
}
