//! Runs of the bench: each is a line of a file, so that it goes on where it was stopped.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapstone_record::LimitedBy;
use tapstone_testing::{figures, hold, undisturbed};

use crate::alone;
use crate::delayed_link::DelayedLink;
use crate::devices::{DEVICES, Device};
use crate::setup::Setup;
use crate::truth::{Gain, bears_out, gains, verdicts};

/// Of 200 runs, so many are right.
const RIGHT_OF_200: usize = 196;

/// One run with its verdict.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Judged {
    device: String,
    seed: u64,
    /// What was measured, in words.
    setup: String,
    verdict: LimitedBy,
    /// On the threads of one process.
    process_verdict: Option<LimitedBy>,
    why: String,
    /// What the removals brought, in words.
    gains: String,
    right: bool,
}

/// Searches, intervenes and judges. `None`: other programs were never quiet.
fn judge(device: &Device, seed: u64) -> Option<Judged> {
    let setup = device.setup(seed);
    // The neighbours keep sleepers from waking in time: only what others use counts.
    undisturbed(0.0, 2.0, || judge_once(device, seed, &setup), |_| Ok(()))
}

fn judge_once(device: &Device, seed: u64, setup: &Setup) -> Judged {
    let knee = setup.search();
    let (verdict, process_verdict) = verdicts(knee.as_ref());
    let limit = knee.as_ref().and_then(|knee| knee.limit.as_ref());
    let why = limit.map(|limit| limit.why.clone()).unwrap_or_default();
    let mut brought: Vec<Gain> = Vec::new();
    let mut right = verdict == LimitedBy::Interruption;
    if setup.interrupted_after.is_none() {
        let knee = knee.unwrap();
        let top = knee.levels.iter().max_by_key(|level| level.threads * level.processes).unwrap();
        brought = gains(setup, top.threads, top.processes);
        right = bears_out(setup, &brought, verdict);
        if let Some(process) = process_verdict {
            let threads = knee.levels.iter().map(|level| level.threads).max().unwrap();
            let of_process = gains(setup, threads, 1);
            right &= bears_out(setup, &of_process, process);
            brought.extend(of_process);
        }
    }
    let gains = brought.iter().map(|(removal, gain)| format!("{removal:?} x{gain:.2}"));
    Judged {
        device: device.name.to_owned(),
        seed,
        setup: format!("{setup:?}"),
        verdict,
        process_verdict,
        why,
        gains: gains.collect::<Vec<_>>().join(", "),
        right,
    }
}

/// The lines of earlier runs, and where further ones go. Who changes the program removes the file.
struct Runs {
    path: PathBuf,
    judged: Vec<Judged>,
}

impl Runs {
    fn open() -> Self {
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = target.join("attribution.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        // The last line may have been cut off.
        let judged = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { path, judged }
    }

    fn has(&self, device: &Device, seed: u64) -> bool {
        self.judged.iter().any(|run| run.device == device.name && run.seed == seed)
    }

    fn add(&mut self, judged: Judged) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        writeln!(file, "{}", serde_json::to_string(&judged).unwrap()).unwrap();
        self.judged.push(judged);
    }

    /// Devices against verdicts; a verdict on one process stands behind a plus.
    fn print(&self) {
        for device in &DEVICES {
            let of_device = || self.judged.iter().filter(|run| run.device == device.name);
            if of_device().next().is_none() {
                continue;
            }
            let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
            for run in of_device() {
                let process = run.process_verdict.map(|process| format!(" + {process:?}"));
                let verdict = format!("{:?}{}", run.verdict, process.unwrap_or_default());
                *verdicts.entry(verdict).or_default() += 1;
            }
            let right = of_device().filter(|run| run.right).count();
            println!("{:26} {right} of {} right  {verdicts:?}", device.name, of_device().count());
        }
        for run in self.judged.iter().filter(|run| !run.right) {
            println!("wrong: {run:#?}");
        }
    }
}

/// The devices that can be had here: some need a network device of their own.
fn devices() -> Vec<&'static Device> {
    let link = DelayedLink::open(std::time::Duration::ZERO);
    if let Err(error) = &link {
        eprintln!("SKIPPED: devices behind a link: no TUN device ({error}): run as root");
    }
    DEVICES.iter().filter(|device| link.is_ok() || !device.setup(0).needs_link()).collect()
}

/// `make attribution RUNS=240 SEED=1`: as many runs of each device as make so many in all.
/// `DEVICE=network` runs, and judges, only devices whose names hold that word.
#[test]
#[ignore = "half an hour: make attribution"]
fn two_hundred_limits_are_named_right() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let named = std::env::var("DEVICE").unwrap_or_default();
    let mut devices = devices();
    devices.retain(|device| device.name.contains(&named));
    let each = u64::div_ceil(number("RUNS", 240), DEVICES.len() as u64);
    let first = number("SEED", 1);
    let mut runs = Runs::open();
    for seed in first..first + each {
        for device in &devices {
            if runs.has(device, seed) {
                continue;
            }
            if let Some(judged) = judge(device, seed) {
                println!("{} {seed}: {:?} {}", device.name, judged.verdict, judged.right);
                runs.add(judged);
            }
        }
    }
    let asked = |run: &Judged| devices.iter().any(|device| device.name == run.device);
    runs.judged.retain(|run| (first..first + each).contains(&run.seed) && asked(run));
    runs.print();
    let wanted = each as usize * devices.len();
    assert_eq!(
        runs.judged.len(),
        wanted,
        "other programs were in the way: go on when they are not"
    );
    let right = runs.judged.iter().filter(|run| run.right).count();
    let never = DEVICES.iter().filter(|device| device.never_device).map(|device| device.name);
    let never: Vec<&str> = never.collect();
    let wrongly_device = runs
        .judged
        .iter()
        .find(|run| never.contains(&run.device.as_str()) && run.verdict == LimitedBy::Device);
    assert!(wrongly_device.is_none(), "{wrongly_device:#?}");
    assert!(right * 200 >= RIGHT_OF_200 * runs.judged.len(), "{right} of {}", runs.judged.len());
    println!("{right} of {} right", runs.judged.len());
}

/// One run each of the devices that were once named wrong.
#[test]
fn limits_that_were_once_named_wrong_are_named_right() {
    let _alone = alone();
    for device in devices().into_iter().filter(|device| SMOKE.contains(&device.name)) {
        figures(|| {
            let Some(judged) = judge(device, 0) else { return Ok(()) };
            if device.never_device {
                assert_ne!(judged.verdict, LimitedBy::Device, "{judged:#?}");
            }
            hold(judged.right, format_args!("{judged:#?}"))
        });
    }
}

const SMOKE: [&str; 5] = [
    "network, one call at a time",
    "serial engine, near network",
    "starved of two processors",
    "capped search",
    "interrupted search",
];
