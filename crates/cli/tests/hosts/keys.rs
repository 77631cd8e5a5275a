//! Packet keys of agents and of the coordinator, for as long as a program of tests runs: a name has
//! one key, whoever starts the agent of that name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tapstone_hosts::PacketKey;

use crate::run::{Tapstone, write_secret};

/// The coordinator's name in agents' configurations.
pub(crate) const COORDINATOR: &str = "lab";

/// A key as its file holds it, and its public half.
#[derive(Clone)]
struct TestKey {
    file: String,
    identity: String,
}

static KEYS: Mutex<BTreeMap<String, TestKey>> = Mutex::new(BTreeMap::new());

fn key_of(name: &str) -> TestKey {
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = keys.entry(name.to_owned()).or_insert_with(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packet.key");
        let identity = PacketKey::create(&path).unwrap().identity().to_string();
        TestKey { file: fs::read_to_string(&path).unwrap(), identity }
    });
    made.clone()
}

/// Writes an agent's key, and says how its configuration begins.
pub(crate) fn agents_part(name: &str, key_file: &Path) -> String {
    write_secret(key_file, key_of(name).file);
    let lab = key_of(COORDINATOR).identity;
    format!("packet-key = '{}'\ncoordinators = {{ {COORDINATOR} = '{lab}' }}\n", key_file.display())
}

/// The public key by which an agent of this name is known.
pub(crate) fn identity_of(name: &str) -> String {
    key_of(name).identity
}

/// What the file with the private key holds.
pub(crate) fn file_of(name: &str) -> String {
    key_of(name).file
}

impl Tapstone {
    /// As the coordinator that all agents of these tests enrol; it knows those that there are.
    pub(crate) fn enrolled(self) -> Self {
        let this = self.file("packet.key", key_of(COORDINATOR).file);
        let keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let agents = keys.iter().filter(|(name, _)| *name != COORDINATOR);
        let lines = agents.map(|(name, key)| format!("{name} = '{}'\n", key.identity));
        let text = format!("packet-key = 'packet.key'\n[agents]\n{}", lines.collect::<String>());
        this.file("coordinator.toml", text).args("--enrolment coordinator.toml")
    }

    /// `hosts`, as this coordinator.
    pub(crate) fn listing(url: &str) -> Self {
        Self::new("hosts").without_record().args(&format!("--nats {url}")).enrolled()
    }
}
