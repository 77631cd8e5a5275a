//! Runs `tapstone token` on the null module, and reads what that noted.

mod turn;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

pub(crate) use tapstone_testing::eventually;

use crate::run::TIME_LIMIT;
pub(crate) use crate::run::null_module::PIN;
use crate::run::null_module::{self, Log, objects};
pub(crate) use crate::run::{Outcome, Running, Tapstone};

/// `tapstone token` with the null module, its log and store in the run's directory.
impl Tapstone {
    /// With `NULL_MODULE_…` variables, named without that prefix, and the PIN.
    pub(crate) fn on(variables: &[(&str, &str)]) -> Self {
        Self::without_pin(variables).pin(PIN)
    }

    /// The same without `--pin-file`.
    pub(crate) fn without_pin(variables: &[(&str, &str)]) -> Self {
        let run = Self::bare().arg("--module").arg(null_module::path());
        variables
            .iter()
            .fold(run, |run, (name, value)| run.env(&format!("NULL_MODULE_{name}"), value))
    }

    /// No module, no PIN.
    pub(crate) fn bare() -> Self {
        Self::new("token").by_default("--warm-up", "0.05").holding(turn::shared)
    }

    /// The module notes when each signature was done. Its first one takes longer: each thread
    /// needs memory for its notes.
    pub(crate) fn logged(self) -> Self {
        let log = self.path("log");
        self.env("NULL_MODULE_LOG", log).by_default("--warm-up", "0.5")
    }

    /// While no other run of these tests takes the processor.
    pub(crate) fn quietly(self) -> Self {
        self.holding(turn::alone)
    }

    /// Token objects and the count of wrong PINs outlive the module, in the run's directory.
    pub(crate) fn stored(self) -> Self {
        let store = self.path("store");
        self.stored_in(&store)
    }

    /// The same in another run's directory.
    pub(crate) fn stored_in(self, store: &Path) -> Self {
        self.env("NULL_MODULE_STORE", store).env("XDG_STATE_HOME", state_of(store))
    }
}

/// Where runs on this store note their keys.
pub(crate) fn state_of(store: &Path) -> PathBuf {
    store.with_extension("state")
}

impl Running {
    /// Waits for the keys of a run with `--token-keys`, and then until it measures.
    pub(crate) fn wait_until_it_measures(&self) {
        let store = self.store();
        let made = eventually(TIME_LIMIT, || objects(&store).len() == 2);
        assert!(made, "a key pair is on the token: {:?}", objects(&store));
        // Trial, warm-up and notices take a fifth of a second together.
        sleep(Duration::from_millis(500));
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }
}

impl Outcome {
    /// What the module noted.
    pub(crate) fn log(&self) -> Log {
        Log::read(&self.path("."))
    }

    /// Names of the token objects that are left.
    pub(crate) fn objects(&self) -> Vec<String> {
        objects(&self.path("store"))
    }

    /// Wrong PINs since the last right one; `None`: no PIN was ever given.
    pub(crate) fn wrong_pins(&self) -> Option<u32> {
        let text = fs::read_to_string(self.path("store").join("slot-0.pin-failures")).ok()?;
        Some(text.parse().unwrap())
    }
}
