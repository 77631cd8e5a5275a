//! Ordinary commands, which waste nothing that is worth a finding: among all of them there is at
//! most one. A detector that finds more finds what is no waste.

use std::fs;
use std::path::Path;
use std::process::Command;

use tapstone_testing::skip;

use crate::program::Program;

/// What they do, in a shell that begins in a folder with `text`, `code.c` and a git repository.
const COMMANDS: [&str; 22] = [
    "git log --stat",
    "git status",
    "curl --silent --show-error file://$PWD/text",
    "sqlite3 new.db 'create table t(n); insert into t values(1),(2); select sum(n) from t'",
    "tar -cf all.tar text code.c",
    "tar -cf all.tar text && tar -xOf all.tar",
    "gcc -c code.c -o code.o",
    "python3 -c 'import json, hashlib; print(json.dumps({\"a\": 1}))'",
    "ssh-keygen -q -t ed25519 -N '' -f key",
    "openssl genpkey -algorithm ed25519",
    "openssl dgst -sha256 text",
    "gzip --keep --force text",
    "xz --keep --force text",
    "grep -r main .",
    "find /usr/share/misc /etc -maxdepth 1",
    "sort text",
    "awk '{n += length($0)} END {print n}' text",
    "sed s/line/LINE/ text",
    "perl -e 'use strict; print 6 * 7'",
    "make --version",
    "ls -lR /usr/share/misc",
    "bash -c 'for i in 1 2 3; do id; done'",
];

fn prepare(folder: &Path) -> Option<()> {
    let lines: String = (0..2_000).map(|number| format!("line {number}\n")).collect();
    fs::write(folder.join("text"), lines).unwrap();
    fs::write(folder.join("code.c"), "int main(void) { return 0; }\n").unwrap();
    let git = "git init -q . && git add text && \
               git -c user.name=n -c user.email=e@example.org commit -q -m one";
    let made = Command::new("sh").args(["-c", git]).current_dir(folder).status().unwrap();
    made.success().then_some(())
}

#[test]
fn twenty_two_ordinary_commands_have_one_finding_at_most() {
    let mut found = Vec::new();
    for command in COMMANDS {
        let name = command.split(' ').next().unwrap();
        let there = Program::shell(&format!("command -v {name} >/dev/null")).bare().code() == 0;
        if !there {
            skip(&format!("{name} is missing"));
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        if prepare(folder.path()).is_none() {
            skip("git does not make a repository");
            return;
        }
        let text = format!("cd {} && {command}", folder.path().display());
        let record = Program::shell(&text).traced().exits(0).record();
        found.extend(record.findings.into_iter().map(|finding| (command, finding)));
    }
    assert!(found.len() <= 1, "{found:#?}");
}
