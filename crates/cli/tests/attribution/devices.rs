//! Devices of known nature, by what is drawn for each run.

use std::time::Duration;

use tapstone_measure::pace::SplitMix;

use crate::remote::Way;
use crate::setup::{Engine, Setup};

/// A kind of device, whose parameters each run draws anew.
pub(crate) struct Device {
    pub(crate) name: &'static str,
    /// Its search is capped, interrupted or starved: never is the device its limit.
    pub(crate) never_device: bool,
    draw: fn(&mut Draw) -> Setup,
}

impl Device {
    /// What a run of this seed measures.
    pub(crate) fn setup(&self, seed: u64) -> Setup {
        let name =
            self.name.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte));
        let mut draw = Draw(SplitMix(seed ^ name));
        // The first numbers of neighbouring seeds are alike in nothing; one is passed over.
        draw.0.bits();
        (self.draw)(&mut draw)
    }
}

struct Draw(SplitMix);

impl Draw {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.uniform()
    }

    fn milliseconds(&mut self, low: f64, high: f64) -> Duration {
        Duration::from_secs_f64(self.between(low, high) / 1e3)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.bits() as usize % all.len()]
    }
}

pub(crate) const DEVICES: [Device; 15] = [
    Device {
        name: "serial engine",
        never_device: false,
        draw: |draw| Setup {
            engine: Engine::Device(1),
            service: draw.milliseconds(2.0, 8.0),
            ..Setup::default()
        },
    },
    Device {
        name: "several slots",
        never_device: false,
        draw: |draw| Setup {
            engine: Engine::Device(draw.one_of(&[2, 3, 4])),
            service: draw.milliseconds(4.0, 12.0),
            // Two doublings beyond the servers: one that is flat may be the border between two.
            max_threads: 16,
            ..Setup::default()
        },
    },
    Device {
        name: "engine per process",
        never_device: true,
        draw: |draw| Setup {
            engine: Engine::Process,
            service: draw.milliseconds(4.0, 12.0),
            max_processes: draw.one_of(&[2, 4]),
            ..Setup::default()
        },
    },
    Device {
        name: "sleeping library lock",
        never_device: true,
        draw: |draw| Setup {
            service: draw.milliseconds(4.0, 12.0),
            lock: Some("sleep"),
            max_processes: draw.one_of(&[2, 4]),
            ..Setup::default()
        },
    },
    Device {
        name: "spinning library lock",
        never_device: true,
        draw: |draw| Setup {
            service: draw.milliseconds(1.0, 8.0),
            lock: Some("spin"),
            ..Setup::default()
        },
    },
    Device {
        name: "delayed network",
        never_device: true,
        draw: |draw| Setup {
            engine: Engine::Remote(Way::Waits),
            service: Duration::from_micros(200),
            delay: draw.milliseconds(6.0, 15.0),
            max_threads: 4,
            max_processes: draw.one_of(&[1, 2]),
            ..Setup::default()
        },
    },
    Device {
        name: "network, one call at a time",
        never_device: true,
        draw: |draw| Setup {
            engine: Engine::Remote(Way::AcknowledgedLink),
            service: draw.milliseconds(0.2, 1.0),
            delay: draw.milliseconds(3.0, 8.0),
            ..Setup::default()
        },
    },
    Device {
        name: "serial engine, near network",
        never_device: false,
        draw: |draw| Setup {
            engine: Engine::Remote(Way::Link),
            service: draw.milliseconds(6.0, 12.0),
            delay: draw.milliseconds(0.02, 0.1),
            ..Setup::default()
        },
    },
    Device { name: "starved of one processor", never_device: true, draw: |draw| starved(draw, 1) },
    Device { name: "starved of two processors", never_device: true, draw: |draw| starved(draw, 2) },
    Device {
        name: "busy client",
        never_device: true,
        draw: |draw| Setup {
            service: draw.milliseconds(0.1, 1.0),
            spins: true,
            max_threads: 4,
            ..Setup::default()
        },
    },
    Device {
        name: "capped search",
        never_device: true,
        draw: |draw| Setup {
            service: draw.milliseconds(4.0, 12.0),
            max_threads: draw.one_of(&[2, 4, 8]),
            max_processes: draw.one_of(&[1, 2]),
            ..Setup::default()
        },
    },
    Device {
        name: "interrupted search",
        never_device: true,
        draw: |draw| Setup {
            engine: draw.one_of(&[Engine::Call, Engine::Device(1), Engine::Device(4)]),
            service: draw.milliseconds(4.0, 12.0),
            max_threads: 64,
            interrupted_after: Some(draw.milliseconds(1000.0, 3000.0)),
            ..Setup::default()
        },
    },
    Device {
        name: "drift",
        never_device: false,
        draw: |draw| Setup {
            engine: Engine::Device(1),
            service: draw.milliseconds(2.0, 6.0),
            swing: Some((
                draw.between(0.05, 0.3),
                Duration::from_millis(draw.one_of(&[100, 200, 300])),
            )),
            ..Setup::default()
        },
    },
    Device {
        name: "two modes",
        never_device: false,
        draw: |draw| Setup {
            engine: Engine::Device(1),
            service: draw.milliseconds(1.0, 3.0),
            stall: Some(draw.milliseconds(3.0, 8.0)),
            ..Setup::default()
        },
    },
];

/// Signatures by arithmetic, beside programs that compute as well.
fn starved(draw: &mut Draw, neighbours: usize) -> Setup {
    Setup {
        service: draw.milliseconds(0.5, 2.0),
        spins: draw.one_of(&[false, true]),
        computes: true,
        max_threads: draw.one_of(&[2, 4]),
        neighbours,
        ..Setup::default()
    }
}
