//! One run under one fault, in folders of its own, and what has to hold afterwards.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tapstone_record::Record;
use tapstone_testing::{eventually, private_environment};
use tempfile::TempDir;

use crate::cards::card_data;
use crate::run::{null_module, write_secret};
use crate::support::Slot;
use crate::verbs::Verb;

/// The longest of these runs takes a second or two.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What an output file held before.
const OLD: &str = "what was there before\n";

/// What is there for a verb to read.
const CARD: &str = include_str!("card.csv");

const DOOR: &str = include_str!("../../../../docs/examples/before.csv");
const DOOR_MAP: &str = include_str!("../../../../docs/examples/map.toml");
/// Of somebody who is never met.
const PUBLIC_KEY: &str = "5c7a810c1beafda72a17bcb93ee27cbeec9a196af74873e67392774f41591c87";

/// The folder of a run: `work` is its working directory, `tmp` that of temporary files.
pub(crate) struct Workplace {
    folder: TempDir,
}

/// A run that has ended.
pub(crate) struct Left {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    verb: Verb,
    workplace: Workplace,
}

impl Workplace {
    pub(crate) fn new(verb: &Verb) -> Self {
        let workplace = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["work", "tmp", "store", "state"] {
            fs::create_dir(workplace.path(name)).unwrap();
        }
        let work = workplace.path("work");
        fs::write(work.join("card.csv"), CARD).unwrap();
        fs::write(work.join("door.csv"), DOOR).unwrap();
        fs::write(work.join("door.toml"), DOOR_MAP).unwrap();
        write_secret(&work.join("pin"), null_module::PIN);
        for name in verb.outputs {
            fs::write(work.join(name), OLD).unwrap();
        }
        let prepare = |arguments: &str| {
            let mut tapstone = Command::new(env!("CARGO_BIN_EXE_tapstone"));
            private_environment(&mut tapstone);
            let made = tapstone.current_dir(&work).args(arguments.split(' ')).output().unwrap();
            assert!(made.status.success(), "{made:?}");
        };
        if verb.arguments.contains("input.json") {
            prepare("import jcalgtest card.csv --quiet --output input.json");
        }
        if verb.arguments.contains("--nats") {
            prepare("hosts --new-key packet.key");
            let keys = "packet-key = 'packet.key'\n";
            let known = format!("{keys}[agents]\nalone = '{PUBLIC_KEY}'\n");
            let agent = format!(
                "{keys}coordinators = {{ lab = '{PUBLIC_KEY}' }}\n\
                 [targets.hsm]\nmodule = 'none.so'\nslot = 0\n"
            );
            fs::write(work.join("known.toml"), known).unwrap();
            fs::write(work.join("agent.toml"), agent).unwrap();
        }
        workplace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The verb as a command of a shell, which `before` prepares: `exec "$@"` has to follow.
    pub(crate) fn command(&self, verb: &Verb, before: &str) -> Command {
        let mut command = Command::new("bash");
        private_environment(&mut command);
        command.current_dir(self.path("work"));
        command.env("TMPDIR", self.path("tmp")).env("NULL_MODULE_STORE", self.path("store"));
        command.env("XDG_STATE_HOME", self.path("state"));
        if !verb.needs_card() {
            // Whatever runs on this machine, these verbs find no card.
            command.env("PCSCLITE_CSOCK_NAME", self.path("no-pcscd"));
        }
        command.arg("-c").arg(format!("{before}\nexec \"$@\"")).arg("bash");
        command.arg(env!("CARGO_BIN_EXE_tapstone"));
        let null = null_module::path();
        let words = verb.arguments.split_whitespace();
        command.args(words.map(|word| match word {
            "{null}" => null.clone().into_os_string(),
            "{reader}" => Slot::First.reader().into(),
            "{ca}" => card_data().join("ca.der").into_os_string(),
            word => word.into(),
        }));
        let file = |name| File::create(self.path(name)).unwrap();
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        command
    }

    /// Runs the verb to its end.
    pub(crate) fn run(self, verb: &Verb, before: &str) -> Left {
        let child = self.command(verb, before).spawn().unwrap();
        self.wait(verb, child)
    }

    pub(crate) fn wait(self, verb: &Verb, mut child: Child) -> Left {
        let mut status = None;
        let ended = eventually(TIME_LIMIT, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let read = |name| String::from_utf8_lossy(&fs::read(self.path(name)).unwrap()).into_owned();
        let stdout = read("stdout");
        let stderr = read("stderr");
        assert!(ended, "{}: it hangs\n{stderr}", verb.name);
        Left { status: status.unwrap(), stdout, stderr, verb: *verb, workplace: self }
    }
}

impl Left {
    /// What holds after every fault, this exit code among it. Returns the paths that were not
    /// written, each of which still holds what it held.
    pub(crate) fn holds(&self, allowed: &[i32]) -> Vec<&'static str> {
        let Self { status, stdout, stderr, verb, workplace } = self;
        let told = format!("{}: {status}\n{stdout}\n{stderr}", verb.name);
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
        assert!(allowed.contains(&code), "{told}");
        assert!(!stderr.contains("panicked"), "{told}");
        let work = workplace.path("work");
        let mut unwritten = Vec::new();
        for name in verb.outputs {
            let content = fs::read(work.join(name)).unwrap();
            if content == OLD.as_bytes() {
                unwritten.push(*name);
            } else if name.ends_with(".json") {
                Record::read(work.join(name)).unwrap_or_else(|error| panic!("{error}\n{told}"));
            } else {
                assert!(!content.is_empty(), "{name}: {told}");
            }
        }
        self.leaves_nothing(&told);
        unwritten
    }

    pub(crate) fn said_nothing(&self) -> bool {
        self.stdout.is_empty() && self.stderr.is_empty()
    }

    fn leaves_nothing(&self, told: &str) {
        let known = "card.csv door.csv door.toml agent.toml known.toml packet.key pin input.json \
                     samples.parquet";
        let known: Vec<&str> = known.split_whitespace().collect();
        for name in names(&self.workplace.path("work")) {
            let is_known = known.contains(&&*name) || self.verb.outputs.contains(&&*name);
            assert!(is_known || self.stderr.contains(&name), "{name} is left: {told}");
        }
        for name in names(&self.workplace.path("tmp")) {
            assert!(self.stderr.contains(&name), "{name} is left: {told}");
        }
        assert_eq!(names(&self.workplace.path("store")), [""; 0], "{told}");
        let notes = self.workplace.path("state/tapstone/keys-on-tokens");
        assert!(!notes.exists() || names(&notes).is_empty(), "notes of keys are left: {told}");
        let shared = || ownerless(Path::new("/dev/shm"));
        assert!(eventually(Duration::from_secs(10), || shared().is_empty()), "{:?}", shared());
        let left = || processes_of(self.workplace.folder.path());
        assert!(eventually(Duration::from_secs(10), || left().is_empty()), "{:?}\n{told}", left());
    }

    /// The record that was put aside, which the run has named.
    pub(crate) fn rescued(&self) -> Option<Record> {
        let tmp = self.workplace.path("tmp");
        let name = names(&tmp).into_iter().find(|name| name.starts_with("tapstone-record-"))?;
        Some(Record::read(tmp.join(name)).unwrap())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What Tapstone has left here. Where somebody traces beside this, its folders are locked; they are
/// without a lock for a moment only, while they begin and end.
fn ownerless(place: &Path) -> Vec<String> {
    let is_free = |name: &String| match File::open(place.join(name).join("lock")) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(_) => true,
    };
    names(place).into_iter().filter(|name| name.contains("tapstone") && is_free(name)).collect()
}

/// Processes that run in a folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let inside = entries.filter(|entry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    inside
        .map(|entry| fs::read_to_string(entry.path().join("comm")).unwrap_or_default())
        .filter(|name| !name.is_empty())
        .collect()
}
