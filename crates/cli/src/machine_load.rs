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
