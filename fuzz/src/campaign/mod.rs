//! Sessions of libFuzzer, one after the other on each of some processors.

pub(crate) mod bugs;
pub(crate) mod corpus;
mod kept;
mod session;
pub(crate) mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use tapstone_fuzz::targets::TARGETS;
use tapstone_fuzz::{Executions, FuzzTarget};

pub(crate) use self::session::Session;

/// A session is so long, so that all targets come up in turn.
const SESSION: Duration = Duration::from_secs(240);

/// What the user wants.
#[derive(Debug)]
pub(crate) struct Wishes {
    targets: Vec<&'static FuzzTarget>,
    time: Duration,
    jobs: usize,
}

impl Wishes {
    /// From TARGET, MINUTES and JOBS.
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        let number = |name: &str, default: f64| match std::env::var(name) {
            Ok(text) if !text.is_empty() => {
                text.parse().with_context(|| format!("{name}={text} is no number"))
            }
            _ => Ok(default),
        };
        let named = std::env::var("TARGET").unwrap_or_default();
        let names: Vec<&str> = named.split([',', ' ']).filter(|name| !name.is_empty()).collect();
        let known = |name: &&str| TARGETS.iter().any(|target| target.name == *name);
        if let Some(unknown) = names.iter().find(|name| !known(name)) {
            let all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            bail!("TARGET={unknown}: no such target\nhint: there are {}", all.join(", "));
        }
        let chosen = |target: &&FuzzTarget| names.is_empty() || names.contains(&target.name);
        Ok(Self {
            targets: TARGETS.into_iter().filter(chosen).collect(),
            time: Duration::from_secs_f64(60.0 * number("MINUTES", 10.0)?),
            jobs: number("JOBS", 2.0)?.max(1.0) as usize,
        })
    }
}

/// Where everything is.
#[derive(Debug)]
pub(crate) struct Campaign {
    out: PathBuf,
}

/// What sessions share while they run.
struct Rota {
    /// Processor time of each target so far, and whether it runs now.
    targets: BTreeMap<&'static str, (u64, bool)>,
    failed: Vec<String>,
}

impl Campaign {
    pub(crate) fn below(out: &Path) -> Self {
        Self { out: out.to_owned() }
    }

    /// The corpus that comes with the sources.
    pub(crate) fn kept_corpus(target: &FuzzTarget) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
    }

    /// The corpus as it grew.
    pub(crate) fn grown_corpus(&self, target: &FuzzTarget) -> PathBuf {
        self.out.join("corpus").join(target.name)
    }

    pub(crate) fn program(&self, target: &FuzzTarget) -> PathBuf {
        self.out.join("programs").join(format!("fuzz-{}", target.name))
    }

    /// All sessions so far, the earliest first: those that come with the sources, and those of here.
    pub(crate) fn sessions(&self) -> anyhow::Result<Vec<Session>> {
        let mut sessions = kept::read()?;
        let Ok(folders) = fs::read_dir(self.out.join("sessions")) else { return Ok(sessions) };
        let paths = folders.map(|it| Ok(it?.path())).collect::<anyhow::Result<Vec<_>>>()?;
        for path in paths {
            let is_kept = sessions.iter().any(|it| path.ends_with(&it.name));
            sessions.extend(if is_kept { None } else { Session::read(&path)? });
        }
        sessions.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(sessions)
    }

    /// Runs sessions until the time is over. The exit code is 1 when a target failed.
    pub(crate) fn run(&self, wishes: &Wishes) -> anyhow::Result<ExitCode> {
        let until = Instant::now() + wishes.time;
        let mut targets: BTreeMap<&str, (u64, bool)> =
            wishes.targets.iter().map(|target| (target.name, (0, false))).collect();
        for session in self.sessions()? {
            if let Some((cpu, _)) = session.target().and_then(|it| targets.get_mut(it.name)) {
                *cpu += session.executions.cpu_nanos;
            }
        }
        let rota = Mutex::new(Rota { targets, failed: Vec::new() });
        let share = wishes.time * wishes.jobs as u32 / wishes.targets.len() as u32;
        thread::scope(|scope| {
            let jobs: Vec<_> = (0..wishes.jobs.min(wishes.targets.len()))
                .map(|_| scope.spawn(|| self.take_turns(&rota, until, share.min(SESSION))))
                .collect();
            jobs.into_iter().try_for_each(|job| job.join().expect("sessions do not panic"))
        })?;
        let failed = rota.into_inner().expect("no session panicked").failed;
        for failure in &failed {
            println!("FAILED {failure}");
        }
        table::print(self)?;
        Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    /// One session after the other, always of the target that had the least time.
    fn take_turns(
        &self,
        rota: &Mutex<Rota>,
        until: Instant,
        share: Duration,
    ) -> anyhow::Result<()> {
        let lock = || rota.lock().expect("no session panicked");
        while let Some(left) = until.checked_duration_since(Instant::now())
            && left > Duration::from_secs(1)
        {
            let next = {
                let mut rota = lock();
                let free = rota.targets.iter_mut().filter(|(_, (_, runs))| !runs);
                let next = free.min_by_key(|(_, (cpu, _))| *cpu);
                next.map(|(name, (_, runs))| {
                    *runs = true;
                    *name
                })
            };
            let Some(name) = next else { return Ok(()) };
            let target = TARGETS.into_iter().find(|it| it.name == name).expect("chosen from them");
            let session = self.run_session(target, left.min(share.max(Duration::from_secs(5))))?;
            println!("{}", session.in_words());
            let mut rota = lock();
            if session.failures.is_empty() {
                let entry = rota.targets.get_mut(name).expect("chosen from them");
                *entry = (entry.0 + session.executions.cpu_nanos.max(1), false);
            } else {
                // It stays out: it would fail in the same way again.
                rota.failed.extend(session.failures);
            }
        }
        Ok(())
    }

    /// One session of one target.
    fn run_session(&self, target: &'static FuzzTarget, time: Duration) -> anyhow::Result<Session> {
        let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let folder = self.out.join("sessions").join(format!("{began}-{}", target.name));
        fs::create_dir_all(&folder)?;
        let corpus = self.grown_corpus(target);
        fs::create_dir_all(&corpus)?;
        let program = self.program(target);
        let mut command = at_idle_priority(&program);
        command
            .arg(format!("-max_total_time={}", time.as_secs().max(1)))
            .arg(format!("-max_len={}", target.longest))
            .arg(format!("-artifact_prefix={}/failure-", folder.display()))
            // A time limit in real time, on a machine that others use, too.
            .args(["-timeout=30", "-rss_limit_mb=2048", "-print_final_stats=1", "-len_control=20"])
            .args([&corpus, &Campaign::kept_corpus(target)])
            .env(Executions::FILE, folder.join(session::EXECUTIONS))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join(session::LOG))?);
        command.args(target.dictionary().map(|path| format!("-dict={}", path.display())));
        command.status().with_context(|| format!("{}", program.display()))?;
        Session::read(&folder)?.with_context(|| format!("{}: no session", folder.display()))
    }
}

/// Whatever else runs on the machine goes first.
pub(crate) fn at_idle_priority(program: &Path) -> Command {
    let has_chrt = Command::new("chrt").arg("--version").stdout(Stdio::null()).status();
    if has_chrt.is_ok_and(|status| status.success()) {
        let mut command = Command::new("chrt");
        command.args(["--idle", "0"]).arg(program);
        return command;
    }
    Command::new(program)
}
