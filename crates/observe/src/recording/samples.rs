//! What the probe noted at some of the calls: what watching cost, and how long they ran.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use tapstone_events::{FUNCTIONS, WatchCost};
use tapstone_measure::units::Nanos;
use tapstone_probe_core::cost::{StubCost, StubRunning};

use super::chunks::WORD;
use crate::clock::Scale;
use crate::wire;

/// What the probe noted at some of a function's calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionSamples {
    pub(super) cost: Option<WatchCost>,
    /// The time of these calls, and for how much of it their threads had a processor.
    pub(super) running: Option<(Nanos, Nanos)>,
}

/// Those of each function that is watched; none where the file's header is cut short.
pub(super) fn samples(file: &File, scale: &Scale) -> io::Result<Vec<FunctionSamples>> {
    let read = |at: usize, size: usize| {
        let mut content = vec![0; size * FUNCTIONS.len()];
        file.read_exact_at(&mut content, at as u64).map(|()| content)
    };
    let costs = read(offset_of!(wire::Header, costs), size_of::<StubCost>());
    let running = read(offset_of!(wire::Header, running), size_of::<StubRunning>());
    let (costs, running) = match (costs, running) {
        (Ok(costs), Ok(running)) => (costs, running),
        (Err(why), _) | (_, Err(why)) if why.kind() == io::ErrorKind::UnexpectedEof => {
            return Ok(Vec::new());
        }
        (Err(why), _) | (_, Err(why)) => return Err(why),
    };
    let costs = costs.chunks_exact(size_of::<StubCost>()).map(|it| watch_cost(it, scale));
    let running = running.chunks_exact(size_of::<StubRunning>()).map(|it| running_of(it, scale));
    Ok(costs.zip(running).map(|(cost, running)| FunctionSamples { cost, running }).collect())
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + WORD].try_into().expect("eight"))
}

fn watch_cost(cost: &[u8], scale: &Scale) -> Option<WatchCost> {
    let mean = |sum: usize, count: usize| {
        let sum = number_at(cost, sum);
        Some(scale.duration(sum.checked_div(number_at(cost, count))?))
    };
    let inside = mean(offset_of!(StubCost, inside), offset_of!(StubCost, beginnings))?;
    let before = mean(offset_of!(StubCost, before), offset_of!(StubCost, beginnings))?;
    let after = mean(offset_of!(StubCost, after), offset_of!(StubCost, ends)).unwrap_or_default();
    let least = |at: usize| scale.duration(number_at(cost, at));
    let at_best =
        least(offset_of!(StubCost, least_beginning)) + least(offset_of!(StubCost, least_end));
    Some(WatchCost { before, inside, after, displaced: before + inside + after - at_best })
}

fn running_of(running: &[u8], scale: &Scale) -> Option<(Nanos, Nanos)> {
    let time = scale.duration(number_at(running, offset_of!(StubRunning, time)));
    let ran = Nanos(number_at(running, offset_of!(StubRunning, ran)));
    (time > Nanos::ZERO).then_some((time, ran))
}
