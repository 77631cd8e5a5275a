//! An agent's configuration: the targets that it offers. Nothing else can be asked of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tapstone_files::{FileLimit, read_text};
use tapstone_pin::PinSource;
use tapstone_token::controller::TokenChoice;
use tapstone_token::module::ModuleArguments;

use crate::identity::Identity;
use crate::limits::{KeyOperation, Limits};

/// The file, as TOML.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What the agent is called; without it, as its machine.
    pub name: Option<String>,
    /// Log in although a token says that a wrong PIN was given before.
    #[serde(default)]
    pub accept_low_count: bool,
    /// The file with the agent's packet key.
    pub packet_key: PathBuf,
    /// The enrolled coordinators: what they are called here, and their public packet keys.
    pub coordinators: BTreeMap<String, Identity>,
    /// By the names that coordinators ask for them.
    pub targets: BTreeMap<String, TargetConfig>,
}

/// One target: a module and one of its tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TargetConfig {
    /// The path of the PKCS#11 module.
    pub module: PathBuf,
    /// What the module is told when it is initialised, for those that need it.
    pub module_args: Option<ModuleArguments>,
    /// The token with this label.
    pub token_label: Option<String>,
    /// The token with this serial number.
    pub token_serial: Option<String>,
    /// The token in this slot.
    pub slot: Option<u64>,
    /// The file that holds the PIN.
    pub pin_file: Option<PathBuf>,
    /// The environment variable that holds the PIN.
    pub pin_env: Option<String>,
    /// How much load may be asked for.
    #[serde(default)]
    pub limits: Limits,
    /// Labels of keys that are on the token and may be used to sign and to encrypt.
    #[serde(default)]
    pub existing_keys: BTreeSet<String>,
    /// What else may be done with one of them, by its label.
    #[serde(default)]
    pub key_operations: BTreeMap<String, BTreeSet<KeyOperation>>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {error}\nhint: --config takes a TOML file with a table [targets.NAME]", .path.display())]
    Unreadable {
        /// The agent's configuration file.
        path: PathBuf,
        /// What the operating system answered.
        error: io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {error}\nhint: {FORM}", .path.display())]
    Malformed {
        /// The agent's configuration file.
        path: PathBuf,
        /// Where in the file, and what is wrong there.
        error: String,
    },
    /// The file has no table `[targets.NAME]`.
    #[error("{}: no target\nhint: add a table [targets.NAME] with module = \"/path\"", .0.display())]
    NoTarget(PathBuf),
    /// The file enrols nobody.
    #[error("{}: no coordinator is enrolled\nhint: coordinators = {{ lab = \"PUBLIC PACKET KEY\" }}, which `tapstone hosts --new-key FILE` prints", .0.display())]
    NoCoordinator(PathBuf),
    /// A target says two things where one is possible.
    #[error("{}: target {target}: {what}\nhint: give one of them", .path.display())]
    Ambiguous {
        /// The agent's configuration file.
        path: PathBuf,
        /// The name of the target in the file.
        target: String,
        /// The fields that are in conflict, in words.
        what: &'static str,
    },
    /// A target's module is not there.
    #[error("{}: target {target}: {}: no such module\nhint: `tapstone targets` lists the modules that were found", .path.display(), .module.display())]
    NoModule {
        /// The agent's configuration file.
        path: PathBuf,
        /// The name of the target in the file.
        target: String,
        /// The path of the module that does not exist.
        module: PathBuf,
    },
}

const FORM: &str = "packet-key = \"FILE\", coordinators = { NAME = \"PUBLIC PACKET KEY\" }, and for \
                    each target a table: [targets.hsm-a] with module = \"/path\"";

impl Config {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// The file cannot be read, is malformed, or offers what cannot be.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = read_text(path, FileLimit::TOML)
            .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
        Self::parse(&text, path)
    }

    /// Reads and checks the text of a configuration; `path` is what it is called in errors.
    ///
    /// # Errors
    /// It is malformed, or offers what cannot be.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let mut config = toml::from_str::<Self>(text).map_err(|error| ConfigError::Malformed {
            path: path.to_owned(),
            error: error.to_string().trim_end().to_owned(),
        })?;
        config.check(path)?;
        // Counts from the file's folder, which is where make-lab puts it.
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        config.packet_key = folder.join(&config.packet_key);
        Ok(config)
    }

    fn check(&self, path: &Path) -> Result<(), ConfigError> {
        if self.targets.is_empty() {
            return Err(ConfigError::NoTarget(path.to_owned()));
        }
        if self.coordinators.is_empty() {
            return Err(ConfigError::NoCoordinator(path.to_owned()));
        }
        for (name, target) in &self.targets {
            let ambiguous = |what| {
                Err(ConfigError::Ambiguous { path: path.to_owned(), target: name.clone(), what })
            };
            let tokens = [
                target.token_label.is_some(),
                target.token_serial.is_some(),
                target.slot.is_some(),
            ];
            if tokens.into_iter().filter(|given| *given).count() > 1 {
                return ambiguous("token-label, token-serial and slot name one token each");
            }
            if target.pin_file.is_some() && target.pin_env.is_some() {
                return ambiguous("pin-file and pin-env hold one PIN each");
            }
            // A bare name is looked for where the dynamic linker looks.
            if target.module.components().count() > 1 && !target.module.exists() {
                return Err(ConfigError::NoModule {
                    path: path.to_owned(),
                    target: name.clone(),
                    module: target.module.clone(),
                });
            }
        }
        Ok(())
    }
}

impl TargetConfig {
    /// Which token it is.
    #[must_use]
    pub fn token(&self) -> TokenChoice {
        match self {
            Self { token_label: Some(label), .. } => TokenChoice::Label(label.clone()),
            Self { token_serial: Some(serial), .. } => TokenChoice::Serial(serial.clone()),
            Self { slot: Some(slot), .. } => TokenChoice::Slot(*slot),
            _ => TokenChoice::Only,
        }
    }

    /// Where its PIN comes from.
    #[must_use]
    pub fn pin(&self) -> PinSource {
        match self {
            Self { pin_file: Some(path), .. } => PinSource::File(path.clone()),
            Self { pin_env: Some(name), .. } => PinSource::Environment(name.clone()),
            _ => PinSource::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// With a packet key and a coordinator.
    fn read(text: &str) -> Result<Config, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lab = "cd".repeat(32);
        let keys = format!("packet-key = 'k'\ncoordinators = {{ lab = '{lab}' }}\n");
        fs::write(file.path(), keys + text).unwrap();
        Config::read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_target_names_module_token_and_pin() {
        let config = read(
            "name = 'client-1'\n[targets.hsm-a]\nmodule = 'libhsm.so'\ntoken-label = 'perf'\n\
             pin-file = '/etc/tapstone/pin'\n",
        )
        .unwrap();
        let target = &config.targets["hsm-a"];
        assert_eq!(target.token(), TokenChoice::Label("perf".into()));
        assert_eq!(target.pin(), PinSource::File("/etc/tapstone/pin".into()));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_hint() {
        for (text, told) in [
            ("", "missing field `targets`"),
            ("[targets]", "no target"),
            ("[targets.a]\nmodule = '/nonexistent/x.so'", "no such module"),
            ("[targets.a]\nmodule = 'x.so'\nslot = 1\ntoken-label = 'b'", "name one token each"),
            ("[targets.a]\nmodule = 'x.so'\npin-file = 'p'\npin-env = 'P'", "one PIN each"),
            ("[targets.a]\nmodule = 'x.so'\npin = '1234'", "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told) && error.contains("\nhint: "), "{text}: {error}");
        }
    }
}
