//! Wasteful programs beside their repair by hand: what traces of the wasteful one predict, over as
//! many rounds as a trial has, and what the repair saves. `make twins` prints the table; it takes a few minutes, and wants a machine
//! on which nothing else works.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tapstone_explain::findings::prediction::{Prediction, Saving};
use tapstone_record::FindingKind;

use crate::softhsm::Hsm;
use crate::{fixtures, run, turn};

/// Rounds in which both programs run, and a trace of the wasteful one, in turns.
const ROUNDS: u32 = 15;

struct Twin {
    name: &'static str,
    kind: FindingKind,
    wasteful: Vec<OsString>,
    repaired: Vec<OsString>,
}

/// What was predicted of a twin, and what its repair saves, in milliseconds of a run.
struct Row {
    name: &'static str,
    before: f64,
    after: f64,
    predicted: Option<Saving>,
}

const FILE: &str = "import json, sys\n\
                    kept = None\n\
                    for number in range(3000):\n\
                    \tif sys.argv[2] == 'again' or kept is None:\n\
                    \t\twith open(sys.argv[1]) as file: kept = json.load(file)\n\
                    \tassert kept['a'] == 1\n";
const LOOKUP: &str = "import pwd, sys\n\
                      kept = None\n\
                      for number in range(5000):\n\
                      \tif sys.argv[1] == 'again' or kept is None: kept = pwd.getpwnam('daemon')\n\
                      \tassert kept.pw_name == 'daemon'\n";

fn words(program: &Path, words: &str) -> Vec<OsString> {
    let mut all = vec![program.as_os_str().to_owned()];
    all.extend(words.split_whitespace().map(OsString::from));
    all
}

fn python(text: &str, arguments: &[&str]) -> Vec<OsString> {
    ["python3", "-c", text].iter().chain(arguments).map(OsString::from).collect()
}

fn twins(hsm: &Hsm, searcher: &Path, client: &Path, file: &Path) -> Vec<Twin> {
    let module = hsm.module().display().to_string();
    let searcher = |options: &str| words(searcher, &format!("{module} {options}"));
    let client = |options: &str| words(client, &format!("{module} {options}"));
    let file = file.to_str().unwrap();
    let twin = |name, kind, wasteful, repaired| Twin { name, kind, wasteful, repaired };
    vec![
        twin(
            "C: its key searched before each of 500 signatures",
            FindingKind::RepeatedSearch,
            searcher("500 --prepared"),
            searcher("500 --prepared --keep"),
        ),
        twin(
            "C: the same in 4 threads",
            FindingKind::RepeatedSearch,
            searcher("150 --prepared --threads 4"),
            searcher("150 --prepared --threads 4 --keep"),
        ),
        twin(
            "C: three attributes read eight times before each of 500 signatures",
            FindingKind::RepeatedRead,
            searcher("500 --prepared --keep --read 8"),
            searcher("500 --prepared --keep"),
        ),
        twin(
            "C: a session for each of 5,000 digests",
            FindingKind::SessionChurn,
            client("--digest 5000 --sessions-per-op"),
            client("--digest 5000"),
        ),
        twin(
            "Python: a file read and parsed 3,000 times",
            FindingKind::RepeatedLookup,
            python(FILE, &[file, "again"]),
            python(FILE, &[file, "once"]),
        ),
        twin(
            "Python: a user looked up 5,000 times",
            FindingKind::RepeatedLookup,
            python(LOOKUP, &["again"]),
            python(LOOKUP, &["once"]),
        ),
    ]
}

/// How long a run takes.
fn timed(command: &[OsString], configuration: &str) -> Duration {
    let mut command_to_run = Command::new(&command[0]);
    command_to_run.args(&command[1..]).env("SOFTHSM2_CONF", configuration);
    let start = Instant::now();
    let status = command_to_run.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    let time = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    time
}

fn measured(twin: &Twin, configuration: &str) -> Row {
    let mut before = Duration::ZERO;
    let mut after = Duration::ZERO;
    let mut predicted = Vec::new();
    // In turns, so that what else the machine does is in all of them.
    for _ in 0..ROUNDS {
        before += timed(&twin.wasteful, configuration);
        after += timed(&twin.repaired, configuration);
        predicted.extend(predicted_by_trace(twin, configuration));
    }
    let millis = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(ROUNDS);
    Row {
        name: twin.name,
        before: millis(before),
        after: millis(after),
        predicted: Prediction::over(&predicted).map(|prediction| prediction.saving),
    }
}

/// What one trace of the wasteful program says.
fn predicted_by_trace(twin: &Twin, configuration: &str) -> Option<Saving> {
    let command: Vec<&str> = twin.wasteful.iter().map(|word| word.to_str().unwrap()).collect();
    let outcome = run("trace", "", &[("SOFTHSM2_CONF", configuration)], &command).exits(0);
    let record = crate::record(&outcome);
    let finding = record.findings.iter().find(|finding| finding.kind == twin.kind)?;
    finding.saving.map(|saving| Saving { low: saving.low, high: saving.high })
}

impl Row {
    fn saved(&self) -> f64 {
        self.before - self.after
    }

    /// Whether the prediction holds what the repair saves.
    fn is_held(&self) -> bool {
        let saved = self.saved() * 1e6;
        self.predicted.is_some_and(|range| (range.low..=range.high).contains(&saved))
    }

    fn told(&self) -> String {
        let predicted = self.predicted.map_or_else(
            || "nothing".to_owned(),
            |range| format!("{:.1} to {:.1}", range.low / 1e6, range.high / 1e6),
        );
        let held = if self.is_held() { "yes" } else { "no" };
        let Self { name, before, after, .. } = self;
        let saved = self.saved();
        format!("| {name} | {before:.1} | {after:.1} | {saved:.1} | {predicted} | {held} |")
    }
}

#[test]
#[ignore = "minutes, and wants a machine of its own: make twins"]
fn what_a_trace_predicts_is_what_a_repair_by_hand_saves() {
    let _turn = turn();
    let programs = fixtures::built("searcher").zip(fixtures::built("client"));
    let Some(((searcher, client), hsm)) = programs.zip(Hsm::new()) else { return };
    let configuration = hsm.path("softhsm2.conf").display().to_string();
    let module = hsm.module().display().to_string();
    timed(&words(&searcher, &format!("{module} 1 --prepare")), &configuration);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.json");
    std::fs::write(&file, "{\"a\": 1, \"b\": [1, 2, 3], \"c\": \"text\"}").unwrap();
    let twins = twins(&hsm, &searcher, &client, &file);
    let rows: Vec<Row> = twins.iter().map(|twin| measured(twin, &configuration)).collect();
    let mut table =
        "| program | wasteful, ms | repaired, ms | saved, ms | predicted, ms | held |\n\
                     | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for row in &rows {
        writeln!(table, "{}", row.told()).unwrap();
    }
    println!("{table}");
    let held = rows.iter().filter(|row| row.is_held()).count();
    assert!(held + 1 >= rows.len(), "{held} of {} predictions hold\n{table}", rows.len());
}
