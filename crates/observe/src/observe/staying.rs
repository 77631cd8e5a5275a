//! Programs that a command leaves behind.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::thread::sleep;
use std::time::Duration;

use crate::probe::Probe;

/// A program that just begins has no environment yet: so often it is looked at again, ...
const LOOKS: u32 = 5;
/// ... and so long it has in between. Few programs have none for good.
const PAUSE: Duration = Duration::from_millis(2);

/// Those that go on with the probe in their environment, which is about to be gone: the linker says
/// so to each program that they start from now on (ld.so(8): LD_AUDIT).
pub(super) fn sentence(probe: &Probe) -> Option<String> {
    let ids = that_have(probe.library().as_os_str().as_bytes());
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

/// Processes whose environment has these bytes.
fn that_have(bytes: &[u8]) -> Vec<u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut left: Vec<u32> =
        names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let mut found = Vec::new();
    for _ in 0..LOOKS {
        left.retain(|id| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
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
