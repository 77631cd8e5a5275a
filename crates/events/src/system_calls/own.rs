//! The calls by which the dynamic linker loads the probe's library: without the probe there were none.

use std::collections::HashSet;

use super::log::SystemCall;
use crate::PROBE_FILE;

/// Where the library is open, while calls are looked at in the order in which they ended.
#[derive(Debug, Default)]
pub(super) struct Loading {
    /// The library's descriptors that are open, each with its process.
    open: HashSet<(u32, u32)>,
}

impl Loading {
    /// Whether a call, on that path if it has one, belongs to it.
    pub(super) fn includes(&mut self, call: &SystemCall, on: Option<&[u8]>) -> bool {
        let is_library = on.is_some_and(is_library);
        match call.name() {
            name if name.starts_with("open") => {
                if let Some(descriptor) = call.result.and_then(|result| u32::try_from(result).ok())
                {
                    // A number is used again once it is closed, which may not have been looked at.
                    let opened = (call.process, descriptor);
                    if is_library {
                        self.open.insert(opened)
                    } else {
                        self.open.remove(&opened)
                    };
                }
                is_library
            }
            "close" => {
                self.open.remove(&(call.process, call.arguments[0] as u32));
                is_library
            }
            // The only one that has its descriptor elsewhere, and so no path.
            "mmap" => self.open.contains(&(call.process, call.arguments[4] as u32)),
            _ => is_library,
        }
    }
}

fn is_library(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(PROBE_FILE.as_bytes())
}

#[cfg(test)]
mod tests {
    use tapstone_measure::units::Nanos;

    use super::*;
    use crate::system_calls::stacks::StackId;
    use crate::system_calls::table;

    fn call(name: &str, arguments: [u64; 6], result: i64) -> SystemCall {
        SystemCall {
            process: 1,
            thread: 1,
            start: Nanos::ZERO,
            end: Nanos::ZERO,
            number: table::by_name(name).unwrap().number,
            arguments,
            result: Some(result),
            on: None,
            stack: StackId::EMPTY,
        }
    }

    #[test]
    fn what_loads_the_probe_is_told_from_what_the_program_loads() {
        let mut loading = Loading::default();
        let probe = "/tmp/tapstone-x/tapstone-probe.so";
        let other = "/usr/lib/probe.so";
        let map = [0, 4096, 1, 2, 3, 0];
        let anonymous = [0, 4096, 1, 0x22, u64::from(u32::MAX), 0];
        let descriptor = [3, 0, 0, 0, 0, 0];
        for (name, arguments, result, on, loads) in [
            ("mmap", map, 0x7000, None, false),
            ("openat", [0; 6], 3, Some(probe), true),
            ("read", descriptor, 832, Some(probe), true),
            ("newfstatat", descriptor, 0, Some(probe), true),
            ("mmap", map, 0x7000, None, true),
            ("mmap", anonymous, 0x8000, None, false),
            ("close", descriptor, 0, Some(probe), true),
            ("mmap", map, 0x7000, None, false),
            // Where ends are not looked at, the next file has the same number.
            ("openat", [0; 6], 3, Some(probe), true),
            ("openat", [0; 6], 3, Some(other), false),
            ("mmap", map, 0x7000, None, false),
            ("openat", [0; 6], -2, Some(other), false),
            ("read", descriptor, 832, Some(other), false),
        ] {
            let call = call(name, arguments, result);
            assert_eq!(loading.includes(&call, on.map(str::as_bytes)), loads, "{name} {on:?}");
        }
    }
}
