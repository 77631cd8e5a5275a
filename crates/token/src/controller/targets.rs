//! Which tokens there are, and which of them is meant.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::TokenMeasureError;
use super::{Login, TokenChoice, TokenController, TokenOptions, TokenTarget, WorkerCommand};
use crate::module::{LibraryInfo, MechanismInfo, ModuleArguments, SlotInfo, Version};

/// What a module says of itself, or why it says nothing.
#[derive(Debug)]
pub struct ModuleReport {
    /// The path of the PKCS #11 module.
    pub module: PathBuf,
    /// The library and its slots with their mechanisms.
    pub answer: Result<ModuleAnswer, TokenMeasureError>,
}

/// Loads a module in a process of its own and asks what it has. Logs in nowhere.
#[must_use]
pub fn look_at(
    worker: &WorkerCommand,
    module: &Path,
    module_arguments: Option<ModuleArguments>,
    timeout: Duration,
) -> ModuleReport {
    let options = TokenOptions {
        worker: worker.clone(),
        module: module.to_owned(),
        module_arguments,
        tokens: Vec::new(),
        login: Login::None,
        accept_low_count: false,
        timeout,
        interrupt: std::sync::Arc::default(),
        announce: |_| {},
    };
    ModuleReport { module: module.to_owned(), answer: ask(options) }
}

/// The library, and its slots with their mechanisms.
pub type ModuleAnswer = (LibraryInfo, Vec<(SlotInfo, Vec<MechanismInfo>)>);

fn ask(options: TokenOptions) -> Result<ModuleAnswer, TokenMeasureError> {
    let mut controller = TokenController::idle(options, 0)?;
    let number = controller.spawn()?;
    let library = controller.load(number)?;
    let slots = controller.slots_and_mechanisms(number, true)?;
    controller.close();
    Ok((library, slots))
}

/// The tokens that are meant, each once.
pub(super) fn choose(
    module: &Path,
    choices: &[TokenChoice],
    slots: Vec<SlotInfo>,
) -> Result<Vec<TokenTarget>, TokenMeasureError> {
    let present: Vec<TokenTarget> = slots
        .into_iter()
        .filter_map(|slot| Some(TokenTarget { token: slot.token.clone()?, slot }))
        .collect();
    let mut chosen: Vec<TokenTarget> = Vec::new();
    for choice in choices {
        let fits: Vec<&TokenTarget> = present.iter().filter(|target| choice.fits(target)).collect();
        match fits[..] {
            [] => {
                return Err(TokenMeasureError::NoToken {
                    module: module.to_owned(),
                    wanted: choice.words(),
                    present: present.iter().map(describe).collect(),
                });
            }
            [one] => {
                if !chosen.iter().any(|other| other.slot.id == one.slot.id) {
                    chosen.push(one.clone());
                }
            }
            _ => {
                return Err(TokenMeasureError::ManyTokens {
                    module: module.to_owned(),
                    count: fits.len(),
                    fits: fits.iter().map(|target| describe(target)).collect(),
                });
            }
        }
    }
    Ok(chosen)
}

impl TokenChoice {
    fn fits(&self, target: &TokenTarget) -> bool {
        match self {
            // A module often shows an empty token beside those in use.
            Self::Only => target.token.has(cryptoki_sys::CKF_TOKEN_INITIALIZED),
            Self::Label(label) => target.token.label == *label,
            Self::Serial(serial) => target.token.serial == *serial,
            Self::Slot(slot) => target.slot.id == *slot,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Only => "that is initialised".into(),
            Self::Label(label) => format!("with label \"{label}\""),
            Self::Serial(serial) => format!("with serial number \"{serial}\""),
            Self::Slot(slot) => format!("in slot {slot}"),
        }
    }
}

fn describe(target: &TokenTarget) -> String {
    let label = match target.token.label.as_str() {
        "" => "a token without a label".to_owned(),
        label => format!("\"{label}\""),
    };
    format!("{label} in slot {}", target.slot.id)
}

/// Until the module has said what it is.
pub(super) fn unknown_library() -> LibraryInfo {
    let version = Version { major: 0, minor: 0 };
    LibraryInfo {
        cryptoki_version: version,
        manufacturer: String::new(),
        description: String::new(),
        version,
    }
}
