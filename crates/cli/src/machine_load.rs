//! What else the machine did during a run: processor time that others used, and time that the
//! hypervisor gave to other machines (proc_stat(5)).

use std::time::Instant;

use procfs::process::Process;
use procfs::{CurrentSI, KernelStats, ticks_per_second};
use tapstone_record::{Fraction, SystemLoad};

/// The counters at the start of a run.
pub(crate) struct LoadWatch {
    since: Instant,
    start: Option<Ticks>,
    own: Option<u64>,
}

/// All processors together, in clock ticks.
#[derive(Clone, Copy)]
struct Ticks {
    busy: u64,
    steal: u64,
    all: u64,
}

impl LoadWatch {
    pub(crate) fn start() -> Self {
        Self { since: Instant::now(), start: ticks(), own: own_ticks() }
    }

    /// Fills in what happened since the start; call it when the workers have ended.
    pub(crate) fn add_to(&self, load: &mut SystemLoad) {
        let (Some(start), Some(end)) = (self.start, ticks()) else { return };
        let all = end.all.saturating_sub(start.all);
        if all > 0 {
            let steal = end.steal.saturating_sub(start.steal);
            load.steal_share = Some(Fraction(steal as f64 / all as f64));
        }
        if let (Some(own_start), Some(own_end)) = (self.own, own_ticks()) {
            let own = own_end.saturating_sub(own_start);
            let others = end.busy.saturating_sub(start.busy).saturating_sub(own);
            let seconds = others as f64 / ticks_per_second() as f64;
            load.other_cores = Some(seconds / self.since.elapsed().as_secs_f64().max(1e-3));
        }
    }
}

/// What this process and its workers take of the machine's processors for a while.
pub(crate) struct OwnLoadWatch(Option<(Ticks, u64)>);

impl OwnLoadWatch {
    pub(crate) fn start() -> Self {
        Self(ticks().zip(ticks_with_workers()))
    }

    /// Their share of all processors since the start; `None` where it is not known.
    pub(crate) fn share(&self) -> Option<Fraction> {
        let (start, own_start) = self.0?;
        let all = ticks()?.all.saturating_sub(start.all);
        let own = ticks_with_workers()?.saturating_sub(own_start);
        (all > 0).then(|| Fraction(own as f64 / all as f64))
    }
}

fn ticks() -> Option<Ticks> {
    let all = KernelStats::current().ok()?.total;
    let interrupts = all.irq.unwrap_or(0) + all.softirq.unwrap_or(0);
    let busy = all.user + all.nice + all.system + interrupts;
    let steal = all.steal.unwrap_or(0);
    Some(Ticks { busy, steal, all: busy + all.idle + all.iowait.unwrap_or(0) + steal })
}

/// Of this process and of its children, which are the workers.
fn own_ticks() -> Option<u64> {
    let own = Process::myself().and_then(|me| me.stat()).ok()?;
    let children = u64::try_from(own.cutime + own.cstime).unwrap_or(0);
    Some(own.utime + own.stime + children)
}

/// Of this process, of children that have ended, and of those that live.
fn ticks_with_workers() -> Option<u64> {
    let own = own_ticks()?;
    let me = i32::try_from(std::process::id()).ok()?;
    let living =
        procfs::process::all_processes().ok()?.filter_map(|process| process.ok()?.stat().ok());
    let workers = living.filter(|stat| stat.ppid == me);
    Some(own + workers.map(|stat| stat.utime + stat.stime).sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_its_own_work_apart_from_that_of_others() {
        let watch = LoadWatch::start();
        let until = Instant::now() + std::time::Duration::from_millis(100);
        while Instant::now() < until {}
        let mut load = SystemLoad::default();
        watch.add_to(&mut load);
        assert!(load.other_cores.is_some_and(|cores| cores >= 0.0));
        assert!(own_ticks() > watch.own);
    }
}
