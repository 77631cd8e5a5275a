//! The action of the repository, its steps run here one after the other as a runner would: with the
//! variables that GitHub sets, and each step's PATH made longer by the one before.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tapstone_files::Access;
use tapstone_record::{Outcome, Record};
use tapstone_testing::private_environment;
use tempfile::TempDir;

use crate::example;

const ACTION: &str = include_str!("../../../../action.yml");

/// A step: its variables, each with the input it has, and its script.
struct Step {
    variables: Vec<(String, String)>,
    script: String,
}

/// The steps of the action. Of YAML it knows as much as this file uses.
fn steps() -> Vec<Step> {
    let parts = ACTION.split("    - name: ").skip(1);
    parts
        .map(|part| {
            let (head, script) = part.split_once("      run: |\n").unwrap();
            let variable = |line: &str| {
                let (name, value) = line.trim().split_once(": ${{ inputs.")?;
                Some((name.to_owned(), value.trim_end_matches(" }}").to_owned()))
            };
            Step {
                variables: head.lines().filter_map(variable).collect(),
                script: script
                    .lines()
                    .map(|line| line.get(8..).unwrap_or(""))
                    .collect::<Vec<_>>()
                    .join("\n"),
            }
        })
        .collect()
}

/// Runs the action with these inputs; the last output, and what GitHub would show below the run.
fn act(folder: &Path, inputs: &[(&str, &str)]) -> (Output, String) {
    let path_file = folder.join("path");
    let summary = folder.join("summary");
    fs::write(&path_file, "").unwrap();
    fs::write(&summary, "").unwrap();
    let mut last = None;
    for step in steps() {
        let added = fs::read_to_string(&path_file).unwrap();
        let path = added
            .lines()
            .chain([std::env::var("PATH").unwrap().as_str()])
            .collect::<Vec<_>>()
            .join(":");
        let mut command = Command::new("bash");
        private_environment(&mut command);
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step.script]);
        command.current_dir(folder).env("PATH", path).env("RUNNER_TEMP", folder);
        command.env("GITHUB_PATH", &path_file).env("GITHUB_STEP_SUMMARY", &summary);
        for (name, input) in &step.variables {
            let value = inputs.iter().find(|(it, _)| it == input);
            command.env(name, value.unwrap_or_else(|| panic!("no input {input}")).1);
        }
        let output = command.output().unwrap();
        let failed = !output.status.success();
        last = Some(output);
        if failed {
            break;
        }
    }
    (last.unwrap(), fs::read_to_string(summary).unwrap())
}

/// An archive of a release, whose program is the one that is tested.
fn archive(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let inside = folder.join("tapstone-1");
    fs::create_dir(&inside).unwrap();
    let program = inside.join("tapstone");
    fs::write(&program, format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_tapstone")))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.join("release.tar.gz");
    let made =
        Command::new("tar").current_dir(folder).arg("-czf").arg(&path).arg("tapstone-1").status();
    assert!(made.unwrap().success());
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_action_installs_a_release_and_fails_when_a_record_is_surely_slower() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let mut record = Record::read(example("token")).unwrap();
    // The example's operations failed now and then, which makes no baseline.
    record.results.retain(|case| case.throughput.is_some());
    record.results.iter_mut().for_each(|case| case.status.outcome = Outcome::Ok);
    fs::create_dir(folder.join("performance")).unwrap();
    record.write(folder.join("performance/token.json"), Access::Everybody).unwrap();
    record.write(folder.join("same.json"), Access::Everybody).unwrap();
    for case in &mut record.results {
        if let Some(rate) = &mut case.throughput {
            rate.estimate /= 2.0;
            rate.low /= 2.0;
            rate.high /= 2.0;
        }
    }
    record.write(folder.join("slower.json"), Access::Everybody).unwrap();
    let archive = archive(folder);
    let inputs = |record: &'static str| {
        [
            ("archive", archive.as_str()),
            ("sha256", ""),
            ("record", record),
            ("baseline", "performance"),
            ("fail-above", "10%"),
            ("junit", "junit.xml"),
        ]
    };
    let (same, summary) = act(folder, &inputs("same.json"));
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    assert!(summary.contains("| Operation | Baseline | Candidate |"), "{summary}");
    let (slower, _) = act(folder, &inputs("slower.json"));
    assert_eq!(slower.status.code(), Some(1), "{slower:?}");
    let said = String::from_utf8(slower.stdout).unwrap();
    assert!(said.lines().any(|line| line.starts_with("::error title=")), "{said}");
    assert!(fs::read_to_string(folder.join("junit.xml")).unwrap().contains("<failure "));
    // What the run before compared is not reported again.
    let (missing, summary) = act(folder, &inputs("missing.json"));
    assert_eq!((missing.status.code(), summary.as_str()), (Some(2), ""), "{missing:?}");
    let mut wrong = inputs("same.json");
    wrong[1].1 = "0000000000000000000000000000000000000000000000000000000000000000";
    let (refused, _) = act(folder, &wrong);
    assert_eq!(refused.status.code(), Some(2), "another archive than the one named was installed");
    let said = String::from_utf8(refused.stdout).unwrap();
    assert!(said.contains("::error::the archive's SHA-256"), "{said}");
}
