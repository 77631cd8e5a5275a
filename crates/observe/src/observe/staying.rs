//! Programs that a command leaves behind.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::thread::sleep;
use std::time::Duration;

use tapstone_measure::units::Nanos;

use crate::probe::Probe;

/// A program that just begins has no environment yet: so often it is looked at again, ...
const LOOKS: u32 = 5;
/// ... and so long it has in between. Few programs have none for good.
const PAUSE: Duration = Duration::from_millis(2);

/// Those that go on with the probe in their environment, which is about to be gone: the linker says
/// so to each program that they start from now on (ld.so(8): LD_AUDIT). `command` is the process of
/// the command, if that is known, and `wall` how long it took.
pub(super) fn sentence(probe: &Probe, command: Option<u32>, wall: Nanos) -> Option<String> {
    let later_than = command.filter(|command| is_lowest_of_all_since(*command, wall)).unwrap_or(0);
    let ids = that_have(probe.library().as_os_str().as_bytes(), later_than);
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    (!ids.is_empty()).then(|| {
        format!(
            "the command left processes behind ({}): what they did after it is not here, and \
             programs that they start from now on print an error of ld.so, since the probe is gone; \
             end them after the trace",
            ids.join(", ")
        )
    })
}

/// Whether all processes that began after this one have higher numbers. The kernel gives them in
/// order, and begins anew at the end: it has not since if the last one is higher and there was no
/// time to go round.
fn is_lowest_of_all_since(process: u32, wall: Nanos) -> bool {
    const TOO_SHORT_FOR_A_ROUND: Nanos = Nanos::from_secs(1);
    // The last number that was given (proc_loadavg(5)).
    let last = fs::read_to_string("/proc/loadavg");
    let last = last.ok().and_then(|text| text.split_whitespace().last()?.parse().ok());
    wall < TOO_SHORT_FOR_A_ROUND && last.is_some_and(|last: u32| last >= process)
}

/// Processes with a higher number than this whose environment has these bytes.
fn that_have(bytes: &[u8], later_than: u32) -> Vec<u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut left: Vec<u32> = names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id| *id > later_than)
        .collect();
    let mut found = Vec::new();
    for _ in 0..LOOKS {
        left.retain(|id| {
            let environment = environment(*id).unwrap_or_default();
            if environment.windows(bytes.len()).any(|window| window == bytes) {
                found.push(*id);
            }
            // The kernel's own have no program, nor has what has ended.
            environment.is_empty() && fs::read_link(format!("/proc/{id}/exe")).is_ok()
        });
        if left.is_empty() {
            break;
        }
        sleep(PAUSE);
    }
    found
}

/// The kernel does not say how long it is: what grows as it is read is read in many small pieces.
fn environment(process: u32) -> io::Result<Vec<u8>> {
    const USUAL_BYTES: usize = 32 << 10;
    let mut environment = Vec::with_capacity(USUAL_BYTES);
    File::open(format!("/proc/{process}/environ"))?.read_to_end(&mut environment)?;
    Ok(environment)
}
