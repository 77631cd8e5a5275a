//! What the probes themselves add to the time of a call, measured when watching begins.
//!
//! Two functions of this program that do nothing are watched like those of a module, and called:
//! one begins with an instruction that the kernel carries out itself, the other with one that it
//! steps through.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::bpf::ProbeSite;
use crate::error::AttachError;
use crate::kernel::Kernel;
use crate::layout::{self, Arguments, Record};
use crate::process;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.tapstone_calibration, \"ax\", @progbits",
    ".balign 64",
    ".globl tapstone_calibration_pushes",
    "tapstone_calibration_pushes:",
    "push rbp",
    "pop rbp",
    "ret",
    ".balign 64",
    ".globl tapstone_calibration_steps",
    "tapstone_calibration_steps:",
    "mov eax, 0",
    "ret",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn tapstone_calibration_pushes() -> u64;
    fn tapstone_calibration_steps() -> u64;
}

/// Nothing is watched on other processors ([`AttachError::Kernel`]).
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn tapstone_calibration_pushes() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn tapstone_calibration_steps() -> u64 {
    0
}

/// Functions that are no module's: their numbers.
pub(crate) const RESERVED: u16 = 2;
const CALLS: usize = 1000;

/// What a call takes longer, inside its own time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCost {
    /// Where the kernel carries out the instruction itself.
    pub carried_out: Nanos,
    /// Where it steps through it.
    pub stepped: Nanos,
}

impl ProbeCost {
    pub(crate) const fn of(self, is_stepped: bool) -> Nanos {
        if is_stepped { self.stepped } else { self.carried_out }
    }
}

/// Measures it. What was counted for it is taken away by the caller: numbers below [`RESERVED`].
pub(crate) fn calibrate(kernel: &mut Kernel, with_events: bool) -> Result<ProbeCost, AttachError> {
    let this = std::process::id();
    let mappings = process::mappings(this)?;
    let functions = [tapstone_calibration_pushes, tapstone_calibration_steps];
    let mut sites = Vec::new();
    for (function, number) in functions.iter().zip(0..) {
        let address = *function as usize as u64;
        let mapping = mappings.iter().find(|it| it.holds(address));
        let Some(mapping) = mapping else { return Ok(ProbeCost::default()) };
        let offset = address - mapping.start + mapping.offset;
        sites.push(ProbeSite { offset, cookie: layout::cookie(number, Arguments::Ignored) });
    }
    let kept = kernel.link_count();
    kernel.watch_process(this)?;
    kernel.probe(Path::new("/proc/self/exe"), &sites, &[])?;
    kernel.enable(true)?;
    for _ in 0..CALLS {
        for function in functions {
            // SAFETY: they take nothing, and change nothing but the register that they return.
            unsafe { function() };
        }
    }
    kernel.enable(false)?;
    kernel.forget_last_probes(kept);
    kernel.forget_process(this)?;
    let [carried_out, stepped] =
        if with_events { medians_of_events(kernel) } else { medians_of_times(kernel)? };
    Ok(ProbeCost { carried_out, stepped })
}

fn medians_of_events(kernel: &Kernel) -> [Nanos; 2] {
    let mut times = [Vec::new(), Vec::new()];
    kernel.ring.read(&mut |bytes| {
        let record = Record::from_bytes(bytes);
        let of = record.and_then(|record| {
            times.get_mut(record.function as usize).map(|of| (of, record.end - record.start))
        });
        if let Some((of, time)) = of {
            of.push(time);
        }
    });
    times.map(|mut times| {
        times.sort_unstable();
        Nanos(times.get(times.len() / 2).copied().unwrap_or(0))
    })
}

fn medians_of_times(kernel: &Kernel) -> Result<[Nanos; 2], AttachError> {
    let mut medians = [Nanos::ZERO; 2];
    let mut values = Vec::new();
    for (median, function) in medians.iter_mut().zip(0..) {
        let buckets = kernel.times(function, &mut values)?;
        let half = buckets.iter().map(|it| it.count).sum::<u64>() / 2;
        let mut reached = 0;
        let middle = buckets.iter().position(|bucket| {
            reached += bucket.count;
            reached > half
        });
        let mean = middle.and_then(|place| layout::mean_of(place, buckets[place]));
        *median = mean.unwrap_or(Nanos::ZERO);
    }
    Ok(medians)
}
