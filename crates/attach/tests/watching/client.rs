//! Programs that are watched, and watching them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tapstone_attach::{AttachError, Watch, WatchPlan, Watched};
use tapstone_testing::skip;

/// Programs and modules beside this file, each built once for all tests; `None`: no compiler.
static CLIENT: LazyLock<Option<PathBuf>> = LazyLock::new(|| build("client.c", &["cc", "-O2"]));
static REFUSED_CALLS: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| build("refused.c", &["cc", "-O2"]));
static PAUSES: LazyLock<Option<PathBuf>> = LazyLock::new(|| build("pauses.c", &["cc", "-O2"]));
static MODULE: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| build("module.c", &["cc", "-shared", "-fPIC"]));
/// C_Digest begins with `endbr64`, then `push`.
static MODULE_ENDBR64: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| build("module.c", &["cc", "-shared", "-fPIC", "-fcf-protection=branch"]));
/// C_Digest begins with a `cmp` with memory, then a jump.
static MODULE_CMP: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| build("module.c", &["cc", "-shared", "-fPIC", "-O2"]));
static ENDS: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| build("ends.cc", &["c++", "-std=c++17", "-O2"]));
static ENDS_UNCANCELLED: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| build("ends.cc", &["c++", "-std=c++17", "-O2", "-DUNCANCELLED"]));

fn build(source: &str, compiler: &[&str]) -> Option<PathBuf> {
    let name = format!("attach-{source}{}", compiler.concat().replace('/', "-"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let partial = program.with_extension(std::process::id().to_string());
    let built = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-Wall", "-Werror"])
        .arg(format!("-I{}", here.join("../../fixtures/traced").display()))
        .arg("-o")
        .arg(&partial)
        .arg(here.join("tests/watching").join(source))
        .args(["-ldl", "-lpthread"])
        .status();
    let Ok(status) = built else {
        skip(&format!("a compiler ({})", compiler[0]));
        return None;
    };
    assert!(status.success(), "{source} cannot be built");
    std::fs::rename(&partial, &program).unwrap();
    Some(program)
}

/// A client that is ready to work, and is not left behind.
pub(crate) struct Running {
    pub(crate) child: Child,
    said: BufReader<ChildStdout>,
}

/// What the client knows: C_DigestInit that went well, C_Digest that went well, was refused, and
/// failed otherwise, the time of all C_Digest, and their median.
pub(crate) type Known = [u64; 6];

impl Running {
    pub(crate) fn start(module: &Path, words: &[u64]) -> Option<Self> {
        Self::start_with(module, words, &[])
    }

    /// With settings of the null module.
    pub(crate) fn start_with(
        module: &Path,
        words: &[u64],
        settings: &[(&str, &str)],
    ) -> Option<Self> {
        let mut command = Command::new(CLIENT.as_deref()?);
        command.arg(module).args(words.iter().map(u64::to_string));
        Some(Self::start_command(command.envs(settings.iter().copied())))
    }

    /// A program that leaves calls in other ways than by a return: see ends.cc.
    pub(crate) fn start_ending(what: &str) -> Option<Self> {
        let program = if what == "throw" { &ENDS_UNCANCELLED } else { &ENDS };
        let mut command = Command::new(program.as_deref()?);
        Some(Self::start_command(command.arg(MODULE.as_deref()?).arg(what)))
    }

    /// The client of a module of which nothing is known but how long C_Digest takes.
    pub(crate) fn start_spinning(nanos: u64, words: &[u64]) -> Option<Self> {
        Self::start_with(MODULE.as_deref()?, words, &[("ATTACH_SPIN_NS", &nanos.to_string())])
    }

    /// A program that looks for the longest pause between two calls: see pauses.c.
    pub(crate) fn start_pausing(module: &Path) -> Option<Self> {
        Some(Self::start_command(Command::new(PAUSES.as_deref()?).arg(module)))
    }

    /// The client of such a module that was built so that C_Digest begins with an instruction.
    pub(crate) fn start_beginning_with(instruction: &str, words: &[u64]) -> Option<Self> {
        let module = match instruction {
            "endbr64" => &MODULE_ENDBR64,
            "cmp" => &MODULE_CMP,
            _ => &MODULE,
        };
        Self::start(module.as_deref()?, words)
    }

    /// A program whose calls the module refuses, each function so many times: see refused.c.
    pub(crate) fn start_refused(module: &Path, calls: u64) -> Option<Self> {
        let mut command = Command::new(REFUSED_CALLS.as_deref()?);
        Some(Self::start_command(command.arg(module).arg(calls.to_string())))
    }

    /// The client of a module that only it can see under that path, in a mount namespace of its own.
    pub(crate) fn start_unshared(module: &Path, words: &[u64]) -> Option<Self> {
        let words: Vec<String> = words.iter().map(u64::to_string).collect();
        let script = format!(
            "mount -t tmpfs none /mnt && cp {} /mnt/hidden.so && exec {} /mnt/hidden.so {}",
            module.display(),
            CLIENT.as_deref()?.display(),
            words.join(" "),
        );
        Some(Self::start_command(Command::new("unshare").args(["--mount", "sh", "-c", &script])))
    }

    pub(crate) fn start_command(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self { child, said };
        assert_eq!(running.line(), "ready\n");
        running
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    pub(crate) fn known(&mut self) -> Known {
        let line = self.line();
        let mut words = line.split_whitespace().map(|word| word.parse().unwrap());
        std::array::from_fn(|_| words.next().unwrap())
    }
}

/// What refused.c knows of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) function: String,
    pub(crate) result: u64,
    pub(crate) median: u64,
}

impl Running {
    /// What it says when it has called all functions.
    pub(crate) fn refused(&mut self) -> Vec<Refused> {
        let lines = std::iter::from_fn(|| Some(self.line()).filter(|line| line != "done\n"));
        let of = |line: String| {
            let mut words = line.split_whitespace();
            let function = words.next().unwrap().to_owned();
            let [result, median] = std::array::from_fn(|_| words.next().unwrap().parse().unwrap());
            Refused { function, result, median }
        };
        lines.map(of).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn null_module() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().join("libnull_module.so")
}

/// What tests that watch need.
pub(crate) const RIGHTS: &str = "rights and a kernel to watch processes";

/// Attaches, or says why this machine cannot.
pub(crate) fn attach(plan: WatchPlan) -> Option<Watch> {
    match Watch::attach(plan) {
        Ok(watch) => Some(watch),
        Err(AttachError::Kernel(why)) if !why.contains("does not take") => {
            println!("{why}");
            skip(RIGHTS);
            None
        }
        Err(AttachError::Rights(why)) => {
            println!("{why}");
            skip(RIGHTS);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Watches while the client works. `None`: this machine cannot.
pub(crate) fn watched(running: &mut Running, plan: WatchPlan) -> Option<(Known, Watched)> {
    let plan = WatchPlan { processes: vec![running.child.id()], with_returns: true, ..plan };
    let mut watch = attach(plan)?;
    running.go_on();
    let (done, known) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| running.known());
        while !worker.is_finished() {
            watch.take_in().unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        (Instant::now(), worker.join().unwrap())
    });
    watch.look_around().unwrap();
    let seen = watch.detach().unwrap();
    assert!(done.elapsed() < Duration::from_secs(10));
    Some((known, seen))
}
