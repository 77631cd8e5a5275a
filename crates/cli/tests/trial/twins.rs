//! Wasteful programs beside their repair by hand: what traces of the wasteful one predict, over as
//! many rounds as a trial has, and what the repair saves. `make twins` prints the table; it takes some
//! twenty minutes, and wants a machine on which nothing else works.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tapstone_explain::findings;
use tapstone_explain::findings::prediction::{self, Prediction, Saving};
use tapstone_explain::operation::Operations;
use tapstone_explain::reading::read_timeline;
use tapstone_measure::interval::Estimate;
use tapstone_observe::kept::read_kept;
use tapstone_record::FindingKind;
use tapstone_testing::skip;
use tempfile::TempDir;

use crate::softhsm::{Hsm, PIN};
use crate::support::{Card, Pcscd, Slot};
use crate::{fixtures, run, turn};

/// Rounds in which both programs run, and a trace of the wasteful one, in turns.
const ROUNDS: u32 = 15;

/// As many, or as the variable ROUNDS says.
fn rounds() -> u32 {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

/// Whether a twin is to be measured: all are, or those with a word of the variable TWINS, between
/// commas, in their names.
fn is_chosen(name: &str) -> bool {
    std::env::var("TWINS").is_ok_and(|words| words.split(',').any(|word| name.contains(word)))
        || std::env::var_os("TWINS").is_none()
}

struct Twin {
    name: &'static str,
    /// What is predicted is what findings of these kinds save together.
    kinds: &'static [FindingKind],
    wasteful: Vec<OsString>,
    repaired: Vec<OsString>,
}

/// What was predicted of a twin, and what its repair saves, in milliseconds of a run.
struct Row {
    name: &'static str,
    before: f64,
    after: f64,
    saved: Estimate,
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

/// Where the twins' programs work: a token with keys, and a folder for what is built.
struct Workplace {
    hsm: Hsm,
    folder: TempDir,
}

impl Workplace {
    /// `None`, which has been said then: there is no SoftHSM2.
    fn new() -> Option<Self> {
        let workplace = Self { hsm: Hsm::new()?, folder: tempfile::tempdir().unwrap() };
        // What SunPKCS11 calls a key: a private one, and a certificate with the same id.
        let [key, certificate] = ["key.pem", "certificate.der"].map(|name| workplace.path(name));
        let [key, certificate] = [&key, &certificate].map(|path| path.to_str().unwrap());
        let made = workplace.run(
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=web",
                "-keyout",
                key,
                "-outform",
                "DER",
                "-out",
                certificate,
            ],
        );
        made?;
        let label = workplace.hsm.label();
        workplace.run(
            "softhsm2-util",
            &["--import", key, "--token", label, "--label", "web", "--id", "01", "--pin", PIN],
        )?;
        workplace.hsm.pkcs11_tool(&format!(
            "--login --pin {PIN} --write-object {certificate} --type cert --id 01 --label web"
        ))?;
        Some(workplace)
    }

    /// The same with an EC key pair `signer` and an AES key `secret` on its token.
    fn with_keys() -> Option<Self> {
        let workplace = Self { hsm: Hsm::new()?, folder: tempfile::tempdir().unwrap() };
        let pair = "--keypairgen --key-type EC:prime256v1 --id 01 --label signer";
        workplace.hsm.pkcs11_tool(pair)?;
        workplace.hsm.pkcs11_tool("--keygen --key-type AES:32 --id 02 --label secret")?;
        Some(workplace)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn module(&self) -> String {
        self.hsm.module().display().to_string()
    }

    fn variables(&self) -> [(&'static str, String); 2] {
        let configuration = self.hsm.path("softhsm2.conf").display().to_string();
        [("SOFTHSM2_CONF", configuration), ("PIN", PIN.to_owned())]
    }

    /// Runs a tool to its end; `None`, which has been said then: it is not installed.
    fn run(&self, tool: &str, arguments: &[&str]) -> Option<()> {
        let variables = self.variables();
        match Command::new(tool).args(arguments).envs(variables).output() {
            Ok(output) => {
                assert!(output.status.success(), "{tool}: {output:?}");
                Some(())
            }
            Err(_) => {
                skip(tool);
                None
            }
        }
    }

    /// A program of fixtures/twins in C.
    fn in_c(&self, name: &str, libraries: &[&str]) -> Option<PathBuf> {
        let [source, program] = [twin_source(&format!("{name}.c")), self.path(name)];
        let headers = format!("-I{}", twin_source("../traced").display());
        let words = ["-O2", &headers, "-o", program.to_str().unwrap(), source.to_str().unwrap()];
        self.run("cc", &[&words[..], libraries].concat())?;
        Some(program)
    }
}

fn twin_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/twins").join(name)
}

/// The same program twice, the second time with `--repaired`.
fn pair(words: Vec<OsString>) -> [Vec<OsString>; 2] {
    let repaired = [&words[..], &["--repaired".into()]].concat();
    [words, repaired]
}

fn twin(
    name: &'static str,
    kinds: &'static [FindingKind],
    [wasteful, repaired]: [Vec<OsString>; 2],
) -> Twin {
    Twin { name, kinds, wasteful, repaired }
}

fn twins(place: &Workplace, file: &Path) -> Option<Vec<Twin>> {
    use FindingKind::{RepeatedLookup, RepeatedRead, RepeatedSearch, SessionChurn, Sleep};
    let module = place.module();
    let [searcher, client, newcomer] = ["searcher", "client", "newcomer"].map(fixtures::built);
    let (searcher, client, newcomer) = (searcher?, client?, newcomer?);
    for (program, words) in [(&searcher, "1 --prepare"), (&newcomer, "1 --prepare")] {
        let words = format!("{module} {words}");
        place.run(program.to_str().unwrap(), &words.split(' ').collect::<Vec<_>>())?;
    }
    let of = |program: &Path, options: &str| words(program, &format!("{module} {options}"));
    let file = file.to_str().unwrap();
    let mut twins = vec![
        twin(
            "C: its key searched before each of 500 signatures",
            &[RepeatedSearch][..],
            [of(&searcher, "500 --prepared"), of(&searcher, "500 --prepared --keep")],
        ),
        twin(
            "C: the same in 4 threads",
            &[RepeatedSearch],
            [
                of(&searcher, "150 --prepared --threads 4"),
                of(&searcher, "150 --prepared --threads 4 --keep"),
            ],
        ),
        twin(
            "C: three attributes read eight times before each of 500 signatures",
            &[RepeatedRead],
            [
                of(&searcher, "500 --prepared --keep --read 8"),
                of(&searcher, "500 --prepared --keep"),
            ],
        ),
        twin(
            "C: a session for each of 5,000 digests",
            &[SessionChurn],
            [of(&client, "--digest 5000 --sessions-per-op"), of(&client, "--digest 5000")],
        ),
        twin(
            "C: a login for each of 150 signatures",
            &[SessionChurn],
            [of(&newcomer, "150"), of(&newcomer, "150 --keep")],
        ),
        twin(
            "C: 5 ms slept after each of 60 signatures",
            &[Sleep],
            [
                of(&searcher, "60 --prepared --keep --pause 5"),
                of(&searcher, "60 --prepared --keep"),
            ],
        ),
        twin(
            "Python: a file read and parsed 3,000 times",
            &[RepeatedLookup],
            [python(FILE, &[file, "again"]), python(FILE, &[file, "once"])],
        ),
        twin(
            "Python: a user looked up 5,000 times",
            &[RepeatedLookup],
            [python(LOOKUP, &["again"]), python(LOOKUP, &["once"])],
        ),
    ];
    let configured = place.in_c("configured", &[])?;
    let settings = place.path("settings").display().to_string();
    twins.push(twin(
        "C: a configuration file read for each of 3,000 requests",
        &[RepeatedLookup],
        pair(words(&configured, &format!("{settings} 3000"))),
    ));
    let prober = twin_source("prober.py").display().to_string();
    twins.push(twin(
        "Python: slot, token and mechanism asked for before each of 3,000 digests",
        &[RepeatedRead],
        pair(words(Path::new("python3"), &format!("{prober} {module} 3000"))),
    ));
    let (signer, go) = (place.path("signer"), twin_source("go"));
    let build = ["-C", go.to_str().unwrap(), "build", "-o", signer.to_str().unwrap(), "."];
    if place.run("go", &build).is_some() {
        twins.push(twin(
            "Go: token asked, key searched and read for each of 500 signatures",
            &[RepeatedSearch, RepeatedRead],
            pair(of(&signer, "500")),
        ));
    }
    let source = twin_source("KeyStoreSigner.java").display().to_string();
    let classes = place.folder.path().display().to_string();
    if place.run("javac", &["-d", &classes, &source]).is_some() {
        let java = format!("-cp {classes} KeyStoreSigner {module} 1000");
        twins.push(twin(
            "Java: the key store loaded for each of 1,000 signatures",
            &[RepeatedSearch, RepeatedRead],
            pair(words(Path::new("java"), &java)),
        ));
    }
    Some(twins)
}

/// Programs whose author did not know how savings are predicted.
fn strange_twins(place: &Workplace) -> Option<Vec<Twin>> {
    use FindingKind::{
        KeyChurn, LengthProbe, MultiPart, RepeatedLookup, RepeatedRead, RepeatedSearch,
        SessionChurn, Sleep,
    };
    let module = place.module();
    let of = |program: &Path, options: &str| words(program, &format!("{module} {options}"));
    let [stampd, archive_seal, relay_policy] = [
        place.in_c("stampd", &[])?,
        place.in_c("archive_seal", &["-lpthread"])?,
        place.in_c("relay_policy", &[])?,
    ];
    let batch_encrypt = twin_source("batch_encrypt.py").display().to_string();
    let folder = place.path("routes").display().to_string();
    let mut twins = vec![
        twin(
            "C: two searches, a key read and a length asked for each of 1,500 signatures",
            &[RepeatedSearch, RepeatedRead, LengthProbe][..],
            pair(of(&stampd, "1500")),
        ),
        twin(
            "C: a digest byte by byte, and a thread that looks by the clock, 500 times",
            &[MultiPart, Sleep],
            pair(of(&archive_seal, "500")),
        ),
        twin(
            "C: a policy read and its owner looked up for each of 1,000 requests",
            &[RepeatedLookup],
            pair(words(&relay_policy, &format!("{folder} 1000"))),
        ),
        twin(
            "Python: a session, a login and a search for each of 100 encryptions",
            &[SessionChurn, RepeatedRead, RepeatedSearch],
            pair(words(Path::new("python3"), &format!("{batch_encrypt} {module} 100"))),
        ),
    ];
    let source = twin_source("TenantMac.java").display().to_string();
    let classes = place.folder.path().display().to_string();
    if place.run("javac", &["-d", &classes, &source]).is_some() {
        let java = format!("-cp {classes} TenantMac {module} 1000");
        twins.push(twin(
            "Java: a key imported for each of 1,000 MACs",
            &[KeyChurn, LengthProbe],
            pair(words(Path::new("java"), &java)),
        ));
    }
    Some(twins)
}

/// How long a run takes, in milliseconds.
fn timed(command: &[OsString], place: &Workplace) -> f64 {
    let mut command_to_run = Command::new(&command[0]);
    command_to_run.args(&command[1..]).envs(place.variables());
    let start = Instant::now();
    let status = command_to_run.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    let time = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    time.as_secs_f64() * 1e3
}

fn measured(twin: &Twin, place: &Workplace) -> Row {
    let mut before = Vec::new();
    let mut after = Vec::new();
    let mut predicted = Vec::new();
    // In turns, so that what else the machine does is in all of them. Whoever runs first after a trace
    // finds caches that hold other things: each does as often, and neither at once.
    for round in 0..rounds() {
        timed(&twin.repaired, place);
        if round % 2 == 0 {
            before.push(timed(&twin.wasteful, place));
            after.push(timed(&twin.repaired, place));
        } else {
            after.push(timed(&twin.repaired, place));
            before.push(timed(&twin.wasteful, place));
        }
        predicted.extend(predicted_by_trace(twin, place));
    }
    let saved: Vec<f64> = before.iter().zip(&after).map(|(before, after)| before - after).collect();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / f64::from(rounds());
    Row {
        name: twin.name,
        before: mean(&before),
        after: mean(&after),
        saved: Estimate::mean_of(&saved).expect("rounds"),
        predicted: Prediction::over(&predicted).map(|prediction| prediction.saving),
    }
}

/// What one trace of the wasteful program says that repairs of all that was found would save
/// together.
fn predicted_by_trace(twin: &Twin, place: &Workplace) -> Option<Saving> {
    let command: Vec<&str> = twin.wasteful.iter().map(|word| word.to_str().unwrap()).collect();
    let variables = place.variables();
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let events = place.path("events");
    let _ = std::fs::remove_file(&events);
    run("trace", &format!("--events {}", events.display()), &variables, &command).exits(0);
    let timeline = read_timeline(&read_kept(&events).unwrap().recording).unwrap();
    let operations = Operations::whole(&timeline);
    let findings = findings::find(&timeline, &operations, []);
    let meant = findings.iter().filter(|finding| twin.kinds.contains(&finding.kind));
    let removable = prediction::union(meant);
    let is_found = !removable.at_most.is_empty();
    is_found.then(|| prediction::saving(&timeline, &operations, &removable))
}

impl Row {
    /// Whether what the repair saves, as far as that is known, is what was predicted.
    fn is_held(&self) -> bool {
        let Estimate { low, high, .. } = self.saved;
        self.predicted.is_some_and(|range| range.low <= high * 1e6 && low * 1e6 <= range.high)
    }

    fn told(&self) -> String {
        let predicted = self.predicted.map_or_else(
            || "nothing".to_owned(),
            |range| format!("{:.1} to {:.1}", range.low / 1e6, range.high / 1e6),
        );
        let held = if self.is_held() { "yes" } else { "no" };
        let Self { name, before, after, saved: Estimate { estimate, low, high }, .. } = self;
        format!(
            "| {name} | {before:.1} | {after:.1} | {estimate:.1} ({low:.1} to {high:.1}) | {predicted} \
             | {held} |"
        )
    }
}

/// A program that connects to a card for each request; `None`, which has been said then: there is no
/// pcscd, or no virtual card for it.
fn card_twin(place: &Workplace) -> Option<Row> {
    let name = "C: a context and a connection for each of 100 requests to a virtual card";
    if !is_chosen(name) {
        return None;
    }
    let reader = place.in_c("reader", &["-l:libpcsclite.so.1"])?;
    let pcscd = Pcscd::start()?;
    let _card = Card::insert(&pcscd, Slot::First, &["piv"]);
    let mut command = words(&reader, "");
    command.extend(["Virtual PCD 00 00".into(), "100".into()]);
    let [wasteful, repaired] = pair(command);
    let kinds = &[FindingKind::SessionChurn, FindingKind::RepeatedCommand];
    Some(measured(&Twin { name, kinds, wasteful, repaired }, place))
}

#[test]
#[ignore = "minutes, and wants a machine of its own: make twins"]
fn what_a_trace_predicts_is_what_a_repair_by_hand_saves() {
    let _turn = turn();
    let Some(place) = Workplace::new() else { return };
    let file = place.path("client.json");
    std::fs::write(&file, "{\"a\": 1, \"b\": [1, 2, 3], \"c\": \"text\"}").unwrap();
    let Some(twins) = twins(&place, &file) else { return };
    let chosen = |twin: &&Twin| is_chosen(twin.name);
    let mut rows: Vec<Row> =
        twins.iter().filter(chosen).map(|twin| measured(twin, &place)).collect();
    rows.extend(card_twin(&place));
    let Some(place) = Workplace::with_keys() else { return };
    let Some(twins) = strange_twins(&place) else { return };
    rows.extend(twins.iter().filter(chosen).map(|twin| measured(twin, &place)));
    let mut table =
        "| program | wasteful, ms | repaired, ms | saved, ms (95 %) | predicted, ms | held |\n\
                     | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for row in &rows {
        writeln!(table, "{}", row.told()).unwrap();
    }
    println!("{table}");
    let held = rows.iter().filter(|row| row.is_held()).count();
    assert!(held + 1 >= rows.len(), "{held} of {} predictions hold\n{table}", rows.len());
}
