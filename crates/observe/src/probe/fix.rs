//! Fixes, as they are written where the probe finds them.

use tapstone_events::{Fix, WaitsIn, WatchedFunction};

use crate::wire::{self, NAME_BYTES};

/// Fills in one of the header's fixes.
pub(super) fn write_fix(fix: &Fix, to: &mut wire::Fix) {
    let (kind, function) = match fix {
        Fix::NoSleep(waits) => (wire::FIX_NO_SLEEP, write_waits(*waits, to)),
        Fix::NoBusyWait(waits) => (wire::FIX_NO_BUSY_WAIT, write_waits(*waits, to)),
        Fix::Delay { function, low, high } => {
            to.low_ns = low.0;
            to.high_ns = high.0;
            (wire::FIX_DELAY, Some(*function))
        }
        Fix::Memoise(function) => (wire::FIX_MEMOISE, Some(*function)),
        Fix::CacheApdu => (wire::FIX_CACHE_APDU, None),
        Fix::WholeRead => (wire::FIX_WHOLE_READ, None),
        Fix::TcpNodelay => (wire::FIX_TCP_NODELAY, None),
        Fix::CacheFind => (wire::FIX_CACHE_FIND, None),
        Fix::CacheAttributes => (wire::FIX_CACHE_ATTRIBUTES, None),
        Fix::KeepLogin => (wire::FIX_KEEP_LOGIN, None),
        Fix::KeepSession => (wire::FIX_KEEP_SESSION, None),
    };
    to.kind = kind;
    if let Some(function) = function {
        write_name(function.name(), to);
    }
}

/// The function that waits, where it is one.
fn write_waits(waits: WaitsIn, to: &mut wire::Fix) -> Option<WatchedFunction> {
    match waits {
        WaitsIn::AnyCall => None,
        WaitsIn::Call(function) => Some(function),
        WaitsIn::Program => {
            write_name(WaitsIn::PROGRAM, to);
            None
        }
    }
}

fn write_name(name: &str, to: &mut wire::Fix) {
    to.function = [0; NAME_BYTES];
    to.function[..name.len()].copy_from_slice(name.as_bytes());
}
