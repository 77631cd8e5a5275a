//! Programs that a command leaves behind.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::probe::Probe;

/// Those that go on with the probe in their environment, which is about to be gone: the linker says
/// so to each program that they start from now on (ld.so(8): LD_AUDIT).
pub(super) fn sentence(probe: &Probe) -> Option<String> {
    let library = probe.library().as_os_str().as_bytes();
    let goes_on = |id: &u32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.windows(library.len()).any(|window| window == library)
    };
    let names = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.file_name());
    let ids = names.filter_map(|name| name.to_str()?.parse().ok()).filter(goes_on);
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    (!ids.is_empty()).then(|| {
        format!(
            "the command left processes behind ({}): what they did after it is not here, and \
             programs that they start from now on print an error of ld.so, since the probe is gone; \
             end them after the trace",
            ids.join(", ")
        )
    })
}
