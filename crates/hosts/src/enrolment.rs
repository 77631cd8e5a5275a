//! A coordinator's enrolment: its own packet key, and the agents that it knows by theirs. Nobody
//! else is asked, believed or named.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tapstone_files::{FileLimit, read_text};

use crate::identity::{Identity, PacketKey, PacketKeyError};

/// Who a coordinator is, and whom it knows.
#[derive(Clone, Debug)]
pub struct Enrolment {
    pub(crate) key: Arc<PacketKey>,
    /// By what they are called.
    pub(crate) agents: BTreeMap<String, Identity>,
}

/// The file, as TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EnrolmentFile {
    /// Counts from the file's folder.
    packet_key: PathBuf,
    agents: BTreeMap<String, Identity>,
}

/// Why an enrolment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnrolmentError {
    /// The file cannot be read.
    #[error("{}: {error}\nhint: {FORM}", .path.display())]
    Unreadable {
        /// The file with the enrolment.
        path: PathBuf,
        /// What the operating system answered.
        error: io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {error}\nhint: {FORM}", .path.display())]
    Malformed {
        /// The file with the enrolment.
        path: PathBuf,
        /// Where in the file, and what is wrong there.
        error: String,
    },
    /// The packet key cannot be used.
    #[error(transparent)]
    Key(#[from] PacketKeyError),
}

const FORM: &str = "--enrolment takes a TOML file with packet-key = \"FILE\" and a table [agents], \
                    with a line NAME = \"PUBLIC PACKET KEY\" for each";

impl Enrolment {
    /// Reads a file and the packet key that it names.
    ///
    /// # Errors
    /// One of them cannot be read or is malformed, or two names are of one agent.
    pub fn read(path: &Path) -> Result<Self, EnrolmentError> {
        let malformed = |error| EnrolmentError::Malformed { path: path.to_owned(), error };
        let text = read_text(path, FileLimit::TOML)
            .map_err(|error| EnrolmentError::Unreadable { path: path.to_owned(), error })?;
        let file: EnrolmentFile = toml::from_str(&text)
            .map_err(|error| malformed(error.to_string().trim_end().to_owned()))?;
        let mut named: BTreeMap<Identity, &str> = BTreeMap::new();
        for (name, agent) in &file.agents {
            if let Some(other) = named.insert(*agent, name) {
                return Err(malformed(format!("{other} and {name} have the same packet key")));
            }
        }
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let key = PacketKey::read(&folder.join(&file.packet_key))?;
        Ok(Self { key: Arc::new(key), agents: file.agents })
    }
}
