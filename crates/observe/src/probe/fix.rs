//! Fixes, as they are written where the probe finds them.

use tapstone_events::{Fix, SleepsIn};

use crate::wire::{self, NAME_BYTES};

/// Fills in one of the header's fixes.
pub(super) fn write_fix(fix: &Fix, to: &mut wire::Fix) {
    let (kind, function) = match fix {
        Fix::NoSleep(SleepsIn::Program) => {
            write_name(SleepsIn::PROGRAM, to);
            (wire::FIX_NO_SLEEP, None)
        }
        Fix::NoSleep(SleepsIn::AnyCall) => (wire::FIX_NO_SLEEP, None),
        Fix::NoSleep(SleepsIn::Call(function)) => (wire::FIX_NO_SLEEP, Some(*function)),
        Fix::Delay { function, low, high } => {
            to.low_ns = low.0;
            to.high_ns = high.0;
            (wire::FIX_DELAY, Some(*function))
        }
        Fix::NoBusyWait(function) => (wire::FIX_NO_BUSY_WAIT, *function),
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

fn write_name(name: &str, to: &mut wire::Fix) {
    to.function = [0; NAME_BYTES];
    to.function[..name.len()].copy_from_slice(name.as_bytes());
}
