//! The machine that this runs on, for the record.

use std::fs;
use std::thread;

use tapstone_measure::clock::Precision;
use tapstone_record::{ClockPrecision, Environment, SystemLoad};

/// Asks the system; what it does not tell is left out.
pub(crate) fn observe(precision: Precision) -> Environment {
    let processors = read("/proc/cpuinfo").unwrap_or_default();
    Environment {
        cpu: cpu_field(&processors, "model name")
            .map(str::to_owned)
            .or_else(|| Some(std::env::consts::ARCH.to_owned())),
        cores: thread::available_parallelism().ok().map(|cores| cores.get() as u32),
        kernel: read("/proc/sys/kernel/osrelease"),
        load: load(),
        clock: Some(ClockPrecision { step_ns: precision.step, cost_ns: precision.cost_ns() }),
        os: os(),
        memory_bytes: memory(),
        cgroup_quota_cores: quota(),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtualisation: virtualisation(&processors),
    }
}

fn load() -> SystemLoad {
    let text = read("/proc/loadavg").unwrap_or_default();
    let mut averages = text.split_whitespace().map_while(|word| word.parse().ok());
    SystemLoad {
        average_1m: averages.next(),
        average_5m: averages.next(),
        average_15m: averages.next(),
        ..SystemLoad::default()
    }
}

/// `NAME="Debian GNU/Linux"` of os-release(5).
fn os() -> Option<String> {
    let text = read("/etc/os-release")?;
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn memory() -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let kibibytes: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(kibibytes * 1024)
}

/// The quota of cgroup version 2: microseconds of processor in each period.
fn quota() -> Option<f64> {
    let text = read("/sys/fs/cgroup/cpu.max")?;
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn virtualisation(processors: &str) -> Option<String> {
    let flags = cpu_field(processors, "flags")?;
    let hypervisor = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let vendor = read("/sys/class/dmi/id/sys_vendor");
    hypervisor.then(|| vendor.unwrap_or_else(|| "virtual machine".to_owned()))
}

/// A field of the first processor in `/proc/cpuinfo` (proc(5)).
fn cpu_field<'a>(processors: &'a str, name: &str) -> Option<&'a str> {
    let line = processors.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
