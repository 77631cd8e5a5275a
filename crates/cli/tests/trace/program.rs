//! A program, run bare and traced.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tapstone_command::run::Finished;
use tapstone_command::run::Signals;
use tapstone_explain::owners;
use tapstone_explain::reading::read_timeline;
use tapstone_explain::timeline::{Span, Thread, Timeline};
use tapstone_observe::observe::{self, ObservationPlan};
use tapstone_observe::probe::ProbeOptions;
use tapstone_record::{Call, Record};
use tapstone_testing::{eventually, private_environment};
use tempfile::TempDir;

/// No run of these tests takes so long: one that does hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    words: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

impl Program {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self { words: vec![program.as_ref().to_owned()], variables: Vec::new() }
    }

    /// A text for the shell.
    pub(crate) fn shell(text: &str) -> Self {
        Self::new("sh").arg("-c").arg(text)
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.words.push(argument.as_ref().to_owned());
        self
    }

    /// Arguments in one string, separated by blanks.
    pub(crate) fn args(self, arguments: &str) -> Self {
        arguments.split_whitespace().fold(self, Self::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn all_words(&self) -> &[OsString] {
        &self.words
    }

    /// To be started otherwise than here.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        private_environment(&mut command);
        command.args(&self.words[1..]).envs(self.variables.iter().cloned());
        command
    }

    /// The program alone.
    pub(crate) fn bare(&self) -> Left {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        self.start(command).wait()
    }

    pub(crate) fn traced(&self) -> Left {
        self.traced_with("")
    }

    /// With options of `tapstone trace`.
    pub(crate) fn traced_with(&self, options: &str) -> Left {
        self.start_traced(options).wait()
    }

    /// The same, to be looked at while it runs.
    pub(crate) fn start_traced(&self, options: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        command.args(["trace", "--quiet", "--output", "record.json"]);
        command.args(options.split_whitespace()).arg("--").args(&self.words);
        self.start(command)
    }

    /// Bare, then traced: what it says and how it ends is the same. The traced run.
    #[track_caller]
    pub(crate) fn unchanged(&self) -> Left {
        let bare = self.bare();
        let traced = self.traced();
        let of = |left: &Left| (left.code(), left.stdout.clone(), left.stderr.clone());
        assert_eq!(of(&traced), of(&bare), "{self:?}");
        traced
    }

    /// Traced by the library, for what a record does not hold. Its exit code must be 0.
    #[track_caller]
    pub(crate) fn seen(&self) -> Seen {
        let set = self
            .variables
            .iter()
            .map(|(name, value)| [name.as_os_str(), value.as_os_str()].join(OsStr::new("=")));
        let words = [OsString::from("env")].into_iter().chain(set).chain(self.words.clone());
        let command = tapstone_command::command::Command::from_words(words).unwrap();
        let options = ProbeOptions::default();
        let plan = ObservationPlan::new(&command, &options);
        let seen = observe::observe(&plan, &Signals::watch().unwrap()).unwrap();
        let timeline = read_timeline(&seen.recording).unwrap();
        let seen = Seen { finished: seen.finished, timeline, warnings: seen.warnings };
        assert!(seen.finished.exit.is_success(), "{self:?}: {:?}", seen.finished);
        for (thread, owners) in seen.timeline.threads.iter().zip(owners::of_threads(&seen.timeline))
        {
            let sum: u64 = owners.time.values().map(|time| time.0).sum();
            assert_eq!(sum, thread.wall().0, "the owners of a thread add up to its wall time");
        }
        seen
    }

    fn start(&self, mut command: Command) -> Running {
        let directory = tempfile::tempdir().unwrap();
        // Into files: nobody has to read a pipe while the run goes on.
        let file = |name| File::create(directory.path().join(name)).unwrap();
        command.current_dir(directory.path()).stdin(Stdio::null());
        command.stdout(file("stdout")).stderr(file("stderr"));
        private_environment(&mut command);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // A process group of its own, as a shell makes one for a command in the foreground.
        let child = command.process_group(0).spawn();
        Running { child: child.unwrap_or_else(|why| panic!("{self:?}: {why}")), directory }
    }
}

/// What the library saw of a run.
pub(crate) struct Seen {
    pub(crate) finished: Finished,
    pub(crate) timeline: Timeline,
    pub(crate) warnings: Vec<String>,
}

/// A run that goes on.
pub(crate) struct Running {
    child: Child,
    directory: TempDir,
}

impl Running {
    /// What the program has said so far.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.directory.path().join("stdout")).unwrap()
    }

    /// To `tapstone` alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// To all that it runs too, as the terminal does.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Until it ends.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Left {
        let mut status = None;
        let ended = eventually(TIME_LIMIT, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            // With all that it runs.
            kill_process_group(Pid::from_child(&self.child), Signal::KILL).unwrap();
            self.child.wait().unwrap();
        }
        let read = |name| fs::read(self.directory.path().join(name)).unwrap();
        let text = |name| String::from_utf8_lossy(&read(name)).into_owned();
        let stdout = text("stdout");
        let stderr = text("stderr");
        let Some(status) = status else { panic!("still running after {TIME_LIMIT:?}\n{stderr}") };
        Left { status, stdout, stderr, directory: self.directory }
    }
}

/// What a run has left behind.
pub(crate) struct Left {
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    directory: TempDir,
}

impl Left {
    /// As a shell has it.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap())
    }

    /// The same, once the exit code is as it should be.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Nothing was run and nothing written: exit code 2, and one error that ends with advice.
    #[track_caller]
    pub(crate) fn refusal(self) -> String {
        let refused = self.exits(2);
        let stderr = refused.stderr;
        assert!(!refused.directory.path().join("record.json").exists(), "{stderr}");
        assert_eq!(
            (refused.stdout.as_str(), stderr.matches("error: ").count()),
            ("", 1),
            "{stderr}"
        );
        assert!(stderr.lines().last().is_some_and(|line| line.starts_with("hint: ")), "{stderr}");
        stderr
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The record, which satisfies the schema, and in which the layers of each thread add up.
    #[track_caller]
    pub(crate) fn record(&self) -> Record {
        let text = fs::read_to_string(self.file("record.json"));
        let text = text.unwrap_or_else(|why| panic!("no record: {why}\n{}", self.stderr));
        let record = tapstone_testing::record(&text);
        let mut threads: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for layer in &record.layers {
            *threads.entry((layer.process, layer.thread)).or_default() += layer.share.0;
        }
        for (thread, share) in threads {
            // A nanosecond of a second.
            assert!((share - 1.0).abs() < 1e-9, "{thread:?} has {share}: {:?}", record.layers);
        }
        record
    }

    /// Nothing was lost, and nothing is to be known.
    #[track_caller]
    pub(crate) fn whole(&self) -> Record {
        let record = self.record();
        assert_eq!((record.dropped, &record.warnings), (Some(0), &Vec::new()));
        record
    }
}

/// How often each function of a module was called.
pub(crate) fn counts<'a>(record: &'a Record, module: &str) -> BTreeMap<&'a str, u64> {
    let of_module = record.calls.iter().filter(|call| call.module == module);
    of_module.map(|call| (call.function.as_str(), call.count)).collect()
}

/// One function of a module.
#[track_caller]
pub(crate) fn call(record: &Record, module: &str, function: &str) -> Call {
    let found = record.calls.iter().find(|call| call.module == module && call.function == function);
    found.unwrap_or_else(|| panic!("no {function} of {module} in {:?}", record.calls)).clone()
}

/// The calls of one function, on all threads.
pub(crate) fn spans<'a>(seen: &'a Seen, function: &str) -> Vec<(&'a Thread, &'a Span)> {
    let threads = seen.timeline.threads.iter();
    let all = threads.flat_map(|thread| thread.spans.iter().map(move |span| (thread, span)));
    all.filter(|(_, span)| seen.timeline.call(span.call).function == function).collect()
}

/// What a program said that was traced by the library.
pub(crate) fn stdout(seen: &Seen) -> String {
    String::from_utf8_lossy(&seen.finished.stdout.as_ref().unwrap().kept).into_owned()
}
