//! A target, and the count of how often it was executed.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::structure::Structure;

/// Something that is read, and what must hold for it.
#[derive(Debug)]
pub struct FuzzTarget {
    /// Also the name of its corpus and, after `fuzz-`, of its program.
    pub name: &'static str,
    /// What is read, for tables.
    pub reads: &'static str,
    /// How its inputs are built, for changes that keep the lengths in them right.
    pub structure: Structure,
    /// The longest input that is tried, in bytes.
    pub longest: usize,
    /// Panics when something does not hold.
    pub check: fn(&[u8]),
}

impl FuzzTarget {
    /// Words that its inputs are made of, for libFuzzer.
    #[must_use]
    pub fn dictionary(&self) -> Option<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dictionaries");
        let path = folder.join(format!("{}.dict", self.name));
        path.exists().then_some(path)
    }

    /// Counts, and checks one input.
    pub fn execute(&self, input: &[u8]) {
        Executions::note_one();
        (self.check)(input);
    }
}

/// How often a target was executed in this process, and the processor time of the process.
///
/// It is counted where the target is called, whoever calls it. With the variable
/// [`Executions::FILE`] the count is also in that file, so that it is known of a process that was
/// killed; the file is behind by less than [`Executions::STEP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executions {
    /// Executions of the target.
    pub count: u64,
    /// Nanoseconds on a processor, of all threads.
    pub cpu_nanos: u64,
}

static COUNT: AtomicU64 = AtomicU64::new(0);

impl Executions {
    /// The variable that names the file.
    pub const FILE: &'static str = "TAPSTONE_FUZZ_EXECUTIONS";
    /// Executions between two writes of the file.
    pub const STEP: u64 = 64;

    /// Of this process, until now.
    #[must_use]
    pub fn until_now() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Self {
            count: COUNT.load(Ordering::Relaxed),
            cpu_nanos: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
        }
    }

    /// What another process left in its file.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, cpu_nanos) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            count: u64::from_le_bytes(*count),
            cpu_nanos: u64::from_le_bytes(cpu_nanos.try_into().ok()?),
        })
    }

    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..].copy_from_slice(&self.cpu_nanos.to_le_bytes());
        bytes
    }

    fn note_one() {
        static KEPT: OnceLock<Option<File>> = OnceLock::new();
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_multiple_of(Self::STEP) {
            let kept = KEPT.get_or_init(|| {
                let path = std::env::var_os(Self::FILE)?;
                let open = OpenOptions::new().write(true).create(true).truncate(true).open(path);
                Some(open.expect("the file of executions can be opened"))
            });
            if let Some(kept) = kept {
                // A count that cannot be kept is found to be too small, never too large.
                let _ = kept.write_all_at(&Self::until_now().to_bytes(), 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_execution_is_counted() {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let target = FuzzTarget {
            name: "last",
            reads: "its first byte",
            structure: Structure::Bytes,
            longest: 1,
            check: |input| LAST.store(input[0].into(), Ordering::Relaxed),
        };
        let before = Executions::until_now();
        (1..=100).for_each(|byte| target.execute(&[byte]));
        let after = Executions::until_now();
        assert_eq!(after.count - before.count, 100);
        assert_eq!(LAST.load(Ordering::Relaxed), 100);
        assert!(after.cpu_nanos > before.cpu_nanos);
        assert_eq!(Executions::from_bytes(&after.to_bytes()), Some(after));
        assert_eq!(Executions::from_bytes(&[0; 15]), None);
    }
}
